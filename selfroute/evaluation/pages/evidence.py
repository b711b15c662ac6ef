"""Find where in its document, and in its passages, the answers to a question stand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from selfroute.citations import cite, locate
from selfroute.evaluation.looks import Excerpt, Passage
from selfroute.evaluation.questions import LETTERS, Question

_AROUND = 125  # characters shown on either side of a sentence
_FROM_PASSAGES = ("rag", "sections")

Piece = tuple[str, bool]
"""A piece of a text, and whether an answer stands there."""


class Answered(Protocol):
    """An answer of a strategy."""

    @property
    def strategy(self) -> str:
        """The strategy."""

    @property
    def answer(self) -> str:
        """The answer."""

    @property
    def answerable(self) -> bool:
        """Whether it answers."""

    @property
    def route(self) -> str | None:
        """The step that answered."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where the answers to a question stand.

    Attributes:
        excerpts: The sentences of its documents, none if these are not known.
        passages: The pieces of each passage.
    """

    excerpts: Sequence[Excerpt] = ()
    passages: Sequence[Sequence[Piece]] = ()


def find_evidence(
    asked: Iterable[tuple[Question, Sequence[Answered], Sequence[Passage]]], known: Iterable[Excerpt] = ()
) -> Mapping[tuple[str, str], Evidence]:
    """Return for each question, by its key, where its answers stand; a declined one stands nowhere.

    Args:
        asked: The questions, each with the results to look at and the passages to show.
        known: What was found before, and need not be looked for.
    """
    found: dict[tuple[str, str], list[Excerpt]] = {}
    for excerpt in known:
        found.setdefault((excerpt.dataset, excerpt.id), []).append(excerpt)
    # Questions on one document follow one another, so that it is taken apart once, however many documents there are.
    grouped = sorted(asked, key=lambda each: hash(each[0].document))
    return {
        question.key: _evidence(question, results, passages, found.get(question.key))
        for question, results, passages in grouped
    }


def _evidence(
    question: Question, results: Sequence[Answered], passages: Sequence[Passage], known: Sequence[Excerpt] | None
) -> Evidence:
    answers: dict[str, list[Answered]] = {}
    for result in results:
        if result.answerable and result.route:
            answers.setdefault(_in_words(result.answer, question), []).append(result)
    excerpts = known or (list(_excerpts(question, answers)) if question.document else [])
    texts = [passage.text for passage in passages]
    spans: list[list[tuple[int, int]]] = [[] for _ in texts]
    for answer, given in answers.items():
        if any(result.route in _FROM_PASSAGES for result in given):
            for one in cite(question.question, answer, list(enumerate(texts)), n=1).citations:
                spans[one["document"]].append((one["start"], one["end"]))
    for excerpt in excerpts:
        if not excerpt.text:
            continue
        sentence = re.compile(rf"(?<!\w){re.escape(excerpt.text)}(?!\w)")
        for text, of_text in zip(texts, spans, strict=True):
            of_text.extend(found.span() for found in sentence.finditer(text))
    return Evidence(excerpts, [list(pieces(text, of_text)) for text, of_text in zip(texts, spans, strict=True)])


def _excerpts(question: Question, answers: Mapping[str, list[Answered]]) -> Iterator[Excerpt]:
    """Yield where in the document the answers stand, each place once."""
    document = question.document or ""
    found: dict[int, Excerpt] = {}
    for answer, results in answers.items():
        strategies = [result.strategy for result in results]
        for place in locate(question.question, answer, document, n=1):
            start = place["start"]
            if start in found:
                strategies = [*found[start].strategies, *strategies]
                found[start] = replace(found[start], strategies=strategies)
            else:
                before, after = around(document, start, place["end"])
                found[start] = Excerpt(*question.key, strategies, start, place["score"], before, place["text"], after)
    yield from found.values()


def around(document: str, start: int, end: int) -> tuple[str, str]:
    """Return some text before and behind a piece of a document, with an ellipsis where it goes on."""
    before, after = document[max(start - _AROUND, 0) : start], document[end : end + _AROUND]
    if start > _AROUND:
        before = f"…{before.partition(' ')[2] or before}"
    if end + _AROUND < len(document):
        after = f"{after.rpartition(' ')[0] or after}…"
    return before, after


def _in_words(answer: str, question: Question) -> str:
    """Return an answer; the option, if it is the letter of one."""
    letter = answer.strip(" .:()*")
    options = dict(zip(LETTERS, question.choices, strict=False))
    return options.get(letter, answer)


def refusal_pieces(text: str, words: str) -> list[Piece]:
    """Return a draft in pieces, with the words that decline apart; in one piece if they are not in it."""
    found = re.search(re.escape(words), text, re.IGNORECASE) if words else None
    return list(pieces(text, [found.span()] if found else []))


def pieces(text: str, spans: Iterable[tuple[int, int]]) -> Iterator[Piece]:
    """Yield a text in pieces, cut where a span begins or ends; spans may overlap."""
    at = 0
    for start, end in sorted(spans):
        if start > at:
            yield text[at:start], False
        if end > at:
            yield text[max(start, at) : end], True
            at = end
    if at < len(text):
        yield text[at:], False
