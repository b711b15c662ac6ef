"""Both hosts, all modes: how a graded reply may end, what each step is asked, and options that copies keep."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from both_parts import each_host, everywhere, far_apart, outcome, pipeline, pipeline_for, retriever, template
from scenarios import QUESTION
from selfroute import prompts
from selfroute.answerability.graded import GradedGate, Ungraded
from selfroute.errors import ConfigurationError, NoReplyError
from selfroute.policies import Budget, Never
from steering import BY_NAME, GRADED, LIN, LOOKED, RUNG, with_policy, yes
from structured_parts import Calling, Reporting

TEXT = {"answerability": "text", "doubt_below": None, "stop_below": None}
SURE, DOUBTED = BY_NAME["a sure answer"], BY_NAME["a doubt in one piece"]
KEPT = with_policy(Never())
ENDED: dict[str, tuple[tuple[str, ...], dict[str, Any], str]] = {
    "a sure answer that was cut": (("80 90\n", "Mr Lin took"), {}, "length"),
    "an answer without numbers that was cut": (("Mr Lin took the chair", " at"), {}, "length"),
    "a doubt that is kept though it was cut": (("80 42\n", "Mr Lin took"), KEPT, "length"),
    "a doubt that is kept and ended by itself": (("80 42\n", LIN), KEPT, "stop"),
}
NO_REPLY: dict[str, tuple[tuple[str, ...], dict[str, Any], str]] = {
    "numbers and no more": (("80 90\n",), {}, "length"),
    "numbers and white space": (("80 90\n", "\n "), {}, "max_tokens"),
    "numbers that are filtered": (("80 90",), {}, "content_filter"),
    "one number": (("80",), {}, "content_filter"),
    "the first digit of a second number": (("80 4",), {}, "length"),
    "a label and a number": (("Prospect: 80, conf",), {}, "length"),
    "nothing": (("",), {}, "SAFETY"),
    "a doubt that is kept but says nothing": (("80 42\n",), KEPT, "length"),
}


@everywhere
async def test_how_a_graded_reply_ended_is_said(where: str) -> None:
    """A doubt stands however the draft ended."""
    for draft, options, ending in ENDED.values():
        found = await outcome(where, SURE, draft=draft, **{**GRADED, **options}, ends={"rag": ending})
        assert (found.route, found.finish_reason, found.answer) == ("rag", ending, "".join(draft).split("\n")[-1])
    found = await outcome(where, DOUBTED, draft=("80 42\n",), ends={"rag": "length"})
    assert (found.route, found.decision["signal"]) == ("long_context", "doubt")


@everywhere
@pytest.mark.parametrize("name", NO_REPLY)
async def test_numbers_without_a_reply_are_no_reply(name: str, where: str) -> None:
    draft, options, ending = NO_REPLY[name]
    with pytest.raises(NoReplyError) as raised:
        await outcome(where, SURE, draft=draft, **{**GRADED, **options}, ends={"rag": ending})
    assert (raised.value.step, raised.value.finish_reason) == ("rag", ending)


@everywhere
async def test_graded_drafts_without_numbers_warn_once(where: str, caplog: pytest.LogCaptureFixture) -> None:
    for options, said in ((GRADED, 1), (GRADED, 1), (TEXT, 0)):
        one = pipeline_for(where, BY_NAME["an answer without numbers"], **options)
        for number in range(23):
            assert len(_warned(caplog)) == (said if number >= 10 else 0)
            await one.ask()
        for warning in _warned(caplog):
            assert all(part in warning for part in ("rag_prompt", 'answerability to "structured"'))
        caplog.clear()


def _warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "graded replies" in record.getMessage()]


NUMBERED = ["Paris"] * 9 + ["80 90\nParis", "80 20\nParis"] + ["unanswerable", "12 and 15"] * 4 + [""]
REFUSED = ["Paris", "unanswerable"] * 9 + ["90\nParis", "unanswerable"] + ["unanswerable", "1912"] * 9


@pytest.mark.parametrize(("numbers", "replies"), [(2, NUMBERED), (1, REFUSED)], ids=["numbered", "refused"])
def test_graded_count_begins_anew(numbers: int, replies: list[str], caplog: pytest.LogCaptureFixture) -> None:
    ungraded = Ungraded()
    for reply in replies:
        gate = GradedGate(doubt_below=50, numbers=numbers, ungraded=ungraded)
        for piece in reply if numbers == 2 else (reply,):
            gate.feed(piece)
        gate.end()
    assert _warned(caplog) == []
    GradedGate(numbers=numbers, ungraded=ungraded).feed("Paris, as the minutes say.")
    assert len(_warned(caplog)) == 1


def test_many_threads_are_warned_once(caplog: pytest.LogCaptureFixture) -> None:
    ungraded = Ungraded()
    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(lambda _: ungraded.note(graded=False), range(400)):
            pass
    assert len(_warned(caplog)) == 1


ALL_OPTIONS: dict[str, Any] = {
    **GRADED,
    "doubt_below": 60,
    "stop_below": 10,
    "sections": RUNG,
    "draft_passages": 1,
    "max_documents": 1,
    "start": "rag",
}
REMADE: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda asked: asked,
    "copied": copy.copy,
    "copied deeply": copy.deepcopy,
    "made anew": lambda asked: (
        asked.model_copy() if hasattr(asked, "model_copy") else asked.with_retriever(retriever("llamaindex query"))
    ),
}


@far_apart
@pytest.mark.parametrize("how", REMADE)
async def test_what_was_made_again_has_all_options(how: str, where: str) -> None:
    script = {"draft": ("80 55\n", *LOOKED), "looks": (("55\n", *LOOKED),), "escalation": yes}
    one = pipeline_for(where, BY_NAME["a doubt that sections share"], **script, **ALL_OPTIONS)
    found = await one.again(REMADE[how](one.asked)).ask()
    assert (found.decision["signal"], found.decision["ruling"]["by"], found.route) == ("doubt", "yes", "long_context")
    assert found.usage["sections"]


@each_host
def test_options_are_pickled(where: str) -> None:
    one = pipeline(where, escalation=Budget(tokens=9), **ALL_OPTIONS)
    again = pickle.loads(pickle.dumps(one.holder))  # noqa: S301 - our own
    assert [getattr(again, name) for name in ALL_OPTIONS] == [getattr(one.holder, name) for name in ALL_OPTIONS]
    assert again.escalation.left == {"usd": None, "tokens": 9}
    with pytest.raises(TypeError, match="in each process"):
        pickle.dumps(pipeline(where, escalation=Budget(tokens=1000, per="day")).holder)


OWN = "From {context} answer {question} or write {refusal}."


@each_host
async def test_prompt_without_numbers_is_refused(where: str) -> None:
    with pytest.raises(ConfigurationError, match="rag_prompt that asks for two numbers from 0 to 100"):
        pipeline(where, rag_prompt=template(where, OWN), **GRADED)
    asking = template(where, f"Two numbers from 0 to 100 first. {OWN}")
    found = await pipeline_for(where, SURE, rag_prompt=asking).ask()
    assert (found.answer, found.prompts[0].startswith("Two numbers")) == (SURE.answer, True)
    assert pipeline(where, rag_prompt=template(where, OWN))
    model: Any = Reporting() if where.startswith("langchain") else Calling()
    assert pipeline(where, llm=model, rag_prompt=template(where, OWN), answerability="structured", doubt_below=50)


@everywhere
async def test_each_step_is_asked_for_its_numbers_alone(where: str) -> None:
    one = pipeline_for(where, BY_NAME["a doubt that sections share"])
    asked = (await one.ask()).prompts
    assert ["two numbers from 0 to 100" in prompt for prompt in asked] == [True, False, False]
    assert ["write a number from 0 to 100" in prompt for prompt in asked] == [False, True, False]
    assert asked[0].endswith(prompts.GRADED.partition("{context}")[2].format(question=QUESTION, refusal="unanswerable"))
