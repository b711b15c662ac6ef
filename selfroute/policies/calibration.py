"""Calibrate the escalation to one's own questions: constants, chosen on judged answers and kept as small JSON."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from selfroute.errors import ConfigurationError
from selfroute.policies.choosing import choose, cross_validated
from selfroute.policies.evidence import FEWEST_QUESTIONS, Evidence
from selfroute.policies.figures import Figures, Gain, figures_of, gain_of
from selfroute.policies.rows import GRADED, WIDTH, Row, Rule
from selfroute.policies.sampling import FEWEST_DOCUMENTS

Escalate = Literal["never", "declined", "graded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How much a calibration rests on.

    Attributes:
        questions: The number of questions.
        documents: The number of documents.
        declined: How many plain drafts declined.
        unanswerable: How many questions are known to have no answer in the documents.
    """

    questions: int
    documents: int
    declined: int
    unanswerable: int

    def __str__(self) -> str:
        """Return it in words."""
        return (
            f"{self.questions:,} questions on {self.documents:,} documents; "
            f"{self.declined:,} drafts declined, {self.unanswerable:,} questions are known to have no answer"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """When to escalate, as it was best on one's own questions.

    Attributes:
        escalate: `"never"`; `"declined"`: every decline, as published; `"graded"`: by the draft's two numbers.
        doubt_below: The bound of the confidence; None unless graded.
        stop_below: The bound of the prospect; None unless graded.
        widen: How many passages the wider look reads; None for no wider look.
        token_share: The budget that was asked for; None for Self-Route's.
        price_of_wrong: What a wrong answer costs; see `selfroute.policies.rows.value_of`.
        counts: How much it rests on.
        figures: What such a choice brings on documents that it was not made by.
        gains: How much better that is than each plain strategy.
        notes: Its limits, in words.
        model: The model that answered; None if it was not said.
        prompts: The hash of the prompts (see `hash_of`); None if they were not given.
    """

    escalate: Escalate
    doubt_below: int | None = None
    stop_below: int | None = None
    widen: int | None = None
    token_share: float | None = None
    price_of_wrong: float = 1.0
    counts: Counts
    figures: Figures
    gains: Mapping[str, Gain] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    model: str | None = None
    prompts: str | None = None

    @property
    def rule(self) -> Rule:
        """The rule to follow."""
        if self.escalate == "never":
            return Rule("rag")
        if self.escalate == "declined":
            return Rule("wider" if self.widen else "self_route")
        return Rule("graded_wider" if self.widen else "graded", self.doubt_below or 0, self.stop_below or 0)

    @property
    def options(self) -> dict[str, Any]:
        """The options of a chain or engine that it sets, besides whether to escalate at all."""
        graded = {"answerability": "graded", "doubt_below": self.doubt_below, "stop_below": self.stop_below}
        return {**(graded if self.escalate == "graded" else {}), **({"widen": self.widen} if self.widen else {})}

    def check_prompts(self, *prompts: str) -> None:
        """Refuse prompts that it was not made for.

        Raises:
            ConfigurationError: The prompts differ from those whose hash it keeps.
        """
        if self.prompts is not None and self.prompts != hash_of(*prompts):
            msg = (
                "this calibration was made with other prompts, so its bounds mean nothing here: evaluate with the "
                "prompts of this chain, and calibrate again"
            )
            raise ConfigurationError(msg)


def calibrate(  # noqa: PLR0913 - each says something else
    rows: Iterable[Row],
    *,
    token_share: float | None = None,
    price_of_wrong: float = 1.0,
    width: int = WIDTH,
    model: str | None = None,
    prompts: str | None = None,
) -> Calibration:
    """Choose both bounds, the wider look, and whether to escalate at all.

    Args:
        rows: The questions, judged.
        token_share: How many tokens may be used, as a share of the long context's; the highest quality within it is
            looked for. None for no more than Self-Route as published, and then a document is read only where it is
            worth it: 5 points of 100 on that question.
        price_of_wrong: What a wrong answer costs, where an honest decline costs 1 at most; see
            `selfroute.policies.rows.value_of`.
        width: The passages of the wider look in these rows.
        model: The model that answered, to be kept with it.
        prompts: The hash of the prompts (see `hash_of`), to be kept with it.

    Raises:
        ConfigurationError: There are no questions, or a value is not valid.
    """
    if token_share is not None and not 0 < token_share <= 1:
        msg = f"token_share is a share of the long context's tokens, above 0 and at most 1; it is {token_share}"
        raise ConfigurationError(msg)
    evidence = Evidence(rows, price_of_wrong=price_of_wrong)
    rule = choose(evidence, range(len(evidence.rows)), token_share=token_share)
    trial, chosen = cross_validated(evidence, token_share=token_share)
    gains: dict[str, Gain] = {each.strategy: gain_of(evidence, trial, evidence.trial(each)) for each in evidence.plain}
    graded = rule.strategy in GRADED
    return Calibration(
        escalate="never" if rule.strategy == "rag" else "graded" if graded else "declined",
        doubt_below=rule.doubt_below if graded else None,
        stop_below=rule.stop_below if graded else None,
        widen=width if rule.widens else None,
        token_share=token_share,
        price_of_wrong=price_of_wrong,
        counts=counts_of(evidence),
        figures=figures_of(evidence, trial),
        gains=gains,
        notes=tuple(_notes(evidence, chosen, rule, gains)),
        model=model,
        prompts=prompts,
    )


def counts_of(evidence: Evidence) -> Counts:
    """Return how much there is to choose by."""
    return Counts(
        questions=len(evidence.rows),
        documents=len(evidence.by_document),
        declined=sum(row.rag.declined for row in evidence.rows),
        unanswerable=sum(row.answerable is False for row in evidence.rows),
    )


def hash_of(*prompts: str) -> str:
    """Return the hash of some prompts, in their order."""
    joined = b"".join(b"%d:%b" % (len(each), each) for each in (prompt.encode() for prompt in prompts))
    return hashlib.sha256(joined).hexdigest()


def _notes(evidence: Evidence, chosen: Mapping[Rule, int], rule: Rule, gains: Mapping[str, Gain]) -> Iterable[str]:
    """Yield what limits a calibration."""
    if evidence.few_questions:
        yield (
            f"Fewer than {FEWEST_QUESTIONS} questions are too few to choose by: this is the published rule, unless "
            "it does not fit the budget."
        )
    elif evidence.few_documents:
        yield (
            f"Fewer than {FEWEST_DOCUMENTS} documents: this holds on these documents and says nothing about others. "
            "The bounds were not tuned, and the published rule stays where nothing is clearly better."
        )
    if not any(row.answerable is False for row in evidence.rows):
        yield "No question is known to have no answer, so escalating looks better here than where some have none."
    some = sum(row.graded is None for row in evidence.rows)
    if 0 < some < len(evidence.rows):
        yield f"Graded answerability was not considered: {some:,} of the questions have no graded draft."
    if len(chosen) > 1:
        yield f"The choice is not stable: {chosen.get(rule, 0)} of {sum(chosen.values())} folds chose the same rule."
    plain = [name for name in ("rag", "self_route") if not gains[name].is_distinguishable]
    if plain:
        yield f"It is not distinguishable in quality from {' and '.join(plain)}."
    if gains["long_context"].is_distinguishable and gains["long_context"].gain < 0:
        yield f"Reading the whole documents at once is better: {gains['long_context']} points from there to here."
