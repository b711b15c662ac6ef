"""Scores an answer against the reference answers, from 0 to 1."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

Metric = Callable[[str, Sequence[str]], float]

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_SMALL_WORDS = re.compile(r"\b(?:a|an|the|and|or|about|to)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)

LETTERS = "ABCD"
_BLANKED = str.maketrans(dict.fromkeys("\n\"'.,?!{}", " "))
_BEFORE_THE_CHOICE = ("answer is:", "answer:", "answer is", "option is")


def words_of(text: str, dropped: re.Pattern[str] = _ARTICLES) -> list[str]:
    """Split into words in lower case, without (ASCII) punctuation and without the dropped words."""
    return dropped.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()


def f1(prediction: str, answers: Sequence[str]) -> float:
    """Return the harmonic mean of precision and recall of words, against the nearest answer; 0 without answers.

    A word counts as often as it occurs. This is LongBench's F1 and InfiniteBench's for English, which are the same.
    """
    words = Counter(words_of(prediction))
    references = [Counter(words_of(answer)) for answer in answers]
    return max((_harmonic(words, reference) for reference in references), default=0.0)


def _harmonic(words: Counter[str], reference: Counter[str]) -> float:
    same = (words & reference).total()
    return 2 * same / (words.total() + reference.total()) if same else 0.0


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


def exact_loose(prediction: str, answers: Sequence[str]) -> float:
    """Return the "exact match" of Li et al. (2025): 1 if the prediction has all words of some answer, or vice versa.

    Words like "and" and "to" are dropped with the articles. In their program an empty text matches everything, so that
    an empty reply is right; here it matches nothing. They have one answer to a question; here any may match.
    """
    return float(any(words <= other or other <= words for words, other in sets_of(prediction, answers)))


def sets_of(prediction: str, answers: Sequence[str]) -> list[tuple[set[str], set[str]]]:
    """Pair the words of the prediction with those of each answer, if both have any."""
    words = set(words_of(prediction, _SMALL_WORDS))
    others = [set(words_of(answer, _SMALL_WORDS)) for answer in answers]
    return [(words, other) for other in others if words and other]


METRICS: dict[str, Metric] = {"f1": f1, "choice": choice, "exact_loose": exact_loose}
"""The metrics by name; a program may add its own."""
