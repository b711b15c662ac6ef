"""The fields of a synthesizer, which are checked whenever they are set and count from the next query on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate

from llamaindex_selfroute.arguments import check_callbacks, check_documents, check_model
from llamaindex_selfroute.convert import checked_prompt
from llamaindex_selfroute.documents import Source
from selfroute.calls.settings import SETTINGS, checked

PROMPTS = ("rag_prompt", "long_context_prompt")


class CheckedFields:
    """Checks each field that is set, and keeps under LlamaIndex's own names what LlamaIndex also reads.

    Attributes:
        documents: Where the whole documents come from.
        long_context_llm: The model of the second step; None for `llm`.
        rag_prompt: The prompt of the first step.
        long_context_prompt: The prompt of the second step.
        document_prompt: Formats each node and document in the context; None for their own format.
    """

    if TYPE_CHECKING:  # a value is checked when it is set, so what is read has the right type
        documents: Source
        long_context_llm: LLM | None
        rag_prompt: BasePromptTemplate
        long_context_prompt: BasePromptTemplate
        document_prompt: BasePromptTemplate | None
        _llm: LLM
        _streaming: bool
        _callback_manager: CallbackManager

        def __setattr__(self, name: str, value: Any) -> None: ...

    else:

        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, _CHECKS[name](value) if name in _CHECKS else value)

    @property
    def llm(self) -> LLM:
        """The model of the first step."""
        return self._llm

    @llm.setter
    def llm(self, llm: LLM) -> None:
        self._llm = llm

    @property
    def streaming(self) -> bool:
        """Whether to answer in pieces."""
        return self._streaming

    @streaming.setter
    def streaming(self, streaming: bool) -> None:
        self._streaming = streaming

    @property
    def callback_manager(self) -> CallbackManager:
        """The callback manager; setting it sets it on both models."""
        return self._callback_manager

    @callback_manager.setter
    def callback_manager(self, callback_manager: CallbackManager) -> None:
        self._callback_manager = callback_manager
        for model in (self.llm, self.long_context_llm):
            if model:
                model.callback_manager = callback_manager


def _passing(check: Callable[[Any], None]) -> Callable[[Any], Any]:
    """Return a function that checks a value and returns it."""

    def passed(value: Any) -> Any:
        check(value)
        return value

    return passed


def _optional(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else check(value)


_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "documents": _passing(check_documents),
    "callback_manager": _passing(check_callbacks),
    "llm": _passing(partial(check_model, "llm")),
    "long_context_llm": _optional(_passing(partial(check_model, "long_context_llm"))),
    "document_prompt": _optional(partial(checked_prompt, "document_prompt", variables={"content"})),
    **{name: partial(checked_prompt, name) for name in PROMPTS},
    **{name: partial(checked, name) for name in SETTINGS},
}
