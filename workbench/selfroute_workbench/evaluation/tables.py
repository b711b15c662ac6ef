"""The tables of an evaluation."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import add

import numpy as np

from selfroute.usage.counts import Usage
from selfroute_workbench.evaluation.caveats import how_to_read, metrics_of
from selfroute_workbench.evaluation.judge_tables import judged_sample
from selfroute_workbench.evaluation.judging import decline_is_right
from selfroute_workbench.evaluation.looks import TITLES, Measure, Result, Strategy
from selfroute_workbench.evaluation.record import Record
from selfroute_workbench.evaluation.replay import GRADED
from selfroute_workbench.evaluation.statistics import Units
from selfroute_workbench.evaluation.table import Cells, Table
from selfroute_workbench.evaluation.trials import frontier_of


def tables(evaluation: Record) -> Iterator[Table]:
    """Yield all tables that an evaluation allows, the main one first."""
    compared = _Compared(evaluation)
    yield main(compared)
    yield from filter(None, (make(compared) for make in (own_metric, differences, abstention, frontier, parts, costs)))
    yield from filter(None, (make(evaluation) for make in (judged_sample, failures)))


class _Compared:
    """The results of the questions that all strategies finished."""

    def __init__(self, evaluation: Record) -> None:
        self.evaluation, self.questions, self.measure = evaluation, evaluation.compared, evaluation.measure
        keys = {question.key for question in self.questions}
        self.by: dict[Strategy, list[Result]] = {name: [] for name in evaluation.strategies}
        for result in evaluation.results:
            if result.key in keys:
                self.by[result.strategy].append(result)
        self.units = Units([question.document_id for question in self.questions])

    def values(self, name: Strategy, measure: Measure | None = None) -> list[float]:
        """Return the scores of a strategy, times 100."""
        results = self.by[name]
        if (measure or self.measure) == "score":
            return [100 * each.score for each in results]
        return [100 * (each.judged or 0.0) for each in results]

    def usage(self, name: Strategy) -> Usage:
        """Return what a strategy takes for all questions; nothing if it was not asked for."""
        return reduce(add, (each.usage for each in self.by.get(name, ())), Usage())


def _points(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _interval(units: Units, values: Sequence[float], *, sign: str = "") -> str:
    found = units.interval(values)
    return "" if found is None else f"{found[0]:{sign}.1f} to {found[1]:{sign}.1f}"


def main(compared: _Compared) -> Table:
    """Make the main table: what each strategy brings, and what it takes."""
    return _main(compared, compared.measure, "main", tuple(how_to_read(compared.evaluation)))


def own_metric(compared: _Compared) -> Table | None:
    """Make the same by the questions' own metrics, if a judge's grades are in the main table."""
    return None if compared.measure == "score" else _main(compared, "score", "main_own_metric", ())


def _main(compared: _Compared, measure: Measure, name: str, notes: tuple[str, ...]) -> Table:
    rows: list[Cells] = []
    whole = compared.usage("long_context").total_tokens
    for strategy, results in compared.by.items():
        if not results:
            continue
        values, usage = compared.values(strategy, measure), compared.usage(strategy)
        dollars, share = usage.cost.dollars, 100 * usage.total_tokens / whole if whole else None
        documents = _points(100 * sum(each.route == "long_context" for each in results) / len(results))
        priced = None if dollars is None else f"{1000 * dollars / len(results):.2f}"
        quality = (_points(float(np.mean(values))), _interval(compared.units, values))
        rows.append((TITLES[strategy], *quality, _points(share), priced, documents))
    measured = "Judged correctness" if measure == "judged" else " and ".join(metrics_of(compared.questions)) or "Scores"
    title = f"{measured}, {len(compared.questions):,} questions"
    columns = ("", "quality", "95 %", "tokens %", "$/1,000", "documents %")
    return Table(name, title, columns, tuple(rows), notes)


def differences(compared: _Compared) -> Table | None:
    """Make the table of paired differences to RAG alone and to the long context."""
    rows: list[Cells] = []
    for other in ("rag", "long_context"):
        for name in compared.by:
            if name == other or other not in compared.by or not compared.questions:
                continue
            pairs = zip(compared.values(name), compared.values(other), strict=True)
            gains = [one - two for one, two in pairs]
            counts = (
                sum(gain > 0 for gain in gains),
                sum(gain == 0 for gain in gains),
                sum(gain < 0 for gain in gains),
            )
            interval = compared.units.interval(gains)
            shown = interval is not None and not interval[0] <= 0 <= interval[1]
            said = ("better" if np.mean(gains) > 0 else "worse") if shown else "no difference shown"
            difference = f"{float(np.mean(gains)):+.1f}"
            rows.append(
                (TITLES[name], TITLES[other], difference, _interval(compared.units, gains, sign="+"), *counts, said)
            )
    columns = ("", "less", "difference", "95 %", "better", "equal", "worse", "")
    note = "Differences are paired, question by question; documents are resampled, each with all its questions."
    return Table("differences", "Differences in quality", columns, tuple(rows), (note,)) if rows else None


def abstention(compared: _Compared) -> Table | None:
    """Make the table of answers and abstentions, right and wrong."""
    known = [decline_is_right(question) for question in compared.questions]
    if not known:
        return None
    rows: list[Cells] = []
    for name, results in compared.by.items():
        right = [value >= 50 for value in compared.values(name)]  # noqa: PLR2004 - half of it
        counts = Counter(
            ("right answer" if well else "unsupported")
            if result.answerable
            else ("right abstention" if unanswerable else "over-refusal")
            for result, well, unanswerable in zip(results, right, known, strict=True)
        )
        rows.append((TITLES[name], *(counts[cell] for cell in ABSTENTION)))
    cells = (
        "right answer: answered, and at least half right. right abstention: declined what the documents do not answer. "
        "over-refusal: declined what they answer. unsupported: answered wrongly, or what they do not answer."
    )
    notes = (cells, f"{sum(known):,} of {len(known):,} questions have no answer in their document.")
    return Table("abstention", "Answers and abstentions", ("", *ABSTENTION), tuple(rows), notes)


ABSTENTION = ("right answer", "right abstention", "over-refusal", "unsupported")
"""The four cells in which answers and abstentions are counted."""


def frontier(compared: _Compared) -> Table | None:
    """Make the table of every bound that can be replayed, the cheapest first."""
    points = frontier_of(compared.evaluation)
    rows: list[Cells] = [
        (
            TITLES[rule.strategy],
            ", ".join(map(str, rule.doubt_below)) if rule.strategy in GRADED else "",
            rule.stop_below if rule.strategy in GRADED else "",
            _points(100 * figures.quality),
            _points(100 * figures.token_share),
            None if figures.dollars is None else f"{1000 * figures.dollars:.2f}",
            "yes" if efficient else "",
        )
        for rule, figures, efficient in points
    ]
    columns = ("", "doubt below", "stop below", "quality", "tokens %", "$/1,000", "nothing cheaper is as good")
    notes = ("These are the very questions: bounds that are picked by these figures look too good. `options()` tests.",)
    return Table("frontier", "Strategies and bounds", columns, tuple(rows), notes) if rows else None


def parts(compared: _Compared) -> Table | None:
    """Make the table of the quality by data set, by what questions need, and by what documents are."""
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, question in enumerate(compared.questions):
        for kind, name in (("data set", question.dataset), ("kind", question.kind), ("source", question.source)):
            if name:
                groups[kind, name].append(number)
    several = {kind for kind, count in Counter(kind for kind, _ in groups).items() if count > 1}
    rows: list[Cells] = []
    for (kind, name), numbers in groups.items():
        if kind in several:
            means = (float(np.mean([compared.values(each)[number] for number in numbers])) for each in compared.by)
            rows.append((kind, name, len(numbers), *map(_points, means)))
    columns = ("", "", "questions", *(TITLES[name] for name in compared.by))
    return (
        Table("parts", "Quality by part", columns, tuple(sorted(rows, key=lambda row: str(row[0])))) if rows else None
    )


def costs(compared: _Compared) -> Table | None:
    """Make the table of tokens, dollars and time."""
    rows: list[Cells] = []
    for name, results in compared.by.items():
        if results:
            usage = compared.usage(name)
            tokens, dollars = (usage.input_tokens, usage.total_tokens - usage.input_tokens), usage.cost.dollars
            times = np.quantile([each.seconds for each in results], [0.5, 0.95])
            rows.append((TITLES[name], *tokens, None if dollars is None else f"{dollars:.4f}", *map(float, times)))
    columns = ("", "input tokens", "output tokens", "US dollars", "seconds", "95 %")
    notes = (
        "Each strategy is counted as if it was run alone: a reply that two strategies share counts for both.",
        "seconds is the model's time for a question when it was asked: the median, and that within which 95 % end.",
    )
    return Table("costs", "Tokens, cost and time", columns, tuple(rows), notes) if rows else None


def failures(evaluation: Record) -> Table | None:
    """Make the table of what failed."""
    counts = Counter((each.step, each.error) for each in evaluation.failures)
    rows = tuple((step, error, count) for (step, error), count in counts.most_common())
    note = "They are not scored. Run the same again: what was paid is kept, and only the rest is asked."
    return Table("failures", "Failures", ("step", "error", "questions"), rows, (note,)) if rows else None
