"""Tell apart the texts that stand in a store under one name, and keep the one that was found.

A changed file was indexed again over the old one, another file has the same name, or the same text was cut twice. What
was stored in one pass belongs together: a pass ends where the chunks begin again, or where two neighbours contradict
each other. A store without an order has no passes; there, what continues a chunk is its next one. Passes that agree
are of one text, as when the chunks were stored in several batches.

Not all that begins again is another text: the elements of a page do, the sections under the headings of a file, forms
that were filled in, and chapters that a user put under one name. So nothing is left out unless two texts are nearly the
same, as versions are, or two files without a mark of their own hold each a run of chunks, and what was retrieved is of
one of them. What may be of several texts is kept, and said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from selfroute.documents.chunks import Chunk
from selfroute.documents.offsets import ALWAYS
from selfroute.documents.ordering import fixed_order, orders
from selfroute.languages.sentences import sentence_spans

_MOST = 4  # texts that are somewhat alike; more of them are forms, or parts of one
_RUN = 3  # chunks, at least, of each of two files with one name
_PASSES = 32
_HEAD, _LEAST = 40, 9  # characters of the first chunk, by which a pass without offsets or numbers begins
_OFTEN = 3
_CLEAR = 0.7  # of the passages, by their ranks, are of the file that was found, of two with one name
_MOST_OF = 0.8  # as long as each other are the passes of a text that was cut twice, at least
_ALIKE, _SAME = 0.4, 0.7  # the share of sentences that two texts have in common which may be, and which are, versions
_NEAR = 8  # chunks on either side


class Told(NamedTuple):
    """What was told apart.

    Attributes:
        kept: The numbers of the chunks that are read, in the order of the store, or in some order if it has none.
        texts: How many texts there are.
        doubtful: Whether they may be of several texts.
    """

    kept: Sequence[int]
    texts: int = 1
    doubtful: bool = False


def one_text(chunks: Sequence[Chunk], found: Sequence[str] = (), *, ordered: bool = True) -> Told:
    """Return the chunks of one text, of all that stand under a name.

    Args:
        chunks: The chunks, as the store lists them.
        found: The texts of the passages that were retrieved.
        ordered: Whether the store lists chunks in the order in which they were added.
    """
    if len(chunks) < 2:  # noqa: PLR2004
        return Told(range(len(chunks)))
    return _Telling(chunks, ordered=ordered).told(found)


class _Telling:
    def __init__(self, chunks: Sequence[Chunk], *, ordered: bool) -> None:
        columns = list(zip(*(chunk.place for chunk in chunks), strict=False))
        usable = [at for at, column in enumerate(columns) if orders(column) and len(set(column)) > 1]
        self._chunks, self._ordered, self._all = chunks, ordered, range(len(chunks))
        self._places = [tuple([chunk.place[at] for at in usable]) for chunk in chunks]
        seen = {page: number for number, page in enumerate(dict.fromkeys(chunk.page for chunk in chunks))}
        if not usable and None not in seen and len(seen) > 1:
            self._places = [(seen[chunk.page],) for chunk in chunks]
        self._have_starts = all(chunk.start is not None for chunk in chunks)
        if self._have_starts and not ordered and all(chunk.page is None for chunk in chunks):
            self._places = [()] * len(chunks)  # offsets say more than numbers
        self._listed = list(self._all)
        if not ordered:
            self._listed.sort(key=lambda at: (self._places[at], fixed_order(chunks[at])))
        further = [(one, at) for one, at in pairwise(self._listed) if self._places[one] < self._places[at]]
        self._paged = any(self._start(at) <= self._start(one) for one, at in further)  # offsets begin anew on a page
        self._unsure = False  # which layer a chunk continues
        versions = {chunk.version for chunk in chunks} - {None}
        # Then a text may begin again where a chunk begins as the first one does.
        self._by_head = not (self._have_starts or bool(self._places[0]) or len(versions) == 1)

    def told(self, found: Sequence[str]) -> Told:
        passes = self._by_version() or (list(self._passes()) if self._ordered else self._layers())
        if not 1 < len(passes) <= _PASSES:
            return Told(self._all)
        texts: list[list[list[int]]] = []  # each in passes
        for one in passes:
            home = next((text for text in texts if not any(self._disagree(one, other) for other in text)), None)
            texts.append([one]) if home is None else home.append(one)
        if len(texts) == 1:
            return Told(self._cut_once(texts[0]))
        return self._chosen([[at for one in text for at in one] for text in texts], found)

    def _by_version(self) -> list[list[int]]:
        """Return the chunks by what their metadata say of their versions, if those contradict each other."""
        versions: dict[object, list[int]] = {}
        for at, chunk in enumerate(self._chunks):
            if chunk.version is None:
                return []
            versions.setdefault(chunk.version, []).append(at)
        found = list(versions.values())
        for one in found if not self._ordered else ():
            one.sort(key=self._position)
        if not 1 < len(found) <= _MOST or not all(map(self._disagree, found, found[1:])):
            return []
        return found

    def _passes(self) -> Iterator[list[int]]:
        one, first = [0], self._chunks[0].text[:_HEAD]
        for before, at in pairwise(self._all):
            if self._by_head:
                begins = len(first) >= _LEAST and self._chunks[at].text.startswith(first)
            elif self._places[at] != self._places[before]:
                begins = self._places[at] < self._places[before] or self._contradict(before, at)
            else:
                falls = self._have_starts and self._start(at) < self._start(before)
                begins = not self._places[at] and (falls or self._contradict(before, at))
            if begins:
                yield one
                one = []
            one.append(at)
        yield one

    def _layers(self) -> list[list[int]]:
        """Return what continues each other, in a store without an order, if not all chunks do."""
        if not self._have_starts or all(self._continue(*pair, gap=None) for pair in pairwise(self._listed)):
            return []
        layers: list[list[int]] = []
        self._unsure = bool(self._places[0])
        times = Counter(self._chunks)
        for at in self._listed:
            fits = [one for one in layers if self._continue(one[-1], at, gap=ALWAYS)]
            fits = [one for one in fits if self._chunks[one[-1]] != self._chunks[at]] or fits  # copies are of two texts
            if not fits:
                layers.append([at])
                if len(layers) > _PASSES:
                    return []
                continue
            keys = [self._fit(one, at) for one in fits]
            self._unsure = self._unsure or keys.count(min(keys)) > times[self._chunks[at]]
            fits[keys.index(min(keys))].append(at)
        return layers

    def _fit(self, layer: Sequence[int], at: int) -> tuple[bool, bool, int]:
        """Return a key for how well a chunk follows: on its page, below its headings, with the usual overlap."""
        last = layer[-1]
        usual = self._end(layer[-2]) - self._start(last) if len(layer) > 1 else 0
        others = self._chunks[last].headings != self._chunks[at].headings
        return self._places[last] != self._places[at], others, abs(self._end(last) - self._start(at) - usual)

    def _continue(self, one: int, other: int, *, gap: int | None) -> bool:
        """Return whether a chunk may follow another one in the same text; `gap` is how much may be missing between."""
        if self._places[one] != self._places[other]:
            return self._places[one] < self._places[other] and not self._contradict(one, other)
        if self._chunks[one] == self._chunks[other]:
            return True
        near = gap is None or self._start(other) - self._end(one) <= gap
        further = self._start(one) < self._start(other) and self._end(one) < self._end(other)
        return further and near and not self._contradict(one, other)

    def _contradict(self, one: int, other: int) -> bool:
        """Return whether two chunks say different things of the same place."""
        if not self._have_starts or (self._paged and self._places[one] != self._places[other]):
            return False
        begin, end = max(self._start(one), self._start(other)), min(self._end(one), self._end(other))
        left, right = (self._chunks[at].text[begin - self._start(at) : end - self._start(at)] for at in (one, other))
        return begin < end and left != right

    def _disagree(self, one: Sequence[int], other: Sequence[int]) -> bool:
        """Return whether two runs of chunks cannot be of one text."""
        if self._have_starts:
            last: dict[bool, int] = {}
            both = [(self._position(at), at, run is one) for run in (one, other) for at in run]
            for _, at, mine in sorted(both, key=itemgetter(0)):
                if (not mine) in last and self._contradict(last[not mine], at):
                    return True
                before = last.get(mine, at)
                if self._places[before] != self._places[at] or self._end(before) <= self._end(at):
                    last[mine] = at
        texts = [{self._places[at]: self._chunks[at].text for at in run} for run in (one, other)]
        numbered = all(len(held) == len(run) for held, run in zip(texts, (one, other), strict=True))
        if self._have_starts and not (numbered and self._paged):
            return False
        shared = texts[0].keys() & texts[1].keys()
        if len(shared) * 2 < min(map(len, texts)):
            return False
        if numbered:
            return any(texts[0][place] != texts[1][place] for place in shared)
        return {self._chunks[at].text for at in one} != {self._chunks[at].text for at in other}

    def _cut_once(self, passes: Sequence[list[int]]) -> Sequence[int]:
        """Return the last pass that holds all of a text, if several passes do; all of them if they hold parts of it."""
        if _are_parts([{self._chunks[at].headings for at in one} for one in passes]):
            return self._all
        if len({tuple(self._chunks[at] for at in one) for one in passes}) == 1:
            return passes[-1] if self._ordered and bool(self._places[0]) else self._all
        if not self._have_starts:
            return self._all
        spans = [(self._position(one[0]), max((self._places[at], self._end(at)) for at in one)) for one in passes]
        span = min(begin for begin, _ in spans), max(end for _, end in spans)
        lengths = [sum(len(self._chunks[at].text) for at in one) for one in passes]
        if min(lengths) < _MOST_OF * max(lengths):  # a text that repeats itself has offsets like this, too
            return self._all
        whole = [one for one, own in zip(passes, spans, strict=True) if own == span]
        whole = [one for one in whole if all(self._continue(*pair, gap=ALWAYS) for pair in pairwise(one))]
        return whole[-1] if whole else self._all

    def _chosen(self, texts: Sequence[list[int]], found: Sequence[str]) -> Told:
        """Return the text that was found; all of them where they are parts of one, or cannot be told apart."""
        parts = _are_parts([{self._chunks[at].headings for at in one} for one in texts])
        likeness = 0.0 if parts else min(self._likeness(*pair) for pair in pairwise(texts))
        if (len(self._all) - len(set(self._chunks))) * _OFTEN >= len(self._all):  # much was stored again as it was
            likeness = 1.0
        if likeness < _ALIKE:
            return Told(self._all) if parts else self._other_files(texts, found)
        if likeness < _SAME and len(texts) > _MOST:
            return Told(self._all)
        best = self._best(texts, found)
        kept = self._completed(texts[best])
        is_one_of_few = len(kept) > 1 or bool(self._places[0])
        if not is_one_of_few and len(texts) > 2:  # noqa: PLR2004
            return Told(self._all)  # forms, or rows
        if self._unsure or self._by_head or not is_one_of_few or likeness < _SAME:
            return Told(self._all_of(texts), len(texts), doubtful=True)
        return Told(kept, len(texts))

    def _other_files(self, texts: Sequence[list[int]], found: Sequence[str]) -> Told:
        """Return the one of two files with one name that was found; parts of one text may look like these."""
        kinds = [{self._chunks[at].kind for at in one} for one in texts]
        if len(texts) > 2 or self._by_head or kinds[0] != kinds[1] or min(map(len, texts)) < _RUN:  # noqa: PLR2004
            return Told(self._all)
        hits = self._hits(texts, found)
        if max(hits) <= _CLEAR * sum(hits) or self._unsure:
            return Told(self._all_of(texts), len(texts), doubtful=any(hits))
        return Told(texts[hits.index(max(hits))], len(texts))

    def _best(self, texts: Sequence[list[int]], found: Sequence[str]) -> int:
        hits = self._hits(texts, found)
        return max(range(len(texts)), key=lambda number: (hits[number], number))

    def _hits(self, texts: Sequence[list[int]], found: Sequence[str]) -> list[float]:
        """Return how much of what was retrieved is of each text: the best passages count most."""
        return [
            sum(max(self._holds(at, text) for at in one) / (1 + rank) for rank, text in enumerate(found))
            for one in texts
        ]

    def _all_of(self, texts: Sequence[list[int]]) -> Sequence[int]:
        """Return all chunks in the order of the store; if it has none, page by page and text by text."""
        numbers = {at: number for number, one in enumerate(texts) for at in one}
        listed = sorted(self._all, key=lambda at: (self._places[at], numbers[at], self._start(at)))
        return self._all if self._ordered else listed

    def _completed(self, text: Sequence[int]) -> Sequence[int]:
        """Return a text with chunks of others that fit to it, where only what had changed was stored again.

        Whether it lacks its end, or was cut there, nobody knows of one that begins where the others begin; nor whether
        a page of it is complete that has fewer chunks than another.
        """
        kept, own = list(text), {self._chunks[at] for at in text}
        others = [at for at in self._all if self._chunks[at] not in own]
        if self._have_starts:
            others.sort(key=self._position)
            before = self._fitting(others[::-1], kept[0], lambda at, last: self._continue(at, last, gap=ALWAYS))
            after = self._fitting(others, kept[-1], lambda at, last: self._continue(last, at, gap=ALWAYS))
            self._unsure = self._unsure or bool(after and not before)
            kept = [*before[::-1], *kept, *after]
        if self._paged or not self._have_starts:
            ours = Counter(self._places[at] for at in kept)
            theirs = Counter(self._places[at] for at in {self._chunks[at]: at for at in others}.values())
            self._unsure = self._unsure or any(count > ours[place] for place, count in theirs.items())
        return kept

    def _fitting(self, others: Sequence[int], last: int, fits: Callable[[int, int], bool]) -> list[int]:
        found: list[int] = []
        for number, at in enumerate(others):
            if fits(at, last):
                near = others[max(number - _NEAR, 0) : number + _NEAR]
                rivals = (other for other in near if self._contradict(at, other))
                self._unsure = self._unsure or any(fits(other, last) for other in rivals)
                found.append(at)
                last = at
        return found

    def _position(self, at: int) -> tuple[tuple[int, ...], int]:
        return self._places[at], self._start(at)

    def _holds(self, at: int, text: str) -> float:
        """Return whether a chunk is a passage or has it; half, if the passage has the chunk and more."""
        own, text = self._chunks[at].text.strip(), text.strip()
        return 1.0 if text in own else 0.5 * (bool(own) and own in text)

    def _likeness(self, one: Sequence[int], other: Sequence[int]) -> float:
        """Return how much two runs share where they say something of one place: versions do most of it."""
        if self._by_head:
            one, other = one[1:], other[1:]  # both begin alike, and so may the pages of one text
        spans = [
            (min(map(self._position, run)), max((self._places[at], self._end(at)) for at in run)) if run else ((), ())
            for run in (one, other)
        ]
        first, last = max(begin for begin, _ in spans), min(end for _, end in spans)
        mine, theirs = (
            _sentences(self._text_of([at for at in run if self._by_head or first <= self._position(at) < last]))
            for run in (one, other)
        )
        share = len(mine & theirs) / max(min(len(mine), len(theirs)), 1)
        if share == 0 and max(len(mine), len(theirs)) == 1:  # a sentence, and the same one with another word
            words = [set(" ".join(said).split()) for said in (mine, theirs)]
            return _ALIKE * (len(words[0] & words[1]) >= _SAME * max(map(len, words)))
        return share

    def _text_of(self, run: Sequence[int]) -> str:
        pieces, end, place = list[str](), 0, None
        for at in run:
            joins = self._have_starts and (self._places[at] == place or (pieces and not self._paged))
            shared = end - self._start(at) if joins else -1
            pieces += ["\n"] * (shared < 0) + [self._chunks[at].text[max(shared, 0) :]]
            end, place = self._end(at), self._places[at]
        return "".join(pieces)

    def _start(self, at: int) -> int:
        return self._chunks[at].start or 0

    def _end(self, at: int) -> int:
        return self._start(at) + len(self._chunks[at].text)


def _are_parts(headings: Sequence[AbstractSet[tuple[str, ...]]]) -> bool:
    """Return whether runs of chunks stand under different headings."""
    return any(one != other and one.isdisjoint(other) for one, other in pairwise(headings))


def _sentences(text: str) -> set[str]:
    return {" ".join(text[start:end].split()) for start, end in sentence_spans(text)}
