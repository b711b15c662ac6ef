"""The metrics of the data sets of the papers, beside those of the workbench; importing this adds them to its table.

Reimplemented from LongBench's `metrics.py`, InfiniteBench's `compute_scores.py`, SQuAD's `evaluate-v2.0.py`, and the
program of Li et al. (2025, arXiv 2501.01880), "Long Context vs. RAG for LLMs". Where theirs fail, the score is 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from rouge import Rouge  # type: ignore[import-not-found,import-untyped,unused-ignore]

from selfroute_workbench.evaluation.metrics import METRICS, Metric, exact_loose, f1, sets_of, words_of

_NOTHING = re.compile("(?!)")
_NUMBER = re.compile(r"[0-9]+")
_ORDINAL = re.compile(r"\b(?:first|second)\b", re.IGNORECASE)


def rouge_l(prediction: str, answers: Sequence[str]) -> float:
    """Return LongBench's ROUGE-L, against the nearest answer: longest common subsequences of words.

    It is computed by the package `rouge`, with its peculiarities: case and punctuation count, a sentence ends at any
    full stop, repeated words count once, and equal texts score a little less than 1. As in LongBench, the score is 0
    where the package fails: nothing but full stops, or sentences of more than some 990 words together.
    """
    rouge, scores = Rouge(metrics=["rouge-l"], stats=["f"]), [0.0]
    for answer in answers:
        with suppress(ValueError, RecursionError):
            scores.append(rouge.get_scores(prediction, answer)[0]["rouge-l"]["f"])
    return max(scores)


def squad_f1(prediction: str, answers: Sequence[str]) -> float:
    """Return SQuAD 2.0's F1: without answers, 1 if the prediction is empty, or has only articles and punctuation."""
    return f1(prediction, answers) if any(map(words_of, answers)) else float(not words_of(prediction))


def squad_em(prediction: str, answers: Sequence[str]) -> float:
    """Return SQuAD 2.0's exact match: 1 if some answer has the same words in order; without answers as `squad_f1`."""
    references = [words for answer in answers if (words := words_of(answer))]
    return float(words_of(prediction) in (references or [[]]))


def passkey(prediction: str, answers: Sequence[str]) -> float:
    """Return 1 if the first number of the reply is the pass key, digit for digit, as InfiniteBench does."""
    number = _NUMBER.search(prediction)
    return float(number is not None and number[0] in answers)


def first_or_second(prediction: str, answers: Sequence[str]) -> float:
    """Return 1 if the reply says the right one of "first" and "second" first: for "Which pass key is larger?"."""
    chosen, *right = (_ORDINAL.search(text) for text in (prediction, *answers))
    return float(chosen is not None and chosen[0].lower() in {word[0].lower() for word in right if word})


def set_f1(prediction: str, answers: Sequence[str]) -> float:
    """Return the F1 of the program of Li et al. (2025): as `text_f1`, less the words that `exact_loose` drops."""
    return _f1_of_sets(sets_of(prediction, answers))


def text_em(prediction: str, answers: Sequence[str]) -> float:
    """Return strict exact match (Li et al., 2025, sections 2.1 and 3.3): as `squad_em`, if an answer has any words."""
    return squad_em(prediction, answers) if any(map(words_of, answers)) else 0.0


def text_f1(prediction: str, answers: Sequence[str]) -> float:
    """Return the F1 of Li et al. (2025, appendix B): over sets of words, articles too, against the nearest answer."""
    words, *others = (set(words_of(text, _NOTHING)) for text in (prediction, *answers))
    return _f1_of_sets([(words, other) for other in others if words and other])


def _f1_of_sets(pairs: Sequence[tuple[set[str], set[str]]]) -> float:
    return max((2 * len(words & other) / (len(words) + len(other)) for words, other in pairs), default=0.0)


class Measures(NamedTuple):
    """By what answers are compared in the sequel: whether one is correct, and which of two wrong ones is better."""

    exact: Metric
    f1: Metric


SEQUEL: Mapping[str, Measures] = {"text": Measures(text_em, text_f1), "program": Measures(exact_loose, set_f1)}
"""The measures of the sequel: of its text, which speaks of strict exact match (section 3.3), and of its program."""

METRICS.update(
    rouge_l=rouge_l,
    en_qa_f1=f1,
    passkey=passkey,
    first_or_second=first_or_second,
    squad_f1=squad_f1,
    squad_em=squad_em,
    set_f1=set_f1,
    text_em=text_em,
    text_f1=text_f1,
)
