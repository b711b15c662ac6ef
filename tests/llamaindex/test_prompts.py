"""Prompts as LlamaIndex has them: chosen by the model, updated by name, and refused if they would hide the context."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.llms import ChatMessage, MessageRole
from llama_index.core.prompts import ChatPromptTemplate, PromptTemplate, SelectorPromptTemplate
from llama_index.core.prompts.utils import is_chat_model
from llama_index.core.tools import QueryEngineTool

from both_parts import pipeline_for
from llamaindex_parts import FAR_APART, STREAMS, WHOLE, ScriptedLLM, an_engine, ask, model_of
from scenarios import FINAL, FOUND, QUESTION
from selfroute import prompts
from selfroute.errors import ConfigurationError, SelfRouteError
from steering import BY_NAME

both_modes = pytest.mark.parametrize("mode", FAR_APART)
every_kind = pytest.mark.parametrize("is_chat", [True, False], ids=["chat", "completion"])
KEYS = ("rag_prompt", "long_context_prompt")
PREFIXES = ("", "response_synthesizer:")
each_field = pytest.mark.parametrize("field", KEYS)
each_prefix = pytest.mark.parametrize("prefix", PREFIXES)


def _chat(*messages: tuple[MessageRole, str]) -> ChatPromptTemplate:
    return ChatPromptTemplate([ChatMessage(role=role, content=content) for role, content in messages])


CUSTOM = PromptTemplate("Custom. {context_str} {query_str} {refusal}")
PROMPTS = {
    "chat": _chat((MessageRole.SYSTEM, "Custom. {context_str}"), (MessageRole.USER, "{query_str} or {refusal}")),
    "mapped": PromptTemplate(
        "Custom. {passages} {question}",
        template_var_mappings={"context_str": "passages", "query_str": "question"},
    ),
    "function": PromptTemplate("{style} {context_str} {query_str}", function_mappings={"style": lambda **_: "Custom."}),
    "selector": SelectorPromptTemplate(
        PromptTemplate("Custom. {query_str} {context_str}"),
        [(is_chat_model, PromptTemplate("Custom. {context_str} {query_str}"))],
    ),
}


@every_kind
@both_modes
@pytest.mark.parametrize("name", PROMPTS)
@each_field
async def test_prompt_is_used_in_its_step(field: str, name: str, mode: str, is_chat: bool) -> None:
    parts: dict[str, Any] = {"streaming": mode in STREAMS, "is_chat": is_chat}
    given, updated = an_engine(**{field: PROMPTS[name]}, **parts), an_engine(**parts)
    updated.update_prompts({field: PROMPTS[name]})
    step = KEYS.index(field)
    for engine in (given, updated):
        assert (await ask(engine, QUESTION, mode)).text == FOUND
        sent = [call.prompt for call in model_of(engine).calls]
        assert all(text in sent[step] for text in ("Custom.", QUESTION, ("Tea was served.", WHOLE)[step]))
        assert ("{" in sent[step], "Custom." in sent[1 - step]) == (False, False)
        messages = model_of(engine).calls[step].messages
        if name == "chat" and messages:
            assert [message.role for message in messages] == [MessageRole.SYSTEM, MessageRole.USER]
            assert QUESTION not in str(messages[0].content)


@every_kind
@both_modes
async def test_the_system_prompt_and_the_wrappers_of_a_model_are_kept(mode: str, is_chat: bool) -> None:
    engine = an_engine(system_prompt="You are the clerk.", streaming=mode in STREAMS, is_chat=is_chat)
    await ask(engine, QUESTION, mode)
    for call in model_of(engine).calls:
        assert call.prompt.count("You are the clerk.") == 1
        assert call.messages is None or call.messages[0].role == MessageRole.SYSTEM
    llm = ScriptedLLM(
        draft=("unanswerable",), final=FINAL, is_chat=False, completion_to_prompt=lambda text: f"<s>{text}</s>"
    )
    await ask(an_engine(llm=llm, streaming=mode in STREAMS), QUESTION, mode)
    assert all(call.prompt.startswith("<s>") and call.prompt.endswith("</s>") for call in llm.calls)


@both_modes
@each_prefix
@each_field
async def test_prompts_are_listed_and_changed_by_each_of_their_names(field: str, prefix: str, mode: str) -> None:
    """What is done to a list does nothing to the engine."""
    for rest in ({}, an_engine().get_prompts()):
        engine = an_engine(streaming=mode in STREAMS)
        engine.update_prompts({**rest, f"{prefix}{field}": CUSTOM})
        listed = engine.get_prompts()
        assert set(listed) == {f"{prefix}{key}" for prefix in PREFIXES for key in KEYS}
        assert {name for name in listed if listed[name] == CUSTOM} == {field, f"response_synthesizer:{field}"}
        for key in KEYS:
            assert listed[key] == listed[f"response_synthesizer:{key}"]
            assert {"context_str", "query_str"} <= set(listed[key].template_vars)
        listed["long_context_prompt"].template_vars.clear()
        engine._response_synthesizer.get_prompts().clear()
        assert (await ask(engine, QUESTION, mode)).text == FOUND
        assert [call.prompt.startswith("Custom.") for call in model_of(engine).calls] == [key == field for key in KEYS]


LACKING: dict[str, Any] = {
    "no context": PromptTemplate("{query_str}"),
    "no question": PromptTemplate("{context_str}"),
    "mapped to nothing": PromptTemplate("{passages} {query_str}", template_var_mappings={"context_str": "texts"}),
    "selector": SelectorPromptTemplate(CUSTOM, [(is_chat_model, PromptTemplate("x"))]),
    "text": "{context_str} {query_str}",
}


@each_field
@pytest.mark.parametrize("name", LACKING)
def test_prompt_that_hides_context_is_refused(name: str, field: str) -> None:
    with pytest.raises(SelfRouteError, match=field) as refused:
        an_engine(**{field: LACKING[name]})
    assert isinstance(refused.value, ValueError)
    engine, (other,) = an_engine(), {*KEYS} - {field}
    before = engine.get_prompts()
    for target in (engine._response_synthesizer, engine):
        for prefix in PREFIXES if target is engine else ("",):
            with pytest.raises(SelfRouteError, match=field):
                target.update_prompts({other: CUSTOM, f"{prefix}{field}": LACKING[name]})
            assert prefix or engine.get_prompts() == before
    with pytest.raises(ValueError, match="text_qa_template"):
        engine.update_prompts({"text_qa_template": CUSTOM})
    assert engine.get_prompts()[field] == before[field]


OWN = "From {context_str} answer {query_str} or write {refusal}."
ASKING = PromptTemplate(f"Two numbers from 0 to 100 first. {OWN}")
NUMBERLESS = {
    "text": PromptTemplate(OWN),
    "selected": SelectorPromptTemplate(ASKING, [(lambda _: True, PromptTemplate(OWN))]),
}


@pytest.mark.parametrize("name", NUMBERLESS)
def test_prompt_without_numbers_is_refused(name: str) -> None:
    refused = pytest.raises(ConfigurationError, match="rag_prompt that asks for two numbers from 0 to 100")
    with refused:
        pipeline_for("llamaindex query", BY_NAME["a sure answer"], rag_prompt=NUMBERLESS[name])
    engine = pipeline_for("llamaindex query", BY_NAME["a sure answer"]).asked
    before = engine.get_prompts()
    for which in (engine, engine._response_synthesizer):
        with refused:
            which.update_prompts({"rag_prompt": NUMBERLESS[name]})
    assert engine.get_prompts() == before
    shown = before["rag_prompt"].get_template()
    assert shown == prompts.GRADED.replace("{context}", "{context_str}").replace("{question}", "{query_str}")
    engine.update_prompts({"rag_prompt": ASKING})
    assert engine.query(QUESTION).response == BY_NAME["a sure answer"].answer
    assert model_of(engine).calls[-1].prompt.startswith("Two numbers")


def test_prompts_beside_instructions_are_the_default_ones() -> None:
    """The prompts that are shown have the instructions; others in their place are refused, and nothing changes."""
    engine = pipeline_for("llamaindex query", BY_NAME["a sure answer"], instructions="In {French}.").asked
    shown = engine.get_prompts()
    for name in ("rag_prompt", "long_context_prompt"):
        text = shown[name].format(context_str="", query_str="", refusal="none")
        assert text.startswith("In {French}.\n\n")
        with pytest.raises(ConfigurationError, match="instructions= goes before the default prompts"):
            engine.update_prompts({name: ASKING})
    assert {**engine.get_prompts()} == {**shown}
    engine.update_prompts(shown)
    assert {**engine.get_prompts()} == {**shown}


def test_prompt_follows_the_options() -> None:
    engine = pipeline_for("llamaindex query", BY_NAME["a sure answer"], doubt_below=None, stop_below=None).asked
    engine._response_synthesizer.answerability = "text"
    assert "100" not in engine.get_prompts()["rag_prompt"].get_template()
    sections = BY_NAME["sections that answer"]
    steered = pipeline_for("llamaindex query", sections).asked
    tool = QueryEngineTool.from_defaults(steered, name="look", description="Look.")
    assert tool.call(QUESTION).content == sections.answer
