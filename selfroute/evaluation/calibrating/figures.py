"""The figures of one strategy, and of two compared question by question."""

from __future__ import annotations

from dataclasses import dataclass

from selfroute.evaluation.calibrating.evidence import Evidence, Trial
from selfroute.evaluation.calibrating.rows import Rule
from selfroute.evaluation.sampling import Floats
from selfroute.policies.calibration import Figures, Gain


@dataclass(frozen=True, slots=True)
class Point:
    """A rule with its figures: a point of the frontier.

    Attributes:
        rule: The strategy and its bounds.
        width: The passages of its wider look; None if it has none.
        figures: What it brings, on the very questions: bounds that were picked by these figures look too good.
        efficient: Whether no other point is better for the same or less (dollars where known, else tokens).
    """

    rule: Rule
    width: int | None
    figures: Figures
    efficient: bool


def figures_of(evidence: Evidence, trial: Trial) -> Figures:
    """Return the figures of a trial."""
    low, high = evidence.units.interval(trial.values) or (None, None)
    return Figures(float(trial.values.mean()), low, high, evidence.share(trial), _mean(trial.dollars))


def gain_of(evidence: Evidence, trial: Trial, over: Trial) -> Gain:
    """Compare two trials, question by question."""
    differences = trial.values - over.values
    low, high = evidence.units.interval(differences) or (None, None)
    dollars, others = _mean(trial.dollars), _mean(over.dollars)
    return Gain(
        float(differences.mean()),
        low,
        high,
        evidence.share(trial) - evidence.share(over),
        None if dollars is None or others is None else dollars - others,
    )


def frontier_of(evidence: Evidence, *, width: int) -> list[Point]:
    """Return every rule that was tried with its figures, the cheapest first."""
    found = {
        rule: figures_of(evidence, evidence.trial(rule)) for rule in dict.fromkeys([*evidence.plain, *evidence.rules])
    }
    priced = all(figures.dollars is not None for figures in found.values())
    costs = {rule: (each.dollars or 0.0) if priced else each.token_share for rule, each in found.items()}
    ordered = sorted(found, key=lambda rule: (costs[rule], -found[rule].quality))
    points, best = [], float("-inf")
    for rule in ordered:
        quality = round(found[rule].quality, 12)
        points.append(Point(rule, width if rule.widens else None, found[rule], quality > best))
        best = max(best, quality)
    return points


def _mean(values: Floats | None) -> float | None:
    return None if values is None else float(values.mean())
