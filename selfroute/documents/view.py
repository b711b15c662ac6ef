"""What a retriever may see of a store, fixed when a question is asked."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What chunks must meet to be read; falsy if nothing is hidden. Each framework adds its filters.

    Attributes:
        key: Identifies the limits, for caching; None if they cannot be identified.
        cached: Whether documents that are read under these limits may be cached.
        compared: Whether to compare each chunk with the passages, because more may be hidden than these limits say.
        whole: Whether the passages may be whole documents, so that none of them has to name its document.
    """

    key: Hashable | None = field(default=None, compare=False)
    cached: bool = field(default=True, compare=False)
    compared: bool = field(default=False, compare=False)
    whole: bool = field(default=False, compare=False)


@dataclass(slots=True, eq=False)
class View:
    """What a retriever may see of a store; it is passed to each read.

    Attributes:
        find: Finds the limits. It is called when documents are first read, or their sizes looked up.
        declared: Whether the user declared what is hidden. Then chunks are not compared with the passages' metadata.
        certain: Whether no part that we do not know selects the passages.
        dropped: Names of documents of which a passage was found, and then left out or changed by an unknown part.
    """

    find: Callable[[], Limits]
    declared: bool = False
    certain: bool = False
    dropped: set[Hashable] = field(default_factory=set)
    _limits: Limits | None = field(default=None, init=False)

    @property
    def doubted(self) -> bool:
        """Whether unknown parts may hide more than any filter says."""
        return not (self.declared or self.certain)

    @property
    def limits(self) -> Limits:
        """What each chunk must meet."""
        if self._limits is None:
            self._limits = self.find()
        return self._limits

    @property
    def limits_from_passages(self) -> bool:
        """Whether nothing but the passages says what may be read, so that they must be retrieved in this process."""
        return self.limits.compared and not self.declared
