"""The sentences of a text, and in which of them each word stands; kept, so that a text is taken apart once."""

from __future__ import annotations

import re
from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from contextlib import nullcontext
from functools import cache, lru_cache
from itertools import pairwise
from threading import Lock

from selfroute.languages.sentences import sentence_spans
from selfroute.languages.words import UNSPACED, WITHIN, fold, is_spaced

BLOCK = 1_500  # characters
_MOST = 10_000_000  # characters of all texts that are kept; an index takes some six bytes for each
_SHORT, _LONG = 4_000, 50_000  # characters; a short text is taken apart in less than a millisecond, a long one is not
_SHORTEST_STEM = 3
_VOICED = "\u3099\u309a"  # Japanese marks, which stand apart from their characters in decomposed text
_SUFFIXES = ("ing", "ed", "ly", "e")


class Index:
    """The sentences of a text, and in which of them each word stands.

    Attributes:
        spans: Where each sentence begins and ends.
        sizes: How many words each has.
        grids: Twice, for each sentence the number of the stretch of `BLOCK` characters that it begins in; the
            stretches of the second begin in the middle of those of the first.
        blocks: How many such stretches there are.
    """

    __slots__ = ("_places", "blocks", "grids", "sizes", "spans")

    def __init__(self, text: str) -> None:
        """Take a text apart."""
        self.spans = sentence_spans(text)
        half = BLOCK // 2
        self.grids = [start // BLOCK for start, _ in self.spans], [(start + half) // BLOCK for start, _ in self.spans]
        self.blocks = (len(text) + half) // BLOCK + 1
        self.sizes: list[int] = []
        places: dict[str, list[int]] = defaultdict(list)
        find = _words().findall
        for number, (start, end) in enumerate(self.spans):
            words = find(text, start, end)
            self.sizes.append(len(words))
            for word in words:
                places[word].append(number)
        self._places = _by_stem(places)

    def holding(self, stem: str) -> set[int]:
        """Return the numbers of the sentences that hold a word with this stem."""
        return set(self._places.get(stem, ()))


def stems_of(text: str) -> Iterable[str]:
    """Return the stems of the words of a text, each once; of Chinese and Japanese, its characters and pairs of them."""
    return _by_stem({word: [] for word in _words().findall(text)})


@cache
def _words() -> re.Pattern[str]:
    return re.compile(rf"\w+(?:(?<=\d)[.,]\d+|-\n\w+|[{WITHIN}{_VOICED}]+\w*)*")


@cache
def _parts() -> re.Pattern[str]:
    """Return the pattern of the parts of a word: numbers, and what is of one script."""
    return re.compile(rf"(?<![^\W{UNSPACED}])\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?(?!,)|[{UNSPACED}]+|[^{UNSPACED},]+")


def _by_stem(places: dict[str, list[int]]) -> dict[str, list[int]]:
    """Return the places of words by their stems: without case, accents and the commonest endings."""
    found: dict[str, list[int]] = {}
    for word, of_word in places.items():
        if "," in word or not word.isascii():
            for stem in _stems(word):
                found.setdefault(stem, []).extend(of_word)
        elif (stem := _stem(word.lower())) in found:
            found[stem] += of_word
        else:
            found[stem] = of_word
    return found


def _stems(word: str) -> set[str]:
    """Return the stem of a word; of a script without spaces, its characters and the pairs of them."""
    found = set()
    for part in _parts().findall(word):
        folded = fold(part)
        if is_spaced(part):
            found.add(_stem(folded))
        else:
            found.update(folded, map("".join, pairwise(folded)))
    return found


@lru_cache(20_000)
def _stem(word: str) -> str:
    word = word.replace("-\n", "").strip("_")
    if len(word) <= _SHORTEST_STEM or word[-1] in "0123456789":
        return word.replace(",", "")
    if word[-1] == "s" and word[-2] != "s":
        word = word[:-1]
    if word.endswith(_SUFFIXES):
        for suffix in _SUFFIXES:
            if word.endswith(suffix) and len(word) > len(suffix) + _SHORTEST_STEM:
                return word[: -len(suffix)]
    return word


class _Kept:
    """The indexes of the texts that were read last; safe to use from threads."""

    def __init__(self) -> None:
        self._indexes: OrderedDict[str, Index] = OrderedDict()
        self._size, self._lock, self._making = 0, Lock(), Lock()

    def clear(self) -> None:
        """Forget all of them."""
        with self._lock:
            self._indexes.clear()
            self._size = 0

    def of(self, text: str) -> Index:
        """Return the index of a text; the questions on a long one that come at once wait for the first."""
        with self._making if len(text) > _LONG else nullcontext():
            with self._lock:
                if text in self._indexes:
                    self._indexes.move_to_end(text)
                    return self._indexes[text]
            index = Index(text)
            if _SHORT < len(text) <= _MOST:
                self._keep(text, index)
            return index

    def _keep(self, text: str, index: Index) -> None:
        with self._lock:
            if text not in self._indexes:
                self._size += len(text)
            self._indexes[text] = index
            while self._size > _MOST:
                self._size -= len(self._indexes.popitem(last=False)[0])


KEPT = _Kept()
