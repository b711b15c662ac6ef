"""Rows of questions with the replies of every step, and the rules that lead each question through them."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from selfroute.calls.settings import DOUBT_BELOW, STOP_BELOW
from selfroute.errors import ConfigurationError
from selfroute.policies.calibration import Strategy

GRADED: tuple[Strategy, ...] = ("graded", "graded_sections")


@dataclass(frozen=True, slots=True)
class Look:
    """The reply of one step to one question.

    Attributes:
        quality: How good it is, from 0 to 1; a decline is 1 if the documents do not hold the answer, else 0.
        tokens: The tokens of this step alone.
        declined: Whether it declines.
        prospect: How likely the whole text holds an answer, from 0 to 100, as a graded draft says; None if it does not.
        confidence: How likely somebody who reads the whole text would answer the same, from 0 to 100; None if the reply
            does not say, and then the reply is taken as sure.
        dollars: What this step alone costs; None if that is not known.
    """

    quality: float
    tokens: float
    declined: bool = False
    prospect: float | None = None
    confidence: float | None = None
    dollars: float | None = None

    def __post_init__(self) -> None:
        amounts = (self.tokens, self.dollars or 0.0)
        if not 0 <= self.quality <= 1 or not all(isfinite(each) and each >= 0 for each in amounts):
            msg = f"a quality is from 0 to 1, and neither tokens nor dollars are negative; this is {self}"
            raise ConfigurationError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One question with the replies of all steps that were tried.

    Attributes:
        document: The id of its document. Documents that share text should share an id: rows with one id are never
            split between choosing and testing.
        rag: The plain draft.
        long_context: The reply over the whole documents.
        sections: The reply to sections of the documents, after a plain draft; None where they were not read, and then
            the whole documents follow at once.
        graded: The draft with its two numbers; None if it was not asked for.
        graded_sections: The reply to sections with its confidence, after a graded draft; None as in `sections`.
        answerable: Whether the documents hold the answer; None if that is not known.
    """

    document: str
    rag: Look
    long_context: Look
    sections: Look | None = None
    graded: Look | None = None
    graded_sections: Look | None = None
    answerable: bool | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A strategy with its bounds.

    Attributes:
        strategy: `"rag"` never escalates; `"self_route"` escalates what the draft declines; `"sections"` reads sections
            of the documents in between; `"graded"` and `"graded_sections"` are the same with the numbers of graded
            answerability; `"long_context"` reads the whole documents at once.
        doubt_below: An answer with a lower confidence escalates (graded strategies only).
        stop_below: A draft that declines with a lower prospect ends there (graded strategies only).
    """

    strategy: Strategy
    doubt_below: int = 0
    stop_below: int = 0

    @property
    def reads_sections(self) -> bool:
        """Whether it reads sections of the documents before all of them."""
        return self.strategy in ("sections", "graded_sections")

    @property
    def is_default(self) -> bool:
        """Whether its bounds are the defaults; without bounds there is nothing to tune."""
        return self.strategy not in GRADED or (self.doubt_below, self.stop_below) == (DOUBT_BELOW, STOP_BELOW)

    def follow(self, row: Row) -> Outcome:
        """Return where this rule leads a question.

        Raises:
            ConfigurationError: The question has no graded draft, but the strategy needs one.
        """
        if self.strategy == "long_context":
            return Outcome((), row.long_context)
        draft = row.graded if self.strategy in GRADED else row.rag
        if draft is None:
            msg = f"the strategy {self.strategy!r} needs a graded draft of every question"
            raise ConfigurationError(msg)
        if self.strategy == "rag" or self._ends(draft):
            return Outcome((), draft)
        sections = {"sections": row.sections, "graded_sections": row.graded_sections}.get(self.strategy)
        if sections is None:
            return Outcome((draft,), row.long_context)
        if sections.declined or self._doubts(sections):
            return Outcome((draft, sections), row.long_context)
        return Outcome((draft,), sections)

    def _ends(self, draft: Look) -> bool:
        """Return whether a question ends with its draft."""
        if draft.declined:
            return self.strategy in GRADED and draft.prospect is not None and draft.prospect < self.stop_below
        return not self._doubts(draft)

    def _doubts(self, look: Look) -> bool:
        """Return whether an answer is in doubt."""
        return self.strategy in GRADED and look.confidence is not None and look.confidence < self.doubt_below


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a question ended.

    Attributes:
        before: The replies that were paid but not shown.
        shown: The last reply.
    """

    before: tuple[Look, ...]
    shown: Look

    @property
    def tokens(self) -> float:
        """The tokens of all steps that ran."""
        return sum(look.tokens for look in self.before) + self.shown.tokens

    @property
    def dollars(self) -> float | None:
        """The cost of all steps that ran; None if a price is not known."""
        total = 0.0
        for look in (*self.before, self.shown):
            if look.dollars is None:
                return None
            total += look.dollars
        return total


def value_of(look: Look, answerable: bool | None, price_of_wrong: float = 1.0) -> float:  # noqa: FBT001 - it is data
    """Return what a reply is worth when a wrong answer costs something.

    At a price of 1 it is the quality as graded: a right answer, and a decline of a question that the documents do not
    answer, are worth 1; a wrong answer, and a decline of any other question, 0. The part of an answer that is wrong
    (1 less its quality) costs `price_of_wrong` instead of 1: at a price of 3 a wrong answer is worth -2. Below 1 only
    answers to unanswerable questions become cheaper (at 0.25 they are worth 0.75): a wrong answer to any other question
    is never worth more than its honest decline.

    Args:
        look: The reply.
        answerable: Whether the documents hold the answer; None counts as yes.
        price_of_wrong: The price, 0 or more.
    """
    if look.declined or price_of_wrong == 1:
        return look.quality
    extra = price_of_wrong - 1 if answerable is False else max(0.0, price_of_wrong - 1)
    return look.quality - extra * (1 - look.quality)
