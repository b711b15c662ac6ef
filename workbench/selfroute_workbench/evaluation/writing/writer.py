"""Has questions written and checked, in rounds, until there are enough or no more come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from math import ceil
from typing import Any, TypeVar

from selfroute.answerability.gate import declines
from selfroute.error_text import one_line
from selfroute.errors import ConfigurationError
from selfroute.usage.counts import Cost, StepUsage
from selfroute.usage.tokens import count_tokens
from selfroute_workbench.evaluation.asker import Asker
from selfroute_workbench.evaluation.metrics import exact_loose
from selfroute_workbench.evaluation.spending import CostCapError
from selfroute_workbench.evaluation.writing.prompts import CLOSED_BOOK, KINDS, READ, SHARES, Kind, write_prompt
from selfroute_workbench.evaluation.writing.written import (
    TWICE,
    Source,
    Written,
    is_known,
    read,
    spaced,
    windows,
)

KNOWN = "the model answers it without the document"
ANSWERED = "the model answers it from the document"
NOTHING = "no question of the first round could be kept, and another would hardly be better"
_REFUSAL = "unanswerable"
_ROUNDS = 4
_AT_A_TIME = 5  # questions of one reply
_SHOWN = 20  # questions that a prompt says are there already
T = TypeVar("T")
SPARE = 1.25
"""So many times the missing questions are asked for, since some are dropped."""


@dataclass
class Outcome:
    """What came of the writing.

    Attributes:
        kept: The questions, in the order of their documents and places.
        dropped: Why others were dropped, each in words.
        failed: Why calls failed, each on one line.
        stopped: Why it ended early; None if it did not.
    """

    kept: list[Written] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    stopped: str | None = None

    def number_of(self, kind: Kind) -> int:
        """Return how many questions of a kind are kept."""
        return sum(each.kind == kind for each in self.kept)


@dataclass(frozen=True, slots=True)
class Request:
    """Some questions of one kind about a document, or a part of it."""

    kind: Kind
    source: Source
    text: str
    count: int


def counts_of(number: int, unanswerable: float) -> dict[Kind, int]:
    """Divide a number of questions among the kinds.

    Args:
        number: How many questions are wanted.
        unanswerable: The share of those without an answer, from 0 to 1.

    Raises:
        ConfigurationError: The share is not between 0 and 1.
    """
    if not 0 <= unanswerable <= 1:
        msg = f"the share of unanswerable questions is a number from 0 to 1, such as 0.2; not {unanswerable}"
        raise ConfigurationError(msg)
    bare = round(number * unanswerable)
    counts = {kind: int((number - bare) * share) for kind, share in SHARES.items()}
    counts["local"] += number - bare - sum(counts.values())
    return {**counts, "unanswerable": bare}


class Writer:
    """Writes questions about documents."""

    def __init__(self, asker: Asker, sources: Sequence[Source], *, room: int | None, at_once: int) -> None:
        """Take a model and documents.

        Args:
            asker: The model.
            sources: The documents.
            room: How many tokens of a document a prompt may have; None for no limit.
            at_once: How many calls are made at a time.

        Raises:
            ConfigurationError: As for `Asker.check`.
        """
        asker.check("write")
        self._asker, self._sources, self._at_once = asker, sources, at_once
        self._parts = {source: _parts(source.text, room) for source in sources}
        self._cut = {source: _both_ends(source.text, room) for source in sources}

    def write(self, counts: Mapping[Kind, int], *, on_progress: Callable[[int], object] = lambda _: None) -> Outcome:
        """Write questions.

        Args:
            counts: How many of each kind.
            on_progress: Called with the number of questions that have just been kept.
        """
        outcome = Outcome()
        with ThreadPoolExecutor(self._at_once) as threads:
            try:
                for number in range(_ROUNDS):
                    requests = self.requests(self._missing(outcome, counts), number)
                    if not requests:
                        break
                    candidates = self._write(requests, number, outcome, threads)
                    on_progress(self._keep(candidates, outcome, counts, threads))
                    if not outcome.kept:
                        outcome.stopped = NOTHING
                        break
            except CostCapError as error:
                outcome.stopped = one_line(error)
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                raise
        order = {source: number for number, source in enumerate(self._sources)}
        outcome.kept.sort(key=lambda each: (order[each.source], KINDS.index(each.kind), each.start))
        return outcome

    def requests(self, missing: Mapping[Kind, int], number: int) -> list[Request]:
        """Return what is asked for in a round, spread over the documents and over the places in them."""
        calls = [(kind, count) for kind, wanted in missing.items() for count in self._calls(wanted)]
        in_parts = [call for call in calls if call[0] != "whole"]
        places = _spread(self._places, len(in_parts), number)
        wholes = _spread(list(self._cut.items()), len(calls) - len(in_parts), number)
        return [Request(kind, *next(wholes if kind == "whole" else places), count) for kind, count in calls]

    def parts(self, source: Source) -> Sequence[str]:
        """Return a document in parts that fit the model's window."""
        return self._parts[source]

    def price(self, counts: StepUsage) -> Cost:
        """Return the cost of a call."""
        return self._asker.price(counts)

    def checks(self, written: Written) -> Iterator[str]:
        """Yield the prompts that check a question, each if the one before did not settle it."""
        if written.kind != "unanswerable":
            yield CLOSED_BOOK.format(input=written.question, refusal=_REFUSAL)
            return
        for part in self._parts[written.source]:
            yield READ.format(context=part, input=written.question, refusal=_REFUSAL)

    def _calls(self, missing: int) -> Iterator[int]:
        """Yield how many questions each call asks for: a few, of each document if they suffice."""
        wanted = ceil(missing * SPARE)
        calls = max(ceil(wanted / _AT_A_TIME), min(wanted, len(self._sources)))
        for call in range(calls):
            yield wanted * (call + 1) // calls - wanted * call // calls

    @property
    def _places(self) -> list[tuple[Source, str]]:
        """The first parts of all documents, then their next ones."""
        rows = zip_longest(*([(source, part) for part in parts] for source, parts in self._parts.items()))
        return [place for row in rows for place in row if place]

    def _missing(self, outcome: Outcome, counts: Mapping[Kind, int]) -> dict[Kind, int]:
        return {kind: max(count - outcome.number_of(kind), 0) for kind, count in counts.items()}

    def _write(
        self, requests: Sequence[Request], number: int, outcome: Outcome, threads: ThreadPoolExecutor
    ) -> list[Written]:
        """Return the new questions of a round, which are still to be checked.

        Raises:
            Exception: Every call of the first round failed; the first one's error.
        """
        candidates: list[Written] = []
        prompts = [self.prompt(request, outcome.kept) for request in requests]
        replies = list(threads.map(partial(_tried, self._ask, attempt=number), prompts))
        errors = [reply for reply in replies if isinstance(reply, Exception)]
        if number == 0 and len(errors) == len(replies):
            raise errors[0]
        outcome.failed += map(one_line, errors)
        for request, reply in zip(requests, replies, strict=True):
            room = request.count  # a reply may have many more, and each check is paid for
            for each in () if isinstance(reply, Exception) else read(reply, kind=request.kind, source=request.source):
                if isinstance(each, str):
                    outcome.dropped.append(each)
                elif is_known(each, [*outcome.kept, *candidates]):
                    outcome.dropped.append(TWICE)
                elif room:
                    candidates.append(each)
                    room -= 1
        return candidates

    def _keep(
        self, candidates: Sequence[Written], outcome: Outcome, counts: Mapping[Kind, int], threads: ThreadPoolExecutor
    ) -> int:
        """Keep the questions that stand the checks, as many as are wanted, and return how many."""
        before = len(outcome.kept)
        problems = threads.map(partial(_tried, self._problem), candidates)
        for candidate, problem in zip(candidates, problems, strict=True):
            if isinstance(problem, Exception):
                outcome.failed.append(one_line(problem))
            elif problem:
                outcome.dropped.append(problem)
            elif outcome.number_of(candidate.kind) < counts[candidate.kind]:
                outcome.kept.append(candidate)
        return len(outcome.kept) - before

    def prompt(self, request: Request, kept: Iterable[Written]) -> str:
        """Return the prompt that asks for some questions."""
        known = [each.question for each in kept if each.source == request.source][-_SHOWN:]
        is_part = request.text != request.source.text
        return write_prompt(request.kind, request.text, count=request.count, is_part=is_part, known=known)

    def _ask(self, prompt: str, *, step: str = "write", attempt: int = 0) -> str:
        """Return the reply to a prompt; each attempt has another one."""
        reply, _ = self._asker.ask(prompt, step, attempt=attempt)
        return reply.text_of(step)

    def _problem(self, written: Written) -> str | None:
        """Return why a question is to be dropped; None if it is not."""
        for prompt in self.checks(written):
            text = self._ask(prompt, step="check")
            if declines(text, refusal=_REFUSAL):
                continue
            if written.kind == "unanswerable":
                return ANSWERED
            if exact_loose(spaced(text), [spaced(written.answer)]):
                return KNOWN
        return None


def _tried(call: Callable[..., T], *given: Any, **options: Any) -> T | Exception:
    """Return what a call brings, or the error that the model ended with; what ends the run passes through."""
    try:
        return call(*given, **options)
    except (CostCapError, ConfigurationError):
        raise
    except Exception as error:  # noqa: BLE001 - each provider's client has its own
        return error


def _spread(places: Sequence[tuple[Source, str]], number: int, first: int) -> Iterator[tuple[Source, str]]:
    """Yield so many of the places, evenly apart if there are more; another `first` yields others."""
    for each in range(number):
        yield places[(each * max(len(places), number) // number + first) % len(places)]


def _parts(text: str, room: int | None) -> Sequence[str]:
    """Return a text in parts that fit; two more than the count asks for, since they are not equally long in tokens."""
    tokens = count_tokens(text)
    if room is None or tokens <= room:
        return [text]
    parts = ceil(tokens / room)
    while any(count_tokens(part) > room for part in windows(text, parts)):
        parts += 1
    return windows(text, parts)


def _both_ends(text: str, room: int | None) -> str:
    """Return a text without its middle if it does not fit, as LongBench cuts; both ends are about equally long."""
    if room is None or count_tokens(text) <= room:
        return text
    first, *_, last = _parts(text, room // 2)
    return first + last
