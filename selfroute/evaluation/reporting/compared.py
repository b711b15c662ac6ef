"""Picks the questions that every strategy finished, and computes the figures of Table 1 over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from selfroute.evaluation.datasets import DATASETS
from selfroute.evaluation.records import ALL_STRATEGIES, Measure, Record, Result, Strategy, measure_of
from selfroute.evaluation.reporting.statistics import Comparison, Key, compare, interval
from selfroute.evaluation.sampling import Interval

Variant = tuple[Strategy, int | None]  # a strategy and its k; the long context has no k
Results = Mapping[Key, Result]
Figures = dict[str, float | None]


@dataclass(frozen=True)
class ComparedResults:
    """The results on the questions that all strategies finished, for each k.

    Attributes:
        record: The record that they are from.
        by_variant: The results of each strategy and k that finished any question, all on the same questions.
        drafts: For each k the results of all first steps, also on questions that are not compared.
        failed: The strategies and k that were asked for but finished no question.
        unfinished: How many questions each of the others did not finish.
        left_out: How many questions are not compared.
        documents: The id of each question's document.
        measure: The scores that are compared.
    """

    record: Record
    by_variant: Mapping[Variant, Results]
    drafts: Mapping[int | None, Results]
    failed: Sequence[Variant]
    unfinished: Mapping[Variant, int]
    left_out: int
    documents: Mapping[Key, str]
    measure: Measure = "score"

    @classmethod
    def of(cls, record: Record, measure: Measure | None = None) -> ComparedResults:
        """Pick the results to compare from a record; closed book and "based only on" are other experiments.

        Args:
            record: The record.
            measure: The scores to compare; None for what a judge says, if there is one. Only questions that it graded
                are compared then.
        """
        measure = measure or measure_of(record)
        found: dict[Variant, dict[Key, Result]] = {variant: {} for variant in _variants(record)}
        every: dict[Variant, dict[Key, Result]] = {variant: {} for variant in found}
        for result in strategy_results(record):
            variant = variant_of(result.strategy, result.k)
            every[variant][result.key] = result
            if getattr(result, measure) is not None:
                found[variant][result.key] = result
        documents = {question.key: question.document_id for question in record.questions}
        keys = [key for key in documents if found and all(key in results for results in found.values())]
        return cls(
            record,
            {variant: {key: results[key] for key in keys} for variant, results in found.items()},
            {k: every.get(("self_route", k), {}) | every.get(("rag", k), {}) for _, k in found},
            _failed(record, found),
            {variant: len(documents) - len(results) for variant, results in found.items()},
            len(documents) - len(keys) if found else 0,
            documents,
            measure,
        )

    @property
    def keys(self) -> Sequence[Key]:
        """The questions that are compared."""
        return list(next(iter(self.by_variant.values()), {}))

    @property
    def datasets(self) -> Sequence[str]:
        """Their data sets."""
        return list(dict.fromkeys(name for name, _ in self.keys))

    @property
    def ks(self) -> Sequence[int | None]:
        """The k that were tried, the main one first."""
        return list(dict.fromkeys(k for strategy, k in self.by_variant if strategy != "long_context")) or [None]

    @property
    def ascending_ks(self) -> Sequence[int | None]:
        """The same in ascending order."""
        return sorted(self.ks, key=lambda k: k or 0)

    @property
    def ascending_variants(self) -> Sequence[tuple[Variant, Results]]:
        """The variants with their results: the long context, then by k in ascending order."""
        return sorted(self.by_variant.items(), key=lambda item: item[0][1] or 0)

    @property
    def reading_passages(self) -> Sequence[Strategy]:
        """The strategies that ran and read passages, in the order of the tables."""
        ran = {strategy for strategy, _ in self.by_variant}
        return [strategy for strategy in ALL_STRATEGIES if strategy in ran and strategy != "long_context"]

    @property
    def papers(self) -> Collection[str]:
        """The data sets that were loaded as the paper's; the user's own may have the same names."""
        data = self.record.settings.get("data")
        return [name for name in DATASETS if isinstance(data, list | tuple) and name in data]

    @property
    def has_papers(self) -> bool:
        """Whether any question that is compared is from a data set of the paper."""
        return not set(self.papers).isdisjoint(self.datasets)

    def counts(self, names: Iterable[str]) -> dict[str, int]:
        """Return how many questions of some data sets are compared."""
        counts = Counter(name for name, _ in self.keys)
        return {name: counts[name] for name in names}

    @property
    def about_k(self) -> tuple[str, ...]:
        """The note of tables that are for one k."""
        others = ", ".join(str(k) for k in self.ascending_ks if k != self.ks[0])
        return (f"This is for k={self.ks[0]}. For k={others} see the tables main and k.",) if others else ()

    def value(self, result: Result) -> float:
        """Return the score of a result that is compared, from 0 to 1."""
        value: float = getattr(result, self.measure)
        return value

    def get(self, strategy: Strategy, k: int | None = None) -> Results:
        """Return the results of a strategy, empty if it did not run.

        Args:
            strategy: The strategy.
            k: The number of passages; any for the long context.
        """
        return self.by_variant.get((strategy, None if strategy == "long_context" else k), {})

    def compare(self, first: Strategy, second: Strategy) -> Comparison | None:
        """Compare two strategies at the main k; None if one of them did not run."""
        ours, theirs = (
            {key: self.value(each) for key, each in self.get(strategy, self.ks[0]).items()}
            for strategy in (first, second)
        )
        return compare(ours, theirs, documents=self.documents) if ours and theirs else None

    def interval(self, strategy: Strategy, k: int | None) -> Interval | None:
        """Return the 95 % interval of a strategy's score, from 0 to 1; None if there is none."""
        return interval({key: self.value(each) for key, each in self.get(strategy, k).items()}, self.documents)

    def tokens(self, strategy: Strategy) -> float | None:
        """Return the tokens of a strategy at the main k in per cent of the long context's; None if not known."""
        average, _ = self.figures(self.ks[0])
        return 100.0 if strategy == "long_context" else average.get(tokens_row(strategy))

    def of_dataset(self, name: str) -> ComparedResults:
        """Return the same with the questions of one data set only."""
        return self.only(key for key in self.documents if key[0] == name)

    def only(self, keys: Iterable[Key]) -> ComparedResults:
        """Return the same with these questions only."""
        kept = set(keys)
        by_variant = {
            variant: {key: each for key, each in found.items() if key in kept}
            for variant, found in self.by_variant.items()
        }
        drafts = {k: {key: each for key, each in found.items() if key in kept} for k, found in self.drafts.items()}
        return replace(self, by_variant=by_variant, drafts=drafts)

    def figures(self, k: int | None) -> tuple[Figures, dict[str, Figures]]:
        """Compute Table 1 for one k: the means over the data sets, and the figures of each data set.

        Figures are `questions` (their number; in the means, the sum), a score for each strategy that ran,
        `answerable %` (of all plain drafts), and `token %` of Self-Route, `rag token %`, `sections token %` and so on
        of the others: times 100, None if not known.
        """
        by_dataset = {name: self.of_dataset(name)._figures(k) for name in self.datasets}  # noqa: SLF001
        columns = list(by_dataset.values())
        total = {row: mean([column[row] for column in columns]) for row in (columns[0] if columns else ())}
        return {**total, "questions": len(self.keys)}, by_dataset

    def _figures(self, k: int | None) -> Figures:
        by_strategy = {
            strategy: list(found.values()) for strategy in ALL_STRATEGIES if (found := self.get(strategy, k))
        }
        figures: Figures = {"questions": len(self.keys)}
        figures.update({strategy: 100 * fmean(map(self.value, results)) for strategy, results in by_strategy.items()})
        reader = by_strategy.get("long_context")
        for strategy, results in by_strategy.items():
            if strategy != "long_context":
                figures[tokens_row(strategy)] = token_share(results, reader)
        if drafted := self.drafts.get(k):
            figures["answerable %"] = 100 * fmean(not each.decision["declined"] for each in drafted.values())
        return figures


def tokens_row(strategy: Strategy) -> str:
    """Return the name of the figure that holds a strategy's share of the long context's tokens."""
    return "token %" if strategy == "self_route" else f"{strategy} token %"


def token_share(results: Sequence[Result], reader: Sequence[Result] | None) -> float | None:
    """Return the input tokens of a strategy in per cent of those of the long context alone.

    Args:
        results: The results of the strategy.
        reader: The results of the long context on the same questions; without it the chain's own estimates count, on
            the questions that have one.
    """
    if reader is None:
        results = [each for each in results if each.usage.get("long_context_only") is not None]
        whole = sum(each.usage["long_context_only"] for each in results)
    else:
        whole = sum(each.input_tokens for each in reader)
    return 100 * sum(each.input_tokens for each in results) / whole if whole else None


def mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of figures, None if one of them is not known."""
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def named(variant: Variant) -> str:
    """Return a strategy and its k in words."""
    strategy, k = variant
    return strategy if k is None else f"{strategy} (k={k})"


def strategy_results(record: Record) -> Iterable[Result]:
    """Return the results of all strategies that are compared, without those of "based only on" and other retrievers."""
    return (
        each
        for each in record.results
        if each.strategy in ALL_STRATEGIES and not each.based_only_on and each.retriever is None
    )


def variant_of(strategy: Strategy, k: int | None) -> Variant:
    """Return a strategy with its k, if it has one."""
    return strategy, None if strategy == "long_context" else k


def _failed(record: Record, found: Collection[Variant]) -> list[Variant]:
    """Return the variants that were asked for but not found; k is None if it is not known."""
    failures = [each for each in record.failures if not each.based_only_on and each.retriever is None]
    tried = [
        variant_of(strategy, each.k) for each in failures for strategy in ALL_STRATEGIES if strategy == each.strategy
    ]
    known = {strategy for strategy, _ in (*found, *tried)}
    asked = record.settings.get("strategies") or ()
    unknown: list[Variant] = [
        (strategy, None) for strategy in ALL_STRATEGIES if strategy in asked and strategy not in known
    ]
    return [variant for variant in dict.fromkeys([*tried, *unknown]) if variant not in found]


def _variants(record: Record) -> list[Variant]:
    """Return the variants that ran: the long context first, as in the paper, then by k as they were asked for."""
    asked = record.settings.get("k") or ()
    order = list(asked) if isinstance(asked, list | tuple) else [asked]

    def position(variant: Variant) -> tuple[bool, int, int]:
        strategy, k = variant
        return (
            strategy != "long_context",
            order.index(k) if k in order else len(order) + (k or 0),
            ALL_STRATEGIES.index(strategy),
        )

    return sorted({variant_of(each.strategy, each.k) for each in strategy_results(record)}, key=position)
