"""Decide whether a question goes on: by the draft's own numbers, and by what a policy says of the costs."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from selfroute.answerability.final import FinalGate
from selfroute.answerability.gate import Gate
from selfroute.answerability.graded import GradedGate
from selfroute.documents.sizes import Lengths, Size
from selfroute.fitting import Fitting
from selfroute.flow import Decide, Decided, ReadDocuments, Route
from selfroute.usage import prices
from selfroute.usage.counts import StepUsage, Usage
from selfroute.usage.prices import PricedModel

if TYPE_CHECKING:
    from selfroute.memory import Memory
    from selfroute.policies.case import Case, Estimate, Ruling, Step
    from selfroute.settings import Settings
    from selfroute.usage.account import Account

Document = TypeVar("Document")
_WORTH = 4  # a wider look may take such a part of the documents' tokens


class Escalating(Fitting[Document]):
    """Decides for one question whether its next step may be paid for.

    Attributes:
        refusal: The word that declines.
        account: What the question takes.
        passages: The retrieved passages, best first.
    """

    refusal: str
    account: Account
    passages: Sequence[Document] = ()
    _being_read: asyncio.Future[Sequence[Document]] | None = None
    _was_read = False
    _granted: list[tuple[Case, Step]] | None = None

    def __init__(self, settings: Settings, *, memory: Memory) -> None:
        """Start with nothing read; the arguments are those of `Fitting`."""
        super().__init__(settings, memory=memory)
        self._read_lock = Lock()

    @property
    @abstractmethod
    def question(self) -> str:
        """The question."""

    @property
    def _inputs(self) -> Mapping[str, Any]:
        """All inputs of the call, for policies."""
        return {"input": self.question}

    @property
    @abstractmethod
    def _draft(self) -> str:
        """The latest reply, as far as it was read."""

    @abstractmethod
    def _lengths(self, passages: Sequence[Document]) -> Lengths | None:
        """Return what says how long the documents are, None if nothing does."""

    @abstractmethod
    def _so_far(self) -> Usage:
        """Return what the question has used so far, with a reply in doubt, which is still open."""

    @abstractmethod
    def _priced(self, step: Route) -> PricedModel:
        """Return the model as which a step is priced."""

    @abstractmethod
    def _to_answer(self, step: Route) -> PricedModel:
        """Return the model as which a step is priced that is still to come."""

    @abstractmethod
    def _tokens_of(self, sizes: Sequence[Size]) -> int:
        """Return the estimated tokens of a prompt with documents of such sizes."""

    @abstractmethod
    def _tokens_with(self, passages: Sequence[Document]) -> int:
        """Return the estimated tokens of a prompt like the latest one, with other passages."""

    @abstractmethod
    def _reply_of(self, step: Route) -> int:
        """Return the estimated tokens of a step's reply."""

    def _documents(self) -> Sequence[Document]:
        """Read the whole documents."""
        raise NotImplementedError

    async def _adocuments(self) -> Sequence[Document]:
        """Do as `_documents` does, asynchronously."""
        raise NotImplementedError

    def _announce(self, decided: Decided) -> None:
        """Announce the route."""

    async def _aannounce(self, decided: Decided) -> None:
        """Do as `_announce` does, asynchronously."""
        self._announce(decided)

    @property
    def may_object(self) -> bool:
        """Whether there is a policy, which may say that a reply in doubt is the answer after all."""
        return self.settings.escalation is not None

    def gate(self, step: Route) -> Gate | FinalGate | GradedGate:
        """Return a fresh gate for a reply of a step."""
        if step == "long_context":
            return FinalGate(self.refusal)
        bounds = self.settings.bounds
        if bounds is None:
            return Gate(self.refusal)
        ungraded = None if self.settings.structured else self._memory.ungraded
        doubt, stop = bounds.doubt_below, bounds.stop_below
        return GradedGate(self.refusal, doubt_below=doubt, stop_below=stop, ungraded=ungraded)

    def decide(self, effect: Decide) -> Decided:
        """Ask the policy, if the question should go on; announce the route and return it."""
        decided = Decided(effect.route, effect.decision)
        if self._is_asked(effect):
            from selfroute.policies.policy import ask, releasing  # noqa: PLC0415 - most chains have no policy

            policy, case = self.settings.escalation, self._case(effect, read=self._read_once)
            with releasing(case):
                decided = self._ruled(effect, case, ask(policy, case))
        self._announce(decided)
        return decided

    async def adecide(self, effect: Decide) -> Decided:
        """Do as `decide` does, asynchronously."""
        decided = Decided(effect.route, effect.decision)
        if self._is_asked(effect):
            from selfroute.policies.policy import aask, releasing  # noqa: PLC0415

            loop = asyncio.get_running_loop()
            policy, case = self.settings.escalation, self._case(effect, aread=self._aread_early, loop=loop)
            with releasing(case):
                decided = self._ruled(effect, case, await aask(policy, case))
        await self._aannounce(decided)
        return decided

    def _is_asked(self, effect: Decide) -> bool:
        """Return whether a policy is asked: there is one, and the question should go on."""
        return self.settings.escalation is not None and effect.latest.escalates

    def _ruled(self, effect: Decide, case: Case, ruling: Ruling) -> Decided:
        from selfroute.policies.policy import release  # noqa: PLC0415

        if ruling.go:
            if self._granted is None:
                self._granted = []
                self.account.on_close(self._settle)
            self._granted.append((case, case.step))
        else:
            release(case)
        decision = replace(effect.decision, ruling=ruling.as_dict())
        return Decided(effect.route if ruling.go else effect.since, decision)

    def _settle(self, usage: Usage) -> None:
        """Tell the policy what the steps took that it allowed."""
        from selfroute.policies.policy import NOTHING, Spent, settle  # noqa: PLC0415

        for case, step in self._granted or ():
            took: StepUsage | None = getattr(usage, step)
            spent = Spent(took.total_tokens, took.cost.dollars) if took else NOTHING
            settle(self.settings.escalation, case, spent)

    def _case(self, effect: Decide, **reading: Any) -> Case:
        from selfroute.policies.case import Case  # noqa: PLC0415

        step = cast('Literal["wider", "long_context"]', effect.route)
        return Case(
            question=self.question,
            inputs=self._inputs,
            decision=effect.latest.as_dict(),
            draft=self._draft,
            passages=self.passages,
            usage=self._so_far().as_dict(),
            step=step,
            estimated=partial(self._estimated, step, effect.context),
            **reading,
        )

    def _estimated(self, step: Step, context: Sequence[Document]) -> Estimate | None:
        """Return what a step is estimated to take; None if the documents have to be read for that."""
        from selfroute.policies.case import Estimate  # noqa: PLC0415

        if step == "wider":
            tokens = self._tokens_with(context)
        else:
            sizes = self._sizes()
            if sizes is None:
                return None
            tokens = self._tokens_of(sizes)
        counts = StepUsage(tokens, self._reply_of(step))
        cost = prices.cost_of(self._to_answer(step), counts)
        return Estimate(counts.total_tokens, cost.dollars, cost.unknown or "")

    def _sizes(self) -> Sequence[Size] | None:
        """Return the sizes of the documents behind the passages, None if they are not known."""
        lengths = self._known_lengths()
        return lengths() if lengths else None

    def _known_lengths(self) -> Lengths | None:
        """Return what says how long the documents are; they may have been read for a policy."""
        if not self._was_read:
            return self._lengths(self.passages)
        size = Size(None, sum(len(self._text_of(document)) for document in self.read))
        return lambda: [size]

    def _fit_wider(self, found: Sequence[Document]) -> Sequence[Document]:
        """Return the passages of a wider look, as far as they fit; none if it would not be worth its tokens.

        It is worth them if there are more passages than the draft read, and if they take at most a quarter of the
        documents' tokens, as far as these are known.
        """
        if len(found) <= len(self.context):
            return ()
        self._wider = found
        effect = ReadDocuments(self.passages, step="wider")
        wider = self._fit_passages(effect, whole=self._fits(effect))
        if len(wider) <= len(self.context):
            return ()
        sizes = self._sizes()
        tokens = self._count("wider")("\n\n".join(map(self._text_of, wider)))
        return () if sizes and tokens * _WORTH > self._tokens_of(sizes) else wider

    def _read_once(self) -> Sequence[Document]:
        """Read the documents, unless a policy did so before, which may ask from several threads."""
        with self._read_lock:
            if not self._was_read:
                self.read, self._was_read = self._documents(), True
        return self.read

    async def _aread_once(self) -> Sequence[Document]:
        """Do as `_read_once` does, asynchronously; also if a policy asks twice at the same time."""
        if not self._was_read:
            self.read, self._was_read = await self._begin_reading(), True
        return self.read

    async def _aread_early(self) -> Sequence[Document]:
        """Read the documents for a policy; if that stops waiting, the next step still has them."""
        if not self._was_read:
            reading = self._begin_reading()
            self.account.on_close(lambda _: reading.cancel())
            self.read, self._was_read = await asyncio.shield(reading), True
        return self.read

    def _begin_reading(self) -> asyncio.Future[Sequence[Document]]:
        if self._being_read is None or self._being_read.cancelled():  # by a policy that did not wait for it
            self._being_read = asyncio.ensure_future(self._adocuments())
        return self._being_read
