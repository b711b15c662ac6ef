"""Find what limits a retriever, as configured for one call, and what is dropped of its findings."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.vectorstores import VectorStore

from langchain_selfroute.stored.originals import Originals
from langchain_selfroute.stored.searches import Search, searches_of
from langchain_selfroute.stored.stores import Store
from selfroute.documents.stored import ScopedDocuments
from selfroute.documents.wall import is_same

_HARMLESS = frozenset({"k", "fetch_k", "lambda_mult", "score_threshold"})


@dataclass(frozen=True, slots=True)
class RetrieverScope:
    """The store that a retriever searches, and what limits the search.

    Attributes:
        vectorstores: The store, as each of the searches knows it.
        filter: The filter; None if it has no filter.
        others: The names of other search arguments that may hide chunks.
        originals: What the retriever returns in place of the chunks that it finds, if it does.
        certain: Whether nothing else hides chunks.
    """

    vectorstores: Sequence[VectorStore]
    filter: Any = None
    others: tuple[str, ...] = ()
    originals: Originals | None = None
    certain: bool = True


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be read; falsy if nothing is hidden.

    Attributes:
        conditions: What each chunk must match, in the store's own terms.
        retrievers: Those of the conditions that the retriever itself has.
        originals: What to read in place of the chunks, if anything.
    """

    conditions: Sequence[Any]
    retrievers: Sequence[Any]
    originals: Originals | None = None

    def __bool__(self) -> bool:
        return bool(self.conditions)


def scope_of(retriever: Runnable[Any, Any], config: RunnableConfig, store: Store) -> RetrieverScope | None:
    """Find what limits a retriever, within whatever LangChain wraps around it.

    Args:
        retriever: The retriever.
        config: The config of the call.
        store: The store that is read; it says what its filters are called.

    Returns:
        The scope; None if it cannot be determined, so that anything may be hidden from the retriever.
    """
    searches = searches_of(retriever, config)
    if not searches:
        return None
    filters = [_filter_of(search, store) for search in searches]
    first = searches[0]
    alike = all(is_same(one, filters[0]) for one in filters)
    if not alike or any(search.originals != first.originals for search in searches):
        return None
    others = {name for search in searches for name in _others_of(search, store)}
    stores = [search.vectorstore for search in searches]
    certain = all(search.certain for search in searches)
    return RetrieverScope(stores, filters[0], tuple(sorted(others)), first.originals, certain)


def is_empty(condition: Any) -> bool:
    """Return whether a filter hides nothing."""
    return condition is None or (isinstance(condition, Mapping) and not condition)


def _filter_of(search: Search, store: Store) -> Any:
    found = search.arguments.get(store.filter_key)
    return None if is_empty(found) else found


def _others_of(search: Search, store: Store) -> list[str]:
    known = _HARMLESS | store.harmless | {store.filter_key}
    return [name for name, value in search.arguments.items() if name not in known and value is not None]


class FoundHeard(BaseCallbackHandler):
    """Notes what all retrievers find that run within the retrieval of one question."""

    run_inline = True

    def __init__(self, stored: ScopedDocuments[Document, Document]) -> None:
        """Note it as these documents name and read passages."""
        self._stored = stored
        self.found: set[tuple[Hashable | None, str]] = set()

    def on_retriever_end(self, documents: Sequence[Document], **_: Any) -> None:
        """Note what a retriever has found."""
        self.found |= self._stored.noted(documents)
