"""A second step that fails can be answered for: by another engine, or by an honest refusal."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, suppress
from typing import Any

import pytest
from llama_index.core.base.response.schema import RESPONSE_TYPE, Response
from llama_index.core.query_engine import BaseQueryEngine, CustomQueryEngine

from llamaindex_parts import MODES, QUESTION, STREAMS, ScriptedLLM, an_engine, ask
from scenarios import FINAL, FOUND

DOWN = ConnectionError("500: the big model is down")
SORRY = "The documents could not be read."
every_whole_mode = pytest.mark.parametrize("mode", [mode for mode in MODES if mode not in STREAMS])


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


def a_failing_engine(mode: str, **fields: Any) -> Any:
    big = ScriptedLLM(failures={"long_context": [DOWN] * 9})
    return an_engine(long_context_llm=big, streaming=mode in STREAMS, **fields)


@pytest.mark.parametrize("mode", ["query", "aquery", "stream"])
async def test_another_engine_answers_for_a_second_step_that_fails(mode: str) -> None:
    small = ScriptedLLM(final=FINAL)
    other = an_engine(long_context_llm=small, max_context_tokens=25, streaming=mode in STREAMS)
    asked = await ask(Fallbacks(engines=[a_failing_engine(mode), other]), QUESTION, mode)
    assert (asked.text, asked.route, len(small.calls)) == (FOUND, "long_context", 1)
    assert asked.source_nodes[-1].node.metadata["selfroute"]["trimmed"] is True


async def test_another_engine_streams_for_one_that_fails_when_it_is_read() -> None:
    other = an_engine(streaming=True)
    assert "".join([text async for text in texts([a_failing_engine("astream"), other], QUESTION)]) == FOUND
    with pytest.raises(ConnectionError):
        _ = [text async for text in texts([a_failing_engine("astream")] * 2, QUESTION)]


async def test_no_engine_adds_to_text_that_was_shown() -> None:
    breaking = an_engine(("Mr Lin took the chair.", *(f" word{n}" for n in range(9))), breaks_after=7, streaming=True)
    streaming = texts([breaking, an_engine(streaming=True)], QUESTION)
    assert (await anext(streaming)).startswith("Mr Lin")
    with pytest.raises(ConnectionError):
        _ = [text async for text in streaming]


@every_whole_mode
async def test_an_honest_refusal_takes_the_place_of_an_error(mode: str) -> None:
    asked = await ask(Fallbacks(engines=[a_failing_engine(mode), Sorry()]), QUESTION, mode)
    assert (asked.text, asked.answerable) == (SORRY, False)
