"""Call LlamaIndex's models, and read what they say of themselves: their names and windows."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Generator
from functools import cache
from typing import Any, TypeAlias

from llama_index.core.constants import DEFAULT_CONTEXT_WINDOW
from llama_index.core.llms import LLM, ChatMessage, ChatResponse, CompletionResponse, LLMMetadata

from selfroute.calls.memory import Said
from selfroute.usage.addresses import address_of
from selfroute.usage.prices import PricedModel

ModelInput: TypeAlias = list[ChatMessage] | str
LLMResponse: TypeAlias = ChatResponse | CompletionResponse

_PACKAGES = "llama_index.llms."
_NAMELESS: str = LLMMetadata.model_fields["model_name"].default
_NO_USAGE = (
    "%s reported no token counts for a streamed reply, so they are estimated; use "
    'additional_kwargs={"stream_options": {"include_usage": True}} to have them reported'
)
_logger = logging.getLogger(__name__)


def ask(llm: LLM, prompt: ModelInput) -> LLMResponse:
    """Return the reply of a model as a whole."""
    return llm.complete(prompt, formatted=True) if isinstance(prompt, str) else llm.chat(prompt)


async def aask(llm: LLM, prompt: ModelInput) -> LLMResponse:
    """The async twin of `ask`."""
    return await llm.acomplete(prompt, formatted=True) if isinstance(prompt, str) else await llm.achat(prompt)


def ask_stream(llm: LLM, prompt: ModelInput) -> Generator[LLMResponse, None, None]:
    """Return the reply of a model as a stream of pieces."""
    return llm.stream_complete(prompt, formatted=True) if isinstance(prompt, str) else llm.stream_chat(prompt)


async def aask_stream(llm: LLM, prompt: ModelInput) -> AsyncGenerator[LLMResponse, None]:
    """The async twin of `ask_stream`."""
    if isinstance(prompt, str):
        return await llm.astream_complete(prompt, formatted=True)
    return await llm.astream_chat(prompt)


def name_of(llm: LLM) -> PricedModel:
    """Return the name by which a model is priced, if it reports one; its package names the provider."""
    try:
        name: Any = llm.metadata.model_name
    except Exception:  # noqa: BLE001 - some models raise for a name that they do not know
        name = getattr(llm, "model", None)
    name = None if name == _NAMELESS else name
    return PricedModel.from_reported(name, _package(type(llm)), address_of(llm))


def window_of(llm: LLM) -> int | None:
    """Return a model's window in tokens; None if it does not know it, and has LlamaIndex's default, or -1."""
    ollama = _package(type(llm)) == "ollama"  # it sends its window to the server, even the default one
    options = getattr(llm, "additional_kwargs", None) if ollama else None
    window = (options or {}).get("num_ctx") or llm.metadata.context_window
    return None if window <= 0 or (window == DEFAULT_CONTEXT_WINDOW and not ollama) else window


def package_of(llm: LLM) -> str | None:
    """Return the integration that a model is from, such as `anthropic`; None if it is from no integration."""
    return _package(type(llm))


@cache
def _package(kind: type[LLM]) -> str | None:
    modules = (base.__module__ for base in kind.__mro__)
    packages = [name.removeprefix(_PACKAGES).split(".")[0] for name in modules if name.startswith(_PACKAGES)]
    return next((name for name in packages if name != "openai_like"), None)  # any provider with OpenAI's protocol


def log_missing_usage(llm: LLM, said: Said) -> None:
    """Log how to make a model report its token counts, if it can, unless that was said."""
    if "openai" in (_package(type(llm)) or ""):
        said.warn(_logger, _NO_USAGE, type(llm).__name__)
