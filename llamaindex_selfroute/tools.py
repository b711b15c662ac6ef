"""The engine's documents as tools of LlamaIndex, for agents that want to look themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from llama_index.core.schema import NodeWithScore
from llama_index.core.tools import FunctionTool

from llamaindex_selfroute.host import QueryCall
from selfroute.agents.lookup import Lookup, Queries
from selfroute.agents.tools import TOOLS, ToolResult

Calling = Callable[[str], QueryCall]


def tools_of(call: Calling, *, max_tokens: int) -> list[FunctionTool]:
    """Return the tools `search`, `find` and `open`; the raw output of each is a `ToolResult`, with an artifact.

    Args:
        call: Makes a call of the engine for a question: its retriever, its documents and its wall.
        max_tokens: How many tokens an answer has at most.
    """
    queries = Queries()
    return [_tool(name, call, queries, max_tokens) for name in TOOLS]


def _tool(name: str, call: Calling, queries: Queries, max_tokens: int) -> FunctionTool:
    tool = TOOLS[name]

    def lookup(given: Mapping[str, Any]) -> Lookup[NodeWithScore]:
        return Lookup(lambda: call(given[tool.question]).host, max_tokens=max_tokens, queries=queries)

    # LlamaIndex passes a single argument by its position.
    def look(*values: Any, **named: Any) -> ToolResult:
        given = tool.given(values, named)
        return lookup(given).look(name, given)

    async def alook(*values: Any, **named: Any) -> ToolResult:
        given = tool.given(values, named)
        return await lookup(given).alook(name, given)

    return FunctionTool.from_defaults(
        look, async_fn=alook, name=name, description=tool.about, fn_schema=tool.schema(name)
    )
