"""Rebuild a document from its nodes, which know the nodes before and after them, and those that they were cut from."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from llama_index.core.schema import BaseNode, IndexNode, NodeRelationship, RelatedNodeInfo

from llamaindex_selfroute.stored.naming import placed
from selfroute.documents.chunks import Chunk, offset
from selfroute.documents.ordering import UnknownOrderError
from selfroute.documents.pages import Page, page_of
from selfroute.documents.rebuild import RebuiltDocument, rebuild
from selfroute.documents.versions import one_text

_ROMAN = re.compile("(xc|xl|l?x{0,3})(ix|iv|v?i{0,3})", re.IGNORECASE)
_VALUES = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
_FRONT = 1_000  # pages before the first one that has a number
_NOTHING = Chunk("")


@dataclass(frozen=True, slots=True)
class Link:
    """The part of a node that is needed to rebuild its document.

    Attributes:
        id: The id of the node.
        text: Its text.
        start: Its offset in the document, in characters; None if that is not known.
        before: The id of the node before it; None for the first.
        after: The id of the node after it; None for the last.
        parent: The id of the node that it was cut from or leads to; None if it was cut from the document itself.
        version: The document that it was cut from, and its hash; None if that is not known.
        page: The page that it begins on; None if that is not known.
        about: What the metadata of the node say, as of every framework's chunks.
    """

    id: str
    text: str
    start: int | None
    before: str | None
    after: str | None
    parent: str | None
    version: tuple[str, str | None] | None = None
    page: Page | None = None
    about: Chunk = _NOTHING

    @classmethod
    def of(cls, node: BaseNode, parent_start: int | None = None) -> Link:
        """Return the link of a node.

        Args:
            node: The node.
            parent_start: The offset in the document of the node that it was cut from; None if that is not known.
        """
        text, parent = node.get_content(), parent_of(node)
        if parent is None and isinstance(node, IndexNode) and node.index_id != node.node_id:
            parent, parent_start = node.index_id, None  # its own offset may count from there
        elif parent is None:
            parent_start = 0
        start, end = offset(getattr(node, "start_char_idx", None)), getattr(node, "end_char_idx", None)
        changed = start is not None and end is not None and end - start != len(text)
        start = None if start is None or parent_start is None or changed else parent_start + start
        before, after = _id(node, NodeRelationship.PREVIOUS), _id(node, NodeRelationship.NEXT)
        source = node.relationships.get(NodeRelationship.SOURCE)
        version = (source.node_id, source.hash) if isinstance(source, RelatedNodeInfo) else None
        return cls(node.node_id, text, start, before, after, parent, version, page_of(placed(node)))

    def chunk(self, *, paged: bool, ordered: bool, version: Hashable | None) -> Chunk:
        """Return it as a chunk, with numbers of its own; those of several documents are of different kinds."""
        place = (self.number_of_page(ordered=ordered), *self.about.place) if paged else self.about.place
        kind = self.version and self.version[0], self.about.kind
        return Chunk(self.text, self.start, place, self.page, version, self.about.headings, kind)

    def number_of_page(self, *, ordered: bool) -> int:
        """Return the number of its page; -1 if that is not known.

        Without an order of the store, Roman numerals number the first pages of a book, and are less than -1.
        """
        roman = _ROMAN.fullmatch(self.page) if isinstance(self.page, str) and not ordered else None
        if not (roman and self.page):
            return self.page_number
        values = [_VALUES[one] for one in str(self.page).lower()]
        return sum(-one if one < after else one for one, after in zip(values, [*values[1:], 0], strict=True)) - _FRONT

    @property
    def page_number(self) -> int:
        """The number of its page; -1 if that is not known."""
        number = offset(self.page)
        return -1 if number is None else number


def _id(node: BaseNode, relationship: NodeRelationship) -> str | None:
    related = node.relationships.get(relationship)
    return related.node_id if isinstance(related, RelatedNodeInfo) else None


def put_together(
    links: Iterable[Link], found: Sequence[str] = (), *, ordered: bool = True, by_place: bool = False
) -> RebuiltDocument:
    """Rebuild a document from all of its nodes, by following the links from each node to the next.

    If a node's neighbour is not among them, text is missing there. Nodes that were cut from another one among them,
    nodes that were indexed twice, and those of other versions are dropped; but if a loader made a document of each
    page, each page has a version.

    Args:
        links: The nodes.
        found: The texts of the passages that were retrieved.
        ordered: Whether the store returns them in the order in which they were added.
        by_place: Whether only their places say where they belong.

    Raises:
        UnknownOrderError: The nodes have no order: neither the store nor their links and offsets tell it.
    """
    held = {link.id: link for link in links}
    links = [link for link in held.values() if link.parent not in held]
    if not ordered:
        links.sort(key=lambda link: link.id)
    held.clear()
    paged = _are_pages(links)
    one_document = len({link.version and link.version[0] for link in links}) == 1
    versions = [link.version if one_document and not paged else link.about.version for link in links]
    chunks = [
        link.chunk(paged=paged, ordered=ordered, version=version) for link, version in zip(links, versions, strict=True)
    ]
    version = one_text(chunks, found, ordered=ordered)
    links = [links[at] for at in version.kept]
    document = _joined(links, ordered=ordered or version.doubtful, by_place=by_place, paged=paged)
    return replace(document, texts=version.texts, doubtful=version.doubtful)


def _joined(links: list[Link], *, ordered: bool, by_place: bool, paged: bool) -> RebuiltDocument:
    if by_place or all(link.before is None and link.after is None for link in links):
        chunks = [link.chunk(paged=paged, ordered=ordered, version=None) for link in links]
        versions = {(link.page if paged else None, *link.version) for link in links if link.version}
        doubtful = len(versions) > len({(page, document) for page, document, _ in versions})
        links.clear()
        return rebuild(chunks, doubtful=doubtful or len(set(chunks)) < len(chunks), ordered=ordered)
    ways = _once(_ways(links))
    links.clear()
    # Nodes linked only to the one before were cut from other nodes. If these are not named, the offsets are relative.
    nested = any(link.after is None and link.parent is None for way in ways for link in way[:-1])
    have_starts = not nested and all(way[0].start is not None for way in ways)
    are_numbered = not paged or all(way[0].number_of_page(ordered=ordered) != -1 for way in ways)

    def stands_at(way: list[Link]) -> tuple[int, int]:
        return way[0].number_of_page(ordered=ordered) if paged else 0, (way[0].start or 0) if have_starts else 0

    if are_numbered:
        ways.sort(key=stands_at)
    if not ordered and len(ways) > 1 and not (are_numbered and len(set(map(stands_at, ways))) == len(ways)):
        msg = "they have neither offsets in the document nor links that lead through all of them"
        raise UnknownOrderError(msg, have_offsets=have_starts)
    more = ways[-1][-1].after is not None
    return rebuild(_placed(ways, nested=nested, paged=paged), doubtful=more)


def _are_pages(links: list[Link]) -> bool:
    """Return whether the nodes were cut from documents of which each is one page: a version never has two."""
    pages = {link.version: link.page for link in links}
    each = all(link.page is not None and pages[link.version] == link.page for link in links)
    return each and len(pages) > 1 and None not in pages


def _placed(ways: list[list[Link]], *, nested: bool, paged: bool) -> Iterator[Chunk]:
    last = ways[0][0]
    place = 2 * (paged and last.page_number > 1)  # a number is left out where text is missing
    for way in ways:
        place += 2 * (way[0].before is not None)
        for link in way:
            if paged and link.page != last.page:
                place += link.page_number - max(last.page_number, 0) > 1
            elif not paged:
                place += link.version != last.version
            yield Chunk(link.text, None if nested else link.start, (place,), link.page, None, link.about.headings)
            place, last = place + 1, link
        place += way[-1].after is not None
    ways.clear()


def _ways(links: list[Link]) -> list[list[Link]]:
    known = {link.id: link for link in links}
    next_to = {link.before: link for link in links}
    passed = set[str]()
    ways: list[list[Link]] = []
    for first in [
        link for link in links if link.before not in known
    ] + links:  # the latter only for links that form a ring
        way: list[Link] = []
        link: Link | None = first
        while link and link.id not in passed:
            passed.add(link.id)
            way.append(link)
            link = known.get(link.after) if link.after else next_to.get(link.id)
        if way:
            ways.append(way)
    return ways


def _once(ways: list[list[Link]]) -> list[list[Link]]:
    """Drop ways that are part of another one, because the document was indexed again, maybe only in part."""
    passes = max(sum(way[0].before is None for way in ways), sum(way[-1].after is None for way in ways))
    if passes < 2 and not any(way[0].before is None and way[-1].after is None for way in ways):  # noqa: PLR2004
        return ways  # parts of one way, with text missing between them
    read = [[(link.text, link.start, link.page) for link in way] for way in ways]
    where: dict[tuple[str, int | None, Page | None], list[tuple[int, int]]] = {}
    for number, way in enumerate(read):
        for index, one in enumerate(way):
            where.setdefault(one, []).append((number, index))

    def again(number: int) -> bool:
        way = read[number]
        rare = min(range(len(way)), key=lambda index: len(where[way[index]]))
        return any(
            (len(read[other]), -other) > (len(way), -number)
            and read[other][max(at - rare, 0) : at - rare + len(way)] == way
            for other, at in where[way[rare]]
        )

    # Nodes cut from parents form one way per parent, and two parents may have the same text.
    return [way for number, way in enumerate(ways) if way[0].parent or not again(number)]


def parent_of(node: BaseNode) -> str | None:
    """Return the id of the bigger node that a node was cut from; None if it was cut from the document itself."""
    return _id(node, NodeRelationship.PARENT)
