"""The tables of an evaluation."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from hashlib import sha256

import numpy as np

from selfroute.calls.settings import Sections
from selfroute.errors import InputError
from selfroute.evaluation.choosing import Evidence, Figures, rows_of
from selfroute.evaluation.grades import Agreement
from selfroute.evaluation.judging import decline_is_right
from selfroute.evaluation.looks import TITLES, Key, Look, Measure, OtherGrade, Result, Strategy
from selfroute.evaluation.questions import Question
from selfroute.evaluation.record import Record
from selfroute.evaluation.replay import GRADED, Rule
from selfroute.evaluation.statistics import FEWEST_DOCUMENTS, Units
from selfroute.evaluation.table import Cell, Table

_METRICS = {
    "f1": "F1",
    "rouge_l": "ROUGE-L",
    "squad_f1": "SQuAD's F1",
    "squad_em": "SQuAD's exact match",
}
"""Metrics that compare words, for people."""
_SAMPLE, _LONGEST = 24, 500  # grades, and characters of a text
Row = tuple[Cell, ...]


def tables(evaluation: Record) -> list[Table]:
    """Return all tables that an evaluation allows, the main one first."""
    compared = _Compared(evaluation)
    makers: tuple[Callable[[_Compared], Table | None], ...] = (
        main, own_metric, differences, abstention, frontier, parts, costs, judge_agreement, judged_sample, failures,
    )  # fmt: skip
    return [table for make in makers if (table := make(compared))]


class _Compared:
    """The results of the questions that all strategies finished."""

    def __init__(self, evaluation: Record) -> None:
        self.evaluation, self.settings = evaluation, evaluation.settings
        keys = set(evaluation.compared)
        self.questions = [question for question in evaluation.questions if question.key in keys]
        self.measure = evaluation.measure
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

    def token_share(self, name: Strategy) -> float | None:
        """Return the tokens of a strategy in per cent of the long context's."""
        whole = sum(each.input_tokens + each.output_tokens for each in self.by.get("long_context", ()))
        taken = sum(each.input_tokens + each.output_tokens for each in self.by[name])
        return 100 * taken / whole if whole else None

    def dollars(self, name: Strategy) -> Decimal | None:
        """Return what a strategy costs on all questions."""
        costs = [each.cost for each in self.by[name]]
        return None if None in costs else sum((cost for cost in costs if cost is not None), Decimal(0))


def _points(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _interval(units: Units, values: Sequence[float], *, sign: str = "") -> str:
    found = units.interval(values)
    return "" if found is None else f"{found[0]:{sign}.1f} to {found[1]:{sign}.1f}"


def main(compared: _Compared) -> Table:
    """Make the main table: what each strategy brings, and what it takes."""
    return _main(compared, compared.measure, "main", tuple(_about_main(compared)))


def own_metric(compared: _Compared) -> Table | None:
    """Make the same by the questions' own metrics, if a judge's grades are in the main table."""
    return None if compared.measure == "score" else _main(compared, "score", "main_own_metric", ())


def _main(compared: _Compared, measure: Measure, name: str, notes: tuple[str, ...]) -> Table:
    rows: list[Row] = []
    for strategy, results in compared.by.items():
        if not results:
            continue
        values, dollars = compared.values(strategy, measure), compared.dollars(strategy)
        documents = _points(100 * sum(each.route == "long_context" for each in results) / len(results))
        priced = None if dollars is None else f"{1000 * dollars / len(results):.2f}"
        quality = (_points(float(np.mean(values))), _interval(compared.units, values))
        rows.append((TITLES[strategy], *quality, _points(compared.token_share(strategy)), priced, documents))
    measured = "Judged correctness" if measure == "judged" else " and ".join(_metrics(compared.questions)) or "Scores"
    title = f"{measured}, {len(compared.questions):,} questions"
    columns = ("", "quality", "95 %", "tokens %", "$/1,000", "documents %")
    return Table(name, title, columns, tuple(rows), notes)


def _tokens(sections: Sections) -> str:
    """Return the tokens of sections in words: "4,000", "4,000 and then 16,000"."""
    each = (sections,) if isinstance(sections, int) else sections or ()
    return " and then ".join(f"{tokens:,}" for tokens in each)


def _metrics(questions: Iterable[Question]) -> list[str]:
    return list(dict.fromkeys(_METRICS.get(question.metric, question.metric) for question in questions))


def _about_main(compared: _Compared) -> Iterator[str]:
    evaluation, settings = compared.evaluation, compared.settings
    yield (
        "Quality is times 100. tokens % is a percentage of the long context's; documents % is the share of "
        "questions for which whole documents were read."
    )
    left_out = len(evaluation.questions) - len(compared.questions)
    if left_out:
        judged = ", or the judge did not grade" if compared.measure == "judged" else ""
        of_all = f"{left_out:,} of {len(evaluation.questions):,} questions are left out"
        yield f"{of_all}: not every strategy finished them{judged}."
    if "doubt_below" in settings:
        below, *sections = settings["doubt_below"]
        text = f"graded: an answer with a confidence below {below} is in doubt; a decline with a prospect below "
        text += f"{settings['stop_below']} ends the question."
        yield text + (f" Answers from sections are in doubt below {', '.join(map(str, sections))}." if sections else "")
    if "sections" in settings:
        yield (
            f"sections: {_tokens(evaluation.sections)} tokens of sections are read before whole documents, unless "
            "they are more than half of them."
        )
    cut = len({look.key for look in evaluation.looks if look.cut})
    if cut:
        yield f"On {cut:,} questions the document did not fit the model's window and was cut in the middle."
    if empty := sum(not look.declined and not look.answer.strip() for look in evaluation.looks):
        yield f"Replies without text, as after a content filter or from a model that only reasoned: {empty:,}."
    if evaluation.stopped:
        yield f"The run ended early: {evaluation.stopped.rstrip('.')}."
    yield from caveats(evaluation)


def caveats(evaluation: Record) -> Iterator[str]:
    """Yield what limits the figures of an evaluation, in sentences."""
    asked = evaluation.questions
    if judge := evaluation.settings.get("judge"):
        if evaluation.measure == "judged":
            by = Counter(look.judged_by for look in evaluation.looks)
            yield (
                f"{judge['model']} graded {by['model']:,} replies by the references (1, 0.5 or 0), without knowing the "
                f"strategy. Declines, and answers to unanswerable questions, are graded by rule ({by['rule']:,}). "
                f"{judge_cost(judge)}"
            )
        else:
            yield f"The judge graded no answer, so these are scores by {' and '.join(_metrics(asked))}."
    elif any(question.metric in _METRICS for question in asked):
        yield (
            f"Scores compare words ({' and '.join(_metrics(asked))}), not meaning. A summary of two points out of six "
            "can score as high as one of all six, and a right answer in other words as low as a wrong one. A judge "
            "sees the difference (--judge, or judge= in Python)."
        )
    documents = {question.document_id for question in asked if question.document}
    if not documents:
        yield (
            "The questions do not say which document they are about, so all count as being about one: give each the "
            "text of its document, under the key document."
        )
    elif len(documents) < FEWEST_DOCUMENTS:
        yield (
            f"With fewer than {FEWEST_DOCUMENTS} documents, intervals hold for other questions on these documents, not "
            "for other documents."
        )


def judge_cost(judge: Mapping[str, object]) -> str:
    """Return what the judge's replies took, in a sentence: the judge is in no strategy's figures."""
    dollars = "at an unknown cost" if judge["cost"] is None else f"for ${Decimal(str(judge['cost'])):.4f}"
    tokens = f"{judge['input_tokens']:,} input and {judge['output_tokens']:,} output tokens"
    return f"That took {judge['calls']:,} calls with {tokens}, {dollars}."


def differences(compared: _Compared) -> Table | None:
    """Make the table of paired differences to RAG alone and to the long context."""
    rows: list[Row] = []
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
    rows: list[Row] = []
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
    rows: list[Row] = [
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


def frontier_of(evaluation: Record) -> list[tuple[Rule, Figures, bool]]:
    """Return every rule with its figures, the cheapest first, and whether nothing cheaper is as good."""
    compared = set(evaluation.compared)
    asked = [question for question in evaluation.questions if question.key in compared]
    rows = rows_of(asked, evaluation.looks, measure=evaluation.measure)
    if not rows or "long_context" not in evaluation.strategies:
        return []
    evidence = Evidence(rows)
    one_bound = [rule for rule in evidence.rules if len(rule.doubt_below) == 1]
    rules = dict.fromkeys([*evaluation.rules.values(), *one_bound])
    ran = [rule for rule in rules if rule.strategy in evaluation.strategies]
    found = {rule: evidence.figures(evidence.trial(rule)) for rule in ran}
    priced = all(figures.dollars is not None for figures in found.values())
    costs = {rule: (each.dollars or 0.0) if priced else each.token_share for rule, each in found.items()}
    points, best = [], float("-inf")
    for rule in sorted(found, key=lambda rule: (costs[rule], -found[rule].quality)):
        quality = round(found[rule].quality, 12)
        points.append((rule, found[rule], quality > best))
        best = max(best, quality)
    return points


def parts(compared: _Compared) -> Table | None:
    """Make the table of the quality by data set, by what questions need, and by what documents are."""
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, question in enumerate(compared.questions):
        for kind, name in (("data set", question.dataset), ("kind", question.kind), ("source", question.source)):
            if name:
                groups[kind, name].append(number)
    several = {kind for kind, count in Counter(kind for kind, _ in groups).items() if count > 1}
    rows: list[Row] = []
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
    rows: list[Row] = []
    for name, results in compared.by.items():
        if results:
            tokens = (sum(each.input_tokens for each in results), sum(each.output_tokens for each in results))
            dollars = compared.dollars(name)
            times = np.quantile([each.seconds for each in results], [0.5, 0.95])
            rows.append((TITLES[name], *tokens, None if dollars is None else f"{dollars:.4f}", *map(float, times)))
    columns = ("", "input tokens", "output tokens", "US dollars", "seconds", "95 %")
    notes = (
        "Each strategy is counted as if it was run alone: a reply that two strategies share counts for both.",
        "seconds is the model's time for a question when it was asked: the median, and that within which 95 % end.",
    )
    return Table("costs", "Tokens, cost and time", columns, tuple(rows), notes) if rows else None


def failures(compared: _Compared) -> Table | None:
    """Make the table of what failed."""
    counts = Counter((each.step, each.error) for each in compared.evaluation.failures)
    rows = tuple((step, error, count) for (step, error), count in counts.most_common())
    note = "They are not scored. Run the same again: what was paid is kept, and only the rest is asked."
    return Table("failures", "Failures", ("step", "error", "questions"), rows, (note,)) if rows else None


def judged_sample(compared: _Compared) -> Table | None:
    """Make the table of a random sample of the judge's grades, to be checked by a person."""
    questions = {question.key: question for question in compared.evaluation.questions}
    found: dict[tuple[Key, str], Look] = {
        (look.key, look.answer.strip()): look for look in compared.evaluation.looks if look.judged_by == "model"
    }
    if not found:
        return None
    drawn = sorted(found, key=lambda name: sha256(repr(name).encode(errors="surrogatepass")).digest())[:_SAMPLE]
    rows: list[Row] = []
    for name in sorted(drawn):
        look, question = found[name], questions[name[0]]
        texts = (question.question, " | ".join(question.answers), look.answer.strip())
        rows.append(
            (*look.key, *(text[:_LONGEST] + "..." * (len(text) > _LONGEST) for text in texts), f"{look.judged:g}")
        )
    counts = Counter(f"{look.judged:g}" for look in found.values())
    shares = ", ".join(f"{grade}: {counts[grade]:,}" for grade in ("1", "0.5", "0"))
    notes = (
        f"{len(rows):,} of {len(found):,} grades, drawn at random; those that a rule gave are left out. All: {shares}.",
        "Read them before you trust the judge. A grades.jsonl of your own says how far you agree with it (--grades).",
    )
    columns = ("data set", "id", "question", "references", "answer", "grade")
    return Table("judged_sample", "A sample of the judge's grades", columns, tuple(rows), notes)


def judge_agreement(compared: _Compared) -> Table | None:
    """Make the table of how far the judge and other graders agree."""
    evaluation, title = compared.evaluation, "The judge and the other grades"
    if not evaluation.other_grades:
        return None
    grades = _keyed(evaluation)
    pairs = [
        (each, grades[each.key, each.strategy])
        for each in evaluation.results
        if each.judged is not None and (each.key, each.strategy) in grades
    ]
    if not pairs:
        note = "The file grades no answer that the judge graded, too: its ids and strategies must be those of this run."
        return Table("judge_agreement", title, ("", "answers"), (("all", 0),), (note,))
    groups = {"all": pairs, "without those by rule": [pair for pair in pairs if pair[0].shown.judged_by == "model"]}
    for strategy in dict.fromkeys(each.strategy for each, _ in pairs):
        groups[TITLES[strategy]] = [pair for pair in pairs if pair[0].strategy == strategy]
    rows: list[Row] = []
    for name, group in groups.items():
        if group:
            found = Agreement.of([(each.judged or 0.0, grade) for each, grade in group])
            rows.append((name, found.answers, 100 * found.equal, found.kappa, 100 * found.mean, 100 * found.other_mean))
    columns = ("", "answers", "equal %", "kappa", "judge's mean", "others' mean")
    note = "kappa is Cohen's: 1 if all grades are equal, 0 if they agree as often as by chance."
    return Table("judge_agreement", title, columns, tuple(rows), (note,))


def _keyed(evaluation: Record) -> dict[tuple[Key, str], float]:
    """Return the other grades by question and strategy.

    Raises:
        InputError: A grade names no data set, and its id is in several.
    """
    datasets: dict[str, set[str]] = defaultdict(set)
    for question in evaluation.questions:
        datasets[question.id].add(question.dataset)

    def dataset_of(grade: OtherGrade) -> str:
        names = datasets.get(grade.id, set()) if grade.dataset is None else {grade.dataset}
        if len(names) > 1:
            msg = f"the id {grade.id!r} is in {', '.join(sorted(names))}: add the dataset to its grades"
            raise InputError(msg)
        return next(iter(names), "")

    return {((dataset_of(one), one.id), one.strategy): one.grade for one in evaluation.other_grades}
