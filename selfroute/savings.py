"""What always reading the whole documents would have taken, without reading them for it."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, replace
from math import inf
from typing import Generic, TypeVar

from selfroute import prices
from selfroute.account import Account
from selfroute.prices import Model
from selfroute.usage import FREE, Cost, StepUsage, Usage

_MOST = 10_000  # documents that are remembered
_MOST_WAITING = 1_000  # that are to be counted; the oldest are given up
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
        self._most, self._kept = most, OrderedDict[Hashable, Value]()
        self._lock = threading.RLock()  # a stream that the garbage collector closes may come back here

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


Lengths = Callable[[], "list[Size] | None"]
"""Tells how long the documents of a question are, as soon as that is known of all of them."""


class Sizes:
    """The lengths of stored documents: known once they were read, or counted in the background, each once an hour."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: _Recent[tuple[int | None, float]] = _Recent(_MOST)
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
    """What a step's prompt tells of the other's.

    Attributes:
        characters: How long it is.
        context: How many characters of it are passages or documents.
    """

    characters: int
    context: int


@dataclass(frozen=True, slots=True)
class Window:
    """How much of the documents the second step would be given.

    Attributes:
        budget: In tokens; None for no limit.
        roughly: Whether these are a quarter of the characters, and not by a counter of the user's.
    """

    budget: int | None
    roughly: bool

    def characters(self, rate: float) -> float:
        """How many characters that is, with so many tokens to a character."""
        if self.budget is None:
            return inf
        return self.budget * 4 if self.roughly or not rate else self.budget / rate


class Baseline:
    """What reading the documents costs a model: learned whenever it reads them, estimated when it need not."""

    def __init__(self) -> None:
        self._rates: _Recent[float] = _Recent(_MOST)  # tokens to a character, of a model and a document

    def __reduce__(self) -> tuple[type[Baseline], tuple[()]]:
        return Baseline, ()  # a copy learns anew

    def read(self, usage: Usage, sizes: Sequence[Size] | None, *, asked: Asked, model: Model) -> Usage:
        """Complete the usage of a question whose documents were read: the long context alone is what that step took.

        Args:
            usage: What both steps took.
            sizes: The documents that were read, if all of them were, and whole.
            asked: The second step's prompt.
            model: Its model.
        """
        step = usage.long_context
        if step is None:
            return replace(usage, long_context_only=0, cost_long_context_only=FREE)
        if asked.characters and not step.estimated:
            for size in sizes or ():
                self._rates.put((model, size.key), step.input_tokens / asked.characters)
        return replace(usage, long_context_only=step.input_tokens, cost_long_context_only=step.cost)

    def answered(  # noqa: PLR0913 - what an estimate is made of
        self, account: Account, lengths: Lengths | None, *, asked: Asked, window: Window, model: Model, priced: Model
    ) -> None:
        """Complete the account of a question that was answered from the passages, at once or later.

        A document has as many tokens to a character as the provider counted when the model read it last; one that it
        did not read yet, as many as the first step's prompt had.

        Args:
            account: The account.
            lengths: Tells how long the documents are that the second step would have read; None if nothing does.
            asked: The first step's prompt: what is around the passages would be around the documents.
            window: What of them that step would be given.
            model: The second step's model.
            priced: What it is priced as.
        """
        usage, step = account.usage, account.usage.rag
        account.usage = replace(usage, cost_long_context_only=_UNMEASURED)
        if lengths is None or step is None or not asked.characters:
            return

        def complete() -> Usage | None:
            sizes = lengths()
            if sizes is None:
                return None
            only = self._tokens(sizes, step.input_tokens / asked.characters, asked=asked, window=window, model=model)
            cost = prices.cost_of(priced, StepUsage(only, step.output_tokens))
            return Usage(step, None, only, cost)

        completed = complete()
        if completed:
            account.usage = completed
        else:
            account.later = complete

    def _tokens(self, sizes: Sequence[Size], rate: float, *, asked: Asked, window: Window, model: Model) -> int:
        tokens, characters = 0.0, 0
        for size in sizes:
            tokens += size.characters * (self._rates.get((model, size.key)) or rate)
            characters += size.characters
        around = asked.characters - asked.context
        if not characters:
            return round(around * rate)
        return round(tokens / characters * (min(characters, window.characters(rate)) + around))
