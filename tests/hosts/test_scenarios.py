"""Both hosts, all modes: each scenario ends as its table says, with the same prompts, the same costs, and cited alike.

The parts of both hosts hold the same texts, and no metadata that a model would see, so both must send the same prompts;
then counts that are estimated from prompts and replies must be equal too, not only those that were reported.
"""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from both_parts import (
    COMPLETION,
    EVERY_MODEL,
    EVERYWHERE,
    LANGCHAIN,
    LLAMAINDEX,
    Outcome,
    awaited,
    every_stream,
    everywhere,
    outcome,
    pipeline,
    pipeline_for,
)
from lanes import examples
from scenarios import (
    DECLINED,
    DOCUMENT_TEXTS,
    FOUND,
    NO_REPLIES,
    PASSAGE_TEXTS,
    SCENARIOS,
    SOME,
    WHOLE,
    NoReply,
    Scenario,
    cut,
    text_of,
)
from selfroute.errors import NoReplyError
from selfroute.usage import Usage
from steering import ONE_OF_EACH, STEERED, Steered

ALL = [*SCENARIOS, *STEERED]
PAIRS = [*zip(LANGCHAIN, LLAMAINDEX, strict=True)]  # the same mode in both
STEPS = ("rag", "sections", "long_context")
EVERY_STREAM = [where for where in EVERY_MODEL if where.endswith("stream")]
KEYS = {"answer", "route", "answerable", "finish_reason", "decision", "usage"}
some_scenarios = pytest.mark.parametrize("scenario", SOME, ids=str)


def steps_of(scenario: Scenario) -> list[str]:
    """The steps that a scenario asks for."""
    if isinstance(scenario, Steered):
        return [*scenario.steps]
    return ["rag"] * (scenario.draft is not None) + ["long_context"] * (scenario.final is not None)


def check(scenario: Scenario, found: Outcome) -> None:
    """Hold an outcome against its scenario."""
    decision, usage, steps = found.decision, found.usage, steps_of(scenario)
    assert set(found.told) - {"input", "citations"} == KEYS
    assert type(found.answer) is str
    if isinstance(scenario, Steered):
        scenario.check((found.answer, found.route, found.answerable), decision)
        scenario.check_read(found.read)
        passages = scenario.found
    else:
        assert (found.answer, found.route, found.answerable) == (scenario.answer, scenario.route, scenario.answerable)
        assert set(decision) == {"declined", "signal", "evidence", "ruling"}
        assert (decision["declined"], decision["signal"]) == (scenario.declined, scenario.signal)
        assert (decision["ruling"], found.finish_reason) == (None, scenario.finish_reason)
        assert scenario.evidence in decision["evidence"]
        assert scenario.signal not in {"answered", "empty", "no_passages"} or decision["evidence"] == ""
        passages = [] if scenario.draft is None else [*PASSAGE_TEXTS]
        assert found.read == (list(DOCUMENT_TEXTS) if scenario.route == "long_context" else passages)
    assert (found.retrieved, found.steps) == (len(passages), steps)
    assert set(usage) == set(Usage().as_dict())
    assert [step for step in STEPS if usage[step]] == list(dict.fromkeys(steps))
    taken = [usage[step] for step in STEPS if usage[step]]
    assert all(set(step) == {"input_tokens", "output_tokens", "cached_tokens"} for step in taken)
    assert usage["total_tokens"] == sum(step["input_tokens"] + step["output_tokens"] for step in taken)
    assert bool(steps) is (usage["total_tokens"] > 0)


def check_citations(found: Outcome) -> list[Any]:
    """Hold citations against the texts that they are from; return what is the same in both hosts."""
    for one in found.citations:
        text, metadata = found.context[one["document"]]
        before = metadata["selfroute"]["start"] if found.route == "sections" else 0
        assert text[one["start"] - before : one["end"] - before] == one["text"]
    assert found.answerable or not found.citations
    return [(one["document"], one["text"], one["score"]) for one in found.citations]


def check_alike(found: dict[str, Outcome], *, counted: bool) -> None:
    """Compare everything with what came first.

    What a reply cost that was hung up on is estimated, and in async depends on how far it had come meanwhile.
    """
    first, *_ = found.values()
    hung_up = first.hung_up.union(*(one.hung_up for one in found.values()))

    def verdict(one: Outcome) -> list[Any]:
        of_it = [one.answer, one.route, one.answerable, one.finish_reason, one.decision]
        return [*of_it, one.retrieved, one.read, one.prompts, check_citations(one)]

    for where, one in found.items():
        assert verdict(one) == verdict(first), where
        left = hung_up if where.endswith("stream") else set()
        for step in {*STEPS} - left:
            assert one.usage[step] == first.usage[step], where
        assert left or one.usage == first.usage, where
        assert one.usage["estimated"] is bool(one.steps and (not counted or left)), where
    if "langchain stream" in found and hung_up <= {"rag"} and not first.usage["sections"]:
        assert found["langchain stream"].usage == found["llamaindex stream"].usage


async def outcomes(scenario: Scenario, wheres: Sequence[str] = EVERYWHERE, **fields: Any) -> dict[str, Outcome]:
    """What a scenario comes to, in both hosts and all modes."""
    return {where: await outcome(where, scenario, citations=True, **fields) for where in wheres}


# Each scenario in one mode of both hosts, and in the matrix in all modes.
PAIRED = [(scenario, PAIRS[at % 4], at % 8 < 4) for at, scenario in enumerate(ALL)]
PAIRED += [pytest.param(one, EVERYWHERE, at % 2 == 0, marks=pytest.mark.matrix) for at, one in enumerate(ALL)]  # type: ignore[arg-type]


@pytest.mark.parametrize(("scenario", "both", "counted"), PAIRED, ids=lambda one: str(one) if one in ALL else "")
async def test_scenario_ends_as_the_table_says(scenario: Scenario, both: Sequence[str], counted: bool) -> None:
    found = await outcomes(scenario, both, usage=counted)
    for one in found.values():
        check(scenario, one)
    check_alike(found, counted=counted)


@some_scenarios
async def test_a_completion_model_is_led_as_a_chat_model_is(scenario: Scenario) -> None:
    for where in COMPLETION:
        found = await outcome(where, scenario, usage=True)
        chat = await outcome(where.replace("completion", "llamaindex"), scenario, usage=True)
        assert [call.messages is None for call in found.calls] == [True] * len(found.calls)
        assert [call.messages is None for call in chat.calls] == [False] * len(chat.calls)
        assert (found.told, found.context, found.prompts) == (chat.told, chat.context, chat.prompts)


@pytest.mark.parametrize("case", NO_REPLIES, ids=str)
async def test_no_reply_is_no_verdict(case: NoReply) -> None:
    for where in EVERYWHERE:
        one = pipeline(where, **case.model)
        with pytest.raises(NoReplyError) as raised:
            await one.ask()
        for error in (raised.value, pickle.loads(pickle.dumps(raised.value))):  # noqa: S301 - our own
            assert (error.step, error.finish_reason, error.refusal) == (case.step, case.finish_reason, case.refusal)
            assert all(said in str(error) for said in (case.step, case.finish_reason or "", case.refusal))
        assert one.model.steps == (["rag"] if case.step == "rag" else ["rag", "long_context"])


@everywhere
@some_scenarios
async def test_what_is_said_of_an_answer_is_plain_json(scenario: Scenario, where: str) -> None:
    one = pipeline_for(where, scenario, usage=True)
    first, second = await one.ask(), await one.ask()
    kept = json.loads(json.dumps(first.told))
    assert kept == first.told == second.told
    for inner in second.told.values():
        if isinstance(inner, dict | list):
            inner.clear()
    second.context.clear()
    assert first.told == kept
    check(scenario, await one.ask())


SHOWN = [(scenario, EVERY_STREAM[at % len(EVERY_STREAM)]) for at, scenario in enumerate(ALL)]
SHOWN += [
    pytest.param(scenario, where, marks=pytest.mark.matrix)  # type: ignore[arg-type]
    for scenario in (*SOME, *ONE_OF_EACH)
    for where in EVERY_STREAM
]


@pytest.mark.parametrize(("scenario", "where"), SHOWN, ids=str)
async def test_stream_shows_the_answer_alone(scenario: Scenario, where: str) -> None:
    one, shown = pipeline_for(where, scenario), []
    async for piece in one.pieces():
        said = one.model.calls[-1] if one.model.calls else None
        assert said is None or said.emitted or not scenario.answerable
        shown.append(piece)
        assert len(shown) > 1 or one.model.steps == steps_of(scenario)
    assert "".join(shown) == scenario.answer
    assert all(shown[:1]) or where.startswith("langchain")


def _cuts(longest: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, longest), max_size=12)


@examples(100)
@example(scenario=DECLINED, draft=list(range(13)), final=[2], is_chat=False)
@given(scenario=st.sampled_from(ALL), draft=_cuts(60), final=_cuts(40), is_chat=st.booleans())
def test_scenario_ends_alike_wherever_it_is_cut(
    scenario: Scenario, draft: list[int], final: list[int], is_chat: bool
) -> None:
    script: dict[str, Any] = {
        name: pieces and cut(text_of(pieces), at)
        for name, pieces, at in (("draft", scenario.draft, draft), ("final", scenario.final, final))
    }
    if isinstance(scenario, Steered):
        script["looks"] = [cut(text_of(pieces), draft) for pieces in scenario.looks]
    other = "llamaindex" if is_chat else "completion"
    for where in ("langchain stream", "langchain astream", f"{other} stream", f"{other} astream"):
        check(scenario, asyncio.run(outcome(where, scenario, **script)))


WORDS = "unanswerable|Unanswerable.|un|The passages|The text|I|There is|Mr Lin|do not|does not|no|mention|information"
WORDS += '|answer|it|the chair|because|however|,|.|:|\n\n|**|"|S4'
_WRITTEN = st.lists(st.sampled_from(WORDS.split("|")), max_size=9).map(" ".join)


@examples(30)
@given(draft=_WRITTEN, final=_WRITTEN, cuts=_cuts(60), counted=st.booleans())
def test_any_reply_is_judged_alike_everywhere(draft: str, final: str, cuts: list[int], counted: bool) -> None:
    scenario = Scenario("anything", cut(draft, cuts), cut(final, cuts), "", "rag", "")
    check_alike(asyncio.run(outcomes(scenario, usage=counted)), counted=counted)


LONG = " ".join([*(f"{WHOLE} word{n}." for n in range(150)), PASSAGE_TEXTS[0], *(f"word{n}" for n in range(50))])
PRICED = {
    "a budget": {"max_context_tokens": 120},
    "too long": {"failures": {"long_context": [ValueError("prompt is too long: 640 tokens > 400 maximum")]}},
}


@every_stream
@pytest.mark.parametrize("step", ["draft", "final"])
async def test_an_answer_flows_while_it_is_written(step: str, where: str) -> None:
    reply = ("Ms", " Okafor", " took", " the", " chair", *(f" word{n}" for n in range(40)), ".")
    one, shown = pipeline(where, **{step: reply}), ""
    async for piece in one.pieces():
        said = one.model.calls[-1].emitted
        assert shown or said <= 8
        shown += piece
        assert shown == "".join(reply[:said])
    assert shown == "".join(reply)


@awaited
def test_one_pipeline_serves_one_event_loop_after_another(where: str) -> None:
    one = pipeline(where)
    for _ in range(3):
        assert asyncio.run(one.ask()).answer == FOUND
