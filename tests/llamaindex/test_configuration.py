"""What an engine and its synthesizer are given: in the constructor, from the settings, and set later."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pytest
from llama_index.core import Settings
from llama_index.core.callbacks import CallbackManager
from llama_index.core.prompts import PromptTemplate
from llama_index.core.response_synthesizers import CompactAndRefine
from llama_index.core.schema import Document
from pydantic import BaseModel

from llamaindex_parts import DOCUMENTS, FAR_APART, STREAMS, WHOLE, ListRetriever, ScriptedLLM, ask
from llamaindex_selfroute import SelfRouteQueryEngine, SelfRouteSynthesizer
from scenarios import FINAL, FOUND, QUESTION
from selfroute.errors import SelfRouteError
from selfroute.policies import Never

CUSTOM = PromptTemplate("Custom. {context_str} {query_str} {refusal}")
MODEL = ScriptedLLM(draft=("Mr Lin.",))
BUILDS: Any = (SelfRouteQueryEngine, SelfRouteQueryEngine.from_args)


class Person(BaseModel):
    """What a structured model writes."""

    name: str


@pytest.mark.parametrize("name", ["llm", "long_context_llm"])
def test_a_structured_model_is_refused(name: str) -> None:
    models = {"llm": MODEL, name: MODEL.as_structured_llm(Person)}
    for build in (*BUILDS, lambda _, **parts: SelfRouteSynthesizer(**parts)):
        with pytest.raises(SelfRouteError, match=f"{name}.*StructuredLLM"):
            build(ListRetriever(), documents=DOCUMENTS, **models)


def test_another_synthesizer_is_refused() -> None:
    with pytest.raises(SelfRouteError, match=r"SelfRouteSynthesizer.*CompactAndRefine"):
        SelfRouteQueryEngine(ListRetriever(), CompactAndRefine(llm=MODEL))


TWICE: dict[str, Any] = {
    "documents": DOCUMENTS,
    "llm": ScriptedLLM(draft=("Another.",)),
    "long_context_llm": MODEL,
    "refusal": "PASS",
    "streaming": True,
}


@pytest.mark.parametrize("name", TWICE)
def test_what_a_synthesizer_holds_is_not_given_a_second_time(name: str) -> None:
    synthesizer = SelfRouteSynthesizer(documents=DOCUMENTS, llm=MODEL)
    with pytest.raises(SelfRouteError, match=name):
        SelfRouteQueryEngine(ListRetriever(), synthesizer, **{name: TWICE[name]})
    with pytest.raises(TypeError, match="typo"):
        SelfRouteQueryEngine(ListRetriever(), synthesizer, typo=2)  # type: ignore[call-arg]
    engine = SelfRouteQueryEngine.from_args(ListRetriever(), MODEL, response_synthesizer=synthesizer)
    assert engine.query(QUESTION).metadata["route"] == "rag"  # LlamaIndex gives its own engines the model twice


@pytest.mark.parametrize("mode", FAR_APART)
async def test_the_model_of_the_settings_is_the_default(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Settings, "_llm", llm := ScriptedLLM(draft=("unanswerable",), final=FINAL))
    parts: Any = {"documents": DOCUMENTS, "streaming": mode in STREAMS}
    for engine in (
        *(build(ListRetriever(), **parts) for build in BUILDS),
        SelfRouteQueryEngine(ListRetriever(), SelfRouteSynthesizer(**parts)),
    ):
        llm.calls.clear()
        assert (await ask(engine, QUESTION, mode)).text == FOUND
        assert llm.steps == ["rag", "long_context"]


@pytest.mark.parametrize("build", BUILDS)
def test_callback_manager_is_set_on_all_parts(build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models keep theirs if none is given."""
    default, manager, own = CallbackManager([]), CallbackManager([]), CallbackManager([])
    monkeypatch.setattr(Settings, "_callback_manager", default)
    for given in (None, manager):
        first, second = ScriptedLLM(draft=("unanswerable",)), ScriptedLLM(final=FINAL)
        first.callback_manager = second.callback_manager = own
        parts: Any = {"documents": DOCUMENTS, "llm": first, "long_context_llm": second, "callback_manager": given}
        engine = build(ListRetriever(), **parts)
        assert engine.callback_manager is (given or default)
        assert all(part.callback_manager is (given or own) for part in (first, second))
        assert given is None or engine._response_synthesizer.callback_manager is given
        synthesizer = SelfRouteSynthesizer(**parts)
        assert all(part.callback_manager is (given or own) for part in (first, second))
        assert given is None or SelfRouteQueryEngine(ListRetriever(), synthesizer).callback_manager is given
        synthesizer.callback_manager = other = CallbackManager([])
        assert all(part.callback_manager is other for part in (synthesizer, first, second))


def _synthesizer(**fields: Any) -> SelfRouteSynthesizer:
    llm = ScriptedLLM(draft=("80 42\nMr Lin.",), final=FINAL, usage=True)
    return SelfRouteSynthesizer(**{"documents": DOCUMENTS, "llm": llm, "answerability": "graded", **fields})


def _came_to(engine: SelfRouteQueryEngine) -> tuple[Any, ...]:
    """What a question comes to, and what was sent for it."""
    held = engine._response_synthesizer
    models = (held.llm, held.long_context_llm or held.llm)
    for model in models:
        model.calls.clear()
    response = engine.query(QUESTION)
    sent = [[call.prompt for call in model.calls] for model in models]
    return type(response), str(response), response.metadata, [item.text for item in response.source_nodes], sent


ANOTHER = ScriptedLLM(draft=("80 42\nnone",), final=("Another.",))
ASKING = PromptTemplate("Two numbers to 100. {context_str} {query_str}")
LATER: dict[str, tuple[Any, Any]] = {  # a value that is set later, and one that is refused; None if any may be set
    "documents": ([Document(text=f"{WHOLE} other")], []),
    "llm": (ANOTHER, "gpt-4o"),
    "long_context_llm": (ANOTHER, "gpt-4o"),
    "rag_prompt": (ASKING, "x"),
    "long_context_prompt": (CUSTOM, PromptTemplate("x")),
    "document_prompt": (PromptTemplate("{content}"), "x"),
    "refusal": ("none", " "),
    "instructions": ("Answer in French.", " "),
    "not_found": ("Ask the harbour office.", " "),
    "answerability": ("text", "x"),
    "doubt_below": (40, 101),
    "stop_below": (90, 101),
    "sections": (400, 99),
    "draft_passages": (1, 0),
    "max_documents": (1, -1),
    "escalation": (Never(), 7),
    "start": ("long_context", 7),
    "max_context_tokens": (7, 0),
    "citations": (True, None),
    "prompt_cache": ("1h", "x"),
    "priced_as": ("openai:gpt-4o", "x:"),
    "streaming": (True, None),
}


def test_every_argument_of_the_constructor_can_be_set_later() -> None:
    assert {*signature(SelfRouteSynthesizer).parameters} == {*LATER, "callback_manager"}


@pytest.mark.parametrize("name", LATER)
def test_option_set_later_counts(name: str) -> None:
    synthesizer = _synthesizer()
    engine = SelfRouteQueryEngine(ListRetriever(), synthesizer)
    value, wrong = LATER[name]
    before = getattr(synthesizer, name)
    if wrong is not None:
        with pytest.raises(SelfRouteError):
            setattr(synthesizer, name, wrong)
        assert getattr(synthesizer, name) is before
    setattr(synthesizer, name, value)
    assert getattr(synthesizer, name) == value
    expected = _came_to(SelfRouteQueryEngine(ListRetriever(), _synthesizer(**{name: value})))
    assert _came_to(engine) == _came_to(engine.with_retriever(ListRetriever())) == expected
    unseen = {"not_found", "stop_below", "sections", "max_documents", "start", "prompt_cache", "max_context_tokens"}
    if name not in unseen:
        assert expected != _came_to(SelfRouteQueryEngine(ListRetriever(), _synthesizer()))
