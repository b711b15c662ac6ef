"""Say which strategy to take on the questions of an evaluation, and what that rests on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from selfroute.calls.settings import Sections
from selfroute.errors import ConfigurationError
from selfroute.evaluation.calibrating.calibrate import calibrate, counts_of, rule_of
from selfroute.evaluation.calibrating.choosing import cross_validated
from selfroute.evaluation.calibrating.evidence import PUBLISHED, Evidence, Trial
from selfroute.evaluation.calibrating.figures import figures_of, gain_of
from selfroute.evaluation.calibrating.rows import GRADED, Row, Rule, value_of
from selfroute.evaluation.records import SECTIONS
from selfroute.evaluation.sampling import Floats
from selfroute.policies.calibration import STRATEGIES, Calibration, Counts, Figures, Gain, Strategy

Name = Strategy | Literal["calibrated", "calibrated_for_quality"]
_BUDGETS: Mapping[Name, float | None] = {"calibrated": None, "calibrated_for_quality": 1.0}
_ROUTED: tuple[Name, ...] = ("self_route", "sections", "graded", "graded_sections")
_MOST_BEHIND = 0.03
_MOST_ERRORS = 1.8  # a little less than the interval, so that another bootstrap says the same
NAMES: tuple[Name, ...] = (*STRATEGIES[:-1], "calibrated", "calibrated_for_quality", "long_context")


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """Whether there are too many unanswerable questions for Self-Route to pay.

    Attributes:
        share: The share of unanswerable questions at which Self-Route is as good as RAG; below it, Self-Route is
            better. None if no question, or every question, is known to be unanswerable.
        low: The lower end of its 95 % interval; None if there is none.
        high: The upper end.
        own: Their share among these questions; None if it is not known of every question.
    """

    share: float | None
    low: float | None = None
    high: float | None = None
    own: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteMatrix:
    """How often a rule escalated where that was needed: where the long context's answer is better than the draft's.

    Attributes:
        needed_escalated: Needed the documents, and they were read (or sections of them were).
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
        sections: The tokens of its sections; None if it reads none.
        best: The strategy with the highest quality.
        figures: The figures of each strategy that was compared; those of a calibrated one are cross-validated by
            document.
        behind: How far each is from the best, question by question.
        counts: How much this rests on.
        calibrations: The calibration within Self-Route's tokens, and that for the highest quality.
        break_even: How many unanswerable questions Self-Route can bear.
        routes: How the routes were taken by the plain strategies with a choice, and by the recommended one.
        few_documents: Whether this says nothing about other documents.
    """

    strategy: Name
    rule: Rule
    sections: Sections
    best: Name
    figures: Mapping[Name, Figures]
    behind: Mapping[Name, Gain]
    counts: Counts
    calibrations: Mapping[Name, Calibration]
    break_even: BreakEven
    routes: Mapping[Name, RouteMatrix]
    few_documents: bool


def recommend(
    rows: Iterable[Row] | Evidence,
    *,
    price_of_wrong: float = 1.0,
    sections: Sections = SECTIONS,
    among: Collection[Name] = NAMES,
) -> Recommendation:
    """Recommend the cheapest strategy that is level with the best.

    Args:
        rows: The questions, judged.
        price_of_wrong: What a wrong answer costs; see `selfroute.evaluation.calibrating.rows.value_of`.
        sections: The tokens of the sections in these rows.
        among: The strategies to consider; those that were not tried are left out.

    Raises:
        ConfigurationError: There are no questions, or none of the strategies was tried on them.
    """
    evidence = rows if isinstance(rows, Evidence) else Evidence(rows, price_of_wrong=price_of_wrong)
    rules: dict[Name, Rule] = {rule.strategy: rule for rule in evidence.plain}
    trials: dict[Name, Trial] = {name: evidence.trial(rule) for name, rule in rules.items()}
    calibrations: dict[Name, Calibration] = {}
    for name, share in _BUDGETS.items():
        made = calibrate(evidence.rows, token_share=share, price_of_wrong=evidence.price_of_wrong, sections=sections)
        calibrations[name], rules[name] = made, rule_of(made)
        trials[name], _ = cross_validated(evidence, token_share=share)
    considered = [name for name in NAMES if name in among and name in trials]
    if not considered:
        msg = f"none of these strategies was run on the questions: {', '.join(sorted(among))}"
        raise ConfigurationError(msg)
    figures = {name: figures_of(evidence, trials[name]) for name in NAMES if name in trials}
    best = max(considered, key=lambda name: round(figures[name].quality, 12))
    strategy = _cheapest_level(evidence, trials, considered, _costs(figures), best)
    return Recommendation(
        strategy=strategy,
        rule=rules[strategy],
        sections=sections if rules[strategy].reads_sections else None,
        best=best,
        figures=figures,
        behind={name: gain_of(evidence, trials[name], trials[best]) for name in figures},
        counts=counts_of(evidence),
        calibrations=calibrations,
        break_even=_break_even(evidence),
        routes={name: _routes(evidence, rules[name]) for name in figures if name in (*_ROUTED, strategy)},
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
    answerable = [row.answerable for row in evidence.rows]
    own = answerable.count(False) / len(answerable) if None not in answerable else None
    kinds = [np.array([each is kind for each in answerable], dtype=float) for kind in (True, False)]
    if not all(kind.any() for kind in kinds):
        return BreakEven(share=None, own=own)
    gains = evidence.trial(PUBLISHED).values - evidence.trial(Rule("rag")).values
    share = _equal_at(*(np.array([(gains * kind).sum() / kind.sum()]) for kind in kinds))[0]
    if evidence.units.count < 2:  # noqa: PLR2004
        return BreakEven(share=float(share), own=own)
    sampled = [(evidence.units.means(gains * kind), evidence.units.means(kind)) for kind in kinds]
    both = np.logical_and.reduce([of_kind > 0 for _, of_kind in sampled])
    if not both.any():  # so few that no sample has questions of both kinds
        return BreakEven(share=float(share), own=own)
    low, high = np.quantile(_equal_at(*(sums[both] / of_kind[both] for sums, of_kind in sampled)), [0.025, 0.975])
    return BreakEven(share=float(share), low=float(min(low, share)), high=float(max(high, share)), own=own)


def _equal_at(with_answer: Floats, without: Floats) -> Floats:
    """Return the shares of unanswerable questions at which the gains on both kinds of questions add up to nothing."""
    lost = with_answer - np.minimum(without, 0.0)
    return np.where(with_answer <= 0, 0.0, with_answer / np.where(lost > 0, lost, 1.0))


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
