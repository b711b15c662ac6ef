"""Ask a question's policy whether the next step may be paid for, and report to it what the step cost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from selfroute.effects import Decide, Decided
from selfroute.policies.case import Case, Estimate, Ruling, Step
from selfroute.policies.policy import NOTHING, Spent, aask, ask, release, releasing, settle

if TYPE_CHECKING:
    from selfroute.calls.costs import Costs
    from selfroute.calls.host import Host
    from selfroute.calls.reading import Reading
    from selfroute.usage.account import Account
    from selfroute.usage.counts import StepUsage, Usage

Document = TypeVar("Document")


class Escalation(Generic[Document]):
    """Asks the policy of one question."""

    def __init__(
        self,
        policy: Any,
        host: Host[Document],
        *,
        reading: Reading[Document],
        costs: Costs[Document],
        account: Account,
    ) -> None:
        """Start with nothing granted."""
        self._policy, self._host, self._reading, self._costs, self._account = policy, host, reading, costs, account
        self._granted: list[tuple[Case, Spent]] = []

    def decide(self, effect: Decide) -> Decided:
        """Ask the policy about a proposed step, and return its decision."""
        case = self._case(effect, read=self._reading.read)
        with releasing(case):
            return self._ruled(effect, case, ask(self._policy, case))

    async def adecide(self, effect: Decide) -> Decided:
        """The async twin of `decide`."""
        case = self._case(effect, aread=self._reading.aread_early, loop=asyncio.get_running_loop())
        with releasing(case):
            return self._ruled(effect, case, await aask(self._policy, case))

    def _case(self, effect: Decide, **reading: Any) -> Case:
        step = cast("Step", effect.route)
        return Case(
            question=self._host.question,
            inputs={**self._host.inputs, "input": self._host.question},
            decision=effect.latest.as_dict(),
            draft=self._costs.draft,
            passages=self._reading.passages,
            usage=self._costs.so_far().as_dict(),
            step=step,
            estimated=partial(self._estimated, step, effect.context),
            **reading,
        )

    def _estimated(self, step: Step, context: Sequence[Document]) -> Estimate | None:
        """Estimate the tokens and the cost of a step; return None if the documents have to be read for that."""
        if step == "sections":
            tokens = self._costs.tokens_with(context)
        else:
            sizes = self._reading.sizes()
            if sizes is None:
                return None
            tokens = self._costs.tokens_of(sizes)
        counts, cost = self._costs.of_step(step, tokens=tokens)
        return Estimate(counts.total_tokens, cost.dollars, cost.unknown or "")

    def _ruled(self, effect: Decide, case: Case, ruling: Ruling) -> Decided:
        if ruling.go:
            if not self._granted:
                self._account.on_close(self._settle)
            self._granted.append((case, _spent_on(self._account.usage, case.step)))
        else:
            release(case)
        decision = replace(effect.decision, ruling=ruling.as_dict())
        return Decided(effect.route if ruling.go else effect.since, decision, granted=ruling.go)

    def _settle(self, usage: Usage) -> None:
        """Report to the policy what each step that it allowed has used."""
        by_then: dict[Step, Spent] = {}
        for case, before in reversed(self._granted):
            spent = by_then.get(case.step) or _spent_on(usage, case.step)
            by_then[case.step] = before
            settle(self._policy, case, spent - before)


def _spent_on(usage: Usage, step: Step) -> Spent:
    """Return the tokens and dollars that a question has spent on a step."""
    counts: StepUsage | None = getattr(usage, step)
    return Spent(counts.total_tokens, counts.cost.dollars) if counts else NOTHING
