"""What a chain or engine keeps between questions is right for each of them, whoever shares it."""

from __future__ import annotations

import copy
import logging
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from langchain_parts import a_chain
from llamaindex_parts import an_engine
from selfroute.calls.memory import Memory
from selfroute.calls.settings import SETTINGS, Settings
from selfroute.usage.prices import PricedModel

DEFAULTS = Settings()


def values(**options: Any) -> tuple[Any, ...]:
    return tuple(options.get(name, getattr(DEFAULTS, name)) for name in SETTINGS)


class Interrupted(tuple[Any, ...]):
    """Values; while they are compared, another thread asks for settings of its own."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        at, MEMORY.at = MEMORY.at, None  # the other thread meets these values, too
        for number, value in enumerate(super().__iter__()):
            if number == at:
                assert MEMORY.settings(values(refusal="of another thread")).refusal == "of another thread"
            yield value
        MEMORY.at = at


class Shared(Memory):
    """A memory of two threads, and where in the first one's values the second one comes between."""

    at: int | None = None


MEMORY = Shared()


@pytest.mark.parametrize("at", [0, 5, len(SETTINGS) - 1])
def test_memory_settings_beside_another_thread(at: int) -> None:
    mine = Interrupted(values(refusal="mine"))
    MEMORY.at = None
    assert MEMORY.settings(mine).refusal == "mine"
    MEMORY.at = at
    for _ in range(3):
        assert MEMORY.settings(mine).refusal == "mine"


def test_memory_settings_are_checked_once() -> None:
    memory = Memory()
    first = memory.settings(values(refusal="none", max_context_tokens=7_000))
    assert memory.settings(values(refusal="none", max_context_tokens=7_000)) is first
    assert memory.settings(values(refusal="none")) is not first


def test_memory_is_shared_by_copies() -> None:
    chain, synthesizer = a_chain(), an_engine()._response_synthesizer
    copies = [chain, chain.model_copy(update={"answerability": "graded"}), copy.copy(chain)]
    for one, *others in (copies, [synthesizer, copy.copy(synthesizer)]):
        assert all(other._memory is one._memory for other in others)
    assert [one._parts().settings.answerability for one in copies] == ["text", "graded", "text"]


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
