"""The questions that can be compared, those that every strategy finished, and the figures of Table 1 over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from selfroute.evaluation.results import STRATEGIES, Evaluation, Result, Strategy
from selfroute.evaluation.statistics import Key

Run = tuple[Strategy, int | None]  # a strategy and its k, which the long context has none of
Results = Mapping[Key, Result]
Figures = dict[str, float | None]


@dataclass(frozen=True)
class Finished:
    """The results on the questions that all strategies finished, for each k.

    Attributes:
        evaluation: What they are taken from.
        runs: The results of each strategy and k, all on the same questions.
        unfinished: How many of the questions asked each strategy and k did not finish.
        left_out: How many of the questions asked are not compared.
        documents: The document that each question is on.
    """

    evaluation: Evaluation
    runs: Mapping[Run, Results]
    unfinished: Mapping[Run, int]
    left_out: int
    documents: Mapping[Key, str]

    @classmethod
    def of(cls, evaluation: Evaluation) -> Finished:
        """Those of an evaluation; closed book and "based only on" are other experiments."""
        found: dict[Run, dict[Key, Result]] = {run: {} for run in _runs(evaluation)}
        for result in _compared(evaluation):
            found[_run(result)][result.key] = result
        documents = {question.key: question.document_id for question in evaluation.questions}
        keys = [key for key in documents if found and all(key in results for results in found.values())]
        return cls(
            evaluation,
            {run: {key: results[key] for key in keys} for run, results in found.items()},
            {run: len(documents) - len(results) for run, results in found.items()},
            len(documents) - len(keys) if found else 0,
            documents,
        )

    @property
    def keys(self) -> Sequence[Key]:
        """The questions that are compared."""
        return list(next(iter(self.runs.values()), {}))

    @property
    def datasets(self) -> Sequence[str]:
        """Their data sets."""
        return list(dict.fromkeys(name for name, _ in self.keys))

    @property
    def ks(self) -> Sequence[int | None]:
        """The k that were tried, the main one first."""
        return list(dict.fromkeys(k for strategy, k in self.runs if strategy != "long_context")) or [None]

    @property
    def about_k(self) -> tuple[str, ...]:
        """The note that the tables for one k bear."""
        others = ", ".join(str(k) for k in self.ks[1:])
        return (f"This is for k={self.ks[0]}. For k={others} see the tables main and k.",) if others else ()

    def get(self, strategy: Strategy, k: int | None = None) -> Results:
        """The results of a strategy, empty if it did not run.

        Args:
            strategy: Which strategy.
            k: With how many passages; the long context takes any.
        """
        return self.runs.get((strategy, None if strategy == "long_context" else k), {})

    def of_dataset(self, name: str) -> Finished:
        """The same with the questions of one data set."""
        return self.only(key for key in self.keys if key[0] == name)

    def only(self, keys: Iterable[Key]) -> Finished:
        """The same with fewer questions."""
        kept = set(keys)
        runs = {run: {key: each for key, each in found.items() if key in kept} for run, found in self.runs.items()}
        return replace(self, runs=runs)

    def figures(self, k: int | None) -> dict[str, Figures]:
        """Table 1, for one k: the figures of each data set, and of "Avg", the mean over the data sets.

        Each has `questions` (their number; of "Avg" the sum), a score for each strategy that ran, `answerable %`,
        `rag token %` and `token %` (Self-Route's), all times 100 and None where they are not known.
        """
        by_dataset = {name: self._figures([key for key in self.keys if key[0] == name], k) for name in self.datasets}
        columns = list(by_dataset.values())
        total = {row: mean([column[row] for column in columns]) for row in (columns[0] if columns else ())}
        return {"Avg": {**total, "questions": len(self.keys)}, **by_dataset}

    def _figures(self, keys: Sequence[Key], k: int | None) -> Figures:
        runs = {strategy: [found[key] for key in keys] for strategy in STRATEGIES if (found := self.get(strategy, k))}
        figures: Figures = {"questions": len(keys)}
        figures.update({strategy: 100 * fmean(each.score for each in results) for strategy, results in runs.items()})
        reader = runs.get("long_context")
        for strategy, row in (("rag", "rag token %"), ("self_route", "token %")):
            if strategy in runs:
                figures[row] = token_share(runs[strategy], reader)
        if drafted := runs.get("self_route") or runs.get("rag"):
            figures["answerable %"] = 100 * fmean(not each.decision["declined"] for each in drafted)
        return figures


def token_share(results: Sequence[Result], reader: Sequence[Result] | None) -> float | None:
    """The input tokens in per cent of those of the long context alone.

    Args:
        results: Those of a strategy.
        reader: Those of the long context on the same questions; without it, what the chain says that would have
            taken, on the questions where it knows.
    """
    if reader is None:
        results = [each for each in results if each.usage.get("long_context_only") is not None]
        whole = sum(each.usage["long_context_only"] for each in results)
    else:
        whole = sum(each.input_tokens for each in reader)
    return 100 * sum(each.input_tokens for each in results) / whole if whole else None


def mean(values: Sequence[float | None]) -> float | None:
    """The mean of figures, None if one of them is not known."""
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def _compared(evaluation: Evaluation) -> Iterable[Result]:
    return (each for each in evaluation.results if each.strategy in STRATEGIES and not each.based_only_on)


def _run(result: Result) -> Run:
    return result.strategy, None if result.strategy == "long_context" else result.k


def _runs(evaluation: Evaluation) -> list[Run]:
    """What ran: the long context first, as in the paper, then by k as they were asked for."""
    asked = evaluation.settings.get("k") or ()
    order = list(asked) if isinstance(asked, list | tuple) else [asked]

    def place(run: Run) -> tuple[bool, int, int]:
        strategy, k = run
        return (
            strategy != "long_context",
            order.index(k) if k in order else len(order) + (k or 0),
            STRATEGIES.index(strategy),
        )

    return sorted({_run(each) for each in _compared(evaluation)}, key=place)
