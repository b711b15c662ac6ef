"""The figures of one strategy, and of two compared question by question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from selfroute.policies.evidence import Evidence, Trial
from selfroute.policies.rows import Rule


@dataclass(frozen=True, slots=True)
class Figures:
    """What a strategy brings.

    Attributes:
        quality: The mean value of its answers; with wrong answers at a price of 1, their mean quality, from 0 to 1.
        low: The lower end of its 95 % interval; None if there is none.
        high: The upper end.
        token_share: Its tokens as a share of the long context's.
        dollars: What a question costs on average; None if a price is not known.
    """

    quality: float
    low: float | None
    high: float | None
    token_share: float
    dollars: float | None

    def __str__(self) -> str:
        """Return them in words: "85.4 for 42 % of the tokens"."""
        dollars = f" ({dollars_text(self.dollars)} a question)" if self.dollars is not None else ""
        return f"{100 * self.quality:.1f} for {100 * self.token_share:.0f} % of the tokens{dollars}"


@dataclass(frozen=True, slots=True)
class Gain:
    """How much better one strategy is than another on the same questions.

    Attributes:
        gain: The mean difference of the values, from -1 to 1 where wrong answers have a price of 1.
        low: The lower end of its 95 % interval; None if all differences are equal, or there is one unit.
        high: The upper end.
        token_share: How many tokens more it needs, as a share of the long context's.
        dollars: How many dollars more a question costs on average; None if a price is not known.
    """

    gain: float
    low: float | None
    high: float | None
    token_share: float
    dollars: float | None

    @property
    def is_distinguishable(self) -> bool:
        """Whether the interval excludes 0."""
        low, high = (self.gain if end is None else end for end in (self.low, self.high))
        return low > 0 or high < 0

    def __str__(self) -> str:
        """Return the gain in points with its interval: "+4.9 [+1.2, +9.3]"."""
        between = "" if self.low is None or self.high is None else f" [{100 * self.low:+.1f}, {100 * self.high:+.1f}]"
        return f"{100 * self.gain:+.1f}{between}"


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
    return Figures(evidence.units.mean(trial.values), low, high, evidence.share(trial), _mean(trial.dollars))


def gain_of(evidence: Evidence, trial: Trial, over: Trial) -> Gain:
    """Compare two trials, question by question."""
    differences = [a - b for a, b in zip(trial.values, over.values, strict=True)]
    low, high = evidence.units.interval(differences) or (None, None)
    dollars, others = _mean(trial.dollars), _mean(over.dollars)
    return Gain(
        evidence.units.mean(differences),
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


def dollars_text(dollars: float) -> str:
    """Return an amount with three significant digits: "$0.00213"."""
    return f"${dollars:.3g}" if dollars >= 1e-4 else f"${dollars:.2e}"  # noqa: PLR2004


def _mean(values: Sequence[float] | None) -> float | None:
    return sum(values) / len(values) if values else None
