"""Both frameworks, all eight modes: the same reply to the same question takes the same route, at the same price.

The parts of both frameworks hold the same texts, and no metadata that a model would see, so both must send the same
prompts; then counts that are estimated from prompts and replies must be equal too, not only those that were reported.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document as LangChainDocument
from llama_index.core.schema import Document as LlamaIndexDocument

import langchain_parts
import llamaindex_parts
from lanes import examples
from replies import ANSWERS, DECLINES, REFUSALS, by_language
from scenarios import (
    DECLINED,
    DOCUMENT_TEXTS,
    NO_REPLIES,
    PASSAGE_TEXTS,
    QUESTION,
    SCENARIOS,
    SOME,
    WHOLE,
    NoReply,
    Scenario,
    cut,
)
from selfroute.answerability import declines
from selfroute.errors import NoReplyError

LANGCHAIN = langchain_parts.MODES
LLAMAINDEX = llamaindex_parts.MODES
STREAMED = {"stream", "astream", "llamaindex stream", "llamaindex astream"}
SYNC_STREAMED = {"stream", "llamaindex stream"}


@dataclass
class Outcome:
    """What a question came to, in the words of no framework."""

    text: str
    route: str
    answerable: bool
    finish_reason: str | None
    decision: dict[str, Any]
    retrieved: int
    sources: list[str]
    prompts: list[str]
    usage: dict[str, Any]
    hung_up: set[str]  # steps

    @property
    def verdict(self) -> list[Any]:
        """All but what it cost."""
        return [
            self.text,
            self.route,
            self.answerable,
            self.finish_reason,
            self.decision,
            self.retrieved,
            self.sources,
            self.prompts,
        ]


async def outcomes(scenario: Scenario, documents: Sequence[str] = DOCUMENT_TEXTS, **fields: Any) -> dict[str, Outcome]:
    """What a scenario comes to in both frameworks and all modes."""
    found = {}
    for mode in LANGCHAIN:
        read = [LangChainDocument(text) for text in documents]
        chain = langchain_parts.chain_for(scenario, documents=read, **fields)
        result = await langchain_parts.ask(chain, QUESTION, mode)
        found[mode] = Outcome(
            result["answer"],
            result["route"],
            result["answerable"],
            result["finish_reason"],
            result["decision"],
            len(result["retrieved"]),
            [document.page_content for document in result["context"]],
            [call.prompt for call in chain.llm.calls],
            result["usage"],
            {call.step for call in chain.llm.calls if call.ended == "closed"},
        )
    for mode in LLAMAINDEX:
        engine = llamaindex_parts.engine_for(
            scenario, mode, documents=[LlamaIndexDocument(text=text) for text in documents], **fields
        )
        asked, model = await llamaindex_parts.ask(engine, QUESTION, mode), llamaindex_parts.model_of(engine)
        found[f"llamaindex {mode}"] = Outcome(
            asked.text,
            asked.route,
            asked.answerable,
            asked.metadata["finish_reason"],
            asked.decision,
            len(asked.retrieved),
            asked.sources,
            [call.prompt for call in model.calls],
            asked.usage,
            {call.step for call in model.calls if call.ended == "closed"},
        )
    return found


def check_alike(found: dict[str, Outcome]) -> set[str]:
    """Compare everything; return the steps whose replies were hung up on when they were streamed.

    What both frameworks sent is compared first: where prompts and replies are the same, estimates must be so too.
    What a reply cost that was hung up on is estimated, and in async depends on how far it had come meanwhile.
    """
    expected, streamed = found["invoke"], found["stream"]
    for mode, outcome in found.items():
        assert outcome.verdict == expected.verdict, mode
        if mode not in STREAMED or not streamed.hung_up:
            assert outcome.usage == expected.usage, mode
            continue
        assert outcome.usage["estimated"] is True, mode
        for step in {"rag", "long_context"} - streamed.hung_up:
            assert outcome.usage[step] == expected.usage[step], mode
        if mode in SYNC_STREAMED:
            assert outcome.usage == streamed.usage, mode
    return streamed.hung_up


@pytest.mark.parametrize("usage", [True, False], ids=["counted", "estimated"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
async def test_a_scenario_ends_alike_in_both_frameworks_and_all_modes(scenario: Scenario, usage: bool) -> None:
    found = await outcomes(scenario, usage=usage)
    hung_up = check_alike(found)
    for mode, outcome in found.items():
        assert outcome.usage["estimated"] is (not usage or bool(hung_up and mode in STREAMED))
        assert outcome.usage["total_tokens"] > 0


@pytest.mark.parametrize("case", NO_REPLIES, ids=str)
async def test_no_reply_is_no_verdict_in_both_frameworks_and_all_modes(case: NoReply) -> None:
    asked = ["rag"] if case.step == "rag" else ["rag", "long_context"]
    questions: list[tuple[Any, Awaitable[Any]]] = []
    for mode in LANGCHAIN:
        chain = langchain_parts.a_chain(**case.model)
        questions.append((chain.llm, langchain_parts.ask(chain, QUESTION, mode)))
    for mode in LLAMAINDEX:
        engine = llamaindex_parts.an_engine(**case.model, streaming=mode in llamaindex_parts.STREAMS)
        questions.append((llamaindex_parts.model_of(engine), llamaindex_parts.ask(engine, QUESTION, mode)))
    for model, question in questions:
        with pytest.raises(NoReplyError) as raised:
            await question
        for error in (raised.value, pickle.loads(pickle.dumps(raised.value))):  # noqa: S301 - our own
            assert (error.step, error.finish_reason, error.refusal) == (case.step, case.finish_reason, case.refusal)
            assert case.step in str(error)
            assert (case.finish_reason or "") in str(error)
            assert case.refusal in str(error)
        assert model.steps == asked


@pytest.mark.parametrize("scenario", SOME, ids=str)
async def test_a_completion_model_is_led_as_a_chat_model_is(scenario: Scenario) -> None:
    for mode in LLAMAINDEX:
        both = []
        for is_chat in (True, False):
            engine = llamaindex_parts.engine_for(scenario, mode, is_chat=is_chat, usage=True)
            asked = await llamaindex_parts.ask(engine, QUESTION, mode)
            calls = llamaindex_parts.model_of(engine).calls
            assert [call.messages is not None for call in calls] == [is_chat] * len(calls)
            both.append((asked.text, asked.metadata, asked.sources, [call.prompt for call in calls]))
        assert both[0] == both[1]


WORDS = [
    "unanswerable",
    "Unanswerable.",
    "un",
    "The passages",
    "The text",
    "I",
    "There is",
    "Mr Lin",
    "do not",
    "does not",
    "no",
    "mention",
    "information",
    "answer",
    "it",
    "the chair",
    "because",
    "however",
    ",",
    ".",
    ":",
    "\n\n",
    "**",
    '"',
    "S4",
]


@examples(30)
@given(
    draft=st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join),
    final=st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join),
    cuts=st.lists(st.integers(0, 60), max_size=8),
    usage=st.booleans(),
)
def test_any_reply_is_judged_alike_in_both_frameworks_and_all_modes(
    draft: str, final: str, cuts: list[int], usage: bool
) -> None:
    scenario = Scenario("anything", cut(draft, cuts), cut(final, cuts), "", "rag", "")
    check_alike(asyncio.run(outcomes(scenario, usage=usage)))


@by_language({name: [table[name][0] for table in (REFUSALS, DECLINES, ANSWERS)] for name in ANSWERS})
async def test_a_reply_is_the_same_decline_in_both_frameworks_and_all_modes(reply: str) -> None:
    scenario = Scenario("a reply", cut(reply, range(0, len(reply), 5)), ("It was oak.",), "", "rag", "")
    found = await outcomes(scenario)
    check_alike(found)
    assert found["invoke"].decision == declines(reply).as_dict()
    assert found["invoke"].answerable
    assert found["invoke"].text == ("It was oak." if declines(reply) else reply)


async def test_both_frameworks_send_the_same_prompts() -> None:
    for outcome in (await outcomes(DECLINED)).values():
        rag, final = outcome.prompts
        assert all(rag.count(text) == 1 for text in (*PASSAGE_TEXTS, QUESTION))
        assert all(final.count(text) == 1 for text in (*DOCUMENT_TEXTS, QUESTION))
        assert WHOLE not in rag


LONG = " ".join([*(f"{WHOLE} word{n}." for n in range(150)), PASSAGE_TEXTS[0], *(f"word{n}" for n in range(50))])
PRICED = {
    "a budget": {"max_context_tokens": 120},
    "a counter": {"max_context_tokens": 120, "token_counter": lambda text: len(text.split())},
    "too long": {"failures": {"long_context": [ValueError("prompt is too long: 640 tokens > 400 maximum")]}},
}


@pytest.mark.parametrize("usage", [True, False], ids=["counted", "estimated"])
@pytest.mark.parametrize("name", PRICED)
async def test_a_document_that_does_not_fit_is_cut_alike(name: str, usage: bool) -> None:
    found = await outcomes(DECLINED, [LONG], usage=usage, **PRICED[name])
    check_alike(found)
    (read,) = found["invoke"].sources
    assert len(read) < len(LONG)
    assert PASSAGE_TEXTS[0] in read
