"""Both frameworks: the two steps of a question, asked for apart, come to what one call comes to."""

from __future__ import annotations

import asyncio
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import PromptTemplate, QueryBundle
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.schema import NodeWithScore, TextNode

import langchain_parts
import langchain_selfroute
import llamaindex_parts
import llamaindex_selfroute
from langchain_parts import a_chain
from langchain_selfroute import SelfRouteChain
from llamaindex_parts import an_engine, model_of
from scenarios import DECLINED, PLAIN, QUESTION, Scenario
from selfroute.calls.first_step import plain
from selfroute.errors import DocumentNotFoundError, InputError, NoReplyError
from selfroute.policies import Never
from steering import BY_NAME
from structured_parts import Calling, Reporting
from two_steps_parts import ALL, Told, chain_of, engine_of, first, second, whole

MODES = {"langchain": langchain_parts.MODES, "llamaindex": llamaindex_parts.MODES}
EVERYWHERE = [(framework, mode) for framework, modes in MODES.items() for mode in modes]
both = pytest.mark.parametrize("framework", MODES)
SUPPORT = Path(__file__).parents[1] / "support"


def prompts(*calls: list[Any]) -> list[str]:
    return [call.prompt for some in calls for call in some]


@pytest.mark.parametrize(("framework", "mode"), EVERYWHERE)
@pytest.mark.parametrize("scenario", ALL.values(), ids=str)
async def test_two_steps_come_to_what_one_call_comes_to(scenario: Scenario, framework: str, mode: str) -> None:
    at_once = MODES[framework][0]
    expected, calls = await whole(framework, scenario, at_once)
    row, drafted = await first(framework, scenario, awaited=mode.startswith("a"))
    assert json.loads(json.dumps(row)) == row
    assert {call.step for call in drafted} <= {"rag"}
    told, others = await second(framework, scenario, row, mode)
    assert prompts(drafted, others) == prompts(calls)
    if mode.endswith("stream") and told["usage"]["estimated"]:
        del expected["usage"], told["usage"]  # sections that were hung up on
    assert told == expected
    if row["done"]:
        assert not others
        kept = ("answer", "route", "answerable", "decision", "finish_reason", "usage")
        assert {key: row[key] for key in kept} == {key: expected[key] for key in kept}
    else:
        assert (row["answer"], row["route"], row["answerable"]) == ("", None, None)
        assert "citations" not in row


@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.matrix)])
def test_the_second_step_may_run_in_another_process(every: int) -> None:
    scenarios = dict([*ALL.items()][::every])

    async def steps() -> tuple[list[str], list[Any]]:
        lines, expected = [], []
        for framework in MODES:
            for name, scenario in scenarios.items():
                row, drafted = await first(framework, scenario)
                told, calls = await whole(framework, scenario, MODES[framework][0])
                lines.append(json.dumps([framework, name, row]))
                expected.append([told, prompts(calls)[len(drafted) :]])
        return lines, expected

    lines, expected = asyncio.run(steps())
    other = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, str(SUPPORT / "two_steps_parts.py")],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    found = [json.loads(line) for line in other.stdout.splitlines()]
    assert len(found) == len(lines) == 2 * len(scenarios)
    for line, told, right in zip(lines, found, expected, strict=True):
        assert told == right, line[:100]


@both
async def test_a_row_says_by_which_documents_to_group(framework: str) -> None:
    texts = [("May", "a"), ("June", "b"), ("May", "c"), (None, "d")]
    if framework == "langchain":
        found = [Document(text, metadata={"source": name} if name else {}) for name, text in texts]
        row = a_chain(retriever=langchain_parts.ListRetriever(passages=found)).first_step.invoke(QUESTION)
        assert row["sources"] == ["May", "June"]
    else:
        nodes = [NodeWithScore(node=TextNode(id_=text, text=text)) for _, text in texts]
        row = an_engine(retriever=llamaindex_parts.ListRetriever(nodes)).first_step(QUESTION)
        assert row["sources"] == ["a", "b", "c", "d"]  # what belongs to no document stands for itself
    assert row["done"] is False


@both
async def test_a_filter_on_the_retriever_is_a_wall_for_the_second_step(framework: str) -> None:
    """Whatever a row says, documents are read behind the retriever of the chain that goes on."""
    asked: list[Any] = []
    if framework == "langchain":
        chain = a_chain(documents=lambda given: asked.append(given) or [])
        row = chain.first_step.invoke({"input": QUESTION, "tenant": "a"})
        chain.second_step.invoke({**row, "sources": ["somebody else's"]})
        assert [(given["tenant"], len(given["retrieved"])) for given in asked] == [("a", 2)]
    else:
        engine = an_engine(documents=lambda nodes, query: asked.append((nodes, query)) or [])
        engine.second_step({**engine.first_step(QUESTION), "sources": ["somebody else's"]})
        assert [(len(nodes), query.query_str) for nodes, query in asked] == [(2, QUESTION)]


def test_a_chain_keeps_its_other_inputs() -> None:
    history = [HumanMessage("Hello"), AIMessage("Hello!")]
    given = {"input": QUESTION, "chat_history": history, "tier": {"name": "gold", "n": 3}}
    row = json.loads(json.dumps(a_chain().first_step.invoke(given)))
    chain = a_chain()
    result = chain.second_step.invoke(row)
    assert {key: result[key] for key in given} == given
    assert [message.text for message in chain.llm.calls[0].messages][:2] == ["Hello", "Hello!"]


def test_an_engine_keeps_what_its_query_is_embedded_as_and_a_synthesizer_its_variables() -> None:
    engine = an_engine()
    row = engine.first_step(QueryBundle(QUESTION, custom_embedding_strs=["chair"], embedding=[0.5]))
    assert row["inputs"] == {"custom_embedding_strs": ["chair"], "words": {}}
    prompt = PromptTemplate("{context_str} {query_str} In {language}: {refusal}")
    synthesizer = an_engine(long_context_prompt=prompt, rag_prompt=prompt)._response_synthesizer
    row = synthesizer.first_step(QUESTION, llamaindex_parts.PASSAGES, language="Greek")
    synthesizer.second_step(json.loads(json.dumps(row)))
    assert all("In Greek" in call.prompt for call in synthesizer.llm.calls)
    assert len(synthesizer.llm.calls) == 2


@pytest.mark.parametrize(
    "odd", [object(), {1, 2}, b"bytes", math.nan], ids=["an object", "a set", "bytes", "no number"]
)
def test_what_no_row_can_keep_is_refused_before_it_is_paid_for(odd: Any) -> None:
    chain = a_chain()
    with pytest.raises(InputError, match="tier is not"):
        chain.first_step.invoke({"input": QUESTION, "tier": odd})
    assert chain.llm.calls == []
    engine = an_engine()
    with pytest.raises(InputError, match="language is not"):
        engine._response_synthesizer.first_step(QUESTION, llamaindex_parts.PASSAGES, language=odd)
    assert model_of(engine).calls == []


def test_what_json_has_no_words_for_costs_no_draft() -> None:
    within: dict[str, Any] = {"a": 1}
    within["itself"] = within
    assert plain({("May", 1): [date(2024, 5, 1)], "n": 2}) == {"('May', 1)": ["2024-05-01"], "n": 2}
    json.dumps(plain([within]))
    found = [Document("a", metadata={"source": ["May", 1]}), Document("b", metadata={"source": ["May", 1]})]
    row = a_chain(retriever=langchain_parts.ListRetriever(passages=found)).first_step.invoke(QUESTION)
    assert row["sources"] == [["May", 1]]


def test_metadata_that_are_no_json_become_text() -> None:
    odd: dict[Any, Any] = {"day": date(2024, 5, 1), "source": "May", "path": Path("a/b"), "set": {1}, "n": float("nan")}
    found = [Document("a", metadata=odd)]
    row = a_chain(retriever=langchain_parts.ListRetriever(passages=found)).first_step.invoke(QUESTION)
    expected = {"day": "2024-05-01", "source": "May", "path": "a/b", "set": "{1}", "n": None}
    assert a_chain().second_step.invoke(row)["retrieved"][0].metadata == expected
    nodes = [NodeWithScore(node=TextNode(text="a", metadata=odd, embedding=[0.5]), score=0.5)]
    told = an_engine(retriever=llamaindex_parts.ListRetriever(nodes)).first_step(QUESTION)
    assert an_engine().second_step(told).metadata["retrieved"] == [nodes[0].node.node_id]
    assert "0.5]" not in json.dumps(told)  # no embedding is kept


NO_ROWS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a question": lambda _: QUESTION,
    "nothing": lambda _: {},
    "a result of the chain": lambda row: {key: row[key] for key in row if key != "first_step"},
    "no usage": lambda row: {key: row[key] for key in row if key != "usage"},
    "a passage that is not there": lambda row: {**row, "first_step": {**row["first_step"], "passages": [7]}},
    "a list": lambda row: [row],
}


@both
@pytest.mark.parametrize("name", NO_ROWS)
async def test_the_second_step_refuses_what_is_no_row(name: str, framework: str) -> None:
    row, _ = await first(framework, DECLINED)
    with pytest.raises(InputError, match="rows that first_step returned"):
        await second(framework, DECLINED, NO_ROWS[name](row), MODES[framework][0])


@both
async def test_the_second_step_refuses_a_draft_that_was_asked_for_in_another_way(framework: str) -> None:
    row, _ = await first(framework, BY_NAME["a doubt in one piece"])
    with pytest.raises(InputError, match="answerability='graded'"):
        await second(framework, DECLINED, row, MODES[framework][0])


@both
async def test_a_blank_question_and_a_draft_without_a_reply_raise_in_the_first_step(framework: str) -> None:
    ask = a_chain().first_step.invoke if framework == "langchain" else an_engine().first_step
    with pytest.raises(InputError, match="blank"):
        ask(" ")
    scenario = Scenario("x", ("",), None, "", "rag", "answered", ends={"rag": "length"})
    with pytest.raises(NoReplyError):
        await first(framework, scenario)


@both
async def test_a_question_is_in_the_ledger_once_and_each_call_is(framework: str) -> None:
    """Also where the second step fails and is asked again, and where both steps have a ledger of their own."""
    for scenario in (PLAIN, DECLINED, BY_NAME["a doubt that is refused"], BY_NAME["sections that are granted"]):
        expected, used = await _figures(framework, scenario, halves=False)
        for ledgers in (1, 2):
            figures, usages = await _figures(framework, scenario, halves=True, ledgers=ledgers)
            assert usages == used
            for key in (
                "queries",
                "routes",
                "declined",
                "doubted",
                "stopped",
                "unanswerable",
                "failed",
                "tokens",
            ):
                assert figures[key] == expected[key], (scenario.name, key, ledgers)
            assert figures["savings"] == expected["savings"]


async def _figures(framework: str, scenario: Scenario, *, halves: bool, ledgers: int = 1) -> tuple[Any, Any]:
    """The figures of one ledger, or the sums of those of the two steps."""
    kind = langchain_selfroute.SelfRouteLedger if framework == "langchain" else llamaindex_selfroute.SelfRouteLedger
    kept = [kind() for _ in range(ledgers)]
    if framework == "langchain":
        if halves:
            row = chain_of(scenario).first_step.invoke(QUESTION, {"callbacks": [kept[0]]})
            result = chain_of(scenario).second_step.invoke(row, {"callbacks": [kept[-1]]})
        else:
            result = chain_of(scenario).invoke(QUESTION, {"callbacks": [kept[0]]})
        usage = result["usage"]
    else:
        with _handled_by(kept[0]):
            asked = engine_of(scenario).first_step(QUESTION) if halves else engine_of(scenario).query(QUESTION)
        with _handled_by(kept[-1]):
            asked = engine_of(scenario).second_step(asked) if halves else asked
        usage = asked.metadata["usage"]
    return _added([one.to_dict() for one in kept]), usage


@contextmanager
def _handled_by(ledger: Any) -> Iterator[None]:
    root = get_dispatcher()
    before = root.event_handlers
    root.event_handlers = [*before, ledger]
    try:
        yield
    finally:
        root.event_handlers = before


def _added(figures: list[Told]) -> Told:
    if len(figures) == 1:
        return figures[0]

    def add(left: Any, right: Any) -> Any:
        if isinstance(left, dict) or isinstance(right, dict):
            left, right = left or {}, right or {}
            return {key: add(left.get(key), right.get(key)) for key in sorted({*left, *right})}
        return right if left is None else left if right is None else left + right

    return add(*figures)  # type: ignore[no-any-return]


def test_the_steps_of_a_chain_are_runnables_with_names_inputs_and_runs_of_their_own() -> None:
    chain = a_chain()
    both_steps = chain.first_step | chain.second_step
    assert both_steps.invoke(QUESTION) == a_chain().invoke(QUESTION)
    tracer = langchain_parts.TreeTracer()
    chain.first_step.batch([QUESTION, QUESTION], {"callbacks": [tracer]})
    assert [run.name for run in tracer.roots] == ["SelfRouteFirstStep"] * 2
    assert chain.first_step.with_config(run_name="drafts").invoke(QUESTION)["done"] is False


def test_a_policy_is_asked_in_the_second_step_alone() -> None:
    row = a_chain(escalation=Never()).first_step.invoke(QUESTION)
    assert (row["done"], row["decision"]["ruling"]) == (False, None)
    chain = a_chain(escalation=Never())
    result = chain.second_step.invoke(row)
    assert (result["route"], result["answer"], chain.llm.calls) == ("rag", "unanswerable", [])
    assert result["decision"]["ruling"]["by"] == "never"


REPORTS = {
    "an answer": ({"answerable": True, "answer": "The meeting was long.", "quotes": ["The meeting was long."]}, None),
    "a decline": (
        {"answerable": False, "answer": "It does not say."},
        {"answerable": True, "answer": "Ms Okafor chaired it.", "quotes": ["Ms Okafor", "nobody"]},
    ),
    "a doubt": (
        {"prospect": 80, "confidence": 20, "answerable": True, "answer": "Mr Lin."},
        {"answerable": True, "answer": "Ms Okafor."},
    ),
}


@pytest.mark.parametrize("name", REPORTS)
@both
async def test_a_report_goes_on_as_a_text_does(framework: str, name: str) -> None:
    draft, final = [(json.dumps(one),) if one else None for one in REPORTS[name]]
    options = {"answerability": "structured", "doubt_below": 50, "citations": True}
    model = {"draft": draft, "final": final, "usage": True}
    if framework == "langchain":
        chains = [a_chain(llm=Reporting(**model), **options) for _ in range(3)]
        row = json.loads(json.dumps(chains[0].first_step.invoke(QUESTION)))
        assert chains[1].second_step.invoke(row) == chains[2].invoke(QUESTION)
    else:
        engines = [an_engine(llm=Calling(**model), **options) for _ in range(3)]
        row = json.loads(json.dumps(engines[0].first_step(QUESTION)))
        response, expected = engines[1].second_step(row), engines[2].query(QUESTION)
        assert (str(response), response.metadata) == (str(expected), expected.metadata)


@both
async def test_a_draft_that_was_too_long_is_not_sent_again(framework: str) -> None:
    too_long = ValueError("This model's maximum context length is 16 tokens. However, you requested 40 tokens.")
    model = {"draft": ("unanswerable",), "final": ("Ms Okafor.",), "failures": {"rag": [too_long]}, "usage": True}
    if framework == "langchain":
        chains = [a_chain(**model) for _ in range(3)]
        row = json.loads(json.dumps(chains[0].first_step.invoke(QUESTION)))
        assert chains[1].second_step.invoke(row) == chains[2].invoke(QUESTION)
        calls = [chain.llm.calls for chain in chains]
    else:
        engines = [an_engine(**model) for _ in range(3)]
        row = json.loads(json.dumps(engines[0].first_step(QUESTION)))
        response, expected = engines[1].second_step(row), engines[2].query(QUESTION)
        assert (str(response), response.metadata) == (str(expected), expected.metadata)
        calls = [model_of(engine).calls for engine in engines]
    assert prompts(calls[0], calls[1]) == prompts(calls[2])
    assert [call.step for call in calls[2]] == ["rag", "rag", "long_context"]


def test_a_row_of_one_tenant_reads_nothing_behind_the_filter_of_another() -> None:
    embeddings = DeterministicFakeEmbedding(size=4)
    texts = [Document(f"The whole minutes of {who}.", metadata={"source": who, "tenant": who}) for who in "ab"]
    store = InMemoryVectorStore.from_documents(texts, embeddings)

    def chain_of_tenant(who: str, reply: str) -> SelfRouteChain:
        model = FakeListChatModel(responses=[reply])
        return SelfRouteChain.from_vectorstore(store, model, filter=lambda one: one.metadata["tenant"] == who)

    row = chain_of_tenant("a", "unanswerable").first_step.invoke(QUESTION)
    with pytest.raises(DocumentNotFoundError, match="that the filter lets through"):
        chain_of_tenant("b", "Found.").second_step.invoke(row)
    assert chain_of_tenant("a", "Found.").second_step.invoke(row)["answer"] == "Found."
