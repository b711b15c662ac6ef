"""List the nodes of one document in any vector store that has `get_nodes`.

Many integrations write ids and filters into the text of a query (SQL, or the language of the store) as they are. So
only letters, digits, spaces and a few marks are sent to those that are not known: these do not end a string in any
query language. What comes back is tested again, even if the store applies filters.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any
from unicodedata import category

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from typing_extensions import override

from llamaindex_selfroute.stored.conditions import Filters, together
from llamaindex_selfroute.stored.stores import VectorStore
from selfroute.documents.access import StoredChunk
from selfroute.errors import ConfigurationError
from selfroute.stores.listing import ByFunction

_LIMITS = frozenset({100, 1_000, 9_999, 10_000, 16_384})  # after which integrations end a listing without a word
_HARMLESS = frozenset(" _-./:")  # but not a quote, a backslash, or what some drivers replace, such as a percent sign


class Listed(VectorStore):
    """Any vector store that has `get_nodes`."""

    lists_ids = False
    tests_filters = True

    @override
    def can_find(self, key: str, value: Any) -> bool:
        return _is_harmless(key) and _is_harmless(str(value))

    @override
    def listing_of(self, wrapper: Any) -> ByFunction:
        return ByFunction(partial(_listed, wrapper))

    @override
    def node_of(self, chunk: StoredChunk) -> BaseNode:
        node: BaseNode = chunk.host
        return node


def _listed(store: Any, key: str, document: Any, filters: Filters) -> Iterator[StoredChunk]:
    asked: Any = together([MetadataFilters(filters=[MetadataFilter(key=key, value=document)]), *filters])
    name = type(store).__name__
    unsafe = next((text for text in _texts(asked) if not _is_harmless(text)), None)
    if unsafe is not None:
        msg = (
            f"{unsafe!r} is not sent to a {name}, which may take a part of it for a query: pass "
            "StoredDocuments(fetch=...), a callable that takes (ref_doc_id, filters) and lists the nodes with both "
            "passed as parameters, or use ids and values of letters, digits, spaces and _ - . / : only"
        )
        raise ConfigurationError(msg)
    try:
        found = list(store.get_nodes(None, asked))
    except NotImplementedError as error:
        msg = f"{name}.get_nodes: {error}; pass StoredDocuments(fetch=...)"
        raise ConfigurationError(msg) from error
    if len(found) in _LIMITS:
        msg = (
            f"{name}.get_nodes returned {len(found):,} nodes of {document!r}, the most that some stores return: the "
            "rest of the document may be missing; pass StoredDocuments(fetch=...), a callable that takes (ref_doc_id, "
            "filters) and lists all nodes of the document"
        )
        raise ConfigurationError(msg)
    for node in found:
        yield StoredChunk(node.node_id, "", node.metadata, host=node)


def _texts(filters: MetadataFilters | MetadataFilter) -> Iterator[str]:
    """Yield all texts of filters: their keys and values."""
    if isinstance(filters, MetadataFilters):
        for one in filters.filters:
            yield from _texts(one)
    else:
        values = filters.value if isinstance(filters.value, list) else [filters.value]
        yield from (text for text in (filters.key, *values) if isinstance(text, str))


def _is_harmless(text: str) -> bool:
    # A modifier letter, such as an apostrophe (U+02BC), may become an ASCII quote on its way.
    return all(one in _HARMLESS or (one.isalnum() and category(one) != "Lm") for one in text)
