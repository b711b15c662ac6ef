"""The figures of one strategy, and of two compared question by question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from selfroute.calls.settings import Sections
from selfroute.evaluation.calibrating.evidence import Evidence, Trial
from selfroute.evaluation.calibrating.rows import Rule
from selfroute.evaluation.sampling import Floats
from selfroute.policies.calibration import Figures, Gain


@dataclass(frozen=True, slots=True)
class Point:
    """A rule with its figures: a point of the frontier.

    Attributes:
        rule: The strategy and its bounds.
        sections: The tokens of its sections; None if it reads none.
        k: The passages of its draft; None if that was not varied, or it has no draft.
        figures: What it brings, on the very questions: bounds that were picked by these figures look too good.
        efficient: Whether no other point is better for the same or less (dollars where known, else tokens).
    """

    rule: Rule
    sections: Sections
    k: int | None
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


def frontier_of(tried: Mapping[int | None, Evidence], *, sections: Sections) -> list[Point]:
    """Return every rule that was tried with its figures, the cheapest first.

    Args:
        tried: The questions, for each number of passages that a draft had.
        sections: The tokens of the sections.
    """
    found: dict[tuple[Rule, int | None], Figures] = {}
    for k, evidence in tried.items():
        for rule in dict.fromkeys([*evidence.plain, *evidence.rules]):
            place = rule, None if rule.strategy == "long_context" else k
            found.setdefault(place, figures_of(evidence, evidence.trial(rule)))
    priced = all(figures.dollars is not None for figures in found.values())
    costs = {place: (each.dollars or 0.0) if priced else each.token_share for place, each in found.items()}
    points, best = [], float("-inf")
    for rule, k in sorted(found, key=lambda place: (costs[place], -found[place].quality)):
        quality = round(found[rule, k].quality, 12)
        points.append(Point(rule, sections if rule.reads_sections else None, k, found[rule, k], quality > best))
        best = max(best, quality)
    return points


def _mean(values: Floats | None) -> float | None:
    return None if values is None else float(values.mean())
