"""A second step that fails can be answered for: by another engine, or by an honest refusal."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, suppress
from typing import Any

import pytest
from llama_index.core.base.response.schema import RESPONSE_TYPE, Response
from llama_index.core.query_engine import BaseQueryEngine, CustomQueryEngine

from llamaindex_parts import QUESTION, STREAMS, ScriptedLLM, an_engine, ask
from scenarios import FINAL, FOUND

SORRY = "The documents could not be read."


class Fallbacks(CustomQueryEngine):
    """Asks engines in turn, until one does not fail; as in the documentation."""

    engines: list[Any]

    def custom_query(self, query_str: str) -> RESPONSE_TYPE:
        for engine in self.engines[:-1]:
            with suppress(ConnectionError):
                return engine.query(query_str)
        return self.engines[-1].query(query_str)

    async def acustom_query(self, query_str: str) -> RESPONSE_TYPE:
        for engine in self.engines[:-1]:
            with suppress(ConnectionError):
                return await engine.aquery(query_str)
        return await self.engines[-1].aquery(query_str)


class Sorry(CustomQueryEngine):
    """Says that the documents could not be read."""

    def custom_query(self, query_str: str) -> RESPONSE_TYPE:
        return Response(SORRY, metadata={"answerable": False})


async def texts(engines: Sequence[BaseQueryEngine], question: str) -> AsyncIterator[str]:
    """Stream from the first engine that does not fail before its first text; as in the documentation."""
    for engine in engines:
        response: Any = await engine.aquery(question)
        async with aclosing(response.async_response_gen()) as pieces:
            try:
                first = await anext(pieces)  # nothing is asked before
            except ConnectionError:
                if engine is engines[-1]:
                    raise
                continue
            yield first
            async for text in pieces:
                yield text
            return


def failing(mode: str) -> Any:
    down = [ConnectionError("500: the big model is down")] * 9
    return an_engine(long_context_llm=ScriptedLLM(failures={"long_context": down}), streaming=mode in STREAMS)


@pytest.mark.parametrize("mode", ["query", "aquery", "stream"])
async def test_another_engine_or_an_honest_refusal_answers_for_a_second_step_that_fails(mode: str) -> None:
    small = ScriptedLLM(final=FINAL)
    other = an_engine(long_context_llm=small, max_context_tokens=25, streaming=mode in STREAMS)
    asked = await ask(Fallbacks(engines=[failing(mode), other]), QUESTION, mode)
    assert (asked.text, asked.route, len(small.calls)) == (FOUND, "long_context", 1)
    assert asked.source_nodes[-1].node.metadata["selfroute"]["trimmed"] is True
    if mode != "stream":
        asked = await ask(Fallbacks(engines=[failing(mode), Sorry()]), QUESTION, mode)
        assert (asked.text, asked.answerable) == (SORRY, False)


async def test_another_engine_streams_for_one_that_fails_and_none_adds_to_text_that_was_shown() -> None:
    other = an_engine(streaming=True)
    assert "".join([text async for text in texts([failing("astream"), other], QUESTION)]) == FOUND
    with pytest.raises(ConnectionError):
        _ = [text async for text in texts([failing("astream")] * 2, QUESTION)]
    breaking = an_engine(("Mr Lin took the chair.", *(f" word{n}" for n in range(9))), breaks_after=7, streaming=True)
    streaming = texts([breaking, other], QUESTION)
    assert (await anext(streaming)).startswith("Mr Lin")
    with pytest.raises(ConnectionError):
        _ = [text async for text in streaming]
