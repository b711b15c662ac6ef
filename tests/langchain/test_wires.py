"""What only LangChain has over real wires: its fallbacks and retries, bound arguments, traces, and ways to leave."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from langchain_core.tracers.schemas import Run

from hosts_parts import QUESTION
from hosts_wires import (
    ANSWER,
    KEY,
    REFUSAL,
    broken,
    entries,
    exhausted,
    failing,
    over,
    script,
    wheres,
)
from langchain_parts import TreeTracer
from langchain_selfroute import SelfRouteChain
from loopback import A_MINUTE, LoopbackServer, Reply

pytestmark = pytest.mark.usefixtures("frozen")

CLIENTS = ("langchain openai", "langchain gemini")
everywhere = wheres(CLIENTS)
each_step = pytest.mark.parametrize("step", ["draft", "final"])


def everything(run: Run) -> str:
    """Return all that a run and those below it recorded."""
    own = {key: value for key, value in vars(run).items() if key not in {"child_runs", "parent_run"}}
    return "\n".join([repr(own), *map(everything, run.child_runs)])


@everywhere
@pytest.mark.parametrize("failed", [None, "draft", "final"])
def test_a_key_shows_in_no_trace_and_no_output(server: LoopbackServer, where: str, failed: str | None) -> None:
    asker, runs = over(where, server), TreeTracer()
    chain: SelfRouteChain = asker.asked
    script(server, draft=REFUSAL)
    if failed:
        broken(server, failed, failing(where.split()[1], 429))
    asker.asked = chain.with_config(callbacks=[runs])
    try:
        shown = repr(asker.now())
    except Exception as error:  # noqa: BLE001 - whichever it is
        shown = repr(error)
    (root,) = runs.roots
    assert bool(root.error) == bool(failed)
    assert any(KEY in value for value in server.book[0].request.headers.values())
    for text in (everything(root), shown, repr(chain), str(chain.get_graph())):
        assert KEY not in text


WAYS: dict[str, Callable[[SelfRouteChain], Awaitable[Any]]] = {
    "abatch": lambda chain: chain.abatch([QUESTION]),
    "astream_events": lambda chain: exhausted(chain.astream_events(QUESTION, version="v2")),
}


@wheres(CLIENTS, ["awhole"])
@each_step
@pytest.mark.parametrize("way", WAYS)
def test_a_caller_who_leaves_before_there_is_any_reply_stops_the_model(
    server: LoopbackServer, where: str, step: str, way: str
) -> None:
    broken(server, step, Reply(ANSWER, first_delay=A_MINUTE))
    chain = over(where, server).asked

    async def leave() -> None:
        async with anyio.create_task_group() as requests:
            requests.start_soon(WAYS[way], chain)
            while step not in {entry.request.model for entry in server.book}:  # noqa: ASYNC110  it is in another thread
                await asyncio.sleep(0.01)
            requests.cancel_scope.cancel()
        await asyncio.to_thread(server.settle)

    asyncio.run(leave())
    assert [entry.left for entry in entries(server, step)] == [True]
