"""How a reply declines in words of its own, read one word at a time.

A reader is a generator: it is sent the words of a reply in lower case, the marks `,` `:` `.` `?` between them and
`""` at the end. It returns as soon as it knows whether they decline, so a stream is held no longer than its wording
makes necessary. A decline says that the text does not tell, that the reader does not know, or that what was asked for
is not told: a subject of one of these kinds and a negated verb of telling or knowing.
"""

# ruff: noqa: RUF001 (models write curly quotes)

from __future__ import annotations

import re
from collections.abc import Generator

Reader = Generator[None, str, bool | None]
"""Returns whether the words decline, or None if they were only a label or an apology."""


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Heads of a subject that is the text, and of one that is what was asked for.
_TEXT = _set(
    "text texts passage passages context contexts chunk chunks excerpt excerpts document documents paper papers article"
    " articles statement statements report reports source sources snippet snippets material materials content contents"
    " section sections note notes book story novel chapter filing filings transcript prospectus author authors"
)
_ASKED = _set("information info details detail answer answers question questions")
_GIVEN = _set(
    "provided given retrieved supplied available above following financial annual quarterly entire whole two search"
    " specific exact"
)
_DETERMINERS = _set("the this these those that your any all my our her his their its a an")
_SUBJECTS = _TEXT | _ASKED | _GIVEN | _DETERMINERS
_AFTER_HEAD = _set("of in for about regarding on to from concerning with by between at within which who as")
_FILLERS = _set("unfortunately apologies regrettably sorry however actually but and so therefore alas well hmm , .")
_LEADS = _set(
    "based according from in after upon on within given as while although though since because despite without looking"
)
_LEADING = _set("to on carefully thorough careful not more additional further what is at")
_READING = _set("review reviewing reading analyzing examining searching ai")
_NEGATIONS = _set("not never unable")
_BE = _set("is are was were be been being am remain remains")
_AUXILIARIES = _BE | _set(
    "do does did has have had can could will would may might should seem seems appear appears looks"
)
_PARTICLES = _AUXILIARIES | _NEGATIONS | _set("to able also even yet sure certain")
_LACKING = _set(
    "insufficient unclear impossible unspecified unavailable unanswerable lack lacks lacking omit omits fail"
    " fails missing absent silent unknown"
)
_NONE = _set("no none neither nothing nowhere insufficient")
_ENDS = _set(". ?") | {""}
_AGENTS = _DETERMINERS | _set("by to for until because")  # "not given by the author", "not given a seat"
_TELL = re.compile(
    r"(?:mention|specif|contain|provid|discuss|describ|includ|stat|addres|detail|disclos|indicat|refer|reveal|list|giv"
    r"|explain|answer|say|tell|identif|elaborat|cover|offer|present|outlin|clarif|compar|quantif|show|suggest|report"
    r"|convey|explor|have|name|make|confirm|project|touch|note|find|found|determin|see|locat|know|verif|access"
    r"|infer|extract|deriv|calculat|comment|conclude|assess|establish|discern|respond|help|allow)\w*"
)
_TOLD = re.compile(
    r"mentioned|specified|stated|provided|given|discussed|described|disclosed|indicated|detailed|revealed|addressed"
    r"|answer(?:ed|able)|determined|explained|outlined|compared|quantified|calculated|inferred"
)
_THERE = re.compile(
    r"found|available|included|listed|present|reported|possible|clear|identified|known|covered|defined|named|visible|said|think|believe"
)
_INFORMATION = re.compile(
    r"(?:mention|information|detail|referenc|indication|discussion|explicit|specific|relevant|sufficient)\w*"
)
_FINDINGS = re.compile(r"(?:direct|answer|data|descri|statement|evidence|record|clear|comparison)\w*")
# Verbs that end a subject, so that what follows is an answer: "The text says ..." is not about what it does not say.
_ASSERTS = _set(
    "says states shows suggest suggests argue argues indicates explains implies refers means represents reflects"
    " increased decreased declined rose fell grew resulted contributed involves requires focuses aims expects"
    " intends believes leads led became went took gave got said told considers allows consists but"
)
_DESCRIBES = _set("discusses discuss describes describe focuses focus covers cover mentions mention asks")
_HOLDS = _set("contains contain provides provide gives give makes make offers offer includes include")
_VERBS = _HOLDS | _DESCRIBES | _LACKING | {"say", "says"}
_KNOWLEDGE = _set("idea knowledge way access about")
_APOLOGIES = _set("sorry apologize apologise afraid regret")
_REVIEWED = _set("reviewed read searched checked examined analyzed looked")


_FIRST = (
    _LEADS | _FILLERS | _SUBJECTS | _NONE | _PARTICLES | _set("i we it there unclear unknown final response cannot")
)


def may_decline(first: str) -> bool:
    """Tell whether a reply that opens with this word, in lower case, may decline; most answers are known by it."""
    return first in _FIRST or first[-2:] == "ly" or "'" in first or "’" in first


def clause() -> Reader:
    """Read a reply from its first word."""
    cited = False
    word = yield
    while True:
        if word in _LEADS:
            word = yield from _lead()
            if not word:
                return False
            cited = True
        elif word in {"i", "we", "it"}:
            known = yield from _predicate((yield), "asked" if word == "it" else "reader", cited=cited)
            if known is not None:
                return known
            cited, word = True, (yield)
        elif word in {"for", "to"} and cited:  # "I apologize for ..., but"
            while word not in _FILLERS and word not in _ENDS and word != "that":
                word = yield
        elif word in _FILLERS or word[-2:] == "ly" or (cited and word in {"that", "like"}):
            word = yield
        else:
            return (yield from _subject(word, cited=cited))


def _lead() -> Generator[None, str, str]:
    """Read "Based on the passages,"; return the first word after it, or nothing if it does not speak of the text."""
    cited = False
    while (word := (yield)) not in _ENDS:
        if cited and word in {",", ":"}:
            return (yield)
        if cited and word in {"there", "i", "we", "it", "they", "no"}:
            return word
        cited = cited or word in _TEXT or word in _ASKED or word in _GIVEN or word in _READING
        if not (cited or word in _DETERMINERS or word in _LEADING or word[-2:] == "ly"):
            break
    return ""


def _subject(word: str, *, cited: bool) -> Reader:
    """Read a clause from its subject on."""
    if word == "there":
        return (yield from _there(cited=cited))
    if word in _NONE or (cited and word == "found"):
        return (yield from _nothing(cited=cited or word == "insufficient"))
    if word in {"unclear", "unknown"}:
        return (yield from _tail())
    if word == "they" and cited:
        return (yield from _predicate((yield), "text"))
    if word in _SUBJECTS or word in {"final", "response"} or word.endswith(("'s", "’s")):
        return (yield from _noun(word, cited=cited))
    kind = "asked" if word in _AUXILIARIES or word in _NEGATIONS else "topic"
    for _ in range(3 if cited and kind == "topic" else 0):  # "Based on the passages, Mr Ames does not ..."
        word = yield
        if word in _AUXILIARIES:
            break
    return word in _PARTICLES and (yield from _predicate(word, kind, cited=cited))


def _there(*, cited: bool) -> Reader:
    """Read on after "there"."""
    negated = False
    while (word := (yield)) in _PARTICLES:
        negated = negated or word in _NEGATIONS
    if negated and _INFORMATION.match(word):
        return True
    return (negated or word in _NONE) and (yield from _nothing(cited=cited))


def _noun(word: str, *, cited: bool) -> Reader:
    """Read a clause whose subject is a noun: the text, what was asked for, or the topic of the question."""
    kind, first, last = "", word, ""
    while word not in _AUXILIARIES and word not in _NEGATIONS:
        if kind in {"text", "asked"} and word in _VERBS:
            return (yield from _verb(word))
        if word in _ENDS or word in _ASSERTS:
            return False
        if word in {":", "apologies"}:
            return None if last in {"answer", "response", "my"} else False
        if not kind and (word in _TEXT or word in _ASKED):
            kind = "text" if word in _TEXT else "asked"
        if not kind and word in _AFTER_HEAD:
            kind = "topic"
        last = word
        word = yield
    if last == first and first in {"this", "that"}:
        kind = "asked"
    return (yield from _predicate(word, kind or "topic", cited=cited))


def _verb(word: str) -> Reader:
    """Read on from what the text does: "lacks", "contains no", "says nothing about", "discusses ..., but not"."""
    if word in _HOLDS:
        return (yield) in _NONE
    if word in {"say", "says"}:
        return (yield) == "nothing" and (yield) in _ENDS | _AFTER_HEAD
    return word in _LACKING or (yield from _next())


def _predicate(word: str, kind: str, *, cited: bool = False) -> Reader:
    """Read a clause from its first verb on; its subject is the text, the reader, what was asked, or any topic."""
    negated = passive = softened = False
    while word in _PARTICLES or word[-2:] == "ly":
        if word == "have" and negated and kind != "topic":
            return True
        negated = negated or word in _NEGATIONS
        softened = softened or word[-2:] == "ly"
        passive = word in _BE or (passive and word not in {"able", "unable"})
        word = yield
    if not negated or word in {",", "."}:
        return (yield from _positive(word, kind, cited=cited))
    if word in {"enough", "sufficient"} and kind != "topic":
        return kind == "text" or (yield from _enough())
    told = _TOLD.fullmatch(word) or (_THERE.fullmatch(word) and (kind == "asked" or cited))
    if told and (passive or kind == "asked"):
        return (yield from _told(word))
    tells = bool(_TELL.fullmatch(word))
    if (tells and not passive and (kind != "topic" or softened)) or (kind == "text" and word in {"about", "relevant"}):
        return True
    return (tells or kind in {"text", "asked"} or bool(_THERE.fullmatch(word))) and (yield from _tail())


def _told(word: str) -> Generator[None, str, bool]:
    """Read on after "is not told": by, to or in what?"""
    after = yield
    if word in {"mentioned", "possible", "clear"}:
        settled = after != "by"
    elif _TOLD.fullmatch(word):
        settled = after not in _AGENTS
    else:
        settled = after in _ENDS or after in {",", "in", "from"}
    return settled or (yield from _tail())


def _enough() -> Generator[None, str, bool]:
    """Read on after "not enough": information, or to tell?"""
    word = yield
    word = (yield) if word == "to" else word
    return bool(_TELL.fullmatch(word) or _INFORMATION.match(word) or word in _TEXT)


def _positive(word: str, kind: str, *, cited: bool) -> Reader:
    """Read a verb that is not negated: an apology, "found no mention", "is insufficient"."""
    if kind == "reader":
        return (yield from _reader(word))
    if kind == "asked" and word in {"that", "like", "the"}:  # "It seems that ..."
        return None
    if kind == "text" and word in _DESCRIBES | {"about"}:
        return (yield from _next())
    if kind == "topic" or word == "unknown":
        return word in _LACKING and (cited or (yield from _tail()))
    return word in _LACKING or (word == "no" and kind == "text")


def _reader(word: str) -> Reader:
    """Read on after "I am", "I have" or "I"."""
    if word in _APOLOGIES or word in {",", "."}:
        return None
    if word in _REVIEWED:
        while word not in _ENDS and word not in _FILLERS:
            word = yield
        return None
    if word in {"find", "found", "see", "saw"}:
        word = yield
    if word not in _NONE:
        return False
    word = yield
    return word in _KNOWLEDGE or bool(_INFORMATION.match(word) or _FINDINGS.match(word))


def _nothing(*, cited: bool) -> Reader:
    """Read on after "no" or "there is no"."""
    verb = False
    first = word = yield
    while word not in _ENDS and not (word in {",", ":"} and word == first):
        if _INFORMATION.match(word) or word in _TEXT or (cited and _FINDINGS.match(word)):
            return True
        if _TOLD.fullmatch(word):
            return (yield) not in _AGENTS or (yield from _tail())
        if _THERE.fullmatch(word):
            return cited or (yield from _tail())
        if verb and word not in _AUXILIARIES and word[-2:] != "ly":
            return (yield from _next())
        verb = verb or word in _AUXILIARIES
        word = yield
    return False


def _next() -> Reader:
    """Read the sentence after one that only denies, or says what the text is about."""
    while (word := (yield)) not in _ENDS and word != "but":
        if word == "and" and (word := (yield)) in _AUXILIARIES:
            return (yield from _predicate(word, "text"))
        if word in _ENDS:
            break
    while word in _ENDS or word in _FILLERS or word == "instead":
        if word == "":
            return False
        word = yield
    if word in {"they", "it"} or word in _AUXILIARIES:
        word = (yield) if word in {"they", "it"} else word
        return (yield from _predicate(word, "text"))
    return (yield from _subject(word, cited=False))


def _tail() -> Generator[None, str, bool]:
    """Read the rest of a sentence: does it speak of the text?"""
    while (word := (yield)) not in _ENDS:
        if word in _TEXT or word in {"provided", "given", "retrieved"} or _INFORMATION.match(word):
            return True
    return False


_CONTRASTS = _set("but however though although nevertheless nonetheless yet still")
SOFTENED = re.compile(r"(?i)\b(?:explicitly|directly|exact|outright|precise)")
_TELLING = re.compile(r"(?:mention|discuss|describ|focus|refer|provid|infer|lack)\w*|not|no|never|only|rather|instead")
_WORKED_OUT = re.compile(r"(?:calculat|comput|deriv|adding|subtract|sum|work|impli)\w*")


def amends(*, softened: bool) -> Generator[None, str, bool]:
    """Read on after a decline: does the reply then answer after all, "but adding the rows gives 12"?"""
    while (word := (yield)) not in _ENDS and word not in _CONTRASTS:
        pass
    same = word in _CONTRASTS
    if not same and (word == "" or (yield) not in _CONTRASTS):
        return False
    while (word := (yield)) not in _ENDS:
        if _WORKED_OUT.match(word):
            return True
        if _TELLING.fullmatch(word):
            return False
    return same and softened


_BECAUSE = (
    _NONE
    | _FILLERS
    | _set("the this these those that your because since as given based due per according without there not i we :")
    | {""}
)
_LINKS = _set("from in with by on using for under within through")


def explanation(core: str) -> Reader:
    """Read on after the refusal: is the rest an explanation, or was the refusal a word of a sentence?"""
    word = yield
    if word in {",", ":", "."}:
        yield
        return True
    if word == "?":
        return (yield) == ""
    if word in _LINKS:
        return (yield) in _SUBJECTS | {"", "what"}
    return word in _BECAUSE or core.startswith(word)
