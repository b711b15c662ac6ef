"""A chain composes like any runnable: pipes, batches, retries, fallbacks, configuration, tools, graphs."""

from __future__ import annotations

from collections.abc import Callable
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

from both_parts import pipeline_for
from langchain_parts import (
    DOCUMENTS,
    FAR_APART,
    MODES,
    QUESTION,
    STREAMS,
    ListRetriever,
    ScriptedModel,
    TreeTracer,
    a_chain,
    all_of,
    ask,
    chunks,
)
from langchain_selfroute import SelfRouteChain
from scenarios import FINAL, FOUND, SOME, Scenario
from selfroute.answerability import Verdict
from selfroute.errors import ConfigurationError
from selfroute.policies.case import Ruling
from selfroute.usage import Usage
from steering import BY_NAME

every_mode = pytest.mark.parametrize("mode", MODES)
every_stream = pytest.mark.parametrize("mode", STREAMS)
either_step = pytest.mark.parametrize("step", ["rag", "long_context"])
LIN = ("Mr Lin.",)


def _upper(pieces: Any) -> Any:
    for piece in pieces:
        yield piece.upper()


async def _aupper(pieces: Any) -> Any:
    async for piece in pieces:
        yield piece.upper()


def _composed(chain: SelfRouteChain, *, awaited: bool = False) -> dict[str, tuple[Runnable[Any, Any], Any]]:
    """Compositions that end in the text of the answer; those after "bind" give it whole."""
    answer, parser = chain.pick("answer"), StrOutputParser()
    return {
        "pick | parser": (answer | parser, FOUND),
        "function | chain": (RunnableLambda(lambda text: {"input": text}) | answer, FOUND),
        "parallel": (RunnableParallel(a=answer, b=chain.pick("route")), {"a": FOUND, "b": "long_context"}),
        "generator": (answer | (_aupper if awaited else _upper), FOUND.upper()),
        "with_config": (chain.with_config(tags=["t"], run_name="n").pick("answer"), FOUND),
        "with_retry": (chain.with_retry().pick("answer"), FOUND),
        "with_fallbacks": (chain.with_fallbacks([a_chain(("no",))]).pick("answer"), FOUND),
        "bind": (chain.bind(stop=["\n"]).pick("answer"), FOUND),
        "passthrough | chain": (RunnablePassthrough() | chain | itemgetter("answer"), FOUND),
        "streamed input": (RunnableLambda(lambda _: QUESTION) | parser | answer, FOUND),
        "assign": (
            chain.assign(size=lambda out: len(out["answer"])).pick(["answer", "size"]),
            {"answer": FOUND, "size": len(FOUND)},
        ),
        "prompt": (chain | ChatPromptTemplate.from_template("{answer}") | (lambda to: to.messages[0].content), FOUND),
    }


STREAMING = list(_composed(a_chain()))[:8]


@every_mode
@pytest.mark.parametrize("name", _composed(a_chain()))
async def test_composition_gives_the_same_streams_and_can_be_drawn(name: str, mode: str) -> None:
    composed, expected = _composed(a_chain(), awaited=mode[0] == "a")[name]
    assert await ask(composed, QUESTION, mode) == expected
    assert composed.get_output_jsonschema() is not None
    assert composed.get_input_jsonschema() is not None
    assert composed.get_graph().draw_mermaid()
    if mode in STREAMS and name in STREAMING:
        long = a_chain(final=("Ms Okafor took the chair.", " It was", *(f" word{n}" for n in range(9))))
        assert len(await chunks(_composed(long, awaited=mode[0] == "a")[name][0], QUESTION, mode)) >= 9


@every_stream
@pytest.mark.parametrize(
    "scenario", [*SOME, *map(BY_NAME.get, ["sections that answer", "a doubt that is refused"])], ids=str
)
async def test_stream_keys_come_in_order(scenario: Scenario, mode: str) -> None:
    """Only the answer comes in pieces."""
    given = {"input": QUESTION, "year": 7}
    seen = await chunks(pipeline_for(f"langchain {mode}", scenario).asked, given, mode)
    keys = [key for chunk in seen for key in chunk]
    first = ["input", "year", "retrieved", "context", "route"]
    last = ["answerable", "finish_reason", "decision", "usage"]
    assert keys == [*first, *["answer"] * keys.count("answer"), *last]
    assert all(chunk["answer"] for chunk in seen if "answer" in chunk)
    whole = await ask(pipeline_for("langchain invoke", scenario).asked, given, "invoke")
    assert list(whole) == [*first, "answer", *last]


@every_stream
async def test_stream_that_nobody_reads_asks_nothing(mode: str) -> None:
    chain = a_chain()
    parts = getattr(chain, mode)(QUESTION)
    await parts.aclose() if mode == "astream" else parts.close()
    assert (chain.llm.calls, chain.retriever.queries) == ([], [])


DOWN: dict[str, Callable[[str], SelfRouteChain]] = {
    "it is down": lambda step: a_chain(failures={step: [ConnectionError("down")]}),
    "there is no reply": lambda step: a_chain(
        **{"draft" if step == "rag" else "final": ("",)}, ends={step: "content_filter"}
    ),
}


@every_mode
@either_step
@pytest.mark.parametrize("why", DOWN)
async def test_outer_fallback_takes_over_before_the_first_text(why: str, step: str, mode: str) -> None:
    chain = DOWN[why](step)
    result = await ask(chain.with_fallbacks([a_chain(LIN)]), QUESTION, mode)
    assert (result["answer"], result["route"], chain.llm.steps.count(step)) == ("Mr Lin.", "rag", 1)
    if mode in STREAMS:
        held = a_chain(("un", "answer", "able"), breaks_after=2).with_fallbacks([a_chain(LIN)])
        assert (await ask(held, QUESTION, mode))["answer"] == "Mr Lin."
        shown = a_chain(("Mr Lin took the chair.", *(f" word{n}" for n in range(9))), breaks_after=7)
        with pytest.raises(ConnectionError):
            await ask(shown.with_fallbacks([a_chain(("Ms Okafor.",))]), QUESTION, mode)


@every_mode
async def test_bound_arguments_reach_both_models(mode: str) -> None:
    second = ScriptedModel(final=FINAL)
    chain = a_chain(long_context_llm=second)
    await ask(chain.bind(stop=["\n"], temperature=0), QUESTION, mode, seed=7)
    for call, step in zip([*chain.llm.calls, *second.calls], ("rag", "long_context"), strict=True):
        assert (call.step, call.options) == (step, {"stop": ["\n"], "temperature": 0, "seed": 7})


def _fields(*names: str) -> Any:
    return {name: ConfigurableField(id=name) for name in names}


@every_mode
async def test_chain_and_its_parts_can_be_configured(mode: str) -> None:
    chain = a_chain(("PASS",)).configurable_fields(**_fields("refusal"))
    assert (await ask(chain, QUESTION, mode))["route"] == "rag"
    result = await ask(chain, QUESTION, mode, {"configurable": {"refusal": "pass"}})
    assert (result["route"], result["answer"]) == ("long_context", FOUND)
    chosen = a_chain().configurable_alternatives(ConfigurableField(id="which"), default_key="one", two=a_chain(LIN))
    assert (await ask(chosen, QUESTION, mode))["answer"] == FOUND
    assert (await ask(chosen, QUESTION, mode, {"configurable": {"which": "two"}}))["answer"] == "Mr Lin."
    chain = a_chain(
        retriever=ListRetriever().configurable_fields(**_fields("k")),
        llm=ScriptedModel(draft=("unanswerable",)).configurable_fields(**_fields("label")),
        long_context_llm=ScriptedModel(final=FINAL).configurable_alternatives(
            ConfigurableField(id="reader"), default_key="one", two=ScriptedModel(final=("Ms Two.",))
        ),
        documents=(itemgetter("retrieved") | RunnableLambda(lambda _: DOCUMENTS)).configurable_alternatives(
            ConfigurableField(id="archive"), default_key="all", none=RunnableLambda(lambda _: [])
        ),
    )
    names = {"k", "label", "reader", "archive"}
    assert {spec.id for spec in chain.config_specs} == names
    assert names <= set(chain.config_schema().model_json_schema()["$defs"]["Configurable"]["properties"])
    result = await ask(chain, QUESTION, mode, {"configurable": {"k": 1, "reader": "two"}})
    assert (len(result["retrieved"]), result["answer"]) == (1, "Ms Two.")
    result = await ask(chain, QUESTION, mode, {"configurable": {"archive": "none"}})
    assert (result["answerable"], len(result["retrieved"])) == (False, 2)


@pytest.mark.parametrize("mode", FAR_APART)
async def test_bounds_are_set_by_the_config_of_a_call(mode: str) -> None:
    chain = pipeline_for(f"langchain {mode}", BY_NAME["a doubt in one piece"]).asked
    chain = chain.configurable_fields(**_fields("doubt_below", "stop_below"))
    for doubt, route in ((40, "rag"), (50, "long_context")):
        assert (await ask(chain, QUESTION, mode, {"configurable": {"doubt_below": doubt}}))["route"] == route
    with pytest.raises(ConfigurationError, match="doubt_below must be a whole number from 0 to 100"):
        await ask(chain, QUESTION, mode, {"configurable": {"doubt_below": 101}})


def _resolved(schema: dict[str, Any]) -> dict[str, Any]:
    return schema["$defs"][schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else schema


def test_schemas_name_what_goes_in_and_out() -> None:
    given, returned = _resolved(a_chain().get_input_jsonschema()), _resolved(a_chain().get_output_jsonschema())
    assert (given["required"], given["properties"]["input"]["type"]) == (["input"], "string")
    assert list(returned["properties"]) == list(a_chain().invoke(QUESTION))
    assert returned["properties"]["route"]["enum"] == ["rag", "sections", "long_context"]
    cited = _resolved(a_chain(citations=True).get_output_jsonschema())
    assert list(cited["properties"]) == [*returned["properties"], "citations"]
    assert cited["required"] == returned["required"]
    types, plain = a_chain().get_output_jsonschema()["$defs"], Verdict(declined=True, signal="sentinel")
    assert list(types["Usage"]["properties"]) == list(Usage().as_dict())
    assert types["Decision"]["required"] == list(plain.as_dict())
    assert list(types["Decision"]["properties"]) == list(replace(plain, prospect=5, confidence=90).as_dict())
    assert list(types["Ruling"]["properties"]) == list(Ruling(go=True).as_dict())


def test_the_graph_shows_the_real_steps() -> None:
    def edges(**fields: Any) -> set[tuple[str, str]]:
        graph = a_chain(**fields).get_graph()
        names = {id_: node.name for id_, node in graph.nodes.items()}
        names |= {graph.first_node().id: "start", graph.last_node().id: "end"}  # type: ignore[union-attr]
        found = {(names[edge.source], names[edge.target]): edge.conditional for edge in graph.edges}
        assert all(found[edge] for edge in found if edge[0] == "rag" and len(found) > 3)
        return set(found)

    read = "read_documents"
    tail = {(read, "long_context"), ("long_context", "end")}
    head = {("start", "retrieve"), ("retrieve", "rag"), ("rag", "end")}
    plain = {*head, ("rag", read), *tail}
    through = {(read, "sections"), ("sections", "end"), ("sections", "long_context"), ("long_context", "end")}
    assert edges() == plain
    assert edges(sections=400) == edges(sections=(400, 900)) == (plain - tail) | through
    assert edges(sections=400, max_documents=0) == (plain - tail) | {(read, "sections"), ("sections", "end")}
    assert edges(max_documents=0) == head
    assert edges(start="long_context", sections=400) == {("start", "retrieve"), ("retrieve", read), *tail}
    assert edges(start=lambda _: "rag") == plain | {("retrieve", read)}
    drawn = (
        (RunnableLambda(lambda text: text) | a_chain(sections=400) | itemgetter("answer")).get_graph().draw_mermaid()
    )
    assert all(name in drawn for name in ("retrieve", "rag", read, "sections", "long_context"))


class TenantRetriever(BaseRetriever):
    """Reads whose question it is from the config of the call, which nobody hands it."""

    tenants: list[Any]

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        self.tenants.append((ensure_config().get("configurable") or {}).get("tenant"))
        return RunnableLambda(lambda _: [Document("Tea was served.")]).invoke(query)


@every_mode
async def test_parts_find_the_config_and_parent_of_a_call(mode: str) -> None:
    retriever, tracer = TenantRetriever(tenants=[]), TreeTracer()
    config: Any = {"configurable": {"tenant": "acme"}, "callbacks": [tracer]}
    await ask(a_chain(retriever=retriever), "Who?", mode, config)
    assert retriever.tenants == ["acme"]
    assert "RunnableLambda" in {run.name for run in all_of(tracer.root)}
