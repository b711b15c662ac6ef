"""Choose a rule by its quality and tokens on some questions, and test the choice on documents that it did not see."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from selfroute.errors import ConfigurationError
from selfroute.policies.rows import DOUBT_BELOW, GRADED, STOP_BELOW, STRATEGIES, Row, Rule, Strategy, value_of
from selfroute.policies.sampling import FEWEST_DOCUMENTS, Units

FEWEST_QUESTIONS = 50
WORTH_OF_A_DOCUMENT = 0.05
"""Reading a document of mean length must raise the quality of that question by so much (5 points of 100) to pay."""

_DOUBTS = (0, 30, 40, 50, 60, 70, 90)
_STOPS = (0, 10, 20, 30)
_MOST_FOLDS = 50
_CLEARLY, _SLIGHTLY = 2.0, 1.0  # standard errors
_PUBLISHED = Rule("self_route")


@dataclass(frozen=True, slots=True)
class Trial:
    """What one rule brought, question by question.

    Attributes:
        values: The value of each answer; with wrong answers at a price of 1, its quality.
        tokens: The tokens of all steps that ran.
        dollars: What they cost; None if a price is not known.
    """

    values: Sequence[float]
    tokens: Sequence[float]
    dollars: Sequence[float] | None


class Evidence:
    """The questions to choose by, and what each rule brings on them.

    Args:
        rows: The questions.
        price_of_wrong: What a wrong answer costs; see `selfroute.policies.rows.value_of`.

    Raises:
        ConfigurationError: There are no questions, the documents have no tokens, or the price is below 0.
    """

    def __init__(self, rows: Iterable[Row], *, price_of_wrong: float = 1.0) -> None:
        self.rows = list(rows)
        if not self.rows:
            msg = "there is no question to choose by: evaluate rag, self_route and long_context on some questions first"
            raise ConfigurationError(msg)
        if not 0 <= price_of_wrong < float("inf"):
            msg = f"price_of_wrong is 0 or more; it is {price_of_wrong}"
            raise ConfigurationError(msg)
        self.price_of_wrong = price_of_wrong
        self.units = Units([row.document for row in self.rows])
        self.whole_tokens = sum(row.long_context.tokens for row in self.rows)
        if not self.whole_tokens:
            msg = "the long context has no tokens: token shares need those of the whole documents"
            raise ConfigurationError(msg)
        self._trials: dict[Rule, Trial] = {}

    @cached_property
    def by_document(self) -> Mapping[str, Sequence[int]]:
        """The numbers of each document's questions."""
        found: dict[str, list[int]] = {}
        for number, row in enumerate(self.rows):
            found.setdefault(row.document, []).append(number)
        return found

    @property
    def few_documents(self) -> bool:
        """Whether there are too few documents to say anything about others."""
        return len(self.by_document) < FEWEST_DOCUMENTS

    @property
    def few_questions(self) -> bool:
        """Whether there are too few questions to choose by."""
        return len(self.rows) < FEWEST_QUESTIONS

    @cached_property
    def strategies(self) -> Sequence[Strategy]:
        """The strategies that were tried on these questions."""
        graded = all(row.graded for row in self.rows)
        tried = {
            "wider": any(row.wider for row in self.rows),
            "graded": graded,
            "graded_wider": graded and any(row.graded_wider for row in self.rows),
        }
        return [strategy for strategy in STRATEGIES if tried.get(strategy, True)]

    @property
    def plain(self) -> Sequence[Rule]:
        """The strategies with the default bounds, those that are simpler first."""
        return [_default(strategy) for strategy in self.strategies]

    @cached_property
    def rules(self) -> Sequence[Rule]:
        """All rules to choose from; those with the default bounds come first, and the long context is none of them."""
        tuned = [
            Rule(strategy, doubt, stop)
            for strategy in self.strategies
            if strategy in GRADED
            for doubt in _DOUBTS
            for stop in _STOPS
        ]
        # the published rule wins ties
        first = [_PUBLISHED, *(rule for rule in self.plain if rule.strategy not in ("long_context", "self_route"))]
        return list(dict.fromkeys([*first, *tuned]))

    def trial(self, rule: Rule) -> Trial:
        """Return what a rule brings."""
        if rule not in self._trials:
            outcomes = [rule.follow(row) for row in self.rows]
            dollars = [outcome.dollars for outcome in outcomes]
            known = [each for each in dollars if each is not None]
            self._trials[rule] = Trial(
                [
                    value_of(outcome.shown, row.answerable, self.price_of_wrong)
                    for outcome, row in zip(outcomes, self.rows, strict=True)
                ],
                [outcome.tokens for outcome in outcomes],
                known if len(known) == len(dollars) else None,
            )
        return self._trials[rule]

    def share(self, trial: Trial) -> float:
        """Return the tokens of a trial as a share of the long context's."""
        return sum(trial.tokens) / self.whole_tokens


def choose(evidence: Evidence, among: Collection[int], *, token_share: float | None = None) -> Rule:
    """Choose a rule by some of the questions.

    Of the rules with the default bounds the best one that fits the budget is taken. Other bounds replace it only if
    they are better by two standard errors and fit the budget with one to spare, so that chance does not set them. Below
    ten documents bounds are not tuned, and the published rule stays unless another is better by one standard error;
    below 50 questions it stays in any case.

    Args:
        evidence: All questions; how many there are decides on how much is tried.
        among: The numbers of the questions to choose by.
        token_share: The budget, as a share of the long context's tokens, in which the highest quality is looked for.
            None for the tokens of Self-Route as published, and then a rule must also be worth what it reads (see
            `WORTH_OF_A_DOCUMENT`).

    Returns:
        The rule; the one with the fewest tokens if none fits the budget.
    """
    compared = _Compared(evidence, sorted(among), token_share)
    fitting = [rule for rule in evidence.rules if rule.is_default and compared.fits(rule)]
    if not fitting:
        return min(evidence.rules, key=compared.share)
    simple = compared.best(fitting)
    if not (evidence.few_questions or evidence.few_documents):
        tuned = [rule for rule in evidence.rules if compared.is_better(rule, simple, by=_CLEARLY)]
        return compared.best([rule for rule in tuned if compared.fits(rule, to_spare=1.0)] or [simple])
    keep = evidence.few_questions or not compared.is_better(simple, _PUBLISHED, by=_SLIGHTLY)
    return _PUBLISHED if keep and compared.fits(_PUBLISHED) else simple


class _Compared:
    """The rules on the questions to choose by."""

    def __init__(self, evidence: Evidence, among: Sequence[int], token_share: float | None) -> None:
        self._evidence, self._among = evidence, among
        self._units = Units([evidence.rows[number].document for number in among])
        self._whole = sum(evidence.rows[number].long_context.tokens for number in among) or 1.0
        self._worth = WORTH_OF_A_DOCUMENT if token_share is None else 0.0
        whole = [evidence.rows[number].long_context.tokens for number in among]
        published = [evidence.trial(_PUBLISHED).tokens[number] for number in among]
        self._budget = published if token_share is None else [token_share * each for each in whole]

    def share(self, rule: Rule) -> float:
        tokens = self._evidence.trial(rule).tokens
        return sum(tokens[number] for number in self._among) / self._whole

    def fits(self, rule: Rule, *, to_spare: float = 0.0) -> bool:
        """Return whether a rule fits the budget, with some standard errors to spare."""
        tokens = self._evidence.trial(rule).tokens
        over = [tokens[number] - most for number, most in zip(self._among, self._budget, strict=True)]
        spare = to_spare * self._units.standard_error(over) if to_spare else 0.0
        return self._units.mean(over) + spare <= 1e-9 * self._whole

    def best(self, rules: Sequence[Rule]) -> Rule:
        """Return the best rule; of those that tie, the one with fewer tokens, then the first."""
        return max(rules, key=lambda rule: (round(self._units.mean(self._net(rule)), 9), -self.share(rule)))

    def is_better(self, first: Rule, second: Rule, *, by: float) -> bool:
        gains = [a - b for a, b in zip(self._net(first), self._net(second), strict=True)]
        gain = self._units.mean(gains)
        return gain > 1e-9 and gain >= by * self._units.standard_error(gains)

    def _net(self, rule: Rule) -> list[float]:
        """Return the value of each answer less the worth of what was read for it."""
        trial, mean = self._evidence.trial(rule), self._whole / len(self._among)
        return [trial.values[number] - self._worth * trial.tokens[number] / mean for number in self._among]


def cross_validated(evidence: Evidence, *, token_share: float | None = None) -> tuple[Trial, Mapping[Rule, int]]:
    """Choose for each document by the others, and return what the choices bring together.

    With one document, its questions are tested by turns.

    Returns:
        The trial, and how many folds chose each rule.
    """
    values, tokens, dollars = ([0.0] * len(evidence.rows) for _ in range(3))
    chosen: dict[Rule, int] = {}
    priced = True
    for tested in _folds(evidence.by_document):
        left_out = set(tested)
        rest = [number for number in range(len(evidence.rows)) if number not in left_out]
        rule = choose(evidence, rest, token_share=token_share)
        chosen[rule] = chosen.get(rule, 0) + 1
        trial = evidence.trial(rule)
        priced = priced and trial.dollars is not None
        for number in tested:
            values[number], tokens[number] = trial.values[number], trial.tokens[number]
            dollars[number] = trial.dollars[number] if trial.dollars else 0.0
    return Trial(values, tokens, dollars if priced else None), chosen


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


def _default(strategy: Strategy) -> Rule:
    return Rule(strategy, DOUBT_BELOW, STOP_BELOW) if strategy in GRADED else Rule(strategy)
