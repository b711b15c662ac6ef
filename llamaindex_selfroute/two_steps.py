"""The two steps of a synthesizer or an engine as separate calls: the second continues from a row of the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, cast

from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.schema import NodeWithScore, QueryBundle

from llamaindex_selfroute import internals
from llamaindex_selfroute.convert import bundle_of, node_from_json, query_in_row
from llamaindex_selfroute.host import Finder, LlamaIndexHost, Parts, QueryCall
from llamaindex_selfroute.responses import aof_row, of_row
from selfroute.calls.drivers import arun, run
from selfroute.calls.first_step import KeptStep
from selfroute.calls.row import read_row, row_of
from selfroute.usage.values import text

Row = dict[str, Any]


class SynthesizerSteps:
    """The two steps of a synthesizer."""

    _streaming: bool

    def parts(self) -> Parts:
        """Return the parts that a query works with."""
        raise NotImplementedError

    def _respond(self, call: QueryCall, more: Sequence[NodeWithScore]) -> RESPONSE_TYPE:
        """Return the response of a query."""
        raise NotImplementedError

    async def _arespond(self, call: QueryCall, more: Sequence[NodeWithScore]) -> RESPONSE_TYPE:
        """Do as `_respond` does, asynchronously."""
        raise NotImplementedError

    def first_step(self, query: str | QueryBundle, nodes: Sequence[NodeWithScore], **response_kwargs: Any) -> Row:
        """Ask for the draft alone: make many drafts in any order, and continue some of them later.

        Args:
            query: The query.
            nodes: The retrieved nodes, best first.
            response_kwargs: Variables of the prompts, as plain JSON.

        Returns:
            A row of plain JSON, which may be kept in a file. `done` says whether the draft answered; then the row has
            the `answer` and the keys of a response's metadata. If not, `usage` is that of the draft, and `sources`
            are the ids of the documents behind the nodes, best first, by which to group the queries.

        Raises:
            InputError: A variable of the prompts is not JSON.
        """
        call = self._first(query, nodes, response_kwargs)
        return row_of(call, run(call.flow(), call))

    async def afirst_step(
        self, query: str | QueryBundle, nodes: Sequence[NodeWithScore], **response_kwargs: Any
    ) -> Row:
        """Do as `first_step` does, asynchronously."""
        call = self._first(query, nodes, response_kwargs)
        return row_of(call, await arun(await call.aflow(), call))

    def second_step(self, row: Mapping[str, Any]) -> RESPONSE_TYPE:
        """Go on from a row of `first_step`, in the same process or another, and answer its query.

        Args:
            row: The row, from a synthesizer of the same configuration.

        Returns:
            What `synthesize` would have returned; from a row that is done, without asking any model.

        Raises:
            InputError: It is not such a row.
            ConfigurationError: Nothing but the nodes says what `StoredDocuments` may read, and those of a row are not
                believed. An engine retrieves them again.
        """
        return self._go_on(row, None)

    async def asecond_step(self, row: Mapping[str, Any]) -> RESPONSE_TYPE:
        """Do as `second_step` does, asynchronously."""
        return await self._ago_on(row, None)

    def _go_on(self, row: Mapping[str, Any], finder: Finder | None) -> RESPONSE_TYPE:
        kept = read_row(row, node_from_json, name=text)
        if kept.result:
            return of_row(kept, streaming=self._streaming)
        return self._respond(self._second(row, kept, finder), ())

    async def _ago_on(self, row: Mapping[str, Any], finder: Finder | None) -> RESPONSE_TYPE:
        kept = read_row(row, node_from_json, name=text)
        if kept.result:
            return aof_row(kept, streaming=self._streaming)
        return await self._arespond(self._second(row, kept, finder), ())

    def _first(self, query: str | QueryBundle, nodes: Sequence[NodeWithScore], words: Mapping[str, Any]) -> QueryCall:
        parts = replace(self.parts(), streaming=False)
        return QueryCall(LlamaIndexHost(parts, bundle_of(query), nodes=nodes, words=words), first_only=True)

    def _second(self, row: Mapping[str, Any], kept: KeptStep[NodeWithScore], finder: Finder | None) -> QueryCall:
        query, words = query_in_row(row)
        return QueryCall(LlamaIndexHost(self.parts(), bundle_of(query), words=words, finder=finder), first=kept)


class EngineSteps:
    """The two steps of an engine."""

    def _scoped(self) -> AbstractContextManager[None]:
        """Pass the engine's retriever and postprocessors to the synthesizer."""
        raise NotImplementedError

    def _as_asked(self) -> Finder:
        """Return the engine as it was when it was asked, to retrieve again."""
        raise NotImplementedError

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Return the nodes for a query."""
        raise NotImplementedError

    async def aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Do as `retrieve` does, asynchronously."""
        raise NotImplementedError

    def first_step(self, query: str | QueryBundle) -> Row:
        """Retrieve, and ask for the draft alone; return a row as `SelfRouteSynthesizer.first_step` does."""
        bundle = bundle_of(query)
        with self._scoped():
            return self._synthesizer.first_step(bundle, self.retrieve(bundle))

    async def afirst_step(self, query: str | QueryBundle) -> Row:
        """Do as `first_step` does, asynchronously."""
        bundle = bundle_of(query)
        with self._scoped():
            return await self._synthesizer.afirst_step(bundle, await self.aretrieve(bundle))

    def second_step(self, row: Mapping[str, Any]) -> RESPONSE_TYPE:
        """Go on from a row of `first_step`, and answer its query as `query` would have done.

        If nothing but the nodes says what `StoredDocuments` may read, this retrieves again, and takes only the draft
        from the row.
        """
        with self._scoped():
            return self._synthesizer._go_on(row, self._as_asked())  # noqa: SLF001

    async def asecond_step(self, row: Mapping[str, Any]) -> RESPONSE_TYPE:
        """Do as `second_step` does, asynchronously."""
        with self._scoped():
            return await self._synthesizer._ago_on(row, self._as_asked())  # noqa: SLF001

    @property
    def _synthesizer(self) -> SynthesizerSteps:
        return cast("SynthesizerSteps", internals.parts_of(self)[0])
