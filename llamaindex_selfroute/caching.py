"""Mark where the documents end in LlamaIndex's prompts, for prompt caches that need it (Anthropic's)."""

from __future__ import annotations

import sys
from typing import Any

from llama_index.core.llms import LLM, ChatMessage, TextBlock

from llamaindex_selfroute.convert import ModelInput
from llamaindex_selfroute.models import package_of
from selfroute.caching import Dialect, Prefix, ProviderCache, prefix_in


def prefix_of(prompt: ModelInput, *, context: str, question: str) -> Prefix | None:
    """Return the prefix that a prompt shares with other questions on the same documents; None if it shares nothing."""
    messages = [("user", prompt)] if isinstance(prompt, str) else [(one.role.value, _text_of(one)) for one in prompt]
    return prefix_in(messages, context=context, question=question)


def _text_of(message: ChatMessage) -> str | None:
    blocks = message.blocks
    return blocks[0].text if len(blocks) == 1 and isinstance(blocks[0], TextBlock) else None


def takes_marks(llm: LLM, dialect: Dialect) -> bool:
    """Return whether a model knows `CachePoint`, which most packages refuse, and the user marks nothing themselves."""
    known = hasattr(sys.modules.get("llama_index.llms.anthropic.utils"), "CachePoint")  # the first versions do not
    return known and dialect == package_of(llm) == "anthropic" and getattr(llm, "cache_idx", None) is None


def marked(prompt: ModelInput, prefix: Prefix, cache: ProviderCache) -> ModelInput:
    """Return the same prompt with a `CachePoint` where the documents end.

    Args:
        prompt: The prompt.
        prefix: What it shares with others.
        cache: Says for how long to keep it.
    """
    from llama_index.core.llms import CacheControl, CachePoint  # noqa: PLC0415 - not every version has them

    if isinstance(prompt, str):
        return prompt
    messages, end = list(prompt), prefix.end
    message = messages[prefix.message]
    text = str(message.content)
    point = CachePoint(cache_control=CacheControl(type="ephemeral", ttl=cache.ttl or "5m"))
    blocks: list[Any] = [TextBlock(text=text[:end]), point]
    if text[end:]:
        blocks.append(TextBlock(text=text[end:]))
    messages[prefix.message] = message.model_copy(update={"blocks": blocks})
    return messages
