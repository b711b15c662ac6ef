"""How a reply declines in words of its own, read one word at a time.

A reader is a generator: it is sent the words of a reply in lower case, the marks `,` `:` `.` `?` between them and
`""` at the end. It returns as soon as it knows whether they decline, so a stream is held no longer than its wording
makes necessary. A decline says that the text does not tell, that the reader does not know, or that what was asked for
is not told: a subject of one of these kinds and a negated verb of telling or knowing.
"""

# ruff: noqa: RUF001 (models write curly quotes)

from __future__ import annotations

from collections.abc import Generator

from selfroute.vocabulary import (
    AFTER_HEAD,
    AGENTS,
    APOLOGIES,
    ASKED,
    ASSERTS,
    AUXILIARIES,
    BE,
    BECAUSE,
    CONTRASTS,
    DESCRIBES,
    DETERMINERS,
    ENDS,
    FILLERS,
    FINDINGS,
    FIRST,
    GIVEN,
    HOLDS,
    INFORMATION,
    KNOWLEDGE,
    LACKING,
    LAST_LATIN,
    LEADING,
    LEADS,
    LINKS,
    NEGATIONS,
    NONE,
    PARTICLES,
    READING,
    REVIEWED,
    SUBJECTS,
    TELL,
    TELLING,
    TEXT,
    THERE,
    TOLD,
    VERBS,
    WORKED_OUT,
)

Reader = Generator[None, str, bool | None]
"""Returns whether the words decline, or None if they were only a label or an apology."""


def may_decline(first: str) -> bool:
    """Tell whether a reply that opens with this word, in lower case, may decline; most answers are known by it."""
    return first in FIRST or first[-2:] == "ly" or "'" in first or "’" in first


def clause() -> Reader:
    """Read a reply from its first word."""
    cited = False
    word = yield
    while True:
        if word in LEADS:
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
            while word not in FILLERS and word not in ENDS and word != "that":
                word = yield
        elif word in FILLERS or word[-2:] == "ly" or (cited and word in {"that", "like"}):
            word = yield
        else:
            return (yield from _subject(word, cited=cited))


def _lead() -> Generator[None, str, str]:
    """Read "Based on the passages,"; return the first word after it, or nothing if it does not speak of the text."""
    cited = False
    while (word := (yield)) not in ENDS:
        if cited and word in {",", ":"}:
            return (yield)
        if cited and word in {"there", "i", "we", "it", "they", "no"}:
            return word
        cited = cited or word in TEXT or word in ASKED or word in GIVEN or word in READING
        if not (cited or word in DETERMINERS or word in LEADING or word[-2:] == "ly"):
            break
    return ""


def _subject(word: str, *, cited: bool) -> Reader:
    """Read a clause from its subject on."""
    if word == "there":
        return (yield from _there(cited=cited))
    if word in NONE or (cited and word == "found"):
        return (yield from _nothing(cited=cited or word == "insufficient"))
    if word in {"unclear", "unknown"}:
        return (yield from _tail())
    if word == "they" and cited:
        return (yield from _predicate((yield), "text"))
    if word in SUBJECTS or word in {"final", "response"} or word.endswith(("'s", "’s")):
        return (yield from _noun(word, cited=cited))
    kind = "asked" if word in AUXILIARIES or word in NEGATIONS else "topic"
    for _ in range(3 if cited and kind == "topic" else 0):  # "Based on the passages, Mr Ames does not ..."
        word = yield
        if word in AUXILIARIES:
            break
    return word in PARTICLES and (yield from _predicate(word, kind, cited=cited))


def _there(*, cited: bool) -> Reader:
    """Read on after "there"."""
    negated = False
    while (word := (yield)) in PARTICLES:
        negated = negated or word in NEGATIONS
    if negated and INFORMATION.match(word):
        return True
    return (negated or word in NONE) and (yield from _nothing(cited=cited))


def _noun(word: str, *, cited: bool) -> Reader:
    """Read a clause whose subject is a noun: the text, what was asked for, or the topic of the question."""
    kind, first, last = "", word, ""
    while word not in AUXILIARIES and word not in NEGATIONS:
        if kind in {"text", "asked"} and word in VERBS:
            return (yield from _verb(word))
        if word in ENDS or word in ASSERTS:
            return False
        if word in {":", "apologies"}:
            return None if last in {"answer", "response", "my"} else False
        if not kind and (word in TEXT or word in ASKED):
            kind = "text" if word in TEXT else "asked"
        if not kind and word in AFTER_HEAD:
            kind = "topic"
        last = word
        word = yield
    if last == first and first in {"this", "that"}:
        kind = "asked"
    return (yield from _predicate(word, kind or "topic", cited=cited))


def _verb(word: str) -> Reader:
    """Read on from what the text does: "lacks", "contains no", "says nothing about", "discusses ..., but not"."""
    if word in HOLDS:
        return (yield) in NONE
    if word in {"say", "says"}:
        return (yield) == "nothing" and (yield) in ENDS | AFTER_HEAD
    return word in LACKING or (yield from _next())


def _predicate(word: str, kind: str, *, cited: bool = False) -> Reader:
    """Read a clause from its first verb on; its subject is the text, the reader, what was asked, or any topic."""
    negated = passive = softened = False
    while word in PARTICLES or word[-2:] == "ly":
        if word == "have" and negated and kind != "topic":
            return True
        negated = negated or word in NEGATIONS
        softened = softened or word[-2:] == "ly"
        passive = word in BE or (passive and word not in {"able", "unable"})
        word = yield
    if not negated or word in {",", "."}:
        return (yield from _positive(word, kind, cited=cited))
    if word in {"enough", "sufficient"} and kind != "topic":
        return kind == "text" or (yield from _enough())
    told = TOLD.fullmatch(word) or (THERE.fullmatch(word) and (kind == "asked" or cited))
    if told and (passive or kind == "asked"):
        return (yield from _told(word))
    tells = bool(TELL.fullmatch(word))
    if (tells and not passive and (kind != "topic" or softened)) or (kind == "text" and word in {"about", "relevant"}):
        return True
    return (tells or kind in {"text", "asked"} or bool(THERE.fullmatch(word))) and (yield from _tail())


def _told(word: str) -> Generator[None, str, bool]:
    """Read on after "is not told": by, to or in what?"""
    after = yield
    if word in {"mentioned", "possible", "clear"}:
        settled = after != "by"
    elif TOLD.fullmatch(word):
        settled = after not in AGENTS
    else:
        settled = after in ENDS or after in {",", "in", "from"}
    return settled or (yield from _tail())


def _enough() -> Generator[None, str, bool]:
    """Read on after "not enough": information, or to tell?"""
    word = yield
    word = (yield) if word == "to" else word
    return bool(TELL.fullmatch(word) or INFORMATION.match(word) or word in TEXT)


def _positive(word: str, kind: str, *, cited: bool) -> Reader:
    """Read a verb that is not negated: an apology, "found no mention", "is insufficient"."""
    if kind == "reader":
        return (yield from _reader(word))
    if kind == "asked" and word in {"that", "like", "the"}:  # "It seems that ..."
        return None
    if kind == "text" and word in DESCRIBES | {"about"}:
        return (yield from _next())
    if kind == "topic" or word == "unknown":
        return word in LACKING and (cited or (yield from _tail()))
    return word in LACKING or (word == "no" and kind == "text")


def _reader(word: str) -> Reader:
    """Read on after "I am", "I have" or "I"."""
    if word in APOLOGIES or word in {",", "."}:
        return None
    if word in REVIEWED:
        while word not in ENDS and word not in FILLERS:
            word = yield
        return None
    if word in {"find", "found", "see", "saw"}:
        word = yield
    if word not in NONE:
        return False
    word = yield
    return word in KNOWLEDGE or bool(INFORMATION.match(word) or FINDINGS.match(word))


def _nothing(*, cited: bool) -> Reader:
    """Read on after "no" or "there is no"."""
    verb = False
    first = word = yield
    while word not in ENDS and not (word in {",", ":"} and word == first):
        if INFORMATION.match(word) or word in TEXT or (cited and FINDINGS.match(word)):
            return True
        if TOLD.fullmatch(word):
            return (yield) not in AGENTS or (yield from _tail())
        if THERE.fullmatch(word):
            return cited or (yield from _tail())
        if verb and word not in AUXILIARIES and word[-2:] != "ly":
            return (yield from _next())
        verb = verb or word in AUXILIARIES
        word = yield
    return False


def _next() -> Reader:
    """Read the sentence after one that only denies, or says what the text is about."""
    while (word := (yield)) not in ENDS and word != "but":
        if word == "and" and (word := (yield)) in AUXILIARIES:
            return (yield from _predicate(word, "text"))
        if word in ENDS:
            break
    while word in ENDS or word in FILLERS or word == "instead":
        if word == "":
            return False
        word = yield
    if word in {"they", "it"} or word in AUXILIARIES:
        word = (yield) if word in {"they", "it"} else word
        return (yield from _predicate(word, "text"))
    return (yield from _subject(word, cited=False))


def _tail() -> Generator[None, str, bool]:
    """Read the rest of a sentence: does it speak of the text?"""
    while (word := (yield)) not in ENDS:
        if word in TEXT or word in {"provided", "given", "retrieved"} or INFORMATION.match(word):
            return True
    return False


def amends(*, softened: bool) -> Generator[None, str, bool]:
    """Read on after a decline: does the reply then answer after all, "but adding the rows gives 12"?"""
    while (word := (yield)) not in ENDS and word not in CONTRASTS:
        pass
    same = word in CONTRASTS
    if not same and (word == "" or (yield) not in CONTRASTS):
        return False
    while (word := (yield)) not in ENDS:
        if WORKED_OUT.match(word):
            return True
        if TELLING.fullmatch(word):
            return False
    return same and softened


def explanation(core: str) -> Reader:
    """Read on after the refusal: is the rest an explanation, or was the refusal a word of a sentence?"""
    word = yield
    if word in {",", ":", "."}:
        yield
        return True
    if word == "?":
        return (yield) == ""
    if word in LINKS:
        return (yield) in SUBJECTS | {"", "what"}
    # No English sentence goes on in another script: such a word explains.
    return word in BECAUSE or core.startswith(word) or word[0] > LAST_LATIN
