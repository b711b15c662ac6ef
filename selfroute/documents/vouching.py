"""What may be read of a document where it can not be seen what is hidden from a retriever."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from selfroute.documents.metadata import unvouched, without
from selfroute.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class RetrievedChunk:
    """A retrieved passage.

    Attributes:
        ids: Its id, or those of what it was put together from; empty if it has none.
        text: Its text.
        metadata: Its metadata.
    """

    ids: frozenset[str]
    text: str
    metadata: Mapping[str, Any]


class VisibilityCheck:
    """Which chunks of a document a retriever can see of which only some passages are known.

    A filter over metadata that lets a passage through lets through every chunk with the same metadata.
    """

    def __init__(  # noqa: PLR0913 - what both frameworks have to say
        self,
        source: Any,
        hits: Sequence[RetrievedChunk],
        *,
        place: AbstractSet[str],
        advice: str,
        by_id: bool = False,
        blindly: bool = False,
    ) -> None:
        """Start.

        Args:
            source: Whose chunks they are.
            hits: What was retrieved of them.
            place: Keys that tell where in the document a chunk stands, by which nothing is hidden.
            advice: What to do if a chunk may be hidden.
            by_id: Whether a passage with an id has to be known by that, where the chunks have ids too.
            blindly: Whether only to see that the passages are from here, whatever their metadata.
        """
        self._source, self._hits, self._place, self._advice = source, hits, place, advice
        self._by_id, self._blindly = by_id, blindly
        self._kinds: list[dict[str, Any]] = []  # of metadata; few, since each is part of a passage's

    def look(self, metadata: Mapping[str, Any]) -> None:
        """Look at a chunk.

        Raises:
            ConfigurationError: No passage has all that its metadata hold.
        """
        kind = without(metadata, self._place)
        if not self._blindly and kind not in self._kinds:
            self._kinds.append(kind)
            self._compare([kind], self._hits, {})

    def conclude(self, ids: AbstractSet[str], text: str) -> None:
        """Look again, now that all chunks are known.

        A chunk may also lack what a passage has, unless no chunk has it: then a reranker added it, say. And passages
        out of another store tell nothing about the chunks of this one.

        Args:
            ids: The ids of the chunks, and of what they were cut from.
            text: Their text.

        Raises:
            ConfigurationError: A chunk may be hidden.
        """
        by_id = self._by_id and any(ids)
        held = [
            hit
            for hit in self._hits
            if hit.ids & ids or (not (hit.ids and by_id) and (hit.text.strip() or "\0") in text)
        ]
        if not held or (self._blindly and len(held) < len(self._hits)):
            msg = (
                f"the store that is read does not hold what was retrieved of {self._source!r}: give StoredDocuments "
                f"the one that the retriever searches; or, if it does, {self._advice}"
            )
            raise ConfigurationError(msg)
        self._compare(self._kinds, held, dict.fromkeys({key for kind in self._kinds for key in kind}, object()))

    def _compare(
        self, kinds: Sequence[Mapping[str, Any]], hits: Sequence[RetrievedChunk], absent: Mapping[str, Any]
    ) -> None:
        vouching = [{**absent, **hit.metadata} for hit in hits]
        for kind in kinds:
            strange = unvouched({**absent, **kind}, vouching, place=self._place)
            if strange:
                msg = (
                    f"it can not be seen what of {self._source!r} the retriever hides, and a chunk differs from what "
                    f"was retrieved in {', '.join(strange)}: {self._advice}"
                )
                raise ConfigurationError(msg)
