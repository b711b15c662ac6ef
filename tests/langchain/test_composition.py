"""A chain composes like any runnable: pipes, batches, retries, fallbacks, configuration, tools, graphs."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from operator import itemgetter
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import (
    ConfigurableField,
    Runnable,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
)
from langchain_core.runnables.config import ensure_config
from langchain_core.tools import BaseTool
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

from langchain_parts import (
    DOCUMENTS,
    MODES,
    QUESTION,
    STREAMS,
    ListRetriever,
    ScriptedModel,
    TreeTracer,
    a_chain,
    ask,
    chunks,
)
from langchain_selfroute import SelfRouteChain
from scenarios import FINAL, FOUND
from selfroute.answerability.verdict import Verdict
from selfroute.policies.case import Ruling
from selfroute.usage import Usage

BETA = "ignore:This API is in beta:langchain_core._api.beta_decorator.LangChainBetaWarning"

every_mode = pytest.mark.parametrize("mode", MODES)
every_stream = pytest.mark.parametrize("mode", STREAMS)


def _upper(pieces: Any) -> Any:
    for piece in pieces:
        yield piece.upper()


async def _aupper(pieces: Any) -> Any:
    async for piece in pieces:
        yield piece.upper()


def _composed(chain: SelfRouteChain) -> dict[str, tuple[Runnable[Any, Any], Any]]:
    """Compositions that end in the text of the answer."""
    answer, parser = chain.pick("answer"), StrOutputParser()
    return {
        "pick": (answer, FOUND),
        "pick | parser": (answer | parser, FOUND),
        "function | chain": (RunnableLambda(lambda text: {"input": text}) | answer, FOUND),
        "prompt value | chain": (RunnablePassthrough() | chain | itemgetter("answer"), FOUND),
        "parallel": (RunnableParallel(a=answer, b=chain.pick("route")), {"a": FOUND, "b": "long_context"}),
        "parallel input": (RunnableParallel(input=RunnablePassthrough()) | answer, FOUND),
        "streamed input": (RunnableLambda(lambda _: QUESTION) | parser | answer, FOUND),
        "assign": (
            chain.assign(size=lambda out: len(out["answer"])).pick(["answer", "size"]),
            {"answer": FOUND, "size": len(FOUND)},
        ),
        "pick of several": (chain.pick(["answer", "route"]), {"answer": FOUND, "route": "long_context"}),
        "generator": (answer | _upper, FOUND.upper()),
        "with_config": (chain.with_config(tags=["t"], run_name="n").pick("answer"), FOUND),
        "with_types": (answer.with_types(output_type=str), FOUND),
        "with_retry": (chain.with_retry().pick("answer"), FOUND),
        "with_fallbacks": (chain.with_fallbacks([a_chain(("no",))]).pick("answer"), FOUND),
        "bind": (chain.bind(stop=["\n"]).pick("answer"), FOUND),
    }


COMPOSED = sorted(_composed(a_chain()))


@every_mode
@pytest.mark.parametrize("name", COMPOSED)
async def test_a_composition_gives_the_same_in_all_modes(name: str, mode: str) -> None:
    composed, expected = _composed(a_chain())[name]
    if name == "generator" and mode.startswith("a"):
        composed = a_chain().pick("answer") | _aupper
    assert await ask(composed, QUESTION, mode) == expected


@every_stream
@pytest.mark.parametrize(
    "name", ["pick", "pick | parser", "parallel", "generator", "with_retry", "with_fallbacks", "with_config"]
)
async def test_a_composition_still_streams_piece_by_piece(name: str, mode: str) -> None:
    if name == "generator" and mode == "astream":
        name = "pick"
    composed, _ = _composed(a_chain(final=("Ms Okafor took the chair.", " It was", *(f" word{n}" for n in range(9)))))[
        name
    ]
    assert len(await chunks(composed, QUESTION, mode)) >= 9


@every_mode
async def test_two_chains_in_parallel_keep_their_own_answers(mode: str) -> None:
    both = RunnableParallel(one=a_chain(("Mr Lin.",)), two=a_chain())
    result = await ask(both, QUESTION, mode)
    assert (result["one"]["answer"], result["one"]["route"]) == ("Mr Lin.", "rag")
    assert (result["two"]["answer"], result["two"]["route"]) == (FOUND, "long_context")


def _picky(prompt: str) -> tuple[str, ...]:
    if "fail" in prompt:
        raise ConnectionError(prompt[-20:])
    return ("Mr Lin.",) if "first" in prompt else ("unanswerable",)


BATCH = ["first", "fail", {"input": "second"}]


async def test_a_batch_returns_errors_among_the_answers_when_told_to() -> None:
    chain = a_chain(_picky)
    for results in (chain.batch(BATCH, return_exceptions=True), await chain.abatch(BATCH, return_exceptions=True)):
        first, failed, second = results
        assert (first["route"], second["route"]) == ("rag", "long_context")
        assert type(failed) is ConnectionError
    with pytest.raises(ConnectionError):
        chain.batch(BATCH)


async def test_answers_of_a_batch_come_as_completed_with_their_index() -> None:
    chain = a_chain(_picky)
    asynchronous = {index: out async for index, out in chain.abatch_as_completed(BATCH, return_exceptions=True)}
    for found in (dict(chain.batch_as_completed(BATCH, return_exceptions=True)), asynchronous):
        assert [found[0]["route"], type(found[1]), found[2]["route"]] == ["rag", ConnectionError, "long_context"]


async def test_a_batch_never_runs_more_at_once_than_it_may() -> None:
    lock, running, peak = threading.Lock(), 0, 0

    def documents(_: Any) -> list[Document]:
        nonlocal running, peak
        with lock:
            running += 1
            peak = max(peak, running)
        time.sleep(0.01)
        with lock:
            running -= 1
        return DOCUMENTS

    chain = a_chain(documents=documents)
    questions = [f"question {n}" for n in range(8)]
    for results in (
        chain.batch(questions, {"max_concurrency": 2}),
        await chain.abatch(questions, {"max_concurrency": 2}),
    ):
        assert [result["input"] for result in results] == questions
    assert peak == 2


@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
@pytest.mark.parametrize("step", ["rag", "long_context"])
async def test_an_outer_retry_asks_again(step: str, mode: str) -> None:
    chain = a_chain(failures={step: [ConnectionError("down"), None]})
    retrying = chain.with_retry(retry_if_exception_type=(ConnectionError,), wait_exponential_jitter=False)
    assert (await ask(retrying, QUESTION, mode))["answer"] == FOUND
    assert chain.llm.steps.count(step) == 2


@every_mode
@pytest.mark.parametrize("step", ["rag", "long_context"])
async def test_an_outer_fallback_takes_over_before_the_first_text(step: str, mode: str) -> None:
    chain = a_chain(failures={step: [ConnectionError("down")]})
    result = await ask(chain.with_fallbacks([a_chain(("Mr Lin.",))]), QUESTION, mode)
    assert (result["answer"], result["route"]) == ("Mr Lin.", "rag")
    assert chain.llm.steps.count(step) == 1


@every_stream
async def test_an_outer_fallback_takes_over_when_a_held_draft_breaks(mode: str) -> None:
    chain = a_chain(("un", "answer", "able"), breaks_after=2)
    result = await ask(chain.with_fallbacks([a_chain(("Mr Lin.",))]), QUESTION, mode)
    assert result["answer"] == "Mr Lin."


@every_stream
async def test_an_outer_fallback_does_not_add_to_text_that_was_shown(mode: str) -> None:
    chain = a_chain(("Mr Lin took the chair.", *(f" word{n}" for n in range(9))), breaks_after=7)
    with pytest.raises(ConnectionError):
        await ask(chain.with_fallbacks([a_chain(("Ms Okafor.",))]), QUESTION, mode)


@every_mode
async def test_bound_arguments_reach_both_models(mode: str) -> None:
    second = ScriptedModel(final=FINAL)
    chain = a_chain(long_context_llm=second)
    await ask(chain.bind(stop=["\n"], temperature=0), QUESTION, mode)
    for call in (*chain.llm.calls, *second.calls):
        assert (call.options["stop"], call.options["temperature"]) == (["\n"], 0)
    assert [*chain.llm.steps, *second.steps] == ["rag", "long_context"]


@every_mode
async def test_arguments_of_a_call_reach_the_models(mode: str) -> None:
    chain = a_chain()
    await ask(chain, QUESTION, mode, seed=7)
    assert [call.options["seed"] for call in chain.llm.calls] == [7, 7]


@every_mode
async def test_fields_of_the_chain_can_be_configured(mode: str) -> None:
    chain = a_chain(("PASS",)).configurable_fields(refusal=ConfigurableField(id="refusal"))
    assert (await ask(chain, QUESTION, mode))["route"] == "rag"
    result = await ask(chain, QUESTION, mode, {"configurable": {"refusal": "pass"}})
    assert (result["route"], result["answer"]) == ("long_context", FOUND)


@every_mode
async def test_a_chain_has_configurable_alternatives(mode: str) -> None:
    chain = a_chain().configurable_alternatives(
        ConfigurableField(id="which"), default_key="first", second=a_chain(("Mr Lin.",))
    )
    assert (await ask(chain, QUESTION, mode))["answer"] == FOUND
    assert (await ask(chain, QUESTION, mode, {"configurable": {"which": "second"}}))["answer"] == "Mr Lin."


@every_mode
async def test_fields_of_the_parts_can_be_configured(mode: str) -> None:
    first = ScriptedModel(draft=("unanswerable",))
    second = ScriptedModel(final=FINAL)
    chain = a_chain(
        retriever=ListRetriever().configurable_fields(k=ConfigurableField(id="k")),
        llm=first.configurable_fields(label=ConfigurableField(id="label")),
        long_context_llm=second.configurable_alternatives(
            ConfigurableField(id="reader"), default_key="one", two=ScriptedModel(final=("Ms Two.",))
        ),
        documents=(itemgetter("retrieved") | RunnableLambda(lambda _: DOCUMENTS)).configurable_alternatives(
            ConfigurableField(id="archive"), default_key="all", none=RunnableLambda(lambda _: [])
        ),
    )
    assert {spec.id for spec in chain.config_specs} == {"k", "label", "reader", "archive"}
    assert {"k", "label", "reader", "archive"} <= set(
        chain.config_schema().model_json_schema()["$defs"]["Configurable"]["properties"]
    )
    result = await ask(chain, QUESTION, mode, {"configurable": {"k": 1, "reader": "two"}})
    assert (len(result["retrieved"]), result["answer"]) == (1, "Ms Two.")
    result = await ask(chain, QUESTION, mode, {"configurable": {"archive": "none"}})
    assert (result["answerable"], len(result["retrieved"])) == (False, 2)


def _resolved(schema: dict[str, Any]) -> dict[str, Any]:
    return schema["$defs"][schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else schema


def test_the_schemas_name_what_goes_in_and_out() -> None:
    given, returned = _resolved(a_chain().get_input_jsonschema()), _resolved(a_chain().get_output_jsonschema())
    assert (given["required"], given["properties"]["input"]["type"]) == (["input"], "string")
    assert list(returned["properties"]) == [
        "input",
        "retrieved",
        "context",
        "route",
        "answer",
        "answerable",
        "finish_reason",
        "decision",
        "usage",
    ]
    assert returned["properties"]["route"]["enum"] == ["rag", "sections", "long_context"]
    cited = _resolved(a_chain(citations=True).get_output_jsonschema())
    assert list(cited["properties"]) == [*returned["properties"], "citations", "unverified_quotes"]
    assert cited["required"] == returned["required"]


def test_the_types_have_the_keys_of_what_they_type() -> None:
    types = a_chain().get_output_jsonschema()["$defs"]
    plain = Verdict(declined=True, signal="sentinel")
    assert list(types["Usage"]["properties"]) == list(Usage().as_dict())
    assert types["Decision"]["required"] == list(plain.as_dict())
    assert list(types["Decision"]["properties"]) == list(replace(plain, prospect=5, confidence=90).as_dict())
    assert list(types["Ruling"]["properties"]) == list(Ruling(go=True).as_dict())


@pytest.mark.parametrize("name", COMPOSED)
def test_compositions_have_schemas_and_graphs(name: str) -> None:
    composed, _ = _composed(a_chain())[name]
    assert composed.get_output_jsonschema() is not None
    assert composed.get_input_jsonschema() is not None
    assert composed.get_graph().draw_mermaid()


def test_the_graph_shows_the_real_steps() -> None:
    graph = a_chain().get_graph()
    names = {id_: node.name for id_, node in graph.nodes.items()}
    edges = {(names[edge.source], names[edge.target], edge.data, edge.conditional) for edge in graph.edges}
    start, end = names[graph.first_node().id], names[graph.last_node().id]
    assert {name for name in names.values() if name not in {start, end}} == {
        "retrieve",
        "rag",
        "read_documents",
        "long_context",
    }
    assert {edge[:2] for edge in edges} == {
        (start, "retrieve"),
        ("retrieve", "rag"),
        ("rag", end),
        ("rag", "read_documents"),
        ("read_documents", "long_context"),
        ("long_context", end),
    }
    assert {(edge[1], edge[3]) for edge in edges if edge[0] == "rag"} == {(end, True), ("read_documents", True)}


def test_a_composed_graph_holds_the_steps_too() -> None:
    drawn = (RunnableLambda(lambda text: text) | a_chain() | itemgetter("answer")).get_graph().draw_mermaid()
    assert all(name in drawn for name in ("retrieve", "rag", "read_documents", "long_context"))


@pytest.mark.filterwarnings(BETA)
async def test_a_chain_is_a_tool_that_takes_the_input() -> None:
    tool = a_chain().as_tool(name="minutes", description="Answers from the minutes.")
    assert list(tool.args) == ["input"]
    assert tool.invoke({"input": QUESTION})["answer"] == FOUND
    assert (await tool.ainvoke({"input": QUESTION}))["route"] == "long_context"
    call = {"name": "minutes", "args": {"input": QUESTION}, "id": "1", "type": "tool_call"}
    answer = a_chain().pick("answer").as_tool(name="minutes", description="Answers from the minutes.")
    assert answer.invoke(call).content == FOUND


class _Tool:
    @property
    def tool_constructor(self) -> BaseTool:
        return a_chain().pick("answer").as_tool(name="minutes", description="Answers from the minutes.")

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"input": QUESTION}


@pytest.mark.filterwarnings(BETA)
class TestToolUnit(_Tool, ToolsUnitTests):
    """The host's own unit tests of a tool."""


@pytest.mark.filterwarnings(BETA)
class TestToolIntegration(_Tool, ToolsIntegrationTests):
    """The host's own integration tests of a tool; nothing leaves the process."""


def test_a_chain_can_be_an_input_of_a_prompt() -> None:
    prompt = ChatPromptTemplate.from_template("{answer} ({route})")
    assert (a_chain() | prompt).invoke(QUESTION).to_string() == f"Human: {FOUND} (long_context)"


class TenantRetriever(BaseRetriever):
    """Reads whose question it is from the config of the call, which nobody hands it."""

    tenants: list[Any]

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        self.tenants.append((ensure_config().get("configurable") or {}).get("tenant"))
        return RunnableLambda(lambda _: [Document("Tea was served.")]).invoke(query)


@every_mode
async def test_what_runs_within_a_call_finds_its_config_and_its_parent(mode: str) -> None:
    retriever, tracer = TenantRetriever(tenants=[]), TreeTracer()
    config: Any = {"configurable": {"tenant": "acme"}, "callbacks": [tracer]}
    counting = RunnableLambda(lambda text: len(text.split())).with_config(run_name="count")
    await ask(a_chain(retriever=retriever, token_counter=counting.invoke, max_context_tokens=9), "Who?", mode, config)
    assert retriever.tenants == ["acme"]
    assert {"RunnableLambda", "count"} <= {run.name for run in _below(tracer.root)}


def _below(run: Any) -> list[Any]:
    return [one for child in run.children for one in (child, *_below(child))]
