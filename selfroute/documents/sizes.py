"""Remember the lengths of documents, and other values by key, up to a number of them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

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


Lengths = Callable[[], "list[Size] | None"]
"""Returns the lengths of the documents of a question, None until all of them are known."""


class Recent(Generic[Value]):
    """A mapping of the most recently used values, up to a number of them; safe to use from threads.

    A copy is empty.
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
