"""Decide whether a retriever may see a whole document, if its filter is unknown and only its passages are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from selfroute.documents.metadata import differing_keys, without_keys
from selfroute.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class RetrievedChunk:
    """A retrieved passage.

    Attributes:
        ids: Its id, or the ids of the chunks that it was merged from; empty if it has none.
        text: Its text.
        metadata: Its metadata.
    """

    ids: frozenset[str]
    text: str
    metadata: Mapping[str, Any]


class VisibilityCheck:
    """A check that a retriever whose filter is unknown can see every chunk of a document.

    A metadata filter that lets a passage through also lets through every chunk with the same metadata. So a document
    may be read if each of its chunks has the metadata of some passage; otherwise a chunk may be hidden from the
    retriever, and the check raises.

    Call `check_chunk` with each chunk as it is read, so that reading ends at the first one that may be hidden, and
    `check_document` when all of them are known.
    """

    def __init__(  # noqa: PLR0913 - both frameworks set all of them
        self,
        source: Any,
        passages: Sequence[RetrievedChunk],
        *,
        ignored_keys: AbstractSet[str],
        advice: str,
        match_ids: bool = False,
        ignore_metadata: bool = False,
    ) -> None:
        """Prepare to check the chunks of one document.

        Args:
            source: The document's name, for error messages.
            passages: What was retrieved of the document.
            ignored_keys: Keys that only say where in the document a chunk stands; no filter hides a chunk by them.
            advice: What the user can do if a chunk may be hidden; it ends the error message.
            match_ids: Whether a passage that has an id must have it in common with a chunk to belong to the document,
                provided that the chunks have ids at all.
            ignore_metadata: Whether to check only that all passages belong to the document.
        """
        self._source, self._passages, self._ignored_keys, self._advice = source, passages, ignored_keys, advice
        self._match_ids, self._ignore_metadata = match_ids, ignore_metadata
        self._variants: list[dict[str, Any]] = []  # distinct metadata; only a few, since each is part of a passage's

    def check_chunk(self, metadata: Mapping[str, Any]) -> None:
        """Check the metadata of one chunk.

        Raises:
            ConfigurationError: No passage has all items of the chunk's metadata.
        """
        variant = without_keys(metadata, self._ignored_keys)
        if not self._ignore_metadata and variant not in self._variants:
            self._variants.append(variant)
            self._compare([variant], self._passages, {})

    def check_document(self, ids: AbstractSet[str], text: str) -> None:
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
        match_ids = self._match_ids and any(ids)
        found = [
            passage
            for passage in self._passages
            if passage.ids & ids or (not (passage.ids and match_ids) and (passage.text.strip() or "\0") in text)
        ]
        if not found or (self._ignore_metadata and len(found) < len(self._passages)):
            msg = (
                f"the store that StoredDocuments reads does not hold the passages retrieved from {self._source!r}: "
                f"pass it the store that the retriever searches; if it is the same store, {self._advice}"
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
            keys = differing_keys({**absent, **variant}, visible, ignored_keys=self._ignored_keys)
            if keys:
                msg = (
                    f"cannot verify that the retriever may see all of {self._source!r}: a chunk differs from the "
                    f"retrieved passages in {', '.join(keys)}; {self._advice}"
                )
                raise ConfigurationError(msg)
