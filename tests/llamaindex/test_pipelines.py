"""An engine in LlamaIndex's query pipelines: alone, in a chain and in a graph. llama-index-core has them up to 0.12."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core import PromptTemplate

from llamaindex_parts import AWAITED, KEYS, MODES, Asked, ask, engine_for, model_of, pieces_of
from scenarios import DECLINED, PLAIN, QUESTION, SOME, Scenario

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
@pytest.mark.parametrize("scenario", SOME, ids=str)
async def test_pipeline_answers_as_its_engine(scenario: Scenario, name: str, mode: str) -> None:
    make, given = CHAINS[name]
    (asked,) = await answered(make(engine_for(scenario, mode)), mode, **given)
    alone = await ask(engine_for(scenario, mode), QUESTION, mode)
    assert (asked.text, asked.metadata, asked.source_nodes) == (alone.text, alone.metadata, alone.source_nodes)
    assert (asked.text, asked.route, set(asked.metadata)) == (scenario.answer, scenario.route, KEYS)


@pytest.mark.parametrize("mode", MODES)
async def test_pipeline_graph_gives_each_engine_its_route(mode: str) -> None:
    both = host.FnComponent(fn=lambda first, second: [first, second])
    modules = {"input": host.InputComponent(), "first": engine_for(PLAIN, mode), "second": engine_for(DECLINED, mode)}
    links = [host.Link("input", name, src_key="question", dest_key="input") for name in ("first", "second")]
    links += [host.Link(name, "both", dest_key=name) for name in ("first", "second")]
    pipeline = a_pipeline(modules={**modules, "both": both}, links=links)
    plain, declined = await answered(pipeline, mode, question=QUESTION)
    assert (plain.text, plain.route) == (PLAIN.answer, "rag")
    assert (declined.text, declined.route) == (DECLINED.answer, "long_context")
    assert [model_of(modules[name]).steps for name in ("first", "second")] == [["rag"], ["rag", "long_context"]]
