"""Decide whether a question goes on to a step: not where that reads nothing new, nor where its policy forbids it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from operator import is_
from typing import TYPE_CHECKING, Generic, TypeVar

from selfroute.effects import NOTHING_MORE, Decide, Decided, ReadDocuments

if TYPE_CHECKING:
    from selfroute.calls.costs import Costs
    from selfroute.calls.escalation import Escalation
    from selfroute.calls.fitting import Fitting
    from selfroute.calls.host import Host
    from selfroute.calls.plan import Plan
    from selfroute.usage.account import Account

Document = TypeVar("Document")
LONG = 50_000  # characters; comparing and citing fewer takes some milliseconds


class Decisions(Generic[Document]):
    """The decisions of one question."""

    def __init__(
        self,
        host: Host[Document],
        plan: Plan,
        *,
        fitting: Fitting[Document],
        costs: Costs[Document],
        account: Account,
    ) -> None:
        """Start before the first."""
        self._host, self._plan, self._account, self._costs = host, plan, account, costs
        self._reading, self._sending, self._fitting = fitting.reading, fitting.sending, fitting
        self._in_doubt = False  # whether the latest reply was in doubt
        self._new: Sequence[Document] = ()  # documents that were compared with what was sent, and hold more

    def decide(self, effect: Decide) -> Decided:
        """Ask the policy, if the question should go on; announce the route and return it.

        Nothing is asked for documents that hold nothing new. A user's callable is called after the decision; if the
        reply is in doubt, before it, so that the reply can be kept.
        """
        self._in_doubt = effect.latest.signal == "doubt"
        if self._reads_first(effect):
            with suppress(Exception):  # it is raised by the step that needs them
                self._reading.read()
        asked = self._plan.escalation is not None and not effect.final
        if self._adds_nothing(effect):
            decided = _nothing_more(effect)
        else:
            decided = self._escalation.decide(effect) if asked else Decided(effect.route, effect.decision)
        self._host.announce(decided)
        return decided

    async def adecide(self, effect: Decide) -> Decided:
        """The async twin of `decide`."""
        self._in_doubt = effect.latest.signal == "doubt"
        if self._reads_first(effect):
            with suppress(Exception):
                await self._reading.aread()
        asked = self._plan.escalation is not None and not effect.final
        long = self._reading.length(self._reading.documents) > LONG
        if await asyncio.to_thread(self._adds_nothing, effect) if long else self._adds_nothing(effect):
            decided = _nothing_more(effect)
        else:
            decided = await self._escalation.adecide(effect) if asked else Decided(effect.route, effect.decision)
        await self._host.aannounce(decided)
        return decided

    def _reads_first(self, effect: Decide) -> bool:
        """Return whether documents are read before the decision, to see whether they hold anything new."""
        if effect.route != "long_context" or effect.final or self._sending.has_sent_nothing:
            return False
        return self._in_doubt or self._reading.is_at_hand

    def _adds_nothing(self, effect: Decide) -> bool:
        """Return whether the last step would read nothing new; of a reply in doubt, also if there is nothing."""
        if effect.route != "long_context" or effect.final or not self._reading.is_read:
            return False
        if not self._reading.documents:
            return self._in_doubt
        fits = self._in_doubt or self._plan.escalation is not None  # else that is seen once they are fitted
        documents = self._fitting.last() if fits else self._reading.chosen
        if self._sending.adds_nothing(documents):
            return True
        self._new = documents
        return False

    @cached_property
    def _escalation(self) -> Escalation[Document]:
        from selfroute.calls.escalation import Escalation  # noqa: PLC0415 - most chains have no policy

        policy, host = self._plan.escalation, self._host
        return Escalation(policy, host, reading=self._reading, costs=self._costs, account=self._account)

    def repeats(self, effect: ReadDocuments, fitted: Sequence[Document]) -> bool:
        """Return whether documents hold nothing new; a reply in doubt has been given up by then, so they are read."""
        declined = effect.anew and effect.step == "long_context" and not self._in_doubt
        is_new = len(fitted) == len(self._new) and all(map(is_, fitted, self._new))  # as was seen before
        return declined and bool(fitted) and not is_new and self._sending.adds_nothing(fitted)

    async def arepeats(self, effect: ReadDocuments, fitted: Sequence[Document]) -> bool:
        """The async twin of `repeats`: comparing long texts would block the event loop."""
        if self._reading.length(fitted) > LONG:
            return await asyncio.to_thread(self.repeats, effect, fitted)
        return self.repeats(effect, fitted)


def _nothing_more(effect: Decide) -> Decided:
    return Decided(effect.since, replace(effect.decision, ruling=NOTHING_MORE), granted=False)
