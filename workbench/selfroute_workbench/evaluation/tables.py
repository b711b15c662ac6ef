"""The tables of an evaluation, with sentences that say how to read them and what limits them."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from operator import add

import numpy as np

from selfroute.usage.counts import Usage
from selfroute_workbench.evaluation.judging import decline_is_right
from selfroute_workbench.evaluation.looks import TITLES, Result, Strategy
from selfroute_workbench.evaluation.questions import Question
from selfroute_workbench.evaluation.record import Record
from selfroute_workbench.evaluation.statistics import FEWEST_DOCUMENTS, Units
from selfroute_workbench.evaluation.table import Cells, Table

_BY_WORDS = {"f1": "F1", "rouge_l": "ROUGE-L", "squad_f1": "SQuAD's F1", "squad_em": "SQuAD's exact match"}
"""Metrics that compare words, for people."""
TIMES_RAG = "\N{MULTIPLICATION SIGN} RAG"
NOT_WIDENED = "RAG with 20 passages is left out: the retriever cannot be told to find so many."
ABSTENTION = ("right answer", "right abstention", "over-refusal", "unsupported")
"""The four cells in which answers and abstentions are counted."""


def tables(evaluation: Record) -> Iterator[Table]:
    """Yield all tables that an evaluation allows, the main one first."""
    compared = _Compared(evaluation)
    yield _main(compared)
    for make in (_differences, _abstention, _parts, _costs, _failures):
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
        return [100 * (each.shown.value(self.measure) or 0.0) for each in self.by[name]]

    def usage(self, name: Strategy) -> Usage:
        """Return the tokens and the cost of a strategy for all questions; nothing if it was not run."""
        return reduce(add, (each.usage for each in self.by.get(name, ())), Usage())


def _points(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _interval(units: Units, values: Sequence[float], *, sign: str = "") -> str:
    found = units.interval(values)
    return "" if found is None else f"{found[0]:{sign}.1f} to {found[1]:{sign}.1f}"


def _main(compared: _Compared) -> Table:
    """Make the main table: what each strategy brings, and what it takes."""
    rows: list[Cells] = []
    whole, rag = (compared.usage(each).total_tokens for each in ("long_context", "rag"))
    for strategy, results in compared.by.items():
        if results:
            values, usage = compared.values(strategy), compared.usage(strategy)
            dollars, share = usage.cost.dollars, 100 * usage.total_tokens / whole if whole else None
            documents = _points(100 * sum(each.route == "long_context" for each in results) / len(results))
            priced = None if dollars is None else f"{1000 * dollars / len(results):.2f}"
            quality = (_points(float(np.mean(values))), _interval(compared.units, values))
            factor = f"{usage.total_tokens / rag:.1f}" if rag else None
            rows.append((TITLES[strategy], *quality, _points(share), factor, priced, documents))
    by_metric = " and ".join(metrics_of(compared.questions)) or "Scores"
    measured = "Judged correctness" if compared.measure == "judged" else by_metric
    title = f"{measured}, {len(compared.questions):,} questions"
    columns = ("", "quality", "95 %", "tokens %", TIMES_RAG, "$/1,000", "documents %")
    return Table("main", title, columns, tuple(rows), tuple(how_to_read(compared.evaluation)))


def _differences(compared: _Compared) -> Table:
    """Make the table of paired differences: of yours to all others, and of these to RAG alone."""
    rows: list[Cells] = []
    others = [name for name in compared.by if name != "yours"]
    pairs: list[tuple[Strategy, Strategy]] = [("yours", name) for name in others]
    pairs += [(name, "rag") for name in others if name != "rag"]
    for name, other in pairs:
        if not {name, other} <= compared.by.keys() or not compared.questions:
            continue
        gains = [one - two for one, two in zip(compared.values(name), compared.values(other), strict=True)]
        counts = (sum(gain > 0 for gain in gains), gains.count(0), sum(gain < 0 for gain in gains))
        interval, mean = compared.units.interval(gains), float(np.mean(gains))
        shown = mean != 0 if interval is None else not interval[0] <= 0 <= interval[1]
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
    counts = Counter((each.strategy, each.error) for each in compared.evaluation.failures)
    rows = tuple((TITLES[name], error, count) for (name, error), count in counts.most_common())
    note = "They are not scored. Run the same again: what was paid is kept, and only the rest is asked."
    return Table("failures", "Failures", ("", "error", "questions"), rows, (note,))


def metrics_of(questions: Iterable[Question]) -> list[str]:
    """Return the names of the metrics of questions, for people."""
    return list(dict.fromkeys(_BY_WORDS.get(question.metric, question.metric) for question in questions))


def caveats(evaluation: Record) -> Iterator[str]:
    """Yield what limits the figures of an evaluation, in sentences."""
    asked = evaluation.questions
    if judge := evaluation.settings.get("judge"):
        if evaluation.measure == "judged":
            graded = {(look.key, look.answer, look.judged_by) for look in evaluation.looks}
            by = Counter(judged_by for *_, judged_by in graded)
            yield (
                f"{judge['model']} graded {by['model']:,} answers by the references (1, 0.5 or 0), without knowing the "
                f"strategy. Declines, and answers to unanswerable questions, are graded by rule ({by['rule']:,}). "
                f"{_judge_cost(judge)}"
            )
        else:
            yield f"The judge graded no answer, so these are scores by {' and '.join(metrics_of(asked))}."
    elif any(question.metric in _BY_WORDS for question in asked):
        yield (
            f"Scores compare words ({' and '.join(metrics_of(asked))}), not meaning. A summary of two points out of "
            "six can score as high as one of all six, and a right answer in other words as low as a wrong one. A "
            "judge sees the difference (--judge, or judge= in Python)."
        )
    documents = {question.document_id for question in asked}
    if alone := sum(question.document is None for question in asked):
        yield (
            f"{alone:,} questions do not say which document they are about, so each counts by itself: intervals are "
            "too narrow if many are about the same one. Give each its document_file, or document."
        )
    elif len(documents) < FEWEST_DOCUMENTS:
        yield (
            f"With fewer than {FEWEST_DOCUMENTS} documents, intervals hold for other questions on these documents, not "
            "for other documents."
        )


def _judge_cost(judge: Mapping[str, object]) -> str:
    """Return what the judge's replies took, in a sentence: the judge is in no strategy's figures."""
    dollars = "at an unknown cost" if judge["cost"] is None else f"for ${Decimal(str(judge['cost'])):.4f}"
    tokens = f"{judge['input_tokens']:,} input and {judge['output_tokens']:,} output tokens"
    return f"That took {judge['calls']:,} calls with {tokens}, {dollars}."


def how_to_read(evaluation: Record) -> Iterator[str]:
    """Yield what the columns of the main table mean, what was left out of it, and its caveats, in sentences."""
    yield (
        f"Quality is times 100. tokens % is a percentage of the long context's, {TIMES_RAG} a multiple of RAG's; "
        "documents % is the share of questions for which whole documents were read."
    )
    left_out = len(evaluation.questions) - len(evaluation.compared)
    if left_out:
        judged = ", or the judge did not grade" if evaluation.measure == "judged" else ""
        of_all = f"{left_out:,} of {len(evaluation.questions):,} questions are left out"
        yield f"{of_all}: not every strategy finished them{judged}."
    options = evaluation.settings.get("options", {})
    yield f"yours: {json.dumps(options.get('yours')) if options.get('yours') else 'the default setting'}."
    yield (
        "RAG is the draft alone, in plain text; the paper's rule then reads all documents behind its passages, and the "
        "long context reads them at once."
    )
    if "rag_20" not in evaluation.strategies:
        yield NOT_WIDENED
    cut = len({look.key for look in evaluation.looks if look.cut})
    if cut:
        yield f"On {cut:,} questions the document did not fit the model's window and was cut in the middle."
    if empty := sum(not look.declined and not look.answer.strip() for look in evaluation.looks):
        yield f"Replies without text, as after a content filter or from a model that only reasoned: {empty:,}."
    if evaluation.stopped:
        yield f"The run ended early: {evaluation.stopped.rstrip('.')}."
    yield from caveats(evaluation)
