"""One question and its parts: what it reads, what fits, what it costs, what a policy says."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from selfroute.answerability import declines, declines_anywhere
from selfroute.calls.costs import Costs
from selfroute.calls.decisions import LONG, Decisions
from selfroute.calls.fitting import Fitting
from selfroute.calls.host import Host, check_question
from selfroute.calls.memory import Memory
from selfroute.calls.model_calls import ModelCalls
from selfroute.calls.plan import plan_of
from selfroute.calls.reading import Reading
from selfroute.calls.reply import Reply, gate_of
from selfroute.calls.sending import Sending
from selfroute.calls.settings import Settings, start_of
from selfroute.effects import (
    Answer,
    Compare,
    Effect,
    Generate,
    ReadDocuments,
    Retrieve,
    Start,
)
from selfroute.errors import NoReplyError
from selfroute.flow import Flow, self_route
from selfroute.usage.account import Account
from selfroute.usage.counts import StepUsage
from selfroute.usage.entry import Entry
from selfroute.usage.prices import cost_of

if TYPE_CHECKING:
    from selfroute.answerability.reply_gate import ReplyGate

Document = TypeVar("Document")
_NOTHING_FOUND = (
    "nothing was retrieved for a question: the store may be empty, or the retriever's filter may let nothing through; "
    "check() says what it finds"
)
_logger = logging.getLogger(__name__)
_LONG_REPLY = 2_000  # characters; judging fewer does
_REPLY = "The report does not say. It covers 2024."


class Call(Generic[Document]):
    """One question, asked of a host. It performs the effects of the flow, which the drivers hand it.

    Attributes:
        host: What the framework does.
        plan: What the options mean for it.
        refusal: The word that declines.
        account: The record of the question.
        reading: Its passages and documents.
        sending: Its prompts.
        fitting: What fits the windows of its models.
        costs: What its calls of models cost.
        start: The step that it started with.
        decisions: Whether it goes on.
    """

    def __init__(
        self,
        host: Host[Document],
        settings: Settings,
        *,
        memory: Memory,
        record: Callable[[Entry], None] | None = None,
    ) -> None:
        """Prepare to answer a question.

        Args:
            host: What the framework does for it.
            settings: The options of the chain or engine, or their plan.
            memory: What the chain or engine keeps between questions.
            record: Called with the entry when the account is closed; None if there is no ledger or handler.
        """
        plan = plan_of(settings)
        self.host, self.plan, self.refusal = host, plan, plan.refusal
        self.account = Account(record)
        self.reading = Reading(host, plan, self.account)
        self.sending = Sending(host, plan, self.reading)
        self.fitting = Fitting(host, plan, self.reading, self.sending, memory)
        self.costs = Costs(host, plan, self.fitting, memory, self.account)
        self._models = ModelCalls(host, plan, self.sending, self.costs)
        self.decisions = Decisions(host, plan, fitting=self.fitting, costs=self.costs, account=self.account)
        self._memory = memory
        self.start: Start = "rag"

    def flow(self) -> Flow:
        """Check the question and return a fresh flow.

        Raises:
            InputError: The question is not text, or is blank.
            ConfigurationError: There is no such first step.
        """
        check_question(self.host.question)
        start = self.plan.start
        return self._flow(start if isinstance(start, str) else self.host.choose(start))

    async def aflow(self) -> Flow:
        """The async twin of `flow`."""
        check_question(self.host.question)
        start = self.plan.start
        return self._flow(start if isinstance(start, str) else await self.host.achoose(start))

    def _flow(self, start: Any) -> Flow:
        self.start = start_of(start)
        ladder = self.plan.ladder(self.start)
        return self_route(
            self.host.question,
            ladder,
            refusal=self.plan.not_found or self.refusal,
            compares=self.start == "auto" and "long_context" in ladder and self.plan.escalation is None,
        )

    @property
    def context(self) -> Sequence[Document]:
        """What the latest prompt held."""
        return self.sending.context

    def ask(self, effect: Generate) -> Reply:
        """Return the reply of a step's model, which is asked once the first piece is read."""
        return Reply(effect.step, self._models.ask(effect), self._gate(effect), self.costs)

    def aask(self, effect: Generate) -> Reply:
        """The async twin of `ask`."""
        return Reply(effect.step, self._models.aask(effect), self._gate(effect), self.costs)

    def _gate(self, effect: Generate) -> ReplyGate:
        return gate_of(effect, self.plan, sent=self.costs.sent, ungraded=self._memory.ungraded)

    def may_read_less(self, effect: Effect, error: Exception) -> bool:
        """Return whether an error means that the prompt was too long for the model's window, so that less may fit."""
        if isinstance(error, NoReplyError):  # that reply was paid for
            return False
        return isinstance(effect, Generate) and self.host.too_long(error) is not None

    def retrieve(self, _: Retrieve) -> Sequence[Document] | None:
        """Return the passages that the draft reads, best first; None if nothing leads to anything to read."""
        return self.fitting.fit(self._found(self.host.retrieve())) or self._nothing

    async def aretrieve(self, _: Retrieve) -> Sequence[Document] | None:
        """The async twin of `retrieve`."""
        return await self.fitting.afit(self._found(await self.host.aretrieve())) or self._nothing

    @property
    def _nothing(self) -> Sequence[Document] | None:
        """The result when nothing was retrieved: without passages there is no document to read."""
        return None if self.reading.is_stored else ()

    def _found(self, passages: Sequence[Document]) -> ReadDocuments:
        self.reading.passages = passages
        if not passages:
            self._memory.said.warn(_logger, _NOTHING_FOUND)
        return ReadDocuments(self.reading.drafted, step="rag")

    def compare(self, effect: Compare) -> bool:
        """Return whether the passages are most of their documents, so that a draft would cost more than it saves."""
        most = self.reading.are_most(effect.passages)
        self.start = "long_context" if most else self.start
        return most

    async def acompare(self, effect: Compare) -> bool:
        """The async twin of `compare`."""
        most = await self.reading.aare_most(effect.passages)
        self.start = "long_context" if most else self.start
        return most

    def read_documents(self, effect: ReadDocuments) -> Sequence[Document] | None:
        """Read the documents, if they were not read before, and fit them to the window; or fit the passages."""
        effect = self._explained(effect)
        if effect.step == "rag":
            return self.fitting.fit(effect)
        with self.host.reading(effect) as read:
            if effect.anew:
                self.reading.read()
            fitted = self.fitting.fit(effect)
            read.extend(fitted)
        return None if self.decisions.repeats(effect, fitted) else fitted

    async def aread_documents(self, effect: ReadDocuments) -> Sequence[Document] | None:
        """The async twin of `read_documents`."""
        effect = self._explained(effect)
        if effect.step == "rag":
            return await self.fitting.afit(effect)
        async with self.host.areading(effect) as read:
            if effect.anew:
                await self.reading.aread()
            fitted = await self.fitting.afit(effect)
            read.extend(fitted)
        return None if await self.decisions.arepeats(effect, fitted) else fitted

    def _explained(self, effect: ReadDocuments) -> ReadDocuments:
        """Return the effect with the error that says what is too long, where the host raised another one."""
        error = self.host.too_long(effect.too_long) if effect.too_long else None
        return effect if error is effect.too_long else effect._replace(too_long=error or effect.too_long)

    def ended(self, answer: Answer, text: str, finish_reason: str | None) -> Answer:
        """Return the answer with its whole text, judged as a whole."""
        if self.plan.not_found is not None:  # the opening was judged
            return answer._replace(text=text, finish_reason=finish_reason)
        return answer.ended(text, finish_reason=finish_reason, refusal=self.refusal)

    async def aended(self, answer: Answer, text: str, finish_reason: str | None) -> Answer:
        """The async twin of `ended`: a long reply would block the event loop."""
        if len(text) > _LONG_REPLY:
            return await asyncio.to_thread(self.ended, answer, text, finish_reason)
        return self.ended(answer, text, finish_reason)

    def cite(self, answer: Answer) -> Answer:
        """Return the answer with its citations, if `citations=True`."""
        if not self.plan.citations:
            return answer
        from selfroute.citations.citing import cite  # noqa: PLC0415 - most chains do not cite

        if not answer.answerable:
            return answer._replace(citations=[])
        host = self.host
        context = [(host.source_of(document), host.text_of(document)) for document in answer.context]
        metadata = [host.place_of(document).metadata for document in answer.context]
        return answer._replace(citations=cite(host.question, answer.text, context, metadata=metadata))

    async def acite(self, answer: Answer) -> Answer:
        """The async twin of `cite`: a long text would block the event loop."""
        long = len(answer.text) > _LONG_REPLY or self.reading.length(answer.context) > LONG
        if self.plan.citations and long:
            return await asyncio.to_thread(self.cite, answer)
        return self.cite(answer)

    def complete_usage(self, answer: Answer) -> None:
        """Add the cost of always reading the documents to the usage. All text has been shown by then."""
        self.costs.complete(answer)

    def warm_up(self) -> None:
        """Do once what would otherwise hold up the first question; nothing is retrieved and no model is asked.

        The rules by which declines are recognised are compiled, and the price lists are loaded.
        """
        declines(_REPLY, self.refusal)
        declines_anywhere(_REPLY, self.refusal)
        for step in self.plan.ladder("rag"):
            cost_of(self.costs.priced(step), StepUsage(1, 1))
