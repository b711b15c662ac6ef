"""A crowd that asks chains and engines under one budget: models with known bills, and what a policy was told."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, closing, suppress
from contextvars import ContextVar
from decimal import Decimal
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableLambda
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.schema import Document as LlamaDocument
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from pydantic import Field

from langchain_selfroute import SelfRouteChain
from llamaindex_selfroute import SelfRouteQueryEngine
from selfroute.policies import Case, Ruling
from selfroute.policies.policy import Policy, Spent

PASSAGES = [f"Passage {n} tells of the harbour and the men who built it in those years." for n in range(5)]
WHOLE = "The whole report. " + "The harbour board met in the long room and read the minutes before it rose. " * 20
PRICED_AS = "openai:gpt-4o-mini"
ASKING: ContextVar[Any] = ContextVar("ASKING")  # the task that asks
WAYS = ("answers", "declines", "reads", "thinks", "fails", "breaks", "leaves", "cancels")


class Noting(Policy):
    """Says yes, and notes what it was asked and told."""

    name = "noting"

    def __init__(self) -> None:
        self.estimates: dict[Case, tuple[int, Decimal]] = {}
        self.told: list[tuple[Case, Spent]] = []

    def __call__(self, case: Case) -> Ruling:
        self.estimates[case] = case.tokens, case.cost or Decimal(0)
        return Ruling(go=True, by=self.name)

    async def acall(self, case: Case) -> Ruling:
        await case.aestimate()
        return self(case)

    def settle(self, case: Case, spent: Spent) -> None:
        self.told.append((case, spent))

    def most_off(self) -> tuple[int, Decimal]:
        """By how much the worst estimate was too low."""
        tokens, dollars = [0], [Decimal(0)]
        for case, spent in self.told:
            estimate, cost = self.estimates[case]
            tokens.append(spent.tokens - estimate)
            dollars.append((spent.cost or Decimal(0)) - cost)
        return max(tokens), max(dollars)

    def bill(self) -> tuple[int, Decimal]:
        """What all steps took for which it said yes."""
        return sum(spent.tokens for _, spent in self.told), sum((one.cost or Decimal(0) for _, one in self.told))


def tokens_of(text: str) -> int:
    """Return the tokens of a text, as the models here count."""
    return -(-len(text) // 4)


class Script:
    """What a model writes to a prompt, and what it counts."""

    def __init__(self, prompt: str) -> None:
        number = int(re.findall(r"item (\d+)", prompt)[-1])
        self.way = WAYS[number % len(WAYS)]
        self.reads = tokens_of(prompt)
        self.whole = "The whole report." in prompt
        answers = (self.whole and self.way != "declines") or self.way == "answers"
        self.pieces = ("Mr ", "Okafor ", "did ", "it.") if answers else ("unanswerable",)
        if not self.whole and "from 0 to 100" in prompt:
            self.pieces = ("80 10\n", "Perhaps ", "Mr Okafor ", "did it.")
        thinks = number % 500 if self.way == "thinks" else 0
        self.writes = len(self.pieces) + thinks

    def fail(self) -> None:
        """Fail before any text, if that is its way."""
        if self.whole and self.way == "fails":
            raise ConnectionError

    async def afail(self) -> None:
        """Fail, or cancel who asks."""
        self.fail()
        if self.whole and self.way == "cancels":
            ASKING.get().cancel()
            await asyncio.sleep(60)

    def stream(self) -> Iterator[str]:
        """Yield the pieces; break after two, if that is its way."""
        for number, piece in enumerate(self.pieces):
            if self.whole and self.way == "breaks" and number == 2:
                raise ConnectionError
            yield piece


class Teller(BaseChatModel):
    """LangChain's model."""

    @property
    def _llm_type(self) -> str:
        return "teller"

    @staticmethod
    def _counts(script: Script) -> Any:
        total = script.reads + script.writes
        return {"input_tokens": script.reads, "output_tokens": script.writes, "total_tokens": total}

    def _result(self, script: Script) -> ChatResult:
        message = AIMessage("".join(script.stream()), usage_metadata=self._counts(script))
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        script = Script(messages[-1].text)
        script.fail()
        return self._result(script)

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        script = Script(messages[-1].text)
        await script.afail()
        return self._result(script)

    def _stream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any
    ) -> Iterator[ChatGenerationChunk]:
        script = Script(messages[-1].text)
        script.fail()
        for piece in script.stream():
            yield ChatGenerationChunk(message=AIMessageChunk(piece))
        yield ChatGenerationChunk(message=AIMessageChunk("", usage_metadata=self._counts(script)))

    async def _astream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        script = Script(messages[-1].text)
        await script.afail()
        for piece in script.stream():
            await asyncio.sleep(0)
            yield ChatGenerationChunk(message=AIMessageChunk(piece))
        yield ChatGenerationChunk(message=AIMessageChunk("", usage_metadata=self._counts(script)))


class LlamaTeller(CustomLLM):
    """LlamaIndex's model."""

    name: str = Field(default="unknown")

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name=self.name)

    @staticmethod
    def _response(script: Script, text: str, delta: str = "", *, last: bool = True) -> CompletionResponse:
        counts = {"prompt_tokens": script.reads, "completion_tokens": script.writes} if last else {}
        return CompletionResponse(text=text, delta=delta, additional_kwargs=counts)

    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        script = Script(prompt)
        script.fail()
        return self._response(script, "".join(script.stream()))

    async def acomplete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        script = Script(prompt)
        await script.afail()
        return self._response(script, "".join(script.stream()))

    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
        script = Script(prompt)
        script.fail()
        return self._pieces(script)

    async def astream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
        script = Script(prompt)
        await script.afail()

        async def pieces() -> AsyncIterator[CompletionResponse]:
            for one in self._pieces(script):
                await asyncio.sleep(0)
                yield one

        return pieces()

    def _pieces(self, script: Script) -> Iterator[CompletionResponse]:
        text = ""
        for piece in script.stream():
            text += piece
            yield self._response(script, text, piece, last=False)
        yield self._response(script, text)


class Finding(BaseRetriever):
    """Finds the same nodes for each question, and counts the questions."""

    asked: int = 0

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.asked += 1
        return [NodeWithScore(node=TextNode(text=text), score=0.5) for text in PASSAGES]


def a_chain(**fields: Any) -> SelfRouteChain:
    """A chain over the model."""
    found = RunnableLambda(lambda _: [Document(text) for text in PASSAGES])
    parts = {"retriever": found, "llm": Teller(), "documents": [Document(WHOLE)], "priced_as": PRICED_AS}
    return SelfRouteChain(**{**parts, **fields})


def an_engine(**fields: Any) -> SelfRouteQueryEngine:
    """An engine over the model."""
    parts = {"retriever": Finding(), "llm": LlamaTeller(), "documents": [LlamaDocument(text=WHOLE)]}
    return SelfRouteQueryEngine(**{**parts, "priced_as": PRICED_AS, **fields})


class Chains:
    """Asks chains; every other question as a stream."""

    def __init__(self, **fields: Any) -> None:
        self._chain = a_chain(**fields)

    def ask(self, number: int) -> None:
        """Ask, in a thread."""
        question, way = f"Who built item {number}?", WAYS[number % len(WAYS)]
        with suppress(ConnectionError):
            if number // len(WAYS) % 2 and way != "leaves":
                self._chain.invoke(question)
                return
            with closing(self._chain.stream(question)) as chunks:  # type: ignore[type-var]
                _read(chunks, way)

    async def aask(self, number: int) -> None:
        """Ask, in a task."""
        ASKING.set(asyncio.current_task())
        question, way = f"Who built item {number}?", WAYS[number % len(WAYS)]
        with suppress(ConnectionError, asyncio.CancelledError):
            if number // len(WAYS) % 2 and way != "leaves":
                await self._chain.ainvoke(question)
                return
            async with aclosing(self._chain.astream(question)) as chunks:  # type: ignore[type-var]
                await _aread(chunks, way)


class Engines:
    """Asks engines; every other question as a stream."""

    def __init__(self, **fields: Any) -> None:
        self._engines = [an_engine(streaming=streaming, **fields) for streaming in (False, True)]

    def _of(self, number: int) -> tuple[Callable[[str], Any], Callable[[str], Any], str, str, bool]:
        way = WAYS[number % len(WAYS)]
        streams = number // len(WAYS) % 2 == 0 or way == "leaves"
        engine = self._engines[streams]
        return engine.query, engine.aquery, f"Who built item {number}?", way, streams

    def ask(self, number: int) -> None:
        """Ask, in a thread."""
        query, _, question, way, streams = self._of(number)
        with suppress(ConnectionError):
            response = query(question)
            if streams:
                with closing(response.response_gen) as pieces:
                    _read(pieces, way)

    async def aask(self, number: int) -> None:
        """Ask, in a task."""
        ASKING.set(asyncio.current_task())
        _, aquery, question, way, streams = self._of(number)
        with suppress(ConnectionError, asyncio.CancelledError):
            response = await aquery(question)
            if streams:
                async with aclosing(response.async_response_gen()) as pieces:
                    await _aread(pieces, way)


def _read(pieces: Any, way: str) -> None:
    for _ in pieces:
        if way == "leaves":
            return


async def _aread(pieces: Any, way: str) -> None:
    async for _ in pieces:
        if way == "leaves":
            return
