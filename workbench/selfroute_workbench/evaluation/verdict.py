"""The verdict of an evaluation: what to do, in one sentence with its certainty."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from selfroute.calls.options import Sections
from selfroute.errors import ConfigurationError
from selfroute_workbench.evaluation.choosing import options_of
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
    """What to do, and how sure that is.

    Attributes:
        sentence: What to do, with the figures behind it.
        certainty: `"better"` if the recommended strategy is better than RAG alone, or RAG than the best other one: the
            95 % interval of the paired difference, documents resampled, excludes 0. Else `"no difference shown"`; and
            `"cannot tell"` where there is nothing to go by.
        strategy: What to take: the cheapest strategy that is level with the best, which means not distinguishable from
            it and not more than 3 points of 100 behind. None if that cannot be told.
        options: The options of a chain or an engine that follows it, as plain JSON; None without a strategy.
        figures: The figures of each strategy, on the questions that all of them finished.
        gains: How much better each strategy is than RAG alone.
    """

    sentence: str
    certainty: Certainty
    strategy: Strategy | None = None
    options: Mapping[str, Any] | None = None
    figures: Mapping[Strategy, Figures] = field(default_factory=dict)
    gains: Mapping[Strategy, Gain] = field(default_factory=dict)

    @property
    def lines(self) -> Sequence[str]:
        """The sentence, and below it the options to pass, if other options than the default are recommended."""
        if not self.options:
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
    return Verdict(f"Cannot tell which strategy is best: {why}.", "cannot tell")


def verdict(evaluation: Record) -> Verdict:
    """Return the verdict on an evaluation."""
    missing = [NAMES[name] for name in ("rag", "long_context") if name not in evaluation.strategies]
    if missing:
        return _cannot_tell(f"{' and '.join(missing)} was not among the strategies")
    if not evaluation.settings.get("language_model", True):
        return _cannot_tell("the built-in reader is not a language model; name one with --model")
    if not evaluation.compared:
        return _cannot_tell("no question was finished by every strategy")
    try:
        return verdict_of(evidence_of(evaluation), evaluation.rules, evaluation.sections)
    except ConfigurationError as error:
        return _cannot_tell(str(error))


def verdict_of(evidence: Evidence, rules: Mapping[Strategy, Rule], sections: Sections) -> Verdict:
    """Return the verdict on some strategies.

    Args:
        evidence: The questions.
        rules: The strategies with their bounds; RAG and the long context among them.
        sections: The tokens of their sections.
    """
    trials = {name: evidence.trial(rule) for name, rule in rules.items()}
    figures = {name: evidence.figures(trial) for name, trial in trials.items()}
    gains = {name: evidence.gain(trial, trials["rag"]) for name, trial in trials.items()}
    if evidence.few_questions or evidence.few_documents:
        why = (
            f"{counts_of(evidence)} are too few; ask at least {FEWEST_QUESTIONS} questions on at least "
            f"{FEWEST_DOCUMENTS} documents"
        )
        return replace(_cannot_tell(why), figures=figures, gains=gains)
    level = _level_with_the_best(evidence, trials)
    priced = all(each.dollars is not None for each in figures.values())
    taken = min(level, key=lambda name: (figures[name].dollars or 0.0) if priced else figures[name].token_share)
    if taken == "rag":
        other = max((name for name in trials if name != "rag"), key=lambda name: figures[name].quality)
        gain = evidence.gain(trials["rag"], trials[other])
        shown = f"is better by {gain}" if gain.is_distinguishable else "shows no difference"
        sentence = (
            f"Stay with RAG alone: {figures['rag']}. The best of the others, {NAMES[other]}, has {figures[other]}; RAG "
            f"{shown}."
        )
    else:
        gain = gains[taken]
        than_rag = "better than RAG alone by" if gain.is_distinguishable else "no difference from RAG shown,"
        whole = "" if taken == "long_context" else f"; the long context has {figures['long_context']}"
        sentence = f"Take {NAMES[taken]}: {figures[taken]}, {than_rag} {gain}{whole}."
    certainty: Certainty = "better" if gain.is_distinguishable else "no difference shown"
    options = {"start": "long_context"} if taken == "long_context" else options_of(rules[taken], sections)
    return Verdict(sentence, certainty, taken, options, figures, gains)


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
