"""An engine in LlamaIndex's query pipelines: alone and in a chain. llama-index-core has them up to 0.12."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core import PromptTemplate

from llamaindex_parts import AWAITED, KEYS, MODES, Asked, ask, engine_for, pieces_of
from scenarios import DECLINED, PLAIN, QUESTION, Scenario

host = pytest.importorskip("llama_index.core.query_pipeline", reason="llama-index-core 0.12 was the last to have it")


def a_pipeline(*chain: Any, **fields: Any) -> Any:
    with pytest.deprecated_call(match="QueryPipeline"):
        return host.QueryPipeline(chain=list(chain) or None, **fields)


async def answered(pipeline: Any, mode: str, **inputs: Any) -> list[Asked]:
    """What a pipeline returns, read to the end."""
    came = await pipeline.arun(**inputs) if mode in AWAITED else pipeline.run(**inputs)
    read: list[Asked] = []
    for one in came if isinstance(came, list) else [came]:
        pieces = [piece async for piece in pieces_of(one, mode)]
        read += [Asked(one, pieces)]
    return read


CHAINS: dict[str, tuple[Callable[[Any], Any], dict[str, str]]] = {
    "alone": (a_pipeline, {"input": QUESTION}),
    "after a prompt": (
        lambda engine: a_pipeline(PromptTemplate("Who chaired {what}"), engine),
        {"what": "the meeting?"},
    ),
    "within a pipeline": (lambda engine: a_pipeline(a_pipeline(engine)), {"input": QUESTION}),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("scenario", [PLAIN, DECLINED], ids=str)
async def test_pipeline_answers_as_its_engine(scenario: Scenario, name: str, mode: str) -> None:
    make, given = CHAINS[name]
    (asked,) = await answered(make(engine_for(scenario, mode)), mode, **given)
    alone = await ask(engine_for(scenario, mode), QUESTION, mode)
    assert (asked.text, asked.metadata, asked.source_nodes) == (alone.text, alone.metadata, alone.source_nodes)
    assert (asked.text, asked.route, set(asked.metadata)) == (scenario.answer, scenario.route, KEYS)
