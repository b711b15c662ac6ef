"""Find the bigger nodes behind those of an index: what `IndexNode`s lead to, or what the nodes were cut from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from llama_index.core.schema import BaseNode, IndexNode
from llama_index.core.storage.docstore import BaseDocumentStore

from llamaindex_selfroute.stored.links import parent_of
from selfroute.documents.chunks import offset

Known: TypeAlias = "Mapping[str, Any] | BaseDocumentStore"
"""Where a retriever looks up bigger nodes: by the ids that `IndexNode`s lead to, or by the ids of parents."""


class BiggerNodes:
    """The bigger nodes that a retriever knows in addition to those of its index."""

    def __init__(self, known: Sequence[Known]) -> None:
        """Take where the retriever looks them up."""
        self._known = tuple(known)

    def __eq__(self, other: object) -> bool:
        """Return whether both are looked up in the same objects; what these hold is not compared."""
        return isinstance(other, BiggerNodes) and self._ids == other._ids

    def __hash__(self) -> int:
        return hash(self._ids)

    @property
    def _ids(self) -> tuple[int, ...]:
        return tuple(map(id, self._known))

    def shown(
        self, belongs: Callable[[BaseNode], bool], hidden: Callable[[], Iterable[BaseNode]]
    ) -> Callable[[BaseNode], BaseNode]:
        """Return a function that finds the node that a retriever returns in the place of a found one.

        It is the found one itself, unless that leads to a node of the same document, nothing of it hidden.

        Args:
            belongs: Tests whether a node is of the document and meets all filters.
            hidden: Lists the hidden nodes of the document. It is called at most once, and only if a node leads further.
        """
        partly_hidden: set[str] | None = None

        def shown(node: BaseNode) -> BaseNode:
            nonlocal partly_hidden
            bigger = self._behind(node) if isinstance(node, IndexNode) else None
            if bigger is None or not belongs(bigger):
                return node
            if partly_hidden is None:
                partly_hidden = {one.index_id for one in hidden() if isinstance(one, IndexNode)}
            return node if node.index_id in partly_hidden else bigger  # type: ignore[attr-defined]

        return shown

    def _behind(self, node: IndexNode) -> BaseNode | None:
        led = [node.obj, *(known.get(node.index_id) for known in self._known if isinstance(known, Mapping))]
        found = next((one for one in led if one is not None), None)
        return found if isinstance(found, BaseNode) else None

    def starts(self, docstore: BaseDocumentStore) -> Callable[[BaseNode], int | None]:
        """Return a function that finds where a node's parent starts in the document, in characters.

        It returns None if that is not known. Each parent is looked up once.

        Args:
            docstore: Where parents are looked up first, before the document stores of the retriever.
        """
        stores = (docstore, *(known for known in self._known if isinstance(known, BaseDocumentStore)))
        starts: dict[str, int | None] = {}

        def start(node: BaseNode) -> int | None:
            parent = parent_of(node)
            if parent is None:
                return 0
            if parent not in starts:
                starts[parent] = None  # in case that parents form a ring
                held = (store.get_document(parent, raise_error=False) for store in stores)
                found = next((one for one in held if one is not None), None)
                own = None if found is None else offset(getattr(found, "start_char_idx", None))
                before = None if found is None or own is None else start(found)
                starts[parent] = None if own is None or before is None else before + own
            return starts[parent]

        return start
