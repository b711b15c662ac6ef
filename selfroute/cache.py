"""A bounded cache of documents that were put together."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from threading import Lock
from typing import Any

from selfroute.documents import Whole

_CHARACTERS = 20_000_000  # of all documents together: about five million tokens
_SECONDS = 300.0  # for changes that leave the ids as they are


@dataclass(frozen=True, slots=True)
class Kept:
    """A document that was put together.

    Attributes:
        whole: The document.
        fields: What else the framework's document is made of.
        stamp: Tells from which chunks.
    """

    whole: Whole
    fields: dict[str, Any]
    stamp: bytes


class Cache:
    """The documents that were read last, under their source and the filter that they were read through.

    A document is kept five minutes at most. Whether it is still made of the same chunks is for the reader to ask, by
    their ids; who changes the text of a chunk and keeps its id calls `forget`. Safe under threads.
    """

    def __init__(self, characters: int = _CHARACTERS, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._characters, self._clock = characters, clock
        self._kept: OrderedDict[tuple[Hashable, str], tuple[float, Kept]] = OrderedDict()
        self._lock = Lock()

    def get(self, source: Hashable, through: str) -> Kept | None:
        """Return a document that is not too old."""
        with self._lock:
            since, kept = self._kept.get((source, through), (0.0, None))
            if kept is None or self._clock() - since > _SECONDS:
                return None
            self._kept.move_to_end((source, through))
            return kept

    def put(self, source: Hashable, through: str, kept: Kept) -> None:
        """Keep a document; those that were not asked for the longest make room."""
        with self._lock:
            self._kept[source, through] = (self._clock(), kept)
            self._kept.move_to_end((source, through))
            while sum(len(entry.whole.text) for _, entry in self._kept.values()) > self._characters:
                self._kept.popitem(last=False)

    def forget(self, source: Hashable | None = None) -> None:
        """Forget a document, or all of them."""
        with self._lock:
            for key in [key for key in self._kept if source is None or key[0] == source]:
                del self._kept[key]


def stamp_of(ids: Iterable[str]) -> bytes:
    """What tells one set of chunks from another: their ids, in any order."""
    return blake2b("\0".join(sorted(ids)).encode("utf-8", "surrogatepass"), digest_size=16).digest()
