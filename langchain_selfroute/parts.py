"""The parts of a chain that one call works with: a snapshot, so that changing the chain does not affect the call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable

from langchain_selfroute.documents import Source
from selfroute.flow import Route
from selfroute.settings import Settings
from selfroute.usage.prices import ModelNames
from selfroute.usage.savings import LongContextEstimate


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
        names: The names by which the models are priced.
        estimate: What the chain has learned about the cost of reading documents.
    """

    retriever: Runnable[Any, Any]
    models: Mapping[Route, Runnable[Any, Any]]
    prompts: Mapping[Route, Runnable[Any, Any]]
    documents: Source
    document_prompt: BasePromptTemplate[Any] | None
    settings: Settings
    names: ModelNames
    estimate: LongContextEstimate

    @property
    def one_model(self) -> bool:
        """Whether one model performs both steps."""
        return self.models["rag"] is self.models["long_context"]
