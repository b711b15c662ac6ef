"""Decide whether a retriever may see a whole document if its filter is not known, only what it retrieved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from selfroute.documents.metadata import differing_keys, without
from selfroute.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class RetrievedChunk:
    """A retrieved passage.

    Attributes:
        ids: Its id, or the ids of the chunks that it was assembled from; empty if it has none.
        text: Its text.
        metadata: Its metadata.
    """

    ids: frozenset[str]
    text: str
    metadata: Mapping[str, Any]


class VisibilityCheck:
    """A check that a retriever, of which only some passages are known, can see every chunk of a document.

    A metadata filter that lets a passage through also lets through every chunk with the same metadata. So a document
    may be read if each of its chunks has the metadata of some passage; otherwise a chunk may be hidden from the
    retriever, and the check raises.

    Call `look` with each chunk as it is read, so that reading ends at the first one that may be hidden, and `conclude`
    when all of them are known.
    """

    def __init__(  # noqa: PLR0913 - both frameworks set all of them
        self,
        source: Any,
        passages: Sequence[RetrievedChunk],
        *,
        place: AbstractSet[str],
        advice: str,
        by_id: bool = False,
        blindly: bool = False,
    ) -> None:
        """Prepare to check the chunks of one document.

        Args:
            source: The document's name, for error messages.
            passages: What was retrieved of the document.
            place: Keys that only say where in the document a chunk stands; no filter hides a chunk by them.
            advice: What the user can do if a chunk may be hidden; it ends the error message.
            by_id: Whether passages that have ids belong to the document only if its chunks have these ids, provided
                that its chunks have ids at all.
            blindly: Whether to check only that all passages belong to the document, and to ignore their metadata.
        """
        self._source, self._passages, self._place, self._advice = source, passages, place, advice
        self._by_id, self._blindly = by_id, blindly
        self._variants: list[dict[str, Any]] = []  # distinct metadata; few, since each is part of a passage's

    def look(self, metadata: Mapping[str, Any]) -> None:
        """Check the metadata of one chunk.

        Raises:
            ConfigurationError: No passage has all that the chunk's metadata hold.
        """
        variant = without(metadata, self._place)
        if not self._blindly and variant not in self._variants:
            self._variants.append(variant)
            self._compare([variant], self._passages, {})

    def conclude(self, ids: AbstractSet[str], text: str) -> None:
        """Check again, now that all chunks are known.

        This is stricter in two ways. A chunk must not lack a key that a passage has, unless no chunk has that key: then
        something else, such as a reranker, added it to the passage. And passages that are not from this document, since
        the retriever searches another store, are ignored.

        Args:
            ids: The ids of the chunks, and of the nodes that they were cut from.
            text: The text of the document.

        Raises:
            ConfigurationError: A chunk may be hidden from the retriever, or the passages are not from this store.
        """
        by_id = self._by_id and any(ids)
        found = [
            passage
            for passage in self._passages
            if passage.ids & ids or (not (passage.ids and by_id) and (passage.text.strip() or "\0") in text)
        ]
        if not found or (self._blindly and len(found) < len(self._passages)):
            msg = (
                f"the store that StoredDocuments reads does not hold what was retrieved of {self._source!r}: give "
                f"StoredDocuments the store that the retriever searches; if it is the same store, {self._advice}"
            )
            raise ConfigurationError(msg)
        keys = {key for variant in self._variants for key in variant}
        self._compare(self._variants, found, dict.fromkeys(keys, object()))

    def _compare(
        self, variants: Sequence[Mapping[str, Any]], passages: Sequence[RetrievedChunk], absent: Mapping[str, Any]
    ) -> None:
        """Raise if no passage has all of a variant; `absent` fills in keys that are missing on either side."""
        visible = [{**absent, **passage.metadata} for passage in passages]
        for variant in variants:
            keys = differing_keys({**absent, **variant}, visible, place=self._place)
            if keys:
                msg = (
                    f"cannot tell what the retriever hides of {self._source!r}: a chunk differs from the "
                    f"retrieved passages in {', '.join(keys)}: {self._advice}"
                )
                raise ConfigurationError(msg)
