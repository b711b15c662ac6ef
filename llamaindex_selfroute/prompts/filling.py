"""Check and fill in the prompts of a synthesizer; mark where the documents end in them, for Anthropic's cache."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any
from uuid import UUID

from llama_index.core.llms import ChatMessage, TextBlock
from llama_index.core.prompts import BasePromptTemplate, SelectorPromptTemplate
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore
from typing_extensions import override

from llamaindex_selfroute.models.clients import ModelInput
from selfroute.calls.caching import Prefix, ProviderCache, prefix_in
from selfroute.calls.host import Prompt
from selfroute.documents.label import KEY
from selfroute.errors import ConfigurationError
from selfroute.prompts import check_asks_for_numbers, documents_in, in_prompt


class FilledPrompt(Prompt):
    """A prompt of LlamaIndex: messages, or a string for a model without chat."""

    @property
    @override
    def text(self) -> str:
        return text_of(self.value)

    @property
    @override
    def texts(self) -> Sequence[str]:
        return [self.value] if isinstance(self.value, str) else [message.content or "" for message in self.value]

    @override
    def prefix(self, question: str) -> Prefix | None:
        value = self.value
        messages = [("user", value)] if isinstance(value, str) else [(one.role.value, _only_text(one)) for one in value]
        return prefix_in(messages, context=self.context, question=question)

    @override
    def marked(self, prefix: Prefix, cache: ProviderCache) -> ModelInput:
        if isinstance(self.value, str):
            return self.value
        from llama_index.core.llms import CacheControl, CachePoint  # noqa: PLC0415 - not every version has them

        found, end = list(self.value), prefix.end
        message = found[prefix.message]
        text = str(message.content)
        point = CachePoint(cache_control=CacheControl(type="ephemeral", ttl=cache.ttl or "5m"))
        blocks: list[Any] = [TextBlock(text=text[:end]), point]
        if text[end:]:
            blocks.append(TextBlock(text=text[end:]))
        found[prefix.message] = message.model_copy(update={"blocks": blocks})
        return found


def _only_text(message: ChatMessage) -> str | None:
    """Return the text of a message; None if it has something else."""
    blocks = message.blocks
    return blocks[0].text if len(blocks) == 1 and isinstance(blocks[0], TextBlock) else None


def checked_prompt(
    name: str, prompt: Any, *, variables: AbstractSet[str] = frozenset({"context_str", "query_str"})
) -> BasePromptTemplate:
    """Return a prompt that the user passed, checked.

    Args:
        name: The name of the prompt, for error messages.
        prompt: The prompt.
        variables: The variables that it must have.

    Raises:
        ConfigurationError: It is not a prompt template, or lacks a variable.
    """
    if not isinstance(prompt, BasePromptTemplate):
        msg = f"{name} must be a PromptTemplate, not {type(prompt).__name__}"
        raise ConfigurationError(msg)
    if isinstance(prompt, SelectorPromptTemplate):
        for template in (prompt.default_template, *(template for _, template in prompt.conditionals or ())):
            checked_prompt(name, template, variables=variables)
        return prompt
    known = set(prompt.template_vars)
    mapped = {key for key, value in (prompt.template_var_mappings or {}).items() if value in known}
    missing = variables - known - mapped
    if missing:
        wanted = " and ".join(f"{{{variable}}}" for variable in sorted(missing))
        msg = f"{name} must have {wanted}, or the model would not see it; it has {sorted(known)}"
        raise ConfigurationError(msg)
    return prompt


def check_numbers(name: str, prompt: BasePromptTemplate) -> bool:
    """Return True if a prompt asks for the two numbers of graded answerability, or may do so.

    Raises:
        ConfigurationError: It does not.
    """
    if isinstance(prompt, SelectorPromptTemplate):
        for template in (prompt.default_template, *(template for _, template in prompt.conditionals or ())):
            check_numbers(name, template)
        return True
    text = prompt.get_template()
    words: dict[str, Any] = dict.fromkeys(prompt.template_vars, "")
    with suppress(Exception):  # what takes other things than text
        text = prompt.format(**words)
    if isinstance(text, str):
        check_asks_for_numbers(name, text)
    return True


def context_of(nodes: Sequence[NodeWithScore], template: BasePromptTemplate | None, *, whole: bool) -> str:
    """Return the text of nodes as the model reads it, with the metadata that the nodes show to models.

    Args:
        nodes: The nodes.
        template: Formats each node; None to use its own format.
        whole: Whether the nodes are whole documents; several of them are numbered.
    """
    shown = [_shown(item.node) for item in nodes]
    if template is None:
        texts = [node.get_content(metadata_mode=MetadataMode.LLM) for node in shown]
        return documents_in(texts, [_name(node) for node in shown]) if whole else "\n\n".join(texts)
    return "\n\n".join(
        [
            template.format(
                **_visible(node),
                content=node.get_content(),
                metadata_str=node.get_metadata_str(MetadataMode.LLM),
            )
            for node in shown
        ]
    )


def _shown(node: BaseNode) -> BaseNode:
    """Return a node with its metadata as a prompt may show them."""
    metadata = in_prompt(node.metadata)
    return node if metadata is node.metadata else node.model_copy(update={"metadata": metadata})


def _name(node: BaseNode) -> str | None:
    """Return the id of a document if the user chose it; None for a UUID, which LlamaIndex generates."""
    try:
        UUID(node.node_id)
    except ValueError:
        return node.node_id
    return None


def _visible(node: BaseNode) -> dict[str, Any]:
    hidden = {KEY, *node.excluded_llm_metadata_keys}
    return {key: value for key, value in node.metadata.items() if key not in hidden}


def text_of(prompt: ModelInput) -> str:
    """Return the text of a prompt."""
    return prompt if isinstance(prompt, str) else "\n".join([message.content or "" for message in prompt])
