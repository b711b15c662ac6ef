"""Scores an answer against the reference answers, from 0 to 1, like the data sets' own programs.

Reimplemented from LongBench's `metrics.py`, InfiniteBench's `compute_scores.py`, SQuAD's `evaluate-v2.0.py`, and the
program of Li et al. (2025, arXiv 2501.01880), "Long Context vs. RAG for LLMs". Where theirs fail, the score is 0.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

Metric = Callable[[str, Sequence[str]], float]

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_SMALL_WORDS = re.compile(r"\b(?:a|an|the|and|or|about|to)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)

_NUMBER = re.compile(r"[0-9]+")
_ORDINAL = re.compile(r"\b(?:first|second)\b", re.IGNORECASE)
LETTERS = "ABCD"
_BLANKED = str.maketrans(dict.fromkeys("\n\"'.,?!{}", " "))
_BEFORE_THE_CHOICE = ("answer is:", "answer:", "answer is", "option is")


def _words(text: str, dropped: re.Pattern[str] = _ARTICLES) -> list[str]:
    """Split into words in lower case, without (ASCII) punctuation and without the dropped words."""
    return dropped.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()


def f1(prediction: str, answers: Sequence[str]) -> float:
    """Return the harmonic mean of precision and recall of words, against the nearest answer; 0 without answers.

    A word counts as often as it occurs. This is LongBench's F1 and InfiniteBench's for English, which are the same.
    LongBench cuts replies to their first line for four data sets, which are not evaluated here.
    """
    words = Counter(_words(prediction))
    references = [Counter(_words(answer)) for answer in answers]
    return max((_harmonic(words, reference) for reference in references), default=0.0)


def _harmonic(words: Counter[str], reference: Counter[str]) -> float:
    same = (words & reference).total()
    return 2 * same / (words.total() + reference.total()) if same else 0.0


def rouge_l(prediction: str, answers: Sequence[str]) -> float:
    """Return LongBench's ROUGE-L, against the nearest answer: longest common subsequences of words.

    It is computed by the package `rouge`, with its peculiarities: case and punctuation count, a sentence ends at any
    full stop, repeated words count once, and equal texts score a little less than 1. As in LongBench, the score is 0
    where the package fails: if a text has nothing but full stops, and if two sentences are so long that its recursion
    is too deep. With Python's usual limit that takes some 990 words without a full stop in both together, and a word
    less for each level of the caller; a reply of 512 tokens, LongBench's limit for summaries, stays below.

    Raises:
        ImportError: `rouge` is not installed.
    """
    from rouge import Rouge  # type: ignore[import-not-found,import-untyped,unused-ignore]  # noqa: PLC0415

    rouge, scores = Rouge(metrics=["rouge-l"], stats=["f"]), [0.0]
    for answer in answers:
        with suppress(ValueError, RecursionError):
            scores.append(rouge.get_scores(prediction, answer)[0]["rouge-l"]["f"])
    return max(scores)


def squad_f1(prediction: str, answers: Sequence[str]) -> float:
    """Return SQuAD 2.0's F1: for a question without answers, 1 if the prediction is empty.

    Answers, and predictions, of nothing but articles and punctuation count as empty.
    """
    return f1(prediction, answers) if any(map(_words, answers)) else float(not _words(prediction))


def squad_em(prediction: str, answers: Sequence[str]) -> float:
    """Return SQuAD 2.0's exact match: 1 if some answer has the same words in the same order.

    For a question without answers, 1 if the prediction is empty, as in `squad_f1`.
    """
    references = [words for answer in answers if (words := _words(answer))]
    return float(_words(prediction) in (references or [[]]))


def choice(prediction: str, answers: Sequence[str]) -> float:
    """Return 1 if the reply chooses the right option, as InfiniteBench reads replies.

    It looks for a letter at the beginning, then whether the reply is the option's text, then after "answer is" or the
    like, then for the first word that is a letter. "(C)" and "**C**" choose nothing. This is the later version of
    InfiniteBench's program; the first failed on an empty reply and did not take the option's text.

    Args:
        prediction: The reply.
        answers: The right option's text and its letter, A to D.
    """
    reply = prediction.strip()
    if not reply:
        return 0.0
    if reply[0] in LETTERS:
        return float(reply[0] in answers)
    if reply in answers:
        return 1.0
    reply = re.sub(" +", " ", reply.translate(_BLANKED))
    for lead in _BEFORE_THE_CHOICE:
        _, found, chosen = reply.partition(lead)
        if found:
            return float(any(answer and chosen[1:].startswith(answer) for answer in answers))
    letters = (word for word in reply.split() if word in LETTERS)  # so "BC" is one, and always wrong
    return float(next(letters, None) in answers)


def passkey(prediction: str, answers: Sequence[str]) -> float:
    """Return 1 if the first number of the reply is the pass key, digit for digit, as InfiniteBench does."""
    number = _NUMBER.search(prediction)
    return float(number is not None and number[0] in answers)


def first_or_second(prediction: str, answers: Sequence[str]) -> float:
    """Return 1 if the reply says the right one of "first" and "second" first: for "Which pass key is larger?"."""
    chosen, *right = (_ORDINAL.search(text) for text in (prediction, *answers))
    return float(chosen is not None and chosen[0].lower() in {word[0].lower() for word in right if word})


def exact_loose(prediction: str, answers: Sequence[str]) -> float:
    """Return the "exact match" of Li et al. (2025): 1 if the prediction has all words of some answer, or vice versa.

    Words like "and" and "to" are dropped with the articles. In their program an empty text matches everything, so that
    an empty reply is right; here it matches nothing. They have one answer to a question; here any may match.
    """
    return float(any(words <= other or other <= words for words, other in _sets(prediction, answers)))


def set_f1(prediction: str, answers: Sequence[str]) -> float:
    """Return the F1 of Li et al. (2025), over sets of words, against the nearest answer.

    Words are dropped as in `exact_loose`. This is the formula of their paper; their program rounds it to two decimals,
    so that answers tie that are not equally good.
    """
    pairs = _sets(prediction, answers)
    return max((2 * len(words & other) / (len(words) + len(other)) for words, other in pairs), default=0.0)


def _sets(prediction: str, answers: Sequence[str]) -> list[tuple[set[str], set[str]]]:
    """Pair the words of the prediction with those of each answer, if both have any."""
    words = set(_words(prediction, _SMALL_WORDS))
    others = [set(_words(answer, _SMALL_WORDS)) for answer in answers]
    return [(words, other) for other in others if words and other]


METRICS: Mapping[str, Metric] = {
    "f1": f1,
    "rouge_l": rouge_l,
    "en_qa_f1": f1,
    "choice": choice,
    "passkey": passkey,
    "first_or_second": first_or_second,
    "squad_f1": squad_f1,
    "squad_em": squad_em,
    "exact_loose": exact_loose,
    "set_f1": set_f1,
}
