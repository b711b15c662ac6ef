"""The two steps of a chain as separate runnables: the first returns a row, and the second continues from it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from typing import Any, Generic, Protocol, TypeVar, cast

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.utils import ConfigurableFieldSpec
from typing_extensions import override

from langchain_selfroute import runs
from langchain_selfroute.convert import document_from_json, inputs_in_row
from langchain_selfroute.runs import ChainCall, awhole, whole
from langchain_selfroute.schema import SelfRouteInput, SelfRouteOutput
from selfroute.calls.drivers import arun, run
from selfroute.calls.first_step import KeptStep
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

    def calling(self, given: Any, kwargs: Mapping[str, Any], /, **fields: Any) -> runs.Make:
        """Return a function that makes a call; `fields` are those of `Call`."""


class _ChainStep(Runnable[Given, Result], Generic[Given, Result]):
    """One of the two steps of a chain."""

    def __init__(self, chain: _Chain) -> None:
        self.chain = chain

    @property
    @override
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        return self.chain.config_specs


class FirstStep(_ChainStep[str | Mapping[str, Any], Row]):
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
        return runs.invoke(self.get_name(), input, config, self._make(input, kwargs), _row)

    @override
    async def ainvoke(self, input: str | Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any) -> Row:
        """Do as `invoke` does, asynchronously."""
        return await runs.ainvoke(self.get_name(), input, config, self._make(input, kwargs), _arow)

    def _make(self, given: Any, kwargs: Mapping[str, Any]) -> runs.Make:
        return self.chain.calling(given, kwargs, first_only=True)


class SecondStep(_ChainStep[Mapping[str, Any], SelfRouteOutput]):
    """Continues from a row, and returns the output of the chain; `SelfRouteChain.second_step` documents it."""

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
            return self._call_with_config(lambda _: _output_of(given, kept), given, config)
        make = self._make(kept, given, kwargs)
        return cast("SelfRouteOutput", runs.invoke(self.get_name(), given, config, make, whole))

    @override
    async def ainvoke(
        self, input: Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> SelfRouteOutput:
        """Do as `invoke` does, asynchronously."""
        kept, given = _read(input)
        if kept.result:

            async def known(_: Any) -> SelfRouteOutput:
                return _output_of(given, kept)

            return await self._acall_with_config(known, given, config)
        make = self._make(kept, given, kwargs)
        return cast("SelfRouteOutput", await runs.ainvoke(self.get_name(), given, config, make, awhole))

    @override
    def stream(
        self, input: Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[SelfRouteOutput]:
        """Answer the question of a row in chunks, as the chain streams; a row that is done comes in one chunk."""
        kept, given = _read(input)
        if kept.result:
            yield self.invoke(input, config)
        else:
            yield from runs.stream(self, given, config, self._make(kept, given, kwargs), kwargs)

    @override
    async def astream(
        self, input: Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[SelfRouteOutput]:
        """Do as `stream` does, asynchronously."""
        kept, given = _read(input)
        if kept.result:
            yield await self.ainvoke(input, config)
            return
        async with aclosing(runs.astream(self, given, config, self._make(kept, given, kwargs), kwargs)) as chunks:
            async for chunk in chunks:
                yield chunk

    def _make(self, kept: KeptStep[Any], given: Mapping[str, Any], kwargs: Mapping[str, Any]) -> runs.Make:
        return self.chain.calling(given, kwargs, first=kept)


def _row(call: ChainCall) -> Row:
    return row_of(call, run(call.flow(), call))


async def _arow(call: ChainCall) -> Row:
    return row_of(call, await arun(await call.aflow(), call))


def _read(row: Mapping[str, Any]) -> tuple[KeptStep[Any], dict[str, Any]]:
    """Return the first step that a row keeps, and the inputs of its question."""
    return read_row(row, document_from_json), inputs_in_row(row)


def _output_of(inputs: Mapping[str, Any], kept: KeptStep[Document]) -> SelfRouteOutput:
    """Return the output of a chain from a row that is done."""
    output = {**inputs, "retrieved": list(kept.retrieved), "context": list(kept.context), **(kept.result or {})}
    return cast("SelfRouteOutput", output)
