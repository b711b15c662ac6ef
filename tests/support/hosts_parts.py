"""A chain or an engine, asked in any mode, in the words of neither host.

A test names a host and a mode in one string, such as "langchain stream", and is given what a reader has in the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

MODES = ("whole", "awhole", "stream", "astream")
STREAMS = ("stream", "astream")
AWAITED = ("awhole", "astream")
HOSTS = ("langchain", "llamaindex")
QUESTION = "Who chaired the meeting?"


def cases(of: Sequence[str] = HOSTS, modes: Sequence[str] = MODES) -> list[Any]:
    """Return each host once sync and once async for the fast lane, and in all modes for the matrix.

    Args:
        of: Hosts, or hosts and more, such as "langchain gemini".
        modes: The modes.
    """
    found = []
    for number, host in enumerate(of):
        kept = modes if len(modes) <= 2 else (("whole", "astream"), ("stream", "awhole"))[number % 2]
        marks = {mode: () if mode in kept else pytest.mark.matrix for mode in modes}
        found += [pytest.param(f"{host} {mode}", marks=marks[mode]) for mode in modes]
    return found


def wheres(of: Sequence[str] = HOSTS, modes: Sequence[str] = MODES) -> Any:
    """Parametrize `where` by these cases."""
    return pytest.mark.parametrize("where", cases(of, modes))


@dataclass
class Told:
    """What a reader has in the end, in the words of neither host.

    Attributes:
        pieces: The pieces of the answer.
        facts: What comes with it; the keys that both hosts have mean the same.
        keys: All keys.
        retrieved: The ids of the passages.
        read: The texts that the answer was read from.
        metadata: The metadata of each of them.
    """

    pieces: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    retrieved: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    metadata: list[dict[str, Any]] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The answer."""
        return "".join(self.pieces)

    @property
    def route(self) -> str:
        """The step that gave it."""
        return self.facts["route"]

    @property
    def verdict(self) -> tuple[str, str, bool, str]:
        """The route, the answer, whether it is one, and the signal of the decision."""
        return self.route, self.text, self.facts["answerable"], self.facts["decision"]["signal"]

    @property
    def usage(self) -> dict[str, Any]:
        """The token counts."""
        return self.facts["usage"]

    @property
    def labels(self) -> list[Any]:
        """What is said under our name of each text that was read."""
        return [one.get("selfroute") for one in self.metadata]


class Asker:
    """A chain or an engine with a mode.

    Attributes:
        asked: The chain or the engine; an engine must have been made for streams if the mode is one.
        mode: One of `MODES`.
        streams: Whether it is asked for a stream.
        awaited: Whether it is awaited.
    """

    keys: ClassVar[set[str]]  # that come with an answer

    def __init__(self, asked: Any, mode: str) -> None:
        self.asked, self.mode = asked, mode
        self.streams, self.awaited = mode in STREAMS, mode in AWAITED

    def texts(self, told: Told, question: Any = QUESTION) -> Generator[str, None, None]:
        """Ask in a sync mode, yield the pieces of the answer, and note the rest."""
        raise NotImplementedError

    def atexts(self, told: Told, question: Any = QUESTION) -> AsyncGenerator[str, None]:
        """Do as `texts` does in an awaited mode."""
        raise NotImplementedError

    async def aask(self, question: Any = QUESTION, told: Told | None = None) -> Told:
        """Ask in an awaited mode; what came before an error is in `told`."""
        told = Told() if told is None else told
        async with aclosing(self.atexts(told, question)) as pieces:
            async for piece in pieces:
                told.pieces.append(piece)
        return told

    def ask(self, question: Any = QUESTION, told: Told | None = None) -> Told:
        """Ask in any mode."""
        if self.awaited:
            return asyncio.run(self.aask(question, told))
        told = Told() if told is None else told
        for piece in self.texts(told, question):
            told.pieces.append(piece)
        return told


class LangChainAsker(Asker):
    """A chain, or a runnable around one."""

    keys: ClassVar = {
        "input",
        "retrieved",
        "context",
        "answer",
        "route",
        "answerable",
        "finish_reason",
        "decision",
        "usage",
    }

    def texts(self, told: Told, question: Any = QUESTION) -> Generator[str, None, None]:
        if not self.streams:
            yield from _added(told, self.asked.invoke(question))
            return
        with closing(self.asked.stream(question)) as chunks:
            for chunk in chunks:
                yield from _added(told, chunk)

    async def atexts(self, told: Told, question: Any = QUESTION) -> AsyncGenerator[str, None]:
        if not self.streams:
            for piece in _added(told, await self.asked.ainvoke(question)):
                yield piece
            return
        async with aclosing(self.asked.astream(question)) as chunks:
            async for chunk in chunks:
                for piece in _added(told, chunk):
                    yield piece


def _added(told: Told, chunk: dict[str, Any]) -> list[str]:
    told.keys |= chunk.keys()
    told.facts |= chunk
    told.retrieved = [document.id for document in told.facts.get("retrieved", ())]
    told.read = [document.page_content for document in told.facts.get("context", ())]
    told.metadata = [document.metadata for document in told.facts.get("context", ())]
    return [chunk["answer"]] if chunk.get("answer") else []


class LlamaIndexAsker(Asker):
    """An engine."""

    keys: ClassVar = {"route", "answerable", "finish_reason", "decision", "usage", "retrieved"}

    def texts(self, told: Told, question: Any = QUESTION) -> Generator[str, None, None]:
        response = self.asked.query(question)
        try:
            if self.streams:
                with closing(response.response_gen) as pieces:
                    yield from pieces
            else:
                yield response.response
        finally:
            _noted(told, response)

    async def atexts(self, told: Told, question: Any = QUESTION) -> AsyncGenerator[str, None]:
        response = await self.asked.aquery(question)
        try:
            if self.streams:
                async with aclosing(response.async_response_gen()) as pieces:
                    async for piece in pieces:
                        yield piece
            else:
                yield response.response
        finally:
            _noted(told, response)


def _noted(told: Told, response: Any) -> None:
    told.facts = response.metadata
    told.keys = set(response.metadata)
    told.retrieved = response.metadata["retrieved"]
    told.read = [one.node.get_content() for one in response.source_nodes]
    told.metadata = [one.node.metadata for one in response.source_nodes]
