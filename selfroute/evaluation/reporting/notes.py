"""The notes below the tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from selfroute.evaluation.datasets import DATASETS
from selfroute.evaluation.records import Record, Result
from selfroute.evaluation.reporting.compared import ComparedResults, named, strategy_results, variant_of
from selfroute.evaluation.reporting.statistics import with_few_documents
from selfroute.evaluation.sampling import FEWEST_DOCUMENTS
from selfroute.policies.calibration import tokens_text

_WORDS = ("F1", "ROUGE-L", "SQuAD's F1", "SQuAD's exact match", "loose exact match", "F1 over sets of words")
_METRICS = {
    "f1": "F1",
    "en_qa_f1": "F1",
    "rouge_l": "ROUGE-L",
    "squad_f1": "SQuAD's F1",
    "squad_em": "SQuAD's exact match",
    "exact_loose": "loose exact match",
    "set_f1": "F1 over sets of words",
}
"""Names of metrics for people; those of `_WORDS` compare words."""

_FEW = 0.01  # the share of questions that can be left out without doubt about the rest
_MANY = 0.1  # the share from which the first note says so


def about_main(compared: ComparedResults) -> Iterator[str]:
    """Yield the notes of the main table, the most important first."""
    record, asked = compared.record, len(compared.documents)
    if compared.left_out > _MANY * asked:
        found = f"{len(compared.keys):,} of {asked:,} questions"
        yield f"Only {found} are compared; scores and tokens are for these."
    for variant in compared.failed:
        yield f"{named(variant)} was asked for but finished no question, so it has no figures."
    yield "Scores are times 100. Avg is the average over the data sets; low and high are its 95 % interval."
    yield from _about_judge(compared)
    yield "answerable % is the share of questions with a draft that the first step answered."
    if len(compared.ks) > 1:
        yield f"Tables for one k are for the first one, k={compared.ks[0]}."
    yield from _about_tokens(compared)
    yield from _about_steered(compared)
    yield from _about_left_out(compared)
    if failed := len(record.failures):
        yield f"Failures, which are not scored: {failed:,}."
    if empty := Counter(
        variant_of(result.strategy, result.k) for result in strategy_results(record) if _is_empty(result)
    ):
        counts = ", ".join(f"{named(variant)} {count:,}" for variant, count in empty.items())
        yield f"Empty replies, as after a content filter or from a model that only reasoned: {counts}."
    if cut := about_cut_documents(compared):
        yield cut
    if record.stopped:
        yield f"The run ended early: {record.stopped.rstrip('.')}."
    yield from about_intervals(compared)


def about_cut_documents(compared: ComparedResults) -> str | None:
    """Return for how many questions the model could not read the whole document, in a sentence; None if for none."""
    readers = compared.get("long_context") or compared.get("self_route", compared.ks[0])
    cut = sum(each.cut for each in readers.values())
    if not cut:
        return None
    of_all = f"{cut:,} of {len(compared.keys):,} questions"
    return f"On {of_all} the document did not fit the model's window and was cut in the middle, or otherwise shortened."


def metric_names(record: Record) -> list[str]:
    """Return the names of the questions' own metrics, for people."""
    return list(dict.fromkeys(_METRICS.get(question.metric, question.metric) for question in record.questions))


def about_words(record: Record) -> str | None:
    """Return what metrics that compare words cannot see, in a sentence; None if no question has such a metric."""
    names = [name for name in metric_names(record) if name in _WORDS]
    if not names:
        return None
    scores = "scores" if len(names) == 1 else "score"
    return (
        f"{' and '.join(names)} {scores} brevity and wording, not meaning. A summary of two points out of six can "
        "score as high as one of all six, and a right answer in other words as low as a wrong one. A judge sees the "
        "difference (--judge, or judge= in Python)."
    )


def _about_judge(compared: ComparedResults) -> Iterator[str]:
    about = compared.record.settings.get("judge")
    if compared.measure == "score" or not about:
        return
    by = Counter(each.judged_by for results in compared.by_variant.values() for each in results.values())
    yield (
        f"Judged correctness: {about['model']} graded {by['model']:,} answers by the references (1, 0.5 or 0), without "
        f"knowing the strategy. Declines, and answers to unanswerable questions, are graded by rule ({by['rule']:,}). "
        f"{judge_cost(about)}"
    )


def judge_cost(judge: Mapping[str, Any]) -> str:
    """Return what the judge's replies took, in a sentence: the judge is in no strategy's figures."""
    dollars = "at an unknown cost" if judge["cost"] is None else f"for ${Decimal(judge['cost']):.4f}"
    tokens = f"{judge['input_tokens']:,} input and {judge['output_tokens']:,} output tokens"
    return f"That took {judge['calls']:,} calls with {tokens}, {dollars}."


def about_intervals(compared: ComparedResults) -> tuple[str, ...]:
    """Return the note of tables with intervals."""
    names = with_few_documents(compared.keys, compared.documents)
    if not names:
        return ()
    where = "" if len(names) == len(compared.datasets) else f" of {', '.join(names)}"
    few = f"The questions{where} are on fewer than {FEWEST_DOCUMENTS} known documents"
    return (f"{few}: intervals hold for other questions on these documents, not for other documents.",)


def about_papers(counts: Mapping[str, int]) -> tuple[str, ...]:
    """Return the note for the paper's figures if this run has fewer questions.

    Args:
        counts: How many questions of each of the paper's data sets are compared.
    """
    fewer = [
        f"{count:,} of {DATASETS[name].size:,} of {name}"
        for name, count in counts.items()
        if count < DATASETS[name].size
    ]
    return (f"This run has fewer questions than the paper: {', '.join(fewer)}.",) if fewer else ()


def _about_tokens(compared: ComparedResults) -> Iterator[str]:
    if compared.get("long_context"):
        yield "token % is Self-Route's input tokens as a percentage of the long context's."
    elif compared.get("self_route", compared.ks[0]):
        why = "finished no question" if ("long_context", None) in compared.failed else "was not run"
        yield f"The long context {why}: token % uses an estimate of its tokens, if there is one."


def _about_steered(compared: ComparedResults) -> Iterator[str]:
    """Yield the bounds and the sections of the strategies that have some."""
    about, ran = compared.record.settings, compared.reading_passages
    if {"graded", "graded_sections"} & set(ran) and "doubt_below" in about:
        yield (
            f"graded: after an answer with a confidence below {about['doubt_below']} the documents are read; a decline "
            f"with a prospect below {about['stop_below']} ends the question."
        )
    if {"sections", "graded_sections"} & set(ran) and "sections" in about:
        tokens, below = about["sections"], about.get("sections_below")
        doubt = "" if below is None else f" An answer from them with a confidence below {below} is in doubt."
        yield (
            f"sections: {tokens_text(tokens)} tokens of sections are read before whole documents, unless they are more "
            f"than half of them.{doubt}"
        )


def _about_left_out(compared: ComparedResults) -> Iterator[str]:
    """Yield how many questions are not compared, and what their first step did: they are seldom a random part."""
    if not compared.left_out:
        return
    missing = ", ".join(f"{named(variant)} {count:,}" for variant, count in compared.unfinished.items() if count)
    judged = ", or the judge did not" if compared.measure == "judged" else ""
    yield f"Questions left out because not every strategy finished them{judged}: {compared.left_out:,} ({missing})."
    if unseen := dict.fromkeys(name for name, _ in compared.documents if name not in compared.datasets):
        yield f"Data sets that are left out entirely: {', '.join(unseen)}."
    k, kept = compared.ks[0], set(compared.keys)
    drafts = compared.drafts.get(k, {})
    if not drafts:
        return
    lost = [_declined(each) for key, each in drafts.items() if key not in kept]
    step = "the first step" if k is None else f"the first step (k={k})"
    unknown = compared.left_out - len(lost)
    counts = f"declined {sum(lost):,}, answered {len(lost) - sum(lost):,} and has no draft for {unknown:,}"
    yield f"Of those left out, {step} {counts}."
    more_often = sum(lost) * len(drafts) > sum(map(_declined, drafts.values())) * len(lost)
    if more_often and len(lost) > _FEW * len(drafts):
        yield "The compared questions are not a fair sample: those left out were declined more often."


def _declined(result: Result) -> bool:
    return bool(result.decision["declined"])


def _is_empty(result: Result) -> bool:
    """Return whether the final answer or the draft is a reply without text."""
    replies = (result.answer if result.answerable else None, result.draft)
    return any(reply is not None and not reply.strip() for reply in replies)
