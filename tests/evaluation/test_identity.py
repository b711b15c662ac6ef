"""A kept reply is used for the model that gave it, with its settings and wrappers, and for no other."""

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
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_openai import ChatOpenAI
from llama_index.llms.openai_like import OpenAILike

from selfroute.errors import ConfigurationError
from selfroute.evaluation.asking.identity import describe_model, identity_of
from selfroute.evaluation.asking.replies import Replies

URL = "http://127.0.0.1:9/v1"


def openai(**settings: Any) -> ChatOpenAI:
    return ChatOpenAI(**{"model": "m", "base_url": URL, "api_key": "sk-first-key", **settings})


def openai_like(**settings: Any) -> OpenAILike:
    return OpenAILike(**{"model": "m", "api_base": URL, "api_key": "sk-first-key", **settings})


def configurable(**chosen: str) -> Any:
    return openai().configurable_fields(model_name=ConfigurableField(id="name")).with_config(configurable=chosen)


DIFFERENT: dict[str, Callable[[], Any]] = {
    "plain": openai,
    "another model": lambda: openai(model="n"),
    "another address": lambda: openai(base_url="http://127.0.0.1:10/v1"),
    "warmer": lambda: openai(temperature=1.0),
    "bound": lambda: openai().bind(temperature=0.5),
    "bound otherwise": lambda: openai().bind(temperature=0.6),
    "with a fallback": lambda: openai().with_fallbacks([openai(model="n")]),
    "the other way round": lambda: openai(model="n").with_fallbacks([openai()]),
    "after a prompt": lambda: ChatPromptTemplate([("human", "Be brief. {text}")]) | openai(),
    "after another prompt": lambda: ChatPromptTemplate([("human", "Be long. {text}")]) | openai(),
    "before a parser": lambda: openai() | StrOutputParser(),
    "configured": lambda: configurable(name="n"),
    "configured otherwise": lambda: configurable(name="o"),
    "a fake": lambda: FakeListChatModel(responses=["one"]),
    "another fake": lambda: FakeListChatModel(responses=["two"]),
    "llamaindex": openai_like,
    "llamaindex warmer": lambda: openai_like(temperature=1.0),
}

UNKNOWN: dict[str, Callable[[], Any]] = {
    "a function": lambda: RunnableLambda(lambda _: "one"),
    "a function in a sequence": lambda: openai() | (lambda message: message),
    "a function as a fallback": lambda: openai().with_fallbacks([RunnableLambda(lambda _: "one")]),
    "a bound function": lambda: openai().bind(tools=[lambda: "one"]),
}


@pytest.mark.parametrize(("first", "second"), list(combinations(DIFFERENT, 2)))
def test_models_that_may_reply_differently_have_different_descriptions(first: str, second: str) -> None:
    assert describe_model(DIFFERENT[first]()) != describe_model(DIFFERENT[second]())


@pytest.mark.parametrize("name", DIFFERENT)
def test_the_same_model_made_twice_has_one_description(name: str) -> None:
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
def test_settings_that_replies_do_not_depend_on_are_not_described(other: ChatOpenAI) -> None:
    assert describe_model(other) == describe_model(openai())


def test_no_key_is_described() -> None:
    assert "sk-first-key" not in repr([describe_model(make()) for make in DIFFERENT.values()])


@pytest.mark.parametrize("make", UNKNOWN.values(), ids=UNKNOWN)
def test_a_function_needs_a_name_where_replies_are_kept(make: Callable[[], Any], tmp_path: Path) -> None:
    model = make()
    with Replies(tmp_path) as kept:
        with pytest.raises(
            ConfigurationError, match=r"give the pipeline a name with name=\.\.\., or leave out folder="
        ):
            identity_of(model, "rag", None, kept)
        assert identity_of(model, "rag", "mine", kept) == identity_of(make(), "rag", "mine", kept)
        assert identity_of(model, "rag", "mine", kept) != identity_of(model, "rag", "yours", kept)
    in_memory = Replies()
    assert identity_of(model, "rag", None, in_memory) == identity_of(model, "rag", None, in_memory)
    assert identity_of(model, "rag", None, in_memory) != identity_of(make(), "rag", None, in_memory)


@pytest.mark.matrix
def test_a_description_is_the_same_in_another_process() -> None:
    code = (
        "import json, test_identity as here\n"
        "print(json.dumps([here.describe_model(make()) for make in here.DIFFERENT.values()]))"
    )
    there = subprocess.check_output([sys.executable, "-c", code], cwd=Path(__file__).parent, text=True)  # noqa: S603
    assert json.loads(there) == [describe_model(make()) for make in DIFFERENT.values()]
