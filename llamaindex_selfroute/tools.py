"""The engine's documents as tools of LlamaIndex, for agents that want to look themselves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Annotated, Any

from llama_index.core.tools import FunctionTool

from llamaindex_selfroute.host import QueryCall
from selfroute.lookup import ABOUT, Lookup, Told, refused

_QUERY = Annotated[str, "What to look for"]
_DOCUMENT = Annotated[str, "The document's name, as a search gives it"]
_WORDS = Annotated[str, "Words to look for, or a question"]
_START = Annotated[int, "The offset of the first character"]


def tools_of(
    call: Callable[[str], QueryCall], scoped: Callable[[], AbstractContextManager[None]], *, max_tokens: int
) -> list[FunctionTool]:
    """Return the tools `search`, `find` and `open`; the raw output of each is a `Told`, with an artifact.

    Args:
        call: Makes a call of the engine for a question: its retriever, its documents and its wall.
        scoped: Enters what a query of the engine runs in.
        max_tokens: How many tokens an answer has at most.
    """

    def look(question: str, perform: Callable[[Lookup[Any]], Told]) -> Told:
        with scoped():
            return refused(question) or perform(Lookup(call(question).host, max_tokens=max_tokens))

    async def alook(question: str, perform: Callable[[Lookup[Any]], Awaitable[Told]]) -> Told:
        with scoped():
            return refused(question) or await perform(Lookup(call(question).host, max_tokens=max_tokens))

    def search(query: _QUERY) -> Told:
        return look(query, lambda lookup: lookup.search())

    async def asearch(query: _QUERY) -> Told:
        return await alook(query, lambda lookup: lookup.asearch())

    def find(document: _DOCUMENT, words: _WORDS) -> Told:
        return look(words, lambda lookup: lookup.find(document))

    async def afind(document: _DOCUMENT, words: _WORDS) -> Told:
        return await alook(words, lambda lookup: lookup.afind(document))

    def open_(document: _DOCUMENT, start: _START = 0) -> Told:
        return look(document, lambda lookup: lookup.open(document, start))

    async def aopen(document: _DOCUMENT, start: _START = 0) -> Told:
        return await alook(document, lambda lookup: lookup.aopen(document, start))

    made: dict[str, tuple[Callable[..., Told], Callable[..., Awaitable[Told]]]]
    made = {"search": (search, asearch), "find": (find, afind), "open": (open_, aopen)}
    return [
        FunctionTool.from_defaults(sync, async_fn=awaited, name=name, description=ABOUT[name])
        for name, (sync, awaited) in made.items()
    ]
