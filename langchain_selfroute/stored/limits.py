"""What limits a retriever of a vector store, and so what may be read of that."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from langchain_selfroute.stored.originals import Originals
from langchain_selfroute.stored.searches import Search, is_empty, searches_of
from langchain_selfroute.stored.seen import arguments_in
from langchain_selfroute.stored.stores import Store
from selfroute.documents.access import frozen, is_same
from selfroute.documents.view import Limits, View
from selfroute.errors import ConfigurationError

ADVICE = "pass StoredDocuments(filter=...), which every chunk must match; filter={} if nothing is hidden"
_HARMLESS = frozenset({"k", "fetch_k", "lambda_mult", "score_threshold"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkLimits(Limits):
    """What may be read of a vector store; falsy if nothing is hidden.

    Attributes:
        conditions: What each chunk must match, in the store's own terms.
        theirs: Those of the conditions that the retriever itself has.
        originals: What to read in place of the chunks, if anything.
    """

    conditions: Sequence[Any]
    theirs: Sequence[Any]
    originals: Originals | None

    def __bool__(self) -> bool:
        return bool(self.conditions)


def view_of(retriever: Runnable[Any, Any] | None, config: RunnableConfig, store: Store, declared: Any) -> View:
    """Return what a retriever may see, inside LangChain's own wrappers around it.

    Args:
        retriever: The retriever; None if it is not known.
        config: The config of the call.
        store: The store that is read; it says what its filters are called.
        declared: The filter that the user declared; None if none was.

    Raises:
        ConfigurationError: The retriever has search arguments that may hide chunks, and no filter was declared.
    """
    searches = () if retriever is None else searches_of(retriever, config) or ()
    filters = [search.filter(store.filter_key) for search in searches]
    given = {name for search in searches for name, value in search.arguments.items() if value is not None}
    for search, condition in zip(searches[1:], filters[1:], strict=True):
        if search.originals != searches[0].originals or not is_same(condition, filters[0]):
            searches = ()  # what one of them finds, another one may hide
            break
    hiding = given.union(arguments_in(retriever)) - _HARMLESS - store.harmless - {store.filter_key}
    if hiding and declared is None:
        msg = f"the retriever's search_kwargs have {', '.join(sorted(hiding))}, which may hide chunks: {ADVICE}"
        raise ConfigurationError(msg)
    declared, certain = frozen(declared), bool(searches) and all(search.certain for search in searches)
    theirs = filters[:1] if searches and filters[0] is not None else []
    find = partial(_limits_of, store, searches, theirs, declared, certain=certain)
    return View(find, declared=declared is not None, certain=certain)


def _limits_of(
    store: Store, searches: Sequence[Search], theirs: Sequence[Any], declared: Any, *, certain: bool
) -> ChunkLimits:
    """Return the limits of searches that all have the same filter, if any."""
    for condition in theirs:
        store.check(condition)
    own = [] if is_empty(declared) else [declared]
    conditions = own + [condition for condition in theirs if not any(is_same(condition, one) for one in own)]
    stores = [search.vectorstore for search in searches]
    known = declared is not None or (certain and all(map(store.is_plain, stores)))
    compared = not (known and all(map(store.is_of, stores)))
    originals = searches[0].originals if searches else None
    cache_key = store.cache_key(conditions)
    key: Hashable | None = _plain_key(conditions) if cache_key is None else cache_key
    return ChunkLimits(
        conditions=conditions,
        theirs=theirs,
        originals=None if compared else originals,
        key=key and originals.key and (key, originals.key) if originals else key,
        cached=cache_key is not None and not originals,
        compared=compared,
        whole=originals is not None,
    )


def _plain_key(conditions: Sequence[Any]) -> str | None:
    """Return a key for filters that are plain data; None for others, such as callables."""
    with suppress(TypeError, ValueError):
        return json.dumps(conditions, sort_keys=True)
    return None
