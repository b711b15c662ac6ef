"""Light forms of a result: what runs and events record of it, what an agent is given, and picked keys."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig, RunnablePick
from langchain_core.runnables.utils import AddableDict
from typing_extensions import override

from langchain_selfroute.convert import OUTPUT_KEYS

TAG = "selfroute:long_context"
_BRIEF = ("answer", "route", "answerable")


def recorded_inputs(given: Any) -> Any:
    """Return an input as the chain's run records it: without the keys that the chain does not read.

    They are there if a result is passed in again, as the state of a LangGraph graph is, and may hold whole documents.
    """
    return {key: given[key] for key in given if key not in OUTPUT_KEYS} if isinstance(given, Mapping) else given


def recorded(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result, or the first chunk of one, as the chain's run records it: without the text of whole documents.

    The run of the model records that text with its prompt. Passages are short, so they are kept.
    """
    if result["route"] != "long_context":
        return dict(result)
    return {**result, "context": [_without_text(document) for document in result["context"]]}


def _without_text(document: Document) -> Document:
    text = f"({len(document.page_content):,} characters, which are in the prompt of the long_context run)"
    return Document(text, id=document.id, metadata=document.metadata)


class RecordedChunk(AddableDict):
    """A chunk as the chain's run records it, which passes through LangChain's tracing with the whole one inside it."""

    def __init__(self, whole: dict[str, Any]) -> None:
        super().__init__(recorded(whole))
        self.whole = AddableDict(whole)


def whole_chunk(chunk: AddableDict) -> Any:
    """Return a chunk as the reader gets it."""
    return chunk.whole if isinstance(chunk, RecordedChunk) else chunk


async def light_events(events: Any) -> AsyncIterator[Any]:
    """Yield the events of a chain such that each document is in one of them: the start of the model's run.

    LangChain repeats the input of a run when it ends, and shows the chunks of the outermost runnable as the reader
    gets them.
    """
    async with aclosing(events):
        async for event in events:
            data: dict[str, Any] = event["data"]
            chunk = data.get("chunk")
            if TAG in event.get("tags", ()) and event["event"].endswith("_end"):
                data = {key: value for key, value in data.items() if key != "input"}
            elif isinstance(chunk, AddableDict) and "context" in chunk and not isinstance(chunk, RecordedChunk):
                data = {**data, "chunk": AddableDict(recorded(chunk))}
            yield {**event, "data": data}


class QuietPick(RunnablePick):
    """Picks keys of a result without a run of its own, which would record the whole result once more."""

    @override
    def invoke(self, input: Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        if isinstance(self.keys, str):
            return input.get(self.keys)
        return AddableDict({key: input[key] for key in self.keys if key in input}) or None

    @override
    async def ainvoke(self, input: Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return self.invoke(input)

    @override
    def transform(
        self, input: Iterator[Mapping[str, Any]], config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Any]:
        for chunk in input:
            if (picked := self.invoke(chunk)) is not None:
                yield picked

    @override
    async def atransform(
        self, input: AsyncIterator[Mapping[str, Any]], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        async for chunk in input:
            if (picked := self.invoke(chunk)) is not None:
                yield picked


def brief(result: Mapping[str, Any], source_key: str) -> dict[str, Any]:
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
        return brief(result, source_key), recorded(result)

    def ask(config: RunnableConfig, **inputs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return told(chain.invoke(inputs, config))

    async def aask(config: RunnableConfig, **inputs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return told(await chain.ainvoke(inputs, config))

    return {"func": ask, "coroutine": aask, "response_format": "content_and_artifact"}
