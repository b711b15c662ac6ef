"""Asks LlamaIndex's models, counts what they took, and stops them."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from typing import Any, TypeAlias

from llama_index.core.callbacks.token_counting import get_tokens_from_response
from llama_index.core.llms import LLM, ChatResponse, CompletionResponse

from llamaindex_selfroute.convert import Prompt
from selfroute.usage import NOTHING, StepUsage

Chunk: TypeAlias = ChatResponse | CompletionResponse


def ask(llm: LLM, prompt: Prompt) -> Chunk:
    """Ask for a whole reply."""
    return llm.complete(prompt, formatted=True) if isinstance(prompt, str) else llm.chat(prompt)


async def aask(llm: LLM, prompt: Prompt) -> Chunk:
    """As `ask`."""
    return await llm.acomplete(prompt, formatted=True) if isinstance(prompt, str) else await llm.achat(prompt)


def ask_stream(llm: LLM, prompt: Prompt) -> Generator[Chunk, None, None]:
    """Ask for a reply in pieces."""
    return llm.stream_complete(prompt, formatted=True) if isinstance(prompt, str) else llm.stream_chat(prompt)


async def aask_stream(llm: LLM, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
    """As `ask_stream`."""
    if isinstance(prompt, str):
        return await llm.astream_complete(prompt, formatted=True)
    return await llm.astream_chat(prompt)


def hang_up(chunks: Generator[Any, None, None]) -> None:
    """Stop a model's stream, as far as its package lets us.

    LlamaIndex's wrappers leave the provider's own stream open when they are closed. It is then garbage; as openai's
    is a cycle of references, only a collection ends the request.
    """
    chunks.close()
    del chunks
    gc.collect(1)


async def ahang_up(chunks: AsyncGenerator[Any, None]) -> None:
    """Stop a model's async stream, and the request behind it.

    It stops even if whoever waits for this is cancelled meanwhile.
    """
    if getattr(asyncio.get_running_loop(), "_asyncgens_shutdown_called", False):
        return  # the loop is closing every generator itself
    leaving = asyncio.ensure_future(_stop(chunks))
    _LEAVING.add(leaving)
    leaving.add_done_callback(_LEAVING.discard)
    await asyncio.shield(leaving)


_LEAVING: set[asyncio.Future[None]] = set()  # a loop alone would not keep them alive


async def _stop(chunks: AsyncGenerator[Any, None]) -> None:
    """Cancel what waits for the next piece, for that reaches the innermost `await`; closing the stream does not.

    Pieces that have already come are read over until something waits.
    """
    for _ in range(1_000):
        piece = asyncio.ensure_future(anext(chunks))
        try:
            await asyncio.sleep(0)
        finally:
            piece.cancel()
        await asyncio.wait([piece])
        if piece.cancelled() or piece.exception():
            break
    await chunks.aclose()


class Tally:
    """Collects the text and the token counts of one model call."""

    __slots__ = ("last", "text", "whole")

    def __init__(self, *, whole: bool) -> None:
        """Start.

        Args:
            whole: Whether the reply comes at once, so that it can not be cut short.
        """
        self.text: list[str] = []
        self.last: Chunk | None = None
        self.whole = whole

    def add(self, reply: Chunk) -> str:
        """Take a whole reply and return its text."""
        self.last = reply
        text = (reply.message.content if isinstance(reply, ChatResponse) else reply.text) or ""
        self.text.append(text)
        return text

    def add_piece(self, chunk: Chunk) -> str:
        """Take a piece of a reply and return its text."""
        self.last = chunk  # the providers count up to here in every piece, or in the last one only
        text = chunk.delta or ""
        self.text.append(text)
        return text

    def usage(self, asked: str, *, count: Callable[[str], int]) -> StepUsage | None:
        """What the call cost; None if the model gave nothing at all."""
        if self.last is None:
            return None
        counts = _counts(self.last)
        if self.whole and counts and not _cut_short(self.last):
            return counts
        return (counts or NOTHING).filled_in(prompt=asked, reply="".join(self.text), count=count)


def _counts(reply: Chunk) -> StepUsage | None:
    reported = reply.additional_kwargs
    read, written = reported.get("prompt_tokens"), reported.get("completion_tokens")
    if not read:
        try:
            read, written = get_tokens_from_response(reply)
        except (TypeError, ValueError):  # it wants a mapping for `raw`
            return None
    if not read:
        return None
    cached = _look(reply.raw, "usage", "prompt_tokens_details", "cached_tokens")
    gemini = _look(reply.raw, "usage_metadata") or {}
    return StepUsage(
        read,
        (written or 0) + (_look(gemini, "thoughts_token_count") or 0),
        cached or _look(gemini, "cached_content_token_count") or 0,
    )


def _cut_short(reply: Chunk) -> bool:
    """Whether Gemini went on counting: LlamaIndex drops a last chunk that has no text."""
    raw = reply.raw
    return isinstance(raw, Mapping) and "finish_reason" in raw and raw["finish_reason"] is None


def _look(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
    return value
