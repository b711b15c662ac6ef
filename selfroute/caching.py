"""Hit the prompt caches of providers, where a document that is read again costs a fraction.

`cache_of` says where they are hit, and where they want a mark in the prompt. `prefix_in` finds what the prompts of all
questions on the same documents have in common: all up to the documents' end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Literal
from urllib.parse import urlsplit

from selfroute.usage.prices import PricedModel

PromptCache = Literal["auto", "off", "5m", "1h"]
Dialect = Literal["openai", "anthropic"]

_MINUTE = 60.0
_HOUR = 60 * _MINUTE
_CHARACTERS = 4  # of a token, in most texts
# Each at its own address only: a gateway may refuse what it does not know, and need not have a cache.
_OPENAI = r"(?:\w+\.)?api\.openai\.com"
_AZURE = r"[\w-]+\.openai\.azure\.com"
_ANTHROPIC = r"api\.anthropic\.com"
_GOOGLE = r"(?:[\w-]+-)?(?:generativelanguage|aiplatform)\.googleapis\.com"
_CACHED_BY_OPENAI = r"(?:gpt-4o|gpt-4\.|gpt-[5-9]|gpt-\d\d|o\d)"
_GPT = r"gpt-(\d+)(?:\.(\d+))?"
_GEMINI = r"(?:models/)?gemini-(\d+)(?:\.(\d+))?"
_MARKED_SINCE = (5, 6)  # before, OpenAI's models find what two prompts share by themselves
_IMPLICIT_SINCE = (2, 5)


@dataclass(frozen=True, slots=True)
class ProviderCache:
    """A provider's cache of the beginnings of prompts.

    Attributes:
        seconds: For how long a prefix is kept after its last use.
        least: The tokens that a prefix must have to be kept.
        mark: How the end of the prefix is marked; None where the provider finds it by itself.
        ttl: How long the mark asks to keep it; None where that is not said.
    """

    seconds: float
    least: int
    mark: Dialect | None = None
    ttl: Literal["5m", "1h"] | None = None

    def keeps(self, characters: int) -> bool:
        """Return whether a prefix of so many characters is likely to be long enough to be kept."""
        return characters >= self.least * _CHARACTERS


def cache_of(model: PricedModel, wish: PromptCache) -> ProviderCache | None:
    """Return the cache that a model's prompts may hit; None if it has no cache that we know.

    A fallback has to take the same marks, since it is sent the same prompt.

    Args:
        model: The model that is called, and where.
        wish: The option `prompt_cache`.
    """
    return _cache_of(model, model.fallbacks, wish)


@lru_cache(256)
def _cache_of(model: PricedModel, fallbacks: tuple[PricedModel, ...], wish: PromptCache) -> ProviderCache | None:
    cache = _own_cache(model, wish)
    if cache and cache.mark and any(_mark_of(one, wish) != (cache.mark, cache.ttl) for one in fallbacks):
        return None
    return cache


def _mark_of(model: PricedModel, wish: PromptCache) -> tuple[Dialect | None, str | None]:
    cache = _own_cache(model, wish)
    return (cache.mark, cache.ttl) if cache else (None, None)


def _own_cache(model: PricedModel, wish: PromptCache) -> ProviderCache | None:
    if wish == "off" or not model.url or not model.name:
        return None
    host, name, provider = urlsplit(model.url).hostname or "", model.name, model.provider or ""
    if provider == "openai" and re.fullmatch(_OPENAI, host) and _version(_GPT, name) >= _MARKED_SINCE:
        return ProviderCache(30 * _MINUTE, 1_024, "openai")
    if provider == "anthropic" and re.fullmatch(_ANTHROPIC, host) and wish in ("5m", "1h"):
        least = 1_024 if re.search("sonnet|opus", name) else 4_096
        return ProviderCache(_HOUR if wish == "1h" else 5 * _MINUTE, least, "anthropic", wish)
    openai = _OPENAI if provider == "openai" else _AZURE if provider.startswith("azure") else None
    automatic = re.match(_CACHED_BY_OPENAI, name) and _version(_GPT, name) < _MARKED_SINCE
    if openai and automatic and re.fullmatch(openai, host):
        return ProviderCache(5 * _MINUTE, 1_024)
    if provider.startswith("google") and re.fullmatch(_GOOGLE, host) and _version(_GEMINI, name) >= _IMPLICIT_SINCE:
        return ProviderCache(5 * _MINUTE, 1_024 if "flash" in name else 4_096)
    return None


def _version(pattern: str, name: str) -> tuple[int, int]:
    found = re.match(pattern, name)
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


@dataclass(frozen=True, slots=True)
class Prefix:
    """The beginning of a prompt, up to the end of the documents.

    Attributes:
        texts: The texts of the messages, of which the last ends with the documents.
    """

    texts: tuple[str, ...]

    @property
    def message(self) -> int:
        """The position of the message with the documents."""
        return len(self.texts) - 1

    @property
    def end(self) -> int:
        """Where the documents end in that message."""
        return len(self.texts[-1])

    @property
    def characters(self) -> int:
        """The length of the whole prefix."""
        return sum(map(len, self.texts))

    def digest(self) -> str:
        """Return what identifies the prefix, without saying anything of its text: 32 hexadecimal digits."""
        found = blake2b(digest_size=16)
        for text in self.texts:
            found.update(f"{len(text)} {text}".encode("utf-8", "surrogatepass"))
        return found.hexdigest()


def prefix_in(messages: Sequence[tuple[str, str | None]], *, context: str, question: str) -> Prefix | None:
    """Return what the prompts of all questions on the same documents have in common.

    Args:
        messages: The role and the text of each message of a prompt; None for a text in parts.
        context: The text of the documents in it.
        question: The question.

    Returns:
        The prefix; None if they share nothing: the documents do not occur, or a conversation or the question comes
        before them.
    """
    before: list[str] = []
    for role, text in messages:
        if text is None or not context:
            return None
        at = text.find(context)
        head = text if at < 0 else text[:at]
        if question in head:
            return None
        if at >= 0:
            return Prefix((*before, text[: at + len(context)]))
        if role not in ("system", "developer"):
            return None
        before.append(text)
    return None
