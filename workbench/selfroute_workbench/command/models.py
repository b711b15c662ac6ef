"""Makes the models that answer, and the embeddings."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from pydantic import ValidationError

from selfroute.error_text import KEY_VARIABLE, first_line, without_secrets
from selfroute.errors import ConfigurationError, SelfRouteError
from selfroute_workbench.command.options import Options
from selfroute_workbench.demo import recorded
from selfroute_workbench.demo.recorded import Recording
from selfroute_workbench.demo.with_langchain import ExtractiveReader, RecordedModel

_PACKAGE = re.compile(r"pip install (?:-U )?[`'\"]?([\w-]+)")
_AT_ONCE = 4
_KEYS = {
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    "cohere": ("COHERE_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "google_genai": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "mistralai": ("MISTRAL_API_KEY",),
    "openai": ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"),
    "together": ("TOGETHER_API_KEY",),
    "xai": ("XAI_API_KEY",),
}
"""One of these environment variables is needed to ask a provider at its own address."""


class MissingPackageError(SelfRouteError, ImportError):
    """A package is not installed; the message says which."""


@dataclass(frozen=True, slots=True)
class Models:
    """The models that answer."""

    llm: Any
    long_context_llm: Any
    name: str
    is_language_model: bool = True
    has_list_price: bool = True
    recording: Recording | None = None

    @property
    def at_once(self) -> int:
        """How many questions to ask at a time: the extractive reader runs on this machine, a provider elsewhere."""
        return _AT_ONCE if self.is_language_model else 1

    @classmethod
    def extractive(cls) -> Models:
        """Return the extractive reader, which answers if the user names no model."""
        return cls(ExtractiveReader(), None, "the extractive reader", is_language_model=False, has_list_price=False)

    @classmethod
    def recorded(cls) -> Models:
        """Return the recording that comes with the package."""
        return cls(RecordedModel(), None, recorded.LABEL, recording=recorded.load_recording())


def load_models(options: Options) -> Models | None:
    """Make the models that the options name; None without `--model`: then the extractive reader answers."""
    model, long_context_model, base_url = options.model, options.long_context_model, options.base_url
    if model is None:
        for option, value in (("--long-context-model", long_context_model), ("--base-url", base_url)):
            if value is not None:
                msg = f"{option} needs --model too, for example --model openai:gpt-5-mini"
                raise ConfigurationError(msg)
        return None
    llm, second, name = load_model(model, base_url=base_url), None, model
    if long_context_model is not None:
        same_server = long_context_model.partition(":")[0] == model.partition(":")[0]
        second = load_model(long_context_model, base_url=base_url if same_server else None)
        name = f"{model}, and {long_context_model} for whole documents"
    return Models(llm, second, name, has_list_price=base_url is None)


def load_model(name: str, *, base_url: str | None = None) -> BaseChatModel:
    """Make a chat model of any provider that `langchain.chat_models.init_chat_model` knows."""
    provider, _, model = name.partition(":")
    if not provider.strip() or not model.strip():
        msg = f"{name!r} is not a model: write provider:name, for example openai:gpt-5-mini"
        raise ConfigurationError(msg)
    if base_url and not re.match(r"https?://[^/\s]", base_url):
        msg = f"--base-url {base_url} is not an address: write http://host:port/v1 or https://..."
        raise ConfigurationError(msg)
    fields: dict[str, Any] = {"base_url": base_url} if base_url else {}
    if provider == "openai" and (base_url or any(map(os.environ.get, ("OPENAI_BASE_URL", "OPENAI_API_BASE")))):
        fields["stream_usage"] = True  # off by default with another server
        if base_url and not os.environ.get("OPENAI_API_KEY"):
            fields["api_key"] = "none"
    from langchain.chat_models import init_chat_model  # noqa: PLC0415 - half of what a command takes that needs none

    try:
        made: BaseChatModel = init_chat_model(model, model_provider=provider, **fields)
    except ImportError as error:
        found = _PACKAGE.search(str(error))
        install = f"pip install {found[1]}" if found else first_line(error)
        msg = f"{name} needs a package that is not installed: {install}"
        raise MissingPackageError(msg) from error
    except Exception as error:  # each provider's client has errors of its own
        raise _unusable(name, error) from error
    wanted = _KEYS.get(provider, ())
    if wanted and not base_url and not any(map(os.environ.get, wanted)):  # some clients only find that when asked
        msg = f"{name} needs a key: set the environment variable {wanted[0]}"
        raise ConfigurationError(msg)
    return made


def _unusable(name: str, error: Exception) -> ConfigurationError:
    """Return the error for a model that cannot be made; most often a key is missing."""
    if "Unsupported provider" in str(error):
        known = str(error).rpartition("are: ")[2]
        return ConfigurationError(f"there is no provider {name.partition(':')[0]!r} for {name!r}; use one of: {known}")
    reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else first_line(error)
    if variable := KEY_VARIABLE.search(reason):
        return ConfigurationError(f"{name} needs a key: set the environment variable {variable[0]}")
    return ConfigurationError(f"{name} cannot be used: {without_secrets(reason)}")
