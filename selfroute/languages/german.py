"""How models decline in German."""

from __future__ import annotations

from selfroute.languages.language import Language

WORDS = {
    # What the answer is read from: as the prompt gave it, and as a work that says some things and not others.
    "passages": """text texte texten textes textstelle* textpassage* textausz* textabschnitt* textausschnitt*
        passage* abschnitt* absatz absätze* auszug* auszüg* ausschnitt* kontext* dokument* unterlage* quelle*
        material*""",
    "work": """bericht* artikel* studie* aufsatz* interview* protokoll* anleitung* bedienungsanleitung* handbuch*
        buch roman* erzählung* kapitel* seite seiten autor* verfasser* herausgeber* vertrag* satzung* gesetz*
        verordnung* packungsbeilage* tabelle* brief* geschäftsbericht* jahresbericht* grundlage basis rahmen
        paragraph*""",
    "information": """information* angabe* auskunft auskünfte aussage* detail* einzelheit* erwähnung* anhaltspunkt*
        aufschluss antwort* erklärung* aufschlüsselung* bezug verweis* rückschlüsse rede""",
    "findings": "hinweis* zahlen beleg* nachweis* grundlage",
    "asked": "frage fragestellung anfrage antwort beantwortung information informationen angabe angaben",
    "given": """vorliegende* bereitgestellte* bereit gegebene* angegebene* vorhandene* verfügbare* zur verfügung
        gestellte* stehende* mitgelieferte* obige* gezeigte* abgedruckte* fehlende* weitere* abgerufene* hier mir
        uns dir ihnen von genannte* gesamte* ganze* alle* aller beiden zwei drei vier fünf reinen bloßen nur
        ausschließlich 0 1 2 3 4 5 6 7 8 9""",
    "the": """der die das den dem des dies* ein eine einen einem einer eines ihr ihre ihren ihrer deine deiner meine
        meiner diese jene""",
    "prep": """in im aus auf anhand mit basierend laut gemäß nach von vom zu zum zur über bei für innerhalb aufgrund
        ohne auf_basis auf_grundlage durchsicht prüfung berücksichtigung unter an am""",
    "about": "dazu hierzu darüber hierüber davon hiervon darauf hierauf dafür hierfür diesbezüglich damit",
    "whether": "wer wen wem wessen was wann wo wohin woher wie warum weshalb wieso womit wodurch ob welch*",
    # Verbs.
    "be": "wird werden ist sind",
    "was": "wurde wurden war waren",
    "can": "kann können konnte konnten könnte könnten möchte",
    "not": "nicht nirgends nirgendwo nie niemals",
    "no": "kein keine keinen keinem keiner keines keinerlei nichts",
    "adverb": """leider jedoch aber allerdings daher deshalb somit folglich also hier dort darin daraus da es sich
        man zwar auch gar überhaupt explizit ausdrücklich direkt genau genauer näher konkret eindeutig weiter nur
        lediglich ganz wirklich sicher das dies diese zuverlässig verlässlich abschließend einfach so sie mir uns
        ihnen dir""",
    "names": """spricht sprechen nennt nennen erwähnt erwähnen spezifizier* präzisier* benennt benennen thematisier*
        beantwortet beantworten beziffer* konkretisier* geht gehen äußert äußern erläuter* informieren informiert
        verrät""",
    "holds": """enthält enthalten liefert liefern bietet bieten gibt geben macht machen beinhalte* sagt sagen
        spricht sprechen erlaub* ermöglich* lässt lassen hat haben besagt trifft treffen hilft helfen klärt klären
        erklärt erklären behandelt behandeln steht""",
    "describes": """beschreib* behandel* schilder* handel* stammen stammt beziehen bezieht erwähn* nennt nennen
        enthält enthalten befass* thematisier* konzentrier* betreffen betrifft erzähl* berichte*""",
    "gives": "gibt geben führt führen legt legen hält halten",
    "told": """genannt erwähnt angegeben aufgeführt spezifiziert präzisiert benannt thematisiert angesprochen
        beziffert ausgeführt erläutert dargelegt offengelegt mitgeteilt gesagt preisgegeben konkretisiert
        aufgelistet vermerkt festgehalten""",
    "treated": """beantwortet behandelt beschrieben erklärt ermittelt bestimmt gefunden diskutiert festgestellt
        abgeleitet""",
    "possible": "ersichtlich vorhanden verfügbar beantwortbar zu_finden zu_entnehmen zu_ersehen erkennbar relevant",
    "inf": """beantworten antworten sagen feststellen bestimmen ermitteln ableiten entnehmen ersehen angeben
        beurteilen herauslesen bestätigen verneinen herausfinden weiterhelfen beantwortet bestimmt ermittelt
        abgeleitet festgestellt entnommen""",
    "suffices": "reicht reichen genügt genügen",
    "lie": "liegt liegen",
    "needs": "müsste* bräuchte* benötig* wäre wären fehlt fehlen",
    "quiet": "schweig*",
    "lacking": "fehlt fehlen",
    "unsaid": "unerwähnt ungenannt unbeantwortet unbeantwortbar unklar unbekannt",
    "open": "unklar unbekannt offen",
    "apart": "darauf ein an auf aus fest weiter hervor vor näher genau zu zum zur über auseinander",
    # Fillers.
    "hedge": """leider entschuldigung verzeihung sorry bedauerlicherweise tut_mir_leid es_tut_mir_leid bedaure
        bedauere aber doch jedoch daher deshalb also somit nun ich_bedaure ich_bedauere es_tut_mir_sehr_leid
        leider_nein entschuldigen_sie""",
    "specific": """genau* konkret* ausdrücklich* explizit* direkt* näher* weiter* ausreichend* hinreichend*
        spezifisch* nötig* gewünscht* gesucht* eindeutig* klar* verlässlich* genügend""",
    # How a sentence goes on that is no decline: the topic of a decline comes before its finite verb.
    "stops": """, wird werden ist sind wurde wurden war waren kann können konnte konnten muss müssen musste soll
        sollen sollte sollten darf dürfen durfte will wollte hat haben hatte hatten gibt gab geht ging gehen kommt
        kam steht stand liegt lag lässt ließ bleibt blieb beträgt betrug betrugen belief belaufen stieg sank fiel
        zeigt zeigen zeigte nennt nennen heißt hieß gilt gelten galt führt führte führten findet finden fand enthält
        enthielt enthalten umfasst umfasste umfassen besteht bestand besitzt besaß nahm nimmt nehmen nutzt nutzten
        verwendet verwendete verwendeten sagt sagte erzählt erzählte erklärt erklärte stammt stammen stammte lebt
        lebte starb macht machte machen gehört gehörte hält hielt trägt trug stellt stellte stützt sich begann
        beginnt endet endete dauert dauerte erfolgt erfolgte regelt verbietet sieht sah weiß wusste glaubt glaubte
        dass weil nicht sondern beruht basiert schlägt schlagen erhielt erhält trat tritt fehlt fehlen
        lautet lauten""",
    "but": "aber doch jedoch allerdings dennoch sondern",
    "telling": """nicht kein* nichts nur lediglich erwähn* nennt nennen genannt enthält enthalten steht gibt_es geht
        ich leider bitte können könnten empfehl* wenden weder ohne text kontext passagen auszüge""",
}

PARTS = {
    # Its names: "the text", a work, what was asked for; and where it stands.
    "head": "({passages} | {work} | {given} | {the} | {prep} | ,)*",
    "the_text": "({the} | {given})* {passages} {head}",
    "the_work": "({the} | {given})* {work} {head}",
    "the_asked": "({the} | {given})* {asked}",
    "in_text": "{prep} ({prep} | {the} | {given})* ({passages} | {work} | {asked}) {head}",
    # What stands between a verb and its denial; and the denial of all information.
    "mid": "({adverb} | {about} | {in_text} | ({the} | {prep} | {about}) -{stops} (-{stops})?)*",
    "lack": "({no} | {not} (genug | {specific} | {the}) | zu wenig) ({specific} | genug)*",
    "zero": "({adverb} | {not})* {lack} ({information} | {findings})",
    "silent": "{mid} ({zero} | {not} ({apart} | , | .) | nichts)",
    # A finite verb and its denial, whatever stands before it.
    "denied": "{be} {mid} ({not} {adverb}* ({told} | {possible}) | nichts ({told} | {possible}) | {lack}"
    " {information} | {in_text} {mid} {lack} {information})"
    " | ({be} | {was}) {mid} {in_text} {mid} ({not} | {zero}) {adverb}* ({told} | {treated} | {possible})"
    " | {can} {mid} {in_text} {mid} {not} {adverb}* ({told} | {treated})"
    " | {be} {mid} {not} zu {inf}"
    " | (bleibt | bleiben) {mid} (unerwähnt | ungenannt | unbeantwortet | {in_text} {mid} {open})"
    " | (gibt | gab) es {there_is_no}"
    " | (findet | finden) (sich | ich | man) {mid} ({no} | {not})"
    " | (liegt | liegen) {mid} {zero}"
    " | (steht | stehen) {mid} ({not} ({end} | {in_text}) | nichts | {zero})"
    " | (geht | gehen) {mid} {not} {adverb}* (hervor | {in_text} hervor)"
    " | (lässt | lassen) sich {mid} ({not} {mid} {inf} | {zero})"
    " | {can} (ich | wir | man) {mid} {can_not}"
    " | (erfährt | erfahren | weiß | wissen) (man | ich | wir) {mid} {not}"
    " | (habe | haben | finde | sehe) (ich | wir) {mid} ({zero} | nichts {end})"
    " | ({holds} | {names}) ({adverb} | {about})* ({the_text} | {the_work}) {silent}"
    " | {names} ({adverb} | {about})* ({the_text} | {the_work}) {mid} ({no} | weder)"
    " | {suffices} ({the} | {given})* ({information} | {passages}) {head} {mid} {not}"
    " | {quiet} ({about} | {adverb})* ({the_text} | {the_work})"
    " | {lacking} ({mid} {specific}* {information} | {in_text})",
    "end": ". | , | :",
    # What the text does not tell: it is the subject, and the verb has its place.
    "says_not": "({holds} | {names}) {mid} {zero} | {names} {mid} ({no} | weder | {not} ({end} | {apart} | {the} |"
    " {whether})) | {gives} {mid} {not} an | (sagt | sagen) {mid} nichts"
    " | {quiet} | {can} {mid} {can_not}",
    "can_not": "({not} {mid} {inf} | nichts {mid} {inf} | {zero} | weder .. {inf} | {not} (finden | helfen))",
    "text_says_not": "({holds} | {names}) .. ({no} | {not} ({end} | {apart}))"
    " | {suffices} {mid} {not} | {be} .. {not} {possible} | {names} (-{stops})* , {but} {not}",
    # What may stand before the finite verb.
    "topic": "{about} | hier | darin | es | ({info_topic}) | ({the} | zu | zum | zur | über | bezüglich |"
    " hinsichtlich) .. (, (der | die | das | den) ... ,)?"
    " | (und | {prep})? {whether} ... , {about}?",
    "info_topic": "{specific}* {information} ..",
    "there_is_no": "{mid} {lack} ({information} | {findings} {in_text})",
    "info_lacks": "({info_topic} | {the_asked} ..) ({lacking} {end} | {lie} {mid} {not} vor | {be} {mid} {not}"
    " (gemacht | enthalten))",
    "lead": "({in_text} | {the_text} zufolge | nach .. {in_text} | soweit ...) (, | :)?",
    "label": "({the} | kurze | endgültige | finale)* (antwort | ergebnis | fazit | lösung) (:|.)",
    "opener": "({hedge} ,?)*",
    # The reader does not know.
    "reader_not": "{can} {mid} {can_not} | (weiß | wissen) {mid} {not} | (bin | sind) {mid} {not} (in der lage |"
    " sicher | befugt)"
    " | (habe | haben | finde | sehe | fand) {mid} ({zero} | {not} gefunden)",
}

GERMAN = Language(
    name="German",
    words=WORDS,
    parts=PARTS,
    start="{opener} {lead}? {opener} {about}?",
    labels=(
        "{label}",
        "({the} | {given} | {adverb})* {asked} (ist | lautet | bleibt) {adverb}* :?",
    ),
    explains=(
        ", | : | .",
        (
            "weil | denn | da ({the} | {information} | ich | es | {no}) | {the} ({given} | {passages} | {work} |"
            " {asked} | {information})"
        ),
        "{hedge} | {prep} ({the} | {given})* ({passages} | {work} | .)",
        "(ich | es) ({be} | {can} | gibt | steht | weiß | habe)",
    ),
    declines=(
        "{denied}",
        "{topic} {denied}",
        "(es (gibt | gab) {there_is_no} | {lead} gibt es {mid} {zero})",
        # The text is silent.
        "{the_text} ({says_not} | {text_says_not})",
        "{the_work} {says_not}",
        "({no} | weder) ({the} | {prep})? ({the_text} | {the_work}) ({names} | {holds})",
        # The reader does not know.
        "(ich | wir) {reader_not}",
        "man ({can} {mid} ({in_text} | {about}) {mid} {can_not} | (erfährt | findet) {mid} ({not} | nichts | {zero}))",
        "mir {lie} {mid} {zero}",
        # What was asked for is not told.
        "({the} | {given})* {information} {head} {suffices} {mid} {not}",
        "{info_lacks}",
        "um {the_asked} zu beantworten , {needs}",
        "({lead} | ({the_asked} | {the} {specific}* {information}) ..) (ist | wäre) {mid} {not} möglich",
        "es ist {mid} {not} möglich , ({in_text} | .. zu {inf})",
        "({zero} | keine ahnung) ({end} | {prep} | {about} | {told} | {possible} | möglich)",
        "({unsaid} | {not} ({told} | {treated} | {possible} | bekannt)) ({end} | {in_text})",
        "{not} {in_text} ({told} | enthalten)",
        "{lead} ({can} {mid} {not} {mid} {treated} | ({be} | {was}) .. ({not} {told} | {no} .. {told}))",
        "(nirgends | nirgendwo | in {no} {the_text}) {in_text}? ({be} | findet | steht)",
        "{whether} ... , ((ist | bleibt) {mid} {open} | lässt ({the_text} | {the_work}) offen)",
        "({the_text} | {the_work}) lässt {mid} offen",
        "(da | weil) {the_text} {mid} {zero}",
        "weder ({in_text} | ... ({be} | {was}) ... {told})",
        "({lead} | es) (ist | bleibt) {mid} ({not} bekannt | {open})",
        # The text tells of something else.
        (
            "(({the_text} | {the_work}) {describes} | {in_text} (geht es um | werden | wird)) ... (. | , | ,? {but})"
            " {opener} {lead}? (({topic} | {the_text} | {the_work})? ({denied} | {says_not}) | {info_lacks} | {no}"
            " (davon | {the}) ({holds} | {names}))"
        ),
    ),
    answers=("... , (-{telling})* {but} (-{telling})* (. | :)",),
)
