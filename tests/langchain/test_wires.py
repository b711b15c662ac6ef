"""What only LangChain has over real wires: its fallbacks and retries, bound arguments, traces, and ways to leave."""

from __future__ import annotations

import pytest
from langchain_core.tracers.schemas import Run

from hosts_wires import (
    KEY,
    REFUSAL,
    broken,
    failing,
    over,
    script,
    wheres,
)
from langchain_parts import TreeTracer
from langchain_selfroute import SelfRouteChain
from loopback import LoopbackServer

pytestmark = pytest.mark.usefixtures("frozen")

CLIENTS = ("langchain openai", "langchain gemini")
everywhere = wheres(CLIENTS)


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
