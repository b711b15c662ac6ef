"""The chain's documents as tools of LangChain, for agents that want to look themselves."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from langchain_core.callbacks import Callbacks
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool

from langchain_selfroute.convert import below
from langchain_selfroute.running import Running
from selfroute.agents.lookup import Lookup, Queries
from selfroute.agents.tools import TOOLS, ToolResult, failed

Answer = tuple[str, dict[str, Any]]
Asked = Callable[[RunnableConfig], tuple[Any, RunnableConfig]]


def tools_of(asked: Asked, *, max_tokens: int) -> list[BaseTool]:
    """Return the tools `search`, `find` and `open`, with what they found as the artifact of their messages.

    Args:
        asked: Takes the config of a call. Returns the chain that it asks (its retriever, its documents and its wall),
            and the config with what is bound to that.
        max_tokens: How many tokens an answer has at most.
    """
    queries = Queries()
    return [_tool(name, asked, queries, max_tokens) for name in TOOLS]


def _tool(name: str, asked: Asked, queries: Queries, max_tokens: int) -> BaseTool:
    """Return a tool that looks something up in a run of the chain, which tracers record."""
    tool = TOOLS[name]

    def lookup(chain: Any, question: str, run: Running) -> Lookup[Any]:
        host = chain._call(question, run.manager, run.config).host  # noqa: SLF001
        return Lookup(lambda: host, max_tokens=max_tokens, queries=queries, passing=_interrupts())

    # LangChain passes a single argument by its position.
    def look(*values: Any, config: RunnableConfig, callbacks: Callbacks, **named: Any) -> Answer:
        given = tool.given(values, named)
        question = given[tool.question]
        try:
            chain, config = asked(below(config, callbacks))
            with Running(name, question, config) as run:
                looking = lookup(chain, question, run)
                result = run.end(run.perform(lambda: looking.look(name, given)), _recorded)
        except _interrupts():
            raise
        except Exception as error:  # noqa: BLE001 - a part that the config chooses may fail
            result = failed(name, error)
        return result.content, dict(result.artifact)

    async def alook(*values: Any, config: RunnableConfig, callbacks: Callbacks, **named: Any) -> Answer:
        given = tool.given(values, named)
        question = given[tool.question]
        try:
            chain, config = asked(below(config, callbacks))
            async with Running(name, question, config) as run:
                looking = lookup(chain, question, run)
                result = await run.aend(await run.aperform(looking.alook(name, given)), _recorded)
        except _interrupts():
            raise
        except Exception as error:  # noqa: BLE001
            result = failed(name, error)
        return result.content, dict(result.artifact)

    return StructuredTool(
        name=name,
        description=tool.about,
        args_schema=tool.schema(name),
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
