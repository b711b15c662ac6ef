"""Choose the sections of documents that matter to a question: by its words, and by what the retriever found.

What a section is worth by words is BM25 (Robertson and Zaragoza, 2009), over the sections of all documents. It is
joined with the retriever's passages by reciprocal ranks (Cormack, Clarke and Büttcher, 2009): scores are not compared.
"""

from __future__ import annotations

import math
import re
from bisect import bisect, bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from heapq import nsmallest
from itertools import accumulate, islice
from typing import NamedTuple

from selfroute.documents.index import WORD_INDEXES, Index, stems_of
from selfroute.documents.window import Count, find_passage

_FREQUENCY, _LENGTH = 1.2, 0.75  # of BM25: k1 and b
_SOLID = re.compile(r"\S")
_MOST_STEMS = 300  # of a question; one with more of them is a text
_AFTER = 10  # added to a rank: how little the first ranks stand out
_STOP_WORDS = """a about all also an and any are as at be been being but by can could d did do does doing for from had
    has have having he her his how i if in into is it its ll m may me might more most my no not of on or our over re s
    she should so some such t than that the their them then there these they this those to us ve was we were what when
    where which while who whom whose why will with would you your"""
_Holder = tuple[int, Index]  # of a stem: the number of the document's first section, and its index


class Run(NamedTuple):
    """A stretch of a document, `text[start:end]`.

    Attributes:
        document: The number of the document, from 0.
        start: The offset of its first character.
        end: The offset behind its last one.
    """

    document: int
    start: int
    end: int


class Ranking:
    """The sections of some documents in order of worth to a question.

    Attributes:
        documents: The numbers of the documents, best first.
    """

    def __init__(
        self, texts: Sequence[str], *, passages: Sequence[Run | None], sections: Sequence[Run], documents: list[int]
    ) -> None:
        """Take what was ranked.

        Args:
            texts: The texts of the documents.
            passages: Where the retrieved passages stand, best first; None for one that stands nowhere.
            sections: The sections, best first.
            documents: The numbers of the documents, best first.
        """
        self.documents = documents
        self._texts, self._passages, self._sections = texts, passages, sections

    @property
    def best(self) -> Run | None:
        """The best section; None if there is no text."""
        return next(iter(self._sections), None)

    def fill(self, budget: int, count: Count, *, always: int) -> list[Run]:
        """Choose what to read: passages first, then sections by their worth, until the budget is full.

        What is chosen for a budget is chosen for a larger one, too. Each section is counted once, and at the end what
        is joined of them.

        Args:
            budget: The limit for the texts of all runs together, in tokens.
            count: Counts the tokens of a text.
            always: How many of the passages come before all sections, best first.

        Returns:
            The runs, in the documents' order; those that touch or overlap, or have only white space between them, are
            joined. These are not all of the first passages if they do not fit.
        """
        chosen = [run for run in self._passages[:always] if run]
        sizes: dict[Run, int] = {}

        def size(number: int) -> int:
            runs = _joined(chosen[:number], self._texts)
            sizes.update((run, count(self._text(run))) for run in runs if run not in sizes)
            return sum(sizes[run] for run in runs)

        most = len(chosen)
        if (room := budget - size(most)) >= 0:
            read = _joined(chosen, self._texts)
            for section in self._sections:
                room -= sum(count(self._text(part)) for part in _without(section, read))
                if room < 0:
                    break
                chosen.append(section)
            most = len(chosen)
        if size(most) > budget:
            most = max(bisect(range(most), budget, key=size) - 1, 0)
        return _joined(chosen[:most], self._texts)

    def _text(self, run: Run) -> str:
        return self._texts[run.document][run.start : run.end]


def ranked(
    question: str, texts: Sequence[str], passages: Sequence[str], *, origins: Sequence[Sequence[int] | None] = ()
) -> Ranking:
    """Put the sections of some documents in order of worth to a question.

    Args:
        question: The question. Of one that shares more than 300 words with the documents, which is a text rather than
            a question, only the rarest of them count.
        texts: The texts of the documents.
        passages: The texts of the retrieved passages, best first; those that stand in no document count for nothing.
        origins: For each passage the numbers of the documents that it may be from, where it is looked for first: others
            may quote it. None, or no numbers, if that is unknown.
    """
    indexes = [WORD_INDEXES.of(text) for text in texts]
    sections = [Run(number, *span) for number, index in enumerate(indexes) for span in index.sections]
    from_which = zip(passages, origins or [None] * len(passages), strict=True)
    found = [_found(passage, texts, numbers or ()) for passage, numbers in from_which]
    worth, of_documents = [0.0] * len(sections), [0.0] * len(texts)
    for rank, number in enumerate(_by_words(question, indexes)):
        worth[number] += 1 / (_AFTER + rank)
        of_documents[sections[number].document] += 1 / (1 + rank)
    held: set[int] = set()
    for rank, run in enumerate(found):
        if run:
            of_documents[run.document] += 1 / (1 + rank)
            for number in _overlapping(run, sections) - held:
                held.add(number)
                worth[number] += 1 / (_AFTER + rank)
    best_first = sorted(range(len(sections)), key=worth.__getitem__, reverse=True)
    documents = sorted(range(len(texts)), key=of_documents.__getitem__, reverse=True)
    return Ranking(texts, passages=found, sections=[sections[number] for number in best_first], documents=documents)


def best_by_words(question: str, indexes: Sequence[Index]) -> list[int]:
    """Return the numbers of the texts that hold words of a question, best first: each counts as its best section.

    Args:
        question: The question.
        indexes: An index of each text.
    """
    of_section = [number for number, index in enumerate(indexes) for _ in index.sections]
    return list(dict.fromkeys(of_section[section] for section in _by_words(question, indexes)))


def _found(passage: str, texts: Sequence[str], origins: Sequence[int]) -> Run | None:
    """Return where a passage stands: in one of the documents that it may be from, else in any."""
    for numbers in (origins, range(len(texts))):
        if place := find_passage(passage, [texts[number] for number in numbers]):
            number, start, end = place
            return Run(numbers[number], start, end)
    return None


def _by_words(question: str, indexes: Sequence[Index]) -> list[int]:
    """Return the numbers of the sections that hold words of the question, counted through all documents, best first.

    The work grows with the question and with how often its words stand in the documents. Only `_MOST_STEMS` of them
    count, the rarest.
    """
    lengths = [size for index in indexes for size in index.section_sizes]
    average = sum(lengths) / max(len(lengths), 1) or 1
    scores: dict[int, float] = defaultdict(float)
    holders = _holders(telling_stems(question), indexes)
    for stem in sorted(_rarest(holders)):
        holding = _holding(stem, holders[stem])
        rarity = math.log(1 + (len(lengths) - len(holding) + 0.5) / (len(holding) + 0.5))
        for number, times in holding.items():
            most = _FREQUENCY * (1 - _LENGTH + _LENGTH * lengths[number] / average)
            scores[number] += rarity * times * (_FREQUENCY + 1) / (times + most)
    return sorted(scores, key=lambda number: (-scores[number], number))


@cache
def _stop_words() -> frozenset[str]:
    return frozenset(stems_of(_STOP_WORDS))


def telling_stems(text: str) -> set[str]:
    """Return the stems of a text's words without those of English stop words; all if there are no others."""
    stems = set(stems_of(text))
    return stems - _stop_words() or stems


def _holders(wanted: set[str], indexes: Sequence[Index]) -> dict[str, list[_Holder]]:
    """Return the documents that hold each stem of a question, of those that any holds."""
    holders: dict[str, list[_Holder]] = defaultdict(list)
    for holder in zip(accumulate((len(index.sections) for index in indexes), initial=0), indexes, strict=False):
        for stem in holder[1].shared(wanted):
            holders[stem].append(holder)
    return holders


def _rarest(holders: Mapping[str, Sequence[_Holder]]) -> Iterable[str]:
    """Return the stems that stand in the fewest sections, `_MOST_STEMS` at most."""
    if len(holders) <= _MOST_STEMS:
        return holders

    def sections_with(stem: str) -> int:
        return sum(len(index.in_sections(stem)) for _, index in holders[stem])

    return nsmallest(_MOST_STEMS, sorted(holders), key=sections_with)


def _holding(stem: str, holders: Iterable[_Holder]) -> dict[int, int]:
    """Return how often each section that holds a stem does."""
    return {base + number: times for base, index in holders for number, times in index.in_sections(stem).items()}


def _overlapping(run: Run, sections: Sequence[Run]) -> set[int]:
    """Return the numbers of the sections that a run overlaps."""
    first = bisect(sections, (run.document, run.start), key=lambda section: (section.document, section.end))
    behind = bisect_left(sections, (run.document, run.end), key=lambda section: (section.document, section.start))
    return set(range(first, behind))


def _without(run: Run, others: Sequence[Run]) -> Iterator[Run]:
    """Yield the parts of a run that are in none of the others, which are in order and apart."""
    start = run.start
    first = bisect(others, (run.document, start), key=lambda other: (other.document, other.end))
    for other in islice(others, first, None):
        if other.document > run.document or other.start >= run.end:
            break
        if other.start > start:
            yield Run(run.document, start, other.start)
        start = other.end
    if start < run.end:
        yield Run(run.document, start, run.end)


def _joined(runs: Iterable[Run], texts: Sequence[str]) -> list[Run]:
    """Put runs in order, and join those with nothing but white space between them."""
    joined: list[Run] = []
    for run in sorted(runs):
        last = joined[-1] if joined else None
        if last and last.document == run.document and not _SOLID.search(texts[run.document], last.end, run.start):
            joined[-1] = last._replace(end=max(last.end, run.end))
        else:
            joined.append(run)
    return joined
