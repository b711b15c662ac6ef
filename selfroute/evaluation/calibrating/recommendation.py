"""Say which strategy to take on the questions of an evaluation, and what that rests on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from selfroute.errors import ConfigurationError
from selfroute.evaluation.calibrating.calibrate import calibrate, counts_of, rule_of
from selfroute.evaluation.calibrating.choosing import cross_validated
from selfroute.evaluation.calibrating.evidence import Evidence, Trial
from selfroute.evaluation.calibrating.figures import Point, figures_of, frontier_of, gain_of
from selfroute.evaluation.calibrating.rows import GRADED, WIDTH, Row, Rule, value_of
from selfroute.policies.calibration import STRATEGIES, Calibration, Counts, Figures, Gain, Strategy

Name = Strategy | Literal["calibrated", "calibrated_for_quality"]
_MOST_BEHIND = 0.03
_MOST_ERRORS = 1.8  # a little less than the interval, so that another bootstrap says the same
NAMES: tuple[Name, ...] = (*STRATEGIES[:-1], "calibrated", "calibrated_for_quality", "long_context")


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """Whether there are too many unanswerable questions for Self-Route to pay.

    Attributes:
        share: The share of unanswerable questions at which Self-Route is as good as RAG; below it, Self-Route is
            better. None if no question, or every question, is known to be unanswerable.
        own: Their share among these questions; None if it is not known of every question.
    """

    share: float | None
    own: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteMatrix:
    """How often a rule escalated where that was needed: where the long context's answer is better than the draft's.

    Attributes:
        needed_escalated: Needed the documents, and they were read (or more passages were).
        needed_kept: Needed the documents, but the draft was final.
        idle_escalated: Did not need them, but escalated.
        idle_kept: Did not need them, and the draft was final.
    """

    needed_escalated: int
    needed_kept: int
    idle_escalated: int
    idle_kept: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """Which strategy to take, and what that rests on.

    Attributes:
        strategy: The cheapest of those that are level with the best (dollars where known, else tokens): not
            distinguishable from it, and not more than 3 points of 100 behind, for on few questions nearly nothing is
            distinguishable. On fewer than 50 questions it is Self-Route, if that is not distinguishable from the best.
        rule: What it does.
        width: The passages of its wider look; None if it has none.
        best: The strategy with the highest quality.
        figures: The figures of each strategy that was compared; those of a calibrated one are cross-validated by
            document.
        behind: How far each is from the best, question by question.
        counts: How much this rests on.
        calibrations: The calibration within Self-Route's tokens, and that for the highest quality.
        break_even: How many unanswerable questions Self-Route can bear.
        routes: How the routes of Self-Route and of the recommended rule were taken.
        frontier: Every rule that was tried, with all bounds, the cheapest first.
        few_documents: Whether this says nothing about other documents.
    """

    strategy: Name
    rule: Rule
    width: int | None
    best: Name
    figures: Mapping[Name, Figures]
    behind: Mapping[Name, Gain]
    counts: Counts
    calibrations: Mapping[Name, Calibration]
    break_even: BreakEven
    routes: Mapping[Name, RouteMatrix]
    frontier: Sequence[Point]
    few_documents: bool


def recommend(  # noqa: PLR0913 - each says something else
    rows: Iterable[Row],
    *,
    price_of_wrong: float = 1.0,
    width: int = WIDTH,
    among: Collection[Name] = NAMES,
    model: str | None = None,
    prompts: Mapping[str, str] | None = None,
) -> Recommendation:
    """Recommend the cheapest strategy that is level with the best.

    Args:
        rows: The questions, judged.
        price_of_wrong: What a wrong answer costs; see `selfroute.evaluation.calibrating.rows.value_of`.
        width: The passages of the wider look in these rows.
        among: The strategies to consider; those that were not tried are left out.
        model: The model that answered, to be kept with the calibrations.
        prompts: The prompts, as in `calibrate`.

    Raises:
        ConfigurationError: There are no questions, or none of the strategies was tried on them.
    """
    evidence = Evidence(rows, price_of_wrong=price_of_wrong)
    trials: dict[Name, Trial] = {rule.strategy: evidence.trial(rule) for rule in evidence.plain}
    rules: dict[Name, Rule] = {rule.strategy: rule for rule in evidence.plain}
    calibrations: dict[Name, Calibration] = {}
    shares: Mapping[Name, float | None] = {"calibrated": None, "calibrated_for_quality": 1.0}
    for name, share in shares.items():
        calibrations[name] = calibrate(
            evidence.rows,
            token_share=share,
            price_of_wrong=price_of_wrong,
            width=width,
            model=model,
            prompts=prompts,
        )
        trials[name], _ = cross_validated(evidence, token_share=share)
        rules[name] = rule_of(calibrations[name])
    considered = [name for name in NAMES if name in among and name in trials]
    if not considered:
        msg = f"none of these strategies was tried on the questions: {', '.join(sorted(among))}"
        raise ConfigurationError(msg)
    figures = {name: figures_of(evidence, trials[name]) for name in NAMES if name in trials}
    best = max(considered, key=lambda name: round(figures[name].quality, 12))
    behind = {name: gain_of(evidence, trials[name], trials[best]) for name in figures}
    strategy = _cheapest_level(evidence, trials, considered, _costs(figures), best)
    return Recommendation(
        strategy=strategy,
        rule=rules[strategy],
        width=width if rules[strategy].widens else None,
        best=best,
        figures=figures,
        behind=behind,
        counts=counts_of(evidence),
        calibrations=calibrations,
        break_even=_break_even(evidence),
        routes={name: _routes(evidence, rules[name]) for name in dict.fromkeys(("self_route", strategy))},
        frontier=frontier_of(evidence, width=width),
        few_documents=evidence.few_documents,
    )


def _cheapest_level(
    evidence: Evidence, trials: Mapping[Name, Trial], considered: Sequence[Name], cost: Mapping[Name, float], best: Name
) -> Name:
    """Return the cheapest strategy that is level with the best; of too few questions the published one if it can be."""
    level = []
    for name in considered:
        behind = gain_of(evidence, trials[name], trials[best])
        differences = trials[best].values - trials[name].values
        near = behind.gain >= -min(_MOST_BEHIND, _MOST_ERRORS * evidence.units.standard_error(differences)) - 1e-9
        if not behind.is_distinguishable and (near or (name == "self_route" and evidence.few_questions)):
            level.append(name)
    return "self_route" if evidence.few_questions and "self_route" in level else min(level, key=lambda name: cost[name])


def _costs(figures: Mapping[Name, Figures]) -> Mapping[Name, float]:
    """Return what each strategy costs: dollars if all are known, else tokens."""
    dollars = {name: each.dollars for name, each in figures.items() if each.dollars is not None}
    return dollars if len(dollars) == len(figures) else {name: each.token_share for name, each in figures.items()}


def _break_even(evidence: Evidence) -> BreakEven:
    known = [row.answerable for row in evidence.rows if row.answerable is not None]
    own = known.count(False) / len(known) if len(known) == len(evidence.rows) else None
    gains: dict[bool, list[float]] = {True: [], False: []}
    rag, published = (evidence.trial(Rule(strategy)).values for strategy in ("rag", "self_route"))
    for row, before, after in zip(evidence.rows, rag, published, strict=True):
        if row.answerable is not None:
            gains[row.answerable].append(after - before)
    if not all(gains.values()):
        return BreakEven(share=None, own=own)
    with_answer, without = (fmean(gains[answerable]) for answerable in (True, False))
    if with_answer <= 0:
        return BreakEven(share=0.0, own=own)
    return BreakEven(share=with_answer / (with_answer - min(without, 0.0)), own=own)


def _routes(evidence: Evidence, rule: Rule) -> RouteMatrix:
    found = dict.fromkeys(((needed, escalated) for needed in (True, False) for escalated in (True, False)), 0)
    for row in evidence.rows:
        draft = row.graded if rule.strategy in GRADED and row.graded else row.rag
        worth, least = (value_of(look, row.answerable, evidence.price_of_wrong) for look in (row.long_context, draft))
        found[worth > least, bool(rule.follow(row).before) or rule.strategy == "long_context"] += 1
    return RouteMatrix(
        needed_escalated=found[True, True],
        needed_kept=found[True, False],
        idle_escalated=found[False, True],
        idle_kept=found[False, False],
    )
