"""The engine's documents as tools of LlamaIndex, for agents that want to look themselves."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pydantic
from llama_index.core.tools import FunctionTool

from llamaindex_selfroute.host import QueryCall
from selfroute.lookup import TOOLS, Lookup, Queries, ToolResult, failed, invalid

Calling = Callable[[str], QueryCall]
Scoped = Callable[[], AbstractContextManager[None]]


def tools_of(call: Calling, scoped: Scoped, *, max_tokens: int) -> list[FunctionTool]:
    """Return the tools `search`, `find` and `open`; the raw output of each is a `ToolResult`, with an artifact.

    Args:
        call: Makes a call of the engine for a question: its retriever, its documents and its wall.
        scoped: Enters what a query of the engine runs in.
        max_tokens: How many tokens an answer has at most.
    """
    queries = Queries()
    return [_tool(name, call, scoped, queries, max_tokens) for name in TOOLS]


def _tool(name: str, call: Calling, scoped: Scoped, queries: Queries, max_tokens: int) -> FunctionTool:
    tool = TOOLS[name]

    def look(*values: Any, **named: Any) -> ToolResult:
        given = tool.given(values, named)
        if result := invalid(tool, given):
            return result
        try:
            with scoped():
                host = call(given[tool.question]).host
                return Lookup(host, max_tokens=max_tokens, queries=queries).look(name, given)
        except Exception as error:  # noqa: BLE001 - a part of the user's own may fail before that
            return failed(name, error)

    async def alook(*values: Any, **named: Any) -> ToolResult:
        given = tool.given(values, named)
        if result := invalid(tool, given):
            return result
        try:
            with scoped():
                host = call(given[tool.question]).host
                return await Lookup(host, max_tokens=max_tokens, queries=queries).alook(name, given)
        except Exception as error:  # noqa: BLE001
            return failed(name, error)

    schema = tool.schema(name, pydantic)
    return FunctionTool.from_defaults(look, async_fn=alook, name=name, description=tool.about, fn_schema=schema)
