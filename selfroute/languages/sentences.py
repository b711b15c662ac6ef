"""Split a text into sentences: prose, wrapped lines, lists and tables, in the languages of this package."""

# ruff: noqa: RUF001 (full-width marks, curly quotes and dashes)

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import groupby

from selfroute.languages.words import ABBREVIATIONS, NUMBERED, is_spaced

LONGEST = 1_000  # characters; where no sentence ends before, it is cut between two words
_BREAKS = " \n\t，、；"
_BEGIN = r"(?<![\u0300-\u036f\u00ad])\b"  # of a word; accents and soft hyphens stand within one
_CLOSING = r"""[\])}"'”’»›*_]"""
_LOWER = "a-zß-öø-ÿα-ωа-яё"
# What a German ordinal stands before: "am 3. Oktober".
_COUNTED = "Jan|Feb|März|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez|Jahr|Weltkrieg|Auflage|Kapitel|Platz"
# Besides those of the decline rules, which see only the openings of replies.
_MORE_ABBREVIATIONS = (
    "prof rev hon gen gov sen rep capt cmdr lt sgt messrs mme mlle mgr sra srta dra ud uds ee approx ca cf ex vgl bzw "
    "evtl ggf inkl zzgl bspw sog geb gest mio mrd tsd hr hrn frl ing lic núm figs vols"
)
_MORE_NUMBERED = "art abs fig vol p pp ch sec para cap ziff kap pág p jan feb apr jun jul aug sep sept oct nov dec"
_TABLE = re.compile(r"[|\t]|(?:[,;]\S[^,;\n]*){3}")
_GAP = re.compile(r"\S {3,}\S")  # between two columns
_ITEM = re.compile(r"[-*+•–—▪◦#>|\[]|\(?\w{1,3}[.)]\s")
_SPACES = re.compile(r"\s*")
_ITEMS = (r"\d", r"\d\d")
_ALIKE = 3  # characters; lines that begin alike, such as those of a log, are not wrapped
_WRAPPED = range(30, 200)  # the lengths of lines of wrapped prose


def sentence_spans(text: str) -> list[tuple[int, int]]:
    r"""Return where each sentence of a text begins and ends, in order, without the white space around it.

    A line of a list or a table is a sentence; a line break within wrapped prose ends none. What is longer than
    `LONGEST` characters is cut between words. The time grows with the length of the text, whatever it holds.

    Examples:
        >>> text = "Dr. Ray paid $3.50. Who else did?\n- nobody\n- nothing"
        >>> [text[start:end] for start, end in sentence_spans(text)]
        ['Dr. Ray paid $3.50.', 'Who else did?', '- nobody', '- nothing']
    """
    spans: list[tuple[int, int]] = []
    start = len(text) - len(text.lstrip())
    for found in _breaks(cased=not text.islower()).finditer(text):
        at, after = found.span()
        if found.lastindex:
            if found.lastindex == 1 and _is_wrapped(text, at, after):
                continue
            at = found.end(2) if found.lastindex == 2 else start + len(text[start:at].rstrip())  # noqa: PLR2004
        if at - start > LONGEST:
            _add_pieces(spans, text, start, at)
        elif at > start:
            spans.append((start, at))
        start = after
    _add_pieces(spans, text, start, start + len(text[start:].rstrip()))
    return spans


@cache
def _breaks(*, cased: bool) -> re.Pattern[str]:
    """Return the pattern of the boundary between two sentences; it ignores line breaks.

    Its first group is a line break, its second the full-width marks that end a sentence. Nothing in it can be tried
    again from each character of a run.

    Args:
        cased: Whether the text has capitals, so that no sentence begins without one.
    """
    full, marks = "[。！？．｡]", "[.!?…।॥؟۔]"
    ends = "|".join(rf"(?<={marks}{_CLOSING * closing}\s)" for closing in range(3))
    ends += rf"|(?<={marks}\s»\s)"
    # No sentence ends after an initial, the number of an item or of a paragraph, and an abbreviation.
    within = [
        rf"(?<!{_BEGIN}[^\W\d_]\.\s)",
        *(rf"(?<!{at}{number}\.\s)" for at in (r"\A", r"\n", r"§\s") for number in _ITEMS),
    ]
    within += [rf"(?<!{words})" for words in _behind(ABBREVIATIONS.union(_MORE_ABBREVIATIONS.split()))]
    numbered = "|".join(rf"(?<={words})" for words in _behind(NUMBERED.union(_MORE_NUMBERED.split())))
    unlike = rf"(?!(?:{numbered})\d|(?<=\d\.\s)(?:{_COUNTED}))"
    following = rf"(?=[^\s{_LOWER if cased else ''}»”’)\]}}])"
    spaced = rf"(?:{ends}){''.join(within)}{unlike}\s*{following}"
    # It begins with one set of characters: all others are skipped at once. So are most spaces, which no mark is before.
    return re.compile(rf"[\s{full[1:]}(?<![a-z,] )(?:{spaced}|(?<=\n)()\s*|(?<={full})({full}*[」』）】〉》”’]*)\s*)")


def _behind(words: Iterable[str]) -> Iterator[str]:
    """Yield patterns of these abbreviations for looking behind, which takes only those of one length together."""
    for _, of_one_length in groupby(sorted(words, key=lambda word: (len(word), word)), key=len):
        yield rf"{_BEGIN}(?i:{'|'.join(of_one_length)})\.\s"


def _add_pieces(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    """Add a sentence, in pieces if it is too long."""
    while end - start > LONGEST:
        cut = max(text.rfind(mark, start + LONGEST // 2, start + LONGEST) for mark in _BREAKS) + 1
        cut = cut or start + LONGEST
        spans.append((start, start + len(text[start:cut].rstrip())))
        start = min(_SPACES.match(text, cut).end(), end)  # type: ignore[union-attr]
    if end > start:
        spans.append((start, end))


def _is_wrapped(text: str, at: int, after: int) -> bool:
    """Return whether a line break only wraps a line, so that the sentence goes on behind it.

    Args:
        text: The text.
        at: Where the line break stands.
        after: Where the text goes on, behind all white space.
    """
    if "\n" in text[at + 1 : after] or after == len(text):
        return False
    goes_on = text[after].islower()
    if goes_on and text[at - 1 : at] == "-":  # a word that is divided
        return True
    begin = text.rfind("\n", 0, at) + 1
    before = begin - 1 - (text.rfind("\n", 0, max(begin - 1, 0)) + 1)
    width = max(before, at - begin)
    if width not in _WRAPPED or text[begin : begin + _ALIKE] == text[after : after + _ALIKE]:
        return False
    until = text.find("\n", after)
    until = len(text) if until < 0 else until
    width = max(width, until - at - 1)
    space = text.find(" ", after, until) if is_spaced(text[after]) else after + 1
    word = (until if space < 0 else space) - after
    if not (goes_on or (width in _WRAPPED and at - begin + 1 + word > width)):
        return False
    in_columns = _GAP.search(text, begin, at) and _GAP.search(text, after, until)
    return not (in_columns or _ITEM.match(text, after) or _TABLE.search(text, begin, until))
