"""How a document was assembled, as `metadata["selfroute"]` says; it counts only on what this process made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

KEY = "selfroute"
"""The key of the metadata that holds a label."""


class Label(dict[str, Any]):
    """A label that this process wrote.

    Whoever can add a chunk to a store can write a dict under the same key, so a plain dict says nothing. A copy is a
    plain dict, too, and a label is of one text: a splitter hands the metadata of a document on to its chunks, where the
    offsets would be wrong.

    Attributes:
        length: The length of the text that it is of, in characters.
        texts: How many texts the store holds under the name of the document, of which it is one.
        headings: Where in the text the headings change that a splitter had moved into metadata, and those from there.
    """

    __slots__ = ("headings", "length", "texts")

    def __init__(
        self, label: Mapping[str, Any], *, length: int, texts: int = 1, headings: Sequence[tuple[int, Any]] = ()
    ) -> None:
        """Make a label of a text of some length."""
        super().__init__(label)
        self.length, self.texts, self.headings = length, texts, headings

    def __reduce_ex__(self, _: Any) -> Any:
        """Copy and pickle it as a plain dict."""
        return dict, (dict(self),)


def label_in(metadata: Mapping[str, Any], text: str | None = None) -> Mapping[str, Any]:
    """Return the label in the metadata of a document; empty without one, or if another process wrote it.

    Args:
        metadata: The metadata.
        text: The document's text; None if it is not known. A label of another text does not count.
    """
    label = metadata.get(KEY)
    return label if isinstance(label, Label) and (text is None or len(text) == label.length) else {}


def original_label(text: str) -> Label:
    """Return the label of a document that was available as a whole."""
    return Label({"method": "original", "chunks": 0, "gaps": [], "trimmed": False}, length=len(text))


def labelled_with(known: Mapping[str, Any], label: Mapping[str, Any], text: str) -> Label:
    """Return the label of a document, or of a part of it.

    Args:
        known: Its label so far.
        label: What to add. If that has a method of its own, only the pages of the document are kept, and any doubt.
        text: Its text.
    """
    if "method" in label:
        pages = {key: known[key] for key in ("pages", "doubtful") if key in known}
        return Label({**label, **pages}, length=len(text))
    texts, headings = getattr(known, "texts", 1), getattr(known, "headings", ())
    label = {**original_label(text), **known, **label}
    return Label(label, length=len(text), texts=texts, headings=headings)
