"""The account of one question: the tally of each call, what all of them used, and the entry that a ledger keeps."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any

from selfroute.answerability.ending import DONE, Ending, reason_of, was_refused
from selfroute.effects import Answer, Decided, Route
from selfroute.languages.tokens import count_tokens
from selfroute.usage import prices, telemetry
from selfroute.usage.counts import NO_USAGE, NOTHING, StepUsage, Usage
from selfroute.usage.entry import Entry
from selfroute.usage.prices import UNKNOWN, PricedModel

if TYPE_CHECKING:
    from opentelemetry.context import Context

_logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False, kw_only=True)
class Tally:
    """The text and the token counts of one model call, as they arrive.

    Attributes:
        text: The pieces of the reply so far.
        counts: The provider's own counts so far; None if it reported none.
        whole: Whether the reply comes in one piece, so that the provider's counts are final.
        left: Whether the caller was cancelled during the call.
        ended: How the reply ended, if that is known.
        report: The text that a report stands for; None if the reply is no report.
        error: The error that said how the reply ended; None if none did.
        reason: The provider's word for that, if an error said it.
        calls_tool: Whether a message without text calls a tool.
        refusal: The text of a refusal that the provider sends apart from the reply.
    """

    whole: bool
    text: list[str] = field(default_factory=list)
    counts: StepUsage | None = None
    left: bool = False
    ended: Ending = DONE
    report: str | None = None
    error: Exception | None = None
    reason: str | None = None
    calls_tool: bool = False
    refusal: str = ""

    def add_piece(self, piece: Any, /) -> str:
        """Add a piece of a reply, and return its text; a piece is text, unless a framework has its own form."""
        self.text.append(piece)
        return str(piece)

    def usage(self, prompt: Callable[[], str]) -> StepUsage | None:
        """Return the usage of the call; None if it failed before any text came, for which no provider charges.

        Args:
            prompt: Returns the text of the prompt; called only if its tokens have to be estimated.
        """
        if not (self.text or self.left):
            return None
        if self.whole and self.counts and self.counts.input_tokens:
            return self.counts
        return (self.counts or NOTHING).with_estimates(prompt=prompt(), reply="".join(self.text), count=count_tokens)

    def ending(self) -> Ending:
        """Return how the reply ended; called once all of it has come."""
        return self.ended

    def ends_with(self, error: Exception) -> bool:
        """Return whether an error only says how a reply ended, as some clients do, and note that."""
        reason = self.reason_of(error)
        if reason is None:
            return False
        self.reason, self.whole = reason, False
        if not was_refused(error):
            self.text.append("")  # it was paid for
        return True

    def reason_of(self, error: Exception) -> str | None:
        """Return how a reply ended, if that is all that an error says; None for any other error."""
        return reason_of(error)

    def tier(self) -> Any:
        """Return the tier in which the provider says that it served the reply; None if it says nothing."""
        return None

    def model(self, configured: PricedModel) -> PricedModel:
        """Return the model that answered: the configured one, a dated version of it, or a fallback."""
        return configured


class Account:
    """The account of one question. Use it as a context manager, which closes it when the question is over.

    Attributes:
        usage: The usage so far.
        models: What the calls of each model took, by its name.
        answerable: Whether the question is answered, judged by the first text that is shown; None before that.
    """

    def __init__(self, record: Callable[[Entry], None] | None = None) -> None:
        """Open the account.

        Args:
            record: Called with the entry when the account is closed; None if there is no ledger or handler.
        """
        self.usage = NO_USAGE
        self.models: dict[str, StepUsage] = {}
        self.answerable: bool | None = None
        self._record = record
        self._callbacks: tuple[Callable[[Usage], object], ...] = ()
        self._decided: Decided | None = None
        self._first: float | None = None
        self._open = True
        self._parent: Context | None = None  # of the question's span
        self._started = perf_counter()

    def as_dict(self) -> dict[str, Any]:
        """Return the usage so far as plain JSON."""
        return self.usage.as_dict(self.models)

    @property
    def seconds(self) -> float:
        """The time since the question began."""
        return perf_counter() - self._started

    def add_call(self, step: Route, counts: StepUsage, model: PricedModel) -> None:
        """Price a call of a model and add it."""
        cost = prices.cost_of(model, counts)
        self.usage += Usage.of(step, counts.with_cost(cost))
        if not counts.repeated:
            name = model.title if cost.dollars is not None else model.name or UNKNOWN
            before = self.models.get(name)
            self.models[name] = before + counts if before else counts

    def decided(self, effect: Decided) -> None:
        """Note the route; the last one counts."""
        self._decided = effect

    def on_close(self, callback: Callable[[Usage], object]) -> None:
        """Call back with the usage when the account closes; an error of the callback is only logged."""
        self._callbacks += (callback,)

    def shown(self, answer: Answer) -> None:
        """Note that the first text of an answer is shown."""
        self.answerable = answer.answerable
        self._first = self.seconds

    def close(self, answer: Answer | None = None, error: BaseException | None = None) -> None:
        """Close the account and record its entry; do nothing if it is closed already.

        Args:
            answer: The answer, if the question was answered to the end.
            error: What went wrong. If it is not an `Exception`, such as `GeneratorExit`, the reader has left.
        """
        if not self._open:
            return
        self._open = False
        for callback in self._callbacks:
            try:
                callback(self.usage)
            except Exception:  # noqa: PERF203 - one is usual
                _logger.exception("a policy failed when it was told what a question took")
        if self._record is None and self._parent is None:
            return
        entry = self._entry(answer, error)
        if self._record:
            self._record(entry)
        if self._parent is not None:
            try:
                telemetry.record(entry, parent=self._parent, finish_reason=answer.finish_reason if answer else None)
            except Exception:
                _logger.exception("the span of a question could not be recorded")

    def _entry(self, answer: Answer | None, error: BaseException | None) -> Entry:
        failed, decided = isinstance(error, Exception), self._decided
        about: dict[str, Any] = {}
        if decided is not None:
            decision, route = decided.decision, decided.route
            about = {
                "route": route,
                "declined": decision.declined,
                "doubted": decision.signal == "doubt" and route != "rag",
                "stopped": decision.ruling is not None and not decision.ruling["go"],
            }
        return Entry(
            "answered" if answer else "failed" if failed else "left",
            self.usage,
            self.seconds,
            self._first,
            answerable=answer.answerable if answer else None,
            error=type(error).__name__ if failed else None,
            models=self.models,
            **about,
        )

    def __enter__(self) -> Account:  # noqa: PYI034 - Python 3.10 has no typing.Self
        # Not in the constructor: an awaited stream may be read much later, or never.
        self._started = perf_counter()
        self._parent = telemetry.parent()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close(error=error)
