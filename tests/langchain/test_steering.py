"""The scenarios of what steers a question, through LangChain, in all modes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes import examples
from langchain_parts import (
    FAR_APART,
    MODES,
    PASSAGES,
    QUESTION,
    STREAMS,
    WIDE_PASSAGES,
    ListRetriever,
    TreeTracer,
    ask,
    chunks,
    outline,
    steered_chain,
)
from langchain_selfroute import SelfRouteChain
from scenarios import cut, text_of
from selfroute.errors import InputError
from steering import BY_NAME, STEERED, Steered

every_scenario = pytest.mark.parametrize("scenario", STEERED, ids=str)
every_mode = pytest.mark.parametrize("mode", MODES)
every_stream = pytest.mark.parametrize("mode", STREAMS)
ONE_OF_EACH = [
    BY_NAME[name]
    for name in (
        "a sure answer",
        "a doubt in single characters 80 42",
        "a hopeless decline",
        "a doubt that is refused",
        "a decline that is refused",
        "a wider look that answers",
        "a wider look that declines",
        "a doubted wider look that is taken after all",
        "a question that starts with the documents",
    )
]
one_of_each = pytest.mark.parametrize("scenario", ONE_OF_EACH, ids=str)


def check(scenario: Steered, result: dict[str, Any]) -> None:
    """Hold a result against its scenario."""
    scenario.check((result["answer"], result["route"], result["answerable"]), result["decision"])
    assert [document.page_content for document in result["retrieved"]] == scenario.found
    assert [document.page_content for document in result["context"]] == scenario.read
    usage = result["usage"]
    assert [step for step in ("rag", "wider", "long_context") if usage[step]] == scenario.steps
    steps = [usage[step] for step in scenario.steps]
    assert usage["total_tokens"] == sum(step["input_tokens"] + step["output_tokens"] for step in steps)


@every_mode
@every_scenario
async def test_a_scenario_ends_as_the_table_says(scenario: Steered, mode: str) -> None:
    chain = steered_chain(scenario)
    check(scenario, await ask(chain, QUESTION, mode))
    assert chain.llm.steps == scenario.steps


@one_of_each
async def test_a_batch_ends_as_the_table_says(scenario: Steered) -> None:
    chain = steered_chain(scenario)
    for result in [*chain.batch([QUESTION, {"input": QUESTION}]), *await chain.abatch([QUESTION])]:
        check(scenario, result)


@one_of_each
async def test_events_end_as_the_table_says_and_name_the_steps(scenario: Steered) -> None:
    events = [event async for event in steered_chain(scenario).astream_events(QUESTION)]
    output = events[-1]["data"]["output"]  # it holds no text of whole documents
    scenario.check((output["answer"], output["route"], output["answerable"]), output["decision"])
    assert len(output["context"]) == len(scenario.read)
    asked = [event for event in events if event["event"] == "on_chat_model_start"]
    assert [event["name"] for event in asked] == scenario.steps
    assert all(f"selfroute:{event['name']}" in event["tags"] for event in asked)
    decisions = [event["data"] for event in events if event["event"] == "on_custom_event"]
    assert decisions[-1]["route"] == scenario.route
    assert decisions[-1]["decision"] == output["decision"]


@every_stream
@one_of_each
async def test_only_the_answer_comes_in_pieces(scenario: Steered, mode: str) -> None:
    seen = await chunks(steered_chain(scenario), {"input": QUESTION, "tier": "gold"}, mode)
    keys = [key for chunk in seen for key in chunk]
    pieces = keys.count("answer")
    first = ["input", "tier", "retrieved", "context", "route"]
    assert keys == [*first, *["answer"] * pieces, "answerable", "finish_reason", "decision", "usage"]
    assert all(chunk["answer"] for chunk in seen if "answer" in chunk)


@every_mode
async def test_a_wider_look_shows_as_a_step_of_its_own(mode: str) -> None:
    tracer = TreeTracer()
    await ask(steered_chain(BY_NAME["a wider look that declines"]), QUESTION, mode, {"callbacks": [tracer]})
    assert outline(tracer.root) == {
        "SelfRouteChain": ["retrieve", "rag", "retrieve_wider", "wider", "read_documents", "long_context"]
    }
    assert [run.tags for run in tracer.root.children if run.name == "wider"] == [["selfroute:wider"]]
    assert [data["route"] for _, data in tracer.events] == ["wider", "long_context"]


@examples(60)
@given(scenario=st.sampled_from(STEERED), cuts=st.lists(st.integers(0, 60), max_size=12))
def test_the_outcome_does_not_depend_on_where_a_reply_is_cut(scenario: Steered, cuts: list[int]) -> None:
    said = {"draft": scenario.draft, "wider": scenario.wider, "final": scenario.final}
    replies = {name: None if pieces is None else cut(text_of(pieces), cuts) for name, pieces in said.items()}
    for mode in STREAMS:
        check(scenario, asyncio.run(ask(steered_chain(scenario, **replies), QUESTION, mode)))


def never_asked(_: Any) -> Any:
    raise AssertionError


@every_mode
@pytest.mark.parametrize("question", ["", " \n", "\u200b", {"input": "\t"}], ids=ascii)
async def test_a_blank_question_asks_nobody(question: Any, mode: str) -> None:
    retriever = ListRetriever()
    chain = steered_chain(BY_NAME["a sure answer"], retriever=retriever, start=never_asked)
    with pytest.raises(InputError, match="blank"):
        await ask(chain, question, mode)
    assert (chain.llm.calls, retriever.queries) == ([], [])


@every_stream
async def test_a_doubted_draft_is_hung_up_on_as_soon_as_text_follows_its_numbers(mode: str) -> None:
    chain = steered_chain(BY_NAME["a doubt in single characters 80 42"])
    result = await ask(chain, QUESTION, mode)
    draft, _ = chain.llm.calls
    assert (draft.ended, draft.emitted) == ("closed", len("80 42\nM"))
    assert result["usage"]["estimated"]
    assert 0 < result["usage"]["rag"]["output_tokens"] <= 7


def retrieved(chain: SelfRouteChain) -> int:
    return len(chain.retriever.queries)


@pytest.mark.parametrize("mode", FAR_APART)
async def test_one_wider_retrieval_and_no_more(mode: str) -> None:
    for name, times in (("a wider look that declines", 2), ("an answer that needs no wider look", 1)):
        chain = steered_chain(BY_NAME[name])
        await ask(chain, QUESTION, mode)
        assert retrieved(chain) == times
    assert len(WIDE_PASSAGES) > len(PASSAGES)
