"""The chain's documents as tools of LangChain, for agents that want to look themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pydantic
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool

from langchain_selfroute import runs
from selfroute.lookup import TOOLS, Lookup, Told, refused

Answer = tuple[str, dict[str, Any]]
Calling = Callable[[str, dict[str, Any]], runs.Make]


def tools_of(calling: Calling, *, max_tokens: int) -> list[BaseTool]:
    """Return the tools `search`, `find` and `open`, with what they found as the artifact of their messages.

    Args:
        calling: Makes a call of the chain for a question: its retriever, its documents and its wall.
        max_tokens: How many tokens an answer has at most.
    """
    return [_tool(name, calling, max_tokens) for name in TOOLS]


def _tool(name: str, calling: Calling, max_tokens: int) -> BaseTool:
    """Return a tool that looks something up in a run of the chain, which tracers record."""
    tool = TOOLS[name]

    def look(config: RunnableConfig, **given: Any) -> Answer:
        question = given[tool.question]

        def perform(call: Any) -> Told:
            return refused(question) or Lookup(call.host, max_tokens=max_tokens).look(name, given)

        told = runs.invoke(name, question, config, calling(question, {}), perform, record=_recorded)
        return told.content, dict(told.artifact)

    async def alook(config: RunnableConfig, **given: Any) -> Answer:
        question = given[tool.question]

        async def perform(call: Any) -> Told:
            return refused(question) or await Lookup(call.host, max_tokens=max_tokens).alook(name, given)

        told = await runs.ainvoke(name, question, config, calling(question, {}), perform, record=_recorded)
        return told.content, dict(told.artifact)

    return StructuredTool(
        name=name,
        description=tool.about,
        args_schema=tool.schema(name, pydantic),
        func=look,
        coroutine=alook,
        response_format="content_and_artifact",
    )


def _recorded(told: Told) -> dict[str, Any]:
    return dict(told.artifact)
