"""How long stored documents are: noted when they are read, counted in the background when they are not."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from contextvars import Context, copy_context
from dataclasses import dataclass
from typing import Generic, TypeVar

MOST = 10_000  # documents that are remembered
_MOST_WAITING = 1_000  # that are to be counted; the oldest are given up
_SECONDS = 3_600.0  # after which a document is counted anew
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Size:
    """How long a document is.

    Attributes:
        key: Tells the document, as far as the retriever may see it.
        characters: Its length.
    """

    key: Hashable
    characters: int


class Recent(Generic[Value]):
    """What was looked at last, up to a number; safe under threads."""

    def __init__(self, most: int) -> None:
        self._most, self._kept = most, OrderedDict[Hashable, Value]()
        self._lock = threading.RLock()  # a stream that the garbage collector closes may come back here

    def get(self, key: Hashable) -> Value | None:
        """Return what is kept under a key."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key]

    def put(self, key: Hashable, value: Value) -> None:
        """Keep it; what was not looked at the longest makes room."""
        with self._lock:
            self._kept[key] = value
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()


Lengths = Callable[[], "list[Size] | None"]
"""Tells how long the documents of a question are, as soon as that is known of all of them."""


class Sizes:
    """The lengths of stored documents: known once they were read, or counted in the background, each once an hour."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: Recent[tuple[int | None, float]] = Recent(MOST)
        self._waiting: deque[tuple[Hashable, Context, Callable[[], int]]] = deque(maxlen=_MOST_WAITING)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def get(self, key: Hashable) -> Size | None:
        """Return how long a document is, if that is known."""
        known, _ = self._known.get(key) or (None, None)
        return None if known is None else Size(key, known)

    def count(self, key: Hashable, count: Callable[[], int]) -> None:
        """Have a document counted whose length is not known.

        Args:
            key: Tells the document.
            count: Reads it and tells its length, in characters; called in a thread. Whatever it raises leaves it
                unknown.
        """
        known, since = self._known.get(key) or (None, None)
        now = self._clock()
        if since is None or now - since > _SECONDS:
            self._known.put(key, (known, now))  # so that nobody else asks
            self._waiting.append((key, copy_context(), count))
            with self._lock:
                if self._thread is None or not self._thread.is_alive():  # after a fork there is no thread
                    thread = threading.Thread(target=self._work, name="selfroute-sizes")
                    thread.start()
                    self._thread = thread

    def lengths(self, known: Sequence[Size], keys: Sequence[Hashable]) -> Lengths:
        """What tells how long documents are, those that are known and those with these keys."""

        def lengths() -> list[Size] | None:
            found = [self.get(key) for key in keys]
            sizes = [size for size in found if size]
            return [*known, *sizes] if len(sizes) == len(found) else None

        return lengths

    def put(self, key: Hashable, characters: int) -> None:
        """Note the length of a document that was read."""
        self._known.put(key, (characters, self._clock()))

    def forget(self) -> None:
        """Count all documents anew when they are asked for."""
        self._known.clear()

    def _work(self) -> None:
        while True:
            with self._lock:
                # No daemon, which may die within a store's own code: the program's end waits for one document at most.
                if not self._waiting or not threading.main_thread().is_alive():
                    self._thread = None
                    return
                key, context, count = self._waiting.popleft()
            with suppress(Exception):  # the store's, or that it may not be read: whoever reads it will be told
                self.put(key, context.run(count))
