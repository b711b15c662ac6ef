"""A wider look through whatever LangChain wraps around a retriever, behind the same wall."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate
from langchain_core.runnables import ConfigurableField, Runnable, RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_parts import (
    FAR_APART,
    LONG_DOCUMENTS,
    MODES,
    QUESTION,
    WIDE_PASSAGES,
    ListRetriever,
    ScriptedModel,
    a_chain,
    ask,
    steered_chain,
)
from langchain_selfroute import SelfRouteChain
from langchain_stores import EMBEDDING, KINDS, chunks_of, holding, prompts_of, store_with, text_of
from selfroute import prompts
from selfroute.errors import ConfigurationError
from selfroute.policies import Budget, Case, Never
from steering import BY_NAME, GRADED, LOOKED, WIDE_IN_ORDER, yes

every_mode = pytest.mark.parametrize("mode", MODES)
far_apart = pytest.mark.parametrize("mode", FAR_APART)
WIDER = BY_NAME["a wider look that answers"]
DEAD = ListRetriever(passages=WIDE_PASSAGES, k=2, failures=[ConnectionError("down")] * 9)


def a_retriever() -> ListRetriever:
    """A retriever that takes a number."""
    return ListRetriever(passages=WIDE_PASSAGES, k=2)


WRAPPED: dict[str, Callable[[], Runnable[Any, Any]]] = {
    "itself": a_retriever,
    "bound": lambda: a_retriever().bind(),
    "with a config": lambda: a_retriever().with_config(tags=["mine"]),
    "with retries": lambda: a_retriever().with_retry(stop_after_attempt=2),
    "with fallbacks": lambda: DEAD.with_fallbacks([a_retriever()]),
    "with fields": lambda: a_retriever().configurable_fields(k=ConfigurableField(id="k")),
    "with alternatives": lambda: a_retriever().configurable_alternatives(ConfigurableField(id="which"), dead=DEAD),
    "in a sequence": lambda: a_retriever() | RunnableLambda(lambda found: found[:20]),
    "after a question of its own": lambda: RunnableLambda(lambda given: given["input"]) | a_retriever(),
    "wrapped twice": lambda: a_retriever().with_retry().with_config(tags=["mine"]),
}


@every_mode
@pytest.mark.parametrize("name", WRAPPED)
async def test_a_number_reaches_the_retriever_through_its_wrappers(name: str, mode: str) -> None:
    chain = steered_chain(WIDER, retriever=WRAPPED[name]())
    result = await ask(chain, QUESTION, mode)
    assert (result["route"], len(result["retrieved"])) == ("wider", 2)
    assert [document.page_content for document in result["context"]] == list(WIDE_IN_ORDER)


@far_apart
async def test_a_number_reaches_the_retriever_that_the_config_chooses(mode: str) -> None:
    retriever = a_retriever().configurable_fields(passages=ConfigurableField(id="passages"))
    chain = steered_chain(WIDER, retriever=retriever)
    others = [*WIDE_PASSAGES[:2], WIDE_PASSAGES[3]]
    result = await ask(chain, QUESTION, mode, {"configurable": {"passages": others}})
    assert (len(result["retrieved"]), len(result["context"])) == (2, 3)


@far_apart
async def test_a_retriever_of_its_own_is_asked_as_it_is(mode: str) -> None:
    own = ListRetriever(passages=WIDE_PASSAGES, k=3).configurable_fields(k=ConfigurableField(id="width"))
    chain = steered_chain(BY_NAME["a decline without numbers"], widen=own, answerability="text")
    assert [spec.id for spec in chain.config_specs] == ["width"]
    chain = steered_chain(WIDER, widen=own)
    result = await ask(chain, QUESTION, mode, {"configurable": {"width": 4}})
    assert (result["route"], len(result["context"])) == ("wider", 4)


@pytest.mark.parametrize(
    "retriever",
    [RunnableLambda(lambda _: WIDE_PASSAGES), RunnableLambda(lambda _: WIDE_PASSAGES).with_fallbacks([a_retriever()])],
    ids=["a function", "a fallback of a function"],
)
def test_a_number_for_a_retriever_that_takes_none_says_what_to_pass(retriever: Runnable[Any, Any]) -> None:
    with pytest.raises(ConfigurationError, match="pass a retriever of its own, widen=wider_retriever"):
        a_chain(retriever=retriever, widen=16)
    assert a_chain(retriever=retriever, widen=a_retriever())


@pytest.mark.parametrize("widen", [0, -1, True, "16", 2.5, object()], ids=["0", "-1", "True", "text", "2.5", "object"])
def test_a_width_that_makes_no_sense_is_refused(widen: Any) -> None:
    with pytest.raises(ConfigurationError, match="widen must be a"):
        a_chain(widen=widen)


@every_mode
@pytest.mark.parametrize("graded", [False, True], ids=["plain", "graded"])
@pytest.mark.parametrize("kind", KINDS)
async def test_the_wall_of_a_tenant_holds_in_the_wider_look(kind: str, graded: bool, mode: str) -> None:
    ours, theirs = text_of("ours", 40), text_of("theirs", 40)
    chunks = [
        *chunks_of(ours, source="report", tenant="ours"),
        *chunks_of(theirs, source="report", tenant="theirs"),
    ]
    store = store_with(kind, chunks)
    model = ScriptedModel(draft=lambda _: ("50 0\n",) * graded + ("unanswerable",), final=LOOKED, marker="Read the fol")
    options = GRADED if graded else {}
    wall = holding(kind, tenant="ours")
    chain = SelfRouteChain.from_vectorstore(store, model, k=3, filter=wall, widen=9, **options)
    result = await ask(chain, QUESTION, mode)
    asked = prompts_of(model)
    assert "theirs" not in asked
    assert result["route"] == "long_context"
    assert model.steps == ["rag", "rag", "long_context"]  # the second is the wider look
    wide = model.calls[1].prompt
    assert wide.count("Paragraph") >= 8
    numbers = [int(line.split()[1]) for line in wide.splitlines() if line.startswith("Paragraph")]
    assert numbers == sorted(numbers)
    assert [document.page_content for document in result["context"]] == [ours]


@far_apart
@pytest.mark.parametrize("kind", KINDS)
async def test_a_policy_reads_behind_the_wall_of_a_tenant_and_once(kind: str, mode: str) -> None:
    ours, theirs = text_of("ours"), text_of("theirs")
    chunks = [*chunks_of(ours, source="report", tenant="ours"), *chunks_of(theirs, source="report", tenant="theirs")]
    read: list[Any] = []

    def noting(case: Case) -> bool:
        read.extend(case.documents())
        return True

    model = ScriptedModel(draft=("unanswerable",), final=LOOKED, marker="Read the fol")
    wall = holding(kind, tenant="ours")
    store = store_with(kind, chunks)
    chain = SelfRouteChain.from_vectorstore(store, model, k=3, filter=wall, escalation=noting)
    result = await ask(chain, QUESTION, mode)
    assert [document.page_content for document in read] == [ours]
    assert [document.page_content for document in result["context"]] == [ours]


async def test_a_wider_look_is_skipped_once_the_documents_are_known_to_be_short() -> None:
    store = store_with("memory", chunks_of(text_of("ours", 12), source="report"))
    model = ScriptedModel(draft=("unanswerable",), final=LOOKED, marker="Read the fol")
    chain = SelfRouteChain.from_vectorstore(store, model, k=2, widen=8)
    for steps in (["rag", "rag", "long_context"], ["rag", "long_context"]):
        model.calls.clear()
        await ask(chain, QUESTION, "invoke")
        assert model.steps == steps


@far_apart
async def test_a_wider_look_reads_as_many_passages_as_fit(mode: str) -> None:
    passages = [Document(f"{place} " + "word " * 60, metadata={"start_index": place}) for place in range(40)]
    passages[0] = Document("A vote was taken.", metadata={"start_index": 99})
    retriever = ListRetriever(passages=passages[::-1], k=2)
    model = ScriptedModel(draft=("unanswerable",), final=LOOKED, profile={"max_input_tokens": 2000})
    chain = steered_chain(
        WIDER, llm=model, retriever=retriever, widen=40, documents=LONG_DOCUMENTS * 20, max_context_tokens=100_000
    )
    result = await ask(chain, QUESTION, mode)
    wide = model.calls[1].prompt
    assert 2 < wide.count("word word") // 59 <= 20
    assert len(wide) < 2000 * 5
    assert result["route"] == "long_context"
    model.profile = {"max_input_tokens": 300}  # where not even the passages of the draft fit
    model.calls.clear()
    await ask(chain, QUESTION, mode)
    assert model.steps == ["rag", "long_context"]


@far_apart
async def test_a_wider_look_that_is_too_long_reads_fewer_passages(mode: str) -> None:
    error = ValueError("prompt is too long: 640 tokens > 400 maximum")
    replies = iter([("unanswerable",), LOOKED])
    chain = steered_chain(WIDER, failures={"wider": [error]}, draft=lambda _: next(replies))
    result = await ask(chain, QUESTION, mode)
    assert result["route"] == "wider"
    assert len(result["context"]) < len(WIDE_IN_ORDER)


def test_the_graph_shows_a_wider_look_and_where_a_question_starts() -> None:
    def edges(**fields: Any) -> set[tuple[str, str]]:
        graph = a_chain(**fields).get_graph()
        names = {id_: node.name for id_, node in graph.nodes.items()}
        ends = {graph.first_node().id: "start", graph.last_node().id: "end"}  # type: ignore[union-attr]
        names |= ends
        return {(names[edge.source], names[edge.target]) for edge in graph.edges}

    tail = {("read_documents", "long_context"), ("long_context", "end")}
    plain = {("start", "retrieve"), ("retrieve", "rag"), ("rag", "end"), ("rag", "read_documents"), *tail}
    wide = {("rag", "retrieve_wider"), ("retrieve_wider", "wider"), ("wider", "end"), ("wider", "read_documents")}
    assert edges() == plain
    assert edges(widen=4) == (plain | wide) - {("rag", "read_documents")}
    assert edges(start="long_context", widen=4) == {("start", "retrieve"), ("retrieve", "read_documents"), *tail}
    assert edges(start=lambda _: "rag") == plain | {("retrieve", "read_documents")}
    assert a_chain(widen=4).get_graph().draw_mermaid()


ALL_OPTIONS: dict[str, Any] = {
    "answerability": "graded",
    "doubt_below": 60,
    "stop_below": 10,
    "widen": 4,
    "start": "rag",
    "escalation": yes,
}
REMADE: dict[str, Callable[[Any], Any]] = {
    "copied": copy.copy,
    "copied deeply": copy.deepcopy,
    "pickled": lambda chain: pickle.loads(pickle.dumps(chain)),  # noqa: S301 - our own
    "model_copied": lambda chain: chain.model_copy(),
    "configured": lambda chain: chain.configurable_fields(doubt_below=ConfigurableField(id="doubt")),
    "with a config": lambda chain: chain.with_config(tags=["mine"]),
}


@pytest.mark.parametrize("how", REMADE)
async def test_a_chain_that_was_made_again_has_all_options(how: str) -> None:
    chain = SelfRouteChain(
        retriever=InMemoryVectorStore(EMBEDDING).as_retriever(),
        llm=FakeListChatModel(responses=["80 55\nMr Lin", "unanswerable"]),
        documents=[Document("The whole.")],
        **ALL_OPTIONS,
    )
    chain.retriever.vectorstore.add_documents([Document("A passage.")])  # type: ignore[attr-defined]
    result = await ask(REMADE[how](chain), QUESTION, "invoke")
    assert (result["decision"]["signal"], result["decision"]["ruling"]["by"]) == ("doubt", "yes")


def test_a_chain_with_a_budget_of_the_day_says_why_it_is_not_pickled() -> None:
    chain = a_chain(escalation=Budget(tokens=1000, per="day"))
    with pytest.raises(TypeError, match="build the chain in each process"):
        pickle.dumps(chain)


@far_apart
async def test_bounds_are_set_by_the_config_of_a_call(mode: str) -> None:
    chain = steered_chain(BY_NAME["a doubt in one piece"]).configurable_fields(
        doubt_below=ConfigurableField(id="doubt"), stop_below=ConfigurableField(id="stop")
    )
    for doubt, route in ((40, "rag"), (50, "long_context")):
        result = await ask(chain, QUESTION, mode, {"configurable": {"doubt": doubt}})
        assert result["route"] == route
    with pytest.raises(ConfigurationError, match="doubt_below must be a whole number from 0 to 100"):
        await ask(chain, QUESTION, mode, {"configurable": {"doubt": 101}})


OWN = "From {context} answer {input} or write {refusal}."
ASKING = "Two numbers from 0 to 100 first. " + OWN
PROMPTS: dict[str, Callable[[str], Any]] = {
    "text": PromptTemplate.from_template,
    "chat": ChatPromptTemplate.from_template,
    "chat with a history": lambda text: ChatPromptTemplate([MessagesPlaceholder("chat_history"), ("human", text)]),
    "configurable": lambda text: PromptTemplate.from_template(text).configurable_fields(
        template=ConfigurableField(id="template")
    ),
}


@pytest.mark.parametrize("name", PROMPTS)
def test_a_prompt_that_asks_for_no_numbers_is_refused_where_they_are_needed(name: str) -> None:
    with pytest.raises(ConfigurationError, match="rag_prompt that asks for two numbers from 0 to 100"):
        a_chain(rag_prompt=PROMPTS[name](OWN), **GRADED)
    assert a_chain(rag_prompt=PROMPTS[name](ASKING), **GRADED)
    assert a_chain(rag_prompt=PROMPTS[name](OWN))
    assert a_chain(rag_prompt=PROMPTS[name](OWN), answerability="structured", llm=_Reporting(), doubt_below=50)


class _Reporting(ScriptedModel):
    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self.bind(tools=tools, **options)


@every_mode
async def test_only_the_steps_that_read_passages_are_asked_for_numbers(mode: str) -> None:
    chain = steered_chain(BY_NAME["a doubt that a wider look shares"])
    await ask(chain, QUESTION, mode)
    assert ["two numbers from 0 to 100" in call.prompt for call in chain.llm.calls] == [True, True, False]
    graded, final = chain.get_prompts()
    assert "from 0 to 100" in str(graded)
    assert "from 0 to 100" not in str(final)
    assert prompts.GRADED.replace("{question}", "{input}") == graded.messages[-1].prompt.template  # type: ignore[attr-defined]


async def test_a_steered_chain_composes() -> None:
    chain = steered_chain(BY_NAME["a doubt that is refused"])
    assert chain.pick("answer").invoke(QUESTION) == BY_NAME["a doubt that is refused"].answer
    assert (chain | RunnableLambda(lambda out: out["answer"]) | StrOutputParser()).invoke(QUESTION)
    assert "".join(chain.pick("answer").stream(QUESTION)) == BY_NAME["a doubt that is refused"].answer
    tool = steered_chain(WIDER).as_tool(name="look", description="Look.")
    assert '"route": "wider"' in str(tool.invoke({"input": QUESTION})).replace("'", '"')
    assert steered_chain(WIDER, escalation=Never(), wider=None).invoke(QUESTION)["route"] == "rag"
