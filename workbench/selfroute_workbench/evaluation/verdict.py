"""The verdict of an evaluation: what yours costs and brings beside the others, and what to take."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from selfroute.errors import ConfigurationError
from selfroute_workbench.evaluation.looks import NAMES, Strategy
from selfroute_workbench.evaluation.record import Record
from selfroute_workbench.evaluation.replay import Rule
from selfroute_workbench.evaluation.statistics import FEWEST_DOCUMENTS, FEWEST_QUESTIONS
from selfroute_workbench.evaluation.trials import Evidence, Figures, Gain, Trial, counts_of, evidence_of

Certainty = Literal["better", "no difference shown", "cannot tell"]
_MOST_BEHIND = 0.03
_MOST_ERRORS = 1.8  # a little less than the interval, so that another bootstrap says the same


@dataclass(frozen=True, slots=True)
class Verdict:
    """What yours costs and brings, what to take, and how sure that is.

    Attributes:
        sentence: The figures, and what to take, in a few sentences.
        certainty: `"better"` if the recommended strategy is better than RAG alone, or RAG than yours: the 95 % interval
            of the paired difference, documents resampled, excludes 0. Else `"no difference shown"`; and
            `"cannot tell"` where there is nothing to go by.
        strategy: What to take: the cheapest strategy that is level with the best, which means not distinguishable from
            it and not more than 3 points of 100 behind. None if that cannot be told.
        options: The options of a chain or an engine that follows it, as plain JSON; None without a strategy.
        figures: The figures of each strategy, on the questions that all of them finished.
        gains: How much better yours is than each of the others.
    """

    sentence: str
    certainty: Certainty
    strategy: Strategy | None = None
    options: Mapping[str, Any] | None = None
    figures: Mapping[Strategy, Figures] = field(default_factory=dict)
    gains: Mapping[Strategy, Gain] = field(default_factory=dict)

    @property
    def lines(self) -> Sequence[str]:
        """The sentences, and below them the options to pass, if another strategy than yours is recommended."""
        if self.strategy in (None, "yours"):
            return (self.sentence,)
        return self.sentence, f"Options: {json.dumps(self.options)}"

    def __str__(self) -> str:
        """Return the lines."""
        return "\n".join(self.lines)

    def data(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {**asdict(self), "options": None if self.options is None else dict(self.options)}


def _cannot_tell(why: str) -> Verdict:
    """Return the verdict where there is nothing to go by."""
    return Verdict(f"Cannot tell whether yours pays: {why}.", "cannot tell")


def verdict(evaluation: Record) -> Verdict:
    """Return the verdict on an evaluation."""
    if not evaluation.settings.get("language_model", True):
        return _cannot_tell("the built-in reader is not a language model; name one with --model")
    if not evaluation.compared:
        return _cannot_tell("no question was finished by every strategy")
    try:
        return verdict_of(evidence_of(evaluation), evaluation.settings.get("options", {}))
    except ConfigurationError as error:
        return _cannot_tell(str(error))


def verdict_of(evidence: Evidence, given: Mapping[str, Mapping[str, Any]]) -> Verdict:
    """Return the verdict on some questions, given the options of the strategies."""
    trials = {name: evidence.trial(Rule(name)) for name in evidence.strategies}
    figures = {name: evidence.figures(trial) for name, trial in trials.items()}
    gains: dict[Strategy, Gain] = {
        name: evidence.gain(trials["yours"], trial) for name, trial in trials.items() if name != "yours"
    }
    told = _told(figures, gains)
    if evidence.few_questions or evidence.few_documents:
        why = (
            f"{counts_of(evidence)} are too few; ask at least {FEWEST_QUESTIONS} questions on at least "
            f"{FEWEST_DOCUMENTS} documents"
        )
        sentence = f"{_cannot_tell(why).sentence} {told}"
        return Verdict(sentence, "cannot tell", figures=figures, gains=gains)
    priced = all(each.dollars is not None for each in figures.values())
    costs = {name: (each.dollars or 0.0) if priced else each.token_share for name, each in figures.items()}
    taken = min(_level_with_the_best(evidence, trials), key=lambda name: costs[name])
    is_told_from_rag = gains["rag"].is_distinguishable
    if taken == "yours" and is_told_from_rag and gains["rag"].gain > 0:
        advice = "It pays: nothing that costs less is level with it."
    elif taken == "yours":
        advice = "Nothing that costs less is level with it."
    else:
        shown = gains[taken].is_distinguishable
        less = costs[taken] < costs["yours"]
        brings = "is better" if shown and gains[taken].gain < 0 else "is as good" if less else "may be better"
        pays = "It does not pay here" if less else "It is not enough here"
        advice = f"{pays}: {NAMES[taken]} {brings} for {'less' if less else 'more'}, {figures[taken]}."
    if taken != "rag" and not is_told_from_rag:
        advice += " The intervals do not tell yours from RAG."
    than_rag = gains["rag"] if taken in ("rag", "yours") else evidence.gain(trials[taken], trials["rag"])
    certainty: Certainty = "better" if than_rag.is_distinguishable else "no difference shown"
    return Verdict(f"{told} {advice}", certainty, taken, given.get(taken, {}), figures, gains)


def _told(figures: Mapping[Strategy, Figures], gains: Mapping[Strategy, Gain]) -> str:
    """Return what yours costs and brings, in a sentence."""
    yours, rag = figures["yours"], figures["rag"]
    factor = f", {yours.token_share / rag.token_share:.1f} times RAG's" if rag.token_share else ""
    if yours.dollars is not None and rag.dollars is not None:
        factor += f" (${1000 * yours.dollars:.2f} for 1,000 questions, RAG ${1000 * rag.dollars:.2f})"
    over = ", ".join(f"{gain} over {NAMES[name]}" for name, gain in gains.items() if name != "paper")
    return f"Yours: {yours}{factor}; {over}."


def _level_with_the_best(evidence: Evidence, trials: Mapping[Strategy, Trial]) -> list[Strategy]:
    """Return the strategies that are neither distinguishable from the best nor too far behind it."""
    best = max(trials.values(), key=lambda trial: round(float(trial.values.mean()), 12))
    level = []
    for name, trial in trials.items():
        behind = evidence.gain(trial, best)
        most_behind = min(_MOST_BEHIND, _MOST_ERRORS * evidence.units.standard_error(best.values - trial.values))
        if not behind.is_distinguishable and behind.gain >= -most_behind - 1e-9:
            level.append(name)
    return level
