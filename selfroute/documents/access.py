"""Check that a retriever may see what is read; compare its filters, and know parts by their classes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, TypeVar

from selfroute.documents.chunks import differing_keys, is_same_value, without_keys
from selfroute.documents.label import KEY
from selfroute.errors import ConfigurationError

Document = TypeVar("Document")
Passage = TypeVar("Passage")
_logger = logging.getLogger("selfroute")


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


def visible(  # noqa: PLR0913 - what a framework knows of its documents
    documents: Sequence[Document],
    passages: Sequence[Passage],
    meets: Callable[[Any, Mapping[str, Any]], bool],
    *,
    source_of: Callable[[Any], Any],
    metadata_of: Callable[[Any], Mapping[str, Any]],
    source_key: str | None = None,
) -> Sequence[Document]:
    """Return the documents that a retriever's filter lets through, of those that a callable of the user's returned.

    What a document does not say of itself is as in its passages; one that says nothing, where nothing was found, cannot
    be judged, and is read. The test of the filter is tried on the passages first, which have met the filter: one that
    does not let them through is not what the store applies.

    Args:
        documents: What the callable returned.
        passages: The passages that it was given.
        meets: Whether a document or passage with these metadata meets the filter.
        source_of: Returns the name of a document, or of a passage's document.
        metadata_of: Returns the metadata of a document or a passage.
        source_key: The key among them that names a document, if there is one.
    """

    def is_visible(document: Any) -> bool:
        own = (passage for passage in passages if source_of(passage) == source_of(document))
        passage = next(own, passages[0] if passages else None)
        known = {**({} if passage is None else metadata_of(passage)), **metadata_of(document)}
        if known.keys() <= {KEY, source_key}:
            return True
        with suppress(Exception):  # a filter that is a callable may raise
            return meets(document, known)
        return False

    if not all(map(is_visible, passages)):
        return documents
    found = [document for document in documents if is_visible(document)]
    if len(found) < len(documents):
        _logger.warning(
            "the retriever's filter hides %d of the documents that documents= returned: they are not read",
            len(documents) - len(found),
        )
    return found


def name_of(kind: Any) -> str:
    """Return the full name of a class or a function."""
    return f"{getattr(kind, '__module__', '')}.{getattr(kind, '__qualname__', '')}"


def is_one_of(part: Any, names: AbstractSet[str]) -> bool:
    """Return whether the class of a part has one of these full names; a subclass has another one."""
    return name_of(type(part)) in names


def names_in(package: str, classes: Mapping[str, str]) -> frozenset[str]:
    """Return the full names of classes, which are listed by the modules of a package, with spaces between them."""
    return frozenset(f"{package}.{module}.{name}" for module, names in classes.items() for name in names.split())


def is_same(one: Any, other: Any) -> bool:
    """Return whether two filters are surely the same; some kinds make another filter out of `==`."""
    if one is other:
        return True
    with suppress(Exception):
        return type(one) is type(other) and (one == other) is True
    return False


def frozen(value: Any) -> Any:
    """Return a copy of a filter, which later changes of the filter do not reach.

    It is the filter itself if that cannot be copied or compared with its copy, such as a callable.
    """
    if callable(value) or getattr(type(value), "__eq__", None) is object.__eq__:
        return value
    with suppress(Exception):
        copied = deepcopy(value)
        if is_same(copied, value):
            return copied
    return value


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


def has_words(text: str) -> bool:
    """Return whether a text has a letter or a digit."""
    return any(map(str.isalnum, text))


class VisibilityCheck:
    """A check that a retriever whose filter is unknown can see every chunk of a document.

    A metadata filter that lets a passage through also lets through every chunk with the same metadata. So a document
    may be read if each of its chunks has the metadata of some passage; otherwise a chunk may be hidden from the
    retriever, and the check raises. A passage without a letter or a digit is evidence of nothing: it does not count.

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
        self._source, self._ignored_keys, self._advice = source, ignored_keys, advice
        self._passages = [passage for passage in passages if has_words(passage.text)]
        self._match_ids, self._ignore_metadata = match_ids, ignore_metadata
        self._variants: list[dict[str, Any]] = []  # distinct metadata; only a few, since each is part of a passage's

    def check_chunk(self, metadata: Mapping[str, Any]) -> None:
        """Check the metadata of one chunk.

        Raises:
            ConfigurationError: No passage has all items of the chunk's metadata.
        """
        variant = without_keys(metadata, self._ignored_keys)
        if not self._ignore_metadata and not any(is_same_value(variant, known) for known in self._variants):
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
            if passage.ids & ids or (not (passage.ids and match_ids) and passage.text.strip() in text)
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
        visible = [{**absent, **passage.metadata} for passage in passages] or [{}]
        for variant in variants:
            keys = differing_keys({**absent, **variant}, visible, ignored_keys=self._ignored_keys)
            if keys:
                msg = (
                    f"cannot verify that the retriever may see all of {self._source!r}: a chunk differs from the "
                    f"retrieved passages in {', '.join(keys)}; {self._advice}"
                )
                raise ConfigurationError(msg)
