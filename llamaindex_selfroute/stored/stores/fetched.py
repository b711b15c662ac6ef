"""List the nodes of any other store, through the user's own `fetch`."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from typing import Any

from llama_index.core.schema import BaseNode
from typing_extensions import override

from llamaindex_selfroute import host
from llamaindex_selfroute.stored.conditions import Filters, test_of, together
from llamaindex_selfroute.stored.stores.base import Fetch, Store
from selfroute.errors import ReplyError


class Fetched(Store):
    """Any other store, through the user's own callable."""

    def __init__(self, index: Any, fetch: Fetch) -> None:
        self._index, self._fetch = index, fetch

    @override
    def is_searched_by(self, retriever: Any) -> bool:
        return host.index_of(retriever) is self._index

    @override
    def nodes(self, document: str, filters: Filters) -> Iterable[BaseNode]:
        return filter(test_of(filters), self.rows(document, filters))  # `fetch` may return nodes without a document

    @override
    def rows(self, document: str, filters: Filters) -> Iterator[BaseNode]:
        found: Any = self._fetch(document, together(filters))
        if inspect.iscoroutine(found):
            found.close()  # it is refused below
        for node in found if isinstance(found, Iterable) else [found]:
            if not isinstance(node, BaseNode):
                msg = f"fetch must return nodes; got {type(node).__name__}"
                raise ReplyError(msg)
            if node.ref_doc_id not in (None, document):
                msg = f"fetch was asked for {document!r} and returned a node of {node.ref_doc_id!r}"
                raise ReplyError(msg)
            yield node
