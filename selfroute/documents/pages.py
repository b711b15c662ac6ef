"""The pages of a document: what its chunks say of them, and on which one an offset is."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from selfroute.documents.label import label_in

Page: TypeAlias = int | str
"""A page as its loader names it: a number, which may count from 0, or what is printed on it."""
PageStart: TypeAlias = tuple[int, Page | None]
"""Where in a text a page begins, and the page; None where the text goes on with a page that nothing names."""
PAGE_KEYS = ("page", "page_number", "page_num", "page_no", "pageNumber", "page_label")
"""The keys of the metadata under which loaders name the page that a text begins on, the first of them first."""


def page_of(metadata: Mapping[str, Any]) -> Page | None:
    """Return the page that a passage's metadata names; None if they name none."""
    for key in PAGE_KEYS:
        value = metadata.get(key)
        if isinstance(value, float) and value.is_integer():  # some stores return numbers as floats
            value = int(value)
        if isinstance(value, int | str) and not isinstance(value, bool) and value != "":
            return value
    return None


def page_at(pages: Sequence[Sequence[Any]], offset: int) -> Page | None:
    """Return the page that an offset of a document is on; None if that is not known.

    Args:
        pages: Where each page begins, and the page: `metadata["selfroute"]["pages"]`.
        offset: The offset.

    Examples:
        >>> page_at([[0, "iv"], [120, 1]], 119)
        'iv'
    """
    before = bisect_right(pages, offset, key=itemgetter(0))
    found: Page | None = pages[before - 1][1] if before else None
    return found


class Position(NamedTuple):
    """Where a text that a model was given stands in its document, and what is known of its pages.

    Attributes:
        begins: Where in the document it begins, in characters.
        shift: What to add to offsets in it to cite them: sections are cited by their offsets in the document.
        pages: Where the pages of the document begin.
        page: Its page, if that is all that is known.
    """

    begins: int
    shift: int
    pages: Sequence[Sequence[Any]]
    page: Page | None

    def page_at(self, offset: int) -> Page | None:
        """Return the page that an offset in the text is on; None if that is not known."""
        return page_at(self.pages, self.begins + offset) if self.pages else self.page


def position_of(metadata: Mapping[str, Any], text: str | None = None) -> Position:
    """Return what the metadata of a passage, a section or a document say of its place."""
    label = label_in(metadata, text)
    is_section = label.get("method") == "sections"
    begins = label["start"] if is_section else label.get("read", (0,))[0]
    return Position(begins, begins if is_section else 0, label.get("pages", ()), page_of(metadata))


class Pages:
    """Notes where the pages begin as a text is written.

    Attributes:
        starts: Where they begin, ascending.
    """

    def __init__(self) -> None:
        """Start with no page."""
        self.starts: list[PageStart] = []

    def note(self, at: int, page: Page | None) -> None:
        """Note that the text from an offset on is of a page. Offsets rise, but for chunks that begin alike."""
        while self.starts and self.starts[-1][0] >= at:
            self.starts.pop()
        if page != (self.starts[-1][1] if self.starts else None):
            self.starts.append((at, page))
