"""The tables of an evaluation."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import add

import numpy as np

from selfroute.usage.counts import Usage
from selfroute_workbench.evaluation.caveats import how_to_read, metrics_of
from selfroute_workbench.evaluation.judging import decline_is_right
from selfroute_workbench.evaluation.looks import TITLES, Result, Strategy
from selfroute_workbench.evaluation.record import Record
from selfroute_workbench.evaluation.replay import GRADED
from selfroute_workbench.evaluation.statistics import Units
from selfroute_workbench.evaluation.table import Cells, Table
from selfroute_workbench.evaluation.trials import frontier_of

ABSTENTION = ("right answer", "right abstention", "over-refusal", "unsupported")
"""The four cells in which answers and abstentions are counted."""


def tables(evaluation: Record) -> Iterator[Table]:
    """Yield all tables that an evaluation allows, the main one first."""
    compared = _Compared(evaluation)
    yield _main(compared)
    for make in (_differences, _abstention, _frontier, _parts, _costs, _failures):
        table = make(compared)
        if table.rows:
            yield table


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

    def values(self, name: Strategy) -> list[float]:
        """Return the scores of a strategy, times 100."""
        judged = self.measure == "judged"
        return [100 * ((each.judged or 0.0) if judged else each.score) for each in self.by[name]]

    def usage(self, name: Strategy) -> Usage:
        """Return the tokens and the cost of a strategy for all questions; nothing if it was not asked for."""
        return reduce(add, (each.usage for each in self.by.get(name, ())), Usage())


def _points(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _interval(units: Units, values: Sequence[float], *, sign: str = "") -> str:
    found = units.interval(values)
    return "" if found is None else f"{found[0]:{sign}.1f} to {found[1]:{sign}.1f}"


def _main(compared: _Compared) -> Table:
    """Make the main table: what each strategy brings, and what it takes."""
    rows: list[Cells] = []
    whole = compared.usage("long_context").total_tokens
    for strategy, results in compared.by.items():
        if results:
            values, usage = compared.values(strategy), compared.usage(strategy)
            dollars, share = usage.cost.dollars, 100 * usage.total_tokens / whole if whole else None
            documents = _points(100 * sum(each.route == "long_context" for each in results) / len(results))
            priced = None if dollars is None else f"{1000 * dollars / len(results):.2f}"
            quality = (_points(float(np.mean(values))), _interval(compared.units, values))
            rows.append((TITLES[strategy], *quality, _points(share), priced, documents))
    by_metric = " and ".join(metrics_of(compared.questions)) or "Scores"
    measured = "Judged correctness" if compared.measure == "judged" else by_metric
    title = f"{measured}, {len(compared.questions):,} questions"
    columns = ("", "quality", "95 %", "tokens %", "$/1,000", "documents %")
    return Table("main", title, columns, tuple(rows), tuple(how_to_read(compared.evaluation)))


def _differences(compared: _Compared) -> Table:
    """Make the table of paired differences to RAG alone and to the long context."""
    rows: list[Cells] = []
    pairs = [(name, other) for other in ("rag", "long_context") for name in compared.by if name != other]
    for name, other in pairs:
        if other not in compared.by or not compared.questions:
            continue
        gains = [one - two for one, two in zip(compared.values(name), compared.values(other), strict=True)]
        counts = (sum(gain > 0 for gain in gains), gains.count(0), sum(gain < 0 for gain in gains))
        interval, mean = compared.units.interval(gains), float(np.mean(gains))
        shown = interval is not None and not interval[0] <= 0 <= interval[1]
        said = ("better" if mean > 0 else "worse") if shown else "no difference shown"
        between = _interval(compared.units, gains, sign="+")
        rows.append((TITLES[name], TITLES[other], f"{mean:+.1f}", between, *counts, said))
    columns = ("", "less", "difference", "95 %", "better", "equal", "worse", "")
    note = "Differences are paired, question by question; documents are resampled, each with all its questions."
    return Table("differences", "Differences in quality", columns, tuple(rows), (note,))


def _abstention(compared: _Compared) -> Table:
    """Make the table of answers and abstentions, right and wrong."""
    known = [decline_is_right(question) for question in compared.questions]
    rows: list[Cells] = []
    for name, results in compared.by.items() if known else ():
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


def _frontier(compared: _Compared) -> Table:
    """Make the table of every bound that can be replayed, the cheapest first."""
    rows: list[Cells] = []
    for rule, figures, efficient in frontier_of(compared.evaluation):
        bounds = (", ".join(map(str, rule.doubt_below)), rule.stop_below) if rule.strategy in GRADED else ("", "")
        dollars = None if figures.dollars is None else f"{1000 * figures.dollars:.2f}"
        brings = (_points(100 * figures.quality), _points(100 * figures.token_share), dollars)
        rows.append((TITLES[rule.strategy], *bounds, *brings, "yes" if efficient else ""))
    columns = ("", "doubt below", "stop below", "quality", "tokens %", "$/1,000", "nothing cheaper is as good")
    note = "These are the very questions: bounds that are picked by these figures look too good. `options()` tests."
    return Table("frontier", "Strategies and bounds", columns, tuple(rows), (note,))


def _parts(compared: _Compared) -> Table:
    """Make the table of the quality by data set, by what questions need, and by what documents are."""
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, question in enumerate(compared.questions):
        for kind, name in (("data set", question.dataset), ("kind", question.kind), ("source", question.source)):
            if name:
                groups[kind, name].append(number)
    counts = Counter(kind for kind, _ in groups)
    rows: list[Cells] = []
    for (kind, name), numbers in sorted(groups.items(), key=lambda group: group[0][0]):
        if counts[kind] > 1:
            means = (float(np.mean([compared.values(each)[number] for number in numbers])) for each in compared.by)
            rows.append((kind, name, len(numbers), *map(_points, means)))
    columns = ("", "", "questions", *(TITLES[name] for name in compared.by))
    return Table("parts", "Quality by part", columns, tuple(rows))


def _costs(compared: _Compared) -> Table:
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
    return Table("costs", "Tokens, cost and time", columns, tuple(rows), notes)


def _failures(compared: _Compared) -> Table:
    """Make the table of what failed."""
    counts = Counter((each.step, each.error) for each in compared.evaluation.failures)
    rows = tuple((step, error, count) for (step, error), count in counts.most_common())
    note = "They are not scored. Run the same again: what was paid is kept, and only the rest is asked."
    return Table("failures", "Failures", ("step", "error", "questions"), rows, (note,))
