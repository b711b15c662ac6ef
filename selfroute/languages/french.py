"""How models decline in French."""

from __future__ import annotations

from selfroute.languages.language import Language

WORDS = {
    # What the answer is read from: as the prompt gave it, and as a work that says some things and not others.
    "passages": """texte textes passage passages extrait extraits contexte contextes document documents fragment
        fragments paragraphe paragraphes contenu éléments information informations données matériel pages section
        sections parties chapitre chapitres page""",
    "work": """source sources rapport article articles auteur auteurs étude manuel notice roman livre récit contrat
        statuts procès verbal entretien compte rendu accord tableau loi règlement narrateur guide brochure
        biographie""",
    "asked": "question questions réponse information informations donnée données précision précisions détail point",
    "information": """information* info infos réponse réponses détail* précision* indication* renseignement*
        mention* référence* explication*""",
    "findings": "donnée* élément* trace* preuve* indice*",
    "given": """fourni* disponible* donné* présenté* transmis* communiqué* reproduit* mis_à_disposition proposé*
        cité* ci_dessus dont_je_dispose que_vous_m_avez_communiqués que_vous_avez_fournis recherché* posé* suivant*
        précédent* exact* précis* complémentaire* supplémentaire* plus seul* uniquement ici en_question trois deux
        quatre cinq tous toutes 1 2 3 4 5 6 7 8 9""",
    "the": """le la les l un une des d de du au aux ce cet cette ces mon ma mes votre vos notre nos leur leurs son
        sa ses""",
    "article": "cela ceci ça le la les l un une ce cet cette ces votre vos leur leurs son sa ses",
    "prep": """d_après selon sur dans à au aux de du des d en_me_basant en_se_basant en_me_fondant sur_la_base
        à_partir au_vu à_la_lecture compte_tenu après_examen après_lecture après_analyse conformément avec parmi
        faute en_l_état en_l_absence en_fonction au_regard uniquement sur_base d_apres
        pour_autant_que_je_puisse_en_juger à_l_examen sans""",
    "about": "concernant quant pour sur à_propos au_sujet en_ce_qui_concerne s_agissant de du",
    "who": "qui que qu quand où comment combien pourquoi quel quelle quels quelles si ce_que ce_qui lequel",
    "which": "qui que qu dont où laquelle lequel lesquelles lesquels",
    # Verbs.
    "ne": "ne n",
    "not": "pas aucun aucune jamais rien nullement guère ni nulle mot à_aucun_moment nulle_part",
    "comma": ",",
    "clitic": "y en le la les l nous vous me m lui leur se s",
    "be": "est sont semble semblent a ont",
    "can": "peux peut puis peuvent pouvons pourrais saurais saurait pourrait permet permettent",
    "adverb": """malheureusement toutefois cependant donc explicitement directement précisément clairement pas
        également en_effet expressément spécifiquement suffisamment vraiment ici là totalement elle lui elles eux
        à_aucun_moment bien par_conséquent nulle_part en_revanche absolument assez""",
    "names": """mentionne* précise* indique* spécifie* évoque* aborde* détaille* dit disent renseigne* nomme*
        révèle* cite citent explique* informe* traite traitent stipule* énonce* relate* consigne*""",
    "holds": """contien* compren* comporte* inclu* fourni* donne donnent offre offrent apporte* livre livrent
        permet* parle parlent répond répondent fait font figure* dispose* décri* propose* présente* suffi* couvre*
        concerne* apprend apprennent montre* rapporte* aide*""",
    "describes": """décri* porte portent traite* évoque* relate* raconte* parle* concerne* contien* mentionne*
        présente* abord* cite* explique* expose* apprennent apprend sont est""",
    "told": """mentionn* précisé* indiqu* spécifié* évoqu* abordé* détaillé* donné* révélé* nommé* cité* dit
        explicité* communiqué* traité* renseigné* énoncé* stipulé* fait_mention rapporté* relaté*""",
    "given_out": "fourni* disponible* présent* inclus* contenu* trouvé* donné* accessible*",
    "known": """connu* déterminé* identifié* trouvé* possible établi* tranché* décrit* expliqué* clair claire
        répondu* déduit*""",
    "figure": "figure figurent apparaît apparaissent trouve trouvent ressort ressortent",
    "inf": """répondre déterminer dire savoir conclure préciser établir trancher déduire indiquer affirmer confirmer
        renseigner prononcer connaître fournir donner apporter""",
    "keeps": "garde gardent",
    "missing": "manquant*",
    "lacking": "insuffisant* absent* muet* inconnu* manque* impossible introuvable* indisponible*",
    # Fillers.
    "hedge": """malheureusement désolé désolée navré navrée pardon hélas je_suis_désolé je_suis_désolée je_regrette
        je_m_excuse mes_excuses toutes_mes_excuses toutefois cependant mais en_revanche or donc ainsi par_conséquent
        certes je_suis_au_regret excusez_moi je_constate_qu je_constate_que veuillez_m_excuser""",
    # How a sentence goes on that is no decline: the topic of a decline comes before "ne".
    "stops": """, ne n est sont était étaient fut furent ont avait avaient eut sera seront peut peuvent doit doivent
        fait font dit disent indique indiquent montre montrent va vont vient vit prend prennent compte repose
        reposent permet permettent représente représentent propose proposent utilise utilisent raconte porte s se
        comprend contient contiennent reste devient devint commence donne donnent quitte mentionne précise décrit
        décrivent produit attribue épouse passait passe prévoit sert servait suit sont_été coûte reçoit reçut mourut
        meurt naît es fue el los las del y con por para en_el no era son ha fueron este esta un_ que qui qu dont où""",
    "telling": """pas aucun aucune rien ne n ni mention* précis* indiqu* dit texte contexte extraits passages je
        peux seulement uniquement évoqu* répond* parle*""",
}

PARTS = {
    # Its names: "the text", a work, what was asked for; and where it stands.
    "head": "({passages} | {work} | {given} | {the} | ,)*",
    "the_text": "({the} | {given})* {passages} {head}",
    "the_work": "({the} | {given})* {work} {head}",
    "the_asked": "({the} | {given})* {asked}",
    "in_text": "({prep} | {the})* ({passages} | {work}) {head}",
    "lead": "{prep} ({prep} | {the} | {given})* ({passages} | {work}) {head} ((que | et | de | d | du | des)"
    " (-{comma})*)? ,? | comme (-{comma})* , | {about} (-{comma})* ,",
    "opener": "({hedge} (, | que)?)*",
    "some": "(({not} | {adverb} | {the} | {given} | suffisamment | assez | autre | autres)* {information})",
    # "ne ... pas" around the verb.
    "names_not": "{ne} {clitic}* {names} {adverb}* {not}",
    "holds_not": "{ne} {clitic}* {holds} {adverb}* ({not} | {the} {asked})",
    "told_not": "{ne} {clitic}* ((est | sont) {adverb}* {not} {adverb}* {told} | y {figure} {adverb}* {not} |"
    " {figure} {adverb}* {not} {given}* {in_text}"
    " | (est | sont) {told} (nulle | à aucun) | (est | sont) {adverb}* {not} {adverb}* {known} {in_text}"
    " | (a | ont) {not} (été)? {told} {in_text}) | {ne} (est | sont) {adverb}* {not} {adverb}* ({given_out} dans"
    " {the}* {given}* {passages})",
    # The text is silent; the reader does not know.
    "can_not": "{ne} {clitic}* {can} {adverb}* pas? {adverb}* {clitic}* (de | d)? {clitic}* {inf}",
    "silent": "{names_not} | {holds_not} | {can_not} | {keeps} le silence | (est | sont | reste | restent)"
    " {adverb}* {lacking}"
    " | {ne} (est | sont) d aucun (secours | aide)",
    "reader_not": "{can_not} | {ne} {clitic}* (sais | savons) {adverb}* (pas | rien) ({end} | {who} | {adverb}) |"
    " {ne} {clitic}* (trouve | dispose | vois) {adverb}* {not}"
    " | {ne} (ai | avons) {adverb}* ({not} (accès | trouvé"
    " | pu {clitic}* (trouver | {inf}) | {adverb}* {some}) | trouvé {not})"
    " | (suis | sommes) (incapable | incapables) (de | d) {clitic}* {inf}"
    " | {ne} (suis | sommes) {adverb}* pas (en mesure | capable | certain | sûr)",
    "none_tells": "(aucun | aucune) {the}* {passages} {head} {ne}",
    "reader": "je | nous",
    "aside": ", (-{comma})* ,",
    "end": ". | , | :",
    # What was asked for, and that it is not told.
    "topic_not": "{article} .. ({which} ... | , (elle | lui | elles | eux) ,)? {told_not}",
    "label": "(la | ma | notre | votre)* (réponse | question | verdict | résultat | conclusion) (finale | courte)?",
}

FRENCH = Language(
    name="French",
    words=WORDS,
    parts=PARTS,
    start="{opener} {lead}* {opener}",
    labels=(
        "{label} {adverb}* (: | .)",
        "{label} (est | reste | semble) {adverb}* :?",
        "je dois {adverb}* répondre :?",
    ),
    explains=(
        ", | : | .",
        "car | parce | puisque | faute | {article} ({given} | {passages} | {work} | {asked})",
        "{hedge} | {prep} ({the} | {given})* ({passages} | {work})",
        "(je | j | il) ({ne} | ai | est | manque) | aucun | aucune | rien",
    ),
    declines=(
        # The text does not tell.
        "(puisque | comme | car)? {the_text} {aside}? {silent}",
        (
            "{the_work} {aside}? ({names_not} | {holds_not} ({some} | {the}? {findings} (sur | concernant))"
            " | {ne} (a | ont) {adverb}* {not} {told} | {keeps} le silence)"
        ),
        (
            "({article} .. ({which} ...)? | {about} (-{comma})*) , ({the_text} | {the_work} | ils | elles) {aside}?"
            " ({names_not} | {holds_not} | {keeps} le silence)"
        ),
        "({article} .. ({which} ...)? ,)? {none_tells}",
        "aucun (d (eux | entre eux))? {ne} {clitic}* {names}",
        "({lead} rien | rien {in_text}) {ne}",
        "{who} (-{comma})* ({told_not} | , {the_text} {silent})",
        "(bien que | si | même si | quoique) ({the_text} | {the_work}) ... , (il | ils | elle | elles) {silent}",
        # There is no information.
        (
            "il {ne} (y {be} | existe) {adverb}* {not} {adverb}* ({the} | {given})* ({some} | {findings} (pour |"
            " permettant | concernant | suffisant) | ({findings} {given}*)? (dans | sur | à) {in_text})"
        ),
        (
            "il ({ne} {clitic}* est {adverb}* pas possible | {clitic}* est {adverb}* (impossible | difficile))"
            " (, {in_text} | (de | d) {clitic}* {inf})"
        ),
        "il (manque .. {information} | {ne} est {adverb}* {not} {adverb}* ({told} | question .. {in_text}))",
        (
            "{not} {the}? {information} (. | , | : | {about} | {in_text} | {ne} | {given} | sur | {told} | {known} |"
            " {given_out})"
        ),
        "{not} .. {ne} (est | sont | a été | ont été) {told}",
        "{not} {the}? ({information} | {findings}) .. {ne} (est | sont) {given_out}",
        "{not} {the}? {findings} .. {ne} (permet | permettent)",
        "{some} (non ({told} | {given_out}) | {missing} | {lacking})",
        "((non | pas) {told} | question sans réponse | inconnu | inconnue | aucune idée) ({end} | {in_text})",
        "((c | il) est)? (impossible | incapable) (à | de | d) {clitic}* ({inf})",
        # The reader does not know.
        "{reader} {reader_not}",
        (
            "on ({can_not} | {ne} sait {adverb}* pas | {ne} {clitic}* (trouve | apprend) {adverb}* {not} | ignore |"
            " {ne} saurait {inf})"
        ),
        "vous {ne} trouverez {not} | (je l | j) ignore",
        # What was asked for is not told.
        "({topic_not} | {lead} {article} .. {ne} (est | sont) {adverb}* {not} {known})",
        (
            "{the_asked} ({head} | à | {asked})* ({can_not} | {ne} peut {adverb}* pas? être {known} | {ne} (est |"
            " sont) {adverb}* {not} ({in_text} | {given_out}) | (est | sont | reste) {adverb}* {lacking} | (est |"
            " reste) sans réponse | {ne} {figure} {adverb}* {not})"
        ),
        "{article} .. ({ne} peut {adverb}* pas? être {known} {in_text} | est {adverb}* {lacking} {in_text})",
        # The text tells of something else.
        "{article} .. est {adverb}* {told} ... , mais ({topic_not} | on {ne})",
        "pour (y répondre | répondre ..) , il (faudrait | manque)",
        (
            "({the_text} | {the_work}) {clitic}? {describes} ... (. | , | ,? mais) {opener} {lead}? (({the_text} | ils"
            " | elles | il | elle)? {silent}"
            " | {topic_not} | aucun | rien | je {reader_not} | on {ne})"
        ),
    ),
    answers=("... , mais (-{telling})* (. | :)",),
)
