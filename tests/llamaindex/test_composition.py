"""An engine is at home wherever a `RetrieverQueryEngine` is: routers, retries, transformations, indices, evaluators."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core.evaluation import FaithfulnessEvaluator
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.query_engine import (
    RetrieverQueryEngine,
    RetryQueryEngine,
    RouterQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.selectors import LLMSingleSelector

from llamaindex_agents_parts import (
    ANSWERS,
    LONG,
    READ,
    ROUTES,
    a_judge,
    a_tool,
    engine_of,
    says,
    texts_of,
)
from llamaindex_parts import (
    AWAITED,
    KEYS,
    MODES,
    PASSAGES,
    QUESTION,
    STREAMS,
    an_engine,
    ask,
)
from llamaindex_selfroute import SelfRouteQueryEngine, SelfRouteSynthesizer
from scenarios import text_of

every_mode = pytest.mark.parametrize("mode", MODES)
every_kind = pytest.mark.parametrize("kind", ROUTES)

Composed = Callable[[RetrieverQueryEngine], Any]
HYPOTHESIS = "Mr Adeyemi chaired the meeting of the harbour board."


def _parameters(of: Any) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(of).parameters)


PUBLIC = [
    pytest.param(host, ours, name, id=f"{host.__name__}.{name}")
    for host, ours in ((RetrieverQueryEngine, SelfRouteQueryEngine), (BaseSynthesizer, SelfRouteSynthesizer))
    for name in dir(host)
    if not name.startswith("_")
]


@pytest.mark.parametrize(("host", "ours", "name"), PUBLIC)
def test_public_attribute_takes_what_the_host_s_does(host: type, ours: type, name: str) -> None:
    theirs, own = getattr(host, name), getattr(ours, name)
    assert isinstance(own, property) is isinstance(theirs, property)
    assert issubclass(ours, host)
    assert inspect.iscoroutinefunction(own) is inspect.iscoroutinefunction(theirs)
    if not callable(theirs):
        return
    expected, accepted = _parameters(theirs), _parameters(own)
    if name == "from_args":  # the rest of the host's are options of synthesizers that it makes
        expected = {of: expected[of] for of in _parameters(RetrieverQueryEngine)} | {"llm": expected["llm"]}
        accepted |= {of: given for of, given in _parameters(ours).items() if of not in accepted}
    assert set(expected) <= set(accepted)
    positional = [of for of in accepted if accepted[of].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    assert positional == [of for of in _parameters(theirs) if of in accepted][: len(positional)]
    for of in expected:
        assert accepted[of].default is not inspect.Parameter.empty or expected[of].default is inspect.Parameter.empty


@every_kind
@every_mode
async def test_engine_parts_can_be_used_one_by_one(kind: str, mode: str) -> None:
    engine, query = engine_of(kind, mode), QueryBundle(QUESTION)
    extra = NodeWithScore(node=TextNode(text="The annex."))
    if mode in AWAITED:
        nodes = await engine.aretrieve(query)
        response = await engine.asynthesize(query, nodes, additional_source_nodes=[extra])
    else:
        nodes = engine.retrieve(query)
        response = engine.synthesize(query, nodes, additional_source_nodes=[extra])
    assert [item.node_id for item in nodes] == [item.node_id for item in PASSAGES]
    assert str(response) == ANSWERS[kind]
    assert type(engine.with_retriever(engine.retriever)) is type(engine)
    assert response.source_nodes[-1] == extra
    assert texts_of(response)[:-1] == READ[kind]
    assert [item.score for item in response.source_nodes[:-1]] == (
        [None, None] if kind == "declined" else [item.score for item in PASSAGES]
    )


def _router(engine: RetrieverQueryEngine) -> RouterQueryEngine:
    selector = LLMSingleSelector.from_defaults(llm=says(json.dumps([{"choice": 2, "reason": "It is on minutes."}])))
    return RouterQueryEngine(selector, [a_tool(an_engine(("Mr Lin.",)), "letters"), a_tool(engine)], llm=says("-"))


def _hyde(engine: RetrieverQueryEngine) -> TransformQueryEngine:
    return TransformQueryEngine(engine, HyDEQueryTransform(llm=says(HYPOTHESIS), include_original=True))


COMPOSED: dict[str, Composed] = {
    "other retriever": lambda engine: engine.with_retriever(engine.retriever),
    "router": _router,
    "hyde over a router": lambda engine: _hyde(_router(engine)),
    # This one awaits nothing: `aquery` of a streaming engine gives a sync stream, already read. Only str() is of use.
    "retry": lambda engine: RetryQueryEngine(engine, FaithfulnessEvaluator(llm=a_judge())),
}


@every_mode
@every_kind
@pytest.mark.parametrize("name", COMPOSED)
async def test_composition_gives_the_engine_s_answer(name: str, kind: str, mode: str) -> None:
    composed = COMPOSED[name](engine_of(kind, mode))
    response = await composed.aquery(QUESTION) if mode in AWAITED else composed.query(QUESTION)
    assert str(response) == ANSWERS[kind]
    assert texts_of(response) == READ[kind]
    assert response.metadata["route"] == ROUTES[kind]
    assert set(response.metadata) - {"selector_result"} == KEYS
    if mode in STREAMS and name != "retry":
        asked = await ask(COMPOSED[name](engine_of(kind, mode, draft=LONG, final=LONG)), QUESTION, mode)
        assert (asked.text, len(asked.pieces) >= 9) == (text_of(LONG), True)
