"""What always reading the whole documents would have taken, without reading them for it."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from selfroute import prices
from selfroute.prices import Model
from selfroute.usage import FREE, Cost, StepUsage, Usage

_MOST = 10_000  # documents that are remembered
_SECONDS = 3_600.0  # after which a document is counted anew
_UNMEASURED = Cost(None, "it is not known how long the documents are")
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


class _Recent(Generic[Value]):
    """What was looked at last, up to a number; safe under threads."""

    def __init__(self, most: int) -> None:
        self._most, self._kept, self._lock = most, OrderedDict[Hashable, Value](), threading.Lock()

    def get(self, key: Hashable) -> Value | None:
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key]

    def put(self, key: Hashable, value: Value) -> None:
        with self._lock:
            self._kept[key] = value
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()


class Sizes:
    """The lengths of stored documents: known once they were read, or counted in the background, each once an hour."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: _Recent[tuple[int | None, float]] = _Recent(_MOST)
        self._waiting: deque[tuple[Hashable, Context, Callable[[], int]]] = deque()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def get(self, key: Hashable, count: Callable[[], int]) -> int | None:
        """Return the length of a document, in characters, if it is known.

        Args:
            key: Tells the document.
            count: Reads it and tells its length; called later, in a thread, if it is not known. Whatever it raises
                leaves it unknown.
        """
        known, since = self._known.get(key) or (None, None)
        now = self._clock()
        if since is None or now - since > _SECONDS:
            self._known.put(key, (known, now))  # so that nobody else asks
            self._waiting.append((key, copy_context(), count))
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._work, name="selfroute-sizes")
                    self._thread.start()
        return known

    def put(self, key: Hashable, characters: int) -> None:
        """Note the length of a document that was read."""
        self._known.put(key, (characters, self._clock()))

    def forget(self) -> None:
        """Count all documents anew when they are asked for."""
        self._known.clear()

    def join(self) -> None:
        """Wait until nothing is being counted."""
        thread = self._thread
        if thread:
            thread.join()

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


@dataclass(frozen=True, slots=True)
class Asked:
    """What the first step's prompt tells of the second's.

    Attributes:
        characters: How long it is.
        context: How many characters of it are the passages.
        budget: How many tokens of documents the second step would be given at most; None for no limit.
        count: Counts the prompt by what the budget is counted by.
    """

    characters: int
    context: int
    budget: int | None
    count: Callable[[], int]

    def most(self, characters: int) -> float:
        """How many of so many characters of documents fit."""
        if self.budget is None or characters <= self.budget:  # no token is shorter
            return characters
        return min(characters, self.budget * self.characters / max(self.count(), 1))


class Baseline:
    """What reading the documents costs a model: learned whenever it reads them, estimated when it need not."""

    def __init__(self) -> None:
        self._rates: _Recent[float] = _Recent(_MOST)  # input tokens for each character of a document

    def __reduce__(self) -> tuple[type[Baseline], tuple[()]]:
        return Baseline, ()  # a copy learns anew

    def read(self, usage: Usage, sizes: Sequence[Size] | None, *, model: Model) -> Usage:
        """Complete the usage of a question whose documents were read: the long context alone is what that step took.

        Args:
            usage: What both steps took.
            sizes: The documents that were read, if all of them were, and whole.
            model: The second step's model.
        """
        step = usage.long_context
        if step is None:
            return replace(usage, long_context_only=0, cost_long_context_only=FREE)
        characters = sum(size.characters for size in sizes or ())
        if characters and not step.estimated:
            for size in sizes or ():
                self._rates.put((model, size.key), step.input_tokens / characters)
        return replace(usage, long_context_only=step.input_tokens, cost_long_context_only=step.cost)

    def estimate(self, usage: Usage, sizes: Sequence[Size] | None, *, asked: Asked, model: Model) -> Usage:
        """Complete the usage of a question that was answered from the passages.

        A document counts what the provider counted when it was read last. One that was not read yet counts by its
        length, with as many tokens to a character as the first step's prompt had.

        Args:
            usage: What the first step took.
            sizes: The documents that the second step would have read; None if that is not known.
            asked: The first step's prompt.
            model: The second step's model.
        """
        step = usage.rag
        if sizes is None or step is None or not asked.characters:
            return replace(usage, cost_long_context_only=_UNMEASURED)
        rate, tokens, characters, around = step.input_tokens / asked.characters, 0.0, 0, True
        for size in sizes:
            own = self._rates.get((model, size.key))
            tokens += size.characters * (own or rate)
            characters += size.characters
            around = around and own is None  # else what is around the documents was counted with them
        if characters:
            tokens *= asked.most(characters) / characters
        if around:
            tokens += rate * (asked.characters - asked.context)
        only = round(tokens)
        return Usage(step, None, only, prices.cost_of(model, StepUsage(only, step.output_tokens)))
