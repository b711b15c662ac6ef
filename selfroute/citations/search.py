"""Score the sentences of several texts by the words that they share with a question and its answer.

What a word is worth, and that long sentences count less, is as in BM25 (Robertson and Zaragoza, 2009), with a steeper
rarity. A sentence also counts for what stands around it, since the words of an answer are spread over neighbours. The
constants are those that found most evidence in the benchmark `citations.py`; near values find as much.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from selfroute.documents.index import Index, stems_of

_OF_QUESTION = 0.4  # the worth of a word of the question, where one of the answer is worth 1
_RARITY = 1.5
_LENGTH = 0.3
_SHORTEST = 0.5  # of the average; a shorter sentence counts as if it were as long
_AROUND = 0.7  # the worth of what stands around a sentence, where the sentence itself is worth 1
_FEWEST = 50  # sentences; of fewer one cannot learn what is rare
_FEWEST_BLOCKS = 10
_SAID = 0.3  # what a word is worth once a sentence with it was found


@dataclass(slots=True)
class _Word:
    """A word of the question or the answer.

    Attributes:
        sentences: The numbers of the sentences that hold it.
        blocks: For both grids, the numbers of the blocks that hold it.
        worth: What it counts for a sentence that holds it.
        worth_around: What it counts for the sentences of a block that holds it.
    """

    sentences: set[int]
    blocks: tuple[set[int], set[int]]
    worth: float
    worth_around: float


class SentenceSearch:
    """Finds sentences one after the other, the best first; the next one for what the former do not say.

    Attributes:
        bases: For each text, the number of its first sentence: sentences are counted through all texts.
    """

    def __init__(self, question: str, answer: str, indexes: Sequence[Index]) -> None:
        """Score all sentences.

        Args:
            question: The question.
            answer: The answer.
            indexes: An index of each text.
        """
        self.bases: list[int] = []
        self._sizes: list[int] = []
        self._grids: tuple[list[int], list[int]] = [], []
        blocks = 0
        for index in indexes:
            self.bases.append(len(self._sizes))
            self._sizes += index.sizes
            for all_numbers, numbers in zip(self._grids, index.grids, strict=True):
                all_numbers.extend([number + blocks for number in numbers] if blocks else numbers)
            blocks += index.blocks
        self._scale = _LENGTH * len(self._sizes) / max(sum(self._sizes), 1)
        self._own: dict[int, float] = defaultdict(float)
        self._around = [0.0] * blocks, [0.0] * blocks
        self._words: list[_Word] = []
        weights = dict.fromkeys(stems_of(question), _OF_QUESTION) | dict.fromkeys(stems_of(answer), 1.0)
        for stem, weight in weights.items():
            sentences = self._holding(stem, indexes)
            if sentences or weight == 1:  # that "who" stands nowhere says nothing of an answer
                self._words.append(self._word(sentences, weight))
                self._add(self._words[-1], 1)
        self._most = sum(word.worth for word in self._words) or 1
        self._most_around = (sum(word.worth_around for word in self._words) or 1) / _AROUND

    def next(self) -> tuple[int, float] | None:
        """Return the number of the best sentence that is left, with its score; None if no sentence is left."""
        best, found = 0.0, -1
        first, second = self._grids
        around_first, around_second = self._around
        shortest = _LENGTH * _SHORTEST
        for number, own in self._own.items():
            size = self._sizes[number] * self._scale
            around, other = around_first[first[number]], around_second[second[number]]
            around = around if around > other else other  # noqa: FURB136 - `max` takes as long as all the rest
            size = size if size > shortest else shortest  # noqa: FURB136
            score = own / (1 - _LENGTH + size) / self._most + around / self._most_around
            if score > best or (score == best and number < found):
                best, found = score, number
        if found < 0:
            return None
        del self._own[found]
        for word in self._words:
            if found in word.sentences:
                word.sentences.remove(found)
                self._add(word, _SAID - 1)
                word.worth *= _SAID
                word.worth_around *= _SAID
        return found, min(best / (1 + _AROUND), 1.0)

    def _holding(self, stem: str, indexes: Iterable[Index]) -> set[int]:
        """Return the numbers of the sentences with this stem, in all texts."""
        if len(self.bases) == 1:
            return next(iter(indexes)).holding(stem)
        return {
            base + number for base, index in zip(self.bases, indexes, strict=True) for number in index.holding(stem)
        }

    def _word(self, sentences: set[int], weight: float) -> _Word:
        first, second = ({grid[number] for number in sentences} for grid in self._grids)
        worth = weight * _rarity(len(sentences), max(len(self._sizes), _FEWEST))
        around = weight * _rarity(len(first), max(len(self._around[0]), _FEWEST_BLOCKS))
        return _Word(sentences, (first, second), worth, around)

    def _add(self, word: _Word, share: float) -> None:
        """Add a share of a word's worth to the sentences and blocks that hold it."""
        own, worth = self._own, word.worth * share
        for number in word.sentences:
            own[number] += worth
        for around, blocks in zip(self._around, word.blocks, strict=True):
            for block in blocks:
                around[block] += word.worth_around * share


def _rarity(holding: int, of: int) -> float:
    """Return the worth of a word that this many of all sentences hold."""
    rarity: float = math.log(1 + (max(of - holding, 0) + 0.5) / (holding + 0.5)) ** _RARITY
    return rarity
