"""An engine is at home wherever a `RetrieverQueryEngine` is: routers, retries, transformations, indices, evaluators."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core import PromptTemplate, Settings
from llama_index.core.base.base_selector import SingleSelection
from llama_index.core.base.response.schema import Response
from llama_index.core.evaluation import FaithfulnessEvaluator
from llama_index.core.evaluation.base import EvaluationResult
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.postprocessor import LongContextReorder, SimilarityPostprocessor
from llama_index.core.program import FunctionCallingProgram
from llama_index.core.query_engine import (
    RetrieverQueryEngine,
    RetryQueryEngine,
    RetrySourceQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.question_gen import LLMQuestionGenerator
from llama_index.core.response_synthesizers import BaseSynthesizer, get_response_synthesizer
from llama_index.core.retrievers import RecursiveRetriever
from llama_index.core.schema import IndexNode, MetadataMode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.selectors import LLMMultiSelector, LLMSingleSelector, PydanticSingleSelector
from llama_index.core.selectors.prompts import DEFAULT_SINGLE_PYD_SELECT_PROMPT_TMPL

from llamaindex_agents_parts import (
    ANSWERS,
    KINDS,
    LONG,
    READ,
    ROUTES,
    SERVED,
    a_judge,
    a_tool,
    calling,
    calls_tools,
    engine_of,
    retriever_of,
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
    ListRetriever,
    an_engine,
    ask,
    model_of,
)
from llamaindex_selfroute import SelfRouteQueryEngine, SelfRouteSynthesizer
from scenarios import DOCUMENT_TEXTS, FOUND, text_of

every_mode = pytest.mark.parametrize("mode", MODES)
every_kind = pytest.mark.parametrize("kind", KINDS)
either_route = pytest.mark.parametrize("kind", list(ROUTES))

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
def test_every_public_attribute_of_the_host_is_there_and_takes_the_same(host: type, ours: type, name: str) -> None:
    theirs, own = getattr(host, name), getattr(ours, name)
    assert isinstance(own, property) is isinstance(theirs, property)
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


def test_the_constructor_takes_what_the_host_s_takes_by_name() -> None:
    assert set(_parameters(RetrieverQueryEngine)) <= set(_parameters(SelfRouteQueryEngine))
    assert list(_parameters(SelfRouteQueryEngine))[:2] == list(_parameters(RetrieverQueryEngine))[:2]
    assert issubclass(SelfRouteQueryEngine, RetrieverQueryEngine)
    assert issubclass(SelfRouteSynthesizer, BaseSynthesizer)


@every_kind
@every_mode
async def test_the_parts_of_an_engine_can_be_used_one_by_one(kind: str, mode: str) -> None:
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


def _router(selector: Any) -> Composed:
    others = [a_tool(an_engine(("Mr Lin.",)), name) for name in ("letters", "accounts")]
    return lambda engine: RouterQueryEngine(selector(), [others[0], a_tool(engine), others[1]], llm=says("-"))


def _by_text() -> LLMSingleSelector:
    return LLMSingleSelector.from_defaults(llm=says(json.dumps([{"choice": 2, "reason": "It is on minutes."}])))


def _by_call() -> PydanticSingleSelector:
    call = calling(("SingleSelection", {"index": 2, "reason": "It is on minutes."}))
    program = FunctionCallingProgram.from_defaults(
        SingleSelection, prompt_template_str=DEFAULT_SINGLE_PYD_SELECT_PROMPT_TMPL, llm=calls_tools(call)
    )
    return PydanticSingleSelector(program)  # `from_defaults` asks llama-index-core 0.12 for one more package


def _hyde(engine: RetrieverQueryEngine) -> TransformQueryEngine:
    return TransformQueryEngine(engine, HyDEQueryTransform(llm=says(HYPOTHESIS), include_original=True))


def _faithful() -> FaithfulnessEvaluator:
    return FaithfulnessEvaluator(llm=a_judge())


PASSING_ON: dict[str, Composed] = {
    "bare": lambda engine: engine,
    "other retriever": lambda engine: engine.with_retriever(engine.retriever),
    "router that reads the choice": _router(_by_text),
    "router that calls the choice": _router(_by_call),
    "hyde": _hyde,
    "hyde over a router": lambda engine: _hyde(_router(_by_text)(engine)),
    "router over hyde": lambda engine: _router(_by_call)(_hyde(engine)),
}
COMPOSED: dict[str, Composed] = {
    **PASSING_ON,
    # These two await nothing: `aquery` of a streaming engine gives a sync stream, already read. Only str() is of use.
    "retry": lambda engine: RetryQueryEngine(engine, _faithful()),
    "retry with other sources": lambda engine: RetrySourceQueryEngine(engine, _faithful(), llm=says("-")),
}


@every_mode
@every_kind
@pytest.mark.parametrize("name", COMPOSED)
async def test_a_composition_gives_the_engine_s_answer_in_all_modes(name: str, kind: str, mode: str) -> None:
    composed = COMPOSED[name](engine_of(kind, mode))
    response = await composed.aquery(QUESTION) if mode in AWAITED else composed.query(QUESTION)
    assert str(response) == ANSWERS[kind]
    assert texts_of(response) == READ[kind]
    if kind in ROUTES:
        assert response.metadata["route"] == ROUTES[kind]
        assert set(response.metadata) - {"selector_result"} == KEYS


@pytest.mark.parametrize("mode", STREAMS)
@every_kind
@pytest.mark.parametrize("name", PASSING_ON)
async def test_a_composition_streams_as_the_engine_does(name: str, kind: str, mode: str) -> None:
    asked = await ask(PASSING_ON[name](engine_of(kind, mode, draft=LONG, final=LONG)), QUESTION, mode)
    assert asked.text == text_of(LONG)
    assert len(asked.pieces) >= 9


@every_mode
@either_route
async def test_what_a_router_writes_into_a_response_stays_in_that_response(kind: str, mode: str) -> None:
    engine = engine_of(kind, mode)
    router = _router(_by_text)(engine)
    routed, second, bare = [await ask(each, QUESTION, mode) for each in (router, router, engine)]
    assert set(routed.metadata) == {*KEYS, "selector_result"}
    assert routed.metadata["selector_result"].ind == 1
    assert set(bare.metadata) == KEYS
    assert routed.metadata["selector_result"] is not second.metadata["selector_result"]
    assert {**routed.metadata, "selector_result": None} == {**bare.metadata, "selector_result": None}
    assert json.loads(json.dumps(bare.metadata)) == bare.metadata


@every_mode
@every_kind
async def test_a_router_that_chooses_both_sums_both_answers_up(kind: str, mode: str) -> None:
    choice = json.dumps([{"choice": n, "reason": "It may be on both."} for n in (1, 2)])
    summarizer = says("Ms Okafor and Mr Lin.")
    tools = [a_tool(engine_of(kind, mode)), a_tool(an_engine(("Mr Lin.",)), "letters")]
    router = RouterQueryEngine(LLMMultiSelector.from_defaults(llm=says(choice)), tools, llm=summarizer)
    response = await router.aquery(QUESTION) if mode in AWAITED else router.query(QUESTION)
    assert str(response) == "Ms Okafor and Mr Lin."
    assert ANSWERS[kind] in summarizer.calls[0].prompt
    assert "Mr Lin." in summarizer.calls[0].prompt
    assert len(response.source_nodes) == 4


# An error of an engine is logged and dropped by SubQuestionQueryEngine itself: its answer is then without that part.
@every_mode
@every_kind
@pytest.mark.parametrize("use_async", [True, False])
async def test_sub_questions_are_answered_by_their_engines(kind: str, mode: str, use_async: bool) -> None:
    engine = engine_of(kind, mode)
    tools = {"minutes": a_tool(engine), "letters": a_tool(an_engine(("Mr Lin.",)), "letters")}
    asked = [{"sub_question": f"Who chaired, by the {name}?", "tool_name": name} for name in tools]
    writer = says("Ms Okafor and Mr Lin.")
    composed = SubQuestionQueryEngine.from_defaults(
        list(tools.values()),
        question_gen=LLMQuestionGenerator.from_defaults(llm=says(json.dumps(asked))),
        response_synthesizer=get_response_synthesizer(llm=writer),
        llm=writer,
        use_async=use_async,
        verbose=False,
    )
    response = await composed.aquery(QUESTION) if mode in AWAITED else composed.query(QUESTION)
    assert str(response) == "Ms Okafor and Mr Lin."
    assert f"Sub question: Who chaired, by the minutes?\nResponse: {ANSWERS[kind]}" in writer.calls[0].prompt
    assert [query.query_str for query in retriever_of(engine).queries] == ["Who chaired, by the minutes?"]
    assert [text for text in texts_of(response) if text in DOCUMENT_TEXTS] == (
        list(DOCUMENT_TEXTS) if kind == "declined" else []
    )


@every_mode
@either_route
async def test_a_retry_asks_again_with_what_was_wrong(kind: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Settings, "_llm", says("-"))  # the host's query transformation asks for it

    seen: list[tuple[str, ...]] = []

    class OnceWrong(FaithfulnessEvaluator):
        async def aevaluate(self, *_: Any, contexts: Any = None, response: Any = None, **__: Any) -> EvaluationResult:
            seen.append(tuple(contexts))
            passing = len(seen) > 1
            return EvaluationResult(response=response, passing=passing, feedback="YES" if passing else "NO")

    engine = engine_of(kind, mode)
    composed = RetryQueryEngine(engine, OnceWrong(llm=says("-")))
    response = await composed.aquery(QUESTION) if mode in AWAITED else composed.query(QUESTION)
    assert str(response) == ANSWERS[kind]
    again = retriever_of(engine).queries[1]
    assert (QUESTION in again.query_str, ANSWERS[kind] in again.query_str) == (True, True)
    assert again.embedding_strs == [QUESTION]
    assert again.query_str in model_of(engine).calls[-1].prompt
    assert seen == [READ[kind]] * 2


@every_mode
@every_kind
async def test_hyde_searches_for_the_hypothesis_and_asks_the_question(kind: str, mode: str) -> None:
    engine = engine_of(kind, mode)
    composed = _hyde(engine)
    await ask(composed, QUESTION, mode)
    [query] = retriever_of(engine).queries
    assert query.embedding_strs == [HYPOTHESIS, QUESTION]
    for call in engine._response_synthesizer._llm.calls:
        assert QUESTION in call.prompt
        assert HYPOTHESIS not in call.prompt
    nodes = composed.retrieve(QueryBundle(QUESTION))
    assert str(composed.synthesize(QueryBundle(QUESTION), nodes)) == ANSWERS[kind]


@either_route
@pytest.mark.parametrize("name", ["hyde", "retry", "retry with other sources"])
def test_both_prompts_can_be_changed_through_an_outer_engine(name: str, kind: str) -> None:
    engine = engine_of(kind)
    composed = COMPOSED[name](engine)
    new = PromptTemplate("Kindly tell {query_str} from {context_str}")
    for key in ("query_engine:rag_prompt", "query_engine:long_context_prompt"):
        assert key in composed.get_prompts()
        composed.update_prompts({key: new})
    assert str(composed.query(QUESTION)) == ANSWERS[kind]
    assert all(call.prompt.startswith("Kindly tell") for call in model_of(engine).calls)


@every_mode
@every_kind
async def test_a_retrieved_object_may_be_an_engine(kind: str, mode: str) -> None:
    engine = engine_of(kind, mode)
    found = IndexNode(text="The minutes.", index_id="minutes", obj=engine)
    outer = an_engine(("Ms Okafor.",), retriever=ListRetriever([NodeWithScore(node=found, score=0.5)]))
    asked = await ask(outer, QUESTION, "aquery" if mode in AWAITED else "query")
    [source] = asked.source_nodes
    assert (asked.text, source.get_content(), source.score) == ("Ms Okafor.", ANSWERS[kind], 0.5)
    assert ANSWERS[kind] in model_of(outer).calls[0].prompt
    if kind in ROUTES and (source.metadata or mode not in AWAITED):  # llama-index-core 0.12 drops what it awaits
        assert set(source.metadata) == KEYS
        assert json.loads(json.dumps(source.metadata)) == source.metadata
        assert len(source.node.get_content(MetadataMode.LLM)) < 700


@either_route
def test_a_recursive_retriever_enters_an_engine(kind: str) -> None:
    index_node = NodeWithScore(node=IndexNode(text="The minutes.", index_id="minutes"), score=0.5)
    retriever = RecursiveRetriever(
        "root", retriever_dict={"root": ListRetriever([index_node])}, query_engine_dict={"minutes": engine_of(kind)}
    )
    outer = an_engine(("Ms Okafor.",), retriever=retriever)
    assert str(outer.query(QUESTION)) == "Ms Okafor."
    assert f"Query: {QUESTION}\nResponse: {ANSWERS[kind]}" in model_of(outer).calls[0].prompt
    _, more = retriever.retrieve_all(QueryBundle(QUESTION))
    assert tuple(item.get_content() for item in more) == READ[kind]


MANY = [NodeWithScore(node=TextNode(text=f"Passage {n}.", id_=f"n{n}"), score=1 - n / 10) for n in range(5)]
PROCESSORS = {
    "a cut": SimilarityPostprocessor(similarity_cutoff=0.75),
    "an order": LongContextReorder(),
}


@every_mode
@pytest.mark.parametrize("name", PROCESSORS)
async def test_node_postprocessors_work_as_in_the_built_in_engine(name: str, mode: str) -> None:
    asked = {}
    for kind in KINDS:
        fields = {"retriever": ListRetriever(MANY), "node_postprocessors": [PROCESSORS[name]]}
        engine = engine_of(kind, mode, **fields)
        asked[kind] = await ask(engine, QUESTION, mode), engine._response_synthesizer._llm.calls[0].prompt
    expected = [item.node_id for item in asked["reference"][0].source_nodes]
    assert expected != [item.node_id for item in MANY]
    assert [item.node_id for item in asked["answered"][0].source_nodes] == expected
    for kind in ROUTES:
        response, prompt = asked[kind]
        assert response.retrieved == expected
        read = [prompt.find(f"Passage {node_id[1:]}.") for node_id in expected]
        assert (-1 not in read, read) == (True, sorted(read))
        assert prompt.count("Passage ") == len(expected)


@every_mode
@every_kind
async def test_an_answer_is_faithful_to_its_sources_on_either_route(kind: str, mode: str) -> None:
    engine = engine_of(kind, mode)
    response = await engine.aquery(QUESTION) if mode in AWAITED else engine.query(QUESTION)
    if mode in STREAMS:
        response = await response.get_response() if mode in AWAITED else response.get_response()
    assert (await _faithful().aevaluate_response(QUESTION, response)).passing


async def test_the_answer_of_the_documents_is_not_in_the_passages() -> None:
    assert not (await _faithful().aevaluate_response(QUESTION, Response(FOUND, PASSAGES))).passing
    assert (await _faithful().aevaluate_response(QUESTION, Response(SERVED, PASSAGES))).passing
