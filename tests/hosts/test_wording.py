"""Both hosts, all modes: the user's instructions and prompts, and the text where nothing was found."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda

from both_parts import Text, each_host, everywhere, is_langchain, pipeline, pipeline_for, store_of, stored, template
from scenarios import DOCUMENT_TEXTS, FINAL, FOUND, PASSAGE_TEXTS
from selfroute.errors import ConfigurationError
from selfroute.policies import Never
from steering import BY_NAME, DENIED, LIN, RUNG, UNANSWERABLE
from structured_parts import Calling, Reporting

THROUGH_ALL = BY_NAME["sections that decline"]
OWN = "From {context} answer {question} or write {refusal}."
NUMBERED = f"Two numbers from 0 to 100 first. {OWN}"

# Instructions

TEXTS = {
    "plain": "You answer for the harbour office, in French, formally.",
    "braces": "Answer {name} {{context}} {0} {context_str} {question!r} {refusal} {} } {",
    "templates": "{% chat role='system' %}obey{% endchat %} {{ input }} {# note #} ${input} %s %(input)s <context>",
    "several lines": "First line.\n\n  Second {line}.",
}
MODES = {"defaults": None, "text": "text", "graded": "graded"}


@everywhere
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("mode", MODES)
async def test_instructions_stand_before_each_default_prompt(name: str, mode: str, where: str) -> None:
    options: dict[str, Any] = {"answerability": MODES[mode], "sections": RUNG}
    without = await pipeline_for(where, THROUGH_ALL, **options).ask()
    found = await pipeline_for(where, THROUGH_ALL, instructions=TEXTS[name], **options).ask()
    assert found.steps == without.steps == ["rag", "sections", "long_context"]
    assert found.prompts == [f"{TEXTS[name]}\n\n{prompt}" for prompt in without.prompts]
    assert (found.answer, found.decision) == (without.answer, without.decision)


@each_host
def test_instructions_beside_a_prompt_of_one_s_own_are_refused(where: str) -> None:
    own = template(where, OWN)
    for fields in ({"rag_prompt": own}, {"long_context_prompt": own}, {"rag_prompt": own, "long_context_prompt": own}):
        with pytest.raises(ConfigurationError, match=r"instructions= goes before the default prompts.*put the text"):
            pipeline(where, instructions="In French.", **fields)
    assert pipeline(where, instructions="In French.", document_prompt=template(where, "{text}"))
    for wrong in ("", " ", "...", 7, ["In French."]):
        with pytest.raises(ConfigurationError, match="instructions must be a text"):
            pipeline(where, instructions=wrong)


@each_host
@pytest.mark.parametrize("name", ["rag_prompt", "long_context_prompt"])
async def test_instructions_set_later_beside_a_prompt_of_one_s_own_are_refused(name: str, where: str) -> None:
    made = pipeline(where, **{name: template(where, OWN)})
    if is_langchain(where):
        made.asked = made.asked.model_copy(update={"instructions": "In French."})
    else:
        made.asked._response_synthesizer.instructions = "In French."
    with pytest.raises(ConfigurationError, match=f"instructions= goes before .* {name} is your own"):
        await made.ask()


async def test_no_input_takes_the_place_of_instructions() -> None:
    one = pipeline("langchain invoke", instructions="In French.", draft=(LIN,))
    one.asked.invoke({"input": "Who?", "instructions": "Say yes.", "refusal": "yes"})
    assert one.model.calls[0].prompt.startswith("In French.\n\n")
    engine = pipeline("llamaindex query", instructions="In French.", draft=(LIN,))
    engine.asked._response_synthesizer.synthesize("Who?", [], instructions="Say yes.")
    assert engine.model.calls[0].prompt.startswith("In French.\n\n")
    own = template("langchain invoke", OWN + " {instructions}")
    one = pipeline("langchain invoke", rag_prompt=own, draft=(LIN,))
    one.asked.invoke({"input": "Who?", "instructions": "Say yes."})
    assert "Say yes." in one.model.calls[0].prompt, "a variable of one's own"


# Where nothing was found

TEXT = "Please ask the harbour office."
CASES: dict[str, dict[str, Any]] = {
    "the last step declines": {"final": UNANSWERABLE},
    "the last step declines in words of its own": {"final": ("The text ", "does not say ", "who chaired it.")},
    "the last step denies": {"final": (DENIED, " It covers ", "other things.")},
    "the last step says nothing": {"final": ("",)},
    "the last step declines with more": {"final": ("unanswerable", ": it covers ", "other things.")},
    "a policy stopped": {"final": None, "escalation": Never()},
    "the prospect is low": {"final": None, "answerability": "graded", "draft": ("5 0\nunanswerable",)},
    "nothing more": {"final": None, "documents": [*PASSAGE_TEXTS]},
    "documents are forbidden": {"final": None, "max_documents": 0},
    "nothing to read": {"final": None, "documents": lambda *_: []},
    "nothing was retrieved": {"final": None, "draft": None, "passages": (), "documents": lambda *_: []},
    "the last step declines without a draft": {"draft": None, "start": "long_context", "final": UNANSWERABLE},
}


def declining(where: str, **more: Any) -> Any:
    """A pipeline whose draft declines."""
    return pipeline(where, **{"passages": PASSAGE_TEXTS, "documents": DOCUMENT_TEXTS, **more})


@everywhere
@pytest.mark.parametrize("name", CASES)
async def test_a_text_is_shown_where_nothing_was_found(name: str, where: str) -> None:
    plain = await declining(where, **CASES[name]).ask()
    found = await declining(where, **CASES[name], not_found=TEXT).ask()
    assert (found.answer, "".join(found.pieces), found.answerable) == (TEXT, TEXT, False)
    assert (found.route, found.steps, found.read) == (plain.route, plain.steps, plain.read)
    assert (found.decision, plain.answerable) == (plain.decision, False)
    assert TEXT not in plain.answer


@everywhere
async def test_a_text_is_shown_where_a_store_found_nothing(where: str) -> None:
    store = stored(where, store_of(where, [Text("The whole text.", "a", 0)]), open_to_all=True)
    found = await declining(where, passages=(), documents=store, draft=None, final=None, not_found=TEXT).ask()
    assert (found.answer, found.answerable, found.steps) == (TEXT, False, [])
    assert found.decision["signal"] == "no_passages"


@everywhere
@pytest.mark.parametrize("reply", [UNANSWERABLE, ("The passages ", "do not mention ", "who chaired it.")])
async def test_a_text_is_shown_where_the_last_sections_decline(reply: tuple[str, ...], where: str) -> None:
    options: dict[str, Any] = {"looks": (reply,), "final": None, "max_documents": 0, "not_found": TEXT}
    found = await pipeline_for(where, THROUGH_ALL, **options).ask()
    assert (found.answer, "".join(found.pieces), found.answerable) == (TEXT, TEXT, False)
    assert (found.route, found.steps) == ("sections", ["rag", "sections"])


ANSWERED: dict[str, tuple[dict[str, Any], str]] = {
    "a draft": ({"draft": (LIN,), "final": None}, LIN),
    "the last step": ({"final": FINAL}, FOUND),
    "a denial after an answer": (
        {"final": ("Ms Okafor chaired it. ", "The text does not ", "say when.")},
        "Ms Okafor chaired it. The text does not say when.",
    ),
    "an answer that is a no": (
        {"final": ("No, the report does not ", "mention a flood.")},
        "No, the report does not mention a flood.",
    ),
    "a doubt that a policy keeps": (
        {"answerability": "graded", "draft": ("80 42\n", LIN), "final": None, "escalation": Never()},
        LIN,
    ),
    "a doubt that there is no more for": (
        {"answerability": "graded", "draft": ("80 42\n", LIN), "final": None, "documents": [*PASSAGE_TEXTS]},
        LIN,
    ),
    "a doubt where documents are forbidden": (
        {"answerability": "graded", "draft": ("80 42\n", LIN), "final": None, "max_documents": 0},
        LIN,
    ),
}


@everywhere
@pytest.mark.parametrize("name", ANSWERED)
async def test_a_text_is_not_shown_where_something_was_found(name: str, where: str) -> None:
    options, answer = ANSWERED[name]
    found = await declining(where, **options, not_found=TEXT).ask()
    assert (found.answer, "".join(found.pieces), found.answerable) == (answer, answer, True)


@everywhere
async def test_a_doubt_that_is_given_up_is_not_kept(where: str) -> None:
    options = {"answerability": "graded", "draft": ("80 42\n", LIN), "final": UNANSWERABLE, "not_found": TEXT}
    found = await declining(where, **options).ask()
    assert (found.answer, found.answerable, found.route) == (TEXT, False, "long_context")


@everywhere
async def test_a_text_is_shown_where_a_report_says_no(where: str) -> None:
    report = (json.dumps({"answerable": False, "answer": ""}),)
    model: Any = (Reporting if is_langchain(where) else Calling)(draft=report, final=report)
    found = await declining(where, llm=model, answerability="structured", not_found=TEXT).ask()
    assert (found.answer, "".join(found.pieces), found.answerable) == (TEXT, TEXT, False)
    assert found.steps == ["rag", "long_context"]


# Prompts of the user's own


def _warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if "does not ask for the two numbers" in one.getMessage()]


@everywhere
async def test_default_is_text_for_a_prompt_without_numbers(where: str, caplog: pytest.LogCaptureFixture) -> None:
    """Said once; numbers that nobody asked for are the model's own words."""
    one = declining(where, answerability=None, rag_prompt=template(where, OWN), draft=("80 42\n", LIN), final=None)
    for _ in range(3):
        found = await one.ask()
        assert (found.route, found.answer, found.decision["signal"]) == ("rag", f"80 42\n{LIN}", "answered")
        assert "prospect" not in found.decision
    assert len(_warned(caplog)) == 1
    assert all(part in _warned(caplog)[0] for part in ("rag_prompt", "answerability='text'", "instructions="))


@everywhere
async def test_default_is_graded_for_a_prompt_with_numbers(where: str, caplog: pytest.LogCaptureFixture) -> None:
    for prompt in ({"rag_prompt": template(where, NUMBERED)}, {}):
        found = await declining(where, answerability=None, draft=("80 42\n", LIN), **prompt).ask()
        assert (found.route, found.answer, found.decision["signal"]) == ("long_context", FOUND, "doubt")
    assert _warned(caplog) == []


@everywhere
@pytest.mark.parametrize("asks", ["in at most 100 words", "in at most 1000 characters", "as of 2010 or 2100"])
async def test_a_hundred_of_something_else_is_no_scale(asks: str, where: str) -> None:
    own = template(where, f"{OWN} Answer {asks}.")
    found = await declining(where, answerability=None, rag_prompt=own, draft=("12 15\n", LIN), final=None).ask()
    assert (found.route, found.answer) == ("rag", f"12 15\n{LIN}")


@each_host
@pytest.mark.parametrize("scale", ["from 0 to 100", "(0-100)", "de 0 à 100", "0 bis 100", "0 到 100", "0 .. 100"])
def test_a_scale_is_one_in_any_language(scale: str, where: str) -> None:
    assert pipeline(where, answerability="graded", rag_prompt=template(where, f"{OWN} Two numbers, {scale}."))


async def test_what_cannot_be_seen_is_not_taken_to_ask_for_numbers(caplog: pytest.LogCaptureFixture) -> None:
    """Unless the user says so."""
    seen = template("langchain invoke", OWN)
    hidden = RunnableLambda(seen.invoke)
    options: dict[str, Any] = {"rag_prompt": hidden, "draft": ("12 15\n", LIN)}
    found = await declining("langchain invoke", answerability=None, final=None, **options).ask()
    assert (found.route, found.answer, len(_warned(caplog))) == ("rag", f"12 15\n{LIN}", 1)
    found = await declining("langchain invoke", answerability="graded", **options).ask()
    assert (found.route, found.decision["confidence"]) == ("long_context", 15)


@each_host
def test_check_says_that_replies_are_judged_as_text(where: str) -> None:
    checked = pipeline(where, answerability=None, rag_prompt=template(where, OWN)).asked.check("Who?")
    [prompt] = [one for one in checked if one.subject == "prompt"]
    assert (prompt.ok, "judged as text" in prompt.message, "instructions=" in prompt.advice) == (None, True, True)


@each_host
async def test_a_prompt_set_later_is_said_once(where: str, caplog: pytest.LogCaptureFixture) -> None:
    one = declining(where, answerability=None, draft=("80 42\n", LIN), final=None)
    holder = one.asked if is_langchain(where) else one.asked._response_synthesizer
    holder.rag_prompt = template(where, OWN)
    for _ in range(2):
        assert (await one.ask()).answer == f"80 42\n{LIN}"
    assert len(_warned(caplog)) == 1


def test_prompts_of_one_chain_are_not_those_of_another() -> None:
    one, other = pipeline("langchain invoke").asked, pipeline("langchain invoke").asked
    for shown in one.model_copy(update={"answerability": "graded"}).get_prompts():
        shown.messages[-1].prompt.template = "Changed."
    assert all(
        "Changed." not in str(shown) for shown in other.model_copy(update={"answerability": "graded"}).get_prompts()
    )


@each_host
def test_bounds_need_a_prompt_with_numbers(where: str) -> None:
    for bounds in ({"doubt_below": 50}, {"stop_below": 20}, {"doubt_below": (70, 60), "sections": "auto"}):
        with pytest.raises(ConfigurationError, match="rag_prompt that asks for two numbers from 0 to 100"):
            pipeline(where, answerability=None, rag_prompt=template(where, OWN), **bounds)
        assert pipeline(where, answerability=None, rag_prompt=template(where, NUMBERED), **bounds)
        assert pipeline(where, answerability=None, **bounds)


@each_host
def test_text_is_not_warned_of(where: str, caplog: pytest.LogCaptureFixture) -> None:
    assert pipeline(where, answerability="text", rag_prompt=template(where, OWN))
    model: Any = Reporting() if is_langchain(where) else Calling()
    assert pipeline(where, llm=model, answerability="structured", rag_prompt=template(where, OWN))
    assert _warned(caplog) == []
