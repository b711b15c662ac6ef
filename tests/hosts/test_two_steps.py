"""Both hosts: the two steps of a question, asked for apart, come to what one call comes to."""

from __future__ import annotations

import asyncio
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from llama_index.core import PromptTemplate, QueryBundle
from llama_index.core.schema import NodeWithScore, TextNode

import llamaindex_parts
from both_parts import HOSTS, Pipeline, Text, each_host, everywhere, is_langchain, ledger_of, listening, pipeline
from langchain_parts import TreeTracer, a_chain
from langchain_selfroute import SelfRouteChain
from langchain_stores import chunks_of, holding, store_with
from llamaindex_parts import an_engine
from scenarios import DECLINED, PLAIN, QUESTION, Scenario
from selfroute.calls.first_step import plain
from selfroute.errors import DocumentNotFoundError, InputError, NoReplyError
from selfroute.policies import Never
from steering import BY_NAME
from structured_parts import Calling, Reporting
from two_steps_parts import ALL, Row, asking, told

SUPPORT = Path(__file__).parents[1] / "support"


async def in_two(make: Callable[[], Pipeline]) -> None:
    """Hold what two steps come to against what one call comes to."""
    first, second, at_once = make(), make(), make()
    row = json.loads(json.dumps(await first.first_step()))
    found, expected = await second.second_step(row), await at_once.ask()
    assert [call.prompt for call in first.model.calls] + found.prompts == expected.prompts
    assert told(found) == told(expected)


@everywhere
@pytest.mark.parametrize("scenario", ALL.values(), ids=str)
async def test_two_steps_come_to_what_one_call_comes_to(scenario: Scenario, where: str) -> None:
    whole = await asking(HOSTS[not is_langchain(where)], scenario).ask()
    one, other = asking(where, scenario), asking(where, scenario)
    row = await one.first_step()
    assert json.loads(json.dumps(row)) == row
    assert {*one.model.steps} <= {"rag"}
    found, expected = await other.second_step(row), told(whole)
    assert [call.prompt for call in one.model.calls] + found.prompts == whole.prompts
    came = told(found)
    if where.endswith("stream") and came["usage"]["estimated"]:
        del expected["usage"], came["usage"]  # sections that were hung up on
    assert came == expected
    if row["done"]:
        kept = ("answer", "route", "answerable", "decision", "finish_reason", "usage")
        assert ([row[key] for key in kept], found.calls) == ([whole.told[key] for key in kept], [])
    else:
        assert (row["answer"], row["route"], row["answerable"], "citations" in row) == ("", None, None, False)


@pytest.mark.matrix
def test_the_second_step_may_run_in_another_process() -> None:
    async def steps() -> tuple[list[str], list[Any]]:
        lines, expected = [], []
        for where in HOSTS:
            for name, scenario in ALL.items():
                one = asking(where, scenario)
                row, whole = await one.first_step(), await asking(where, scenario).ask()
                lines.append(json.dumps([where, name, row]))
                expected.append([told(whole), whole.prompts[len(one.model.calls) :]])
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
    assert len(found) == len(lines)
    for line, came, right in zip(lines, found, expected, strict=True):
        assert came == right, line[:100]


@each_host
async def test_a_row_says_by_which_documents_to_group(where: str) -> None:
    names = ("May", "June", "May", None)
    row = await pipeline(where, passages=[Text(f"{n}", name) for n, name in enumerate(names)]).first_step()
    assert (row["sources"][:2], row["done"]) == (["May", "June"], False)
    assert len(row["sources"]) == (2 if is_langchain(where) else 3)  # a node of no document stands for itself


@each_host
async def test_documents_are_read_behind_the_retriever_of_what_goes_on_whatever_a_row_says(where: str) -> None:
    asked: list[Any] = []
    one = pipeline(where, documents=lambda *given: asked.append(given) or [])
    question: Any = {"input": QUESTION, "tenant": "a"} if is_langchain(where) else QUESTION
    await one.second_step({**await one.first_step(question), "sources": ["somebody else's"]})
    (given,) = asked
    if is_langchain(where):
        assert (given[0]["tenant"], len(given[0]["retrieved"])) == ("a", 2)
    else:
        assert (len(given[0]), given[1].query_str) == (2, QUESTION)


def test_a_chain_keeps_its_other_inputs() -> None:
    history = [HumanMessage("Hello"), AIMessage("Hello!")]
    given = {"input": QUESTION, "chat_history": history, "tier": {"name": "gold", "n": 3}}
    row = json.loads(json.dumps(a_chain().first_step.invoke(given)))
    chain = a_chain()
    result = chain.second_step.invoke(row)
    assert {key: result[key] for key in given} == given
    assert [message.text for message in chain.llm.calls[0].messages][:2] == ["Hello", "Hello!"]


def test_an_engine_keeps_what_its_query_is_embedded_as_and_a_synthesizer_its_variables() -> None:
    row = an_engine().first_step(QueryBundle(QUESTION, custom_embedding_strs=["chair"], embedding=[0.5]))
    assert row["inputs"] == {"custom_embedding_strs": ["chair"], "words": {}}
    prompt = PromptTemplate("{context_str} {query_str} In {language}: {refusal}")
    synthesizer = an_engine(long_context_prompt=prompt, rag_prompt=prompt)._response_synthesizer
    row = synthesizer.first_step(QUESTION, llamaindex_parts.PASSAGES, language="Greek")
    synthesizer.second_step(json.loads(json.dumps(row)))
    assert ["In Greek" in call.prompt for call in synthesizer.llm.calls] == [True, True]


@pytest.mark.parametrize(
    "odd", [object(), {1, 2}, b"bytes", math.nan], ids=["an object", "a set", "bytes", "no number"]
)
def test_what_no_row_can_keep_is_refused_before_it_is_paid_for(odd: Any) -> None:
    chain, synthesizer = a_chain(), an_engine()._response_synthesizer
    with pytest.raises(InputError, match="tier is not"):
        chain.first_step.invoke({"input": QUESTION, "tier": odd})
    with pytest.raises(InputError, match="language is not"):
        synthesizer.first_step(QUESTION, llamaindex_parts.PASSAGES, language=odd)
    assert chain.llm.calls == synthesizer.llm.calls == []


async def test_what_json_has_no_words_for_becomes_text_and_costs_no_draft() -> None:
    within: dict[str, Any] = {"a": 1}
    within["itself"] = within
    assert plain({("May", 1): [date(2024, 5, 1)], "n": 2}) == {"('May', 1)": ["2024-05-01"], "n": 2}
    json.dumps(plain([within]))
    odd: dict[Any, Any] = {"day": date(2024, 5, 1), "path": Path("a/b"), "set": {1}, "n": float("nan")}
    row = await pipeline(HOSTS[0], passages=[Text("a", metadata={**odd, "source": ["May", 1]})] * 2).first_step()
    assert row["sources"] == [["May", 1]]
    expected = {"day": "2024-05-01", "source": ["May", 1], "path": "a/b", "set": "{1}", "n": None}
    assert a_chain().second_step.invoke(row)["retrieved"][0].metadata == expected
    nodes = [NodeWithScore(node=TextNode(text="a", metadata=odd, embedding=[0.5]), score=0.5)]
    row = an_engine(retriever=llamaindex_parts.ListRetriever(nodes)).first_step(QUESTION)
    assert an_engine().second_step(row).metadata["retrieved"] == [nodes[0].node.node_id]
    assert "0.5]" not in json.dumps(row)  # no embedding is kept


NO_ROWS: dict[str, Callable[[Row], Any]] = {
    "a question": lambda _: QUESTION,
    "nothing": lambda _: {},
    "a result of the chain": lambda row: {key: row[key] for key in row if key != "first_step"},
    "no usage": lambda row: {key: row[key] for key in row if key != "usage"},
    "a passage that is not there": lambda row: {**row, "first_step": {**row["first_step"], "passages": [7]}},
    "a list": lambda row: [row],
}


@each_host
@pytest.mark.parametrize("name", NO_ROWS)
async def test_the_second_step_refuses_what_is_no_row(name: str, where: str) -> None:
    row = await asking(where, DECLINED).first_step()
    with pytest.raises(InputError, match="rows that first_step returned"):
        await asking(where, DECLINED).second_step(NO_ROWS[name](row))


@each_host
async def test_a_draft_that_was_asked_for_in_another_way_or_without_a_reply_is_refused(where: str) -> None:
    row = await asking(where, BY_NAME["a doubt in one piece"]).first_step()
    with pytest.raises(InputError, match="answerability='graded'"):
        await asking(where, DECLINED).second_step(row)
    with pytest.raises(NoReplyError):
        await asking(where, Scenario("x", ("",), None, "", "rag", "answered", ends={"rag": "length"})).first_step()


@each_host
async def test_a_question_is_in_the_ledger_once_and_each_call_is(where: str) -> None:
    """Also where both steps have a ledger of their own."""
    keys = ("queries", "routes", "declined", "doubted", "stopped", "unanswerable", "failed", "tokens", "savings")
    for scenario in (PLAIN, DECLINED, BY_NAME["a doubt that is refused"], BY_NAME["sections that are granted"]):
        expected, used = await _figures(where, scenario, halves=False)
        for ledgers in (1, 2):
            figures, usage = await _figures(where, scenario, halves=True, ledgers=ledgers)
            assert usage == used
            for key in keys:
                assert figures[key] == expected[key], (scenario.name, key, ledgers)


async def _figures(where: str, scenario: Scenario, *, halves: bool, ledgers: int = 1) -> tuple[Any, Any]:
    """The figures of one ledger, or the sums of those of the two steps; and the usage of the question."""
    kept, one = [ledger_of(where) for _ in range(ledgers)], asking(where, scenario)
    with listening(kept[0], one):
        found: Any = await one.first_step() if halves else await one.ask()
    if halves:
        one = asking(where, scenario)
        with listening(kept[-1], one):
            found = await one.second_step(found)
    return _added([ledger.to_dict() for ledger in kept]), found.usage


def _added(figures: list[Row]) -> Row:
    def add(left: Any, right: Any) -> Any:
        if isinstance(left, dict) or isinstance(right, dict):
            left, right = left or {}, right or {}
            return {key: add(left.get(key), right.get(key)) for key in sorted({*left, *right})}
        return right if left is None else left if right is None else left + right

    return figures[0] if len(figures) == 1 else add(*figures)  # type: ignore[no-any-return]


def test_the_steps_of_a_chain_are_runnables_with_names_inputs_and_runs() -> None:
    chain = a_chain()
    assert (chain.first_step | chain.second_step).invoke(QUESTION) == a_chain().invoke(QUESTION)
    tracer = TreeTracer()
    chain.first_step.batch([QUESTION, QUESTION], {"callbacks": [tracer]})
    assert [run.name for run in tracer.roots] == ["SelfRouteFirstStep"] * 2
    assert chain.first_step.with_config(run_name="drafts").invoke(QUESTION)["done"] is False


@each_host
async def test_a_policy_is_asked_in_the_second_step_alone(where: str) -> None:
    row = await pipeline(where, escalation=Never()).first_step()
    assert (row["done"], row["decision"]["ruling"]) == (False, None)
    found = await pipeline(where, escalation=Never()).second_step(row)
    assert (found.route, found.answer, found.calls) == ("rag", "unanswerable", [])
    assert found.decision["ruling"]["by"] == "never"


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


@each_host
@pytest.mark.parametrize("name", REPORTS)
async def test_a_report_goes_on_as_a_text_does(name: str, where: str) -> None:
    draft, final = [(json.dumps(one),) if one else None for one in REPORTS[name]]
    kind: Any = Reporting if is_langchain(where) else Calling
    options = {"answerability": "structured", "doubt_below": 50, "citations": True}
    await in_two(lambda: pipeline(where, llm=kind(draft=draft, final=final, usage=True), **options))


@each_host
async def test_a_draft_that_was_too_long_is_not_sent_again(where: str) -> None:
    too_long = ValueError("This model's maximum context length is 16 tokens. However, you requested 40 tokens.")
    await in_two(lambda: pipeline(where, failures={"rag": [too_long]}, usage=True, citations=True))


def test_a_row_of_one_tenant_reads_nothing_behind_the_filter_of_another() -> None:
    store = store_with("memory", [chunk for who in "ab" for chunk in chunks_of(f"Of {who}.", source=who, tenant=who)])

    def chain_of(who: str) -> SelfRouteChain:
        return SelfRouteChain.from_vectorstore(store, a_chain(marker="Read").llm, filter=holding("memory", tenant=who))

    row = chain_of("a").first_step.invoke(QUESTION)
    with pytest.raises(DocumentNotFoundError, match="that the filter lets through"):
        chain_of("b").second_step.invoke(row)
    assert chain_of("a").second_step.invoke(row)["context"][0].page_content == "Of a."
