"""What the metadata of chunks tell: where each stands, what all have in common, and what one may be hidden by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

ORDER_KEYS = ("page", "page_number", "page_label", "row", "seq_num", "seq", "order", "index", "chunk", "chunk_index")
"""The keys by which loaders and splitters number pages and chunks, the coarser first."""
PLACE_KEYS = frozenset({"page", "page_number", "page_label", "chunk", "chunk_index"})
"""Those of them that tell nothing but where in its document a chunk stands: nobody is kept from a chunk by them."""

_NOTHING = object()


def common(shared: dict[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What two chunks have in common, given what the one has; the same dict if that is all of it."""
    if shared.items() <= metadata.items():
        return shared
    return {key: value for key, value in shared.items() if metadata.get(key, _NOTHING) == value}


def without(metadata: Mapping[str, Any], keys: AbstractSet[str]) -> dict[str, Any]:
    """Metadata without some keys."""
    return {key: value for key, value in metadata.items() if key not in keys}


def unvouched(
    metadata: Mapping[str, Any], passages: Iterable[Mapping[str, Any]], *, place: AbstractSet[str]
) -> list[str]:
    """Look whether a chunk may be hidden from a retriever that found some passages, by a filter that is not known.

    A filter over metadata that lets a passage through lets through every chunk with the same metadata.

    Args:
        metadata: The chunk's.
        passages: The passages'.
        place: Keys that tell where in the document a chunk stands, by which nothing is hidden.

    Returns:
        The keys in which the chunk differs from the passage that is the most like it; empty if it can be seen, too.
    """
    own = without(metadata, place)
    return min(
        ([key for key, value in own.items() if passage.get(key, _NOTHING) != value] for passage in passages),
        key=lambda keys: len(keys),  # noqa: PLW0108 - mypy knows no `len` of these
    )
