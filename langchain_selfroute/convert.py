"""LangChain's words <-> the core's: inputs, messages, token counts, errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import BaseMessage
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable
from langchain_core.runnables.base import RunnableBindingBase

from selfroute import window
from selfroute.errors import InputError, ReplyError
from selfroute.usage import NOTHING, StepUsage

OUTPUT_KEYS = frozenset({"retrieved", "context", "answer", "route", "answerable", "decision", "usage"})


def inputs_of(given: Any) -> dict[str, Any]:
    """Make the input of a chain a dict with the question under `input`.

    Keys that the output has too are left out: they come back when a LangGraph state is fed in again.

    Raises:
        InputError: It is no question.
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
    return {key: value for key, value in given.items() if key not in OUTPUT_KEYS}


def text_of(message: Any) -> str:
    """The text of what a model returned: a message, a chunk of one, or a string.

    Raises:
        ReplyError: It is neither.
    """
    if isinstance(message, BaseMessage):
        content = message.content
        return content if type(content) is str else str(message.text) if content else ""
    if isinstance(message, str):
        return str(message)
    msg = f"llm and long_context_llm must return a message or a string, not {type(message).__name__}"
    raise ReplyError(msg)


class Tally:
    """Collects the text and the token counts of one model call."""

    __slots__ = ("counts", "text", "whole")

    def __init__(self, *, whole: bool) -> None:
        """Start.

        Args:
            whole: Whether the reply comes at once, so that it can not be cut short.
        """
        self.text: list[str] = []
        self.counts: StepUsage | None = None
        self.whole = whole

    def add(self, message: Any) -> str:
        """Take a message or a chunk and return its text."""
        text = text_of(message)
        self.text.append(text)
        reported = getattr(message, "usage_metadata", None)
        if reported:
            counts = StepUsage(
                reported.get("input_tokens") or 0,
                reported.get("output_tokens") or 0,
                (reported.get("input_token_details") or {}).get("cache_read") or 0,
            )
            self.counts = self.counts + counts if self.counts else counts
        return text

    def usage(self, prompt: PromptValue, *, count: Callable[[str], int]) -> StepUsage | None:
        """What the call cost; None if the model gave nothing at all."""
        if not self.text:
            return None
        if self.whole and self.counts:
            return self.counts
        known = self.counts or NOTHING
        asked = "\n".join(str(message.text) for message in prompt.to_messages())
        return known.filled_in(prompt=asked, reply="".join(self.text), count=count)


def window_of(model: Runnable[Any, Any]) -> int | None:
    """How many tokens a model says that it takes, as far as it says so (`profile`)."""
    while isinstance(model, RunnableBindingBase):  # of which not all pass it on
        model = model.bound
    profile = getattr(model, "profile", None)
    window = profile.get("max_input_tokens") if isinstance(profile, dict) else None
    return window if isinstance(window, int) else None


def is_too_long(error: Exception) -> bool:
    """Whether a model refused its prompt as too long, typed or in words."""
    return isinstance(error, ContextOverflowError) or window.is_too_long(error)
