"""The default prompts as LlamaIndex's templates."""

from __future__ import annotations

from functools import lru_cache

from llama_index.core.prompts import BasePromptTemplate, PromptTemplate

from selfroute import prompts


@lru_cache(maxsize=64)
def default_prompt(template: str, instructions: str | None = None) -> PromptTemplate:
    """Return a default prompt, with a user's instructions before it."""
    template = template.replace("{context}", "{context_str}").replace("{question}", "{query_str}")
    if instructions is None:
        return PromptTemplate(template)
    return PromptTemplate(prompts.INSTRUCTIONS + template, instructions=instructions)


DEFAULTS: tuple[BasePromptTemplate, BasePromptTemplate] = (
    default_prompt(prompts.RAG),
    default_prompt(prompts.LONG_CONTEXT),
)
"""Those of the first and of the last step."""


def is_own(prompt: BasePromptTemplate, default: BasePromptTemplate) -> bool:
    """Return whether a prompt is the user's own."""
    return prompt is not default and bool(prompt != default)
