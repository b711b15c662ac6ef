"""Hit the prompt caches of providers, where a document that is read again costs a fraction.

`cache_of` says where prompts are cached: by the provider itself, or, at Anthropic, up to a mark that the user asks for.
`prefix_in` finds what the prompts of all questions on the same documents have in common: all up to the documents' end.
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

_MINUTE = 60.0
_CHARACTERS = 4  # of a token, in most texts
# Each at its own address only: a gateway may refuse a mark, and need not have a cache.
_ANTHROPIC = r"api\.anthropic\.com"
_GPT = r"gpt-4o|gpt-4\.|gpt-5(?!\.(?:[6-9]|\d\d))|o\d"  # later ones charge for what they write to the cache
_AUTOMATIC = (  # provider, host, models
    ("openai", r"(?:\w+\.)?api\.openai\.com", _GPT),
    ("azure", r"[\w-]+\.openai\.azure\.com", _GPT),
    ("google", r"(?:[\w-]+-)?(?:generativelanguage|aiplatform)\.googleapis\.com", r"(?:models/)?gemini-(?:2\.5|[3-9])"),
)


@dataclass(frozen=True, slots=True)
class ProviderCache:
    """A provider's cache of the beginnings of prompts.

    Attributes:
        seconds: For how long a prefix is kept after its last use.
        least: The tokens that a prefix must have to be kept.
        ttl: How long the mark at the end of the prefix asks Anthropic to keep it; None where nothing is marked.
    """

    seconds: float
    least: int
    ttl: Literal["5m", "1h"] | None = None

    def keeps(self, characters: int) -> bool:
        """Return whether a prefix of so many characters is likely to be long enough to be kept."""
        return characters >= self.least * _CHARACTERS


def cache_of(model: PricedModel, wish: PromptCache) -> ProviderCache | None:
    """Return the cache that a model's prompts may hit; None if it has no cache that we know.

    A fallback has to take the same mark, since it is sent the same prompt.

    Args:
        model: The model that is called, and where.
        wish: The option `prompt_cache`.
    """
    return _cache_of(model, model.fallbacks, wish)


@lru_cache(256)
def _cache_of(model: PricedModel, fallbacks: tuple[PricedModel, ...], wish: PromptCache) -> ProviderCache | None:
    cache = _own_cache(model, wish)
    if cache and cache.ttl and not all((own := _own_cache(one, wish)) and own.ttl for one in fallbacks):
        return None
    return cache


def _own_cache(model: PricedModel, wish: PromptCache) -> ProviderCache | None:
    if wish == "off" or not model.url or not model.name:
        return None
    host, name, provider = urlsplit(model.url).hostname or "", model.name, model.provider or ""
    if provider == "anthropic" and wish != "auto" and re.fullmatch(_ANTHROPIC, host):
        return ProviderCache(
            (60 if wish == "1h" else 5) * _MINUTE, 1_024 if re.search("sonnet|opus", name) else 4_096, wish
        )
    for known, at, models in _AUTOMATIC:
        if provider.startswith(known) and re.fullmatch(at, host) and re.match(models, name):
            return ProviderCache(5 * _MINUTE, 4_096 if known == "google" and "flash" not in name else 1_024)
    return None


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
