"""Reads the questions that a model wrote, and looks up in the document what it quoted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from selfroute.languages.words import UNSPACED, words_of
from selfroute_workbench.evaluation.metrics import set_f1
from selfroute_workbench.evaluation.writing.prompts import QUOTES, Kind
from selfroute_workbench.evaluation.writing.quotes import places_of

_MOST_QUOTES, _LONGEST = 10, 2_000
_ALIKE = 0.8
"""Two questions whose sets of words agree by so much (F1) are the same."""


@dataclass(frozen=True, slots=True)
class Source:
    """A document to write about.

    Attributes:
        name: Its file.
        text: Its text.
    """

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Quote:
    """A place in a document.

    Attributes:
        start: Where it begins, in characters.
        end: Where it ends.
        text: What stands there.
    """

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Written:
    """A question that a model wrote.

    Attributes:
        question: The question.
        answer: The reference answer; empty if the document has none.
        kind: What it needs.
        quotes: The places that the answer rests on, in the document's order.
        source: The document.
    """

    question: str
    answer: str
    kind: Kind
    quotes: tuple[Quote, ...]
    source: Source

    @property
    def start(self) -> int:
        """Where its first quote begins; 0 without one."""
        return self.quotes[0].start if self.quotes else 0


NO_FORM = "not in the form that was asked for"
NO_QUOTE = "its quotes do not stand in the document"
TWICE = "asked before in nearly the same words"


def read(reply: str, *, kind: Kind, source: Source) -> Iterator[Written | str]:
    """Yield the questions of a reply, or why one is dropped: it rests on too few places of the document, for example.

    Args:
        reply: What the model wrote: a list of JSON objects, whatever stands around it.
        kind: What was asked for.
        source: The document.
    """
    rows = list(_objects(reply))
    if not rows:
        yield NO_FORM
    for row in rows:
        question, answer = _text(row.get("question")), _text_or_number(row.get("answer"))
        if kind == "unanswerable":
            answer, quotes = "", []
        else:
            quotes = _places(row.get("quotes"), source.text)
        if not question or not (answer or kind == "unanswerable"):
            yield NO_FORM
        elif len(quotes) < QUOTES[kind]:
            yield NO_QUOTE
        else:
            yield Written(question, answer, kind, tuple(quotes), source)


def is_known(written: Written, others: Iterable[Written]) -> bool:
    """Return whether nearly the same was asked about the same document, with the same numbers in it."""
    numbers = _numbers(written)
    same = [spaced(each.question) for each in others if each.source == written.source and _numbers(each) == numbers]
    return bool(same) and set_f1(spaced(written.question), same) >= _ALIKE


def spaced(text: str) -> str:
    """Return a text in which the characters of scripts without spaces stand apart, so that they count as words."""
    return re.sub(f"([{UNSPACED}])", r" \1 ", text)


def _numbers(written: Written) -> set[str]:
    return set(re.findall(r"\d+", written.question))


def _text(value: Any) -> str:
    """Return a text without white space around it; empty if it is no text, or too long to be meant."""
    if not isinstance(value, str) or len(value) > _LONGEST:
        return ""
    return value.encode(errors="replace").decode().strip()  # half of a surrogate pair cannot be sent


def _text_or_number(value: Any) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return _text(str(value) if is_number else value)


def _places(quotes: Any, text: str) -> list[Quote]:
    """Return where quotes stand, in order, without those that overlap an earlier one."""
    listed = quotes if isinstance(quotes, list) else [quotes]
    asked = [each for each in map(_text, listed[:_MOST_QUOTES]) if len(words_of(each)) > 1]  # one word stands anywhere
    found = sorted({(place[1], place[2]) for place in places_of(asked, [text], first=()) if place})
    kept: list[Quote] = []
    for start, end in found:
        if not kept or start >= kept[-1].end:
            kept.append(Quote(start, end, text[start:end]))
    return kept


def _objects(reply: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a reply, also from a list that is broken, cut off or the value of an object."""
    decoder, at = json.JSONDecoder(), reply.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(reply, at)
        except (ValueError, RecursionError):  # the first also of a number with thousands of digits
            end = at + 1
        else:
            lists = [each for each in value.values() if isinstance(each, list)]
            listed = [row for rows in lists for row in rows if isinstance(row, dict)]
            yield from listed if listed and "question" not in value else [value]
        at = reply.find("{", end)


def windows(text: str, parts: int) -> Sequence[str]:
    """Split a text into parts of about the same length, at the ends of lines or else of words."""
    bounds = [0]
    for number in range(1, parts):
        near = len(text) * number // parts
        line, word = text.find("\n", near), text.find(" ", near)
        limit = near + len(text) // (4 * parts)
        bounds.append(next((at + 1 for at in (line, word) if 0 <= at < limit), near))
    bounds.append(len(text))
    return [text[start:end] for start, end in pairwise(bounds) if text[start:end].strip()]
