"""Count what the models of one question cost, and estimate what calls to come would.

It also compares the cost with that of always reading the documents.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from operator import is_
from typing import TYPE_CHECKING, Generic, TypeVar

from selfroute.answerability.ending import DONE, Ending
from selfroute.usage import prices
from selfroute.usage.counts import NOTHING, Cost, StepUsage, Usage
from selfroute.usage.prices import PricedModel
from selfroute.usage.tokens import LEAST_RATE, RATE, PromptSize, with_bounds

if TYPE_CHECKING:
    from selfroute.calls.fitting import Fitting
    from selfroute.calls.host import Host, Prompt
    from selfroute.calls.memory import Memory
    from selfroute.calls.plan import Plan
    from selfroute.documents.cache import Size
    from selfroute.effects import Answer, Route
    from selfroute.errors import NoReplyError
    from selfroute.usage.account import Account, Tally

Document = TypeVar("Document")
_NO_PROMPT, _NO_MODEL = PromptSize(0, 0), PricedModel()


class Costs(Generic[Document]):
    """The usage and the costs of one question.

    Attributes:
        tally: The latest reply and its counts; None if no model was asked.
    """

    def __init__(
        self, host: Host[Document], plan: Plan, fitting: Fitting[Document], memory: Memory, account: Account
    ) -> None:
        """Start with no call of a model."""
        self._host, self._plan, self._fitting = host, plan, fitting
        self._reading, self._sending = fitting.reading, fitting.sending
        self._estimate, self._account = memory.estimate, account
        self.tally: Tally | None = None
        self._answered_by = _NO_MODEL  # the model that replied last
        self._last: StepUsage | None = None  # what the latest call took
        self._open: Route | None = None  # the step whose reply is still open
        self._prompt: Prompt | None = None
        self._size: PromptSize | None = None

    @property
    def draft(self) -> str:
        """The latest reply, as it was received so far."""
        return "".join(self.tally.text) if self.tally else ""

    def sent(self) -> Sequence[str]:
        """Return the texts of the messages of the latest prompt."""
        return self._prompt.texts if self._prompt and self._prompt.is_known else ()

    @property
    def ending(self) -> Ending:
        """How the latest reply ended; asked once all its pieces have come."""
        return self.tally.ending() if self.tally else DONE

    def no_reply(self, step: Route) -> NoReplyError:
        """Return the error that a step ended without a reply that can be judged, with what caused it."""
        error = self.ending.error(step)
        error.__cause__ = self.tally.error if self.tally else None
        return error

    @property
    def size(self) -> PromptSize:
        """The size of the latest prompt."""
        if self._size is None:
            prompt = self._prompt
            if prompt is None:
                return _NO_PROMPT
            self._size = PromptSize(len(prompt.text) + prompt.schema, len(prompt.context))
        return self._size

    @contextmanager
    def counted(self, step: Route, tally: Tally, prompt: Prompt) -> Iterator[None]:
        """Add a call of a model to the account, however it ends; the code within makes the call.

        Args:
            step: The step that called it.
            tally: The text and the counts that were received.
            prompt: The prompt.
        """
        self.tally, self._open, self._prompt, self._size = tally, step, prompt, None
        try:
            yield
            tally.whole = True
        except CancelledError:
            tally.left = prompt.is_known  # else no model was asked yet
            raise
        except Exception as error:
            if not (prompt.is_known and tally.ends_with(error)):
                raise
            tally.error = error
        finally:
            self._open = None
            self._add_call(step, tally, prompt)

    def _add_call(self, step: Route, tally: Tally, prompt: Prompt) -> None:
        counts = self._counts_of(tally, prompt)
        if counts is None:
            return
        self._answered_by, self._last = self.priced(step, tally), counts
        self._account.add_call(step, counts, self._answered_by)
        if step != "rag":
            self._estimate.replied(self.priced(step), counts.output_tokens)
        if not counts.estimated:
            self._fitting.learn(step, prompt, counted=counts.input_tokens)
        elif tally.whole and not tally.left:
            self._host.log_missing_usage(step)

    def _counts_of(self, tally: Tally, prompt: Prompt) -> StepUsage | None:
        return tally.usage(lambda: prompt.text)

    @property
    def _latest(self) -> StepUsage | None:
        """The usage of the latest call of a model so far; None if there was no call."""
        if self._open is None or self.tally is None or self._prompt is None:
            return self._last
        return self._counts_of(self.tally, self._prompt) or NOTHING

    def so_far(self) -> Usage:
        """Return the usage of the question so far, including a reply in doubt that is still open."""
        counts, step, used = self._latest, self._open, self._account.usage
        if step is None or counts is None:
            return used
        return used + Usage.of(step, counts.with_cost(prices.cost_of(self.priced(step, self.tally), counts)))

    def priced(self, step: Route, tally: Tally | None = None) -> PricedModel:
        """Return the model as which a step is priced: the declared, answering or configured one."""
        declared = self._plan.declared_model(step, shared=self._host.one_model)
        if tally is None:
            return declared or self._host.name_of(step)
        return (declared or tally.model(self._host.name_of(step))).served(tally.tier())

    def of_step(self, step: Route, *, tokens: int) -> tuple[StepUsage, Cost]:
        """Estimate the usage and the cost of a step that is still to come.

        A draft's reply may have named the model. One that thinks long over the draft does so again, so the estimate of
        its reply is no less than that of the draft.

        Args:
            step: The step.
            tokens: Those of its prompt.
        """
        latest, shared = self._latest or NOTHING, step == "sections" or self._host.one_model
        reply = max(self._estimate.reply(self.priced(step)), latest.output_tokens if shared else 0)
        counts = StepUsage(tokens, reply)
        return counts, prices.cost_of(self.priced(step, self.tally if shared else None), counts)

    def tokens_of(self, sizes: Sequence[Size]) -> int:
        """Estimate the tokens of a prompt with documents of such sizes."""
        model, room = self.priced("long_context"), self._room()
        return self._estimate.tokens(sizes, self._rate(), prompt=self.size, room=room, model=model)

    def tokens_with(self, passages: Sequence[Document]) -> int:
        """Estimate the tokens of a prompt like the latest one, with other passages; no less than they have."""
        before, after = self._reading.length(self._sending.context), self._reading.length(passages)
        size = self.size
        context = max(size.context * after / before, after) if before else after  # with what formats the passages
        least = self._fitting.tokens(passages, self._fitting.count("sections"))
        return max(round((size.around + context) * self._rate()), least)

    def _rate(self) -> float:
        """Return the tokens per character of the latest prompt; before any, those of the passages."""
        latest, characters, passages = self._latest, self.size.characters, self._reading.passages
        if latest and characters:
            return max(latest.input_tokens / characters, LEAST_RATE)
        tokens = self._fitting.tokens(passages, self._fitting.count("long_context"))
        return tokens / max(self._reading.length(passages), 1) or RATE

    def _room(self) -> int | None:
        return self._plan.document_budget(self._fitting.window("long_context"))

    def complete(self, answer: Answer) -> None:
        """Add what always reading the documents would have cost to the usage of a question that is answered."""
        model, reading, account = self.priced("long_context"), self._reading, self._account
        if answer.route != "long_context":
            account.usage = self._estimate.answered(
                account.usage,
                reading.sizes(),
                latest=self._last,
                prompt=self.size,
                room=self._room(),
                model=model,
                priced=self._answered_by if self._host.one_model else model,
            )
            return
        read, context = reading.documents, self._sending.context
        whole = len(read) == len(context) and all(map(is_, read, context))
        sizes = reading.known_sizes() if whole else None
        usage = self._estimate.read(account.usage, sizes, prompt=self.size, model=model)
        if usage.long_context:
            usage = with_bounds(usage, usage.long_context, model=self._answered_by)
        account.usage = usage
