"""The chain's documents as tools of LangChain, for agents that want to look themselves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool

from langchain_selfroute import runs
from selfroute.lookup import ABOUT, Lookup, Told, refused

Answer = tuple[str, dict[str, Any]]
_QUERY = Annotated[str, "What to look for"]
_DOCUMENT = Annotated[str, "The document's name, as a search gives it"]
_WORDS = Annotated[str, "Words to look for, or a question"]
_START = Annotated[int, "The offset of the first character"]


@dataclass(frozen=True, slots=True)
class _Looking:
    """Looks something up in a run of the chain, which tracers record."""

    calling: Callable[[str, dict[str, Any]], runs.Make]
    max_tokens: int

    def look(self, name: str, question: str, config: RunnableConfig, perform: Callable[[Lookup[Any]], Told]) -> Answer:
        def performed(call: Any) -> Told:
            return refused(question) or perform(Lookup(call.host, max_tokens=self.max_tokens))

        told = runs.invoke(name, question, config, self.calling(question, {}), performed, record=_recorded)
        return told.content, dict(told.artifact)

    async def alook(
        self,
        name: str,
        question: str,
        config: RunnableConfig,
        perform: Callable[[Lookup[Any]], Coroutine[Any, Any, Told]],
    ) -> Answer:
        async def performed(call: Any) -> Told:
            return refused(question) or await perform(Lookup(call.host, max_tokens=self.max_tokens))

        told = await runs.ainvoke(name, question, config, self.calling(question, {}), performed, record=_recorded)
        return told.content, dict(told.artifact)


def tools_of(calling: Callable[[str, dict[str, Any]], runs.Make], *, max_tokens: int) -> list[BaseTool]:
    """Return the tools `search`, `find` and `open`, with what they found as the artifact of their messages.

    Args:
        calling: Makes a call of the chain for a question: its retriever, its documents and its wall.
        max_tokens: How many tokens an answer has at most.
    """
    looking = _Looking(calling, max_tokens)

    def search(query: _QUERY, config: RunnableConfig) -> Answer:
        return looking.look("search", query, config, lambda lookup: lookup.search())

    async def asearch(query: _QUERY, config: RunnableConfig) -> Answer:
        return await looking.alook("search", query, config, lambda lookup: lookup.asearch())

    def find(document: _DOCUMENT, words: _WORDS, config: RunnableConfig) -> Answer:
        return looking.look("find", words, config, lambda lookup: lookup.find(document))

    async def afind(document: _DOCUMENT, words: _WORDS, config: RunnableConfig) -> Answer:
        return await looking.alook("find", words, config, lambda lookup: lookup.afind(document))

    def open_(document: _DOCUMENT, config: RunnableConfig, start: _START = 0) -> Answer:
        return looking.look("open", document, config, lambda lookup: lookup.open(document, start))

    async def aopen(document: _DOCUMENT, config: RunnableConfig, start: _START = 0) -> Answer:
        return await looking.alook("open", document, config, lambda lookup: lookup.aopen(document, start))

    made: dict[str, tuple[Callable[..., Answer], Callable[..., Awaitable[Answer]]]]
    made = {"search": (search, asearch), "find": (find, afind), "open": (open_, aopen)}
    return [
        StructuredTool.from_function(
            sync, coroutine=awaited, name=name, description=ABOUT[name], response_format="content_and_artifact"
        )
        for name, (sync, awaited) in made.items()
    ]


def _recorded(told: Told) -> dict[str, Any]:
    return dict(told.artifact)
