"""The sentences and sections of a text, and where each word stands; kept, so that a text is taken apart once."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from functools import cache, lru_cache
from itertools import accumulate, pairwise
from sys import getsizeof
from threading import Lock

from selfroute.languages.sentences import sentence_spans
from selfroute.languages.tokens import count_tokens
from selfroute.languages.words import UNSPACED, WITHIN, fold, is_spaced

BLOCK = 1_500  # characters
SECTION = 1_200  # characters of English, some 300 tokens; of other scripts as many as have so many tokens
_PER_TOKEN = 4  # characters of English
_OTHER_SCRIPTS = re.compile("[\u0370-\u1fff\u2e80-\U0010ffff]+")  # than the Latin one
_MOST = 150_000_000  # bytes of all that is kept: English of ten million characters takes some hundred million
_PER_SENTENCE, _PER_SECTION, _PER_STEM, _PER_PLACE = 240, 160, 130, 8  # bytes, as measured; most are of small objects
_SHORT = 4_000  # characters; a short text is taken apart in less than a millisecond
_SHORTEST_STEM = 3
_LONGEST_KEPT = 60  # characters
# Where combining marks stand, as in Hindi: all of Unicode but large blocks without any, which take long to read.
_MARKED = ((0x300, 0x3100), (0xA600, 0xAC00), (0xFB00, 0x12000), (0x16A00, 0x17000), (0x1BC00, 0x1F000))
_SUFFIXES = ("ing", "ed", "ly", "e")
# A Korean noun of two syllables or more, with a particle.
_KOREAN = re.compile(
    "([\uac00-\ud7a3]{2,}?)"
    "(?:에서는|에서|에게|으로|까지|부터|처럼|보다|이나|이라|에는|은|는|이|가|을|를|에|의|로|와|과|도|만|께)$"
)


class Index:
    """The sentences of a text, its sections, and in which of them each word stands.

    Attributes:
        spans: Where each sentence begins and ends.
        sizes: How many words each has.
        grids: Twice, for each sentence the number of the stretch of `BLOCK` characters that it begins in; the
            stretches of the second begin in the middle of those of the first.
        blocks: How many such stretches there are.
        sections: Where each section begins and ends: some sentences that follow one another, some 300 tokens at most.
        section_sizes: How many words each has.
        memory: About how many bytes all this takes, with the text; it depends on what a text holds more than on its
            length.
    """

    __slots__ = ("_places", "_section_of", "blocks", "grids", "memory", "section_sizes", "sections", "sizes", "spans")

    def __init__(self, text: str) -> None:
        """Take a text apart."""
        self.spans = sentence_spans(text)
        half = BLOCK // 2
        self.grids = [start // BLOCK for start, _ in self.spans], [(start + half) // BLOCK for start, _ in self.spans]
        self.blocks = (len(text) + half) // BLOCK + 1
        self.sizes: list[int] = []
        self._places = _by_stem(_words_in(text, self.spans, self.sizes))
        self.sections: list[tuple[int, int]] = []
        self.section_sizes: list[int] = []
        self._section_of: list[int] = []
        for number, (first, behind) in enumerate(pairwise(_cuts(text, self.spans))):
            self.sections.append((self.spans[first][0], self.spans[behind - 1][1]))
            self.section_sizes.append(sum(self.sizes[first:behind]))
            self._section_of += [number] * (behind - first)
        self.memory = (
            getsizeof(text)
            + _PER_SENTENCE * len(self.spans)
            + _PER_SECTION * len(self.sections)
            + sum(map(getsizeof, self._places))
            + _PER_STEM * len(self._places)
            + _PER_PLACE * sum(map(len, self._places.values()))
        )

    def shared(self, stems: set[str]) -> set[str]:
        """Return those of some stems that words of the text have; takes as long as the fewer of both."""
        return self._places.keys() & stems

    def holding(self, stem: str) -> set[int]:
        """Return the numbers of the sentences that hold a word with this stem."""
        return set(self._places.get(stem, ()))

    def in_sections(self, stem: str) -> Mapping[int, int]:
        """Return how often each section that holds a word with this stem does, by the number of the section."""
        return Counter(map(self._section_of.__getitem__, self._places.get(stem, ())))


def stems_of(text: str) -> Iterable[str]:
    """Return the stems of the words of a text, each once; of Chinese and Japanese, its characters and pairs of them."""
    return _by_stem((word, []) for word in dict.fromkeys(_words().findall(text)))


def _words_in(text: str, spans: Sequence[tuple[int, int]], sizes: list[int]) -> Iterator[tuple[str, list[int]]]:
    """Yield words with the numbers of the sentences that hold them, and set how many words each sentence has.

    The text is split at white space first: most of what stands between is a word, or stands there often.
    """
    find = _words().findall
    unsplit: dict[str, list[int]] = defaultdict(list)
    for number, (start, end) in enumerate(spans):
        sentence = text[start:end]
        parts = find(sentence) if "-\n" in sentence else sentence.split()
        sizes.append(len(parts))
        for part in parts:
            unsplit[part].append(number)
    for part, numbers in unsplit.items():
        words = (part,) if part.isalnum() else find(part)
        if len(words) == 1:
            yield words[0], numbers
            continue
        for number in numbers:
            sizes[number] += len(words) - 1
        for word in words:
            yield word, [*numbers]


def _cuts(text: str, spans: Sequence[tuple[int, int]]) -> list[int]:
    """Return the number of the first sentence of each section, and at the end how many sentences there are.

    A section ends as late as it can at the end of a paragraph, else of a line, else of a sentence; half full at least.
    """
    longer = list(accumulate((_extra(text[start:end]) for start, end in spans), initial=0))
    ends = [end + more for (_, end), more in zip(spans, longer[1:], strict=True)]  # if all was as long as in English
    cuts = [0]
    while (first := cuts[-1]) < len(spans):
        start = spans[first][0] + longer[first]
        most = max(bisect(ends, start + SECTION, first), first + 1)
        if most < len(spans):
            least = max(bisect(ends, start + SECTION // 2, first, most), first + 1)
            most = max(
                range(most, least - 1, -1), key=lambda at: min(text.count("\n", spans[at - 1][1], spans[at][0]), 2)
            )
        cuts.append(most)
    return cuts


def _extra(sentence: str) -> int:
    """Return how many characters of English more have the tokens of a sentence."""
    if sentence.isascii():
        return 0
    others = "".join(_OTHER_SCRIPTS.findall(sentence))
    return max(_PER_TOKEN * count_tokens(others) - len(others), 0) if others else 0


@cache
def _words() -> re.Pattern[str]:
    # What a word goes on with is looked at only where it can: most words end at a space.
    return re.compile(rf"\w+(?:[.,](?<=\d[.,])\d+|-\n\w+|[\x80-\U0010ffff](?<=[{WITHIN}{_marks()}])\w*)*")


def _marks() -> str:
    """Return the accents, points and vowel signs of all scripts, as the inside of a character class."""
    places = [place for first, behind in _MARKED for place in range(first, behind)]
    kinds = "".join(map(unicodedata.category, map(chr, places)))  # two letters each, such as "Mn"
    runs = (found.span() for found in re.finditer("(?:M[nc])+", kinds))
    return "".join(f"{chr(places[start // 2])}-{chr(places[end // 2 - 1])}" for start, end in runs)


@cache
def _parts() -> re.Pattern[str]:
    """Return the pattern of the parts of a word: numbers, and what is of one script."""
    return re.compile(rf"(?<![^\W{UNSPACED}])\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?(?!,)|[{UNSPACED}]+|[^{UNSPACED},]+")


def _by_stem(places: Iterable[tuple[str, list[int]]]) -> dict[str, list[int]]:
    """Return the places of words by their stems: without case, accents and the commonest endings."""
    found: dict[str, list[int]] = {}
    for word, of_word in places:
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
            if noun := _KOREAN.match(part):
                found.add(fold(noun[1]))
        else:
            found.update(folded, map("".join, pairwise(folded)))
    return found


def _stem(word: str) -> str:
    """Return the stem of a word, kept unless it is so long that it is no word."""
    return _kept_stem(word) if len(word) <= _LONGEST_KEPT else _stem_of(word)


def _stem_of(word: str) -> str:
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


_kept_stem = lru_cache(20_000)(_stem_of)


class _Kept:
    """The indexes of the texts that were read last; safe to use from threads."""

    def __init__(self) -> None:
        self._indexes: OrderedDict[str, Index] = OrderedDict()
        self._making: dict[str, Future[Index]] = {}
        self._size, self._lock = 0, Lock()

    def clear(self) -> None:
        """Forget all of them."""
        with self._lock:
            self._indexes.clear()
            self._size = 0

    def of(self, text: str) -> Index:
        """Return the index of a text; those who want the same one at once wait for the first, and for nobody else."""
        if len(text) <= _SHORT:
            return Index(text)
        while True:
            with self._lock:
                if text in self._indexes:
                    self._indexes.move_to_end(text)
                    return self._indexes[text]
                if (making := self._making.get(text)) is None:
                    made = self._making[text] = Future()
                    break
            with suppress(CancelledError):  # an error of the first is not one of the others: one of them tries again
                return making.result()
        try:
            index = Index(text)
            self._keep(text, index)
            made.set_result(index)
            return index
        finally:
            with self._lock:
                del self._making[text]
            made.cancel()  # does nothing to one that is done

    def _keep(self, text: str, index: Index) -> None:
        with self._lock:
            if index.memory > _MOST:
                return
            self._indexes[text] = index
            self._size += index.memory
            while self._size > _MOST:
                self._size -= self._indexes.popitem(last=False)[1].memory


WORD_INDEXES = _Kept()
