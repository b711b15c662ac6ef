"""The English words by which replies decline, in lower case, by the part that they play in a sentence.

What part that is, `selfroute.wording` says. Patterns are stems of verbs and nouns.
"""

from __future__ import annotations

import re


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Heads of a subject that is the text, and of one that is what was asked for.
TEXT = _set(
    "text texts passage passages context contexts chunk chunks excerpt excerpts document documents paper papers article"
    " articles statement statements report reports source sources snippet snippets material materials content contents"
    " section sections note notes book story novel chapter filing filings transcript prospectus author authors"
)
ASKED = _set("information info details detail answer answers question questions")
# What may stand before such a head, and after it.
GIVEN = _set(
    "provided given retrieved supplied available above following financial annual quarterly entire whole two search"
    " specific exact"
)
DETERMINERS = _set("the this these those that your any all my our her his their its a an")
SUBJECTS = TEXT | ASKED | GIVEN | DETERMINERS
AFTER_HEAD = _set("of in for about regarding on to from concerning with by between at within which who as")
# What may come before the subject: fillers, and leads such as "Based on a careful review of the text,".
FILLERS = _set("unfortunately apologies regrettably sorry however actually but and so therefore alas well hmm , .")
LEADS = _set(
    "based according from in after upon on within given as while although though since because despite without looking"
)
LEADING = _set("to on carefully thorough careful not more additional further what is at")
READING = _set("review reviewing reading analyzing examining searching ai")
# The verb, up to what it negates.
NEGATIONS = _set("not never unable")
BE = _set("is are was were be been being am remain remains")
AUXILIARIES = BE | _set(
    "do does did has have had can could will would may might should seem seems appear appears looks"
)
PARTICLES = AUXILIARIES | NEGATIONS | _set("to able also even yet sure certain")
# What lacks by itself, and what ends a sentence or goes on after "not given".
LACKING = _set(
    "insufficient unclear impossible unspecified unavailable unanswerable lack lacks lacking omit omits fail"
    " fails missing absent silent unknown"
)
NONE = _set("no none neither nothing nowhere insufficient")
ENDS = _set(". ?") | {""}
AGENTS = DETERMINERS | _set("by to for until because")  # "not given by the author", "not given a seat"
# Verbs: of a text that tells, of what was told or is there; nouns of what is told.
TELL = re.compile(
    r"(?:mention|specif|contain|provid|discuss|describ|includ|stat|addres|detail|disclos|indicat|refer|reveal|list|giv"
    r"|explain|answer|say|tell|identif|elaborat|cover|offer|present|outlin|clarif|compar|quantif|show|suggest|report"
    r"|convey|explor|have|name|make|confirm|project|touch|note|find|found|determin|see|locat|know|verif|access"
    r"|infer|extract|deriv|calculat|comment|conclude|assess|establish|discern|respond|help|allow)\w*"
)
TOLD = re.compile(
    r"mentioned|specified|stated|provided|given|discussed|described|disclosed|indicated|detailed|revealed|addressed"
    r"|answer(?:ed|able)|determined|explained|outlined|compared|quantified|calculated|inferred"
)
THERE = re.compile(
    r"found|available|included|listed|present|reported|possible|clear|identified|known|covered|defined|named|visible|said|think|believe"
)
INFORMATION = re.compile(
    r"(?:mention|information|detail|referenc|indication|discussion|explicit|specific|relevant|sufficient)\w*"
)
FINDINGS = re.compile(r"(?:direct|answer|data|descri|statement|evidence|record|clear|comparison)\w*")
# Verbs that end a subject, so that what follows is an answer: "The text says ..." is not about what it does not say.
ASSERTS = _set(
    "says states shows suggest suggests argue argues indicates explains implies refers means represents reflects"
    " increased decreased declined rose fell grew resulted contributed involves requires focuses aims expects"
    " intends believes leads led became went took gave got said told considers allows consists but"
)
# Verbs of a text, positive as they stand: "discusses ..., but not", "contains no".
DESCRIBES = _set("discusses discuss describes describe focuses focus covers cover mentions mention asks")
HOLDS = _set("contains contain provides provide gives give makes make offers offer includes include")
VERBS = HOLDS | DESCRIBES | LACKING | {"say", "says"}
# Of the reader: "I have no idea", "I am sorry", "I reviewed".
KNOWLEDGE = _set("idea knowledge way access about")
APOLOGIES = _set("sorry apologize apologise afraid regret")
REVIEWED = _set("reviewed read searched checked examined analyzed looked")
# First words after which a reply may still decline.
FIRST = LEADS | FILLERS | SUBJECTS | NONE | PARTICLES | _set("i we it there unclear unknown final response cannot")
# Does a reply answer after all, and does it explain a refusal?
CONTRASTS = _set("but however though although nevertheless nonetheless yet still")
SOFTENED = re.compile(r"(?i)\b(?:explicitly|directly|exact|outright|precise)")
TELLING = re.compile(r"(?:mention|discuss|describ|focus|refer|provid|infer|lack)\w*|not|no|never|only|rather|instead")
WORKED_OUT = re.compile(r"(?:calculat|comput|deriv|adding|subtract|sum|work|impli)\w*")
BECAUSE = (
    NONE
    | FILLERS
    | _set("the this these those that your because since as given based due per according without there not i we :")
    | _set("weil da denn car parce puisque porque pues perché poiché omdat want ponieważ eftersom fordi")
    | {""}
)
LAST_LATIN = "\u024f"
LINKS = _set("from in with by on using for under within through")
