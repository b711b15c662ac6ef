"""The tools with which an agent looks for itself: their descriptions, and what they return."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, Field, create_model

from selfroute.calls.host import check_question
from selfroute.errors import ConfigurationError, InputError

MOST_TOKENS = 2_000
"""How many tokens an answer has at most, unless it is said."""
_LEAST = 100
_LONGEST_QUESTION = 10_000  # characters; ranking sections by more words would hold up everybody else
_logger = logging.getLogger("selfroute")


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """A tool, as it is described to a model.

    Attributes:
        about: What it is for.
        question: The argument that says what is looked for.
        arguments: The type of each argument, its default (`...` if it must be given), and what it means.
    """

    about: str
    question: str
    arguments: Mapping[str, tuple[type, Any, str]]

    def given(self, values: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """Return all arguments, of which a framework may pass some by their position."""
        defaults = {argument: default for argument, (_, default, _) in self.arguments.items() if default is not ...}
        return {**defaults, **dict(zip(self.arguments, values, strict=False)), **named}

    def schema(self, name: str) -> type[BaseModel]:
        """Return the model of its arguments."""
        fields: dict[str, Any] = {
            argument: (kind, Field(default, description=about))
            for argument, (kind, default, about) in self.arguments.items()
        }
        return create_model(name, **fields)


_DOCUMENT = (str, ..., "The document's name, as a search gives it")
TOOLS: Mapping[str, Tool] = {
    "search": Tool(
        "Search the documents. Returns the passages nearest to the query, each with the name of its document.",
        "query",
        {"query": (str, ..., "What to look for")},
    ),
    "find": Tool(
        "Find the parts of one document that share most with some words, with their offsets and pages.",
        "words",
        {"document": _DOCUMENT, "words": (str, ..., "Words to look for, or a question")},
    ),
    "open": Tool(
        "Read a stretch of one document that a search found, from an offset on.",
        "document",
        {"document": _DOCUMENT, "start": (int, 0, "The offset of the first character")},
    ),
}
"""The tools, by their names."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool returns to an agent.

    Attributes:
        content: The text for the model.
        artifact: The same as plain data, for programs.
    """

    content: str
    artifact: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the text for the model."""
        return self.content


def invalid(tool: Tool, given: Mapping[str, Any]) -> ToolResult | None:
    """Return what is wrong with the arguments that a model gave; None if nothing is."""
    question = given.get(tool.question)
    try:
        check_question(question)
    except InputError as error:
        return _refused(f"{error}")
    if len(given[tool.question]) > _LONGEST_QUESTION:
        return _refused(f"use at most {_LONGEST_QUESTION:,} characters")
    for argument, (kind, _, _) in tool.arguments.items():
        if not isinstance(given.get(argument), kind):
            return _refused(f"{argument} must be a {kind.__name__}")
    return None


def _refused(why: str) -> ToolResult:
    return ToolResult(f"Nothing was looked for: {why}.", {"refused": True})


def failed(tool: str, error: Exception) -> ToolResult:
    """Return the answer where a part failed; its error may hold addresses and keys, so it is logged."""
    _logger.warning("the tool %s failed, which its answer says", tool, exc_info=error)
    return ToolResult(f"This failed ({type(error).__name__}). Try other words, or go on without it.", {"failed": True})


def absent(name: str) -> ToolResult:
    """Return the answer for a document of which the retriever returns nothing."""
    shown = name[:200].encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    advice = "Search for what it says first, and name it as the search does."
    return ToolResult(f"There is no such document: {shown!r}. {advice}", {"document": shown, "missing": True})


def check_most(max_tokens: Any) -> int:
    """Return how many tokens an answer has at most.

    Raises:
        ConfigurationError: That is less than 100.
    """
    if not isinstance(max_tokens, int) or max_tokens < _LEAST:
        msg = f"max_tokens={max_tokens!r}: an answer needs at least {_LEAST} tokens"
        raise ConfigurationError(msg)
    return max_tokens
