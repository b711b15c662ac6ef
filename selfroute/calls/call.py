"""One question and its parts: what it reads, what fits, what it costs, what a policy says. The drivers perform it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from operator import is_
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from selfroute.answerability import declines, declines_anywhere
from selfroute.answerability.ending import Ending
from selfroute.answerability.final import FinalGate
from selfroute.answerability.gate import Gate
from selfroute.answerability.graded import GradedGate
from selfroute.answerability.last import LastGate
from selfroute.calls.asking import Costs, ModelCalls
from selfroute.calls.fitting import Fitting
from selfroute.calls.host import Host, check_question
from selfroute.calls.memory import Memory
from selfroute.calls.options import start_of
from selfroute.calls.reading import Reading
from selfroute.calls.settings import Settings
from selfroute.effects import NOTHING_MORE, Answer, Compare, Decide, Decided, ReadDocuments, Retrieve, Route, Start
from selfroute.errors import NoReplyError
from selfroute.flow import Flow, self_route
from selfroute.usage.account import Account
from selfroute.usage.counts import Entry, StepUsage
from selfroute.usage.prices import cost_of

if TYPE_CHECKING:
    from selfroute.calls.escalation import Escalation

Document = TypeVar("Document")
_NOTHING_FOUND = (
    "nothing was retrieved for a question: the store may be empty, or the retriever's filter may let nothing through; "
    "check() says what it finds"
)
_logger = logging.getLogger(__name__)
_LONG = 50_000  # characters; citing from fewer takes some milliseconds
_LONG_REPLY = 2_000  # characters; judging fewer does
_REPLY = "The report does not say. It covers 2024."


class Call(Generic[Document]):
    """One question, asked of a host. The drivers have it perform the effects of the flow.

    Attributes:
        host: What the framework does.
        settings: The options of the chain or engine.
        refusal: The word that declines.
        account: The record of the question.
        reading: Its passages and documents.
        fitting: What fits the windows of its models.
        costs: What its calls of models cost.
        start: The step that it started with.
        generate: Asks a step's model, and yields its reply in pieces; closing them stops the model.
        agenerate: Does so asynchronously.
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
            settings: The options of the chain or engine.
            memory: What the chain or engine keeps between questions.
            record: Called with the entry when the account is closed; None if there is no ledger or handler.
        """
        self.host, self.settings, self.refusal = host, settings, settings.refusal
        self.account = Account(record)
        self.reading = Reading(host, settings, self.account)
        self.fitting = Fitting(host, settings, self.reading, memory)
        self.costs = Costs(
            host, settings, reading=self.reading, fitting=self.fitting, memory=memory, account=self.account
        )
        model_calls = ModelCalls(host, settings, fitting=self.fitting, costs=self.costs)
        self.generate, self.agenerate = model_calls.ask, model_calls.aask
        self._memory = memory
        self._in_doubt = False  # whether the latest step that was left was
        self._new: Sequence[Document] = ()  # documents that were compared with what was sent, and hold more
        self.start: Start = "rag"

    def flow(self) -> Flow:
        """Check the question and return a fresh flow.

        Raises:
            InputError: The question is not text, or is blank.
            ConfigurationError: There is no such first step.
        """
        check_question(self.host.question)
        start = self.settings.start
        return self._flow(start if isinstance(start, str) else self.host.choose(start))

    async def aflow(self) -> Flow:
        """The async twin of `flow`."""
        check_question(self.host.question)
        start = self.settings.start
        return self._flow(start if isinstance(start, str) else await self.host.achoose(start))

    def _flow(self, start: Any) -> Flow:
        self.start = start_of(start)
        ladder = self.settings.ladder(self.start)
        return self_route(
            self.host.question,
            ladder,
            refusal=self.settings.not_found or self.refusal,
            compares=self.start == "auto" and "long_context" in ladder and self.settings.escalation is None,
        )

    @property
    def context(self) -> Sequence[Document]:
        """What the latest prompt held."""
        return self.fitting.context

    @property
    def ending(self) -> Ending:
        """How the latest reply ended; asked once all its pieces have come."""
        return self.costs.ending

    def no_reply(self, step: Route) -> NoReplyError:
        """Return the error that a step ended without a reply that can be judged, with what caused it."""
        error = self.ending.error(step)
        error.__cause__ = self.costs.tally.error if self.costs.tally else None
        return error

    def gate(self, step: Route) -> Gate | FinalGate | GradedGate | LastGate:
        """Return a fresh gate for a reply of a step."""
        own_words = self.settings.not_found is None  # of a decline are shown; else it is known before any text
        if step == "long_context":
            if own_words:
                return FinalGate(self.refusal, sent=self._sent)
            return Gate(self.refusal, last=True, sent=self._sent)
        gate, last = self._gate(step), step == "sections" and self.settings.max_documents == 0
        return LastGate(gate, self.refusal, sent=self._sent) if last and own_words else gate

    def _gate(self, step: Route) -> Gate | GradedGate:
        bounds = self.settings.bounds
        if bounds is None:
            return Gate(self.refusal, sent=self._sent)
        ungraded = None if self.settings.structured else self._memory.ungraded
        doubt, stop, numbers = bounds.doubt_below, bounds.stop_below, 2
        if step == "sections":
            doubt, stop, numbers = bounds.sections_below[: self.fitting.rung + 1][-1], bounds.sections_stop, 1
        return GradedGate(
            self.refusal, doubt_below=doubt, stop_below=stop, numbers=numbers, ungraded=ungraded, sent=self._sent
        )

    def _sent(self) -> Sequence[str]:
        return self.costs.sent

    def is_too_long(self, error: Exception) -> bool:
        """Return whether an error means that the prompt was too long for the model's window."""
        return self.host.too_long(error) is not None

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
        return None if self._repeats(effect, fitted) else fitted

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
        long = self.reading.length(fitted) > _LONG
        repeats = await asyncio.to_thread(self._repeats, effect, fitted) if long else self._repeats(effect, fitted)
        return None if repeats else fitted

    def _repeats(self, effect: ReadDocuments, fitted: Sequence[Document]) -> bool:
        """Return whether documents hold nothing new; a reply in doubt has been given up by then, so they are read."""
        declined = effect.anew and effect.step == "long_context" and not self._in_doubt
        is_new = len(fitted) == len(self._new) and all(map(is_, fitted, self._new))  # as was seen before
        return declined and bool(fitted) and not is_new and self.fitting.adds_nothing(fitted)

    def _explained(self, effect: ReadDocuments) -> ReadDocuments:
        """Return the effect with the error that says what is too long, where the host raised another one."""
        error = self.host.too_long(effect.too_long) if effect.too_long else None
        return effect if error is effect.too_long else replace(effect, too_long=error or effect.too_long)

    def decide(self, effect: Decide) -> Decided:
        """Ask the policy, if the question should go on; announce the route and return it.

        Nothing is asked for documents that hold nothing new. A callable is only called after the decision, unless the
        reply is in doubt, which has to be kept if there is no more.
        """
        self._in_doubt = effect.latest.signal == "doubt"
        if self._reads_first(effect):
            with suppress(Exception):  # it is raised by the step that needs them
                self.reading.read()
        asked = self.settings.escalation is not None and not effect.final
        if self._adds_nothing(effect):
            decided = _nothing_more(effect)
        else:
            decided = self._escalation.decide(effect) if asked else Decided(effect.route, effect.decision)
        self.host.announce(decided)
        return decided

    async def adecide(self, effect: Decide) -> Decided:
        """The async twin of `decide`."""
        self._in_doubt = effect.latest.signal == "doubt"
        if self._reads_first(effect):
            with suppress(Exception):
                await self.reading.aread()
        asked = self.settings.escalation is not None and not effect.final
        long = self.reading.length(self.reading.documents) > _LONG
        if await asyncio.to_thread(self._adds_nothing, effect) if long else self._adds_nothing(effect):
            decided = _nothing_more(effect)
        else:
            decided = await self._escalation.adecide(effect) if asked else Decided(effect.route, effect.decision)
        await self.host.aannounce(decided)
        return decided

    def _reads_first(self, effect: Decide) -> bool:
        """Return whether documents are read before the decision, to see whether they hold anything new."""
        if effect.route != "long_context" or effect.final or self.fitting.has_sent_nothing:
            return False
        return self._in_doubt or self.reading.is_at_hand

    def _adds_nothing(self, effect: Decide) -> bool:
        """Return whether the last step would read nothing new; of a reply in doubt, also if there is nothing."""
        if effect.route != "long_context" or effect.final or not self.reading.is_read:
            return False
        if not self.reading.documents:
            return self._in_doubt
        fits = self._in_doubt or self.settings.escalation is not None  # else that is seen once they are fitted
        documents = self.fitting.last() if fits else self.reading.chosen
        if self.fitting.adds_nothing(documents):
            return True
        self._new = documents
        return False

    @cached_property
    def _escalation(self) -> Escalation[Document]:
        from selfroute.calls.escalation import Escalation  # noqa: PLC0415 - most chains have no policy

        policy, host = self.settings.escalation, self.host
        return Escalation(policy, host, reading=self.reading, costs=self.costs, account=self.account)

    def ended(self, answer: Answer, text: str) -> Answer:
        """Return the answer with its whole text, judged as a whole."""
        if self.settings.not_found is not None:  # the opening was judged
            return replace(answer, text=text, finish_reason=self.ending.reason)
        return answer.ended(text, finish_reason=self.ending.reason, refusal=self.refusal)

    async def aended(self, answer: Answer, text: str) -> Answer:
        """The async twin of `ended`: a long reply would block the event loop."""
        if len(text) > _LONG_REPLY:
            return await asyncio.to_thread(self.ended, answer, text)
        return self.ended(answer, text)

    def cite(self, answer: Answer) -> Answer:
        """Return the answer with its citations, if `citations=True`."""
        if not self.settings.citations:
            return answer
        from selfroute.citations import cite  # noqa: PLC0415 - most chains do not cite

        if not answer.answerable:
            return replace(answer, citations=[])
        host = self.host
        context = [(host.source_of(document), host.text_of(document)) for document in answer.context]
        metadata = [host.place_of(document).metadata for document in answer.context]
        return replace(answer, citations=cite(host.question, answer.text, context, metadata=metadata))

    async def acite(self, answer: Answer) -> Answer:
        """The async twin of `cite`: a long text would block the event loop."""
        long = len(answer.text) > _LONG_REPLY or self.reading.length(answer.context) > _LONG
        if self.settings.citations and long:
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
        for step in self.settings.ladder("rag"):
            cost_of(self.costs.priced(step), StepUsage(1, 1))


def _nothing_more(effect: Decide) -> Decided:
    return Decided(effect.since, replace(effect.decision, ruling=NOTHING_MORE), granted=False)
