"""Decide whether a question goes on: by the draft's own numbers, and by what a policy says of the costs."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar, cast

from selfroute.answerability.final import FinalGate
from selfroute.answerability.gate import Gate
from selfroute.answerability.graded import GradedGate
from selfroute.documents.sizes import Lengths, Size
from selfroute.effects import Compare, Decide, Decided, Route, Start
from selfroute.fitting import Fitting
from selfroute.usage import prices
from selfroute.usage.counts import StepUsage, Usage
from selfroute.usage.prices import PricedModel

if TYPE_CHECKING:
    from selfroute.memory import Memory
    from selfroute.policies.case import Case, Estimate, Ruling, Step
    from selfroute.policies.policy import Spent
    from selfroute.settings import Settings
    from selfroute.usage.account import Account

Document = TypeVar("Document")
_MOST = 0.6  # of the documents; passages that are more cost more than they save


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
    _granted: list[tuple[Case, Spent]] | None = None
    _start: Start = "rag"

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
    def _lengths(self) -> Lengths | None:
        """Return what says how long the documents are that the last step would read, None if nothing does."""

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
    def may_resume(self) -> bool:
        """Whether a reply in doubt may be the answer: a policy may say so, or there may be no more to read."""
        return self.settings.escalation is not None or self.settings.max_documents == 0

    def gate(self, step: Route) -> Gate | FinalGate | GradedGate:
        """Return a fresh gate for a reply of a step."""
        if step == "long_context":
            return FinalGate(self.refusal)
        bounds = self.settings.bounds
        if bounds is None:
            return Gate(self.refusal)
        ungraded = None if self.settings.structured else self._memory.ungraded
        if step == "sections":
            below = bounds.sections_below[: self._rung + 1][-1]
            return GradedGate(self.refusal, doubt_below=below, numbers=1, ungraded=ungraded)
        doubt, stop = bounds.doubt_below, bounds.stop_below
        return GradedGate(self.refusal, doubt_below=doubt, stop_below=stop, ungraded=ungraded)

    def compare(self, effect: Compare) -> bool:
        """Return whether the passages are most of their documents, which are read if their length is not known."""
        with suppress(Exception):  # what keeps documents from being read does not concern an answer without them
            if self._sizes() is None:
                self._read_once()
        return self._is_most(effect)

    async def acompare(self, effect: Compare) -> bool:
        """Do as `compare` does, asynchronously."""
        with suppress(Exception):
            if self._sizes() is None:
                await self._aread_once()
        return self._is_most(effect)

    def _is_most(self, effect: Compare) -> bool:
        most, names = self.settings.most_compared, [self._source_name(passage) for passage in effect.passages]
        others = [name for at, name in enumerate(names) if name not in names[:at]]
        if most is not None and len(others) > most and self._is_stored:
            return False  # the documents that are left out may hold the answer
        sizes = self._sizes()
        whole = sum(size.characters for size in sizes) if sizes else 0
        if not 0 < whole * _MOST <= self._length(effect.passages):
            return False
        self._start = "long_context"
        return True

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
        return self.settings.escalation is not None and not effect.final

    def _ruled(self, effect: Decide, case: Case, ruling: Ruling) -> Decided:
        from selfroute.policies.policy import release  # noqa: PLC0415

        if ruling.go:
            if self._granted is None:
                self._granted = []
                self.account.on_close(self._settle)
            self._granted.append((case, self._spent_on(self.account.usage, case.step)))
        else:
            release(case)
        decision = replace(effect.decision, ruling=ruling.as_dict())
        return Decided(effect.route if ruling.go else effect.since, decision, granted=ruling.go)

    def _settle(self, usage: Usage) -> None:
        """Tell the policy what the steps took that it allowed, those of the same name one by one."""
        from selfroute.policies.policy import settle  # noqa: PLC0415

        by_then: dict[Step, Spent] = {}
        for case, before in reversed(self._granted or ()):
            spent = by_then.get(case.step) or self._spent_on(usage, case.step)
            by_then[case.step] = before
            settle(self.settings.escalation, case, spent - before)

    @staticmethod
    def _spent_on(usage: Usage, step: Step) -> Spent:
        """Return what a question has spent on a step."""
        from selfroute.policies.policy import NOTHING, Spent  # noqa: PLC0415

        counts: StepUsage | None = getattr(usage, step)
        return Spent(counts.total_tokens, counts.cost.dollars) if counts else NOTHING

    def _case(self, effect: Decide, **reading: Any) -> Case:
        from selfroute.policies.case import Case  # noqa: PLC0415

        step = cast("Step", effect.route)
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

        if step == "sections":
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
        """Return what says how long the documents are that the last step reads; they may have been read by now."""
        if not self._was_read:
            return self._lengths()
        size = Size(None, self._length(self._chosen))
        return lambda: [size]

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
            await asyncio.to_thread(self._choose)
        return self.read

    async def _aread_early(self) -> Sequence[Document]:
        """Read the documents for a policy; if that stops waiting, the next step still has them."""
        if not self._was_read:
            reading = self._begin_reading()
            self.account.on_close(lambda _: reading.cancel())
            self.read, self._was_read = await asyncio.shield(reading), True
            await asyncio.to_thread(self._choose)
        return self.read

    def _begin_reading(self) -> asyncio.Future[Sequence[Document]]:
        if self._being_read is None or self._being_read.cancelled():  # by a policy that did not wait for it
            self._being_read = asyncio.ensure_future(self._adocuments())
        return self._being_read
