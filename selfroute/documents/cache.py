"""A bounded cache of documents that were put together."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from threading import Lock
from typing import Any

from selfroute.documents.rebuild import RebuiltDocument

_CHARACTERS = 20_000_000  # of all documents together: about five million tokens
_SECONDS = 300.0  # for changes that leave the ids as they are


@dataclass(frozen=True, slots=True)
class CachedDocument:
    """A document that was put together.

    Attributes:
        whole: The document.
        fields: What else the framework's document is made of.
        stamp: Tells from which chunks.
    """

    whole: RebuiltDocument
    fields: dict[str, Any]
    stamp: bytes


class Cache:
    """The documents that were read last, under their source and the filter that they were read through.

    A document is kept five minutes at most. Whether it is still made of the same chunks is for the reader to ask, by
    their ids; who changes the text of a chunk and keeps its id calls `forget`. Safe under threads.

    Attributes:
        forgotten: How often it was told to forget.
    """

    def __init__(self, characters: int = _CHARACTERS, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._characters, self._clock, self._held, self.forgotten = characters, clock, 0, 0
        self._kept: OrderedDict[tuple[Hashable, Hashable], tuple[float, CachedDocument]] = OrderedDict()
        self._lock = Lock()

    def get(self, source: Hashable, through: Hashable) -> CachedDocument | None:
        """Return a document that is not too old."""
        key = (source, through)
        with self._lock:
            if key not in self._kept:
                return None
            since, kept = self._kept[key]
            if self._clock() - since > _SECONDS:
                self._drop(key)
                return None
            self._kept.move_to_end(key)
            return kept

    def put(self, source: Hashable, through: Hashable, kept: CachedDocument, *, forgotten: int | None = None) -> None:
        """Keep a document; those that were not asked for the longest make room.

        Args:
            source: Its source.
            through: The filter.
            kept: The document. One that is larger than the cache is not kept.
            forgotten: What `forgotten` was when the reading began: who changed the store since then and said so wants
                what was read before to be forgotten, too.
        """
        key, size = (source, through), len(kept.whole.text)
        with self._lock:
            if key in self._kept:
                self._drop(key)
            if size > self._characters or forgotten not in (None, self.forgotten):
                return
            while self._held + size > self._characters:
                self._drop(next(iter(self._kept)))
            self._kept[key] = (self._clock(), kept)
            self._held += size

    def forget(self, source: Hashable | None = None) -> None:
        """Forget a document, or all of them."""
        with self._lock:
            self.forgotten += 1
            for key in [key for key in self._kept if source is None or key[0] == source]:
                self._drop(key)

    def _drop(self, key: tuple[Hashable, Hashable]) -> None:
        _, kept = self._kept.pop(key)
        self._held -= len(kept.whole.text)


def ids_digest(ids: Iterable[str]) -> bytes:
    """What tells one set of chunks from another: their ids, in any order."""
    return blake2b("\0".join(sorted(ids)).encode("utf-8", "surrogatepass"), digest_size=16).digest()
