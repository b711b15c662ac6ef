"""The rules that recognise a decline in German, tested only on examples that we wrote ourselves."""

from __future__ import annotations

from selfroute.languages.language import Language

WORDS = {
    # Names of the source: the passages ("context"), and works ("report"), whose silence may be an answer.
    "passages": """text texte texten textes textstelle* textpassage* textauszug* textabschnitt* textausschnitt*
        textteil* textstück* textblock* textfragment* textsegment* textquelle* passage* abschnitt* absatz* auszug*
        ausschnitt* kontext* dokument* unterlage* chunk* segment* fragment* snippet* block* inhalt* datei* teil teile
        teilen zeilen zitat* exzerpt* jahresabschluss* konzernabschluss* abschlussunterlage* finanzbericht*
        finanzunterlage* finanzdokument* buchabschnitt* buchauszug* buchausschnitt* berichtsauszug*
        berichtsabschnitt*""",
    "excerpts": "passagen auszüge textauszüge textpassagen abschnitte textabschnitte ausschnitte chunks textstellen",
    "data": "informationen daten",
    "work": """bericht* artikel* studie* aufsatz* interview* protokoll* anleitung* bedienungsanleitung* handbuch* buch
        roman* erzählung* kapitel* seite seiten autor autors verfasser verfassers herausgeber* vertrag* satzung* gesetz*
        verordnung* packungsbeilage* tabelle* brief* geschäftsbericht* jahresbericht* grundlage basis rahmen paragraph*
        papier papieren arbeit arbeiten forscher* publikation* veröffentlichung* untersuchung* beitrag beitrags
        zusammenfassung* transkript* anhang geschichte szene* bilanz* quartalsbericht* prospekt* formular* erzähler*
        abschluss* lagebericht* gespräch* dialog* schrift* notiz* urteil* richtlinie* broschüre* klausel* bestimmung*
        merkblatt* datenblatt* katalog* fußnote* abstract werk werks eintrag eintrags übersicht* material* quelle*""",
    "paper": "paper papers",  # not after a bare "in", since "in paper 2" is English as well
    "information": """information* angabe* auskünfte aussage* detail* einzelheit* erwähnung* anhaltspunkt* aufschluss
        antwort* erklärung* aufschlüsselung* bezug verweis* rückschlüsse rede auskunft* diskussion* erörterung*
        beschreibung* darstellung* nennung* anspielung* spezifikation*""",
    "findings": """hinweis* zahlen grundlage zitat* projektion* prognose* vergleich* wort kennzahl* schätzung*
        statistik* betrag summe wert werte analyse* bestätigung* aufstellung* begründung* daten zahl ziffer*
        offenlegung* kommentar* schlussfolgerung* erkenntnis*""",
    "asked": """frage fragestellung anfrage antwort beantwortung information informationen angabe angaben fragen daten
        antworten""",
    "given": """vorliegende* bereit gegebene* angegebene* vorhandene* verfügbare* zur verfügung gestellte* stehende*
        mitgelieferte* obige* gezeigte* abgedruckte* fehlende* weitere* hier mir uns dir ihnen von genannte* ganze*
        alle* beiden zwei drei vier fünf reinen bloßen nur ausschließlich abgerufen* vorgelegt* enthaltene* relevante*
        spezifisch* konkret* finanziell* jährlich* vollständig* beigefügte* überlassen* zitiert* ausgewählt* mitgeteilt*
        obenstehend* untenstehend* jeweilig* übermittelt* eingefügt* geprüft* extrahiert* vorhanden bereitgestellt*
        gefunden* nr nummer gesamt* aktuell* direkt* genau* einzelne* geteilt* hochgeladen* eingereicht* angehängt*
        entsprechende*""",
    "number": "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15",
    "the": """der die das den dem des dies* ein eine einen einem einer eines ihr ihre ihren ihrer deine deiner meine
        meiner jene keine keiner keinem jede jeder jedes jedem solche solchen""",
    "prep": """in im aus auf anhand mit basierend laut gemäß nach von vom zu zum zur über bei für innerhalb aufgrund
        ohne auf_basis auf_grundlage durchsicht prüfung berücksichtigung unter an am sorgfältig* genau* überprüfung
        analyse lesen auswertung lektüre sichtung prüfen basis hinblick auf_der_basis auf_der_grundlage angesichts
        mithilfe wie soweit vor hin gegeben ausgehend ausschließlich allein entsprechend trotz gelesen überprüft
        nachdem""",
    "of": "von des der zu zum zur aus über auf im in",
    "about": "dazu hierzu darüber hierüber davon hiervon darauf hierauf dafür hierfür diesbezüglich damit",
    "regarding": "von vom bei mit für nach gegen zu zum zur über bezüglich hinsichtlich",
    "whether": "wer wen wem wessen was wann wo wohin woher wie warum weshalb wieso womit wodurch ob welch*",
    # Verbs.
    "be": "wird werden ist sind",
    "was": "wurde wurden war waren",
    "can": "kann können konnte konnten könnte könnten möchte",
    "not": "nicht nirgends nirgendwo nie niemals an_keiner_stelle in_keiner_weise mit_keinem_wort zu_keinem_zeitpunkt",
    "no": "kein keine keinen keinem keiner keines keinerlei nichts",
    "adverb": """leider jedoch aber allerdings daher deshalb somit folglich also hier dort darin daraus da es sich man
        zwar auch gar überhaupt explizit ausdrücklich direkt genau genauer näher konkret eindeutig weiter nur lediglich
        ganz wirklich sicher das dies diese verlässlich abschließend einfach so sie mir uns ihnen dir explizite direkte
        spezifisch näheres genaueres konkreter konkretes derzeit aktuell bisher unmittelbar hinreichend ausreichend klar
        deutlich gesondert separat tatsächlich vollständig ebenfalls wörtlich detailliert im_detail im_einzelnen im_text
        anscheinend offenbar selbst noch mehr ihre deren dessen dabei präzise exakt hierzu sehr einzeln""",
    "soft": "explizit ausdrücklich direkt näher konkret spezifisch",
    "comma": ",",
    "turns": """befasst befassen beschäftigt beschäftigen bezieht beziehen konzentriert konzentrieren widmet widmen
        äußert äußern""",
    "sight": "entnehmen ableiten ermitteln finden ersehen bestimmen feststellen erkennen berechnen",
    "names": """spricht sprechen nennt nennen erwähnt erwähnen spezifizier* präzisier* benennt benennen thematisier*
        beantwortet beantworten beziffer* konkretisier* geht gehen äußert äußern erläuter* informier* verrät verraten
        behandelt behandeln vergleicht vergleichen untersucht untersuchen diskutier* erörtert erörtern beschreibt
        beschreiben erklärt erklären angibt angeben listet listen schildert schildern definier* offenbart offenbaren
        quantifizier* dokumentier* analysier* bespricht besprechen berichtet berichten deutet deuten verweist verweisen
        identifizier* bestätigt bestätigen betrachtet betrachten beleuchtet beleuchten schlüsselt schlüsseln
        prognostizier* begründet begründen belegt belegen klärt klären sagt sagen erzählt erzählen teilt verdeutlicht
        bewertet bewerten""",
    "holds": """enthält enthalten liefert liefern bietet bieten gibt geben macht machen beinhalte* sagt sagen spricht
        sprechen erlaub* ermöglich* lässt lassen hat haben besagt trifft treffen hilft helfen weist weisen führt führen
        legt legen umfasst umfassen zeigt zeigen stellt stellen erbringt verfügt verfügen vermittelt vermitteln
        präsentiert präsentieren""",
    "describes": """beschreib* behandel* schilder* handel* stammen stammt beziehen bezieht erwähn* nennt nennen enthält
        enthalten befass* thematisier* konzentrier* betreffen betrifft erzähl* berichte* geht gehen dreht drehen
        fokussier* diskutier* erörter* erläuter* analysier* definier* präsentier* zeigt zeigen besteht bestehen gibt
        geben vergleich* bietet bieten scheint scheinen widmet widmen untersucht untersuchen""",
    "gives": """gibt geben führt führen legt legen hält halten weist weisen schlüsselt schlüsseln listet listen stellt
        stellen spricht sprechen geht gehen teilt teilen zählt zählen""",
    "told": """genannt erwähnt angegeben aufgeführt spezifiziert präzisiert benannt thematisiert angesprochen beziffert
        ausgeführt erläutert dargelegt offengelegt mitgeteilt gesagt preisgegeben konkretisiert aufgelistet vermerkt
        festgehalten verglichen diskutiert erörtert untersucht definiert offenbart quantifiziert dokumentiert analysiert
        besprochen berichtet bestätigt identifiziert aufgeschlüsselt ausgewiesen beleuchtet aufgezeigt erzählt
        geschildert dargestellt gegeben bereitgestellt gemacht hervorgehoben gelistet eingegangen zitiert""",
    "treated": """beantwortet behandelt beschrieben erklärt ermittelt bestimmt gefunden diskutiert festgestellt
        abgeleitet verglichen enthalten offengelegt bereitgestellt untersucht gezeigt gegeben aufgeschlüsselt geliefert
        berechnet aufgefunden berechnen""",
    "possible": """ersichtlich vorhanden verfügbar beantwortbar zu_finden zu_entnehmen zu_ersehen erkennbar relevant
        enthalten zu_erkennen einsehbar auffindbar angegeben zu_ermitteln zu_bestimmen klar aufgeführt gegeben""",
    "inf": """erfahren beantworten antworten sagen feststellen bestimmen ermitteln ableiten entnehmen ersehen angeben
        beurteilen herauslesen bestätigen herausfinden weiterhelfen beantwortet bestimmt ermittelt abgeleitet
        festgestellt entnommen verifizieren überprüfen berechnen identifizieren finden vergleichen bewerten nennen
        spezifizieren erkennen liefern geben erschließen folgern schließen sehen angegeben gefunden berechnet helfen
        beziffern benennen machen erklären klären bereitstellen anbieten treffen ziehen erteilen""",
    "suffices": "reicht reichen genügt genügen",
    "lie": "liegt liegen",
    "needs": "müsste* bräuchte* benötig* wäre wären fehlt fehlen",
    "quiet": "schweig*",
    "lacking": "fehlt fehlen",
    "unsaid": "unerwähnt ungenannt unbeantwortet unbeantwortbar unklar unbekannt",
    "open": "unklar unbekannt offen",
    "unclear": "unklar ungewiss offen unbekannt unbeantwort* unzureichend* ausreichend* genügend* reicht reichen",
    "apart": """darauf ein an auf aus fest weiter hervor vor näher genau zu zum zur über auseinander offen dar auf_die
        darauf_ein ausdrücklich her bereit dazu ob wie was wer wann wo warum welch* dass woher wohin weshalb""",
    # Fillers that may come before the sentence.
    "hedge": """leider bedauerlicherweise es_tut_mir_leid aber doch jedoch daher deshalb also somit nun ich_bedaure
        ich_bedauere es_tut_mir_sehr_leid leider_nein entschuldigen_sie ich_bitte_um_verzeihung bedauerlich
        es_scheint_dass allerdings tatsächlich verzeihen_sie""",
    "apology": """entschuldigung entschuldige* tut_mir_leid ich_entschuldige_mich ich_bitte_um_entschuldigung bedauere
        bedaure verzeihung sorry""",
    "specific": """genau* konkret* ausdrücklich* explizit* direkt* näher* weiter* ausreichend* hinreichend* spezifisch*
        nötig* gewünscht* gesucht* eindeutig* klar* verlässlich* genügend gesondert* einzig* bestimmt* detailliert*
        zusätzlich* relevant* separat* wörtlich* zuverlässig* vergleichbar* tatsächlich* entsprechend* sonstig* exakt*
        präzis* einschlägig* unmittelbar* etwas irgendwelche anderen andere unterstützend*""",
    # Words that no topic contains, mostly finite verbs: in a decline the topic comes before the finite verb.
    "stops": """, wird werden ist sind wurde wurden war waren kann können konnte konnten muss müssen musste soll sollen
        sollte sollten darf dürfen durfte will wollte hat haben hatte hatten gibt gab geht ging gehen kommt kam steht
        stand liegt lag lässt ließ bleibt blieb beträgt betrug betrugen belief belaufen stieg sank fiel zeigt zeigen
        zeigte nennt nennen heißt hieß gilt gelten galt führt führte führten findet finden fand enthält enthielt
        enthalten umfasst umfasste umfassen besteht bestand besitzt besaß nahm nimmt nehmen nutzt nutzten verwendet
        verwendete verwendeten sagt sagte erzählt erzählte erklärt erklärte stammt stammen stammte lebt lebte starb
        macht machte machen gehört gehörte hält hielt trägt trug stellt stellte stützt sich begann beginnt endet endete
        dauert dauerte erfolgt erfolgte regelt verbietet sieht sah weiß wusste glaubt glaubte dass weil nicht sondern
        beruht basiert schlägt schlagen erhielt erhält trat tritt fehlt fehlen lautet lauten könnte könnten würde würden
        möchte verlangsamen scheint scheinen behauptet behaupten argumentiert argumentieren kostet verfügt verfügen
        betreibt dient dienen bekam gewährt ergibt ergab erreichte erreicht entspricht bietet bieten schrieb schreibt
        zahlte zahlt erhöht erhöhte sinkt steigt bezeichnet betont erlaubt ermöglicht handelt""",
    # What no name begins with, and what does not continue one.
    "no_name": """, ja nein no she he it they ist sind war wird werden hat ich wir er sie es nicht kein keine am im um
        yes* 0* 1* 2* 3* 4* 5* 6* 7* 8* 9* i the a an as at by based according from given in on to we you there this
        that these those while since after before of for with when where who what which how why if although neither""",
    "no_more": ", ist sind war waren wird werden wurde wurden hat haben hatte nicht is are was were had has",
    "but": "aber doch jedoch allerdings dennoch sondern",
    "telling": """nicht kein* nichts nur lediglich erwähn* nennt nennen genannt enthält enthalten steht gibt_es geht ich
        leider bitte können könnten empfehl* wenden weder ohne text kontext passagen auszüge""",
    "negated": "nicht kein keine keinen keinem keiner keines nichts nie",
    "worked": "berechn* ausrechn* errechn* addier* subtrah* summier* dividier* multipliz*",
}

PARTS = {
    # Phrases: the text, a work, what was asked for, and where something is written.
    "head": "({passages} | {work} | {given} | {number} | {the} | {prep} | ,)* (({of} | , die sie) ..)?",
    "the_text": "({the} | {given})* ({passages} | {given} {data}) {head}",
    "the_work": "({the} | {given})* ({work} | {paper}) {head}",
    "source": "{the_text} | {the_work}",
    "the_asked": "({the} | {given})* {asked}",
    "in_text": "{prep} (({prep} | {the} | {given})* ({passages} | {work} | {asked}) | {the} {paper}) {head}",
    "end": ". | , | :",
    # What may come between a verb and its negation; and the negation of all information.
    "mid": "({adverb} | {about} | {in_text} | ({the} | {prep} | {about}) -{stops} (-{stops})?)*",
    "lack": "({no} | {not} (genug | {specific} | {the}) | zu wenig) ({specific} | genug)*",
    "zero": "({adverb} | {not})* {lack} ({information} | {findings})",
    "there_is_no": "{mid} ({lack} ({information} | {findings} {in_text}) | {in_text} {mid} {zero})",
    "can_not": "({not} {mid} {inf} | nichts {mid} {inf} | {zero} | weder .. {inf} | {not} (finden | helfen))",
    "silent": "{mid} ({zero} | {not} {adverb}* ({apart} | {end} | {the} | {prep}) | nichts)",
    # A finite verb and its negation, whatever comes before it.
    "denied": "{be} {mid} ({not} {adverb}* ({told} | {possible}) | nichts ({told} | {possible}) | {lack} {information}"
    " | {in_text} {mid} {lack} {information} | ({not} | nichts) zu {inf} | von .. {no} rede | {not} von .. rede)"
    " | ({be} | {was}) {mid} {in_text} {mid} ({not} | {zero}) {adverb}* ({told} | {treated} | {possible}) | {can}"
    " {mid} {in_text} {mid} {not} {adverb}* ({told} | {treated}) | (bleibt | bleiben) {mid} (unerwähnt | ungenannt"
    " | unbeantwortet | {in_text} {mid} {open}) | (gibt | gab) es {there_is_no} | (findet | finden) (sich | ich | man)"
    " {mid} ({no} | {not}) | {lie} {mid} {zero} | (steht | stehen) {mid} ({not} drin? ({end} | {in_text}) | nichts"
    " | {zero}) | {be} {mid} {not} (teil | bestandteil) ({the} | {given})* {passages} | (geht | gehen) ({mid} {not}"
    " {adverb}* {in_text}? | {in_text} .. {no} ..) hervor | (kommt | kommen) {mid} {not} vor | (lässt | lassen) sich"
    " {mid} ({no} .. {sight} | {not} {mid} {inf} | {zero}) | {can} (ich | man | wir {mid} {in_text}) ({mid} {can_not}"
    " | .. {not} {adverb}* {inf}) | (erfährt | erfahren | weiß | wissen) (man | ich | wir) {mid} {not} | (habe | haben"
    " | finde | sehe) (ich | wir) {mid} ({zero} | nichts {end}) | ({holds} | {names} | {gives}) ({adverb} | {about})*"
    " ({source}) {silent} | {names} ({adverb} | {about})* ({source}) {mid} ({no} | weder) | {suffices} ({the}"
    " | {given})* ({information} | {passages}) {head} {mid} {not} | {quiet} ({about} | {adverb})* ({source})"
    " | {lacking} ({mid} {specific}* {information} | (im | in {the}*) {given}* {passages})",
    # What follows the text as the subject: its verb and the negation.
    "says_not": "({holds} | {names}) {mid} {zero} | {names} {mid} ({no} | weder | {not} {adverb}* ({the} | {whether}))"
    " | ({names} | {gives}) .. {not} {adverb}* ({end} | {apart} | und) | {turns} sich {mid} {not} | (scheint"
    " | scheinen) {mid} {zero} | (sagt | sagen) {mid} nichts | lässt {mid} offen | {quiet} | {can} {mid} {can_not}",
    "text_says_not": "({holds} | {names} | {gives}) .. ({no} | weder) | ({holds} | {names} | {gives}) .. {not}"
    " {adverb}* ({end} | {apart} | {the} | {prep}) | {suffices} {mid} {not} | {be} .. {not} {possible} | {names}"
    " (-{stops})* , {but} {not}",
    # What may come before the finite verb.
    "info_topic": "{specific}* {information} ..",
    "topic": "{about} | hier | darin | es | {info_topic} | {specific}* {findings} .. | {specific} .. | ({the}"
    " | {regarding}) .. (, (der | die | das | den) ... ,)? | (und | {prep})? {whether} ... , {about}?",
    "info_lacks": "({info_topic} | {the_asked} ..) ({lacking} {end} | {lie} {mid} {not} vor | {be} {mid} {not} (gemacht"
    " | enthalten))",
    "lead": "({in_text} | {the_text} zufolge | nach .. {in_text} | soweit ...) (, | :)?",
    "name": "-{no_name} (-{no_more})?",
    "opener": "(({hedge} | {apology}) ,? | (nein | nö) (, | .) | {meta} ... (. | , | und | ,? {but}))*",
    # What the text does tell, before what it does not.
    "meta": "(({source}) ({describes} | -{no_more}) | zwar | {in_text} (geht es um | werden | wird) | {the} .. {be}"
    " ({in_text} | {adverb})* ({told} | {treated}))",
    "to_question": "((auf | zu | für) {the}* {given}* (frage | fragestellung | anfrage))?",
    "label": "({the} | kurze | endgültige | finale)* (antwort | ergebnis | fazit | lösung) {to_question}",
    # The model does not know.
    "reader_not": "{can} ({mid} {can_not} | .. {not} {adverb}* {inf}) | (weiß | wissen) {mid} {not} | (bin | sind)"
    " {mid} {not} (in der lage | sicher | befugt) | (habe | haben | finde | sehe | fand) {mid} ({zero} | {not}"
    " (gefunden | {end}) | {in_text} {mid} {no}) | {can} {mid} {in_text} {mid} {no} .. {sight}",
}

GERMAN = Language(
    name="German",
    words=WORDS,
    parts=PARTS,
    start="{opener} {lead}? {opener} {about}?",
    labels=(
        "{label} (: | .) | hier ist {label} :",
        "({the} | {given} | {adverb})* {asked} {to_question} (ist | lautet | bleibt) ({adverb} | wie folgt)* :?",
    ),
    explains=(
        "weil | denn | da ({the} | {information} | ich | es | {no})",
        "{the} ({given} | {passages} | {work} | {asked} | {information})",
        "{hedge} | {prep} ({the} | {given})* ({passages} | {work} | .)",
        "(ich | es) ({be} | {can} | gibt | steht | weiß | habe)",
    ),
    declines=(
        # The subject is something other than the text.
        "{denied}",
        "({topic} | {apology} ,? aber? ..) {denied}",
        "{name} ({be} | {was}) {in_text} {mid} {not} {adverb}* ({told} | {treated})",
        "-{no_name} (-{no_more})? : {in_text}? {not} {adverb}* ({told} | {treated}) ({end} | {in_text})",
        "{meta} ... (, {the} .. | . {name} {be}) {mid} {not} {adverb}* ({told} | {treated})",
        "{lead} (finde | sehe | fand) (ich | wir) {mid} {no}",
        "es ({be} | {was} | gibt) {mid} {no} (-{comma})* ({told} | {in_text})",
        "(es (gibt | gab) {there_is_no} | {lead} gibt es {mid} {zero} | es (scheint | scheinen) {mid} {zero})",
        "{lead} (({be} | {was}) .. ({not} {told} | {no} .. {told}) | (scheint | scheinen) .. {not} {adverb}* {told})",
        # The text is silent.
        "{the_text} ({says_not} | {text_says_not})",
        "{the_work} {says_not}",
        "({no} | weder) ({the} | {prep})? ({source}) ({names} | {holds})",
        "weder ({source}) noch ({source}) ({names} | {holds})",
        (
            "(während | obwohl | obgleich | wenngleich | auch wenn) ({source}) ... , (({names} | {holds} | {gives}) (er"
            " | es | sie | dieser | dieses) {mid} ({no} | {not}) | {denied})"
        ),
        "{the} .. ({holds} | {names} | {gives}) {adverb}* {in_text} {adverb}* ({no} | {not})",
        "{the} .. (nennt | nennen | erwähnt | erwähnen | gibt | geben | legt | legen) .. {not} {soft}",
        "(da | weil) {the_text} {mid} {zero}",
        # The model does not know.
        "ich (habe ... (, | und) {opener} ich?)? {reader_not}",
        # "We" may also be the authors of the text: then it is a fact.
        "wir (wissen {mid} nicht . | {can} {the} frage .. {not} {adverb}* {inf})",
        "wir ({can} | haben | finden | sehen | wissen) {mid} {in_text} ({mid} {can_not} | .. {not} {adverb}* {inf})",
        "man ({can} {mid} ({in_text} | {about}) {mid} {can_not} | (erfährt | findet) {mid} ({not} | nichts | {zero}))",
        "mir {lie} {mid} {zero}",
        # What was asked for is not stated.
        "{info_lacks}",
        "{the_asked} .. (({be} | wäre) {mid} {not} (ausreichend | genug | möglich) | {suffices} {mid} {not})",
        "({lead} | es) (ist | wäre) {mid} {not} möglich (. | : | {in_text} | ,? .. zu {inf})",
        "({lead} | es) (ist | bleibt) {mid} ({not} bekannt | {open})",
        "{whether} ... , (bleibt | ist) {mid} {open}",
        (
            "{the_text} (brechen | bricht | enden | endet | reichen | reicht | hören | hört) {adverb}* (vor | bevor"
            " | nur bis)"
        ),
        "{the}* {given}* {excerpts} {given}* {describes} {adverb}* (nur | lediglich | ausschließlich)",
        "{meta} ... , (aber | jedoch)? nicht (aber | jedoch)? ({the} | {whether})",
        "(bräuchte | benötige | benötigte | brauche) (ich | man | wir) {the}* ({given} | mehr)",
        "um {the_asked} zu beantworten , {needs}",
        "({zero} | keine ahnung) ({end} | {prep} | {about} | {told} | {possible} | möglich)",
        "({unsaid} | {not} {in_text}? ({told} | {treated} | {possible} | bekannt)) ({end} | {in_text})",
        "(nirgends | nirgendwo | in {no} {the_text}) {in_text}? ({be} | findet | steht)",
        "weder ({in_text} | ... ({be} | {was}) ... {told})",
        (
            "{meta} ... (. | , | und | ,? {but}) {lead}? ((er | sie | es)? {says_not} | {topic} {says_not} | {no}"
            " (davon | {the}) ({holds} | {names}))"
        ),
        (
            "(unzureichend | unzureichende | ungenügende | fehlende | zu wenig | zu wenige) ({information} | daten)"
            " ({end} | {in_text})"
        ),
    ),
    answers=(
        "... , (-{telling})* {but} (-{telling})* (. | :)",
        "... , {but} (wir können | (er | sie | es) lässt sich) (-{negated})* .",
        "(... {negated} ... .?)? (-{negated})* {but} (-{negated})* {worked}",
    ),
    aside="""text* passag* kontext* abschnitt* auszug* auszüge* dokument* unterlage* quelle* material* inhalt* datei*
        artikel* bericht* buch* kapitel* protokoll* autor* seite* tabelle* frage* antwort* information* angabe* detail*
        hinweis* erwähn* nenn* beschreib* beschränk* behandel* bezieh* enthält enthalten* sagt sagen steht stehen gibt
        geben liefer* besprich* konzentrier* zeigt zeigen erklär* geht lässt finde* spricht scheint nicht nichts kein*
        nie niemals weder ohne unklar unbekannt offen fehl* jedoch allerdings obwohl während ob wer wen wem wessen
        welche* wie warum wann wo wenn bitte könnte* würde* dürfte*""",
    listing="und oder sowie etwa beispielsweise z zum für als",
    only="nur lediglich bloß",
    no="nein | nö | nicht wirklich",
    asks=(
        (
            ", {adverb}* (ob | wer | wen | wem | wessen | wann | wo | wohin | woher | wie | warum | weshalb | wieso"
            " | welch)"
        ),
        "({unclear} | genug | {not} {adverb}* ({inf} | sicher) | weiß | wissen | unzureichend)",
    ),
    speech="sagte sagten antwortete antworteten erwiderte entgegnete erklärte gestand meinte beteuerte",
)
