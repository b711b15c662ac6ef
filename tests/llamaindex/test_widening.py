"""A wider look through whatever LlamaIndex wraps around a retriever, behind the same wall and postprocessors."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core import Document, PromptTemplate, SummaryIndex
from llama_index.core.indices.query.query_transform.base import IdentityQueryTransform
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import SelectorPromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import (
    AutoMergingRetriever,
    BaseRetriever,
    QueryFusionRetriever,
    TransformRetriever,
)
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.tools import QueryEngineTool
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from llamaindex_parts import (
    FAR_APART,
    LONG_DOCUMENTS,
    MODES,
    QUESTION,
    WIDE_PASSAGES,
    ListRetriever,
    ScriptedLLM,
    ask,
    model_of,
    steered_engine,
)
from llamaindex_selfroute import SelfRouteQueryEngine, SelfRouteSynthesizer
from llamaindex_stores_parts import a_chroma, over, split
from scenarios import FINAL
from selfroute import prompts
from selfroute.errors import ConfigurationError
from selfroute.policies import Budget, Case
from steering import BY_NAME, GRADED, LOOKED, WIDE_IN_ORDER, yes

every_mode = pytest.mark.parametrize("mode", MODES)
far_apart = pytest.mark.parametrize("mode", FAR_APART)
WIDER = BY_NAME["a wider look that answers"]


def a_retriever(k: int = 2) -> ListRetriever:
    """A retriever that takes a number."""
    return ListRetriever(WIDE_PASSAGES, k=k)


def fused(*retrievers: BaseRetriever) -> QueryFusionRetriever:
    """The retrievers' nodes, best first."""
    return QueryFusionRetriever(
        list(retrievers), llm=ScriptedLLM(), similarity_top_k=2, num_queries=1, use_async=False, mode="simple"
    )


WRAPPED: dict[str, Callable[[], BaseRetriever]] = {
    "itself": a_retriever,
    "transformed": lambda: TransformRetriever(a_retriever(), IdentityQueryTransform()),
    "transformed twice": lambda: TransformRetriever(
        TransformRetriever(a_retriever(), IdentityQueryTransform()), IdentityQueryTransform()
    ),
    "merged": lambda: AutoMergingRetriever(a_retriever(), over(None, []).storage_context),  # type: ignore[arg-type]
    "fused": lambda: fused(a_retriever(), a_retriever()),
}


@every_mode
@pytest.mark.parametrize("name", WRAPPED)
async def test_a_number_reaches_the_retriever_through_its_wrappers(name: str, mode: str) -> None:
    retriever = WRAPPED[name]()
    asked = await ask(steered_engine(WIDER, mode, retriever=retriever), QUESTION, mode)
    assert (asked.route, len(asked.retrieved), asked.sources) == ("wider", 2, list(WIDE_IN_ORDER))
    assert len(retriever.retrieve(QUESTION)) == 2  # as it was


@far_apart
async def test_a_retriever_of_its_own_is_asked_as_it_is(mode: str) -> None:
    asked = await ask(steered_engine(WIDER, mode, widen=a_retriever(4)), QUESTION, mode)
    assert (asked.route, len(asked.sources)) == ("wider", 4)
    synthesizer = steered_engine(WIDER, mode, widen=a_retriever(4))._response_synthesizer
    engine = RetrieverQueryEngine(a_retriever(), synthesizer)
    assert (await ask(engine, QUESTION, mode)).route == "wider"


NUMBERLESS = SummaryIndex([]).as_retriever()


def test_a_number_for_a_retriever_that_takes_none_says_what_to_pass() -> None:
    advice = "pass a retriever of its own"
    for retriever in (NUMBERLESS, TransformRetriever(NUMBERLESS, IdentityQueryTransform())):
        with pytest.raises(ConfigurationError, match=advice):
            steered_engine(WIDER, "query", retriever=retriever)
        assert steered_engine(WIDER, "query", retriever=retriever, widen=a_retriever())
        with pytest.raises(ConfigurationError, match=advice):
            steered_engine(WIDER, "query").with_retriever(retriever)
    with pytest.raises(ConfigurationError, match="no retriever of an engine is known here"):
        steered_engine(WIDER, "query")._response_synthesizer.synthesize(QUESTION, WIDE_PASSAGES[:2])


@pytest.mark.parametrize("widen", [0, -1, True, "16", 2.5, object()], ids=["0", "-1", "True", "text", "2.5", "object"])
def test_a_width_that_makes_no_sense_is_refused(widen: Any) -> None:
    with pytest.raises(ConfigurationError, match="widen must be a"):
        steered_engine(WIDER, "query", widen=widen)


class Without(BaseNodePostprocessor):
    """Hides nodes that hold a word."""

    word: str

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        assert query_bundle is not None
        return [node for node in nodes if self.word not in node.node.get_content()]


def page(owner: str) -> Document:
    """A long document that names its owner in every line."""
    lines = [f"Line {n} of {owner}: the crane of {owner} lifts {n * n} crates.\n" for n in range(40)]
    return Document(text="".join(lines), id_=owner, metadata={"tenant": owner})


@every_mode
@pytest.mark.parametrize("graded", [False, True], ids=["plain", "graded"])
@pytest.mark.parametrize("store", ["memory", "chroma"])
async def test_the_wall_of_a_tenant_holds_in_the_wider_look(store: str, graded: bool, mode: str) -> None:
    index = over(a_chroma() if store == "chroma" else None, split(page("ours"), page("theirs")))

    wall = MetadataFilters(filters=[MetadataFilter(key="tenant", value="ours")])
    model = ScriptedLLM(draft=("50 0\n",) * graded + ("unanswerable",), final=FINAL, marker="Read the following text")
    engine = SelfRouteQueryEngine.from_index(
        index,
        similarity_top_k=2,
        filters=wall,
        llm=model,
        widen=9,
        streaming=mode.endswith("stream"),
        **(GRADED if graded else {}),
    )
    asked = await ask(engine, "crane of theirs", mode)
    assert model.steps == ["rag", "rag", "long_context"]  # the second is the wider look
    wide = model.calls[1].prompt
    assert all("of theirs:" not in call.prompt for call in model.calls)
    numbers = [int(line.split()[1]) for line in wide.splitlines() if line.startswith("Line")]
    assert len(numbers) >= 9
    assert numbers == sorted(numbers)
    assert [node.node.node_id for node in asked.source_nodes] == ["ours"]


@far_apart
@pytest.mark.parametrize("store", ["memory", "chroma"])
async def test_a_policy_reads_behind_the_wall_of_a_tenant(store: str, mode: str) -> None:
    index = over(a_chroma() if store == "chroma" else None, split(page("ours"), page("theirs")))
    read: list[Any] = []

    def noting(case: Case) -> bool:
        read.extend(document.node.node_id for document in case.documents())
        return True

    model = ScriptedLLM(draft=("unanswerable",), final=FINAL, marker="Read the following text")
    wall = MetadataFilters(filters=[MetadataFilter(key="tenant", value="ours")])
    streams = mode.endswith("stream")
    engine = SelfRouteQueryEngine.from_index(index, filters=wall, llm=model, escalation=noting, streaming=streams)
    asked = await ask(engine, "crane of theirs", mode)
    assert (read, [node.node.node_id for node in asked.source_nodes]) == (["ours"], ["ours"])


@every_mode
async def test_postprocessors_apply_to_the_wider_look(mode: str) -> None:
    engine = steered_engine(WIDER, mode, node_postprocessors=[Without(word="cold")])
    asked = await ask(engine, QUESTION, mode)
    assert asked.sources == [text for text in WIDE_IN_ORDER if "cold" not in text]


@far_apart
async def test_a_wider_look_that_finds_no_more_is_skipped(mode: str) -> None:
    engine = steered_engine(
        BY_NAME["a decline without numbers"],
        mode,
        widen=4,
        node_postprocessors=[Without(word="vote"), Without(word="cold")],
    )
    asked = await ask(engine, QUESTION, mode)
    assert (asked.route, model_of(engine).steps, asked.usage["wider"]) == (
        "long_context",
        ["rag", "long_context"],
        None,
    )


@far_apart
async def test_a_wider_look_that_is_too_long_reads_fewer_nodes(mode: str) -> None:
    replies = iter([("unanswerable",), LOOKED])
    error = ValueError("prompt is too long: 640 tokens > 400 maximum")
    engine = steered_engine(WIDER, mode, failures={"wider": [error]}, draft=lambda _: next(replies))
    asked = await ask(engine, QUESTION, mode)
    assert asked.route == "wider"
    assert len(asked.sources) < len(WIDE_IN_ORDER)


REMADE: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda engine: engine,
    "copied": copy.copy,
    "copied deeply": copy.deepcopy,
    "with another retriever": lambda engine: engine.with_retriever(a_retriever()),
    "from its synthesizer": lambda engine: SelfRouteQueryEngine(a_retriever(), engine._response_synthesizer),
}
ALL_OPTIONS: dict[str, Any] = {**GRADED, "doubt_below": 60, "stop_below": 10, "widen": 4, "start": "rag"}


@far_apart
@pytest.mark.parametrize("how", REMADE)
async def test_an_engine_that_was_made_again_has_all_options(how: str, mode: str) -> None:
    doubted = ("80 55\n", *LOOKED)
    engine = steered_engine(WIDER, mode, draft=doubted, wider=doubted, final=FINAL, escalation=yes, **ALL_OPTIONS)
    again = REMADE[how](engine)
    asked = await ask(again, QUESTION, mode)
    assert (asked.decision["signal"], asked.decision["ruling"]["by"]) == ("doubt", "yes")
    assert asked.route == "long_context"
    assert asked.usage["wider"]


def test_a_synthesizer_pickles_with_all_options() -> None:
    synthesizer = SelfRouteSynthesizer(
        documents=LONG_DOCUMENTS, llm=ScriptedLLM(), escalation=Budget(tokens=9), **ALL_OPTIONS
    )
    again = pickle.loads(pickle.dumps(synthesizer))  # noqa: S301 - our own
    assert [getattr(again, name) for name in ALL_OPTIONS] == [getattr(synthesizer, name) for name in ALL_OPTIONS]
    assert again.escalation.left == {"usd": None, "tokens": 9}


OWN = "From {context_str} answer {query_str} or write {refusal}."
ASKING = "Two numbers from 0 to 100 first. " + OWN
PROMPTS: dict[str, Callable[[str], Any]] = {
    "text": PromptTemplate,
    "selected": lambda text: SelectorPromptTemplate(PromptTemplate(ASKING), [(lambda _: True, PromptTemplate(text))]),
}


@pytest.mark.parametrize("name", PROMPTS)
def test_a_prompt_that_asks_for_no_numbers_is_refused_where_they_are_needed(name: str) -> None:
    refused = pytest.raises(ConfigurationError, match="rag_prompt that asks for two numbers from 0 to 100")
    sure = BY_NAME["a sure answer"]
    with refused:
        steered_engine(sure, "query", rag_prompt=PROMPTS[name](OWN))
    engine = steered_engine(sure, "query")
    before = engine.get_prompts()
    for which in (engine, engine._response_synthesizer):
        with refused:
            which.update_prompts({"rag_prompt": PROMPTS[name](OWN)})
    assert engine.get_prompts() == before
    engine.update_prompts({"rag_prompt": PROMPTS[name](ASKING)})
    assert engine.query(QUESTION).response == sure.answer
    assert model_of(engine).calls[-1].prompt.startswith("Two numbers")
    assert steered_engine(sure, "query", rag_prompt=PROMPTS[name](OWN), answerability="structured", doubt_below=50)


@every_mode
async def test_only_the_steps_that_read_nodes_are_asked_for_numbers(mode: str) -> None:
    engine = steered_engine(BY_NAME["a doubt that a wider look shares"], mode)
    await ask(engine, QUESTION, mode)
    assert ["two numbers from 0 to 100" in call.prompt for call in model_of(engine).calls] == [True, True, False]
    shown = engine.get_prompts()["rag_prompt"].get_template()
    assert shown == prompts.GRADED.replace("{context}", "{context_str}").replace("{question}", "{query_str}")
    engine._response_synthesizer.answerability = "text"
    assert "100" not in engine.get_prompts()["rag_prompt"].get_template()


def test_a_steered_engine_is_a_tool() -> None:
    tool = QueryEngineTool.from_defaults(steered_engine(WIDER, "query"), name="look", description="Look.")
    assert tool.call(QUESTION).content == WIDER.answer
