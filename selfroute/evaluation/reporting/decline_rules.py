"""Shows how the figures of Self-Route move with the rules by which replies count as declines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import fmean

from selfroute.answerability.anywhere import declines_anywhere
from selfroute.answerability.gate import declines
from selfroute.evaluation.asking.runner import Task, TaskOutcome, scored
from selfroute.evaluation.questions import Question
from selfroute.evaluation.records import Result
from selfroute.evaluation.reporting.compared import ComparedResults
from selfroute.evaluation.reporting.statistics import Key, average, interval
from selfroute.evaluation.table import Table

_WORDLESS = ("sentinel", "empty", "no_passages")
_REFUSAL = "unanswerable"
_SMALL = 1.0  # points of 100
_OWN = "as in this run"

Judge = Callable[[Result], bool]


def decline_rules(compared: ComparedResults) -> Table | None:
    """Make the table of Self-Route's figures by other rules for declines, computed from the kept replies.

    None if RAG or the long context did not run: Self-Route takes the draft of the one or the answer of the other.
    """
    drafts, reader = compared.get("rag", compared.ks[0]), compared.get("long_context")
    if not drafts or not reader:
        return None
    questions = {question.key: question for question in compared.record.questions}
    routed = _Routed(compared, drafts, reader, questions)
    refusal = next((said for each in drafts.values() if (said := _sentinel(each))), _REFUSAL)

    def by_word(result: Result) -> bool:
        signal = result.decision.get("signal") if result.strategy == "rag" else declines(result.answer, refusal).signal
        return not result.answerable and signal in _WORDLESS

    def anywhere(result: Result) -> bool:
        return _declined(result) or bool(result.draft and declines_anywhere(result.draft, refusal))

    rules: dict[str, Judge] = {"the refusal word only": by_word, _OWN: _declined, "a denial anywhere": anywhere}
    found = {name: routed.figures(rule) for name, rule in rules.items()}
    columns = ("a reply declines by", "first step declined %", "Self-Route", "low", "high", "token %", "declined %")
    return Table(
        "decline_rules",
        "Self-Route by other rules for declines",
        columns,
        tuple((name, *figures) for name, figures in found.items()),
        (_in_words({name: figures[1] for name, figures in found.items()}), *_NOTES, *compared.about_k),
    )


_NOTES = (
    "Computed from the kept replies, without asking again.",
    "The refusal word only: a reply that says more than this word, or another, is an answer.",
    "A denial anywhere: a draft that says in any sentence that the text does not tell is a decline.",
    "Replies to whole documents are judged by a denial anywhere in every run.",
    "declined % is the share of questions with a decline as the final answer.",
)


@dataclass(frozen=True)
class _Routed:
    """Self-Route, with its choice between draft and long context left open."""

    compared: ComparedResults
    drafts: Mapping[Key, Result]
    reader: Mapping[Key, Result]
    questions: Mapping[Key, Question]

    def figures(self, declined: Judge) -> tuple[float, float, float | None, float | None, float, float]:
        """Return the declined drafts, the score with its interval, the tokens and the final declines, times 100."""
        escalated = {key: declined(draft) for key, draft in self.drafts.items()}
        final = {key: self.reader[key] if goes else self.drafts[key] for key, goes in escalated.items()}
        scores = {key: self._value(result, declined=declined(result)) for key, result in final.items()}
        tokens = {
            key: draft.input_tokens + escalated[key] * self.reader[key].input_tokens
            for key, draft in self.drafts.items()
        }
        between = interval(scores, self.compared.documents) or (None, None)
        low, high = (None if end is None else 100 * end for end in between)
        ended = fmean(declined(result) for result in final.values())
        return (
            100 * fmean(escalated.values()),
            100 * average(scores),
            low,
            high,
            100 * self._token_share(tokens),
            100 * ended,
        )

    def _value(self, result: Result, *, declined: bool) -> float:
        """Return the score of a final answer; one that was taken for a decline until now is scored as it stands."""
        if declined or result.answerable:
            return self.compared.value(result)
        if self.compared.measure == "judged":
            return result.judged if result.judged is not None and result.judged_by == "model" else 0.0
        text = result.answer if result.draft is None else result.draft
        return scored(Task(self.questions[result.key], result.strategy), TaskOutcome(text, None, True, {}, {})).score

    def _token_share(self, tokens: Mapping[Key, int]) -> float:
        by_dataset: dict[str, list[Key]] = defaultdict(list)
        for key in tokens:
            by_dataset[key[0]].append(key)
        return fmean(
            sum(tokens[key] for key in keys) / (sum(self.reader[key].input_tokens for key in keys) or 1)
            for keys in by_dataset.values()
        )


def _in_words(scores: Mapping[str, float]) -> str:
    """Return how much the rules matter, in a sentence."""
    moves = {name: score - scores[_OWN] for name, score in scores.items() if name != _OWN}
    name, most = max(moves.items(), key=lambda item: abs(item[1]))
    if abs(most) < _SMALL:
        return f"The rules for declines hardly matter here: Self-Route moves by {abs(most):.1f} points at most."
    return (
        f"The rules for declines matter here: by {name}, Self-Route would have {abs(most):.1f} points "
        f"{'more' if most > 0 else 'less'}. Look at the drafts that declined before you trust the figures."
    )


def _declined(result: Result) -> bool:
    return not result.answerable


def _sentinel(draft: Result) -> str | None:
    """Return the refusal word as a draft has it; None if the draft is not this word."""
    return (draft.decision.get("evidence") or None) if draft.decision.get("signal") == "sentinel" else None
