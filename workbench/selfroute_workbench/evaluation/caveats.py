"""Sentences that say how to read the figures of an evaluation, and what limits them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal

from selfroute_workbench.evaluation.questions import Question
from selfroute_workbench.evaluation.record import Record
from selfroute_workbench.evaluation.statistics import FEWEST_DOCUMENTS

_METRICS = {"f1": "F1", "rouge_l": "ROUGE-L", "squad_f1": "SQuAD's F1", "squad_em": "SQuAD's exact match"}
"""Metrics that compare words, for people."""


def metrics_of(questions: Iterable[Question]) -> list[str]:
    """Return the names of the metrics of questions, for people."""
    return list(dict.fromkeys(_METRICS.get(question.metric, question.metric) for question in questions))


def caveats(evaluation: Record) -> Iterator[str]:
    """Yield what limits the figures of an evaluation, in sentences."""
    asked = evaluation.questions
    if judge := evaluation.settings.get("judge"):
        if evaluation.measure == "judged":
            by = Counter(look.judged_by for look in evaluation.looks)
            yield (
                f"{judge['model']} graded {by['model']:,} replies by the references (1, 0.5 or 0), without knowing the "
                f"strategy. Declines, and answers to unanswerable questions, are graded by rule ({by['rule']:,}). "
                f"{_judge_cost(judge)}"
            )
        else:
            yield f"The judge graded no answer, so these are scores by {' and '.join(metrics_of(asked))}."
    elif any(question.metric in _METRICS for question in asked):
        yield (
            f"Scores compare words ({' and '.join(metrics_of(asked))}), not meaning. A summary of two points out of "
            "six can score as high as one of all six, and a right answer in other words as low as a wrong one. A "
            "judge sees the difference (--judge, or judge= in Python)."
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


def _judge_cost(judge: Mapping[str, object]) -> str:
    """Return what the judge's replies took, in a sentence: the judge is in no strategy's figures."""
    dollars = "at an unknown cost" if judge["cost"] is None else f"for ${Decimal(str(judge['cost'])):.4f}"
    tokens = f"{judge['input_tokens']:,} input and {judge['output_tokens']:,} output tokens"
    return f"That took {judge['calls']:,} calls with {tokens}, {dollars}."


def how_to_read(evaluation: Record) -> Iterator[str]:
    """Yield what the columns of the main table mean, what was left out of it, and its caveats, in sentences."""
    settings = evaluation.settings
    yield (
        "Quality is times 100. tokens % is a percentage of the long context's; documents % is the share of "
        "questions for which whole documents were read."
    )
    left_out = len(evaluation.questions) - len(evaluation.compared)
    if left_out:
        judged = ", or the judge did not grade" if evaluation.measure == "judged" else ""
        of_all = f"{left_out:,} of {len(evaluation.questions):,} questions are left out"
        yield f"{of_all}: not every strategy finished them{judged}."
    if "doubt_below" in settings:
        below, *sections = settings["doubt_below"]
        text = f"graded: an answer with a confidence below {below} is in doubt; a decline with a prospect below "
        text += f"{settings['stop_below']} ends the question."
        yield text + (f" Answers from sections are in doubt below {', '.join(map(str, sections))}." if sections else "")
    if "sections" in settings:
        each = (evaluation.sections,) if isinstance(evaluation.sections, int) else evaluation.sections or ()
        tokens = [f"{tokens:,}" for tokens in each]
        yield (
            f"sections: {' and then '.join(tokens)} tokens of sections are read before whole documents, unless "
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
