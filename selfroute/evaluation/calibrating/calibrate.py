"""Choose the constants of a calibration by judged answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from selfroute.calls.settings import Sections
from selfroute.errors import ConfigurationError
from selfroute.evaluation.calibrating.choosing import choose, cross_validated
from selfroute.evaluation.calibrating.evidence import FEWEST_QUESTIONS, Evidence, is_number
from selfroute.evaluation.calibrating.figures import figures_of, gain_of
from selfroute.evaluation.calibrating.rows import GRADED, Row, Rule
from selfroute.evaluation.records import SECTIONS
from selfroute.evaluation.sampling import FEWEST_DOCUMENTS
from selfroute.policies.calibration import Calibration, Counts, Gain, hash_of


def calibrate(  # noqa: PLR0913 - each says something else
    rows: Iterable[Row],
    *,
    token_share: float | None = None,
    price_of_wrong: float = 1.0,
    sections: Sections = SECTIONS,
    model: str | None = None,
    prompts: Mapping[str, str] | None = None,
    remarks: Iterable[str] = (),
) -> Calibration:
    """Choose both bounds, the sections, and whether to escalate at all.

    Args:
        rows: The questions, judged.
        token_share: How many tokens may be used, as a share of the long context's; the highest quality within it is
            looked for. None for no more than Self-Route as published, and then a document is read only where it is
            worth it: 5 points of 100 on that question.
        price_of_wrong: What a wrong answer costs, where an honest decline costs 1 at most; see
            `selfroute.evaluation.calibrating.rows.value_of`.
        sections: The tokens of the sections in these rows.
        model: The model that answered, to be kept with it.
        prompts: The prompts of the steps, as templates: `rag`, `graded` and `long_context`. The hash of those that the
            rule needs is kept with it.
        remarks: What the rows cannot show, in sentences, to be kept with it.

    Raises:
        ConfigurationError: There are no questions, or a value is not valid.
    """
    if token_share is not None and not (is_number(token_share) and 0 < token_share <= 1):
        msg = f"token_share is a share of the long context's tokens, above 0 and at most 1; it is {token_share!r}"
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
        sections=sections if rule.reads_sections else None,
        token_share=token_share,
        price_of_wrong=price_of_wrong,
        counts=counts_of(evidence),
        figures=figures_of(evidence, trial),
        gains=gains,
        notes=(*remarks, *_over_budget(evidence, rule, token_share), *_notes(evidence, chosen, rule, gains)),
        model=model,
        prompts=_hash(prompts, "graded" if graded else "rag", "long_context"),
    )


def counts_of(evidence: Evidence) -> Counts:
    """Return how much there is to choose by."""
    return Counts(
        questions=len(evidence.rows),
        documents=len(evidence.by_document),
        declined=sum(row.rag.declined for row in evidence.rows),
        unanswerable=sum(row.answerable is False for row in evidence.rows),
    )


def rule_of(calibration: Calibration) -> Rule:
    """Return the rule that a calibration follows."""
    if calibration.escalate == "never":
        return Rule("rag")
    if calibration.escalate == "declined":
        return Rule("sections" if calibration.sections else "self_route")
    bounds = calibration.doubt_below or 0, calibration.stop_below or 0
    return Rule("graded_sections" if calibration.sections else "graded", *bounds)


def _hash(prompts: Mapping[str, str] | None, *names: str) -> str | None:
    """Return the hash of some of the prompts; None if one is not known."""
    return hash_of(*(prompts[name] for name in names)) if prompts and prompts.keys() >= set(names) else None


def _over_budget(evidence: Evidence, rule: Rule, token_share: float | None) -> Iterable[str]:
    """Yield that a rule does not fit the budget; then it is the cheapest."""
    share = evidence.share(evidence.trial(rule))
    if token_share is not None and share > token_share:
        yield (
            f"No rule stays within {100 * token_share:.0f} % of the long context's tokens. This is the cheapest, with "
            f"{100 * share:.0f} %."
        )


def _notes(evidence: Evidence, chosen: Mapping[Rule, int], rule: Rule, gains: Mapping[str, Gain]) -> Iterable[str]:
    """Yield what limits a calibration."""
    if evidence.few_questions:
        yield (
            f"Fewer than {FEWEST_QUESTIONS} questions are too few for a choice: this is the published rule, unless "
            "it does not fit the budget."
        )
    elif evidence.few_documents:
        yield (
            f"Fewer than {FEWEST_DOCUMENTS} documents: this holds on these documents and says nothing about others. "
            "The bounds were not tuned, and the published rule stays unless another one is clearly better."
        )
    if not any(row.answerable is False for row in evidence.rows):
        yield "No question is known to be unanswerable. If some of yours are, escalating pays less than it does here."
    some = sum(row.graded is None for row in evidence.rows)
    if 0 < some < len(evidence.rows):
        yield f"Graded answerability was not considered: {some:,} of the questions have no graded draft."
    if len(chosen) > 1:
        yield f"The choice is not stable: {chosen.get(rule, 0)} of {sum(chosen.values())} folds chose the same rule."
    plain = [name for name in ("rag", "self_route") if name != rule.strategy and not gains[name].is_distinguishable]
    if plain:
        yield f"No difference in quality from {' and '.join(plain)} is shown."
    if gains["long_context"].is_distinguishable and gains["long_context"].gain < 0:
        yield f"Reading the whole documents at once is better; this is {gains['long_context']} points from it."
