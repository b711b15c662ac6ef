"""The rules that recognise a decline in French, tested only on examples that we wrote ourselves."""

from __future__ import annotations

from selfroute.languages.language import Language

WORDS = {
    # Names of the source: the passages ("context"), and works ("report"), whose silence may be an answer.
    "passages": """papier papiers texte textes passage passages extrait extraits contexte contextes document
        documents fragment fragments paragraphe paragraphes contenu éléments pages section sections parties chapitre
        chapitres page segment segments partie morceau morceaux bloc blocs chunk chunks snippet snippets fichier
        fichiers documentation citation citations corpus état_financier états_financiers ressource ressources""",
    "data": "données informations information",
    "work": """source sources rapport article articles auteur auteurs étude manuel notice roman livre récit contrat
        statuts procès verbal entretien compte rendu accord tableau loi règlement narrateur guide brochure
        biographie papier papiers papers paper publication résumé histoire nouvelle narration scène lettre clause
        clauses disposition dispositions fiche transcription annexe annexes note notes registre comptes formulaire
        déclaration présentation chercheurs éditeurs rédacteurs narratrice contrats bilan tableaux dialogue
        conversation œuvre ouvrage rapports romans récits études manuels guides auteure autrice matériel matériaux""",
    "asked": "question questions réponse information informations donnée données précision précisions détail point",
    "information": """information* info infos réponse réponses détail* précision* indication* renseignement*
        mention* référence* explication* citation* discussion* allusion* clarification* éclaircissement* évocation*""",
    "findings": """donnée* élément* chiffre* projection* prévision* comparaison* description* déclaration*
        estimation* statistique* valeur* montant* mot terme analyse* conclusion* ventilation* évaluation*
        commentaire* affirmation* connaissance*""",
    "given": """fourni* disponible* donné* présenté* transmis* communiqué* reproduit* mis_à_disposition proposé*
        cité* ci_dessus dont_je_dispose que_vous_m_avez_communiqués que_vous_avez_fournis recherché* posé* suivant*
        précédent* exact* précis* complémentaire* supplémentaire* plus seul* uniquement ici en_question trois deux
        quatre cinq tous toutes récupéré* extrait_de joint* partagé* pertinent* spécifique* financier* annuel*
        trimestriel* complet* entier* inclus* analysé* consulté* mentionné* ci_joint ci_joints suffisant* détaillé*
        explicite* direct* clair* concret* particulier* concrè* n° numéro""",
    "number": "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15",
    "the": """le la les l un une des d de du au aux ce cet cette ces mon ma mes votre vos notre nos leur leurs son
        sa ses aucun aucune chaque autre autres quelconque quelque""",
    "article": "cela ceci ça le la les l un une ce cet cette ces votre vos leur leurs son sa ses",
    "prep": """d_après selon sur dans à au aux de du des d en_me_basant en_se_basant en_me_fondant sur_la_base
        à_partir au_vu à_la_lecture compte_tenu après_examen après_lecture après_analyse conformément avec parmi
        faute en_l_état en_l_absence en_fonction au_regard uniquement sur_base d_apres
        pour_autant_que_je_puisse_en_juger à_l_examen sans après_avoir basé basée sur_base_de en après soigneusement
        attentivement examiné lu analysé consulté étudié examen lecture analyse revue étude vérification recherche
        avoir seulement suite étant_donné base à_travers malgré dans_l selon_le pour contenu attentif attentive""",
    "read": """examiné lu analysé parcouru consulté relu étudié cherché recherché vérifié attentivement
        soigneusement bien""",
    "about": "concernant quant pour sur à_propos au_sujet en_ce_qui_concerne s_agissant de du",
    "of": "de d du des sur concernant en dans",
    "that": "vous tu nous j",
    "who": "qui que qu quand où comment combien pourquoi quel quelle quels quelles si ce_que ce_qui lequel",
    "asked_by": "si s qui quand où comment pourquoi combien quel quelle quels quelles ce_que ce_qui lequel laquelle",
    "which": "qui que qu dont où laquelle lequel lesquelles lesquels",
    # Verbs.
    "ne": "ne n",
    "not": "pas aucun aucune jamais rien nullement guère ni nulle mot à_aucun_moment nulle_part",
    "comma": ",",
    "clitic": "y en le la les l nous vous me m lui leur se s",
    "be": "est sont semble semblent a ont",
    "can": """peux peut puis peuvent pouvons pourrais saurais saurait pourrait permet permettent parviens réussis
        arrive parvenons""",
    "adverb": """malheureusement toutefois cependant donc explicitement directement précisément clairement pas
        également en_effet expressément spécifiquement suffisamment vraiment ici là totalement elle lui elles eux
        à_aucun_moment bien par_conséquent nulle_part en_revanche absolument assez réellement nécessairement
        définitivement actuellement même encore simplement particulièrement non_plus en_détail de_façon_explicite
        de_manière_explicite de_façon_directe de_manière_directe de_façon_précise de_manière_précise
        de_manière_spécifique concrètement aussi par_ailleurs en_particulier exactement plus""",
    "soft": """explicitement expressément spécifiquement directement clairement précisément de_façon_explicite
        de_manière_explicite""",
    "names": """désigne* mentionne* précise* indique* spécifie* évoque* aborde* détaille* dit disent renseigne*
        nomme* révèle* cite citent explique* informe* traite traitent stipule* énonce* relate* consigne* discute*
        divulgue* ventile* compare* examine* analyse* explore* développe* approfondit approfondissent fournissent
        clarifie* quantifie* définit définissent identifie* énumère* liste* commente* résume* publie* explicite*
        suggère* chiffre chiffrent confirme* affirme* déclare* expose* fait_mention font_mention fait_référence
        font_référence fait_état fait_allusion raconte* signale* souligne* référence* font_état font_allusion""",
    "holds": """renferm* compren* comporte* inclu* fourni* offre offrent apporte* permet* parle parlent fait font
        figure* dispose* décri* propose* présente* suffi* couvre* concerne* apprend apprennent montre* rapporte*
        aide* affiche* reflète* possède* laisse* met mettent tient soutien* élabore* livre* cont* donn* répond*
        entre entrent traite*""",
    "describes": """signal* provien* vien* donne* rapport* indiqu* précis* annonc* reprodui* décri* porte portent
        traite* évoque* relate* raconte* parle* concerne* contien* mentionne* présente* abord* cite* explique*
        expose* apprennent apprend sont est""",
    "told": """mentionn* indiqu* évoqu* donné* cité* dit explicité* traité* renseigné* énoncé* stipulé* fait_mention
        rapporté* relaté* précis* spécifi* abord* révél* nomm* divulgué* quantifié* chiffré* détaill* clarifié*
        défini* énuméré* listé* décomposé* ventilé*""",
    "treats": "trait* parle* concern* port* couvr* décri* abord*",
    "enough": "suffisant suffisante suffisants suffisantes",
    "permits": "suffit suffisent permet permettent",
    "treated": """comparé* analysé* exploré* examiné* présenté* signalé* développé* documenté* communiqué* étudié*
        discuté* illustré* montré* défini* calculé* décrit* utilisé* expliqué* proposé* fait*""",
    "given_out": """fourni* disponible* présent* inclus* contenu* trouvé* donné* accessible* indiqué* repérable*
        explicité*""",
    "known": """connu* déterminé* identifié* trouvé* possible établi* tranché* décrit* expliqué* clair claire
        répondu* déduit* calculé* vérifié* obtenu* localisé* confirmé* comparé* extrait*""",
    "figure": "figure figurent apparaît apparaissent trouve trouvent ressort ressortent",
    "inf": """répondre déterminer dire savoir conclure préciser établir trancher déduire indiquer affirmer confirmer
        renseigner prononcer connaître fournir donner apporter vérifier calculer identifier évaluer comparer
        localiser trouver spécifier détailler décrire expliquer clarifier obtenir estimer extraire aider inférer
        quantifier""",
    "mention": "mention référence état allusion question",
    "sees": "trouve trouvons dispose disposons vois voyons",
    "missing": "manquant*",
    "lacking": "insuffisant* absent* muet* inconnu* manque* impossible introuvable* indisponible*",
    # Fillers that may come before the sentence.
    "hedge": """hélas mes_excuses toutes_mes_excuses toutefois cependant mais en_revanche donc ainsi par_conséquent
        certes je_suis_au_regret excusez_moi je_constate_qu je_constate_que veuillez_m_excuser
        je_vous_prie_de_m_excuser je_vous_présente_mes_excuses pardonnez_moi bien en_fait en_réalité néanmoins
        à_ma_connaissance pourtant il_semble_que il_semble_qu il_semblerait_que il_semblerait_qu
        je_présente_mes_excuses pour_autant_que_je_sache autant_que_je_sache pour_autant_que_je_puisse_en_juger""",
    "apology": """désolé désolée je_suis_désolé je_suis_désolée je_m_excuse navré navrée pardon je_regrette
        malheureusement""",
    # Words that no topic contains, mostly finite verbs: in a decline the topic comes before "ne".
    "stops": """, ne n est sont était étaient fut furent ont avait avaient eut sera seront peut peuvent doit doivent
        fait font dit disent indique indiquent montre montrent va vont vient vit prend prennent compte repose
        reposent permet permettent représente représentent propose proposent utilisent raconte porte s se comprend
        contient contiennent reste devient devint commence donne donnent quitte mentionne précise décrit décrivent
        produit attribue épouse passe prévoit sert servait suit sont_été coûte reçoit reçut mourut meurt naît es fue
        el los las del y con por para en_el no era ha fueron este esta un_ que qui qu dont où devrait devraient
        pourrait pourraient possède aurait auraient eurent paya enregistra réduit montra révèle révèlent soutiennent
        affirme affirment suggère explique exige implique dépend dépendent vise visent obtient atteint dépasse
        dépassent existe existent resta appelait répondit ralentissent espère connaît sait savait voulait veut""",
    "telling": """pas aucun aucune rien ne n ni mention* précis* indiqu* dit texte contexte extraits passages je
        peux seulement uniquement évoqu* répond* parle* semble* port* traite* concerne*""",
    "negated": "ne n pas aucun aucune jamais rien ni non",
    # What no name begins with, and what does not continue one.
    "no_name": """, oui non no she he it they ne n il elle ils elles je nous on est sont a ont en au le la les l
        yes* 0* 1* 2* 3* 4* 5* 6* 7* 8* 9* i the an as at by based according from given in to we you there this that
        these those while since after before of for with when where who what which how why if although neither""",
    "no_more": ", ne n est sont était a ont avait fut qui que is are was were had has",
    "but": "mais cependant toutefois néanmoins pourtant en_revanche",
    "worked": "calcul* additionn* soustra* somm* divis* multipli*",
}

PARTS = {
    # Phrases: the text, a work, what was asked for, and where something is written.
    "head": "({passages} | {work} | {given} | {number} | {the} | ,)* (({of} | que {that}) ..)?",
    "the_text": "({the} | {given})* ({passages} | {data} {given}) {head}",
    "the_work": "({the} | {given})* {work} {head}",
    "the_asked": "({the} | {given})* {asked}",
    "in_text": "({prep} | {the}) ({prep} | {the} | {given})* ({passages} | {work} | {data} {given}) {head}",
    "in_it": "(-{comma})* {prep} ({prep} | {the} | {given})* ({passages} | {work} | {data} {given}) {head}",
    "lead": "{prep} ({prep} | {the} | {given})* ({passages} | {work} | {asked}) {head} ((que | et | de | d | du | des)"
    " (-{comma})*)? ,? | (comme | bien que | même si | quoique) (-{comma})* , | {about} (-{comma})* ,",
    "opener": "(({hedge} | {apology}) (, | que)? | non (, | .) | {meta} ... (. | , | ,? {but} ,?) | (j | nous) (ai"
    " | avons) {read} ... (, | et | mais))*",
    "aside": ", (-{comma})* ,",
    # What the text does tell, before what it does not.
    "meta": "({the_text} | {the_work}) ({clitic}? {describes} | -{no_more}) | {article} .. (est | sont) {adverb}*"
    " {told}",
    "end": ". | , | :",
    # "Any information".
    "lots": "{not} | {adverb} | {the} | {given} | suffisamment | assez | autre | autres",
    "some": "({lots})* {information}",
    "any_info": "({lots})* ({information} | {findings})",
    "there_is": "il {ne} (y {be} | existe) {adverb}* {not}",
    # "ne ... pas" around the verb: the text does not say.
    "names_not": "{ne} {clitic}* {names} {adverb}* (d | de | a)? {not}"
    " | {ne} (semble | semblent) {adverb}* pas {adverb}* ({names} | {holds})"
    " | {ne} (porte | portent | se rapporte | se rapportent) {adverb}* pas {adverb}* sur",
    "holds_not": "{ne} {clitic}* {holds} {adverb}* ({not} | {the} {asked})",
    "can_not": "{ne} {clitic}* {can} {adverb}* pas? {adverb}* (de | d | à)? {clitic}* {inf}",
    "mute": "(garde | gardent) le silence | (est | sont | reste | restent) (muet | muette | muets"
    " | muettes) | (passe | passent) .. sous silence | (laisse | laissent) .. (ouverte | en suspens) | omet | omettent",
    "silent": "{names_not} | {holds_not} | {can_not} | {mute} | {ne} (est | sont) d aucun (secours | aide)"
    " | (est | sont | reste | restent) {adverb}* {lacking} | {ne} (a | ont) {adverb}* {not} {adverb}* {told}",
    # The model does not know.
    "reader_not": "{can_not} | {ne} {clitic}* (sais | savons) {adverb}* (pas | rien) ({end} | {who} | {adverb})"
    " | {ne} {clitic}* {sees} {adverb}* {not}"
    " | {ne} (ai | avons) {adverb}* (trouvé {in_text}? {not} | {some} | {not} (assez | suffisamment) (de | d)"
    " | {not} (accès | trouvé | pu {clitic}* (trouver | {inf})))"
    " | (suis | sommes) (dans l impossibilité | incapable | incapables) (de | d) {clitic}* {inf}"
    " | {ne} (suis | sommes) {adverb}* pas (en mesure | capable | certain | sûr)",
    # What was asked for is not stated.
    "told_not": "{ne} {clitic}* ((est | sont) {adverb}* {not} {adverb}* ({told} | ({treated} | {known} | {given_out})"
    " {adverb}* {in_text}) | (est | sont) {told} (nulle | à aucun)"
    " | (a | ont) {adverb}* {not} {adverb}* été {adverb}* ({told} | {given_out} {end} | ({treated} | {given_out})"
    " {in_text}) | (a | ont) {not} {told} {in_text}"
    " | (semble | semblent) {adverb}* {not} {adverb}* (être | avoir été) {adverb}* ({told} | {treated})"
    " | y? {figure} {adverb}* {not} ({end} | {given}* {in_text}) | en? (fait | font) pas partie"
    " | (est | sont) {not} (inclus | incluse | incluses | comprise | comprises) {end})",
    "topic_not": "{article} .. ({which} -{ne} ... | , (elle | lui | elles | eux) ,)? {told_not}",
    "name": "-{no_name} (-{no_more})?",
    "to_question": "(à {the}* {given}* question)?",
    "label": "(la | ma | notre | votre)* (réponse | question | verdict | résultat | conclusion) (finale | courte)?"
    " {to_question}",
}

FRENCH = Language(
    name="French",
    words=WORDS,
    parts=PARTS,
    start="{opener} {lead}* {opener}",
    labels=(
        "{label} {adverb}* (: | .) | voici {label} :",
        "{label} (est | reste | semble) ({adverb} | la suivante)* :?",
        "je dois {adverb}* répondre :?",
    ),
    explains=(
        "car (le | la | les | l | il | elle | aucun | aucune | ce | cette | rien | on | je | n | ne | ces)",
        "parce | puisque | faute | {article} ({given} | {passages} | {work} | {asked})",
        "{hedge} | {prep} ({the} | {given})* ({passages} | {work})",
        "(je | j | il) ({ne} | ai | est | manque) | aucun | aucune | rien",
    ),
    declines=(
        # The text does not say.
        "(puisque | comme | car)? {the_text} {aside}? {silent}",
        ("{the_work} {aside}? ({names_not} | {holds_not} {any_info} | {ne} (a | ont) {adverb}* {not} {told} | {mute})"),
        (
            "({article} .. ({which} ...)? | {about} (-{comma})*) , ({the_text} | {the_work} | ils | elles) {aside}?"
            " ({names_not} | {holds_not} | {mute})"
        ),
        (
            "({article} .. ({which} ...)? ,)? (aucun | aucune) {the}* ({passages} {head} {ne} | {work} {head} {ne}"
            " {clitic}* ({names} | {holds} {in_text}?))"
        ),
        "aucun (d (eux | entre eux))? {ne} {clitic}* {names}",
        "nulle part {in_text}? ({the_text} | {the_work}) {ne} | (il | ils | elle | elles) n en {names} (pas | rien)",
        "-{no_name} (-{no_more})? : (non | pas) {told} ({end} | {in_text})",
        "{article} .. (sort | sortent | dépasse | dépassent) (du | le) cadre {in_text}",
        "{the_text} (s | se)? (arrête | arrêtent | interrompt | interrompent | termine | terminent | finissent) avant",
        "{the_text} {ne} {treats} {adverb}* que | {meta} ... , mais (pas | non)",
        "il (me | nous)? faudrait .. ({passages} | {information} | {findings} | complet)",
        "ni ({the_text} | {the_work}) ni ({the_text} | {the_work}) {ne} {clitic}* ({names} | {holds})",
        "({lead} rien | rien {in_text}) {ne} | rien {ne} {names} {adverb}* ({in_text} | dans)",
        "{who} (-{comma})* ({told_not} | , {the_text} {silent})",
        "(bien que | si | même si | quoique) ({the_text} | {the_work}) ... , (il | ils | elle | elles) {silent}",
        # There is no information.
        "{there_is} {adverb}* ({some} | {any_info} (pour | permettant | concernant | suffisant))",
        "({there_is} | il {ne} est {not}) {in_it}",
        "{lead} {opener} {there_is} {any_info}",
        "il ({ne} semble {adverb}* pas y avoir {any_info} | manque .. {information})",
        (
            "il {ne} est {adverb}* ({not} | nulle part)? {adverb}* ({told} | (fait {adverb}*)? (({lots})* {mention}"
            " {adverb}* (nulle part | {not} | de | d | à | du | des | {in_text})))"
        ),
        (
            "il ({ne} {clitic}* est {adverb}* pas possible | {clitic}* est {adverb}* (impossible | difficile))"
            " (, {in_text} | (de | d) {clitic}* {inf})"
        ),
        (
            "{not} {the}? {information} (. | , | : | {about} | {in_text} | {ne} | {given} | sur | {told} | {known}"
            " | {given_out})"
        ),
        (
            "{not} -{ne} (-{ne})* {ne} ((est | sont) {adverb}* {told}"
            " | (est | sont | a été | ont été) {adverb}* ({told} | {treated} | {given_out}) {adverb}* {in_text}"
            " | {figure} {adverb}* {in_text})"
        ),
        "rien {ne} (est | a été) {adverb}* ({told} | {treated}) ({end} | {about} | {in_text})",
        "{not} {the}? ({information} | {findings}) .. {ne} ((est | sont) {adverb}* {given_out} | permet | permettent)",
        "{some} (non ({told} | {given_out}) | {missing} | {lacking})",
        "((non | pas) {told} | question sans réponse | inconnu | inconnue | aucune idée) ({end} | {in_text})",
        "((c | il) est)? (impossible | incapable) (à | de | d) {clitic}* ({inf})",
        # The model does not know.
        "je {reader_not} | je l ignore | j ignore",
        "nous {reader_not} ({end} | {in_it})",  # otherwise a fact: "nous" may be the authors of the text
        "on ({can_not} | ignore | {ne} (sait {adverb}* pas | saurait | {clitic}* (trouve | apprend) {adverb}* {not}))",
        "vous {ne} trouverez {not}",
        "pour (y répondre | répondre ..) , il (faudrait | manque)",
        # What was asked for is not stated.
        "{topic_not} | {apology} ,? (mais | que)? .. {told_not}",
        "{name} {ne} (est | sont) {adverb}* {not} {adverb}* ({told} | {treated}) {adverb}* {in_text}",
        "{lead} {article} .. {ne} (est | sont) {adverb}* {not} {known}",
        "{article} .. {ne} {clitic}* ({names} | {holds}) ({soft} {not} | {not} ({soft} | {in_it}))",
        "{article} .. {ne} (a | ont) ({soft} {not} | {not} {soft}) {told}",
        (
            "{the_asked} .. ({can_not} | {ne} peut {adverb}* pas? (être {known} | (recevoir | trouver) de réponse)"
            " | {ne} (est | sont) {adverb}* {not} {adverb}* ({in_text} | {given_out} | {enough}) | {ne} {permits} pas"
            " | (est | sont | reste) {adverb}* ({lacking} | sans réponse)"
            " | {ne} trouve pas de réponse | {ne} {figure} {adverb}* {not})"
        ),
        "{article} .. ({ne} peut {adverb}* pas? être {known} {in_text} | (est | reste)? {adverb}* {lacking} {in_text})",
        # The text is about something else.
        "{meta} ... (. | , | ,? {but}) {lead}? ((ils | elles | il | elle)? {silent} | aucun | rien | on {ne})",
    ),
    answers=(
        "... , mais (-{telling})* (. | :)",
        "(... {negated} ... .?)? {but} (-{negated})* {worked}",
    ),
    aside="""texte* passage* contexte* extrait* document* source* matériel* contenu* fichier* article* rapport* section*
        livre* chapitre* procès auteur* page* tableau* question* réponse* information* détail* précision* mention*
        évoque* décri* parle* parlent porte* concern* contien* indique* dit disent donne* fourni* traite* présent*
        compar* montre* cite* semble* ne n pas rien aucun* jamais ni sans inconnu* flou* manqu* cependant toutefois bien
        si que quel* qui quoi dont comment pourquoi quand où veuillez pourrai* serai*""",
    listing="et ou comme tel tels telle telles exemple notamment pour",
    only="seulement uniquement",
    no="non",
    asks=(
        "({not} | {told} | {names} | savoir | {information} | clair) {adverb}* (de | sur | à)? {asked_by}",
        (
            "(clair | claire | impossible | suffisant | suffisante | suffisamment | assez | répondre | déterminer"
            " | savoir)"
        ),
        "(sais | savons | ignore) (pas | rien)? ",
    ),
    speech="dit dirent répondit répondirent répliqua déclara avoua affirma admit",
)
