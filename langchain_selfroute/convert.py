"""Convert between LangChain and the core: inputs, messages, errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs

from selfroute.documents import overflow
from selfroute.errors import InputError, ReplyError

_ALWAYS = ("retrieved", "context", "answer", "route", "answerable", "finish_reason", "decision", "usage")
OUTPUT_KEYS = frozenset([*_ALWAYS, "citations", "unverified_quotes"])


def inputs_of(given: Any) -> dict[str, Any]:
    """Return the input of a chain as a dict with the question under `input`.

    Keys of the output are left out: they are there if the state of a LangGraph graph is passed in again.

    Raises:
        InputError: The input is not a question.
    """
    if isinstance(given, str):
        return {"input": given}
    if type(given) is not dict and not isinstance(given, Mapping):
        msg = f"SelfRouteChain takes a string or a dict with the key 'input', not {type(given).__name__}"
        raise InputError(msg)
    question = given.get("input")
    if not isinstance(question, str):
        found = f"it is {type(question).__name__}" if "input" in given else f"the keys are {sorted(map(str, given))}"
        msg = f"SelfRouteChain takes a string or a dict with the question, a string, under the key 'input'; {found}"
        raise InputError(msg)
    if not all(isinstance(key, str) for key in given):
        msg = f"the keys of the input must be strings; they are {sorted(map(repr, given))}"
        raise InputError(msg)
    return {key: value for key, value in given.items() if key not in OUTPUT_KEYS}


def text_of(message: Any) -> str:
    """Return the text of what a model returned: a message, a chunk of a message, or a string.

    Raises:
        ReplyError: It is something else.
    """
    if isinstance(message, BaseMessage):
        content = message.content
        return content if type(content) is str else str(message.text) if content else ""
    if isinstance(message, str):
        return str(message)
    msg = f"llm and long_context_llm must return a message or a string, not {type(message).__name__}"
    raise ReplyError(msg)


def is_too_long(error: Exception) -> bool:
    """Return whether an error means that a prompt was too long, by its type or by its message."""
    return isinstance(error, ContextOverflowError) or overflow.is_too_long(error)


def config_within(binding: Any, config: RunnableConfig | None) -> RunnableConfig:
    """Return the config that a binding hands to the runnable inside it, when it is called with a config."""
    merged = merge_configs(binding.config, config)
    return merge_configs(merged, *(made(merged) for made in binding.config_factories))
