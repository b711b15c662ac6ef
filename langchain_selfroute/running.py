"""A run in LangChain's traces, which records no text of whole documents."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import (
    ensure_config,
    get_async_callback_manager_for_config,
    get_callback_manager_for_config,
    set_config_context,
)
from typing_extensions import Self

from langchain_selfroute.convert import OUTPUT_KEYS
from selfroute.hangup import cancelled_once

if TYPE_CHECKING:
    from selfroute.checking import Findings

Result = TypeVar("Result")


def recorded_inputs(given: Any) -> Any:
    """Return an input as the chain's run records it: without the keys that the chain does not read.

    They are there if a result is passed in again, as the state of a LangGraph graph is, and may hold whole documents.
    """
    return {key: given[key] for key in given if key not in OUTPUT_KEYS} if isinstance(given, Mapping) else given


def recorded(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result, or the first chunk of one, as the chain's run records it: without the text of whole documents.

    The run of the model records that text with its prompt. Passages are short, so they are kept.
    """
    if result["route"] != "long_context":
        return dict(result)
    return {**result, "context": [_without_text(document) for document in result["context"]]}


def _without_text(document: Document) -> Document:
    text = f"({len(document.page_content):,} characters, which are in the prompt of the long_context run)"
    return Document(text, id=document.id, metadata=document.metadata)


def recorded_findings(findings: Findings) -> dict[str, Any]:
    """Return the findings of a check as its run records them."""
    return {"ok": findings.ok, "findings": [finding.as_dict() for finding in findings]}


class Running:
    """A run of a chain in LangChain's traces, to be entered by `with` or `async with`; an error within ends it.

    Attributes:
        config: The config of the call, with what its context adds, but without the name and the id of this run.
        manager: Manages its callbacks, once it is entered.
    """

    def __init__(self, name: str, given: Any, config: RunnableConfig | None) -> None:
        """Prepare to start a run.

        Args:
            name: The name of the run, unless the config has one.
            given: The input, as it is recorded.
            config: The config of the call.
        """
        self.config, self._given, self._ended = ensure_config(config), given, False
        name = self.config.pop("run_name", "") or name
        self._fields: dict[str, Any] = {"name": name, "run_id": self.config.pop("run_id", None)}
        self.manager: Any = None

    def __enter__(self) -> Self:
        start = get_callback_manager_for_config(self.config).on_chain_start
        self.manager = start(None, recorded_inputs(self._given), **self._fields)
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is not None and not self._ended:
            self.manager.on_chain_error(error)

    async def __aenter__(self) -> Self:
        start = get_async_callback_manager_for_config(self.config).on_chain_start
        self.manager = await start(None, recorded_inputs(self._given), **self._fields)
        return self

    async def __aexit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is not None and not self._ended:
            await self.manager.on_chain_error(error)

    @property
    def _child(self) -> RunnableConfig:
        return {**self.config, "callbacks": self.manager.get_child()}

    def perform(self, function: Callable[[], Result]) -> Result:
        """Call a function in whose context LangChain finds this run as the parent."""
        with set_config_context(self._child) as context:
            return context.run(function)

    async def aperform(self, awaited: Coroutine[Any, Any, Result]) -> Result:
        """The async twin of `perform`."""
        with set_config_context(self._child) as context:
            return await cancelled_once(context.run(asyncio.ensure_future, awaited))

    def end(self, result: Result, record: Callable[[Any], dict[str, Any]] = recorded) -> Result:
        """End the run and return its result.

        Args:
            result: The result.
            record: Returns it as the run records it.
        """
        self._ended = True
        self.manager.on_chain_end(record(result))
        return result

    async def aend(self, result: Result, record: Callable[[Any], dict[str, Any]] = recorded) -> Result:
        """The async twin of `end`."""
        self._ended = True
        await self.manager.on_chain_end(record(result))
        return result
