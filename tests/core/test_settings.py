"""The options that both frameworks take."""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any, get_type_hints

import numpy as np
import pytest

from langchain_parts import a_chain
from langchain_selfroute import SelfRouteChain
from llamaindex_parts import an_engine
from llamaindex_selfroute import SelfRouteSynthesizer
from selfroute import PAPER
from selfroute.calls.plan import Bounds, Plan
from selfroute.calls.settings import Options, Settings
from selfroute.errors import ConfigurationError
from selfroute.policies import Never


def test_settings_strip_the_refusal() -> None:
    assert Settings(refusal=" not in the text \n").refusal == "not in the text"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("refusal", None),
        ("refusal", "..."),
        ("answerability", "json"),
        *[(bound, value) for bound in ("doubt_below", "stop_below") for value in (-1, 101, 50.5, True, "50")],
        *[("stop_below", value) for value in ((5,), (5, 6, 7), (5, None))],
        *[(name, value) for name in ("instructions", "not_found") for value in ("", " ", 7)],
        *[
            ("sections", value)
            for value in (0, 4, 99, True, 4_000.5, "4000", (), (4_000, 0), (8_000, 4_000), (4_000, 4_000))
        ],
        *[("sections", value) for value in ((4_000, None), ("4000",), {4_000})],
        *[("doubt_below", value) for value in ((70,), (70, 60.5), (70, None), (70, 101), {70: 60})],
        *[("draft_passages", value) for value in (0, -1, True, 2.5, "5")],
        *[("max_documents", value) for value in (-1, True, 1.5, "2")],
        *[("escalation", value) for value in ("never", 5, Never)],
        *[("start", value) for value in ("section", None, 1)],
        ("max_context_tokens", 0),
        ("max_context_tokens", True),
        ("max_context_tokens", "many"),
        *[("priced_as", value) for value in ("gpt-4o", ":", 7, {}, {"rag": "openai:gpt-4o"}, {"llm": "gpt-4o"})],
    ],
)
def test_settings_refuse_by_name(name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=name) as error:
        Settings(**{name: value})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "what_to_do"),
    [
        ({"sections": 4}, "sections must be 'auto', a positive number of tokens, 100 or more"),
        ({"sections": (800, 400)}, "or ascending ones, such as (4_000, 16_000)"),
        ({"draft_passages": 0}, "draft_passages must be a whole number from 1 on, or None for all"),
        ({"max_documents": -1}, "max_documents must be a whole number from 0 on, or None for all"),
        ({"doubt_below": (70,)}, "a whole number from 0 to 100, a pair of them (draft, sections), or None"),
        (
            {"doubt_below": (70, 60), "sections": None, "answerability": "graded"},
            "set sections='auto' or sections=4_000, or pass one number",
        ),
        ({"doubt_below": (70, 60), "answerability": "text"}, "set answerability='graded' or 'structured'"),
        (
            {"start": "none"},
            "start must be 'rag', 'sections', 'auto' or 'long_context', or a callable that returns one",
        ),
        ({"start": "sections", "sections": None}, "set sections='auto' or sections=4_000, too"),
        ({"start": "long_context", "max_documents": 0}, "leave out one of them"),
    ],
)
@pytest.mark.parametrize("build", [Settings, Plan, a_chain, an_engine])
def test_settings_say_what_to_pass(build: Callable[..., Any], options: dict[str, Any], what_to_do: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(what_to_do)):
        build(**options)


def test_settings_take_numbers_of_numpy() -> None:
    settings = Plan(sections=[np.int64(4_000), 16_000], max_documents=np.int64(0), draft_passages=np.int8(3))  # type: ignore[arg-type]
    assert (settings.sections, settings.max_documents, settings.draft_passages) == ((4_000, 16_000), 0, 3)
    graded = Plan(answerability="graded", sections=4_000, doubt_below=[70, 60])  # type: ignore[arg-type]
    assert (graded.doubt_below, graded.bounds) == ((70, 60), Bounds(70, 20, (60,), 50))


def test_settings_ladder() -> None:
    assert Plan().ladder("rag") == ("rag", "sections", "sections", "long_context")
    assert Plan(**PAPER).ladder("rag") == ("rag", "long_context")
    assert Plan(sections=4_000).ladder("auto") == ("rag", "sections", "long_context")
    assert Plan(sections=(400, 800), max_documents=0).ladder("rag") == ("rag", "sections", "sections")
    assert Plan(sections=None, max_documents=0).ladder("rag") == ("rag",)
    assert Plan(sections=4_000).ladder("long_context") == ("long_context",)
    assert Plan(sections=(400, 800)).ladder("sections") == ("sections", "sections", "long_context")
    assert Plan(sections=4_000, max_documents=0).ladder("sections") == ("sections",)


def test_settings_section_tokens() -> None:
    settings = Plan()
    assert [settings.section_tokens(rung, drafted=1_350) for rung in (0, 1)] == [4_000, 16_000]
    assert [settings.section_tokens(rung, drafted=5_000) for rung in (0, 1)] == [13_000, 52_000]
    assert Plan(sections=500).section_tokens(0, drafted=5_000) == 500
    assert Plan(sections=(500, 600)).section_tokens(1, drafted=5_000) == 600


DECLARED: dict[str, tuple[Any, bool, tuple[str | None, str | None]]] = {  # the option, one model, draft and last step
    "a name": ("openai:gpt-4o-mini", False, ("gpt-4o-mini", None)),
    "a name, one model": ("openai:gpt-4o-mini", True, ("gpt-4o-mini", "gpt-4o-mini")),
    "llm": ({"llm": "openai:gpt-4o-mini"}, False, ("gpt-4o-mini", None)),
    "llm, one model": ({"llm": "openai:gpt-4o-mini"}, True, ("gpt-4o-mini", "gpt-4o-mini")),
    "long_context_llm": ({"long_context_llm": "openai:gpt-4o"}, False, (None, "gpt-4o")),
    "both": ({"llm": "openai:gpt-4o-mini", "long_context_llm": "openai:gpt-4o"}, True, ("gpt-4o-mini", "gpt-4o")),
    "none": (None, True, (None, None)),
}


@pytest.mark.parametrize("name", DECLARED)
def test_settings_declared_model(name: str) -> None:
    value, shared, expected = DECLARED[name]
    settings = Plan(priced_as=value)
    found = [settings.declared_model(step, shared=shared) for step in ("rag", "sections", "long_context")]
    assert tuple(model and model.name for model in found) == (expected[0], *expected)


@pytest.mark.parametrize("bound", ["doubt_below", "stop_below"])
def test_settings_bounds_need_numbers(bound: str) -> None:
    with pytest.raises(ConfigurationError, match="answerability='graded' or 'structured'"):
        Plan(**{bound: 50}, answerability="text")
    with pytest.raises(ConfigurationError, match=r"selfroute\.prompts\.GRADED shows how"):
        assert Plan(**{bound: 50}).as_text
    for answerability in (None, "graded", "structured"):
        assert Plan(answerability=answerability, **{bound: 0}).bounds
        assert Plan(answerability=answerability, **{bound: 100}).bounds


BOUNDS: list[tuple[dict[str, Any], Bounds | None]] = [
    ({}, Bounds(70, 20, (60, 50), 50)),
    ({"doubt_below": 40}, Bounds(40, 20, (40,), 50)),
    ({"doubt_below": (80, 70, 60)}, Bounds(80, 20, (70, 60), 50)),
    ({"stop_below": 5}, Bounds(70, 5, (60, 50), 5)),
    ({"stop_below": (5, 30)}, Bounds(70, 5, (60, 50), 30)),
    ({"answerability": "structured", "stop_below": 5}, Bounds(70, 5, (60, 50), 5)),
    ({"answerability": "structured"}, None),
    (dict(PAPER), None),
]


@pytest.mark.parametrize(("options", "bounds"), BOUNDS)
def test_settings_bounds(options: dict[str, Any], bounds: Bounds | None) -> None:
    assert Plan(**options).bounds == bounds


def test_settings_bounds_of_a_resolved_plan() -> None:
    plan = Plan()
    assert (plan.bounds, plan.as_text.bounds, plan.as_graded.bounds) == (plan.bounds, None, plan.bounds)
    assert (plan.as_text.degraded, plan.as_graded.degraded) == (True, False)


def test_settings_document_budget() -> None:
    assert Plan(max_context_tokens=70).document_budget(100_000) == 70
    assert Plan().document_budget(None) is None
    assert Plan().document_budget(100_000) == 89_000


def test_priced_as_is_copied() -> None:
    given = {"llm": "openai:gpt-4o-mini"}
    settings = Plan(priced_as=given)
    given["llm"] = "nonsense"
    model = settings.declared_model("rag", shared=True)
    assert model
    assert model.name == "gpt-4o-mini"


def test_options_are_described_wherever_they_are_taken() -> None:
    chain, engine = signature(SelfRouteChain).parameters, signature(SelfRouteSynthesizer).parameters
    assert [*chain][:3] == ["retriever", "llm", "documents"]
    assert chain["retriever"].default is chain["llm"].default is Parameter.empty
    for name, field in Settings.model_fields.items():
        assert field.description
        assert (chain[name].default, engine[name].default) == (field.default, field.default)
        assert SelfRouteChain.model_fields[name].description == field.description
        for doc in (SelfRouteChain.__doc__, SelfRouteSynthesizer.__init__.__doc__):
            assert f"\n    {name}: {field.description[:40]}" in str(doc)
    assert get_type_hints(Options) == {name: field.annotation for name, field in Settings.model_fields.items()}
