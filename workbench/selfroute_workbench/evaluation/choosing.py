"""Choose options by judged looks, and say what they bring on documents that did not take part in the choice."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from selfroute.errors import ConfigurationError
from selfroute_workbench.evaluation.looks import NAMES, TRIED, Strategy
from selfroute_workbench.evaluation.record import Record
from selfroute_workbench.evaluation.replay import Rule
from selfroute_workbench.evaluation.statistics import FEWEST_DOCUMENTS, FEWEST_QUESTIONS, Floats, Units
from selfroute_workbench.evaluation.trials import USUAL, YOURS, Evidence, Figures, Gain, Trial, counts_of, evidence_of

OptionsOf = Mapping[Strategy, Mapping[str, Any]]
"""The options of each strategy, as plain JSON."""
WORTH_OF_A_DOCUMENT = 0.05
"""Reading a document of mean length must raise the quality of that question by so much (5 points of 100) to pay."""
_MOST_FOLDS = 50
_CLEARLY, _SLIGHTLY = 2.0, 1.0  # standard errors
_ROUNDING = 1e-9


class Options(dict[str, Any]):
    """Options of a chain or an engine, as plain JSON: `SelfRouteChain.from_vectorstore(store, llm, **options)`.

    `{}` is the default setting.

    Attributes:
        rule: What follows them.
        figures: What it brings on documents that did not take part in the choice.
        gains: How much better that is than each strategy that was run.
        counts: How many questions and documents it rests on, in words.
        notes: Its limits, in sentences.
    """

    rule: Rule
    figures: Figures
    gains: Mapping[Strategy, Gain]
    counts: str
    notes: Sequence[str]

    @property
    def lines(self) -> Sequence[str]:
        """What they bring and what limits the choice, in sentences."""
        gains = (
            f"{gain} over {NAMES[other]}{'' if gain.is_distinguishable else ', no difference shown'}, for "
            f"{100 * gain.token_share:+.1f} % of the tokens."
            for other, gain in self.gains.items()
            if other in ("yours", "rag", "long_context")
        )
        name = "" if self.rule.strategy == TRIED else f"{NAMES[self.rule.strategy]}: "
        return (
            f"{name}{json.dumps(self)}",
            f"On {self.counts}, each tested without its document: quality {self.figures}.",
            *gains,
            *self.notes,
        )


def options_of(rule: Rule, given: OptionsOf) -> dict[str, Any]:
    """Return the options of a chain or an engine that follows a rule, as plain JSON."""
    options = dict(given.get(rule.strategy, {}))
    if rule.strategy != TRIED:
        return options
    if not rule.documents:
        options["max_documents"] = 0
    for name in ("doubt_below", "stop_below"):
        if (below := getattr(rule, name)) != getattr(USUAL[0], name):
            options[name] = below[0] if len(set(below)) == 1 else list(below)
    return options


def choose_options(evidence: Evidence, given: OptionsOf, *, token_share: float | None = None) -> Options:
    """Choose the bounds of draft, sections and stop, or another strategy that was run.

    Args:
        evidence: The questions.
        given: The options of the strategies.
        token_share: As in `Evaluation.options`.

    Raises:
        ConfigurationError: A value is not valid.
    """
    if token_share is not None and not 0 < token_share <= 1:
        msg = f"token_share is a share of the long context's tokens, above 0 and at most 1; it is {token_share!r}"
        raise ConfigurationError(msg)
    rule = choose(evidence, range(len(evidence.cases)), token_share=token_share)
    trial, chosen = cross_validated(evidence, token_share=token_share)
    options = Options(options_of(rule, given))
    options.rule, options.figures = rule, evidence.figures(trial)
    options.gains = {name: evidence.gain(trial, evidence.trial(Rule(name))) for name in evidence.strategies}
    options.counts = counts_of(evidence)
    over_budget = () if token_share is None else _over_budget(evidence, rule, token_share)
    options.notes = (*over_budget, *_notes(evidence, chosen, rule))
    return options


def options_for(evaluation: Record, token_share: float | None = None) -> Options:
    """Choose options by an evaluation; as `choose_options`."""
    evidence = evidence_of(evaluation, evaluation.questions)
    return choose_options(evidence, evaluation.settings.get("options", {}), token_share=token_share)


def advice_of(evaluation: Record) -> Options | None:
    """Return the options that would do better than yours; None if none would, or there are too few questions."""
    try:
        few = evidence_of(evaluation, evaluation.questions).few_questions
        options = None if few or not evaluation.settings.get("language_model", True) else options_for(evaluation)
    except ConfigurationError:
        return None
    return None if options is None or options.rule == YOURS else options


def _over_budget(evidence: Evidence, rule: Rule, token_share: float) -> Iterator[str]:
    share = evidence.share(evidence.trial(rule))
    if share > token_share:
        yield (
            f"No rule stays within {100 * token_share:.0f} % of the long context's tokens. This is the cheapest, with "
            f"{100 * share:.0f} %."
        )


def _notes(evidence: Evidence, chosen: Mapping[Rule, int], rule: Rule) -> Iterator[str]:
    """Yield what limits a choice."""
    if evidence.few_questions:
        yield f"Fewer than {FEWEST_QUESTIONS} questions are too few for a choice: yours stay, unless over the budget."
    elif evidence.few_documents:
        yield (
            f"Fewer than {FEWEST_DOCUMENTS} documents: this holds on these documents and says nothing about others; "
            "bounds were not tuned."
        )
    if not any(case.answerable is False for case in evidence.cases):
        yield "No question is known to be unanswerable. If some of yours are, reading more pays less than it does here."
    some = sum(TRIED not in case.looks for case in evidence.cases)
    if 0 < some < len(evidence.cases):
        yield f"Other bounds were not considered: they were not tried on {some:,} of the questions."
    if len(chosen) > 1:
        yield f"The choice is not stable: {chosen.get(rule, 0)} of {sum(chosen.values())} folds chose the same rule."


def choose(evidence: Evidence, among: Collection[int], *, token_share: float | None = None) -> Rule:
    """Choose a rule by some of the questions.

    Yours stay unless something is better: first what was run, or the default bounds, by one standard error; then bounds
    of their own, by two over that, and within the budget with one to spare, so that chance does not set them. Below ten
    documents bounds are not tuned; below 50 questions yours stay in any case.

    Args:
        evidence: All questions; how many there are decides on how much is tried.
        among: The numbers of the questions to choose by.
        token_share: The budget, as a share of the long context's tokens, in which the highest quality is looked for.
            None for no budget, and then a rule must be worth what it reads (see `WORTH_OF_A_DOCUMENT`).

    Returns:
        The rule; the one with the fewest tokens if none fits the budget.
    """
    compared = _Sample(evidence, sorted(among), token_share)
    fitting = [rule for rule in evidence.simple if compared.fits(rule)]
    if not fitting:
        return min([*evidence.simple, *evidence.tuned], key=compared.share)
    simple = compared.best(fitting)
    if YOURS in fitting and (evidence.few_questions or not compared.is_better(simple, YOURS, by=_SLIGHTLY)):
        simple = YOURS
    if evidence.few_questions or evidence.few_documents:
        return simple
    tuned = [rule for rule in evidence.tuned if compared.is_better(rule, simple, by=_CLEARLY)]
    return compared.best([rule for rule in tuned if compared.fits(rule, to_spare=1.0)] or [simple])


class _Sample:
    """The rules on the questions to choose by."""

    def __init__(self, evidence: Evidence, among: Sequence[int], token_share: float | None) -> None:
        self._evidence, self._among = evidence, np.array(among, dtype=np.intp)
        self._units = Units([evidence.cases[number].document for number in among])
        whole = self._tokens(Rule("long_context"))
        self._whole = float(whole.sum()) or 1.0
        self._nets: dict[Rule, Floats] = {}
        self._worth = WORTH_OF_A_DOCUMENT if token_share is None else 0.0
        self._budget = None if token_share is None else token_share * whole

    def share(self, rule: Rule) -> float:
        return float(self._tokens(rule).sum()) / self._whole

    def fits(self, rule: Rule, *, to_spare: float = 0.0) -> bool:
        """Return whether a rule fits the budget, with some standard errors to spare."""
        if self._budget is None:
            return True
        over = self._tokens(rule) - self._budget
        spare = to_spare * self._units.standard_error(over) if to_spare else 0.0
        return float(over.mean()) + spare <= _ROUNDING * self._whole

    def best(self, rules: Sequence[Rule]) -> Rule:
        """Return the best rule; of those that tie, the one with fewer tokens, then the first."""
        return max(rules, key=lambda rule: (round(float(self._net(rule).mean()), 9), -self.share(rule)))

    def is_better(self, first: Rule, second: Rule, *, by: float) -> bool:
        gains = self._net(first) - self._net(second)
        gain = float(gains.mean())
        return gain > _ROUNDING and gain >= by * self._units.standard_error(gains)

    def _tokens(self, rule: Rule) -> Floats:
        return self._evidence.trial(rule).tokens[self._among]

    def _net(self, rule: Rule) -> Floats:
        """Return the value of each answer less the worth of what was read for it."""
        if rule not in self._nets:
            rate = self._worth * len(self._among) / self._whole
            self._nets[rule] = self._evidence.trial(rule).values[self._among] - rate * self._tokens(rule)
        return self._nets[rule]


def cross_validated(evidence: Evidence, *, token_share: float | None = None) -> tuple[Trial, Mapping[Rule, int]]:
    """Choose for each document by the others, and return what the choices bring together.

    With one document, its questions are tested by turns; with one question nothing is tested.

    Returns:
        The trial, and how many folds chose each rule.
    """
    values, tokens, dollars = (np.zeros(len(evidence.cases)) for _ in range(3))
    chosen = defaultdict[Rule, int](int)
    for tested in _folds(evidence.by_document):
        left_out = set(tested)
        rest = [number for number in range(len(evidence.cases)) if number not in left_out]
        rule = choose(evidence, rest or tested, token_share=token_share)
        chosen[rule] += 1
        trial = evidence.trial(rule)
        values[tested], tokens[tested] = trial.values[tested], trial.tokens[tested]
        dollars[tested] = trial.dollars[tested]
    return Trial(values, tokens, dollars), chosen


def _folds(by_document: Mapping[str, Sequence[int]]) -> Iterator[Sequence[int]]:
    """Yield the questions of each fold: a document each, or ten folds of many documents, about equally large."""
    if len(by_document) == 1:
        (by_document,) = ({str(number): [number] for number in found} for found in by_document.values())
    if len(by_document) <= _MOST_FOLDS:
        yield from by_document.values()
        return
    folds: list[list[int]] = [[] for _ in range(10)]
    for document in sorted(by_document, key=lambda name: (-len(by_document[name]), name)):
        min(folds, key=len).extend(by_document[document])
    yield from folds
