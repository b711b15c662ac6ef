"""The vector stores that are read without `fetch`: what client each has, and what its columns are called."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.vectorstores import VectorStore

from langchain_selfroute.stored.postgres import PGVector, PGVectorStore
from langchain_selfroute.stored.searches import searches_of
from langchain_selfroute.stored.stores import Fetch, Fetched, Store, tested_by
from selfroute.arguments import check_takes
from selfroute.documents.access import StoredChunk
from selfroute.documents.chunks import without_keys
from selfroute.errors import ConfigurationError
from selfroute.stores import chroma, faiss, lancedb, milvus, qdrant
from selfroute.stores.conditions import joined
from selfroute.stores.listing import ByFunction, Test, is_sync, known_store, same_name

_NAME = re.compile(r"`(?:[^`]|``)+`|[^\W\d]\w*")
_NAMES = re.compile(rf"(?:{_NAME.pattern})(?:\.(?:{_NAME.pattern}))*")


class InMemory(Store):
    """LangChain's own `InMemoryVectorStore`. Filters are callables that take a Document."""

    filters, callables = (), True
    takes = "a sync callable over a Document as filter"

    def listing_of(self, wrapper: Any) -> ByFunction:
        """Look through its dict."""

        def rows(key: str, source: Any, _: Sequence[Any]) -> Iterator[StoredChunk]:
            for entry in list(wrapper.store.values()):
                metadata = entry["metadata"] or {}
                if same_name(metadata.get(key), source):
                    yield StoredChunk(entry["id"], entry["text"], metadata)

        return ByFunction(rows)

    def test_of(self, condition: Any) -> Test:
        """Call the filter with a new Document, as a search does."""
        return lambda chunk: bool(condition(Document(chunk.text, id=chunk.id, metadata={**chunk.metadata})))


class Faiss(Store):
    """`FAISS` of `langchain_community`. Filters are dicts, or callables that take the metadata."""

    callables = True
    takes = "a dict or a sync callable over the metadata as filter"

    def listing_of(self, wrapper: Any) -> faiss.Faiss:
        """Look through its docstore."""
        return faiss.Faiss(wrapper)

    def test_of(self, condition: Any) -> Test:
        """Test the metadata as FAISS does."""
        test = condition
        if not callable(condition):
            make = getattr(self.wrapper, "_create_filter_func", None)
            if make is None:
                msg = "langchain-community has changed how FAISS applies a dict as filter; use 0.4, or pass a callable"
                raise ConfigurationError(msg)
            try:
                test = make(condition)
            except ValueError as error:
                msg = f"FAISS cannot use this filter: {error}"
                raise ConfigurationError(msg) from error
        return lambda chunk: bool(test(chunk.metadata))


class FaissWithoutFilters(Store):
    """`Faiss` of `langchain_faiss`, the package `langchain-faiss-vectorstore`. Its search ignores filters."""

    ignores_filters = True
    supported = "langchain-faiss-vectorstore 0.1"

    def listing_of(self, wrapper: Any) -> ByFunction:
        """Look through its dict."""
        held = wrapper._docs  # noqa: SLF001

        def rows(key: str, source: Any, _: Sequence[Any]) -> Iterator[StoredChunk]:
            for number, document in list(held.items()):
                if same_name(document.metadata.get(key), source):
                    yield StoredChunk(str(number), document.page_content, without_keys(document.metadata, {"_id"}))

        return ByFunction(rows)


class Chroma(Store):
    """`Chroma` of `langchain_chroma`, embedded or over HTTP. Filters are dicts in the form of Chroma's `where`."""

    def listing_of(self, wrapper: Any) -> chroma.Chroma:
        """Read its collection."""
        return chroma.Chroma(wrapper)

    def identity_of(self, wrapper: Any) -> Any:
        """Return the id of its collection."""
        return getattr(getattr(wrapper, "_collection", None), "id", None)


class Qdrant(Store):
    """`QdrantVectorStore` of `langchain_qdrant`. Filters are `qdrant_client.models.Filter`."""

    takes = "a qdrant_client.models.Filter as filter"
    harmless = frozenset({"search_params", "offset", "consistency", "timeout", "hybrid_fusion"})

    def listing_of(self, wrapper: Any) -> qdrant.Qdrant:
        """Read its collection."""
        from qdrant_client import models  # noqa: PLC0415 - only where it is used

        text, metadata = wrapper.content_payload_key, wrapper.metadata_payload_key
        return qdrant.Qdrant(models, wrapper.client, wrapper.collection_name, text=text, metadata=metadata)

    def identity_of(self, wrapper: Any) -> Any:
        """Return the place and the name of its collection."""
        return qdrant.collection_of(wrapper.client, wrapper.collection_name)

    def is_filter(self, condition: Any) -> bool:
        """Return whether it is a `Filter`."""
        from qdrant_client.models import Filter  # noqa: PLC0415 - only where it is used

        return isinstance(condition, Filter)


class Milvus(Store):
    """`Milvus` of `langchain_milvus`, embedded or a server. Filters are strings in Milvus's own language (`expr`)."""

    filters = (str,)
    takes = "a string as filter, such as 'tenant == \"north\"'"
    filter_key = "expr"
    harmless = frozenset({"param", "ranker_type", "ranker_params", "timeout"})
    supported = "langchain-milvus 0.3.3 or 0.4"

    def listing_of(self, wrapper: Any) -> milvus.Milvus:
        """Read its collection."""
        text, metadata = wrapper._text_field, wrapper._metadata_field  # noqa: SLF001
        return milvus.Milvus(wrapper.client, wrapper.collection_name, text=text, metadata=metadata)

    def identity_of(self, wrapper: Any) -> Any:
        """Return the place of its database and the name of its collection."""
        place = milvus.place_of(getattr(wrapper, "_connection_args", None))
        return place and (place, wrapper.collection_name)


class LanceDB(Store):
    """`LanceDB` of `langchain_community`. Filters are strings in SQL, or dicts of columns such as `metadata.tenant`."""

    filters = (str, Mapping)
    takes = "a string in SQL as filter, such as \"metadata.tenant = 'north'\", or a dict"
    harmless = frozenset({"fts", "metrics", "prefilter", "query_type"})
    supported = "langchain-community 0.4"

    def listing_of(self, wrapper: Any) -> lancedb.LanceDB:
        """Read its table, if it has one."""
        id_, text = wrapper._id_key, wrapper._text_key  # noqa: SLF001
        return lancedb.LanceDB(wrapper.get_table(), id=id_, text=text, metadata="metadata")

    def identity_of(self, wrapper: Any) -> Any:
        """Return the place of its database and the name of its table."""
        return lancedb.place_of(getattr(wrapper, "_connection", None), getattr(wrapper, "_table_name", None))

    def check(self, condition: Any) -> None:
        """Refuse also a dict of which a key names no column."""
        super().check(condition)
        for name in condition if isinstance(condition, Mapping) else ():
            if not isinstance(name, str) or not _NAMES.fullmatch(name):
                msg = f"{name!r} in a filter of LanceDB does not name a column, such as metadata.tenant"
                raise ConfigurationError(msg)

    def conditions(self, filters: Sequence[Any]) -> list[str]:
        """Return filters in SQL."""
        return [one if isinstance(one, str) else _in_sql(one) for one in filters]


def _in_sql(condition: Mapping[str, Any]) -> str:
    """Return a dict in SQL; the integration compares its values as texts, too, but does not escape them."""
    parts = []
    for name, value in condition.items():
        path = [part.strip("`").replace("``", "`") for part in _NAME.findall(name)]
        parts.append(f"{lancedb.column(*path)} = {lancedb.literal(str(value))}")
    return " AND ".join(parts)


class LanceDBWithoutFilters(Store):
    """`LanceDB` of `langchain_lancedb`. Its search ignores filters, and writes over each passage's `source`."""

    ignores_filters = True
    supported = "langchain-lancedb 0.1"

    def listing_of(self, wrapper: Any) -> ByFunction:
        """Read its table, whose metadata are JSON and whose ids are not of one row each."""
        table, _ = wrapper._get_or_create_table()  # noqa: SLF001

        def rows(key: str, source: Any, _: Sequence[Any]) -> Iterator[StoredChunk]:
            held = f"contains(metadata, {lancedb.literal(json.dumps({key: source})[1:-1])})"
            for row in () if table is None else lancedb.rows_of(table, [held], ["text", "metadata"]):
                metadata = json.loads(row["metadata"])
                if same_name(metadata.get(key), source):
                    yield StoredChunk("", row["text"], without_keys(metadata, {"source"}))

        return ByFunction(rows)

    def check_key(self, source_key: str) -> None:
        """Refuse the key that its search writes over."""
        if source_key == "source":
            msg = (
                "the search of langchain-lancedb writes the place of its database over metadata['source'], which then "
                "names no document: index chunks with another key, such as 'file', and pass it as source_key="
            )
            raise ConfigurationError(msg)


_KINDS: Mapping[tuple[str, str], type[Store]] = {
    ("langchain_core", "InMemoryVectorStore"): InMemory,
    ("langchain_chroma", "Chroma"): Chroma,
    ("langchain_community", "Chroma"): Chroma,
    ("langchain_community", "FAISS"): Faiss,
    ("langchain_faiss", "Faiss"): FaissWithoutFilters,
    ("langchain_qdrant", "QdrantVectorStore"): Qdrant,
    ("langchain_postgres", "PGVector"): PGVector,
    ("langchain_postgres", "PGVectorStore"): PGVectorStore,
    ("langchain_postgres", "AsyncPGVectorStore"): PGVectorStore,
    ("langchain_community", "LanceDB"): LanceDB,
    ("langchain_lancedb", "LanceDB"): LanceDBWithoutFilters,
    ("langchain_milvus", "Milvus"): Milvus,
}
"""The kinds of stores, by top-level package and class."""


def filter_test(retriever: Runnable[Any, Any], config: RunnableConfig) -> Test | None:
    """Return a function that tests a chunk against the filter of a retriever, as configured for a call.

    Of several searches, one that may find the chunk is enough.

    Returns:
        The test; None if no filter is known, or none that can be applied outside of its store.
    """
    tests = []
    for search in searches_of(retriever, config) or ():
        store = known_store(search.vectorstore, _KINDS)
        condition = search.filter(store.filter_key if store else Store.filter_key)
        tests.append(None if condition is None else tested_by(store, condition))
    return joined(any, tests) if tests else None


def store_of(vectorstore: VectorStore, fetch: Fetch | None) -> Store:
    """Return an object that lists the chunks of a vector store.

    Args:
        vectorstore: The vector store.
        fetch: The user's own way to list chunks, if there is one.

    Raises:
        ConfigurationError: The store is of an unknown kind and there is no `fetch`, or `fetch` is unusable.
    """
    known = known_store(vectorstore, _KINDS)
    if fetch is not None:
        if not is_sync(fetch):
            msg = "fetch must be a sync callable that takes (source_key, source, filter) and returns Documents"
            raise ConfigurationError(msg)
        check_takes("fetch", fetch, "source_key", "source", "filter")
        return Fetched(vectorstore, fetch, known)
    if known:
        return known
    msg = (
        f"a {type(vectorstore).__name__} has no known way to list the chunks of one document: pass fetch=, a callable "
        "that takes (source_key, source, filter) and returns all chunks whose metadata has that source, as Documents"
    )
    raise ConfigurationError(msg)
