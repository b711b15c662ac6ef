"""The chain's documents as tools of LangChain, for agents that want to look themselves."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pydantic
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool

from langchain_selfroute import runs
from selfroute.agent_tools import TOOLS, ToolResult, failed
from selfroute.lookup import Lookup, Queries

Answer = tuple[str, dict[str, Any]]
Calling = Callable[[str, RunnableConfig], tuple[runs.Make, RunnableConfig]]


def tools_of(calling: Calling, *, max_tokens: int) -> list[BaseTool]:
    """Return the tools `search`, `find` and `open`, with what they found as the artifact of their messages.

    Args:
        calling: Takes a question and the config of a call. Returns what makes a call of the chain for it (its
            retriever, its documents and its wall), and the config with what is bound to the chain.
        max_tokens: How many tokens an answer has at most.
    """
    queries = Queries()
    return [_tool(name, calling, queries, max_tokens) for name in TOOLS]


def _tool(name: str, calling: Calling, queries: Queries, max_tokens: int) -> BaseTool:
    """Return a tool that looks something up in a run of the chain, which tracers record."""
    tool = TOOLS[name]

    def lookup(call: runs.ChainCall) -> Lookup[Any]:
        return Lookup(lambda: call.host, max_tokens=max_tokens, queries=queries, passing=_interrupts())

    # LangChain passes a single argument by its position.
    def look(*values: Any, config: RunnableConfig, **named: Any) -> Answer:
        given = tool.given(values, named)
        question = given[tool.question]
        try:
            make, config = calling(question, config)
            result = runs.invoke(
                name, question, config, make, lambda call: lookup(call).look(name, given), record=_recorded
            )
        except _interrupts():
            raise
        except Exception as error:  # noqa: BLE001 - a part that the config chooses may fail
            result = failed(name, error)
        return result.content, dict(result.artifact)

    async def alook(*values: Any, config: RunnableConfig, **named: Any) -> Answer:
        given = tool.given(values, named)
        question = given[tool.question]
        try:
            make, config = calling(question, config)
            result = await runs.ainvoke(
                name, question, config, make, lambda call: lookup(call).alook(name, given), record=_recorded
            )
        except _interrupts():
            raise
        except Exception as error:  # noqa: BLE001
            result = failed(name, error)
        return result.content, dict(result.artifact)

    return StructuredTool(
        name=name,
        description=tool.about,
        args_schema=tool.schema(name, pydantic),
        func=look,
        coroutine=alook,
        response_format="content_and_artifact",
        handle_validation_error=_invalid,
    )


def _invalid(error: Any) -> str:
    """Say which arguments of a model are wrong."""
    wrong = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors(include_url=False))
    return f"Nothing was looked for: {'; '.join(wrong)}."


def _recorded(result: ToolResult) -> dict[str, Any]:
    return dict(result.artifact)


def _interrupts() -> tuple[type[Exception], ...]:
    """Return the errors by which LangGraph interrupts a graph, if it is there: they are no failures."""
    found = getattr(sys.modules.get("langgraph.errors"), "GraphBubbleUp", None)
    return () if found is None else (found,)
