"""Answers to a question as a page shows them, and where in its document and its passages they stand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from selfroute.citations import cite, locate
from selfroute.effects import Route
from selfroute.usage.counts import STEPS
from selfroute_workbench.evaluation.looks import Excerpt, Passage
from selfroute_workbench.evaluation.metrics import LETTERS
from selfroute_workbench.evaluation.questions import Question

_AROUND = 125  # characters shown on either side of a sentence
_FROM_PASSAGES = ("rag", "sections")
ROUTED = ("self_route", "sections", "graded", "graded_sections")
"""The strategies with a choice of routes."""

Piece = tuple[str, bool]
"""A piece of a text, and whether an answer stands there."""


@dataclass(frozen=True)
class Shown:
    """An answer on a page.

    Attributes:
        strategy: The strategy; `"self_route"` for the answer of a chain or an engine.
        answer: The answer; a decline in the model's own words.
        route: The step that answered; None if it is not known.
        answerable: Whether it answers.
        decision: The decision, as chains return it.
        usage: The usage, as chains return it.
        draft: The draft's reply; None if there was none, or it is not known.
        passages: The passages that the draft read.
        cut: Whether the model read only a part of the documents.
        seconds: The model's time; None if it is not known.
        score: What counts, from 0 to 1; None if nobody scored it.
        own_score: By the question's own metric, if a judge's grade is what counts.
        by_rule: Whether a rule graded it.
    """

    strategy: str
    answer: str
    route: Route | None
    answerable: bool
    decision: Mapping[str, Any]
    usage: Mapping[str, Any]
    draft: str | None
    passages: Sequence[Passage] = ()
    cut: bool = False
    seconds: float | None = None
    score: float | None = None
    own_score: float | None = None
    by_rule: bool = False

    @property
    def path(self) -> list[str]:
        """The steps that ran, as the keys of `ROUTES`."""
        return [step for step in STEPS if self.usage.get(step)]

    @property
    def escalated(self) -> bool:
        """Whether more was read than the passages, after a draft or for want of passages."""
        tried = bool(self.usage.get("rag")) or bool(self.decision.get("declined"))
        return self.strategy in ROUTED and self.route in {"sections", "long_context"} and tried

    @property
    def is_stopped(self) -> bool:
        """Whether a policy, or the draft's prospect, ended the question."""
        return (self.decision.get("ruling") or {}).get("go") is False

    @property
    def draft_pieces(self) -> Sequence[Piece]:
        """The draft in pieces, those words apart by which it declined; none if it is the answer itself."""
        words = str(self.decision.get("evidence") or "") if self.decision.get("declined") else ""
        if self.draft is None:
            return [(words, True)] if words else []
        if not self.decision.get("declined") and self.draft == self.answer:
            return []
        return refusal_pieces(self.draft, words)


@dataclass(frozen=True, slots=True)
class Places:
    """Where the answers to a question stand.

    Attributes:
        excerpts: The sentences of its documents, none if these are not known.
        passages: The pieces of each passage.
    """

    excerpts: Sequence[Excerpt] = ()
    passages: Sequence[Sequence[Piece]] = ()


def places_of(
    question: Question, results: Iterable[Shown], passages: Sequence[Passage], known: Sequence[Excerpt] = ()
) -> Places:
    """Return where the answers to a question stand; a declined one stands nowhere.

    Args:
        question: The question.
        results: Its answers.
        passages: The passages to look at.
        known: What was found in the document before, and need not be looked for.
    """
    answers: dict[str, list[Shown]] = {}
    for result in results:
        if result.answerable and result.route:
            answers.setdefault(_in_words(result.answer, question), []).append(result)
    excerpts = known or (list(_excerpts(question, answers)) if question.document else [])
    texts = [passage.text for passage in passages]
    spans: list[list[tuple[int, int]]] = [[] for _ in texts]
    for answer, given in answers.items():
        if any(result.route in _FROM_PASSAGES for result in given):
            for one in cite(question.question, answer, list(enumerate(texts)), n=1):
                spans[one["document"]].append((one["start"], one["end"]))
    for excerpt in excerpts:
        if not excerpt.text:
            continue
        sentence = re.compile(rf"(?<!\w){re.escape(excerpt.text)}(?!\w)")
        for text, of_text in zip(texts, spans, strict=True):
            of_text.extend(found.span() for found in sentence.finditer(text))
    return Places(excerpts, [list(pieces(text, of_text)) for text, of_text in zip(texts, spans, strict=True)])


def _excerpts(question: Question, answers: Mapping[str, list[Shown]]) -> Iterator[Excerpt]:
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
