"""Make nodes of the rows in which vector stores keep them."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.utils import metadata_dict_to_node

from llamaindex_selfroute.stored.conditions import DOCUMENT

_OWN = frozenset({*DOCUMENT, "_node_content", "_node_type"})  # kept beside a node's own metadata


def node_of(row: Mapping[str, Any], text: str | None, columns: AbstractSet[str] = frozenset()) -> BaseNode:
    """Return a node with the metadata of its row: they decide what a filter hides, and may have changed.

    Args:
        row: The metadata, and beside them the node itself in JSON.
        text: The node's text; None if it is in the node.
        columns: The keys of other columns of the store in the row.
    """
    node, own = metadata_dict_to_node({**row}, text=text), _OWN | columns
    if _values(row, own) != _values(node.metadata, own):
        held = {key: value for key, value in row.items() if key not in own and value is not None}
        node.metadata = {**held, **{key: value for key, value in node.metadata.items() if key in own}}
    return node


def _values(metadata: Mapping[str, Any], own: AbstractSet[str]) -> Mapping[str, Any]:
    # Some stores return an empty text in place of None, and others None for each key that another row has.
    return {key: value for key, value in metadata.items() if key not in own and value not in (None, "")}
