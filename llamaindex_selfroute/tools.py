"""The engine's documents as tools of LlamaIndex, for agents that want to look themselves."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pydantic
from llama_index.core.tools import FunctionTool

from llamaindex_selfroute.host import QueryCall
from selfroute.lookup import TOOLS, Lookup, Told, refused

Calling = Callable[[str], QueryCall]
Scoped = Callable[[], AbstractContextManager[None]]


def tools_of(call: Calling, scoped: Scoped, *, max_tokens: int) -> list[FunctionTool]:
    """Return the tools `search`, `find` and `open`; the raw output of each is a `Told`, with an artifact.

    Args:
        call: Makes a call of the engine for a question: its retriever, its documents and its wall.
        scoped: Enters what a query of the engine runs in.
        max_tokens: How many tokens an answer has at most.
    """
    return [_tool(name, call, scoped, max_tokens) for name in TOOLS]


def _tool(name: str, call: Calling, scoped: Scoped, max_tokens: int) -> FunctionTool:
    tool = TOOLS[name]

    def look(*values: Any, **named: Any) -> Told:  # LlamaIndex passes a single argument by its position
        given = {**dict(zip(tool.arguments, values, strict=False)), **named}
        question = given[tool.question]
        with scoped():
            return refused(question) or Lookup(call(question).host, max_tokens=max_tokens).look(name, given)

    async def alook(*values: Any, **named: Any) -> Told:
        given = {**dict(zip(tool.arguments, values, strict=False)), **named}
        question = given[tool.question]
        with scoped():
            return refused(question) or await Lookup(call(question).host, max_tokens=max_tokens).alook(name, given)

    schema = tool.schema(name, pydantic)
    return FunctionTool.from_defaults(look, async_fn=alook, name=name, description=tool.about, fn_schema=schema)
