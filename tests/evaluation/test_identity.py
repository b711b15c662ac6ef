"""A kept reply is used for the model that gave it, with its settings and all that is around it, and for no other."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_openai import ChatOpenAI

from selfroute.evaluation.asking.identity import describe_model

URL = "http://127.0.0.1:9/v1"


def openai(**settings: Any) -> ChatOpenAI:
    return ChatOpenAI(**{"model": "m", "base_url": URL, "api_key": "sk-first-key", **settings})


def prefixed(prefix: str) -> RunnableLambda[Any, Any]:
    return RunnableLambda(lambda prompt: [("system", prefix), *prompt.to_messages()])


DIFFERENT: dict[str, Callable[[], Any]] = {
    "plain": openai,
    "another model": lambda: openai(model="n"),
    "warmer": lambda: openai(temperature=1.0),
    "bound": lambda: openai().bind(temperature=0.5),
    "bound otherwise": lambda: openai().bind(temperature=0.6),
    "with a fallback": lambda: openai().with_fallbacks([openai(model="n")]),
    "the other way round": lambda: openai(model="n").with_fallbacks([openai()]),
    "after a prefix": lambda: prefixed("Be brief.") | openai(),
    "after another prefix": lambda: prefixed("Be long.") | openai(),
    "a function": lambda: RunnableLambda(lambda _: "one"),
    "another function": lambda: RunnableLambda(lambda _: "two"),
    "a fake": lambda: FakeListChatModel(responses=["one"]),
    "another fake": lambda: FakeListChatModel(responses=["two"]),
}


@pytest.mark.parametrize(("first", "second"), list(combinations(DIFFERENT, 2)))
def test_what_may_reply_otherwise_is_told_apart(first: str, second: str) -> None:
    assert describe_model(DIFFERENT[first]()) != describe_model(DIFFERENT[second]())


@pytest.mark.parametrize("name", DIFFERENT)
def test_the_same_model_made_twice_is_one(name: str) -> None:
    assert describe_model(DIFFERENT[name]()) == describe_model(DIFFERENT[name]())


@pytest.mark.parametrize(
    "other",
    [
        openai(api_key="sk-second-key"),
        openai(max_retries=7),
        openai(timeout=3),
        openai(default_headers={"x-team": "ours"}),
    ],
    ids=["key", "retries", "timeout", "headers"],
)
def test_what_a_reply_does_not_depend_on_tells_nothing_apart(other: ChatOpenAI) -> None:
    assert describe_model(other) == describe_model(openai())


def test_a_configurable_model_is_what_it_is_configured_to_be() -> None:
    model = openai().configurable_fields(model_name=ConfigurableField(id="name"))
    assert describe_model(model, {"configurable": {"name": "n"}}) == describe_model(openai(model="n"))
    assert describe_model(model) == describe_model(openai())


def test_no_key_is_told() -> None:
    assert "sk-first-key" not in repr([describe_model(make()) for make in DIFFERENT.values()])


@pytest.mark.matrix
def test_a_model_is_the_same_in_another_process() -> None:
    names = ["plain", "bound", "with a fallback", "after a prefix", "a function", "a fake"]
    code = (
        "import json, test_identity as here\n"
        f"print(json.dumps([here.describe_model(here.DIFFERENT[name]()) for name in {names}], default=repr))"
    )
    there = subprocess.check_output([sys.executable, "-c", code], cwd=Path(__file__).parent, text=True)  # noqa: S603
    here = [describe_model(DIFFERENT[name]()) for name in names]
    assert json.loads(there) == json.loads(json.dumps(here, default=repr))
