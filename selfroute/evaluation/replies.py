"""Every reply that was paid for, kept as it comes: what was asked once is not asked again."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from pathlib import Path

from selfroute.errors import ConfigurationError, SelfRouteError
from selfroute.prices import Model, cost_of
from selfroute.usage import Cost, StepUsage

FILE = "replies.jsonl"
OUTPUT_TOKENS = 200
"""What a reply is taken to have, before it is there."""


class CostCapError(SelfRouteError, RuntimeError):
    """The next reply could cost more than is left of the cap."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model replied, and what that took.

    Attributes:
        text: What it wrote.
        input_tokens: Tokens of the prompt.
        output_tokens: Tokens of the reply.
        cached_tokens: Those of the prompt that the provider read from its cache.
        cache_write_tokens: Those of the prompt that it wrote there.
        estimated: Whether any count is not the provider's own.
        model: The model that replied, as it is called where it is paid for.
        provider: Whose it is.
        cost: In US dollars, a decimal string; None if that is not known.
        cost_unknown: Why it is not; None if it is.
        seconds: How long it took.
    """

    text: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    estimated: bool = False
    model: str | None = None
    provider: str | None = None
    cost: str | None = None
    cost_unknown: str | None = None
    seconds: float = 0.0

    @classmethod
    def of(cls, text: str, counts: StepUsage, model: Model) -> Reply:
        """Take a reply as it came.

        Args:
            text: What the model wrote.
            counts: What that took, priced.
            model: The model that replied.
        """
        return cls(
            text,
            counts.input_tokens,
            counts.output_tokens,
            counts.cached_tokens,
            counts.cache_write_tokens,
            estimated=counts.estimated,
            model=model.name,
            provider=model.provider,
            cost=counts.cost.as_text(),
            cost_unknown=counts.cost.unknown,
        )

    def priced(self, priced_as: Model | None) -> Reply:
        """The same with a price of today, if none was known when it was paid."""
        if self.cost is not None:
            return self
        cost = cost_of(priced_as or Model(self.model, self.provider), self.usage())
        return replace(self, cost=cost.as_text(), cost_unknown=cost.unknown)

    def usage(self) -> StepUsage:
        """The counts, priced."""
        unknown = self.cost_unknown or "no price was known when it was paid"
        cost = Cost(None, unknown) if self.cost is None else Cost(Decimal(self.cost))
        return StepUsage(
            self.input_tokens,
            self.output_tokens,
            self.cached_tokens,
            self.estimated,
            self.cache_write_tokens,
            cost,
        )


class Replies:
    """The replies of a run.

    They are kept in `replies.jsonl` of a folder, one to a line, each written before it is used; a line that an
    interrupted run left half written is dropped. Threads may share them: two that ask the same wait for one reply.

    Attributes:
        spent: What all kept replies cost together, as far as it is known.
        unpriced: How many of them have no known price.
        asked: How many were asked for in this run.
        kept: How many there were already.
        steps: How many there are for each step.
    """

    def __init__(self, folder: Path | None = None, *, max_cost: Decimal | None = None) -> None:
        """Open the replies.

        Args:
            folder: Where they are kept; None for in memory only.
            max_cost: The most that all of them may cost together, in US dollars; None for no limit.

        Raises:
            ConfigurationError: The folder can not be used.
        """
        self._path = folder / FILE if folder else None
        self._max_cost = max_cost
        self._lock = threading.Lock()
        self._asking: dict[str, threading.Lock] = {}
        self._replies: dict[str, Reply] = {}
        self._pending = Decimal(0)
        self.spent, self.unpriced, self.asked = Decimal(0), 0, 0
        self.steps: Counter[str] = Counter()
        if self._path:
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._load(self._path)
            except OSError as error:
                msg = f"the replies can not be kept in {self._path.parent}: {error.strerror or error}"
                raise ConfigurationError(msg) from error
        self.kept = len(self._replies)

    def get(self, identity: object, ask: Callable[[], Reply], *, step: str, expected: Cost) -> Reply:
        """Return the reply to a prompt: the kept one, or else ask for it and keep it.

        Args:
            identity: All that the reply depends on, as plain JSON: model, settings, prompt.
            ask: Asks the model; what it raises passes through, and nothing is kept.
            step: What it is asked for, for the file.
            expected: What it will probably cost.

        Raises:
            CostCapError: It could cost more than is left of `max_cost`.
            ConfigurationError: There is a `max_cost`, and no price is known.
        """
        key = hashlib.sha256(json.dumps(identity, sort_keys=True, default=repr).encode()).hexdigest()
        with self._lock:
            if key in self._replies:
                return self._replies[key]
            asking = self._asking.setdefault(key, threading.Lock())
        with asking:
            with self._lock:
                if key in self._replies:  # another thread asked the same
                    return self._replies[key]
            with self._within_the_cap(expected):
                started = time.monotonic()
                reply = ask()
                reply = replace(reply, seconds=round(time.monotonic() - started, 3))
                self._keep(key, reply, step)
        if self._max_cost is not None and reply.cost is None:
            msg = f"the cap can not be held: the price of what {reply.model or 'the model'} replied is not known"
            raise ConfigurationError(msg)
        return reply

    @contextmanager
    def _within_the_cap(self, expected: Cost) -> Iterator[None]:
        if self._max_cost is None:
            yield
            return
        if expected.dollars is None:
            msg = f"the cap can not be held, because no price is known: {expected.unknown}"
            raise ConfigurationError(msg)
        with self._lock:
            left = self._max_cost - self.spent - self._pending
            if expected.dollars > left:
                msg = f"the cap of ${self._max_cost} is reached: ${self.spent:.4f} are spent, counting earlier runs"
                raise CostCapError(msg)
            self._pending += expected.dollars
        try:
            yield
        finally:
            with self._lock:
                self._pending -= expected.dollars

    def _keep(self, key: str, reply: Reply, step: str) -> None:
        with self._lock:
            self.asked += 1
            self._add(key, reply, step)
            if self._path:
                line = json.dumps({"key": key, "step": step, **asdict(reply)}, ensure_ascii=False)
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(f"{line}\n")
                    file.flush()
                    os.fsync(file.fileno())

    def _add(self, key: str, reply: Reply, step: str) -> None:
        self._replies[key] = reply
        self.steps[step] += 1
        if reply.cost is None:
            self.unpriced += 1
        else:
            self.spent += Decimal(reply.cost)

    def _load(self, path: Path) -> None:
        """Read what is there, and cut a torn last line off, so that the next one starts on a line of its own."""
        if not path.exists():
            return
        content = path.read_bytes()
        whole = content.rpartition(b"\n")[0]
        for line in whole.splitlines():
            with suppress(ValueError, TypeError, KeyError, AttributeError):  # a damaged line is asked again
                row = json.loads(line)
                key, step = row.pop("key"), row.pop("step")
                self._add(key, Reply(**row), step)
        end = len(whole) + 1 if whole else 0
        if end < len(content):
            with path.open("r+b") as file:
                file.truncate(end)
