"""Name the document of a node: the file that its page is of, what a key of its metadata says, or its `ref_doc_id`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from llama_index.core.schema import BaseNode, NodeRelationship, RelatedNodeInfo
from typing_extensions import Self

FILE = ("file_path", "file_name")
"""The keys that name the file of a page."""
_PAGE = ("page_label", "page")
_NAMES = (str, int, float)


class Name(str):
    """The name of a document.

    Attributes:
        key: The key of the metadata under which its nodes have the name; None if it is their `ref_doc_id`.
        value: The name as it stands there.
    """

    __slots__ = ("key", "value")
    key: str | None
    value: Any

    @classmethod
    def of(cls, value: Any, key: str | None = None) -> Self:
        """Return a name."""
        name = cls(value)
        name.key, name.value = key, value
        return name

    def __eq__(self, other: object) -> bool:
        """Return whether another name is that of the same document: 7 and "7" name two, and so do two keys."""
        if not isinstance(other, Name):
            return str.__eq__(self, other) if isinstance(other, str) else NotImplemented
        return (self.key, type(self.value), self.value) == (other.key, type(other.value), other.value)

    __hash__ = str.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).of, (self.value, self.key)


def name_of(node: BaseNode, source_key: str | None, can_find: Callable[[str, Any], bool]) -> Name | None:
    """Return the name of a node's document; None if the node does not name it.

    A loader of PDFs makes a document of each page, which has the page and the path of the file: then the file is the
    document.

    Args:
        node: The node.
        source_key: The key that the user named; it comes before the file, and the file before the `ref_doc_id`.
        can_find: Whether the store can list the nodes that have a value under a key.
    """
    metadata = node.metadata
    if source_key is not None and _names(value := metadata.get(source_key)):
        return Name.of(value, source_key)
    if any(key in metadata and _names(metadata[key]) for key in _PAGE):
        for key in FILE:
            value = metadata.get(key)
            if isinstance(value, str) and value and can_find(key, value):
                return Name.of(value, key)
    document = node.ref_doc_id
    return Name.of(document) if document else None


def _names(value: Any) -> bool:
    is_finite = not isinstance(value, float) or isfinite(value)
    return isinstance(value, _NAMES) and not isinstance(value, bool) and value != "" and is_finite


def placed(node: BaseNode) -> Mapping[str, Any]:
    """Return the metadata of a node, with the page of its own document.

    Where the pages of a file have one id, LlamaIndex writes the metadata of the last page into the nodes of all.
    """
    source = node.relationships.get(NodeRelationship.SOURCE)
    theirs = source.metadata if isinstance(source, RelatedNodeInfo) else {}
    own = {key: theirs[key] for key in _PAGE if theirs.get(key) not in (None, node.metadata.get(key))}
    return {**node.metadata, **own} if own else node.metadata
