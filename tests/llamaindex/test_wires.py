"""What only LlamaIndex has over real wires: responses that are read later or never, and what its packages drop."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from importlib.metadata import version
from typing import Any

import pytest
from llama_index.core.bridge.pydantic import Field
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.exception import ExceptionEvent

from hosts_parts import STREAMS
from hosts_wires import (
    ANSWER,
    MOST_AFTER,
    REFUSAL,
    SLOW,
    entries,
    over,
    script,
    wheres,
)
from loopback import LoopbackServer, Reply
from selfroute.errors import NoReplyError

pytestmark = pytest.mark.usefixtures("frozen")

OPENAI, COMPLETIONS, GEMINI = (f"llamaindex {client}" for client in ("openai", "completions", "gemini"))
CLIENTS = (OPENAI, COMPLETIONS, GEMINI)
GOING_ON = "Revenue was 14 million in May" + " and more in June" * 60
OLD_GEMINI = version("llama-index-llms-google-genai").startswith("0.2.")  # the last that goes with core 0.12
each_step = pytest.mark.parametrize("step", ["draft", "final"])


@wheres([GEMINI], STREAMS)
@pytest.mark.skipif(OLD_GEMINI, reason="a chunk without text is an AttributeError in that package")
def test_chunk_that_llama_index_drops_is_missed(server: LoopbackServer, where: str) -> None:
    """Without any other there is no verdict; after others their counts are not the last word."""
    script(server, draft=Reply("", finish="SAFETY", bare_end=True))  # LlamaIndex drops a chunk without content
    with pytest.raises(NoReplyError, match="broke it off"):
        over(where, server).now()
    script(server, draft=Reply(ANSWER, bare_end=True, cached_tokens=3))
    told = over(where, server).now()
    draft = entries(server, "draft")[-1]
    assert (told.answer, told.usage["estimated"]) == (ANSWER, True)
    assert (told.usage["rag"]["input_tokens"], told.usage["rag"]["cached_tokens"]) == (draft.input_tokens, 3)
    assert told.usage["rag"]["output_tokens"] >= draft.output_tokens


class Keeper(BaseEventHandler):
    """Keeps every event, and with it the frames of every exception."""

    kept: list[BaseEvent] = Field(default_factory=list)

    def handle(self, event: BaseEvent, **_: Any) -> None:
        self.kept.append(event)


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    handlers = get_dispatcher().event_handlers
    handlers.append(keeper := Keeper())
    yield keeper
    handlers.remove(keeper)


@wheres(CLIENTS, ["astream"])
def test_handler_that_keeps_events_stops_the_model(server: LoopbackServer, where: str, keeper: Keeper) -> None:
    rambling = Reply(f"{REFUSAL} because {GOING_ON}", delay=SLOW, hold_after=1 + MOST_AFTER)
    script(server, draft=rambling, final=Reply(ANSWER, delay=2 * SLOW))
    assert over(where, server).now().answer == ANSWER
    assert entries(server, "draft")[0].left
    assert any(isinstance(event, ExceptionEvent) for event in keeper.kept)


async def _read(pieces: AsyncGenerator[str, None], many: int) -> None:
    for _ in range(many):
        await anext(pieces)


Leave = Callable[[Any, Callable[[], None]], Awaitable[Any]]  # returns what the reader keeps
