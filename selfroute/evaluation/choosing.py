"""Choose options by judged looks, and say what they bring on documents that did not take part in the choice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import isnan
from numbers import Real
from typing import Any

import numpy as np

from selfroute.calls.settings import DOUBT_BELOW, STOP_BELOW, Sections
from selfroute.errors import ConfigurationError
from selfroute.evaluation.judging import answers_of, decline_is_right
from selfroute.evaluation.looks import MOST_DOUBT, STRATEGIES, Look, Measure, Step, Strategy, by_question
from selfroute.evaluation.questions import Question
from selfroute.evaluation.replay import GRADED, WITH_SECTIONS, Rule
from selfroute.evaluation.statistics import FEWEST_DOCUMENTS, FEWEST_QUESTIONS, Floats, Units

WORTH_OF_A_DOCUMENT = 0.05
"""Reading a document of mean length must raise the quality of that question by so much (5 points of 100) to pay."""
PUBLISHED = Rule("self_route")
_DOUBTS, _STOPS = (0, 30, 40, 50, 60, 70, MOST_DOUBT), (0, 10, 20, 30)
_MOST_FOLDS = 50
_CLEARLY, _SLIGHTLY = 2.0, 1.0  # standard errors
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class GradedLook:
    """The reply of one step to one question, with what it is worth.

    Attributes:
        quality: How good it is, from 0 to 1; a decline is 1 if the documents do not hold the answer, else 0.
        tokens: The tokens of this step alone.
        declined: Whether it declines.
        prospect: As in `selfroute.evaluation.looks.Look`.
        confidence: As in `selfroute.evaluation.looks.Look`.
        dollars: What this step alone costs; None if that is not known.
    """

    quality: float
    tokens: float
    declined: bool = False
    prospect: float | None = None
    confidence: float | None = None
    dollars: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One question with the replies of all steps that were tried.

    Attributes:
        document: The id of its document. Documents that share text should share an id: rows with one id are never split
            between choosing and testing.
        looks: The replies of each step; several for sections that were read more than once.
        answerable: Whether the documents hold the answer; None if that is not known.
    """

    document: str
    looks: Mapping[Step, Sequence[GradedLook]]
    answerable: bool | None = None


def rows_of(questions: Iterable[Question], looks: Iterable[Look], *, measure: Measure) -> list[Row]:
    """Return the questions that have a plain draft, a reply to the documents, and all grades.

    Args:
        questions: The questions.
        looks: The looks at them.
        measure: Whether quality is what the judge says, or the questions' own metric.
    """
    found, rows = by_question(looks), []
    for question in questions:
        graded = {step: [_graded(look, measure) for look in of] for step, of in found.get(question.key, {}).items()}
        whole = {step: [look for look in of if look] for step, of in graded.items() if None not in of}
        if {"rag", "long_context"} <= whole.keys() and len(whole) == len(graded):
            # Some of the references may say that there is no answer, as those of Qasper do; then it is not known.
            known = not (answers_of(question) and decline_is_right(question))
            rows.append(Row(question.document_id, whole, not decline_is_right(question) if known else None))
    return rows


def _graded(look: Look, measure: Measure) -> GradedLook | None:
    quality = look.judged if measure == "judged" else look.score
    if quality is None:
        return None
    dollars = None if look.cost is None else float(look.cost)
    tokens = look.input_tokens + look.output_tokens
    return GradedLook(quality, tokens, look.declined, look.prospect, look.confidence, dollars)


def value_of(look: GradedLook, answerable: bool | None, price_of_wrong: float = 1.0) -> float:  # noqa: FBT001 - data
    """Return what a reply is worth when a wrong answer costs something.

    At a price of 1 it is the quality as graded: a right answer, and a decline of a question that the documents do not
    answer, are worth 1; a wrong answer, and a decline of any other question, 0. The part of an answer that is wrong
    (1 less its quality) costs `price_of_wrong` instead of 1: at a price of 3 a wrong answer is worth -2. Below 1 only
    answers to unanswerable questions become cheaper (at 0.25 they are worth 0.75): a wrong answer to any other question
    is never worth more than its honest decline.

    Args:
        look: The reply.
        answerable: Whether the documents hold the answer; None counts as yes.
        price_of_wrong: The price, 0 or more.
    """
    if look.declined or price_of_wrong == 1:
        return look.quality
    extra = price_of_wrong - 1 if answerable is False else max(0.0, price_of_wrong - 1)
    return look.quality - extra * (1 - look.quality)


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
        return f"{100 * self.quality:.1f} for {100 * self.token_share:.3g} % of the tokens"


@dataclass(frozen=True, slots=True)
class Gain:
    """How much better one strategy is than another on the same questions.

    Attributes:
        gain: The mean difference of the values, from -1 to 1 where wrong answers have a price of 1.
        low: The lower end of its 95 % interval, documents resampled; None if all differences are equal.
        high: The upper end.
        token_share: How many tokens more it needs, as a share of the long context's.
    """

    gain: float
    low: float | None
    high: float | None
    token_share: float

    @property
    def is_distinguishable(self) -> bool:
        """Whether the interval excludes 0."""
        low, high = (self.gain if end is None else end for end in (self.low, self.high))
        return low > 0 or high < 0

    def __str__(self) -> str:
        """Return the gain in points with its interval: "+4.9 [+1.2, +9.3]"."""
        between = "" if self.low is None or self.high is None else f" [{100 * self.low:+.1f}, {100 * self.high:+.1f}]"
        return f"{100 * self.gain:+.1f}{between}"


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """The results of one rule, question by question.

    Attributes:
        values: The value of each answer; with wrong answers at a price of 1, its quality.
        tokens: The tokens of all steps that ran.
        dollars: What they cost; NaN if a price is not known.
    """

    values: Floats
    tokens: Floats
    dollars: Floats


def is_number(value: object) -> bool:
    """Return whether a value that a user gave is a number."""
    return isinstance(value, Real) and not isinstance(value, bool)


class Evidence:
    """The questions to choose by, and what each rule brings on them.

    Attributes:
        rows: The questions.
        units: What is resampled.
    """

    def __init__(self, rows: Iterable[Row], *, price_of_wrong: float = 1.0) -> None:
        """Take questions.

        Args:
            rows: The questions.
            price_of_wrong: What a wrong answer costs; see `value_of`.

        Raises:
            ConfigurationError: There are no questions, the documents have no tokens, or the price is below 0.
        """
        self.rows = list(rows)
        if not self.rows:
            msg = "there is no question to choose by: evaluate rag, self_route and long_context on some questions first"
            raise ConfigurationError(msg)
        if not (is_number(price_of_wrong) and 0 <= price_of_wrong < float("inf")):
            msg = f"price_of_wrong is a number, 0 or more; it is {price_of_wrong!r}"
            raise ConfigurationError(msg)
        self._price = price_of_wrong
        self.units = Units([row.document for row in self.rows])
        self._trials: dict[Rule, Trial] = {}
        self._whole = float(self.trial(Rule("long_context")).tokens.sum())
        if not self._whole:
            msg = "the long context has no tokens: token shares need those of the whole documents"
            raise ConfigurationError(msg)

    @cached_property
    def by_document(self) -> Mapping[str, Sequence[int]]:
        """The numbers of each document's questions."""
        found = defaultdict[str, list[int]](list)
        for number, row in enumerate(self.rows):
            found[row.document].append(number)
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
        graded = all("graded" in row.looks for row in self.rows)
        some = {step for row in self.rows for step in row.looks}
        tried: dict[Strategy, bool] = {
            "sections": "sections" in some,
            "graded": graded,
            "graded_sections": graded and "graded_sections" in some,
        }
        return [strategy for strategy in STRATEGIES if tried.get(strategy, True)]

    @cached_property
    def rules(self) -> Sequence[Rule]:
        """All rules to choose from: the published one first, then those nearest the defaults; not the long context."""
        tuned = []
        for strategy in self.strategies:
            if strategy in GRADED:
                pairs: Iterable[tuple[int, ...]] = ((doubt,) for doubt in _DOUBTS)
                if strategy in WITH_SECTIONS:
                    pairs = (pair[:1] if pair[0] == pair[1] else pair for pair in product(_DOUBTS, repeat=2))
                tuned += [Rule(strategy, pair, stop) for pair in pairs for stop in _STOPS]
        tuned.sort(
            key=lambda rule: (
                sum(abs(below - DOUBT_BELOW) for below in rule.doubt_below) + abs(rule.stop_below - STOP_BELOW)
            )
        )
        plain = [
            Rule.default(strategy) for strategy in self.strategies if strategy not in ("long_context", "self_route")
        ]
        return list(dict.fromkeys([PUBLISHED, *plain, *tuned]))

    def trial(self, rule: Rule) -> Trial:
        """Return what a rule brings.

        Raises:
            ConfigurationError: Some question lacks a look that it needs.
        """
        if rule not in self._trials:
            paid = [rule.follow(row.looks) for row in self.rows]
            values, tokens, dollars = [], [], []
            for row, looks in zip(self.rows, paid, strict=True):
                if looks is None:
                    msg = f"the strategy {rule.strategy!r} needs looks that were not asked for: evaluate with it"
                    raise ConfigurationError(msg)
                values.append(value_of(looks[-1], row.answerable, self._price))
                tokens.append(sum(look.tokens for look in looks))
                costs = [look.dollars for look in looks]
                dollars.append(np.nan if None in costs else sum(cost or 0.0 for cost in costs))
            self._trials[rule] = Trial(np.array(values), np.array(tokens, float), np.array(dollars, float))
        return self._trials[rule]

    def share(self, trial: Trial) -> float:
        """Return the tokens of a trial as a share of the long context's."""
        return float(trial.tokens.sum()) / self._whole

    def figures(self, trial: Trial) -> Figures:
        """Return the figures of a trial."""
        low, high = self.units.interval(trial.values) or (None, None)
        dollars = float(trial.dollars.mean())
        return Figures(float(trial.values.mean()), low, high, self.share(trial), None if isnan(dollars) else dollars)

    def gain(self, trial: Trial, over: Trial) -> Gain:
        """Compare two trials, question by question."""
        differences = trial.values - over.values
        low, high = self.units.interval(differences) or (None, None)
        return Gain(float(differences.mean()), low, high, self.share(trial) - self.share(over))


class Options(dict[str, Any]):
    """Options of a chain or an engine, as plain JSON: `SelfRouteChain.from_vectorstore(store, llm, **options)`.

    `{}` is Self-Route as published, and `{"max_documents": 0}` reads no documents.

    Attributes:
        rule: The strategy that they follow.
        figures: What it brings on documents that did not take part in the choice.
        gains: How much better that is than each plain strategy.
        counts: How many questions and documents it rests on, in words.
        notes: Its limits, in sentences.
    """

    rule: Rule
    figures: Figures
    gains: Mapping[str, Gain]
    counts: str
    notes: Sequence[str]


def options_of(rule: Rule, sections: Sections) -> dict[str, Any]:
    """Return the options of a chain or an engine that follows a rule, as plain JSON; not of the long context.

    Args:
        rule: The rule.
        sections: The tokens of its sections, if it reads some.
    """
    if rule.strategy == "rag":
        return {"max_documents": 0}
    options: dict[str, Any] = {}
    if rule.strategy in GRADED:
        below = rule.doubt_below[0] if len(rule.doubt_below) == 1 else list(rule.doubt_below)
        options |= {"answerability": "graded", "doubt_below": below, "stop_below": rule.stop_below}
    if rule.strategy in WITH_SECTIONS:
        options["sections"] = list(sections) if isinstance(sections, tuple) else sections
    return options


def choose_options(
    rows: Iterable[Row], *, sections: Sections, token_share: float | None = None, price_of_wrong: float = 1.0
) -> Options:
    """Choose the bounds of draft, sections and stop, whether sections are read, and whether to escalate at all.

    Args:
        rows: The questions.
        sections: The tokens of the sections in these rows.
        token_share: How many tokens may be used, as a share of the long context's; the highest quality within it is
            looked for. None for no more than Self-Route as published, and then a document is read only where it is
            worth it: 5 points of 100 on that question.
        price_of_wrong: What a wrong answer costs, where an honest decline costs 1 at most; see `value_of`.

    Raises:
        ConfigurationError: There are no questions, or a value is not valid.
    """
    if token_share is not None and not (is_number(token_share) and 0 < token_share <= 1):
        msg = f"token_share is a share of the long context's tokens, above 0 and at most 1; it is {token_share!r}"
        raise ConfigurationError(msg)
    evidence = Evidence(rows, price_of_wrong=price_of_wrong)
    rule = choose(evidence, range(len(evidence.rows)), token_share=token_share)
    trial, chosen = cross_validated(evidence, token_share=token_share)
    plain = {strategy: evidence.trial(Rule.default(strategy)) for strategy in evidence.strategies}
    options = Options(options_of(rule, sections))
    options.rule, options.figures = rule, evidence.figures(trial)
    options.gains = {strategy: evidence.gain(trial, over) for strategy, over in plain.items()}
    options.counts = counts_of(evidence)
    over_budget = () if token_share is None else _over_budget(evidence, rule, token_share)
    options.notes = (*over_budget, *_notes(evidence, chosen, rule))
    return options


def counts_of(evidence: Evidence) -> str:
    """Return how much there is to choose by, in words."""
    named = ((len(evidence.rows), "question"), (len(evidence.by_document), "document"))
    return " on ".join(f"{count:,} {name}{'' if count == 1 else 's'}" for count, name in named)


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
        yield (
            f"Fewer than {FEWEST_QUESTIONS} questions are too few for a choice: this is the published rule, unless it "
            "does not fit the budget."
        )
    elif evidence.few_documents:
        yield (
            f"Fewer than {FEWEST_DOCUMENTS} documents: this holds on these documents and says nothing about others. "
            "The bounds were not tuned, and the published rule stays unless another one is clearly better."
        )
    if not any(row.answerable is False for row in evidence.rows):
        yield "No question is known to be unanswerable. If some of yours are, escalating pays less than it does here."
    some = sum("graded" not in row.looks for row in evidence.rows)
    if 0 < some < len(evidence.rows):
        yield f"Graded answerability was not considered: {some:,} of the questions have no graded draft."
    if len(chosen) > 1:
        yield f"The choice is not stable: {chosen.get(rule, 0)} of {sum(chosen.values())} folds chose the same rule."


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
    fitting = [rule for rule in evidence.rules if rule == Rule.default(rule.strategy) and compared.fits(rule)]
    if not fitting:
        return min(evidence.rules, key=compared.share)
    simple = compared.best(fitting)
    if not (evidence.few_questions or evidence.few_documents):
        tuned = [rule for rule in evidence.rules if compared.is_better(rule, simple, by=_CLEARLY)]
        return compared.best([rule for rule in tuned if compared.fits(rule, to_spare=1.0)] or [simple])
    keep = evidence.few_questions or not compared.is_better(simple, PUBLISHED, by=_SLIGHTLY)
    return PUBLISHED if keep and compared.fits(PUBLISHED) else simple


class _Compared:
    """The rules on the questions to choose by."""

    def __init__(self, evidence: Evidence, among: Sequence[int], token_share: float | None) -> None:
        self._evidence, self._among = evidence, np.array(among, dtype=np.intp)
        self._units = Units([evidence.rows[number].document for number in among])
        whole = self._tokens(Rule("long_context"))
        self._whole = float(whole.sum()) or 1.0
        self._nets: dict[Rule, Floats] = {}
        self._worth = WORTH_OF_A_DOCUMENT if token_share is None else 0.0
        self._budget = self._tokens(PUBLISHED) if token_share is None else token_share * whole

    def share(self, rule: Rule) -> float:
        return float(self._tokens(rule).sum()) / self._whole

    def fits(self, rule: Rule, *, to_spare: float = 0.0) -> bool:
        """Return whether a rule fits the budget, with some standard errors to spare."""
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
    values, tokens, dollars = (np.zeros(len(evidence.rows)) for _ in range(3))
    chosen = defaultdict[Rule, int](int)
    for tested in _folds(evidence.by_document):
        left_out = set(tested)
        rest = [number for number in range(len(evidence.rows)) if number not in left_out]
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
