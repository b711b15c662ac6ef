"""Tell apart the texts that stand in a store under one name, and keep the one that was found.

A changed file was indexed again over the old one, another file has the same name, or the same text was cut twice.
`Passes` says which chunks belong together; those that agree are of one text.

Not all that begins again is another text: the elements of a page do, the sections under the headings of a file, forms
that were filled in, and chapters that a user put under one name. So nothing is left out unless two texts are nearly the
same, as versions are, or two files without a mark of their own hold each a run of chunks, and what was retrieved is of
one of them. What may be of several texts is kept, and said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import NamedTuple

from selfroute.documents.chunks import Chunk
from selfroute.documents.offsets import ALWAYS
from selfroute.documents.passes import MOST_PASSES, Passes
from selfroute.languages.sentences import sentence_spans

_MOST = 4  # texts that are somewhat alike; more of them are forms, or parts of one
_RUN = 3  # chunks, at least, of each of two files with one name
_OFTEN = 3
_CLEAR = 0.7  # of the passages, by their ranks, are of the file that was found, of two with one name
_MOST_OF = 0.8  # as long as each other are the passes of a text that was cut twice, at least
_ALIKE, _SAME = 0.4, 0.7  # the share of sentences that two texts have in common which may be, and which are, versions
_NEAR = 8  # chunks on either side


class Version(NamedTuple):
    """The chunks of one text, of all under its name.

    Attributes:
        kept: The numbers of the chunks that are read, in the order of the store, or in some order if it has none.
        texts: How many texts there are.
        doubtful: Whether they may be of several texts.
    """

    kept: Sequence[int]
    texts: int = 1
    doubtful: bool = False


def one_text(chunks: Sequence[Chunk], found: Sequence[str] = (), *, ordered: bool = True) -> Version:
    """Return the chunks of one text, of all that stand under a name.

    Args:
        chunks: The chunks, as the store lists them.
        found: The texts of the passages that were retrieved.
        ordered: Whether the store lists chunks in the order in which they were added.
    """
    if len(chunks) < 2:  # noqa: PLR2004
        return Version(range(len(chunks)))
    return _Texts(chunks, ordered=ordered).version(found)


class _Texts(Passes):
    """The texts that passes make up."""

    def version(self, found: Sequence[str]) -> Version:
        passes = self.passes()
        if not 1 < len(passes) <= MOST_PASSES:
            return Version(self.all)
        texts: list[list[list[int]]] = []  # each in passes
        for one in passes:
            home = next((text for text in texts if not any(self.disagree(one, other) for other in text)), None)
            texts.append([one]) if home is None else home.append(one)
        if len(texts) == 1:
            return Version(self._cut_once(texts[0]))
        return self._chosen([[at for one in text for at in one] for text in texts], found)

    def _cut_once(self, passes: Sequence[list[int]]) -> Sequence[int]:
        """Return the last pass that holds all of a text, if several passes do; all of them if they hold parts of it."""
        if _are_parts([{self.chunks[at].headings for at in one} for one in passes]):
            return self.all
        if len({tuple(self.chunks[at] for at in one) for one in passes}) == 1:
            return passes[-1] if self.ordered and bool(self.places[0]) else self.all
        if not self.have_starts:
            return self.all
        spans = [(self.position(one[0]), max((self.places[at], self.end(at)) for at in one)) for one in passes]
        span = min(begin for begin, _ in spans), max(end for _, end in spans)
        lengths = [sum(len(self.chunks[at].text) for at in one) for one in passes]
        if min(lengths) < _MOST_OF * max(lengths):  # a text that repeats itself has offsets like this, too
            return self.all
        whole = [one for one, own in zip(passes, spans, strict=True) if own == span]
        whole = [one for one in whole if all(self.continues(*pair, gap=ALWAYS) for pair in pairwise(one))]
        return whole[-1] if whole else self.all

    def _chosen(self, texts: Sequence[list[int]], found: Sequence[str]) -> Version:
        """Return the text that was found; all of them where they are parts of one, or cannot be told apart."""
        parts = _are_parts([{self.chunks[at].headings for at in one} for one in texts])
        likeness = 0.0 if parts else min(self._likeness(*pair) for pair in pairwise(texts))
        if (len(self.all) - len(set(self.chunks))) * _OFTEN >= len(self.all):  # much was stored again as it was
            likeness = 1.0
        if likeness < _ALIKE:
            return Version(self.all) if parts else self._other_files(texts, found)
        if likeness < _SAME and len(texts) > _MOST:
            return Version(self.all)
        best = self._best(texts, found)
        kept = self._completed(texts[best])
        is_one_of_few = len(kept) > 1 or bool(self.places[0])
        if not is_one_of_few and len(texts) > 2:  # noqa: PLR2004
            return Version(self.all)  # forms, or rows
        if self.unsure or self.by_head or not is_one_of_few or likeness < _SAME:
            return Version(self._all_of(texts), len(texts), doubtful=True)
        return Version(kept, len(texts))

    def _other_files(self, texts: Sequence[list[int]], found: Sequence[str]) -> Version:
        """Return the one of two files with one name that was found; parts of one text may look like these."""
        kinds = [{self.chunks[at].kind for at in one} for one in texts]
        if len(texts) > 2 or self.by_head or kinds[0] != kinds[1] or min(map(len, texts)) < _RUN:  # noqa: PLR2004
            return Version(self.all)
        hits = self._hits(texts, found)
        if max(hits) <= _CLEAR * sum(hits) or self.unsure:
            return Version(self._all_of(texts), len(texts), doubtful=any(hits))
        return Version(texts[hits.index(max(hits))], len(texts))

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
        listed = sorted(self.all, key=lambda at: (self.places[at], numbers[at], self.start(at)))
        return self.all if self.ordered else listed

    def _completed(self, text: Sequence[int]) -> Sequence[int]:
        """Return a text with chunks of others that fit to it, where only what had changed was stored again.

        Whether it lacks its end, or was cut there, nobody knows of one that begins where the others begin; nor whether
        a page of it is complete that has fewer chunks than another.
        """
        kept, own = list(text), {self.chunks[at] for at in text}
        others = [at for at in self.all if self.chunks[at] not in own]
        if self.have_starts:
            others.sort(key=self.position)
            before = self._fitting(others[::-1], kept[0], lambda at, last: self.continues(at, last, gap=ALWAYS))
            after = self._fitting(others, kept[-1], lambda at, last: self.continues(last, at, gap=ALWAYS))
            self.unsure = self.unsure or bool(after and not before)
            kept = [*before[::-1], *kept, *after]
        if self.paged or not self.have_starts:
            ours = Counter(self.places[at] for at in kept)
            theirs = Counter(self.places[at] for at in {self.chunks[at]: at for at in others}.values())
            self.unsure = self.unsure or any(count > ours[place] for place, count in theirs.items())
        return kept

    def _fitting(self, others: Sequence[int], last: int, fits: Callable[[int, int], bool]) -> list[int]:
        found: list[int] = []
        for number, at in enumerate(others):
            if fits(at, last):
                near = others[max(number - _NEAR, 0) : number + _NEAR]
                rivals = (other for other in near if self.contradict(at, other))
                self.unsure = self.unsure or any(fits(other, last) for other in rivals)
                found.append(at)
                last = at
        return found

    def _holds(self, at: int, text: str) -> float:
        """Return whether a chunk is a passage or has it; half, if the passage has the chunk and more."""
        own, text = self.chunks[at].text.strip(), text.strip()
        return 1.0 if text in own else 0.5 * (bool(own) and own in text)

    def _likeness(self, one: Sequence[int], other: Sequence[int]) -> float:
        """Return how much two runs share where they say something of one place: versions do most of it."""
        if self.by_head:
            one, other = one[1:], other[1:]  # both begin alike, and so may the pages of one text
        spans = [
            (min(map(self.position, run)), max((self.places[at], self.end(at)) for at in run)) if run else ((), ())
            for run in (one, other)
        ]
        first, last = max(begin for begin, _ in spans), min(end for _, end in spans)
        mine, theirs = (
            _sentences(self._text_of([at for at in run if self.by_head or first <= self.position(at) < last]))
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
            joins = self.have_starts and (self.places[at] == place or (pieces and not self.paged))
            shared = end - self.start(at) if joins else -1
            pieces += ["\n"] * (shared < 0) + [self.chunks[at].text[max(shared, 0) :]]
            end, place = self.end(at), self.places[at]
        return "".join(pieces)


def _are_parts(headings: Sequence[AbstractSet[tuple[str, ...]]]) -> bool:
    """Return whether runs of chunks stand under different headings."""
    return any(one != other and one.isdisjoint(other) for one, other in pairwise(headings))


def _sentences(text: str) -> set[str]:
    return {" ".join(text[start:end].split()) for start, end in sentence_spans(text)}
