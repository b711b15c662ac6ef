"""The scenarios of what steers a question, through LangChain, in all modes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes import examples
from langchain_parts import (
    MODES,
    QUESTION,
    STREAMS,
    ListRetriever,
    TreeTracer,
    ask,
    chunks,
    outline,
    steered_chain,
)
from scenarios import cut, text_of
from selfroute.errors import InputError
from steering import BY_NAME, STEERED, Steered

STEPS = ("rag", "sections", "long_context")
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
        "sections that answer",
        "sections that decline",
        "a second reading that declines",
        "doubted sections that are kept as the documents are refused",
        "a question that starts with the documents",
    )
]
one_of_each = pytest.mark.parametrize("scenario", ONE_OF_EACH, ids=str)


def check(scenario: Steered, result: dict[str, Any]) -> None:
    """Hold a result against its scenario."""
    scenario.check((result["answer"], result["route"], result["answerable"]), result["decision"])
    assert [document.page_content for document in result["retrieved"]] == scenario.found
    scenario.check_read([document.page_content for document in result["context"]])
    usage = result["usage"]
    assert [step for step in STEPS if usage[step]] == list(dict.fromkeys(scenario.steps))
    steps = [usage[step] for step in STEPS if usage[step]]
    assert usage["total_tokens"] == sum(step["input_tokens"] + step["output_tokens"] for step in steps)


@every_mode
@every_scenario
async def test_a_scenario_ends_as_the_table_says(scenario: Steered, mode: str) -> None:
    chain = steered_chain(scenario)
    check(scenario, await ask(chain, QUESTION, mode))
    assert chain.llm.steps == scenario.steps
    assert len(chain.retriever.queries) == 1


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
async def test_each_reading_of_sections_shows_as_a_step_of_its_own(mode: str) -> None:
    tracer = TreeTracer()
    await ask(steered_chain(BY_NAME["a second reading that declines"]), QUESTION, mode, {"callbacks": [tracer]})
    reads = "read_documents"
    assert outline(tracer.root) == {
        "SelfRouteChain": ["retrieve", "rag", reads, "sections", reads, "sections", reads, "long_context"]
    }
    runs = [run for run in tracer.root.children if run.name == "sections"]
    assert [run.tags for run in runs] == [["selfroute:sections"]] * 2
    assert [data["route"] for _, data in tracer.events] == ["sections", "sections", "long_context"]
    (first, *_) = [run for run in tracer.root.children if run.name == reads]
    assert [one["method"] for one in first.outputs["documents"]] == ["sections"] * len(first.outputs["documents"])
    assert QUESTION not in str(first.outputs)


@every_mode
async def test_sections_that_are_skipped_show_as_no_step(mode: str) -> None:
    tracer = TreeTracer()
    scenario = BY_NAME["sections that would be most of the documents"]
    await ask(steered_chain(scenario), QUESTION, mode, {"callbacks": [tracer]})
    assert outline(tracer.root) == {
        "SelfRouteChain": ["retrieve", "rag", "read_documents", "read_documents", "long_context"]
    }
    assert [data["route"] for _, data in tracer.events] == ["long_context"]


@examples(60)
@given(scenario=st.sampled_from(STEERED), cuts=st.lists(st.integers(0, 60), max_size=12))
def test_the_outcome_does_not_depend_on_where_a_reply_is_cut(scenario: Steered, cuts: list[int]) -> None:
    said = {"draft": scenario.draft, "final": scenario.final}
    replies: dict[str, Any] = {name: pieces and cut(text_of(pieces), cuts) for name, pieces in said.items()}
    replies["looks"] = [cut(text_of(pieces), cuts) for pieces in scenario.looks]
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
