"""Find which chunks of a store belong together: by what it stored in one pass, or by what continues what.

A pass ends where the chunks begin again, or where two neighbours contradict each other. A store without an order has no
passes; there, what continues a chunk is its next one. Runs of chunks that agree are of one text, as when it was stored
in several batches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import itemgetter

from selfroute.documents.chunks import Chunk
from selfroute.documents.offsets import ALWAYS
from selfroute.documents.ordering import fixed_order, orders

MOST_PASSES = 32
_MOST_VERSIONS = 4  # that the metadata of chunks tell apart
_HEAD, _LEAST = 40, 9  # characters of the first chunk, by which a pass without offsets or numbers begins


class Passes:
    """The chunks under one name, by their numbers.

    Attributes:
        chunks: The chunks, as the store lists them.
        ordered: Whether the store lists them in the order in which they were added.
        all: Their numbers.
        places: What is usable of the place of each.
        have_starts: Whether all have offsets.
        paged: Whether offsets start again at another place.
        by_head: Whether only its beginning says that a text begins again.
        unsure: Whether it is not sure what belongs together.
    """

    def __init__(self, chunks: Sequence[Chunk], *, ordered: bool) -> None:
        """Take the chunks."""
        columns = list(zip(*(chunk.place for chunk in chunks), strict=False))
        usable = [at for at, column in enumerate(columns) if orders(column) and len(set(column)) > 1]
        self.chunks, self.ordered, self.all = chunks, ordered, range(len(chunks))
        self.places = [tuple([chunk.place[at] for at in usable]) for chunk in chunks]
        seen = {page: number for number, page in enumerate(dict.fromkeys(chunk.page for chunk in chunks))}
        if not usable and None not in seen and len(seen) > 1:
            self.places = [(seen[chunk.page],) for chunk in chunks]
        self.have_starts = all(chunk.start is not None for chunk in chunks)
        if self.have_starts and not ordered and all(chunk.page is None for chunk in chunks):
            self.places = [()] * len(chunks)  # offsets say more than numbers
        self._listed = list(self.all)
        if not ordered:
            self._listed.sort(key=lambda at: (self.places[at], fixed_order(chunks[at])))
        further = [(one, at) for one, at in pairwise(self._listed) if self.places[one] < self.places[at]]
        self.paged = any(self.start(at) <= self.start(one) for one, at in further)  # offsets start again on a page
        self.unsure = False  # which layer a chunk continues
        versions = {chunk.version for chunk in chunks} - {None}
        # Then a text may begin again where a chunk begins as the first one does.
        self.by_head = not (self.have_starts or bool(self.places[0]) or len(versions) == 1)

    def passes(self) -> list[list[int]]:
        """Return the chunks that belong together: by the versions of files, by passes, or by what continues what."""
        return self._by_version() or (list(self._stored_together()) if self.ordered else self._layers())

    def _by_version(self) -> list[list[int]]:
        """Return the chunks by what their metadata say of their versions, if those contradict each other."""
        versions: dict[object, list[int]] = {}
        for at, chunk in enumerate(self.chunks):
            if chunk.version is None:
                return []
            versions.setdefault(chunk.version, []).append(at)
        found = list(versions.values())
        for one in found if not self.ordered else ():
            one.sort(key=self.position)
        if not 1 < len(found) <= _MOST_VERSIONS or not all(map(self.disagree, found, found[1:])):
            return []
        return found

    def _stored_together(self) -> Iterator[list[int]]:
        one, first = [0], self.chunks[0].text[:_HEAD]
        for before, at in pairwise(self.all):
            if self.by_head:
                begins = len(first) >= _LEAST and self.chunks[at].text.startswith(first)
            elif self.places[at] != self.places[before]:
                begins = self.places[at] < self.places[before] or self.contradict(before, at)
            else:
                falls = self.have_starts and self.start(at) < self.start(before)
                begins = not self.places[at] and (falls or self.contradict(before, at))
            if begins:
                yield one
                one = []
            one.append(at)
        yield one

    def _layers(self) -> list[list[int]]:
        """Return what continues each other, in a store without an order, if not all chunks do."""
        if not self.have_starts or all(self.continues(*pair, gap=None) for pair in pairwise(self._listed)):
            return []
        layers: list[list[int]] = []
        self.unsure = bool(self.places[0])
        times = Counter(self.chunks)
        for at in self._listed:
            fits = [one for one in layers if self.continues(one[-1], at, gap=ALWAYS)]
            fits = [one for one in fits if self.chunks[one[-1]] != self.chunks[at]] or fits  # copies are of two texts
            if not fits:
                layers.append([at])
                if len(layers) > MOST_PASSES:
                    return []
                continue
            keys = [self._fit(one, at) for one in fits]
            self.unsure = self.unsure or keys.count(min(keys)) > times[self.chunks[at]]
            fits[keys.index(min(keys))].append(at)
        return layers

    def _fit(self, layer: Sequence[int], at: int) -> tuple[bool, bool, int]:
        """Return a key for how well a chunk follows: on its page, below its headings, with the usual overlap."""
        last = layer[-1]
        usual = self.end(layer[-2]) - self.start(last) if len(layer) > 1 else 0
        others = self.chunks[last].headings != self.chunks[at].headings
        return self.places[last] != self.places[at], others, abs(self.end(last) - self.start(at) - usual)

    def continues(self, one: int, other: int, *, gap: int | None) -> bool:
        """Return whether a chunk may follow another one in the same text; `gap` is how much may be missing between."""
        if self.places[one] != self.places[other]:
            return self.places[one] < self.places[other] and not self.contradict(one, other)
        if self.chunks[one] == self.chunks[other]:
            return True
        near = gap is None or self.start(other) - self.end(one) <= gap
        further = self.start(one) < self.start(other) and self.end(one) < self.end(other)
        return further and near and not self.contradict(one, other)

    def contradict(self, one: int, other: int) -> bool:
        """Return whether two chunks say different things of the same place."""
        if not self.have_starts or (self.paged and self.places[one] != self.places[other]):
            return False
        begin, end = max(self.start(one), self.start(other)), min(self.end(one), self.end(other))
        left, right = (self.chunks[at].text[begin - self.start(at) : end - self.start(at)] for at in (one, other))
        return begin < end and left != right

    def disagree(self, one: Sequence[int], other: Sequence[int]) -> bool:
        """Return whether two runs of chunks cannot be of one text."""
        if self.have_starts:
            last: dict[bool, int] = {}
            both = [(self.position(at), at, run is one) for run in (one, other) for at in run]
            for _, at, mine in sorted(both, key=itemgetter(0)):
                if (not mine) in last and self.contradict(last[not mine], at):
                    return True
                before = last.get(mine, at)
                if self.places[before] != self.places[at] or self.end(before) <= self.end(at):
                    last[mine] = at
        texts = [{self.places[at]: self.chunks[at].text for at in run} for run in (one, other)]
        numbered = all(len(held) == len(run) for held, run in zip(texts, (one, other), strict=True))
        if self.have_starts and not (numbered and self.paged):
            return False
        shared = texts[0].keys() & texts[1].keys()
        if len(shared) * 2 < min(map(len, texts)):
            return False
        if numbered:
            return any(texts[0][place] != texts[1][place] for place in shared)
        return {self.chunks[at].text for at in one} != {self.chunks[at].text for at in other}

    def position(self, at: int) -> tuple[tuple[int, ...], int]:
        """Return where a chunk stands."""
        return self.places[at], self.start(at)

    def start(self, at: int) -> int:
        """Return where a chunk begins."""
        return self.chunks[at].start or 0

    def end(self, at: int) -> int:
        """Return where a chunk ends."""
        return self.start(at) + len(self.chunks[at].text)
