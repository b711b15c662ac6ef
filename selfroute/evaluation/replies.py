"""Replies of models, kept as they come, so that nothing is asked, or paid for, twice; and a cap on what they cost."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, astuple, dataclass, fields, replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from selfroute.answerability.ending import Ending
from selfroute.error_text import one_line
from selfroute.errors import ConfigurationError, InputError, SelfRouteError
from selfroute.kept import make, parse
from selfroute.private import make_folder, open_file
from selfroute.usage.account import Tally
from selfroute.usage.counts import FREE, Cost, StepUsage
from selfroute.usage.prices import PricedModel, cost_of
from selfroute.usage.tokens import count_tokens
from selfroute.usage.values import WRONG, amount

FILE = "looks.jsonl"
OUTPUT_TOKENS = 200
"""The number of tokens that a reply is expected to have at least."""
Price = Callable[[int], Cost]
"""Returns the cost of a reply of so many tokens."""
Call = Callable[[str], Tally]
"""Sends a prompt to a model, and returns the tally of its reply."""
_AGAIN = "its prompt is asked again, and what it cost before is not counted"
_LOST = "run aborted"
_logger = logging.getLogger(__name__)


class CostCapError(SelfRouteError, RuntimeError):
    """The next reply could cost more than is left of the cap."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply of a model, with its tokens, cost and time.

    Attributes:
        text: The text.
        input_tokens: Tokens of the prompt.
        output_tokens: Tokens of the reply.
        cached_tokens: Tokens of the prompt that the provider read from its cache.
        cache_write_tokens: Tokens of the prompt that the provider wrote to its cache.
        cache_write_1h_tokens: Those of the written tokens that are kept for an hour.
        estimated: Whether any count is not the provider's own.
        model: The name under which the model is priced.
        provider: The model's provider.
        url: The address at which the model was called, if it is known.
        cost: In US dollars, a decimal string; None if no price was known when it was paid for.
        seconds: How long the model took.
        finish_reason: How it ended, in the provider's word, if there is no text since the model was not done.
        refusal: The text by which the model refused then.
        calls_tool: Whether it called a tool then.
    """

    text: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_1h_tokens: int = 0
    estimated: bool = False
    model: str | None = None
    provider: str | None = None
    url: str | None = None
    cost: str | None = None
    seconds: float = 0.0
    finish_reason: str | None = None
    refusal: str = ""
    calls_tool: bool = False

    @classmethod
    def of(  # noqa: PLR0913 - what a reply is made of
        cls,
        text: str,
        tally: Tally,
        *,
        prompt: Callable[[], str],
        model: PricedModel,
        priced_as: PricedModel | None,
        count: Callable[[str], int] = count_tokens,
    ) -> Reply:
        """Make one of what a model replied.

        Args:
            text: The text.
            tally: The tally of the call.
            prompt: Returns the text of the prompt; called only if its tokens have to be estimated.
            model: The model that was asked.
            priced_as: The model that it is priced as, if not as itself.
            count: Counts the tokens of a text.
        """
        counts, model, ending = tally.usage(prompt, count=count) or StepUsage(0, 0), tally.model(model), tally.ending()
        bare = ending.kind != "complete" and not text.strip()
        how = (ending.reason or ending.kind, ending.refusal, ending.calls_tool) if bare else (None, "", False)
        return cls(
            text,
            counts.input_tokens,
            counts.output_tokens,
            counts.cached_tokens,
            counts.cache_write_tokens,
            counts.cache_write_1h_tokens,
            counts.estimated,
            *(model.name, model.provider, model.url),
            cost_of(priced_as or model, counts).as_text(),
            0.0,
            *how,
        )

    @property
    def ending(self) -> Ending:
        """How it ended: a reply with a text counts as complete."""
        return Ending(self.finish_reason, self.refusal, self.calls_tool)

    def text_of(self, step: str) -> str:
        """Return the text.

        Raises:
            NoReplyError: There is none, since the model was not done.
        """
        if self.ending.kind != "complete":
            raise self.ending.error(step)
        return self.text

    def usage(self, priced_as: PricedModel | None = None) -> StepUsage:
        """Return its tokens and cost; at the price of today, if none was known when it was paid for.

        Args:
            priced_as: The model that it is priced as, if not as itself.
        """
        counts = StepUsage(
            self.input_tokens,
            self.output_tokens,
            self.cached_tokens,
            self.estimated,
            self.cache_write_tokens,
            cache_write_1h_tokens=self.cache_write_1h_tokens,
        )
        if self.cost is not None:
            return counts.with_cost(Cost(Decimal(self.cost)))
        return counts.with_cost(cost_of(priced_as or PricedModel(self.model, self.provider, self.url), counts))


_FIELDS = frozenset(field.name for field in fields(Reply))


class Replies:
    """The replies of a run. Threads may share them: two that ask the same wait for one reply.

    With a folder, each is written to `looks.jsonl` before it is used, one to a line, and before it is asked for a line
    says what it will cost at most. So a reply that was on its way when a run was killed counts as paid, since the
    provider bills it all the same. A line that an interrupted run left half written is dropped. A folder serves one run
    at a time. A reply without a text that the model did not mean to give is a failure: it counts as paid, and the next
    run asks again.

    The cost of a reply is known only afterwards. Under a cap, money is set aside for as many tokens as the longest
    reply of its step had so far; the first of a step is asked for alone, so that there is one to go by.

    Attributes:
        spent: What all replies with a known price cost in US dollars.
        unpriced: How many replies have no known price.
        asked: How many were asked for in this run.
        kept: How many were kept by earlier runs.
        lost: The expected costs of those that were on their way when earlier runs were killed.
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
        self._most, self._pending = max_cost, Decimal(0)
        self._lock, self._first = threading.Lock(), threading.Lock()
        self._asking: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()
        self._replies: dict[str, Reply] = {}
        self._longest: dict[str, int] = {}
        self.spent, self.unpriced, self.asked = Decimal(0), 0, 0
        self.lost: list[Decimal] = []
        self._folder_lock = _locked(folder) if folder else None
        if self._path and self._path.exists():
            self._open(self._path)
        self.kept = len(self._replies)

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
        paid = "their cost is not known" if self.unpriced else f"${self.spent:.4f} in all"
        if self.lost and not self.unpriced:
            paid += f", ${sum(self.lost):.4f} of it expected for {len(self.lost):,} on their way when a run was killed"
        return f"{self.asked} replies were asked for, {self.kept} were kept from earlier runs; {paid}."

    def identity(self, model: PricedModel, name: str | None, *, step: str) -> Any:
        """Return what a model's kept replies are found by, as plain JSON.

        Args:
            model: The model, by the name that it reports.
            name: The user's name for it.
            step: What it is asked for, for the error.

        Raises:
            ConfigurationError: Replies are kept in a folder, and the model has no name.
        """
        if self._path and not (name or model.name):
            msg = (
                f"the replies cannot be kept in a folder, because the model of the step {step} does not report its "
                "name: give the pipeline a name with name=..., or leave out folder="
            )
            raise ConfigurationError(msg)
        return name or astuple(model)

    def check(self, price: Price) -> None:
        """Check that replies with such a price can be asked for at all.

        Raises:
            ConfigurationError: There is a cap, and no price is known.
        """
        if self._most is not None:
            _known(price(OUTPUT_TOKENS))

    def get(
        self,
        identity: object,
        ask: Callable[[], Reply],
        *,
        step: str,
        price: Price,
        question: tuple[str, str] | None = None,
    ) -> Reply:
        """Return the kept reply to a prompt, or ask for one and keep it.

        Args:
            identity: All that the reply depends on, as plain JSON: model, options, prompt.
            ask: Asks the model. Its errors pass through, and nothing is kept then.
            step: The kind of prompt: replies of one kind are about equally long.
            price: Returns the cost of a reply of so many tokens.
            question: The key of the question that it is about; it is written down for people.

        Raises:
            CostCapError: It could cost more than is left of `max_cost`, or it is not known how much was spent.
            ConfigurationError: There is a `max_cost`, and no price is known.
        """
        key = hashlib.sha256(json.dumps(identity, sort_keys=True, default=repr).encode()).hexdigest()
        about = {"question": question, "step": step, "key": key}
        with self._lock:
            if key in self._replies:
                return self._replies[key]
            asking = self._asking.setdefault(key, threading.Lock())
        with asking:
            if key in self._replies:  # another thread asked the same
                return self._replies[key]
            with self._reserved(step, price) as expected:
                self._write({**about, "asked": expected.as_text()})
                started = time.monotonic()
                try:
                    reply = ask()
                except BaseException as error:
                    self._write({**about, "failed": one_line(error)})
                    raise
                reply = replace(reply, seconds=round(time.monotonic() - started, 3))
                self._write({**about, **asdict(reply)})
                with self._lock:
                    self.asked += 1
                    self._book(key, step, reply)
                    self._replies[key] = reply  # without a text, too: only the next run asks again
        return reply

    def _write(self, row: Mapping[str, Any]) -> None:
        if not self._path:
            return
        with self._lock, open_file(self._path, "a") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _open(self, path: Path) -> None:
        """Read what earlier runs kept, and add up what they paid."""
        _cut_torn_line(path)
        on_their_way: dict[str, tuple[str, str]] = {}
        for key, step, row in _rows(path):
            on_their_way.pop(key, None)
            if isinstance(row, Reply):
                self._book(key, step, row)
            elif amount(row.get("asked") or "0"):  # where no price was known, nothing is
                on_their_way[key] = step, row["asked"]
        for key, (step, cost) in on_their_way.items():
            reply = Reply("", 0, 0, cost=cost, finish_reason=_LOST)
            self._write({"step": step, "key": key, **asdict(reply)})
            self._book(key, step, reply)

    def _book(self, key: str, step: str, reply: Reply) -> None:
        self._longest[step] = max(self._longest.get(step, 0), reply.output_tokens)
        if reply.cost is None:
            self.unpriced += 1
        else:
            self.spent += Decimal(reply.cost)
        if reply.ending.kind == "complete":
            self._replies[key] = reply
        elif reply.finish_reason == _LOST:
            self.lost.append(Decimal(reply.cost or 0))

    @contextmanager
    def _reserved(self, step: str, price: Price) -> Iterator[Cost]:
        """Set aside the probable cost of a reply while it is asked for."""
        if self._most is None:
            yield self._expected(step, price)
            return
        with ExitStack() as first:
            if step not in self._longest:
                first.enter_context(self._first)
                if step in self._longest:  # another thread was the first
                    first.close()
            with self._lock:
                cost = self._expected(step, price)
                dollars = _known(cost)
                self._check_room(dollars)
                self._pending += dollars
            try:
                yield cost
            finally:
                with self._lock:
                    self._pending -= dollars

    def _expected(self, step: str, price: Price) -> Cost:
        return price(max(OUTPUT_TOKENS, self._longest.get(step, 0)))

    def _check_room(self, dollars: Decimal) -> None:
        if self.unpriced:
            msg = f"the cap cannot be kept: no price is known for {self.unpriced} of the replies so far"
            raise CostCapError(msg)
        if dollars > (self._most or 0) - self.spent - self._pending:
            msg = f"the next reply could pass the cap of ${self._most}, which earlier runs count towards"
            raise CostCapError(msg)


class Asker:
    """A model whose replies are kept. Threads may share it.

    Attributes:
        model: The model, by the name that it reports.
        calls: How many replies were used.
        used: The tokens and the cost of all replies that were used, as if kept ones were asked for again.
    """

    def __init__(
        self,
        call: Call,
        replies: Replies,
        *,
        model: PricedModel,
        name: str | None = None,
        priced_as: PricedModel | None = None,
    ) -> None:
        """Take a model.

        Args:
            call: Asks the model.
            replies: Keeps its replies.
            model: The model, by the name that it reports.
            name: The user's name for the pipeline; it counts only where the model does not report its own.
            priced_as: The model that it is priced as, if not as itself.

        Raises:
            ConfigurationError: There is a cap on the cost, and no price of the model is known; or replies are kept in a
                folder, and the model has no name.
        """
        self._call, self._replies, self.model, self._priced_as = call, replies, model, priced_as
        self._identity = replies.identity(model, None if model.name else name, step="judge")
        self.calls, self.used = 0, StepUsage(0, 0, cost=FREE)
        self._lock = threading.Lock()
        replies.check(lambda output: self.price(StepUsage(1, output)))

    def ask(self, prompt: str, step: str, *, attempt: int = 0) -> tuple[Reply, bool]:
        """Return the kept reply to a prompt, or a new one, and whether it is new.

        Args:
            prompt: The prompt.
            step: The kind of prompt.
            attempt: A number from 0: another one gets another reply to the same prompt.

        Raises:
            CostCapError: As in `Replies.get`.
        """
        new: list[Reply] = []

        def ask() -> Reply:
            tally = self._call(prompt)
            text, priced_as = "".join(tally.text), self._priced_as
            new.append(Reply.of(text, tally, prompt=lambda: prompt, model=self.model, priced_as=priced_as))
            return new[0]

        tokens = count_tokens(prompt)
        reply = self._replies.get(
            {"model": self._identity, step: attempt, "prompt": prompt},
            ask,
            step=step,
            price=lambda output: self.price(StepUsage(tokens, output)),
        )
        with self._lock:
            self.calls, self.used = self.calls + 1, self.used + reply.usage(self._priced_as)
        return reply, bool(new)

    def price(self, counts: StepUsage) -> Cost:
        """Return the cost of a reply."""
        return cost_of(self._priced_as or self.model, counts)


def count_kept(folder: Path) -> int:
    """Return how many replies are kept in a folder, without changing it."""
    path = folder / FILE
    rows = _rows(path) if path.exists() else ()
    return len({key for key, _, row in rows if isinstance(row, Reply) and row.ending.kind == "complete"})


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


def _rows(path: Path) -> Iterator[tuple[str, str, Reply | dict[str, Any]]]:
    """Read the lines of a file: replies, and notes that one was asked for or failed; a damaged line is logged."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if row := _read(line, f"{path}:{number}"):
                yield row


def _read(line: bytes, where: str) -> tuple[str, str, Reply | dict[str, Any]] | None:
    try:
        row = parse(line, where, todo=_AGAIN)
        key, step = row["key"], row["step"]
        if not (isinstance(key, str) and isinstance(step, str)):
            raise TypeError
        if "asked" in row or "failed" in row:
            amount(row.get("asked") or "0")
            return key, step, dict(row)
        known = {name: value for name, value in row.items() if name in _FIELDS}  # another version has others
        reply = make(Reply, known, where, todo=_AGAIN)
        amount(reply.cost or "0")
    except InputError as error:
        _logger.warning("%s", error)
    except WRONG:
        _logger.warning("%s is no reply; %s", where, _AGAIN)
    else:
        return key, step, reply
    return None


def _cut_torn_line(path: Path) -> None:
    """Cut off a line that an interrupted run left half written, so that the next one starts on a line of its own."""
    content = path.read_bytes()
    end = content.rfind(b"\n") + 1
    if end < len(content):
        with path.open("r+b") as file:
            file.truncate(end)


def _known(cost: Cost) -> Decimal:
    if cost.dollars is None:
        msg = f"the cap cannot be kept, because no price is known: {cost.unknown}"
        raise ConfigurationError(msg)
    return cost.dollars
