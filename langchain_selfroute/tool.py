"""Give an agent the answer of a chain, and not the documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from langchain_selfroute.recording import recorded

_BRIEF = ("answer", "route", "answerable")


def _brief(result: Mapping[str, Any], source_key: str) -> dict[str, Any]:
    """Return what an agent needs of a result: the answer, the route, the names of the sources, and any citations."""
    names = [document.metadata.get(source_key, document.id) for document in result["context"]]
    sources = list(dict.fromkeys(str(name) for name in names if name is not None))
    cited = {"citations": result["citations"]} if "citations" in result else {}
    return {**{key: result[key] for key in _BRIEF}, "sources": sources, **cited}


def tool_fields(chain: Runnable[Any, Any], source_key: str) -> dict[str, Any]:
    """Return the fields of a tool that asks a chain and returns the brief form of its result.

    The artifact is the result as the chain's run records it: agents keep artifacts in their state and in their traces.
    """

    def told(result: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        return _brief(result, source_key), recorded(result)

    def ask(config: RunnableConfig, **inputs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return told(chain.invoke(inputs, config))

    async def aask(config: RunnableConfig, **inputs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return told(await chain.ainvoke(inputs, config))

    return {"func": ask, "coroutine": aask, "response_format": "content_and_artifact"}
