"""Check and fill in the prompts of a chain: templates, or runnables that return a prompt.

For Anthropic's prompt cache, mark where the documents end in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, ChatMessage
from langchain_core.prompt_values import ChatPromptValue, PromptValue, StringPromptValue
from langchain_core.prompts import BasePromptTemplate, MessagesPlaceholder, format_document
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.configurable import DynamicRunnable, RunnableConfigurableAlternatives
from typing_extensions import override

from langchain_selfroute.models.clients import first_insides_of, text_of_prompt, texts_of
from selfroute.calls.caching import Prefix, ProviderCache, prefix_in
from selfroute.calls.host import Prompt
from selfroute.errors import ConfigurationError, InputError, ReplyError
from selfroute.prompts import check_asks_for_numbers, documents_in, in_prompt


class FilledPrompt(Prompt):
    """A prompt of LangChain. Its value is None until the runnable that makes it was called with its words."""

    __slots__ = ("words",)

    def __init__(self, value: PromptValue | None, words: Mapping[str, Any]) -> None:
        super().__init__(value, words["context"])
        self.words = words

    @property
    @override
    def is_known(self) -> bool:
        return self.value is not None

    @property
    @override
    def text(self) -> str:
        if self.value is None:
            return "\n".join(map(str, self.words.values()))
        return text_of_prompt(self.value)

    @property
    @override
    def texts(self) -> Sequence[str]:
        return [] if self.value is None else texts_of(self.value)

    @override
    def prefix(self, question: str) -> Prefix | None:
        if self.value is None:
            return None
        messages = self.value.to_messages()
        texts = [(_role(one), one.content if isinstance(one.content, str) else None) for one in messages]
        return prefix_in(texts, context=self.context, question=question)

    @override
    def marked(self, prefix: Prefix, cache: ProviderCache) -> PromptValue:
        messages = list(self.value.to_messages())
        message, end = messages[prefix.message], prefix.end
        text = str(message.content)
        block = {"type": "text", "text": text[:end], "cache_control": {"type": "ephemeral", "ttl": cache.ttl}}
        rest = [{"type": "text", "text": text[end:]}] if text[end:] else []
        messages[prefix.message] = message.model_copy(update={"content": [block, *rest]})
        return ChatPromptValue(messages=messages)


def _role(message: BaseMessage) -> str:
    role = message.role if isinstance(message, ChatMessage) else message.type
    return "system" if role == "developer" else role


def check(name: str, prompt: Runnable[Any, Any]) -> None:
    """Check each template that may be chosen as a prompt.

    Args:
        name: The name of the chain's field, for error messages.
        prompt: The prompt.

    Raises:
        ConfigurationError: A template lacks `{context}`.
    """
    for template in _templates(prompt):
        if "context" not in template.input_variables:
            msg = f"{name} must have the variable {{context}}; it has {sorted(template.input_variables)}"
            raise ConfigurationError(msg)


def check_messages(prompts: Iterable[Runnable[Any, Any]], inputs: Mapping[str, Any]) -> None:
    """Check the inputs that prompts take as messages, such as `chat_history`, before anything is paid for.

    Raises:
        InputError: One of them is no list of messages.
    """
    parts = [part for prompt in prompts for one in _templates(prompt) for part in getattr(one, "messages", ())]
    for part in parts:
        if isinstance(part, MessagesPlaceholder) and part.variable_name in inputs:
            try:
                part.format_messages(**{part.variable_name: inputs[part.variable_name]})
            except Exception as error:
                given = type(inputs[part.variable_name]).__name__
                msg = (
                    f"{part.variable_name} must be a list of messages, such as HumanMessage and AIMessage, not "
                    f"this {given}: pass messages, or leave {part.variable_name} out"
                )
                raise InputError(msg) from error


def check_numbers(name: str, prompt: Runnable[Any, Any]) -> bool:
    """Check that each template that may be chosen asks for the two numbers of graded answerability.

    Returns:
        Whether one was found that does; what only a call shows is believed if the user says so.

    Raises:
        ConfigurationError: A template does not.
    """
    found = False
    for template in _templates(prompt):
        messages = template.input_types  # of placeholders, which take messages and no text
        words = {name: [] if name in messages else "" for name in template.input_variables}
        text = ""
        with suppress(Exception):  # what takes other things than text is believed
            text = template.format(**words)
        if text:
            check_asks_for_numbers(name, text)
            found = True
    return found


def _templates(prompt: Any) -> Iterator[BasePromptTemplate[Any]]:
    if isinstance(prompt, BasePromptTemplate):
        yield prompt
    elif isinstance(prompt, DynamicRunnable):
        others = prompt.alternatives.values() if isinstance(prompt, RunnableConfigurableAlternatives) else ()
        for one in (prompt.default, *others):
            yield from _templates(one)


def context_of(
    documents: Sequence[Document],
    template: BasePromptTemplate[Any] | None,
    *,
    whole: bool,
    name_of: Callable[[Document], Any],
) -> str:
    """Return the text of passages or documents as the model reads it.

    Args:
        documents: The passages or documents.
        template: Formats each of them; None to use its text.
        whole: Whether these are documents; several of them are numbered.
        name_of: Returns the name of a document that has no title.
    """
    if template is not None:
        return "\n\n".join([format_document(_shown(document), template) for document in documents])
    texts = [document.page_content for document in documents]
    if not whole:
        return "\n\n".join(texts)
    return documents_in(texts, [document.metadata.get("title", name_of(document)) for document in documents])


def _shown(document: Document) -> Document:
    """Return a document with its metadata as a prompt may show them."""
    metadata = in_prompt(document.metadata)
    return document if metadata is document.metadata else Document(document.page_content, metadata=dict(metadata))


def filled_in(prompt: Runnable[Any, Any], words: Mapping[str, Any], config: RunnableConfig) -> PromptValue | None:
    """Fill in a template, which leaves no run in a trace; return None if the prompt is another runnable.

    Raises:
        InputError: The template has a variable that the input lacks.
    """
    prompt, _ = _chosen(prompt, config)
    if not isinstance(prompt, BasePromptTemplate):
        return None
    if "self" in words:  # LangChain has no such variable: its methods are called with the words by name
        words = {name: word for name, word in words.items() if name != "self"}
    try:
        return prompt.format_prompt(**words)
    except KeyError as error:
        missing = ", ".join(sorted(set(prompt.input_variables) - words.keys()))
        if not missing:
            raise
        msg = f"a prompt needs {missing}, which the input lacks: pass it along with the question, or use prompt.partial"
        raise InputError(msg) from error


def formatted(prompt: Runnable[Any, Any], words: Mapping[str, Any], config: RunnableConfig) -> PromptValue:
    """Fill in a prompt that is not a template."""
    prompt, config = _chosen(prompt, config)
    return _value(prompt.invoke(dict(words), config))


async def aformatted(prompt: Runnable[Any, Any], words: Mapping[str, Any], config: RunnableConfig) -> PromptValue:
    """The async twin of `formatted`."""
    prompt, config = _chosen(prompt, config)
    return _value(await prompt.ainvoke(dict(words), config))


def _chosen(prompt: Runnable[Any, Any], config: RunnableConfig) -> tuple[Runnable[Any, Any], RunnableConfig]:
    """Return the prompt that the config of a call chooses, checked, and the config for it."""
    if not isinstance(prompt, DynamicRunnable):
        return prompt, config
    prompt, config = prompt.prepare(config)
    check("the prompt that the config chooses", prompt)
    return prompt, config


def _value(found: Any) -> PromptValue:
    """Check what a runnable returned, and return it as a prompt.

    Raises:
        ReplyError: It is no prompt.
    """
    if isinstance(found, PromptValue):
        return found
    if isinstance(found, str):
        return StringPromptValue(text=found)
    if isinstance(found, list | tuple) and all(isinstance(one, BaseMessage) for one in found):
        return ChatPromptValue(messages=found)
    msg = f"rag_prompt and long_context_prompt must return a prompt, a string or messages, not {type(found).__name__}"
    raise ReplyError(msg)


def takes_marks(model: Runnable[Any, Any], config: RunnableConfig | None, options: Mapping[str, Any]) -> bool:
    """Return whether a model and each of its fallbacks are Anthropic's, and the user sets no marks of their own.

    Args:
        model: The model, or what is built around it.
        config: The config of the call.
        options: What is passed to the model in the call.
    """
    return all(
        _is_anthropic(inside)
        and not any(map(_has_marks, (bound, options, getattr(inside, "model_kwargs", None) or {})))
        for inside, bound in first_insides_of(model, config)
    )


def _is_anthropic(model: Any) -> bool:
    modules = (base.__module__ for base in type(model).__mro__)
    return isinstance(model, BaseChatModel) and any(one.partition(".")[0] == "langchain_anthropic" for one in modules)


def _has_marks(options: Mapping[str, Any]) -> bool:
    tools = [tool for tool in options.get("tools") or () if isinstance(tool, Mapping)]
    return any("cache_control" in given for given in (options, options.get("extra_body") or (), *tools))
