"""Convert between LangChain and the core: inputs, messages, documents and errors; and call what the user supplied."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from langchain_core.callbacks import Callbacks
from langchain_core.documents import Document
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import merge_configs, run_in_executor, set_config_context

from selfroute.calls.host import items_of
from selfroute.documents import overflow
from selfroute.documents.label import KEY, label_in, labelled_with
from selfroute.effects import ReadDocuments
from selfroute.errors import InputError, ReplyError

Source: TypeAlias = (
    list[Document] | Runnable[Any, Any] | Callable[[dict[str, Any]], Iterable[Document] | Awaitable[Iterable[Document]]]
)
_ALWAYS = ("retrieved", "context", "answer", "route", "answerable", "finish_reason", "decision", "usage")
_FOUND = "retriever must return a list of Documents or of strings"
OUTPUT_KEYS = frozenset([*_ALWAYS, "citations"])


def inputs_of(given: Any) -> dict[str, Any]:
    """Return the input of a chain as a dict with the question under `input`.

    Keys of the output are left out: they are there if the state of a LangGraph graph is passed in again.

    Raises:
        InputError: The input is not a question.
    """
    if isinstance(given, str):
        return {"input": given}
    if type(given) is not dict and not isinstance(given, Mapping):
        msg = f"SelfRouteChain takes a string or a dict with the key 'input', not {type(given).__name__}"
        raise InputError(msg)
    if "input" not in given and isinstance(given.get("question"), str):  # as many chains of LangChain name it
        given = {**given, "input": given["question"]}
    question = given.get("input")
    if not isinstance(question, str):
        found = f"it is {type(question).__name__}" if "input" in given else f"the keys are {sorted(map(str, given))}"
        msg = f"SelfRouteChain takes a string or a dict with the question, a string, under the key 'input'; {found}"
        raise InputError(msg)
    if not all(isinstance(key, str) for key in given):
        msg = f"the keys of the input must be strings; they are {sorted(map(repr, given))}"
        raise InputError(msg)
    return {key: value for key, value in given.items() if key not in OUTPUT_KEYS}


def text_of(message: Any) -> str:
    """Return the text of what a model returned: a message, a chunk of a message, or a string.

    Raises:
        ReplyError: It is something else.
    """
    if isinstance(message, BaseMessage):
        content = message.content
        return content if type(content) is str else str(message.text) if content else ""
    if isinstance(message, str):
        return str(message)
    msg = (
        f"llm and long_context_llm must return a message or a string, not {type(message).__name__}: pass the model "
        'itself, without with_structured_output; answerability="structured" has it fill in a report'
    )
    raise ReplyError(msg)


def is_too_long(error: Exception) -> bool:
    """Return whether an error means that a prompt was too long, by its type or by its message."""
    return isinstance(error, ContextOverflowError) or overflow.is_too_long(error)


def config_within(binding: Any, config: RunnableConfig | None) -> RunnableConfig:
    """Return the config that a binding hands to the runnable inside it, when it is called with a config."""
    merged = merge_configs(binding.config, config)
    return merge_configs(merged, *(made(merged) for made in binding.config_factories))


def call(supplied: Any, given: Any, config: RunnableConfig, *, name: str) -> Any:
    """Call a runnable or a callable.

    Args:
        supplied: The runnable or callable.
        given: What it takes.
        config: The config; its runs become children of the run whose callbacks this has.
        name: The name of the chain's field, for error messages.

    Raises:
        ReplyError: The result must be awaited.
    """
    bound = partial(supplied.invoke, config=config) if isinstance(supplied, Runnable) else supplied
    found = _within(config, bound, given)
    if inspect.isawaitable(found):
        if hasattr(found, "close"):
            found.close()
        msg = f"{name} is async: call ainvoke or astream, or pass a sync callable"
        raise ReplyError(msg)
    return found


async def acall(supplied: Any, given: Any, config: RunnableConfig) -> Any:
    """The async twin of `call`; a sync callable runs in a thread, so that it does not block the event loop."""
    if isinstance(supplied, Runnable):
        found: Any = supplied.ainvoke(given, config)
    elif inspect.iscoroutinefunction(supplied) or inspect.iscoroutinefunction(type(supplied).__call__):
        found = supplied(given)
    else:
        found = await run_in_executor(None, _within, config, supplied, given)
    if inspect.isawaitable(found):
        with set_config_context(config) as context:
            found = await context.run(asyncio.ensure_future, found)
    return found


def _within(config: RunnableConfig, bound: Callable[[Any], Any], given: Any) -> Any:
    """Call with the config in the context, where runnables within look for their parent run."""
    with set_config_context(config) as context:
        return context.run(bound, given)


def documents_of(found: Any, what: str) -> list[Document]:
    """Check what a component of the user's returned, and return it as a list of documents.

    Args:
        found: What it returned.
        what: The name of the component, for the error message.

    Raises:
        ReplyError: It returned something else.
    """
    return items_of(found, Document, what=f"{what} must return a list of Documents")


def retrieved_of(found: Any, *, what: str = _FOUND) -> list[Document]:
    """Return what was found in a store as a list of documents; a string is the text of one.

    LangChain's recipes for tables and pictures keep strings in the docstore of a `MultiVectorRetriever`.

    Args:
        found: What was found.
        what: The beginning of the error message: what it has to be.

    Raises:
        ReplyError: It is something else.
    """
    items = items_of(found, (Document, str), what=what)
    return [Document(item) if isinstance(item, str) else item for item in items]


def labelled(document: Document, text: str, /, **label: Any) -> Document:
    """Return a copy of a document with another text and with this label in `metadata["selfroute"]`."""
    how = labelled_with(label_in(document.metadata, document.page_content), label, text)
    return Document(page_content=text, metadata={**document.metadata, KEY: how}, id=document.id)


def inputs_of_reading(question: str, effect: ReadDocuments) -> dict[str, Any]:
    """Return the inputs that a run which reads documents records: no text of passages."""
    inputs = {"input": question, "retrieved": len(effect.passages)}
    return inputs if effect.too_long is None else {**inputs, "too_long": str(effect.too_long)[:500]}


def outputs_of_reading(read: Sequence[Document], source_of: Callable[[Document], Any]) -> dict[str, Any]:
    """Return the outputs that a run which reads documents records: their names and lengths, but no text."""
    return {
        "documents": [
            {"source": str(source_of(one) or ""), "characters": len(one.page_content), **label_in(one.metadata)}
            for one in read
        ]
    }


def unnamed(config: RunnableConfig) -> RunnableConfig:
    """Return a config without the name and the id of a run, which belong to one run only."""
    rest: RunnableConfig = {**config}
    rest.pop("run_name", None)
    rest.pop("run_id", None)
    return rest


def below(config: RunnableConfig, callbacks: Callbacks) -> RunnableConfig:
    """Return the config of a tool's call for what runs below the tool, with the callbacks for that."""
    return {**unnamed(config), "callbacks": callbacks}
