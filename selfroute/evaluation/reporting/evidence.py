"""Find where in its document, and in its passages, the answers to a question stand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from selfroute.citations import cite, locate
from selfroute.evaluation.prompts import LETTERS
from selfroute.evaluation.questions import Question
from selfroute.evaluation.records import Passage, Result

_AROUND = 125  # characters shown on either side of a sentence
_FROM_PASSAGES = ("rag", "wider")

Piece = tuple[str, bool]
"""A piece of a text, and whether an answer stands there."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A sentence of the document in which an answer stands.

    Attributes:
        results: The results with such an answer.
        start: The sentence's offset in the document.
        score: How much of the answer stands there, from 0 to 1.
        before: Some text before it.
        text: The sentence.
        after: Some text behind it.
    """

    results: list[Result]
    start: int
    score: float
    before: str
    text: str
    after: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where the answers to a question stand.

    Attributes:
        excerpts: The sentences of its document, none if that is not known.
        passages: The pieces of each passage.
    """

    excerpts: Sequence[Excerpt] = ()
    passages: Sequence[Sequence[Piece]] = ()


def find_evidence(
    asked: Iterable[tuple[Question, Sequence[Result], Sequence[Passage]]],
) -> Mapping[tuple[str, str], Evidence]:
    """Return for each question, by its key, where its answers stand; a declined one stands nowhere.

    Args:
        asked: The questions, each with the results to look at and the passages to show.
    """
    # Questions on one document follow one another, so that it is taken apart once, however many documents there are.
    grouped = sorted(asked, key=lambda each: hash(each[0].document))
    return {question.key: _evidence(question, results, passages) for question, results, passages in grouped}


def _evidence(question: Question, results: Sequence[Result], passages: Sequence[Passage]) -> Evidence:
    answers: dict[str, list[Result]] = {}
    for result in results:
        if result.answerable and result.route:
            answers.setdefault(_in_words(result.answer, question), []).append(result)
    excerpts = list(_excerpts(question, answers)) if question.document else []
    texts = [passage.text for passage in passages]
    spans: list[list[tuple[int, int]]] = [[] for _ in texts]
    for answer, given in answers.items():
        if any(result.route in _FROM_PASSAGES for result in given):
            for one in cite(question.question, answer, list(enumerate(texts)), n=1).citations:
                spans[one["document"]].append((one["start"], one["end"]))
    for excerpt in excerpts:
        sentence = re.compile(rf"(?<!\w){re.escape(excerpt.text)}(?!\w)")
        for text, of_text in zip(texts, spans, strict=True):
            of_text.extend(found.span() for found in sentence.finditer(text))
    return Evidence(excerpts, [list(_pieces(text, of_text)) for text, of_text in zip(texts, spans, strict=True)])


def _excerpts(question: Question, answers: Mapping[str, list[Result]]) -> Iterator[Excerpt]:
    """Yield where in the document the answers stand, each place once."""
    document = question.document or ""
    found: dict[int, Excerpt] = {}
    for answer, results in answers.items():
        for place in locate(question.question, answer, document, n=1):
            start, end = place["start"], place["end"]
            if start in found:
                found[start].results.extend(results)
                continue
            before, after = document[max(start - _AROUND, 0) : start], document[end : end + _AROUND]
            if start > _AROUND:
                before = f"…{before.partition(' ')[2] or before}"
            if end + _AROUND < len(document):
                after = f"{after.rpartition(' ')[0] or after}…"
            found[start] = Excerpt(list(results), start, place["score"], before, place["text"], after)
    yield from found.values()


def _in_words(answer: str, question: Question) -> str:
    """Return an answer; the option, if it is the letter of one."""
    letter = answer.strip(" .:()*")
    options = dict(zip(LETTERS, question.choices, strict=False))
    return options.get(letter, answer)


def _pieces(text: str, spans: Iterable[tuple[int, int]]) -> Iterator[Piece]:
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
