"""The options of a chain, however it is copied, configured, drawn and composed."""

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
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_parts import FAR_APART, MODES, QUESTION, ScriptedModel, a_chain, ask, steered_chain
from langchain_selfroute import SelfRouteChain
from langchain_stores import EMBEDDING
from selfroute import prompts
from selfroute.errors import ConfigurationError
from selfroute.policies import Budget, Never
from steering import BY_NAME, GRADED, yes

every_mode = pytest.mark.parametrize("mode", MODES)
far_apart = pytest.mark.parametrize("mode", FAR_APART)
SECTIONS = BY_NAME["sections that answer"]


def test_the_graph_shows_sections_and_where_a_question_starts() -> None:
    def edges(**fields: Any) -> set[tuple[str, str]]:
        graph = a_chain(**fields).get_graph()
        names = {id_: node.name for id_, node in graph.nodes.items()}
        ends = {graph.first_node().id: "start", graph.last_node().id: "end"}  # type: ignore[union-attr]
        names |= ends
        return {(names[edge.source], names[edge.target]) for edge in graph.edges}

    tail = {("read_documents", "long_context"), ("long_context", "end")}
    plain = {("start", "retrieve"), ("retrieve", "rag"), ("rag", "end"), ("rag", "read_documents"), *tail}
    through = {
        ("read_documents", "sections"),
        ("sections", "end"),
        ("sections", "long_context"),
        ("long_context", "end"),
    }
    assert edges() == plain
    assert edges(sections=4) == (plain - tail) | through
    assert edges(sections=(4, 9)) == edges(sections=4)
    assert edges(sections=4, max_documents=0) == (plain - tail) | {("read_documents", "sections"), ("sections", "end")}
    assert edges(max_documents=0) == {("start", "retrieve"), ("retrieve", "rag"), ("rag", "end")}
    assert edges(start="long_context", sections=4) == {("start", "retrieve"), ("retrieve", "read_documents"), *tail}
    assert edges(start=lambda _: "rag") == plain | {("retrieve", "read_documents")}
    assert a_chain(sections=4).get_graph().draw_mermaid()


ALL_OPTIONS: dict[str, Any] = {
    "answerability": "graded",
    "doubt_below": 60,
    "stop_below": 10,
    "sections": 4_000,
    "draft_passages": 3,
    "max_documents": 1,
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
async def test_each_step_is_asked_for_its_numbers_alone(mode: str) -> None:
    chain = steered_chain(BY_NAME["a doubt that sections share"])
    await ask(chain, QUESTION, mode)
    assert ["two numbers from 0 to 100" in call.prompt for call in chain.llm.calls] == [True, False, False]
    assert ["write a number from 0 to 100" in call.prompt for call in chain.llm.calls] == [False, True, False]
    graded, final = chain.get_prompts()
    assert "from 0 to 100" in str(graded)
    assert "from 0 to 100" not in str(final)
    assert prompts.GRADED.replace("{question}", "{input}") == graded.messages[-1].prompt.template  # type: ignore[attr-defined]


async def test_a_steered_chain_composes() -> None:
    chain = steered_chain(BY_NAME["a doubt that is refused"])
    assert chain.pick("answer").invoke(QUESTION) == BY_NAME["a doubt that is refused"].answer
    assert (chain | RunnableLambda(lambda out: out["answer"]) | StrOutputParser()).invoke(QUESTION)
    assert "".join(chain.pick("answer").stream(QUESTION)) == BY_NAME["a doubt that is refused"].answer
    tool = steered_chain(SECTIONS).as_tool(name="look", description="Look.")
    assert '"route": "sections"' in str(tool.invoke({"input": QUESTION})).replace("'", '"')
    assert steered_chain(SECTIONS, escalation=Never(), looks=()).invoke(QUESTION)["route"] == "rag"
