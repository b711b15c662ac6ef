"""Keeps every reply as it comes, so that nothing is asked, or paid for, twice."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, fields, replace
from decimal import Decimal
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

from selfroute.answerability.ending import Ending
from selfroute.errors import ConfigurationError, InputError
from selfroute.evaluation.asking.budget import Budget, Price
from selfroute.evaluation.asking.in_flight import InFlight
from selfroute.kept import make, parse
from selfroute.private import make_folder, open_file
from selfroute.usage.counts import Cost, StepUsage, Usage
from selfroute.usage.prices import PricedModel, cost_of
from selfroute.usage.values import WRONG, amount

FILE = "replies.jsonl"
_AGAIN = "its prompt is asked again, and what it cost before is not counted"
_logger = logging.getLogger(__name__)
_LOST = "run aborted"


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply of a model, with its tokens, cost and time.

    Attributes:
        text: The text.
        input_tokens: Tokens of the prompt.
        output_tokens: Tokens of the reply.
        cached_tokens: Tokens of the prompt that the provider read from its cache.
        cache_write_tokens: Tokens of the prompt that the provider wrote to its cache.
        estimated: Whether any count is not the provider's own.
        model: The name under which the model is priced.
        provider: The model's provider.
        cost: In US dollars, a decimal string; None if it is not known.
        cost_unknown: Why the cost is not known; None if it is.
        seconds: How long the model took.
        finish_reason: How it ended, in the provider's word, if there is no text since the model was not done.
        refusal: The text by which the model refused then.
        calls_tool: Whether it called a tool then.
        cache_write_1h_tokens: Those of the written tokens that are kept for an hour.
        url: The address at which the model was called, if it is known.
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
    finish_reason: str | None = None
    refusal: str = ""
    calls_tool: bool = False
    cache_write_1h_tokens: int = 0
    url: str | None = None

    @classmethod
    def of(cls, text: str, counts: StepUsage, model: PricedModel, *, ending: Ending) -> Reply:
        """Make one from a model's reply.

        Args:
            text: The text.
            counts: Its tokens, priced.
            model: The model that replied.
            ending: How it ended.
        """
        ended = ending.kind != "complete" and not text.strip()
        how = (ending.reason or ending.kind, ending.refusal, ending.calls_tool) if ended else (None, "", False)
        finish_reason, refusal, calls_tool = how
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
            finish_reason=finish_reason,
            refusal=refusal,
            calls_tool=calls_tool,
            cache_write_1h_tokens=counts.cache_write_1h_tokens,
            url=model.url,
        )

    @property
    def ending(self) -> Ending:
        """How it ended, as far as that matters: a reply with a text counts as complete."""
        return Ending(self.finish_reason, self.refusal, self.calls_tool)

    def text_of(self, step: str) -> str:
        """Return the text.

        Raises:
            NoReplyError: There is none, since the model was not done.
        """
        if self.ending.kind != "complete":
            raise self.ending.error(step)
        return self.text

    def priced(self, priced_as: PricedModel | None) -> Reply:
        """Return the reply with a price of today, if none was known when it was paid for."""
        if self.cost is not None:
            return self
        cost = cost_of(priced_as or PricedModel(self.model, self.provider, self.url), self.usage())
        return replace(self, cost=cost.as_text(), cost_unknown=cost.unknown)

    def usage(self) -> StepUsage:
        """Return its tokens, priced."""
        unknown = self.cost_unknown or "no price was known when it was paid for"
        cost = Cost(None, unknown) if self.cost is None else Cost(Decimal(self.cost))
        return StepUsage(
            self.input_tokens,
            self.output_tokens,
            self.cached_tokens,
            self.estimated,
            self.cache_write_tokens,
            cost,
            self.cache_write_1h_tokens,
        )


def usage_of(replies: Sequence[Reply]) -> dict[str, Any]:
    """Return the usage of a long-context step with these replies, as plain JSON."""
    counts = [reply.usage() for reply in replies]
    return Usage(long_context=reduce(add, counts) if counts else None).as_dict()


_FIELDS = frozenset(field.name for field in fields(Reply))


@dataclass(slots=True)
class _Asking:
    """The threads that want one reply."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    threads: int = 0


class Replies:
    """The replies of a run.

    With a folder, each is written to `replies.jsonl` before it is used, one to a line. A line that an interrupted run
    left half written is dropped. Threads may share the replies: two that ask the same wait for one reply. A folder
    serves one run at a time. A reply without a text that the model did not mean to give is a failure: it counts as
    paid, and the next run asks again. So does a reply that was on its way when a run was killed, with its expected
    cost, since the provider bills it all the same.

    Attributes:
        budget: What the replies cost, and the most that they may cost.
        asked: How many were asked for in this run.
        kept: How many were kept by earlier runs.
        lost: The expected costs of those that were on their way when earlier runs were killed.
        are_kept: Whether there is a folder, so that later runs find them.
    """

    def __init__(self, folder: Path | None = None, *, max_cost: Decimal | None = None) -> None:
        """Open the replies.

        Args:
            folder: The folder to keep them in; None for memory only.
            max_cost: The most that all of them may cost together, in US dollars; None for no limit.

        Raises:
            ConfigurationError: The folder cannot be used, or another run uses it.
        """
        self._path = folder / FILE if folder else None
        self._lock = threading.Lock()
        self._asking: dict[str, _Asking] = {}
        self._replies: dict[str, Reply] = {}
        self.budget = Budget(max_cost)
        self.asked = 0
        self.are_kept = folder is not None
        self._folder_lock = _locked(folder) if folder else None
        self._in_flight = InFlight(folder / "in_flight") if folder else None
        self.lost: list[Decimal] = []
        if self._path and self._path.exists():
            _cut_torn_line(self._path)
            for key, step, reply in _kept(self._path):
                self._book(key, reply, step)
        if self._in_flight:
            for call in self._in_flight.take():
                if call.key not in self._replies:
                    self._keep(call.key, Reply("", 0, 0, cost=call.cost, finish_reason=_LOST), call.step)
        self.asked, self.kept = 0, len(self._replies)

    def __enter__(self) -> Replies:  # noqa: PYI034 (typing.Self is of Python 3.11)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the folder."""
        if self._folder_lock:
            self._folder_lock.release()

    @property
    def summary(self) -> str:
        """How many replies there are, and what they cost, in a sentence."""
        paid = "their cost is not known" if self.budget.unpriced else f"${self.budget.spent:.4f} in all"
        if self.lost and not self.budget.unpriced:
            paid += f", ${sum(self.lost):.4f} of it expected for {len(self.lost):,} on their way when a run was killed"
        return f"{self.asked} replies were asked for, {self.kept} were kept from earlier runs; {paid}."

    def get(self, identity: object, ask: Callable[[], Reply], *, step: str, price: Price) -> Reply:
        """Return the kept reply to a prompt, or ask for one and keep it.

        Args:
            identity: All that the reply depends on, as plain JSON: model, settings, prompt.
            ask: Asks the model. Its errors pass through, and nothing is kept then.
            step: The kind of prompt, such as `"rag"`; see `Budget.reserve`.
            price: Returns the cost of a reply of so many tokens.

        Raises:
            CostCapError: It could cost more than is left of `max_cost`.
            ConfigurationError: There is a `max_cost`, and no price is known.
        """
        key = hashlib.sha256(json.dumps(identity, sort_keys=True, default=repr).encode()).hexdigest()
        with self._lock:
            if key in self._replies:
                return self._replies[key]
        with self._one_at_a_time(key):
            if key in self._replies:  # another thread asked the same
                return self._replies[key]
            with self.budget.reserve(step, price), self._noted(key, step, price):
                started = time.monotonic()
                reply = ask()
                reply = replace(reply, seconds=round(time.monotonic() - started, 3))
                self._keep(key, reply, step)
            with self._lock:
                self._replies[key] = reply  # without a text, too: only the next run asks again
        return reply

    def _noted(self, key: str, step: str, price: Price) -> AbstractContextManager[None]:
        if self._in_flight is None:
            return nullcontext()
        return self._in_flight.noted(key, step, self.budget.expected(step, price))

    @contextmanager
    def _one_at_a_time(self, key: str) -> Iterator[None]:
        """Let one thread at a time ask for a reply; what that takes is forgotten with the last of them."""
        with self._lock:
            asking = self._asking.setdefault(key, _Asking())
            asking.threads += 1
        try:
            with asking.lock:
                yield
        finally:
            with self._lock:
                asking.threads -= 1
                if not asking.threads:
                    del self._asking[key]

    def _keep(self, key: str, reply: Reply, step: str) -> None:
        with self._lock:
            if self._path:
                line = json.dumps({"key": key, "step": step, **asdict(reply)})
                with open_file(self._path, "a") as file:
                    file.write(f"{line}\n")
                    file.flush()
                    os.fsync(file.fileno())
            self.asked += 1
            self._book(key, reply, step)

    def _book(self, key: str, reply: Reply, step: str) -> None:
        self.budget.book(reply.cost, kind=step, output_tokens=reply.output_tokens)
        if reply.ending.kind == "complete":
            self._replies[key] = reply
        elif reply.finish_reason == _LOST:
            self.lost.append(Decimal(reply.cost or 0))


def count_kept(folder: Path) -> int:
    """Return how many replies are kept in a folder, without changing it."""
    path = folder / FILE
    return len({key for key, _, one in _kept(path) if one.ending.kind == "complete"}) if path.exists() else 0


def _locked(folder: Path) -> Any:
    """Make the folder if need be, and lock it against other runs."""
    from filelock import FileLock, Timeout  # noqa: PLC0415

    try:
        make_folder(folder)
        lock = FileLock(folder / f"{FILE}.lock", timeout=0, mode=0o600, thread_local=False)
        lock.acquire()
    except Timeout as error:
        msg = f"another run keeps its replies in {folder}: wait for it to end, or use another folder"
        raise ConfigurationError(msg) from error
    except OSError as error:
        msg = f"the replies cannot be kept in {folder}: {error.strerror or error}"
        raise ConfigurationError(msg) from error
    return lock


def _kept(path: Path) -> Iterator[tuple[str, str, Reply]]:
    """Read the replies of a file, with their keys and steps; a line that is damaged is logged."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if kept := _read(line, f"{path}:{number}"):
                yield kept


def _read(line: bytes, where: str) -> tuple[str, str, Reply] | None:
    try:
        row = parse(line, where, todo=_AGAIN)
        key, step = row["key"], row["step"]
        known = {name: value for name, value in row.items() if name in _FIELDS}  # another version has others
        reply = make(Reply, known, where, todo=_AGAIN)
        amount(reply.cost or "0")
        if isinstance(key, str) and isinstance(step, str):
            return key, step, reply
    except InputError as error:
        _logger.warning("%s", error)
        return None
    except WRONG:
        pass
    _logger.warning("%s is no reply; %s", where, _AGAIN)
    return None


def _cut_torn_line(path: Path) -> None:
    """Cut off a line that an interrupted run left half written, so that the next one starts on a line of its own."""
    content = path.read_bytes()
    end = content.rfind(b"\n") + 1
    if end < len(content):
        with path.open("r+b") as file:
            file.truncate(end)
