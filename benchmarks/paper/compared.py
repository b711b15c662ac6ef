"""Compares RAG and the long context question by question, as the sequel does (Li et al., 2025, section 3.3)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from selfroute_workbench.evaluation.looks import Key, Result
from selfroute_workbench.evaluation.questions import Question

from .metrics import SEQUEL, Measures
from .study import REFUSAL, Study

WINS = ("LC correct", "RAG correct", "LC only", "RAG only", "LC better", "RAG better")
_QUESTION_WORD = re.compile(r"\b(what|who|whom|whose|which|where|when|why|how)\b", re.IGNORECASE)
_YES_OR_NO = re.compile(r"\W*(is|are|was|were|do|does|did|has|have|had|can|could|will|would|should)\b", re.IGNORECASE)
_SAME = {"whom": "who", "whose": "who"}


class Pair(NamedTuple):
    """What RAG and the long context answer to the same question."""

    question: Question
    rag: Result
    whole: Result

    def wins(self, measures: Measures) -> set[str]:
        """Return which of `WINS` hold of it (the sequel's Figure 2)."""
        answers = [one.answer if one.answerable else REFUSAL for one in (self.whole, self.rag)]
        scores = self.whole.score, self.rag.score
        whole, rag = (is_correct(self.question, *each, measures) for each in zip(answers, scores, strict=True))
        f1 = [measures.f1(answer, self.question.answers) for answer in answers]
        best = (whole, rag) if whole or rag else (f1[0] > f1[1], f1[1] > f1[0])
        holds = (whole, rag, whole and not rag, rag and not whole, best == (True, False), best == (False, True))
        return {name for name, does in zip(WINS, holds, strict=True) if does}


def is_correct(question: Question, answer: str, score: float, measures: Measures) -> bool:
    """Return whether an answer is correct: a choice, and a decline of what the text does not say, by its score."""
    return score == 1 if question.choices or not question.answers else bool(measures.exact(answer, question.answers))


def counted(pairs: Iterable[Pair], measures: Measures) -> tuple[int, ...]:
    """Count each of `WINS`."""
    counts = Counter(name for pair in pairs for name in pair.wins(measures))
    return tuple(counts[name] for name in WINS)


def pairs_of(study: Study, results: Sequence[Result]) -> list[Pair]:
    """Return the results of RAG and the long context on the same questions, by data set."""
    names = [question.dataset for question in study.questions]
    by = {(result.strategy, result.key): result for result in results}
    asked = sorted(study.questions, key=lambda question: names.index(question.dataset))
    found = ((one, by.get(("rag", one.key)), by.get(("long_context", one.key))) for one in asked)
    return [Pair(question, rag, whole) for question, rag, whole in found if rag and whole]


def shared_keys(study: Study) -> set[Key]:
    """Return the questions that every variant finished, of those that finished any."""
    finished = ({one.key for one in results if one.strategy == "paper"} for results in study.results.values())
    some = [keys for keys in finished if keys]
    return set.intersection(*some) if some else set()


def kept_of(study: Study, results: Sequence[Result] | None = None) -> list[Pair]:
    """Return the pairs that the sequel compares, of the first variant: not those that are answered from memory."""
    kept = kept_keys(study, SEQUEL["text"])
    results = next(iter(study.results.values())) if results is None else results
    return [pair for pair in pairs_of(study, results) if pair.question.key in kept]


def kept_keys(study: Study, measures: Measures) -> set[Key]:
    """Return the questions that are not answered correctly without any text; all, if that was not asked."""
    asked = {question.key: question for question in study.questions}
    replies = ((key, answer, score) for key, (answer, score) in (study.closed_book or {}).items())
    kept = {key for key, said, score in replies if not said or not is_correct(asked[key], said, score, measures)}
    return set(asked) if study.closed_book is None else kept


def question_word(question: str) -> str:
    """Return the first question word in a question, wherever it stands; "other" without one, and for yes or no."""
    found = None if _YES_OR_NO.match(question) else _QUESTION_WORD.search(question)
    word = found[0].lower() if found else "other"
    return _SAME.get(word, word)
