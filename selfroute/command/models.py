"""Makes chat models by the name `provider:model`."""

from __future__ import annotations

import re
from typing import Any

from pydantic import ValidationError

from selfroute.command.framework import Framework
from selfroute.error_text import KEY_VARIABLE, first_line, without_secrets
from selfroute.errors import ConfigurationError, SelfRouteError

_PACKAGE = re.compile(r"pip install (?:-U )?[`'\"]?([\w-]+)")


class MissingPackageError(SelfRouteError, ImportError):
    """A package is not installed; the message says which."""


def load_model(framework: Framework, name: str, *, base_url: str | None = None) -> Any:
    """Make a chat model.

    Args:
        framework: The framework of the model.
        name: `provider:model`, with a provider that the framework knows.
        base_url: A server to ask in place of the provider's own. A local OpenAI-compatible one needs no key.

    Raises:
        ConfigurationError: The name or the address is malformed, the provider is unknown, or a key is missing.
        MissingPackageError: The provider's package is not installed.
    """
    provider, _, model = name.partition(":")
    if not provider.strip() or not model.strip():
        msg = f"{name!r} is not a model: write provider:name, for example openai:gpt-4o-mini"
        raise ConfigurationError(msg)
    if base_url and not re.match(r"https?://[^/\s]", base_url):
        msg = f"--base-url {base_url} is not an address: write http://host:port/v1 or https://..."
        raise ConfigurationError(msg)
    try:
        return framework.load_model(provider, model, base_url=base_url)
    except ImportError as error:
        msg = f"{name} needs a package that is not installed: {_how_to_install(error)}"
        raise MissingPackageError(msg) from error


def no_provider(provider: str, model: str, *, known: str) -> ConfigurationError:
    """Return the error for a provider that a framework does not know; it names those that it knows."""
    return ConfigurationError(f"there is no provider {provider!r} for {f'{provider}:{model}'!r}; use one of: {known}")


def unusable(provider: str, model: str, *, error: Exception) -> ConfigurationError:
    """Return the error for a model that cannot be made; most often a key is missing."""
    name = f"{provider}:{model}"
    reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else first_line(error)
    variable = KEY_VARIABLE.search(reason)
    if variable:
        return ConfigurationError(f"{name} needs a key: set the environment variable {variable[0]}")
    return ConfigurationError(f"{name} cannot be used: {without_secrets(reason)}")


def _how_to_install(error: ImportError) -> str:
    found = _PACKAGE.search(str(error))
    return f"pip install {found[1]}" if found else first_line(error)
