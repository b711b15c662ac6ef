"""The options of an engine, however it is copied and configured."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core import PromptTemplate
from llama_index.core.prompts import SelectorPromptTemplate
from llama_index.core.tools import QueryEngineTool

from llamaindex_parts import (
    FAR_APART,
    LONG_DOCUMENTS,
    MODES,
    QUESTION,
    ListRetriever,
    ScriptedLLM,
    ask,
    model_of,
    steered_engine,
)
from llamaindex_selfroute import SelfRouteQueryEngine, SelfRouteSynthesizer
from scenarios import FINAL
from selfroute import prompts
from selfroute.errors import ConfigurationError
from selfroute.policies import Budget
from steering import BY_NAME, GRADED, LOOKED, RUNG, yes

every_mode = pytest.mark.parametrize("mode", MODES)
far_apart = pytest.mark.parametrize("mode", FAR_APART)
SECTIONS = BY_NAME["sections that answer"]


REMADE: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda engine: engine,
    "copied": copy.copy,
    "copied deeply": copy.deepcopy,
    "with another retriever": lambda engine: engine.with_retriever(ListRetriever()),
    "from its synthesizer": lambda engine: SelfRouteQueryEngine(ListRetriever(), engine._response_synthesizer),
}
ALL_OPTIONS: dict[str, Any] = {
    **GRADED,
    "doubt_below": 60,
    "stop_below": 10,
    "sections": RUNG,
    "draft_passages": 1,
    "max_documents": 1,
    "start": "rag",
}


@far_apart
@pytest.mark.parametrize("how", REMADE)
async def test_an_engine_that_was_made_again_has_all_options(how: str, mode: str) -> None:
    doubted = ("80 55\n", *LOOKED)
    unsure = ("55\n", *LOOKED)
    engine = steered_engine(SECTIONS, mode, draft=doubted, looks=(unsure,), final=FINAL, escalation=yes, **ALL_OPTIONS)
    again = REMADE[how](engine)
    asked = await ask(again, QUESTION, mode)
    assert (asked.decision["signal"], asked.decision["ruling"]["by"]) == ("doubt", "yes")
    assert asked.route == "long_context"
    assert asked.usage["sections"]


def test_a_synthesizer_pickles_with_all_options() -> None:
    synthesizer = SelfRouteSynthesizer(
        documents=LONG_DOCUMENTS, llm=ScriptedLLM(), escalation=Budget(tokens=9), **ALL_OPTIONS
    )
    again = pickle.loads(pickle.dumps(synthesizer))  # noqa: S301 - our own
    assert [getattr(again, name) for name in ALL_OPTIONS] == [getattr(synthesizer, name) for name in ALL_OPTIONS]
    assert again.escalation.left == {"usd": None, "tokens": 9}


OWN = "From {context_str} answer {query_str} or write {refusal}."
ASKING = "Two numbers from 0 to 100 first. " + OWN
PROMPTS: dict[str, Callable[[str], Any]] = {
    "text": PromptTemplate,
    "selected": lambda text: SelectorPromptTemplate(PromptTemplate(ASKING), [(lambda _: True, PromptTemplate(text))]),
}


@pytest.mark.parametrize("name", PROMPTS)
def test_a_prompt_that_asks_for_no_numbers_is_refused_where_they_are_needed(name: str) -> None:
    refused = pytest.raises(ConfigurationError, match="rag_prompt that asks for two numbers from 0 to 100")
    sure = BY_NAME["a sure answer"]
    with refused:
        steered_engine(sure, "query", rag_prompt=PROMPTS[name](OWN))
    engine = steered_engine(sure, "query")
    before = engine.get_prompts()
    for which in (engine, engine._response_synthesizer):
        with refused:
            which.update_prompts({"rag_prompt": PROMPTS[name](OWN)})
    assert engine.get_prompts() == before
    engine.update_prompts({"rag_prompt": PROMPTS[name](ASKING)})
    assert engine.query(QUESTION).response == sure.answer
    assert model_of(engine).calls[-1].prompt.startswith("Two numbers")
    assert steered_engine(sure, "query", rag_prompt=PROMPTS[name](OWN), answerability="structured", doubt_below=50)


@every_mode
async def test_each_step_is_asked_for_its_numbers_alone(mode: str) -> None:
    engine = steered_engine(BY_NAME["a doubt that sections share"], mode)
    await ask(engine, QUESTION, mode)
    asked = [call.prompt for call in model_of(engine).calls]
    assert ["two numbers from 0 to 100" in prompt for prompt in asked] == [True, False, False]
    assert ["write a number from 0 to 100" in prompt for prompt in asked] == [False, True, False]
    shown = engine.get_prompts()["rag_prompt"].get_template()
    assert shown == prompts.GRADED.replace("{context}", "{context_str}").replace("{question}", "{query_str}")
    engine._response_synthesizer.answerability = "text"
    assert "100" not in engine.get_prompts()["rag_prompt"].get_template()


def test_a_steered_engine_is_a_tool() -> None:
    tool = QueryEngineTool.from_defaults(steered_engine(SECTIONS, "query"), name="look", description="Look.")
    assert tool.call(QUESTION).content == SECTIONS.answer
