"""The default prompts as LangChain's templates."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from langchain_core.prompts import ChatPromptTemplate

from selfroute import prompts
from selfroute.calls.configured import DefaultPrompts


@lru_cache(maxsize=64)
def default_prompt(template: str, instructions: str | None) -> ChatPromptTemplate:
    """Return a default prompt, behind a history, with a user's instructions before it."""
    template = template.replace("{question}", "{input}")
    if instructions is None:
        return ChatPromptTemplate([("placeholder", "{chat_history}"), ("human", template)])
    prompt = ChatPromptTemplate([("placeholder", "{chat_history}"), ("human", prompts.INSTRUCTIONS + template)])
    return prompt.partial(instructions=instructions)


def differs(prompt: Any, default: Any) -> bool:
    """Return whether a prompt is another one than a default one."""
    return bool(getattr(prompt, "messages", None) != default.messages)  # copies of templates differ


DEFAULTS = DefaultPrompts(default_prompt, differs)


def copied(prompt: ChatPromptTemplate) -> ChatPromptTemplate:
    """Copy what a user may change in place; a deep copy of two prompts takes longer than two questions."""
    history, human = prompt.messages
    own = human.model_copy(update={"prompt": human.prompt.model_copy()})  # type: ignore[union-attr]
    return prompt.model_copy(update={"messages": [history.model_copy(), own]})
