"""What only LangChain has over real wires: its fallbacks and retries, bound arguments, traces, and ways to leave."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run

from hosts_parts import QUESTION
from hosts_wires import (
    ANSWER,
    KEY,
    REFUSAL,
    broken,
    chat_model,
    counts,
    entries,
    exhausted,
    failing,
    in_turn,
    over,
    script,
    steps,
    up_to,
    wheres,
)
from langchain_selfroute import SelfRouteChain
from loopback import A_MINUTE, LoopbackServer, Reply, Request

pytestmark = pytest.mark.usefixtures("one_certificate", "frozen")

CLIENTS = ("langchain openai", "langchain gemini")
everywhere = wheres(CLIENTS)
each_step = pytest.mark.parametrize("step", ["draft", "final"])


@everywhere
@each_step
def test_an_outer_fallback_takes_over_after_a_500(server: LoopbackServer, where: str, step: str) -> None:
    asker, protocol = over(where, server), where.split()[1]
    other = "gemini" if protocol == "openai" else "openai"

    def answer(request: Request) -> Reply | str:
        if request.protocol == other:
            return "Mr Lin did."
        return failing(protocol, 500) if request.model == step else REFUSAL

    server.answer = answer
    asker.asked = asker.asked.with_fallbacks([over(where.replace(protocol, other), server).asked])
    told = asker.ask()
    assert (told.route, told.text, told.keys) == ("rag", "Mr Lin did.", asker.keys)
    assert steps(server) == [*up_to(step), "draft"]


@everywhere
def test_an_inner_fallback_takes_over_after_a_500(server: LoopbackServer, where: str) -> None:
    protocol = where.split()[1]
    script(server, draft=failing(protocol, 500), final=ANSWER)
    models = [chat_model(server, protocol, name) for name in ("draft", "final")]
    told = over(where, server, llm=models[0].with_fallbacks(models[1:])).ask()
    assert told.route == "rag"
    assert told.usage["rag"] == counts(entries(server, "final")[0])


@wheres(CLIENTS[:1])
def test_the_host_s_retries_and_fallbacks_see_that_there_was_no_reply(server: LoopbackServer, where: str) -> None:
    filtered, asker = Reply("", finish="content_filter"), over(where, server)
    if not asker.streams:  # the host does not ask again for a stream
        in_turn(server, filtered, ANSWER)
        asker.asked = asker.asked.with_retry(wait_exponential_jitter=False)
        assert asker.ask().text == ANSWER
    script(server, draft=ANSWER)
    with LoopbackServer(lambda _: filtered) as filtering:
        asker.asked = over(where, filtering).asked.with_fallbacks([over(where, server).asked])
        assert asker.ask().text == ANSWER


def settings(request: Request) -> tuple[Any, Any]:
    """Return the stop words and the temperature of a request."""
    if request.protocol == "openai":
        return request.body.get("stop"), request.body.get("temperature")
    config = request.body["generationConfig"]
    return config.get("stopSequences"), config.get("temperature")


@everywhere
def test_bound_arguments_reach_both_models(server: LoopbackServer, where: str) -> None:
    script(server, draft=REFUSAL)
    asker = over(where, server)
    asker.asked = asker.asked.bind(stop=["STOP"], temperature=0.25)
    assert asker.ask().text == ANSWER
    assert [settings(entry.request) for entry in server.book] == [(["STOP"], 0.25)] * 2


class Runs(BaseTracer):
    """Keeps every finished run."""

    def __init__(self) -> None:
        super().__init__()
        self.roots: list[Run] = []

    def _persist_run(self, run: Run) -> None:
        self.roots.append(run)


def everything(run: Run) -> str:
    """Return all that a run and those below it recorded."""
    own = {key: value for key, value in vars(run).items() if key not in {"child_runs", "parent_run"}}
    return "\n".join([repr(own), *map(everything, run.child_runs)])


@everywhere
@pytest.mark.parametrize("failed", [None, "draft", "final"])
def test_a_key_shows_in_no_trace_and_no_output(server: LoopbackServer, where: str, failed: str | None) -> None:
    asker, runs = over(where, server), Runs()
    chain: SelfRouteChain = asker.asked
    script(server, draft=REFUSAL)
    if failed:
        broken(server, failed, failing(where.split()[1], 429))
    asker.asked = chain.with_config(callbacks=[runs])
    try:
        shown = repr(asker.ask())
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
    "steps": lambda chain: (chain.first_step | chain.second_step).ainvoke({"input": QUESTION}),
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
