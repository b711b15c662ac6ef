"""Looks: each step asked once on the real chain or engine, and each strategy replayed ends as it does live."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

import both_parts
import judge_parts
import langchain_parts
import llamaindex_parts
from both_parts import HOSTS, Pipeline, each_host
from scenarios import FINAL, FOUND, QUESTION
from selfroute.usage.tokens import count_tokens
from selfroute_workbench.evaluation.evaluating import evaluate
from selfroute_workbench.evaluation.looks import STRATEGIES
from selfroute_workbench.evaluation.results import Evaluation

ONE = [{"question": QUESTION, "answers": ["Ms Okafor"]}]
TEXTS = [f"Passage {number} of the minutes." for number in range(20)]
END = "Nobody wrote down the rest."
LONG = f"Ms Okafor chaired it. {' '.join(TEXTS)} {'Tea was served to all who had come. ' * 1_200}{END}"
GRADED_ASKS, ASKS = "On the first line write two numbers", "On the first line write"
LEFT_OUT = "[...]"
LANGCHAIN, LLAMAINDEX = HOSTS


class ByEnd:
    """Knows a whole document by its end, which is never among the best sections."""

    def _step(self, prompt: str) -> str:
        return "long_context" if END in prompt else "rag"


class Scripted(ByEnd, langchain_parts.ScriptedModel):
    """A model of LangChain."""


class ScriptedNodes(ByEnd, llamaindex_parts.ScriptedLLM):
    """The same for LlamaIndex."""


@dataclass(frozen=True)
class Replies:
    """What a model writes: as the plain draft, as the graded one, and to sections after each."""

    plain: str = "unanswerable"
    graded: str = "80 20\nMr Lin"
    sections: str = "unanswerable"
    graded_sections: str = "30\nMr Tan"

    def __call__(self, prompt: str) -> tuple[str]:
        if judge_parts.is_judging(prompt):
            return (judge_parts.grade(prompt),)
        cut = LEFT_OUT in prompt
        if ASKS in prompt:
            return (self.graded_sections if cut else self.graded,)
        return (self.sections if cut else self.plain,)


MODELS = {LANGCHAIN: Scripted, LLAMAINDEX: ScriptedNodes}


def make(where: str, replies: Any, *, models: Any = MODELS, passages: int = 20, **fields: Any) -> Pipeline:
    """A pipeline over one long document, whose model writes these replies."""
    llm = models[where](draft=replies, final=FINAL, usage=True)
    return both_parts.pipeline(where, llm=llm, passages=TEXTS[:passages], documents=[LONG], **fields)


def _all(pipeline: Any, **options: Any) -> Evaluation:
    asked = pipeline.asked if isinstance(pipeline, Pipeline) else pipeline
    done = evaluate(asked, ONE, **{"strategies": STRATEGIES, **options})
    assert not done.failures, done.failures
    return done


def _routes(done: Evaluation) -> dict[str, Any]:
    return {each.strategy: (each.route, each.answer) for each in done.results}


def _kinds(calls: Any) -> list[str]:
    """Name each call of a model by its prompt."""
    found = []
    for call in calls:
        graded, cut = ASKS in call.prompt, LEFT_OUT in call.prompt
        named = ("graded_" if graded and cut else "graded" if graded else "") + ("sections" if cut else "")
        found.append(call.step if call.step == "long_context" else named or "rag")
    return sorted(found)


EVERY = ["graded", "graded_sections", "long_context", "rag", "sections"]
CASES: dict[str, tuple[Replies, dict[str, tuple[str, str]], list[str]]] = {
    "all go on": (
        Replies(),
        {
            "rag": ("rag", "unanswerable"),
            "self_route": ("long_context", FOUND),
            "sections": ("long_context", FOUND),
            "graded": ("long_context", FOUND),
            "graded_sections": ("long_context", FOUND),
        },
        EVERY,
    ),
    "the sections answer": (
        Replies(sections="Ms Ito", graded_sections="60\nMs Ito"),
        {
            "self_route": ("long_context", FOUND),
            "sections": ("sections", "Ms Ito"),
            "graded_sections": ("sections", "Ms Ito"),
        },
        EVERY,
    ),
    "a draft that is sure": (
        Replies(plain="Ms Ito", graded="99 95\nMs Ito"),
        dict.fromkeys(("rag", "self_route", "sections", "graded", "graded_sections"), ("rag", "Ms Ito")),
        ["graded", "long_context", "rag"],
    ),
    "a draft that other bounds would doubt": (
        Replies(plain="Ms Ito", graded="99 60\nMs Ito"),
        {"graded": ("rag", "Ms Ito"), "graded_sections": ("rag", "Ms Ito")},
        ["graded", "graded_sections", "long_context", "rag"],
    ),
    "a decline that ends there": (
        Replies(graded="5 0\nunanswerable"),
        {
            "self_route": ("long_context", FOUND),
            "graded": ("rag", "unanswerable"),
            "graded_sections": ("rag", "unanswerable"),
        },
        EVERY,
    ),
    "a draft without numbers": (
        Replies(plain="Ms Ito", graded="Ms Ito"),
        {"graded": ("rag", "Ms Ito"), "graded_sections": ("rag", "Ms Ito")},
        ["graded", "long_context", "rag"],
    ),
}


@each_host
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_looks_routes_and_calls(where: str, case: Any) -> None:
    replies, routes, paid = case
    pipeline = make(where, replies)
    found = _routes(_all(pipeline))
    assert {name: found[name] for name in routes} == routes
    assert found["long_context"] == ("long_context", FOUND)
    assert _kinds(pipeline.model.calls) == paid


@each_host
def test_looks_content(where: str) -> None:
    done = _all(make(where, Replies(graded="99 60\nMr Lin", graded_sections="70\nMs Okafor")), judge=True)
    looks = {each.step: each for each in done.looks}
    assert {step: (each.answer, each.declined, each.prospect, each.confidence) for step, each in looks.items()} == {
        "rag": ("unanswerable", True, None, None),
        "sections": ("unanswerable", True, None, None),
        "graded": ("Mr Lin", False, 99, 60),
        "graded_sections": ("Ms Okafor", False, None, 70),
        "long_context": (FOUND, False, None, None),
    }
    assert {step: (each.judged, each.judged_by) for step, each in looks.items()} == {
        "rag": (0.0, "rule"),
        "sections": (0.0, "rule"),
        "graded": (0.0, "model"),
        "graded_sections": (1.0, "model"),
        "long_context": (1.0, "model"),
    }
    assert looks["graded_sections"].score == 1.0
    assert "Ms Okafor" not in {each.answer for each in done.results if each.strategy == "graded_sections"}


LIVE: dict[str, dict[str, Any]] = {
    "rag": {"max_documents": 0},
    "self_route": {},
    "sections": {"sections": 4_000},
    "graded": {"answerability": "graded"},
    "graded_sections": {"answerability": "graded", "sections": 4_000},
    "long_context": {"start": "long_context"},
}
"""The options of a chain or an engine that follows a strategy."""
BOUNDS: dict[str, dict[str, Any]] = {
    "default bounds": {},
    "no bounds": {"doubt_below": 0, "stop_below": 0},
    "other bounds": {"doubt_below": 31, "stop_below": 20},
    "bounds of their own": {"doubt_below": (25, 65), "stop_below": 4},
    "the highest bounds": {"doubt_below": 90, "stop_below": 81},
}


@each_host
@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_looks_replay_matches_live(where: str, case: Any, bounds: dict[str, Any]) -> None:
    """Routing has one implementation: what a strategy shows and pays live is what is replayed, whatever the bounds."""
    replies, *_ = case
    asked = _all(make(where, replies))
    given = {name: _bounds_of(name, bounds) for name in LIVE}
    below = bounds.get("doubt_below", 50)
    replayed = {result.strategy: result for result in asked.results}
    if bounds:
        bound = {"doubt_below": below, "stop_below": bounds["stop_below"]}
        replayed["graded"] = asked.replay(**bound, sections=False)[0]
        replayed["graded_sections"] = asked.replay(**bound, sections=True)[0]
    for name, options in LIVE.items():
        live = asyncio.run(make(where, replies, **options, **given[name]).ask()).told
        found = replayed[name]
        tokens = found.input_tokens + found.output_tokens
        assert (found.route, found.answerable, tokens) == (
            live["route"],
            live["answerable"],
            live["usage"]["total_tokens"],
        ), name
        if found.answerable:
            assert found.answer == live["answer"], name


def _bounds_of(strategy: str, bounds: dict[str, Any]) -> dict[str, Any]:
    if "graded" not in strategy:
        return {}
    several = isinstance(bounds.get("doubt_below"), tuple) and strategy == "graded"
    return {**bounds, "doubt_below": bounds["doubt_below"][0]} if several else bounds


@each_host
def test_looks_nothing_retrieved(where: str) -> None:
    done = _all(make(where, Replies(sections="Ms Ito"), passages=0))
    looks = {each.step: (each.declined, each.input_tokens) for each in done.looks}
    assert (looks["rag"], looks["graded"]) == ((True, 0), (True, 0))
    assert {each.step: each.answer for each in done.looks}["sections"] == "Ms Ito", "sections are found by words alone"


@each_host
def test_looks_section_rungs(where: str) -> None:
    given = iter(["unanswerable", "Ms Ito"])
    replies = Replies(plain="unanswerable")

    def write(prompt: str) -> tuple[str]:
        return (next(given),) if LEFT_OUT in prompt else replies(prompt)

    pipeline = make(where, write, sections=(1_000, 3_000))
    done = _all(pipeline, strategies=["sections"])
    (result,) = done.results
    assert (result.route, result.answer) == ("sections", "Ms Ito")
    assert [(look.step, look.rung, look.answer) for look in result.paid] == [
        ("rag", 0, "unanswerable"),
        ("sections", 0, "unanswerable"),
        ("sections", 1, "Ms Ito"),
    ]
    assert [len(call.prompt.split()) for call in pipeline.model.calls] == [look.input_tokens for look in done.looks]
    assert done.settings["sections"] == (1_000, 3_000)


@each_host
def test_looks_own_bounds(where: str) -> None:
    own = {"answerability": "graded", "doubt_below": (30, 70), "stop_below": 90, "sections": 1_000}
    pipeline = make(where, Replies(graded="80 20\nMr Lin", graded_sections="69\nMr Tan"), **own)
    done = _all(pipeline)
    assert _routes(done)["graded_sections"] == ("long_context", FOUND), "69 is in doubt after sections"
    cut = [call.prompt for call in pipeline.model.calls if LEFT_OUT in call.prompt]
    assert cut
    assert all(600 < count_tokens(prompt) < 1_200 for prompt in cut)
    assert done.settings["model"].endswith("scripted")
    assert {name: done.settings[name] for name in ("doubt_below", "stop_below", "sections")} == {
        "doubt_below": [30, 70],
        "stop_below": 90,
        "sections": 1_000,
    }
    sure = make(where, Replies(graded="80 30\nMr Lin"), **own)
    assert _routes(_all(sure))["graded_sections"] == ("rag", "Mr Lin"), "30 is not in doubt in a draft"
