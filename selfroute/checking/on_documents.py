"""Judge the documents of a question that was tried: their names, who may read them, and how they were assembled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from selfroute.checking.findings import Remark
from selfroute.checking.trial import TriedQuestion
from selfroute.checking.words import keys_of, likely_key, message_of, plural, quoted, split_advice
from selfroute.documents.chunks import offset
from selfroute.documents.label import label_in
from selfroute.documents.pages import page_of
from selfroute.documents.stored import BaseStoredDocuments
from selfroute.documents.view import View
from selfroute.errors import ConfigurationError

Document = TypeVar("Document")
_SHOWN = 3  # names of documents
_FILES = ("file_path", "file_name", "source", "filename")
_SMALL = "if your documents are longer than a passage, the passages name something smaller than a document"
_REPEATS = (
    "delete the copies from the store, or index each file only once: each copy takes the place of another passage"
)
_PAGES = "they are pages of one file: pass source_key={key!r}, which names the file"
_VERSIONS = (
    "if they are versions of a file, or files of one name, delete the old one, or name them apart; if they are parts "
    "of one text, number its chunks through, in metadata['chunk_index']"
)
_OFFSETS = "index it again with offsets (add_start_index=True in LangChain's splitters), to have it joined exactly"


class OnDocuments(TriedQuestion[Document]):
    """Looks at the documents."""

    def look_at_sources(self) -> Remark:
        """Return whether the passages name their documents."""
        if error := self.errors.get("retrieve"):
            return (
                False,
                f"the retriever failed: {message_of(error)}",
                "call the retriever by itself until it finds passages",
            )
        if not self.found:
            advice = (
                "check whether the index is empty, a filter hides everything, or a docstore in memory has forgotten "
                "the originals of a multi-vector retriever; or pass check() another question"
            )
            return False, f"the retriever found no passage for {quoted(self.host.question)}", advice
        found, most = f"{plural(len(self.found), 'passage')} found", self.plan.draft_passages
        if most is not None and most < len(self.found):
            found += f" (the draft reads {most})"
        if self.stored is not None:
            return self._look_at_names(self.stored, found)
        if self.source is None:
            return None, f"{found}, but the documents were refused", ""
        return True, f"{found}; they need no names, because documents= is {self._own}", ""

    @property
    def _own(self) -> str:
        return "a list" if isinstance(self.source, list | tuple) else "your own code"

    def _look_at_names(self, stored: BaseStoredDocuments[Document, Any], found: str) -> Remark:
        names = list(map(stored.reader.store.name, self.found))
        known = [name for name in names if name is not None]
        key = stored.source_key
        by = f" as metadata[{key!r}]" if key else ""
        repeats = len(self.found) - len(set(map(self.host.retrieved_text, self.found)))
        if repeats:
            found += f", {repeats} of them word for word as another one"
        if len(known) == len(names):
            by = by or self._by_file(known)
            named = f"{found}, of {plural(len(set(known)), 'document')}; each names its document{by}"
            pages = self._pages(known)
            advice = _PAGES.format(key=pages) if pages else _REPEATS if repeats else ""
            return not pages, f"{named}, but several are pages of one file" if pages else named, advice
        others = [self.host.place_of(one).metadata for one, name in zip(self.found, names, strict=True) if name is None]
        if not known and (error := self.errors.get("read")):
            likely = likely_key(others) if key else None
            return False, message_of(error), f"source_key={likely!r} is the likeliest" if likely else ""
        if not known:
            return True, f"{found}; each counts as a document", ""
        advice = "index the others with this key, too; until then each of them counts as a separate document"
        with_key = f"{found}, but only {len(known)} of them {'names' if len(known) == 1 else 'name'} a document{by}"
        return False, f"{with_key}; the keys of the others are {keys_of(others)}", advice

    @staticmethod
    def _by_file(names: Sequence[Any]) -> str:
        """Return how passages name their documents that a framework finds by a key, as it does those of pages."""
        keys = dict.fromkeys(filter(None, [getattr(name, "key", None) for name in names]))
        return f" as {' or '.join(f'metadata[{key!r}]' for key in keys)}" if keys else ""

    def _pages(self, names: Sequence[Any]) -> str | None:
        """Return the key by which documents that are pages would be one; None if they are no pages."""
        about = [self.host.place_of(one).metadata for one in self.found]
        if any(page_of(one) is None for one in about):
            return None
        for key in _FILES:
            files = {one[key]: set[Any]() for one in about if isinstance(one.get(key), str)}
            for name, one in zip(names, about, strict=True):
                if one.get(key) in files:
                    files[one[key]].add(name)
            if any(len(of) > 1 for of in files.values()):
                return key
        return None

    def look_at_wall(self) -> Remark:
        """Return whether the last step may read what the retriever may find."""
        if error := self.errors.get("source"):
            return False, message_of(error), ""
        if not self.found:
            return None, "not tried, because no passage was found", ""
        if self.stored is not None and not self.stored.reader.is_overridden:
            return self._look_at_view(self.stored.view, self.stored.reader.store.advice)
        return None, f"not tried: documents= is {self._own}, which must leave out what a user may not see", ""

    def _look_at_view(self, view: View, advice: str) -> Remark:
        if refusal := self._refusal:
            return False, *refusal
        limits = view.limits
        if limits.compared and "read" in self.errors:
            return None, "not tried, because the document could not be read", ""
        if view.limits_from_passages:
            found = "we cannot see what the retriever hides, but all chunks of this document match its passages"
            return True, found, f"if the chunks of a document do not match, the question is refused: {advice}"
        limited = "only chunks that the filter admits are read"
        return True, limited if limits else "no filter hides any chunk", ""

    @property
    def _refusal(self) -> tuple[str, str] | None:
        """The message and the advice of the error by which a document may not be read; None if it may be."""
        error = self.errors.get("read")
        if self.stored is None or not isinstance(error, ConfigurationError):
            return None
        message, advice = split_advice(message_of(error), self.stored.reader.store.advice)
        return (message, advice) if advice else None

    def look_at_document(self) -> Remark:  # noqa: PLR0911 - one for each finding
        """Return which documents a question would read, and how they were assembled."""
        if reason := self._why_untried:
            return None, f"not tried, because {reason}", ""
        if error := self.errors.get("read"):
            return False, f"it could not be read: {message_of(error)}", ""
        if not any(text and not text.isspace() for text in map(self.host.text_of, self.read)):
            return False, "documents= returned no text, so the last step would have nothing to read", ""
        if self.stored is None:
            return True, f"{plural(len(self.read), 'document')} with {self._size_of(self.read)}", ""
        for document in self.read:
            label = self._label_of(document)
            if (texts := getattr(label, "texts", 1)) > 1:
                return self._tell_texts(document, texts, doubtful=bool(label.get("doubtful")))
            if gaps := label.get("gaps"):
                return self._tell_gaps(document, gaps)
        how, advice = self._assembled
        return True, f"{self._what_is_read}{' is' if len(self.read) == 1 else '; they are'} {how}", advice

    def _size_of(self, documents: Sequence[Document]) -> str:
        return (
            f"{plural(self.reading.length(documents), 'character')}, about {plural(self.tokens_of(documents), 'token')}"
        )

    def _label_of(self, document: Document) -> Mapping[str, Any]:
        return label_in(self.host.place_of(document).metadata, self.host.text_of(document))

    def _quoted_name(self, document: Document) -> str:
        name = self.host.source_of(document)
        known = self.stored is not None and name is not None and name in map(self.stored.reader.store.name, self.found)
        return quoted(name) if known else "a passage"

    @property
    def _what_is_read(self) -> str:
        """The documents that a question would read, with their size together."""
        if len(self.read) == 1:
            return f"{self._quoted_name(self.read[0])} ({self._size_of(self.read)})"
        read, reads = self.behind, "all of them"
        if self.plan.max_documents == 0:
            read, reads = self.read, "only sections of them" if self.plan.sections else "none of them"
        elif len(read) < len(self.read) and self.plan.max_documents is None:
            reads = "those behind the draft's passages"
        elif len(read) < len(self.read):
            reads = f"the best {len(read)}" if len(read) > 1 else "the best one"
        names = [*map(self._quoted_name, read[:_SHOWN]), *(["others"] if read[_SHOWN:] else [])]
        stand = f"{plural(len(self.read), 'document')} stand behind the passages; a question reads {reads}"
        return f"{stand}: {' and '.join(names)} ({self._size_of(read)})"

    def _tell_texts(self, document: Document, texts: int, *, doubtful: bool) -> Remark:
        what = f"{texts} texts stand in the store as {self._quoted_name(document)}"
        if doubtful:
            return False, f"{what}, which cannot be told apart: what is read may be joined of both", _VERSIONS
        return False, f"{what}, such as two versions: what is read is the one of the passages", _VERSIONS

    def _tell_gaps(self, document: Document, gaps: Sequence[Any]) -> Remark:
        lengths = [end - start for start, end in gaps]
        missing = f"{sum(lengths):,} characters" if all(lengths) else "of unknown length"
        advice = "index it again: the store lacks some of its chunks, unless a page holds no text"
        what = f"{self._quoted_name(document)} ({self._size_of([document])})"
        return False, f"{what} has {plural(len(gaps), 'gap')} that no chunk fills, {missing}", advice

    @property
    def _assembled(self) -> tuple[str, str]:
        """How the documents were assembled, and what to do about it."""
        labels = [self._label_of(document) for document in self.read]
        methods = {label.get("method") for label in labels}
        if methods == {"original"}:
            return "from the document store", ""
        if all(map(self._is_passage, self.read)):
            return "a single chunk, the passage itself" if len(labels) == 1 else "each a single chunk", _SMALL
        chunks = plural(sum(label.get("chunks", 0) for label in labels), "chunk")
        exact = methods <= {"original", "offsets"}
        with_offsets = all(offset(self.host.place_of(one).start) is not None for one in self.found)
        headings = (
            ", below the headings in their metadata" if any(getattr(one, "headings", ()) for one in labels) else ""
        )
        return (
            f"joined from {chunks} by their {'offsets' if exact else 'order'}{headings}, without gaps",
            "" if exact or with_offsets else _OFFSETS,
        )

    def _is_passage(self, document: Document) -> bool:
        alone = self._label_of(document).get("chunks", 0) == 1
        return alone and self.reading.length([document]) <= max(map(len, map(self.host.text_of, self.found)))

    @property
    def _why_untried(self) -> str | None:
        """Why no document was assembled, if another finding gives the reason."""
        if self._refusal or "source" in self.errors:
            return "it may not be read"
        if not self.found and not self.read:
            return "no passage was found"
        if (
            self.stored is not None
            and self.errors
            and all(self.stored.reader.store.name(one) is None for one in self.found)
        ):
            return "no passage names a document"
        return None
