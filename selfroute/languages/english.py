"""The rules that recognise a decline in English. Measured on real replies."""

from __future__ import annotations

from selfroute.languages.english_words import PARTS, WORDS
from selfroute.languages.language import Language

ENGLISH = Language(
    name="English",
    words=WORDS,
    parts=PARTS,
    start="{opener} {lead}? {opener}",
    labels=(
        (
            "(the | final | my | your | short)* (answer | answers | response | reply | result | results | verdict"
            " | conclusion | output | reasoning | final | assistant | bot | status) {to_question} (: | . | ,)"
        ),
        "(a | ai | model) : | 1 .?",
        (
            "{polite}* {lead}? ,? ({the}* (final | correct | only | best)* (answer | response | question | verdict)"
            " {to_question} | (this | that | so it | i think it)) {aux} (considered | as follows)? (: | that)? {boxed}?"
        ),
        (
            "{polite}* {lead}? ,? (i | we) (must | should | would | will | ll | can | have to | need to | am going to"
            " | therefore | only | simply | d)* (write | say | answer | respond | reply | state | output | return"
            " | report | put | give | mark it as) (with | that | it | is | the word | only | simply)* :? {boxed}?"
        ),
        "({hedge} | {lead})* ,? here (is | s) {the}* (final | correct | short)* (answer | response) {to_question} :",
        "{polite}* {lead}? (, | .)?",
        "{boxed}",
    ),
    explains=(
        "{because}",
        "(as | so | and) (the | no | there | it | they | none)",
        "{link} ({the} | {given} | {passages} | {work} | {asked} | what | .)",
    ),
    declines=(
        # The text does not say.
        "(as | since | because)? {some_text} {says_not}",
        "(as | since | because)? {the_excerpts} {does_never} -{differs}",
        (
            "(as | since | because)? {the_work} ({does_never} ({say} | {offer} | {tell} ({in_text} | {whether})"
            " | {soft} {tell}) | {do_not} {adverb}* (include | contain | have | supply) {the}* (-{pauses}"
            " (-{pauses})?)? ({attribute} | {asked}) ({end} | {topic} | {whether}) | {says_none})"
        ),
        "{the} -{no_more} {work} {do_not} {adverb}* ({say} | give {the})",  # "the match report"
        "{the} (-{no_more})? {work} {handed} {does_never} ({say} | {offer} | {tell})",
        (
            "{the} ({handed} -{no_more} | -{no_more} (-{no_more})? {handed}) {does_never} ({say} | {tell} ({in_text}"
            " | {whether}))"
        ),  # "the provided recipe"
        "(as | since | because)? {the}* {given}* {law} {head} {do_not} {adverb}* {mention_law}",
        (
            "{the_text} {adverb}* ({gives} (no | nothing) | (skip | skips | gloss | glosses | pass | passes) over"
            " | {leaves} (out | (-{pauses})* {blank}))"
        ),
        "{the_text} {aux}* {adverb}* too (short | brief | vague | limited | general | fragmentary) to",
        (
            "{the_text} {adverb}* {breaks} {adverb}* (off | out)? (before | short | prior | too | there | at that"
            " | right there)"
        ),
        (
            "{the_excerpts} {aux}* ({merely} {aux}* {covers} | {covers} (-{pauses} (-{pauses})?)? {merely} | limited to"
            " | ({covers} | {gives}) (-{pauses})* only {end})"
        ),
        "{the_excerpts} {aux}* {merely} {holds} ({information} | (-{pauses} (-{pauses})?)? {asked})",
        "{this}* {given}* {asked} {head} ({now} | {adverb})* {lacking}",
        "{it} ({aux} | {adverb})* ({open} ({end} | {whether} | {where}) | {hard} to {adverb}* {knows})",
        (
            "{meta} ... (without {naming} | (but | though | although) not ({the} | {whether} | {told} | {found}) | ,"
            " not (about | with | on | in) | (and | ,) {breaks} there | (but | and | ,) {says_not} | {then} (no"
            " (-{pauses})* {be} | ({topics} | {name}) {is_never}) {adverb}* (({told} | {found} | {given_out}) {end}"
            " | among | part of | it {is_never} part of))"
        ),
        (
            "({lead} | {meta} ... {then} | (while | although | though) ({the_text} | {the_work}) ... ,) (they | it)"
            " {says_not}"
        ),
        "{none_of} ({the_text} | {the_work}) ({active} | {adverb})* ({say} | {offer} | {tell} | {describes})",
        "(none | neither) of (them | these | those) (mentions | specifies | (says | states | gives) {whether})",
        "what ({the_text} | it | they) {do_not} {adverb}* ({say} | {tell}) us? is {whether}",
        "{do_not} (say | mention) ({end} | {whether})",
        "{none_of} ({the_text} | {the_work}) ... ({told} | {given_out} | {knows})",
        (
            "(nowhere | nothing) {specific}* ({where} | here | {topic} ..)? ({active} | {adverb})* ({the_text} | {say}"
            " | {be} {adverb}* ({told} | {found}) {where} | (appear | appears) {where})"
        ),
        (
            "({meta} ... {then} | (while | although | though) ... ,) (-{pauses})* (is not | are not | isn't | aren't)"
            " (. | ,)"
        ),
        (
            "({meta} ... {then} | (i | we) {looked} (, | and | but) | {lead}) (none (of them)? | neither (of them)?"
            " | nothing) {adverb}* ({say} | {offer} | {tell})"
        ),
        (
            "({point} | answering ..) (would | will) {adverb}* (require | need) {the}* ({information} | {asked}"
            " | {more} | {full})"
        ),
        "{the}* {full} ({aux} | {adverb} | -{stops})* (missing | {is_never} ({given_out} | {found})) {end}",
        "{asked} {adverb}* (not | never) ({told} | {found} | {given_out}) ({end} | {where})",
        "{the_asked} asks .. ... , (but | yet | while | whereas | and)? {the_text}",
        # There is no information.
        (
            "there ({now} | {adverb} | {not})* ({none} | nothing) (-{pauses})* ({news} ({of_it} | {end} | {be} | {told}"
            " | {given_out} | {found}) | explicit | detailed | {told} | {inside} | {attribute} ({given_out} | {found}))"
        ),
        "there ({now} | {adverb} | {not})* {none} {specific}* {asked} ({of_it} | {end} | {be} | {told} | {given_out})",
        (
            "there ({aux} | {adverb} | {not})* nothing (here | specific | explicit | else)* ({topic} | {where}"
            " | {whether} | to {knows})"
        ),
        (
            "({meta} ... {then} | (i | we) {looked} (, | and | but)) (nothing | not {the}* word | no word) ({topic}"
            " | {whether})"
        ),
        "there ({aux} | {adverb} | {not})* no way (to {adverb}* {knows} | of (knowing | telling | saying))",
        "{lead} there ({aux} | {adverb})* {none} {specific}",
        "there ({now} | {adverb} | {not})* {none} ({specific}* {passages} {topic} | ... , so (i | we) {never} {knows})",
        "there (was | were) ({adverb} | {not})* {none} (-{pauses})* {in_passages}",
        "there ({aux} | {adverb} | {not})* enough ({passages} | here)",
        (
            "{none} {specific}* {information} ({end} | {topic} .. ({end} | {in_source}) | ({topic} ..)? {where}"
            " | ({topic} ..)? {be}? {adverb}* ({told} | {given_out} | {found}) ({end} | {topic} | {whether} | {where}))"
        ),
        (
            "(insufficient | not enough | not sufficient) {specific}* ({information} | {passages} | {asked} | evidence"
            " | here) ({end} | to | {topic} | {where} | {told} | {given_out})"
        ),
        "only (partial | limited | fragmentary | incomplete) ({passages} | {asked})",
        (
            "{none} -{pause} ... ({be} {adverb}* ({mentioned} {end} | ({told} | {given_out} | {found}) {where})"
            " | appears {where})"
        ),
        (
            "(as | since | because)? no {specific}* {attribute} (-{pause})* (is | are) {adverb}* ({told} | {given_out}"
            " | {found}) ({end} | {topic} | {where})"
        ),
        "(no one | nobody) (-{pause})* is {adverb}* (named | identified | mentioned | credited)",
        "{none} {specific}* mention (of (-{pause})*)? (is | was) {adverb}* made",
        "{none} {specific}* {asked} (can | could)? {be}? {adverb}* ({found} | {told}) ({end} | {where})",
        "({none} {asked} found? | nothing found) ({end} | {topic}) | {lead} {none} -{pause} ... {be} {given_out} {end}",
        "{none} -{pause} ... . {opener} {the_text} {says_not}",
        # The model does not know. "We" may also be the authors of the text: then it is a fact.
        "i ({looked} (and | but))? {never} ({say} | {offer} | {tell} | {possible} | {passages} | .)",
        "{lead} {opener} we ({looked} (and | but))? {never} {knows}",
        (
            "(we ({looked} (and | but))? | you | one) {never} ({knows} ({end} | ... {in_passages}) | (find | found"
            " | have) (any | enough | sufficient | a | the)? {specific}* {news} ({of_it} | {end}))"
        ),
        "(i | we) ({aux} | {adverb})* (lack | need (more | additional | further)) .. ({asked} | {passages})",
        (
            "(i | we | you | one) ({aux} | {adverb})* ((need | require) (to (see | check | read))? | have to (see"
            " | check | consult | read | look at)) {the}* {full} .. ({passages} | {work} | {end} | to {knows})"
        ),
        "(i | we | one) ({aux} | {adverb})* need .. to (answer | tell | say | determine | know)",
        "without .. , (-{pauses})* {never} be? ({told} | {knows})",
        "any answer would be",
        "(i | we) ({aux} | {adverb})* (guessing | speculating)",
        (
            "(i | (i | we) {looked} (, | and | but)) ({aux} | {adverb})* {finds}? (no {specific}* ({knowledge}"
            " | {passages} | (-{pauses})* {in_passages}) | nothing | none)"
        ),
        "we ({aux} | {adverb})* {finds}? (no {specific}* {news} | nothing) ({of_it} | {end})",
        # What was asked for is not stated.
        "{the}* ({handed} {asked} | {asked} {handed}) {head} {says_not}",
        "{point} {is_never} ({told} ({end} | {whether} | {where}) | {found} {where} | {given_out} {where})",
        "{this}* {given}* {asked} {head} {is_never} ({given_out} | {found}) ({end} | {whether} | to (me | us))",
        "{this}* {given}* {asked} {head} {is_never} (enough | sufficient | {possible} | in {the_text})",
        "{this}* {given}* question {head} ({aux} | {adverb})* cannot be {adverb}* {told}",
        "{point} {does_never} ({say} {end} | (appear | exist | occur | feature | figure | come up | show up) {where})",
        "({point} | {topics}) ({is_never} (something | {in_passages}) | ({aux} | falls | lies | go | goes)* {away})",
        (
            "we (are | re | aren't) {adverb}* (not | never)? (told ({whether} | {about} | {the}) | (told | given) ..."
            " {in_passages})"
        ),
        "{it} {is_never} ({told} | {possible} | {given_out}) ({whether} | if | that | {where_law})",
        "{it} {is_never} ({told} | {possible}) ({end} | {topic} {whether})",
        "it {is_never} (possible to {knows} | {mentioned} {end})",
        "(it {does_never} | they {do_not} {adverb}*) ({say} ({end} | {whether} | if) | specify)",
        (
            "({never} ({told} | {given_out}) | unclear | unknown | unspecified | {untold}) ({end} | {where_law} | based"
            " | according)"
        ),
        "({never} {found}) (. | , | {where_law})",
        "(n a | null | not applicable | no idea | answerable : false) ({end} | $)",
        "({cant} | unable | not able | not possible | {hard}) to? ({say} | {tell})",
        "(not {inside} | {not} know {end} | {away})",
        "nothing {be} {adverb}* ({told} | said) ({end} | {topic} | {whether} | {where_law})",
        "{the}* {full} .. {aux} ({aux} | {adverb})* (needed | required | necessary) ({end} | to {knows})",
        "{more} {specific}* ({information} | {passages}) {aux}* (needed | required | necessary) ({end} | to {knows})",
        # The topic of the question is not mentioned.
        "{topics} ({is_never} ({mentioned} | provided | given) | {now} {adverb}* not {adverb}* {written}) {end}",
        "({the} .. | -{no_name})? {attribute} .. {is_never} ({told} | {found} | {given_out}) {end}",
        "{topics} ({is_never} ({told} {where_law} | ({given_out} | {found}) {where}) | {aux} {lacking} {where})",
        (
            "{topics} ({is_never} ({in_passages} | something ({the_text} | i) | (part of | among | within) ({the}"
            " | of)* {given}* ({passages} | {asked} {where})) | ({aux} | goes | stays) ({aux} | {adverb} | left)*"
            " ({away} | {untold} ({end} | {where}) | open ({where} | by {the_text})))"
        ),
        "{topics} {does_never} (appear | come up | show up | feature | figure) {where}",
        (
            "{whether} (-{pauses})* (, ({the_text} | {the_work}) {says_not} | ({aux} | {adverb})* ({is_never} {found}"
            " {where} | ({is_never} ({told} | {possible} | {given_out}) | {be} {adverb}* left? {adverb}* ({blank}"
            " | {open})) ({end} | {where})))"
        ),
        (
            "{name} ({name_never} {told} {where_law} | {does_never} (appear | come up | show up | feature | figure)"
            " {where})"
        ),
        (
            "{name} ({name_never} (({given_out} | {found}) ({about} (-{pauses})*)?)? | {be} missing) {in} {the}*"
            " ({given}* {source} | {handed} {work} | {work} {handed})"
        ),
        ("-{no_name} (-{no_more})? : not (({mentioned} | given) (. | ,) | ({told} | {found} | {given_out}) {where})"),
        "{name} {do_not} {adverb}* ({mention_law} | {offer}) ... {in} {the}* ({given}* {source} | {handed} {work})",
        "{the} .. {do_not} {adverb}* {mention}",
        "({the} | {lead}) .. {never} {soft} ({told} | {say} | {offer})",
        "{lead} .. {never} ({say} | {offer}) {in_text}",
        "{the} .. {never} ({say} | {offer}) ({the}* {pointed} | (-{pauses})* {in_source})",
    ),
    denials=(
        "{is_never} ({told} | {given_out} | {found}) ({about} (-{pauses})*)? {in_read}",
        "{is_never} {soft} ({mentioned} | {given_out} | discussed | addressed | disclosed)",
        "{the} ({given} | {number})* {read} {head} {does_never} ({say} | {offer} | {tell} {in_text} | {soft} {tell})",
        "{never} {soft} {mention_law}",
        "{does_never} {offer} {the}* {pointed}",
        "there ({now} | {adverb} | {not})* {none} {specific}* ({news} {of_it} | (-{pauses})* ({told} | {in_read}))",
        "there ({aux} | {adverb} | {not})* {none} (-{pauses})* {given_out} ({about} (-{pauses})*)? {in_read}",
        "{none} {specific}* {news} ({topic} .. | {be} ({told} | {given_out} | {found})) {in_read}",
    ),
    answers=(
        "... ({not} | no | {lacking}) ... .? {but} ... {worked_out}",
        "... {do_not} ... (, so (-{silent})* . | , because (none | nothing | no | nobody))",
        "(... {soft} | ({the_text} | {the_work} | {none})) ... , {but} (-{telling})* .",
        "({the}* {law} ... {do_not} ... , | {the_work} ... , (she | he)) (-{telling})* .",
        "(-{pauses})* , (-{pauses} (-{pauses} (-{pauses})?)?)? {spoke} (. | ,)",
        "(-{pauses})* , {spoke}",  # "It is unclear, says Lin, who paid."
    ),
    aside="""text* passage* context* chunk* excerpt* extract* document* statement* filing* snippet* source* material*
        content* file* paper* article* report* section* note* book* story novel* chapter* transcript* author* page*
        table* question* answer answers information info detail* reference* mention* discuss* describ* focus* refer*
        cover* provid* stat* list* say says contain* includ* indicat* suggest* specif* address* analy* compar* appear*
        seem* relat* about concern* present* not no nor never none nothing neither cannot unable don doesn didn isn aren
        wasn weren won couldn wouldn unclear unknown unspecified unanswerable insufficient impossible lack* missing
        uncertain undisclosed however although though whether what which who whom whose how why when where if please
        would could may might than""",
    listing="and or as such like e example especially particularly for",
    only="only just merely",
    no="no | nope | not really",
    asks=(
        "({say} | {tell} | {told} | {mention_law} | {news}) {adverb}* (about | on | of | as to | us | me)* {settled}",
        "({open} | {possible} | enough | insufficient | sufficient | not possible to | impossible to | answered)",
        "{never} (tell | know | say | determine | answer | infer)",
        ", {settled} (-{pauses})* ({is_never} | {be} {adverb}* left? {blank})",
    ),
    speech="said replied answered responded admitted testified insisted remarked exclaimed shrugged",
)
