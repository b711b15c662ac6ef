"""Read the metadata of chunks: what orders them, what they have in common, and how they differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

ORDER_KEYS = ("page", "page_number", "page_label", "row", "seq_num", "seq", "order", "index", "chunk", "chunk_index")
"""The keys under which loaders and splitters number pages and chunks, the coarsest first."""
PLACE_KEYS = frozenset({"page", "page_number", "page_label", "chunk", "chunk_index"})
"""The keys that only say where in its document a chunk stands. Filters are assumed not to use them."""

_ABSENT = object()


def shared_items(shared: dict[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the items of `shared` that `metadata` has too; `shared` itself if it has all of them."""
    if shared.items() <= metadata.items():
        return shared
    return {key: value for key, value in shared.items() if metadata.get(key, _ABSENT) == value}


def without_keys(metadata: Mapping[str, Any], keys: AbstractSet[str]) -> dict[str, Any]:
    """Return the metadata without some keys."""
    return {key: value for key, value in metadata.items() if key not in keys}


def differing_keys(
    metadata: Mapping[str, Any], passages: Iterable[Mapping[str, Any]], *, ignored_keys: AbstractSet[str]
) -> list[str]:
    """Return the keys in which a chunk differs from the retrieved passage that is most like it.

    A metadata filter that lets a passage through also lets through every chunk with the same metadata. So if there are
    no such keys, the retriever can see the chunk, whatever its filter is.

    Args:
        metadata: The metadata of the chunk.
        passages: The metadata of the passages, at least one.
        ignored_keys: Keys that only say where in the document a chunk stands; they are ignored.
    """
    compared = without_keys(metadata, ignored_keys)
    differences = [
        [key for key, value in compared.items() if passage.get(key, _ABSENT) != value] for passage in passages
    ]
    return min(differences, key=len)
