"""What a chain or engine keeps between questions is right for each of them, whoever shares it."""

from __future__ import annotations

import copy
import logging
import pickle
from typing import Any

import pytest

from langchain_parts import a_chain
from llamaindex_parts import an_engine
from selfroute.calls.memory import Memory
from selfroute.calls.settings import DEFAULTS
from selfroute.usage.prices import PricedModel


def options(**given: Any) -> dict[str, Any]:
    return vars(DEFAULTS) | {"answerability": "text"} | given


def yes() -> bool:
    return True


class Shared(Memory):
    """A memory in which another thread puts its own settings as soon as this one has read or written there."""

    found: Any = None
    mine: Any = None
    others: Any = None

    @property
    def _latest(self) -> Any:
        found, self.found = self.found, self.others
        return found

    @_latest.setter
    def _latest(self, made: Any) -> None:
        self.mine, self.found = made, self.others


def test_memory_plan_beside_another_thread() -> None:
    memory = Shared()
    memory.plan(options(refusal="of another thread"), yes)
    memory.others = memory.mine
    for _ in range(3):
        assert memory.plan(options(refusal="mine"), yes).refusal == "mine"
        memory.found = memory.mine  # this thread meets its own settings again


def test_memory_plans_are_checked_once() -> None:
    memory = Memory()
    first = memory.plan(options(refusal="none", max_context_tokens=7_000), yes)
    assert memory.plan(options(refusal="none", max_context_tokens=7_000), yes) is first
    assert memory.plan(options(refusal="none"), yes) is not first


def test_memory_is_shared_by_copies() -> None:
    chain, synthesizer = a_chain(), an_engine()._response_synthesizer
    copies = [chain, chain.model_copy(update={"answerability": "graded"}), copy.copy(chain)]
    for one, *others in (copies, [synthesizer, copy.copy(synthesizer)]):
        assert all(other._memory is one._memory for other in others)
    assert [one._parts().plan.answerability for one in copies] == ["text", "graded", "text"]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))], ids=["copy", "pickle"])  # noqa: S301
def test_memory_deep_copied(copied: Any, caplog: pytest.LogCaptureFixture) -> None:
    memory = Memory()
    memory.estimate.replied(PricedModel("a"), 5_000)
    memory.said.warn(logging.getLogger("selfroute"), "beware of %s", "dogs")
    other = copied(memory)
    assert (memory.estimate.reply(PricedModel("a")), other.estimate.reply(PricedModel("a"))) == (5_000, 100)
    for one in (memory, other, other):
        one.said.warn(logging.getLogger("selfroute"), "beware of %s", "dogs")
        one.said.warn(logging.getLogger("selfroute"), "beware of %s", "cats")
    assert [record.getMessage() for record in caplog.records] == [
        *("beware of dogs", "beware of cats"),
        *("beware of dogs", "beware of cats"),
    ]
