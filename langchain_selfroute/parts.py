"""The parts of a chain that one call works with: a snapshot, so that changing the chain does not affect the call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable

from langchain_selfroute.documents import Source
from selfroute.calls.memory import Memory
from selfroute.calls.settings import Settings
from selfroute.flow import Route
from selfroute.usage.prices import is_one_model


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """The parts of a chain.

    Attributes:
        retriever: Finds the passages.
        models: The model of each step.
        prompts: The prompt of each step.
        documents: Where the whole documents come from.
        document_prompt: Formats each passage and document; None to use its text.
        settings: The options.
        memory: What the chain keeps between calls.
    """

    retriever: Runnable[Any, Any]
    models: Mapping[Route, Runnable[Any, Any]]
    prompts: Mapping[Route, Runnable[Any, Any]]
    documents: Source
    document_prompt: BasePromptTemplate[Any] | None
    settings: Settings
    memory: Memory

    @property
    def one_model(self) -> bool:
        """Whether one model performs both steps."""
        return is_one_model(self.models)
