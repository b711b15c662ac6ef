"""Find the chunks of a document in a FAISS index of LangChain without walking through all of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from selfroute.documents.access import StoredChunk
from selfroute.stores.listing import Listing, same_name


class Faiss(Listing):
    """Lists the chunks in the docstore, in the order in which they were added."""

    def __init__(self, wrapper: Any) -> None:
        """Take the wrapper."""
        self._wrapper = wrapper

    def rows(self, key: str, source: Any, conditions: Sequence[Any]) -> Iterator[StoredChunk]:  # noqa: ARG002
        """Yield the chunks of a document; filters are tested by the caller."""
        ids, find = self._wrapper.index_to_docstore_id, self._wrapper.docstore.search
        for number in _rows_of(self._wrapper, key, source):
            document = find(ids[number])  # a text for an id that was deleted
            if not isinstance(document, str) and same_name(document.metadata.get(key), source):
                yield StoredChunk(ids[number], document.page_content, document.metadata)


class _Places:
    """In which rows of an index each document stands.

    FAISS numbers its rows as they are added, and replaces the whole dict of their ids when some are deleted: while that
    is the same dict, only the rows that were added since have to be read.
    """

    def __init__(self, ids: dict[int, str]) -> None:
        self.ids, self._known = ids, 0
        self._rows: dict[str, list[int]] = {}

    def of(self, source: Any, key: str, docstore: Any) -> list[int]:
        if len(self.ids) > self._known:
            for number, id_ in islice(list(self.ids.items()), self._known, None):
                document = docstore.search(id_)
                if not isinstance(document, str):
                    self._rows.setdefault(str(document.metadata.get(key)), []).append(number)
                self._known += 1
        return list(self._rows.get(str(source), ()))


_KEPT: WeakKeyDictionary[Any, dict[str, _Places]] = WeakKeyDictionary()
_LOCK = Lock()


def _rows_of(wrapper: Any, key: str, source: Any) -> list[int]:
    """Return the numbers of the rows that may belong to a document, in order."""
    ids = wrapper.index_to_docstore_id
    with _LOCK:
        kept = _KEPT.setdefault(wrapper, {})
        if key not in kept or kept[key].ids is not ids:
            kept[key] = _Places(ids)
        return kept[key].of(source, key, wrapper.docstore)
