"""The words and expressions that the English rules are composed of."""

WORDS = {
    # Names of the source: the passages ("context"), and works ("report"), whose silence may be an answer.
    "passages": """text texts passage passages context contexts chunk chunks excerpt excerpts extract extracts document
        documents statement statements filing filings snippet snippets search_results knowledge_base source sources
        material materials content contents file files fragment fragments sections pages""",
    # Those that name nothing else: what they do not do is no fact of the world.
    "told_of": """mention* describ* introduc* list* referenc* refer* noted discussed covered named cited quoted reported
        given alluded touched outlined recorded explained specified stated""",
    "excerpts": """passages excerpt excerpts extract extracts snippet snippets chunk chunks fragments context contexts
        search_results knowledge_base sections pages""",
    "differs": """agree disagree contradict* conflict differ match lie need only just merely simply necessarily mean
        suggest indicate support have_to ,""",
    "work": """paper papers article articles report reports section note notes book story novel chapter chapters
        transcript author editors segment segments page table narrative manual guide minutes interview letter
        documentation wiki leaflet ticket email abstract summary record records log guidelines docs readme changelog
        code sheet sheets brochure handbook datasheet clause clauses listing notice memo post newsletter judgment
        judgement ruling faq faqs recipe""",
    # What these do not provide or cover is a fact, not a decline.
    "law": "law laws regulation contract agreement policy policies contracts regulations",
    # "According to" one of these begins a decline; according to a report or a chunk, an answer.
    "given_text": "provided given retrieved text texts passage passages context excerpt excerpts information",
    "asked": "information info detail details specifics answer answers question questions data",
    "given": """four five six provided given retrieved supplied available above following preceding financial annual
        quarterly entire whole full complete two three search specific exact relevant attached shared listed current
        book page text these form k q needed required requested necessary few""",
    "the": "the this these those that your any all my our her his their its a an such both each",
    "number": "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20",
    "about": "of in for about regarding on to from concerning with by between at within which who as you i we that",
    "whether": "who whom whose what when where why how whether which",
    # A relative clause: "the lady who was honored".
    "relative": "who whom whose that which",
    "in": "in from within by across throughout on with using of through among based_on",
    # Unmistakable names of what was retrieved, and how they are pointed at: "the provided documents".
    "source": """text texts passage passages context contexts chunk chunks excerpt excerpts extract extracts document
        documents snippet snippets search_results knowledge_base sections pages""",
    # Works that a denial in the middle of a sentence may be about.
    "read": """text texts passage passages context contexts chunk chunks excerpt excerpts extract extracts document
        documents snippet snippets filing filings paper papers article articles report reports book story novel chapter
        chapters transcript statement statements""",
    "handed": "provided given retrieved supplied available above attached",
    # What the model speaks of as its own: not "your information".
    "this": "the this these those that any such all requested required necessary relevant requisite needed",
    # Verbs.
    "be": "is are was were be been being am remain remains s m re",
    "aux": """is are was were be been being am remain remains do does did has have had can could will would may might
        should seem seems seemed appear appears appeared s m re ve d to able""",
    "now": "is are do does remain remains seem seems appear appears s re to be",
    "active": """do does did has have had can could will would may might should seem seems seemed appear appears
        appeared ve to able""",
    "does_not": "cannot don't doesn't didn't can't couldn't won't wouldn't hasn't haven't hadn't",
    "it": "it this that they these those",
    "is_not": "cannot isn't aren't wasn't weren't can't couldn't hasn't haven't hadn't won't",
    "not": """not never cannot unable isn't aren't wasn't weren't don't doesn't didn't can't couldn't won't wouldn't
        hasn't haven't hadn't""",
    # Present tense only: in the past tense, what somebody did not say is a fact.
    "do_not": "do_not does_not don't doesn't",
    # What only a text does, even if its name is not in these lists.
    "mention": "mention specify elaborate clarify quantify",
    "mention_law": """mention specify state say address describe discuss detail disclose indicate define clarify
        elaborate outline quantify""",
    "adverb": """explicitly directly specifically clearly actually necessarily currently precisely exactly really fully
        definitively conclusively readily explicit direct also even yet only mainly primarily just mostly simply
        outright anywhere here there further quite entirely particularly reliably carefully thoroughly well safely
        confidently honestly truly ever still""",
    "pointed": "specific explicit detailed precise exact concrete direct",
    "settled": "if who whom whose what when where why how whether which",
    "soft": "explicitly specifically directly precisely exactly outright explicit direct exact precise spelled",
    "say": """mention* specif* discuss* describ* stat* addres* detail* disclos* indicat* identif* elaborat* outlin*
        clarif* list* explain* name names explor* quantif* report* reveal* say says tell* touch* delve* refer* speak
        talk record* answer* convey* spell* settle* quote cite set_out make_clear makes_clear""",
    # What a text may do, but a policy or a law as well.
    "offer": "provid* offer* break breaks project* giv* present* cover* go goes",
    "tell": """seeing compar* contain* includ* suggest* show* have confirm* note* find* found determin* see locat* know
        verif* access* infer* extract* deriv* calculat* comment* conclude* assess* establish* discern* respond* help*
        allow* suppl* define* extend* get_to gets_to work_out works_out pin_down make_out pertain* propose* recommend*
        introduc* highlight* feature* support* about relevant enough sufficient document* examine* investigat* pinpoint*
        relate* appear allude* hint* enable* permit* rule state analyze* evaluat*""",
    "told": """mentioned specified stated discussed described disclosed indicated detailed revealed addressed answered
        answerable determined explained outlined compared quantified calculated inferred elaborated clarified explored
        confirmed established ascertained verified defined spelled spelled_out assessed credited""",
    # A bare "is not mentioned." declines; with the other participles it may be a fact: "was not confirmed."
    "mentioned": """mentioned specified stated indicated detailed outlined elaborated named spelled spelled_out
        explained described""",
    # Only in the present tense: "was not revealed" may be a fact.
    "written": "disclosed revealed identified recorded documented discussed addressed credited quoted",
    "knows": """find found determine know tell say see locate answer identify infer conclude verify establish work_out
        pin_down""",
    "given_out": "provided given available offered supplied",
    "found": """contained answered found located known present visible recorded documented said named included listed
        reported seen clear shown covered identified presented quoted set_out laid_out attributed dated reproduced
        broken touched gleaned recoverable derivable discernible inferable traceable assessed settled worked_out
        dealt_with deduced derived extracted discerned""",
    "possible": "clear certain sure",
    "fails": "fail fails failed neglect neglects omit omits decline declines",
    "naming": "naming giving specifying stating identifying explaining saying mentioning telling indicating disclosing",
    "repeated": "? :",  # after the question, repeated
    "breaks": "stop stops end ends break breaks cut cuts run runs",
    "leaves": "leave leaves",
    "blank": """open unanswered unsaid unstated unclear unspecified unresolved unnamed blank undefined undisclosed
        unmentioned unaddressed unexplained out_of vague undetermined""",
    "untold": "unnamed unstated unspecified unmentioned undisclosed unidentified unaddressed unlisted undocumented",
    "merely": "only just merely solely exclusively purely",
    "covers": """hint* cover* deal deals concern* discuss* describ* focus* talk talks speak speaks address* go goes
        extend* relate* pertain* refer* reach* touch* span* explain* tell tells go_up_to""",
    "more": "more additional further other",
    "full": """relevant corresponding full complete entire whole rest remainder remaining original other missing later
        earlier next""",
    "hard": "hard difficult tough impossible tricky not_possible",
    "wanting": "vague insufficient inadequate unclear silent irrelevant unrelated lack lacks omit omits",
    "open": "unclear unknown unspecified unanswerable",
    "lacking": """insufficient unclear impossible unspecified unavailable unanswerable lack* omit* fail fails failed
        missing absent silent unknown inadequate incomplete irrelevant unrelated""",
    "holds": "contain contains provide provides give gives make makes offer offers include includes has have",
    "describes": """discuss* describ* focus* cover* mention* deal deals about concern* explain* relate* drawn asks
        appear contain contains provide provides list lists note notes report reports state states say says give gives
        define defines name names go goes get gets introduce* refer* come comes outline* identif* record records quote*
        show shows stop stops end ends""",
    "information": """mention* information detail* reference* indication* discussion* info specifics explanation*
        statement*""",
    "news": """mention mentions information detail details reference references indication indications discussion
        discussions info specifics explanation explanations""",
    # What questions ask for.
    "attribute": """date dates year name names figure figures number numbers price prices amount amounts cost costs time
        reason reasons place location title percentage value values total age explanation author source duration size
        deadline address person answer answers quantity ending outcome length height width depth weight speed
        temperature score rate share population identity term terms conditions details capacity range""",
    "topic": "about on regarding concerning as_to of for relating_to related_to pertaining_to",
    "specific": "specific explicit direct clear further relevant sufficient additional detailed concrete precise exact",
    "knowledge": """idea knowledge way access mention* information detail* reference* indication* discussion* info
        answer* data evidence record* basis grounds description*""",
    "finds": "find found see saw got",
    # Fillers that may come before the sentence.
    "hedge": """unfortunately regrettably sadly sorry however actually but and so therefore thus alas well hmm overall
        afraid no nope ultimately currently for_now strictly_speaking to_be_clear in_short in_that_case then""",
    "greeting": """hello hi sure okay ok great_question good_question thank_you_for_your_question
        thanks_for_your_question thanks_for_asking honestly to_be_honest as_far_as_i_can_tell from_what_i_can_see
        let_me_check""",
    "reading": """the careful carefully thorough my of on to a review reviewing reviewed reading read analysis analyzing
        analysing examining examined examination searching searched checking checked looking looked through at
        information only solely what is""",
    # Words at which a topic ends, and words of sentences that answer after all.
    "stops": """which is are was were be been being am remain remains do does did has have had can could will would may
        might should seem seems appear appears say says said stated show shows suggest suggests argue argues indicates
        explains implies refers means represents reflects increased decreased declined rose fell grew resulted
        contributed involves requires focuses aims expects intends believes leads becomes became went took gave got told
        considers allows consists but cannot not never unable lacks provides contains describes discusses mentions
        include includes propose introduce that who whom whose""",
    # What may not stand first in a relative clause, or in a name.
    "denial": "not never cannot unable isn aren wasn weren don doesn didn can couldn won wouldn hasn haven hadn ,",
    "no_name": """is are was were be been being am do does did has have had can could will would may might should not
        never cannot isn aren wasn weren don doesn didn couldn wouldn hasn haven hadn s yes* no none neither nothing
        nowhere nobody there here i we it he she they you this that these those what who when where why how which
        whether if in on at by to from for with as after before during since while although because due based according
        and or but a an the all both each every some many most only also 0* 1* 2* 3* 4* 5* 6* 7* 8* 9* ,""",
    "no_more": """is are was were be been being am do does did has have had can could will would may might should not
        never cannot isn aren wasn weren don doesn didn couldn wouldn hasn haven hadn that who which to ,""",
    "pauses": ",",
    "pause": ", the they it he she i you",
    "but": "but however though although nevertheless nonetheless yet still",
    "worked_out": """calculat* comput* deriv* adding subtract* sum summing work worked works imply implied implies
        dividing multiplying""",
    "telling": """mention* discuss* describ* focus* refer* provid* infer* lack* not no never only rather instead t
        contain* suggest* indicat* cover* stat* say* appear* seem* does do about""",
    "silent": """t not no never nor cannot unable don doesn didn isn aren wasn can't couldn't unanswerable unclear
        unknown insufficient impossible lack* missing uncertain question answer answers determine* information ,""",
    # How an explanation begins that follows the refusal without a punctuation mark.
    "because": """the this these those that your because i we since given based due per according without there not none
        no neither nothing nowhere insufficient unfortunately sorry however it they although while please if note
        explanation passages question""",
    "cant": "cannot can't couldn't",
    "gives": """mention mentions give gives name names state states specify specifies identify identifies cite cites
        list lists show shows reveal reveals disclose discloses offer offers carry carries hold holds tell tells record
        records""",
    "spoke": "said replied answered says argues writes thinks claims adds believes insists recalls complains",
    "link": "from in with by on using for under within through",
}

PARTS = {
    "head": "({given} | {passages} | {work} | {number} | alone | itself | themselves | here)* ({about} .. | that? (i"
    " | we | you) {aux}* -{no_more} (with | to (me | us | you))?)?",
    # What was asked for, or a pronoun for it.
    "point": "({this}* {given}* {asked} {head} | {it} | {this}* {specific}* detail {head})",
    "at_hand": "(this | what) (i | we | you | here | is | s | has | have | ve | was | been | {given} | shown | see"
    " | there | in front)*",
    "the_text": "{the}* ({given} | {work})* {passages} {head}",
    "the_work": "{the}* {given}* {work} {head}",
    "the_excerpts": "{the}* ({given} | {the} {number})* ({excerpts} | {handed} {passages}) {head}",
    "some_text": "({the_text} | {the} -{no_more} (-{no_more})? {excerpts} {head})",
    "the_asked": "({the} | {given})* {asked} {head}",
    "never": "({aux} | {adverb})* {not} ({aux} | {adverb})*",
    "none_of": "((none | neither | nothing | nowhere | nobody | no one | not one | not a single one) (of | in | within"
    " | among | across | from) | neither | no | not a single | not one)",
    "none": "no | not any | not enough | insufficient | not a | not an | not sufficient | neither | any | enough",
    "lead": "(based | per | as per | from | after | upon | on | within | given | reviewing | looking | having | taking"
    " | considering | on the basis of | despite | (at least)? in {the} | strictly {in}) {reading}* {the}* ({given}"
    " | {number})* ({passages} | {work} | {asked}) {head} (and ..)? together? ,? | according to {the} {given_text}"
    " {given_text}* {head} ,? | (going (only | solely)? by | judging (by | from) | with (only | just)? | working (from"
    " | with) | using (only | just)? | relying (only | solely)? on | from (just | only)? | by) {the}* ({given}"
    " | {number})* {passages} {head} ,? | (based on | from | given | with | going by | judging (by | from)) {at_hand}"
    " {in_passages}? (alone | only)? ,? | as far as (-{pauses})* (go | goes | show | tell | say | see) ,?",
    "looked": "({aux} | {adverb})* {reading} ...",
    "polite": "(({hedge} | apologies | my apologies) ,? | (no | nope) (, | .) | let me (check | look | review | read)"
    " (at | through | in)? {the}* {given}* {passages} (. | :) | (as (per | requested | instructed) | following)"
    " (-{pauses})* , | as an ai (language model)? ,? | {greeting} (, | .)? | (i | we) ({aux} | {adverb})* (sorry"
    " | apologize | apologise | afraid | regret) ((to | for) ..)? ,? (but | that)? | (i | we) {looked} (, | and | but"
    " | .) | (i | we) (think | believe) that? | it {adverb}* (seems | appears | looks)"
    " (that | like) | (while | although | though) ... , | (if you (can | could | have | share | provide) | please | to"
    " (answer | say | tell | determine | know) | you (are | re) asking) ... (, (but | and)? | .) | without {the}*"
    " (more | {specific})* ({information} | {passages} | {work} | {asked}) .. , | (regarding | concerning | as for"
    " | as to | beyond | on {the}) ... ,)",
    "opener": "({polite} | {whether} ... {repeated} | {meta} ... {then})*",
    # What the text does tell, before what it does not: "The passages describe the dam, but".
    "meta": "{lead}? (({some_text} | {the_work} | {the} -{no_more} ({passages} | {work}) {head}) (-{no_more} | ({aux}"
    " | {adverb})* ({describes} | {covers})) | ({the_asked} | it | they) ({aux} | {adverb})* ({describes} | {covers})"
    " | (only? {topics} | {name} | he | she | they | it) {be} {adverb}* ({told_of} | there) | (we | i) {merely} | (we"
    " | i) ({aux} | {adverb})* (learn | know | see | find | told | tell) -{denial} | the (closest | nearest) .. (come"
    " | comes | get | gets) | what .. {describes} | there (is | s | are) (-{stops})* ({passages} | section | {news}))",
    "then": "(, {but}? | and | .)",
    "to_question": "((to | for) {the}* {given}* (question | query | questions))?",
    "boxed": "boxed : (text :)?",
    "in_text": "(-{pauses})* ({passages} | provided | retrieved | given | {information} | {specific} | (in | from"
    " | within) {the}* {given}* ({work} | {law}))",
    # Where something is not said: in what was retrieved.
    "in_passages": "({in} ({the} | of)* (({given} | {number})* {passages} | (-{pauses})? {source} | {handed}"
    " ({passages} | {work} | {asked}) | {asked} {handed}) | {in} {at_hand} (. | , | in))",
    "in_source": "({in_passages} | {in} {the}* ({given} | {number})* {work} | here (. | ,))",
    "of_it": "({topic} | to {the} | {in} | {whether} | that | which | as | i | we | you | to {knows})",
    "where": "{adverb}* ({about} (-{pauses})*)? {in_source}",
    "where_law": "({where} | {in} {the}* {given}* {law})",
    "inside": "(in | from | within | across) {the}* {given}* ({passages} | {work} | {asked})",
    "in_read": "{in} {the}* ({given} | {number})* ({read} | {asked} {handed})",
    "is_never": "({aux} ({aux} | {adverb})* (not | never | nowhere) | {is_not}) ({aux} | {adverb} | ({told} | {found}"
    " | {given_out}) (or | nor | and))*",
    "does_never": "({adverb}* {active} ({active} | {adverb})* (not | never | nowhere | unable) | {adverb}* ({does_not}"
    " | never | nowhere)) ({active} | {adverb})*",
    "says_not": "(, ... ,)? ({does_never} (, ... ,)? ({say} | {offer} | {tell} | .. {information}) | {is_never} (about"
    " | clear | relevant | enough | sufficient | specific | explicit | detailed | focused) | {says_none})",
    "says_none": "({adverb}* ({holds} ({none} | nothing) | (say | says) nothing ({about} | .)) | ({aux} | {adverb})*"
    " ({wanting} | {fails} to ({say} | {offer} | {tell})))",
    # What a sentence is about that does not begin with the text, perhaps with a relative clause.
    # That what was asked for lies elsewhere.
    "away": "((outside | beyond | not within | not in | not part of | absent from | missing from | left out of"
    " | omitted from) (the | scope | range | of | coverage | reach | what | limits | is | are | covered | in)* ({the}*"
    " {given}* ({passages} | {work}) | {at_hand} {end}) | nowhere {inside})",
    "topics": "(({the} | {whether}) .. ({relative} ({aux} | {adverb})* -{denial} ..)* | -{no_name} (-{no_more})? s"
    " -{no_more} (-{no_more})?)",
    "name_never": "(({be} | has | have) ({aux} | {adverb})* (not | never) | {is_not}) ({aux} | {adverb})*",
    "name": "-{no_name} (s? -{no_more})? ((and | of | for) -{no_more} (-{no_more})?)?",
    "end": ". | , | : | (anywhere | here | there) (. | , | in | within)",
}
