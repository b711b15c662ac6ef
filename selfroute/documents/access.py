"""What a store returns, and what one call may read of it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class StoredChunk:
    """A chunk as a store returns it.

    Attributes:
        id: Its id; empty if it has none.
        text: Its text.
        metadata: Its metadata.
        parent: The id of the larger chunk that it was cut from, if any.
        host: The framework's own object, if it is needed to assemble the document.
    """

    id: str
    text: str
    metadata: Mapping[str, Any]
    parent: str | None = None
    host: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """What one call may read of a store.

    Attributes:
        limits: The conditions that chunks have to meet, in the store's own terms; falsy if nothing is hidden.
        key: Identifies the limits, for caching; None if they cannot be identified.
        cached: Whether documents that are read under these limits may be cached.
        verified: Whether to compare each chunk with the passages, because more may be hidden than the limits say.
        declared: Whether the user declared what is hidden. Then only the presence of the passages is verified.
        whole: Whether the passages may be whole documents, so that none of them has to name its document.
        dropped: Documents with a passage that was found, but that a part which we do not know left out or changed.
    """

    limits: Any
    key: Hashable | None
    cached: bool
    verified: bool
    declared: bool
    whole: bool = False
    dropped: AbstractSet[Hashable] = frozenset()

    @property
    def is_from_passages(self) -> bool:
        """Whether nothing but the passages says what may be read, so that they must be retrieved in this process."""
        return self.verified and not self.declared
