"""Keep what was read: the lengths of documents, and the last documents themselves."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from threading import Lock
from typing import Any, Generic, TypeVar

from selfroute.documents.rebuild import RebuiltDocument

MOST = 10_000  # documents that are remembered
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Size:
    """The length of a document.

    Attributes:
        key: Identifies the document and the limits it was read under.
        characters: The length, in characters.
    """

    key: Hashable
    characters: int


class Recent(Generic[Value]):
    """A mapping of the most recently used values, up to a number of them; safe to use from threads.

    Copying does not copy the entries.
    """

    def __init__(self, most: int) -> None:
        self._most, self._values = most, OrderedDict[Hashable, Value]()
        self._lock = threading.RLock()  # the garbage collector may close a stream here, which comes back

    def __reduce__(self) -> tuple[type[Recent[Value]], tuple[int]]:
        return type(self), (self._most,)

    def get(self, key: Hashable) -> Value | None:
        """Return the value of a key, None if it is not known."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key]

    def put(self, key: Hashable, value: Value) -> None:
        """Set the value of a key; the least recently used one makes room."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._most:
                self._values.popitem(last=False)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._values.clear()


_MAX_CHARACTERS = 20_000_000  # of all documents together: about five million tokens
_MAX_AGE = 300.0  # seconds; a chunk whose text changed under the same id is noticed after that


@dataclass(frozen=True, slots=True)
class CachedDocument:
    """A document that was rebuilt from its chunks.

    Attributes:
        document: The document.
        fields: What else the framework needs to make a document of its own type, such as metadata.
        ids_digest: The digest of the ids of its chunks, from `ids_digest`.
    """

    document: RebuiltDocument
    fields: dict[str, Any]
    ids_digest: bytes


class Cache:
    """The most recently used documents, by their source and the filter they were read with; safe to use from threads.

    A document stays for five minutes at most. The caller checks that it is still made of the same chunks, by comparing
    the digest of their ids. If the text of a chunk changes and its id does not, call `forget`.

    Attributes:
        lengths: The lengths of documents that were read, by their source and the filter; and 0 by their source alone.
        generation: The number of calls of `forget` so far.
    """

    def __init__(self, characters: int = _MAX_CHARACTERS, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._capacity, self._clock, self._size, self.generation = characters, clock, 0, 0
        self._documents: OrderedDict[tuple[Hashable, Hashable], tuple[float, CachedDocument]] = OrderedDict()
        self._lock, self.lengths = Lock(), Recent[int](2 * MOST)  # with and without the filter

    def __reduce__(self) -> tuple[type[Cache], tuple[()]]:
        return Cache, ()  # a copy is empty

    def get(self, source: Hashable, filter_key: Hashable) -> CachedDocument | None:
        """Return a document; None if it is not in the cache, or has been for too long."""
        key = (source, filter_key)
        with self._lock:
            if key not in self._documents:
                return None
            since, document = self._documents[key]
            if self._clock() - since > _MAX_AGE:
                self._drop(key)
                return None
            self._documents.move_to_end(key)
            return document

    def put(
        self, source: Hashable, filter_key: Hashable, document: CachedDocument, *, generation: int | None = None
    ) -> None:
        """Add a document; the least recently used ones make room for it.

        Args:
            source: The source of the document.
            filter_key: Identifies the filter that it was read with.
            document: The document. It is not added if it alone exceeds the capacity.
            generation: The cache's `generation` before the document was read. If `forget` was called since, the
                document may be outdated and is not added.
        """
        key, size = (source, filter_key), len(document.document.text)
        with self._lock:
            if key in self._documents:
                self._drop(key)
            if size > self._capacity or generation not in (None, self.generation):
                return
            while self._size + size > self._capacity:
                self._drop(next(iter(self._documents)))
            self._documents[key] = (self._clock(), document)
            self._size += size

    def forget(self, source: Hashable | None = None) -> None:
        """Remove the documents of one source, or all documents; and all lengths."""
        with self._lock:
            self.generation += 1
            for key in [key for key in self._documents if source is None or key[0] == source]:
                self._drop(key)
        self.lengths.clear()

    def _drop(self, key: tuple[Hashable, Hashable]) -> None:
        _, document = self._documents.pop(key)
        self._size -= len(document.document.text)


def ids_digest(ids: Iterable[str]) -> bytes:
    """Return a digest of a document's chunk ids, independent of their order."""
    return blake2b("\0".join(sorted(ids)).encode("utf-8", "surrogatepass"), digest_size=16).digest()
