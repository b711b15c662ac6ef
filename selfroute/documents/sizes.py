"""Remember the lengths of stored documents, and count the unread ones in a background thread on request."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from contextvars import Context, copy_context
from dataclasses import dataclass
from typing import Generic, TypeVar

from selfroute.copying import Remade

MOST = 10_000  # documents that are remembered
_MOST_WAITING = 1_000  # documents that wait to be counted; beyond that the oldest are dropped
_MAX_AGE = 3_600.0  # seconds after which a document is counted again
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
    """A mapping of the most recently used values, up to a number of them; safe to use from threads."""

    def __init__(self, most: int) -> None:
        self._most, self._values = most, OrderedDict[Hashable, Value]()
        self._lock = threading.RLock()  # the garbage collector may close a stream here, which comes back

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


Lengths = Callable[[], "list[Size] | None"]
"""Returns the lengths of the documents of a question, None until all of them are known."""


class Sizes(Remade):
    """The lengths of stored documents: noted when they are read, or counted in the background, at most once an hour."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: Recent[tuple[int | None, float]] = Recent(MOST)
        self._waiting = OrderedDict[Hashable, tuple[Context, Callable[[], int]]]()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def get(self, key: Hashable) -> Size | None:
        """Return the length of a document, None if it is not known."""
        known, _ = self._known.get(key) or (None, None)
        return None if known is None else Size(key, known)

    def count(self, key: Hashable, count: Callable[[], int]) -> None:
        """Have a document of unknown length counted in a background thread.

        Args:
            key: Identifies the document.
            count: Reads the document and returns its length in characters. It is called in the thread; if it raises,
                the length stays unknown.
        """
        with self._lock:
            _, since = self._known.get(key) or (None, None)
            if since is not None and self._clock() - since <= _MAX_AGE:
                return
            self._waiting.setdefault(key, (copy_context(), count))
            while len(self._waiting) > _MOST_WAITING:
                self._waiting.popitem(last=False)
            if self._thread is None or not self._thread.is_alive():  # after a fork there is no thread
                thread = threading.Thread(target=self._work, name="selfroute-sizes")
                thread.start()
                self._thread = thread

    def lengths(self, known: Sequence[Size], keys: Sequence[Hashable]) -> Lengths:
        """Return a function that returns the sizes of some documents once all of them are known.

        Args:
            known: The sizes that are known.
            keys: The keys of the other documents.
        """

        def lengths() -> list[Size] | None:
            found = [self.get(key) for key in keys]
            sizes = [size for size in found if size]
            return [*known, *sizes] if len(sizes) == len(found) else None

        return lengths

    def put(self, key: Hashable, characters: int) -> None:
        """Note the length of a document that was read."""
        self._known.put(key, (characters, self._clock()))

    def forget(self) -> None:
        """Forget all lengths, so that documents are counted again."""
        self._known.clear()

    def _work(self) -> None:
        while True:
            with self._lock:
                # Not a daemon, which could die within a store's own code: at exit, at most one document is waited for.
                if not self._waiting or not threading.main_thread().is_alive():
                    self._thread = None
                    return
                key, (context, count) = self._waiting.popitem(last=False)
                known, _ = self._known.get(key) or (None, None)
                self._known.put(key, (known, self._clock()))  # so that it is not tried again if it fails
            with suppress(Exception):  # a step that reads the document raises it again
                self.put(key, context.run(count))
