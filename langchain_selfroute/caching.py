"""Mark where the documents end in LangChain's prompts, for prompt caches that need it (Anthropic's, OpenAI's)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, ChatMessage
from langchain_core.prompt_values import ChatPromptValue, PromptValue
from langchain_core.runnables import Runnable, RunnableConfig

from langchain_selfroute.models import first_insides_of
from selfroute.caching import Dialect, Prefix, ProviderCache, prefix_in

_MODE, _KEY = "prompt_cache_options", "prompt_cache_key"
_OWN = frozenset([_MODE, "cache_control"])  # a user who sets one of these marks prompts themselves


def prefix_of(prompt: PromptValue, *, context: str, question: str) -> Prefix | None:
    """Return the prefix that a prompt shares with other questions on the same documents; None if it shares nothing."""
    messages = [(_role(one), one.content if isinstance(one.content, str) else None) for one in prompt.to_messages()]
    return prefix_in(messages, context=context, question=question)


def takes_marks(
    model: Runnable[Any, Any], dialect: Dialect, config: RunnableConfig | None, options: Mapping[str, Any]
) -> bool:
    """Return whether a model, and each of its fallbacks, passes on marks, and the user has not chosen their own way.

    Args:
        model: The model, or what is built around it.
        dialect: How the prompt would be marked.
        config: The config of the call.
        options: What is passed to the model in the call.
    """
    insides = [one for one, _ in first_insides_of(model, config)]
    return all(_passes_on(one, dialect) for one in insides) and not _OWN & set_by_user(model, config, options)


def _passes_on(model: Any, dialect: Dialect) -> bool:
    if not isinstance(model, BaseChatModel):
        return False
    if dialect == "openai":
        return _MODE in type(model).model_fields
    return any(base.__module__.partition(".")[0] == "langchain_anthropic" for base in type(model).__mro__)


def set_by_user(model: Runnable[Any, Any], config: RunnableConfig | None, options: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the options that are set on a model, its fallbacks and their tools, or passed in the call."""
    names: set[str] = set()
    for inside, bound in first_insides_of(model, config):
        own = (getattr(inside, name, None) or {} for name in ("model_kwargs", "extra_body"))
        for given in (bound, options, *own):
            tools = [tool for tool in given.get("tools") or () if isinstance(tool, Mapping)]
            names.update(given, given.get("extra_body") or (), *tools)
        if getattr(inside, _MODE, None) is not None:
            names.add(_MODE)
    return frozenset(names)


def marked(prompt: PromptValue, prefix: Prefix, cache: ProviderCache) -> PromptValue:
    """Return the same prompt with a block that ends with the documents, and is marked.

    Args:
        prompt: The prompt.
        prefix: What it shares with others.
        cache: Says how to mark it.
    """
    messages = list(prompt.to_messages())
    message, end = messages[prefix.message], prefix.end
    text = str(message.content)
    block = {"type": "text", "text": text[:end], **_mark(cache)}
    rest = [{"type": "text", "text": text[end:]}] if text[end:] else []
    messages[prefix.message] = message.model_copy(update={"content": [block, *rest]})
    return ChatPromptValue(messages=messages)


def _mark(cache: ProviderCache) -> dict[str, Any]:
    if cache.mark == "openai":
        return {"prompt_cache_breakpoint": {"mode": "explicit"}}
    return {"cache_control": {"type": "ephemeral", "ttl": cache.ttl}}


def options_for_marked(
    prefix: Prefix, cache: ProviderCache, given: Mapping[str, Any], *, own: frozenset[str]
) -> dict[str, Any]:
    """Return the options for a marked prompt, so that the provider caches what is marked and nothing else.

    Args:
        prefix: What is marked.
        cache: The cache.
        given: What the user passes in the call.
        own: The names of all options that the user has set. The user's own key stays.
    """
    key = {} if cache.mark != "openai" or _KEY in own else {_KEY: f"selfroute-{prefix.digest()}"}
    return {**_only_marked(cache), **key, **given}


def options_for_unmarked(prefix: Prefix, cache: ProviderCache, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options for a prompt whose beginning no other prompt shares, so that the provider caches nothing.

    A system's message that is long enough to be kept is left to the provider, which may find it again.

    Args:
        prefix: What comes before the question.
        cache: The cache.
        given: What the user passes to the model.
    """
    found_again = cache.keeps(sum(map(len, prefix.texts[:-1])))
    return {**given} if found_again else {**_only_marked(cache), **given}


def _only_marked(cache: ProviderCache) -> dict[str, Any]:
    return {_MODE: {"mode": "explicit"}} if cache.mark == "openai" else {}


def _role(message: BaseMessage) -> str:
    role = message.role if isinstance(message, ChatMessage) else message.type
    return "system" if role == "developer" else role
