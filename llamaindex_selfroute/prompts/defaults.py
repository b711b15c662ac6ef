"""The default prompts as LlamaIndex's templates."""

from __future__ import annotations

from functools import lru_cache

from llama_index.core.prompts import BasePromptTemplate, PromptTemplate

from selfroute import prompts
from selfroute.calls.configured import DefaultPrompts


@lru_cache(maxsize=64)
def default_prompt(template: str, instructions: str | None) -> PromptTemplate:
    """Return a default prompt, with a user's instructions before it."""
    template = template.replace("{context}", "{context_str}").replace("{question}", "{query_str}")
    if instructions is None:
        return PromptTemplate(template)
    return PromptTemplate(prompts.INSTRUCTIONS + template, instructions=instructions)


def differs(prompt: BasePromptTemplate, default: BasePromptTemplate) -> bool:
    """Return whether a prompt is another one than a default one."""
    return prompt is not default and bool(prompt != default)


DEFAULTS: DefaultPrompts[BasePromptTemplate] = DefaultPrompts(default_prompt, differs)
