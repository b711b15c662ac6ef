"""The two steps of a chain as runnables of their own: the first gives a row, from which the second goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from typing import Any, Generic, Protocol, TypeVar, cast

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.utils import ConfigurableFieldSpec
from typing_extensions import override

from langchain_selfroute import running
from langchain_selfroute.convert import document_from_json, inputs_in_row, output_of_row
from langchain_selfroute.schema import SelfRouteInput, SelfRouteOutput
from langchain_selfroute.streaming import whole
from selfroute.calls.first_step import FirstStep as Kept
from selfroute.calls.row import read_row, row_of

Given = TypeVar("Given")
Result = TypeVar("Result")
Row = dict[str, Any]


class _Chain(Protocol):
    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """What of the chain can be configured in a call."""

    @property
    def OutputType(self) -> Any:  # noqa: N802 - LangChain's name
        """The type of the chain's output."""

    def calling(self, given: Any, kwargs: Mapping[str, Any], /, **fields: Any) -> running.Make:
        """Return a function that makes a call; `fields` are those of `Call`."""


class _Step(Runnable[Given, Result], Generic[Given, Result]):
    """One of the two steps of a chain."""

    def __init__(self, chain: _Chain) -> None:
        self.chain = chain

    @property
    @override
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        return self.chain.config_specs


class FirstStep(_Step[str | Mapping[str, Any], Row]):
    """Retrieves, asks for the draft, and returns a row of plain JSON; `SelfRouteChain.first_step` documents it."""

    name = "SelfRouteFirstStep"

    @property
    @override
    def InputType(self) -> Any:
        return SelfRouteInput

    @property
    @override
    def OutputType(self) -> Any:
        return Row

    @override
    def invoke(self, input: str | Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any) -> Row:
        """Return the row of a question; `kwargs` are passed to the model."""
        return cast("Row", running.invoke(self, input, config, self._make(input, kwargs), row_of))

    @override
    async def ainvoke(self, input: str | Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any) -> Row:
        """Do as `invoke` does, asynchronously."""
        return cast("Row", await running.ainvoke(self, input, config, self._make(input, kwargs), row_of))

    def _make(self, given: Any, kwargs: Mapping[str, Any]) -> running.Make:
        return self.chain.calling(given, kwargs, first_only=True)


class SecondStep(_Step[Mapping[str, Any], SelfRouteOutput]):
    """Goes on from a row, and returns the output of the chain; `SelfRouteChain.second_step` documents it."""

    name = "SelfRouteSecondStep"

    @property
    @override
    def InputType(self) -> Any:
        return Row

    @property
    @override
    def OutputType(self) -> Any:
        return self.chain.OutputType

    @override
    def invoke(self, input: Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any) -> SelfRouteOutput:
        """Answer the question of a row; `kwargs` are passed to the models."""
        kept, given = _read(input)
        if kept.result:
            return self._call_with_config(lambda _: output_of_row(given, kept), given, config)
        make = self._make(kept, given, kwargs)
        return cast("SelfRouteOutput", running.invoke(self, given, config, make, whole))

    @override
    async def ainvoke(
        self, input: Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> SelfRouteOutput:
        """Do as `invoke` does, asynchronously."""
        kept, given = _read(input)
        if kept.result:

            async def known(_: Any) -> SelfRouteOutput:
                return output_of_row(given, kept)

            return await self._acall_with_config(known, given, config)
        make = self._make(kept, given, kwargs)
        return cast("SelfRouteOutput", await running.ainvoke(self, given, config, make, whole))

    @override
    def stream(
        self, input: Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[SelfRouteOutput]:
        """Answer the question of a row in chunks, as the chain streams; what is done comes in one."""
        kept, given = _read(input)
        if kept.result:
            yield self.invoke(input, config)
        else:
            yield from running.stream(self, given, config, self._make(kept, given, kwargs), kwargs)

    @override
    async def astream(
        self, input: Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[SelfRouteOutput]:
        """Do as `stream` does, asynchronously."""
        kept, given = _read(input)
        if kept.result:
            yield await self.ainvoke(input, config)
            return
        async with aclosing(running.astream(self, given, config, self._make(kept, given, kwargs), kwargs)) as chunks:
            async for chunk in chunks:
                yield chunk

    def _make(self, kept: Kept[Any], given: Mapping[str, Any], kwargs: Mapping[str, Any]) -> running.Make:
        return self.chain.calling(given, kwargs, first=kept)


def _read(row: Mapping[str, Any]) -> tuple[Kept[Any], dict[str, Any]]:
    """Return what a row keeps, and the inputs of its question."""
    return read_row(row, document_from_json), inputs_in_row(row)
