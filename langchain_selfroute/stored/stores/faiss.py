"""List the chunks of FAISS."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from typing_extensions import override

from langchain_selfroute.stored.stores.base import Store, described, is_sync
from selfroute.documents.access import StoredChunk
from selfroute.errors import ConfigurationError


class Faiss(Store):
    """`FAISS` of `langchain_community`. Filters are dicts, or callables that take the metadata."""

    @override
    def check(self, condition: Any) -> None:
        if not isinstance(condition, Mapping) and not is_sync(condition):
            msg = f"FAISS takes a dict or a sync callable over the metadata as filter, not {described(condition)}"
            raise ConfigurationError(msg)
        self.test_of(condition)

    @override
    def rows(self, key: str, source: Any, conditions: Sequence[Any]) -> Iterator[StoredChunk]:
        # The index numbers its rows as they were added, also after some were deleted or merged.
        for _, id_ in sorted(self._vectorstore.index_to_docstore_id.items()):
            document = self._vectorstore.docstore.search(id_)
            if not isinstance(document, str):  # what it returns for an id that was deleted
                yield StoredChunk(id_, document.page_content, document.metadata)

    @override
    def test_of(self, condition: Any) -> Callable[[StoredChunk], bool]:
        test = _metadata_test(self._vectorstore, condition)
        return lambda chunk: bool(test(chunk.metadata))


def _metadata_test(vectorstore: Any, condition: Any) -> Callable[[Mapping[str, Any]], bool]:
    """Return the function by which FAISS tests metadata against a filter.

    Raises:
        ConfigurationError: This version has no such function, or the filter has operators that it does not know.
    """
    if callable(condition):
        return condition  # type: ignore[no-any-return]
    make = getattr(vectorstore, "_create_filter_func", None)
    if make is None:
        msg = "langchain-community has changed how FAISS applies a dict as filter; use 0.4, or pass a callable"
        raise ConfigurationError(msg)
    try:
        test: Callable[[Mapping[str, Any]], bool] = make(condition)
    except ValueError as error:
        msg = f"FAISS cannot use this filter: {error}"
        raise ConfigurationError(msg) from error
    return test
