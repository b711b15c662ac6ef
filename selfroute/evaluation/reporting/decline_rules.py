"""Shows how the figures of Self-Route move with the rules by which replies count as declines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from selfroute.answerability import declines_anywhere
from selfroute.answerability.gate import declines
from selfroute.evaluation.asking.runner import Task, TaskOutcome, scored
from selfroute.evaluation.questions import Question
from selfroute.evaluation.records import Result
from selfroute.evaluation.reporting.compared import ComparedResults
from selfroute.evaluation.reporting.statistics import Key, average, compare, interval
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
    found = _by_rule(compared)
    if not found:
        return None
    columns = (
        "a reply declines by",
        *("first step declined %", "Self-Route", "low", "high", "token %", "declined %"),
        *("minus long context", "verdict"),
    )
    rows = tuple((name, *figures) for name, figures in found.items())
    notes = (_in_words(found), *_NOTES, *compared.about_k)
    return Table("decline_rules", "Self-Route by other rules for declines", columns, rows, notes)


def sensitivity(compared: ComparedResults) -> str | None:
    """Return how the rules for declines move Self-Route's score, in a sentence; None if they hardly do."""
    found = _by_rule(compared)
    return _in_words(found) if found and _matters(found) else None


def _by_rule(compared: ComparedResults) -> Mapping[str, _Figures]:
    """Return the figures by each rule; nothing if RAG or the long context did not run."""
    drafts, reader = compared.get("rag", compared.ks[0]), compared.get("long_context")
    if not drafts or not reader:
        return {}
    questions = {question.key: question for question in compared.record.questions}
    routed = _Routed(compared, drafts, reader, questions)
    refusal = next((said for each in drafts.values() if (said := _sentinel(each))), _REFUSAL)

    def by_word(result: Result) -> bool:
        signal = result.decision.get("signal") if result.strategy == "rag" else declines(result.answer, refusal).signal
        return not result.answerable and signal in _WORDLESS

    def anywhere(result: Result) -> bool:
        return _declined(result) or bool(result.draft and declines_anywhere(result.draft, refusal))

    rules: dict[str, Judge] = {"the refusal word only": by_word, _OWN: _declined, "a denial anywhere": anywhere}
    return {name: routed.figures(rule) for name, rule in rules.items()}


_NOTES = (
    "Computed from the kept replies, without asking again.",
    "The refusal word only: a reply that says more than this word, or another, is an answer.",
    "A denial anywhere: a draft that says in any sentence that the text does not tell is a decline.",
    "Replies to whole documents are judged by a denial anywhere in every run.",
    "declined % is the share of questions with a decline as the final answer.",
)


class _Figures(NamedTuple):
    """Self-Route by one rule; all but the verdict times 100."""

    first_declined: float
    score: float
    low: float | None
    high: float | None
    token_share: float
    declined: float
    difference: float
    verdict: str


@dataclass(frozen=True)
class _Routed:
    """Self-Route, with its choice between draft and long context left open."""

    compared: ComparedResults
    drafts: Mapping[Key, Result]
    reader: Mapping[Key, Result]
    questions: Mapping[Key, Question]

    def figures(self, declined: Judge) -> _Figures:
        """Return the figures if replies are judged so."""
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
        alone = {key: self._value(result, declined=declined(result)) for key, result in self.reader.items()}
        against = compare(scores, alone, documents=self.compared.documents)
        return _Figures(
            100 * fmean(escalated.values()),
            100 * average(scores),
            low,
            high,
            100 * self._token_share(tokens),
            100 * ended,
            100 * against.difference,
            against.verdict,
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


def _matters(found: Mapping[str, _Figures]) -> bool:
    """Return whether another rule moves the score by a point, or changes what is said of the long context."""
    _, move, verdict = _farthest(found)
    return abs(move) >= _SMALL or verdict != found[_OWN].verdict


def _farthest(found: Mapping[str, _Figures]) -> tuple[str, float, str]:
    """Return the other rule that says the most else: its name, by how much the score moves, and its verdict."""
    own = found[_OWN]
    moves = [(name, each.score - own.score, each.verdict) for name, each in found.items() if name != _OWN]
    return max(moves, key=lambda one: (one[2] != own.verdict, abs(one[1])))


def _in_words(found: Mapping[str, _Figures]) -> str:
    """Return how much the rules matter, in a sentence."""
    name, move, verdict = _farthest(found)
    if not _matters(found):
        return f"The rules for declines hardly matter here: Self-Route moves by {abs(move):.1f} points at most."
    moved = f"{abs(move):.1f} points {'more' if move > 0 else 'less'}"
    own = found[_OWN].verdict
    against = f" Compared with the long context: {verdict}, instead of {own}." if verdict != own else ""
    return (
        f"The rules for declines matter here: by {name}, Self-Route would have {moved}.{against} "
        "Look at the drafts that declined before you trust the figures."
    )


def _declined(result: Result) -> bool:
    return not result.answerable


def _sentinel(draft: Result) -> str | None:
    """Return the refusal word as a draft has it; None if the draft is not this word."""
    return (draft.decision.get("evidence") or None) if draft.decision.get("signal") == "sentinel" else None
