"""Nodes -> chunks that know their place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from llama_index.core.schema import BaseNode, NodeRelationship, RelatedNodeInfo

from selfroute.documents import Chunk, Whole, offset, rebuild


@dataclass(frozen=True, slots=True)
class Link:
    """What is kept of a node to put its document together.

    Attributes:
        id: Its id.
        text: Its text.
        start: Where it begins in the document, in characters; None if that is not known.
        before: The id of the node before it; None for the first.
        after: The id of the node after it; None for the last.
        parent: The id of the node that it was cut from; None if it was cut from the document itself.
    """

    id: str
    text: str
    start: int | None
    before: str | None
    after: str | None
    parent: str | None

    @classmethod
    def of(cls, node: BaseNode) -> Link:
        """Look at a node."""
        text, parent = node.get_content(), _id(node, NodeRelationship.PARENT)
        start, end = offset(getattr(node, "start_char_idx", None)), getattr(node, "end_char_idx", None)
        if start is not None and (parent or (end is not None and end - start != len(text))):
            start = None  # it counts from its parent, or its text was changed afterwards
        before, after = _id(node, NodeRelationship.PREVIOUS), _id(node, NodeRelationship.NEXT)
        return cls(node.node_id, text, start, before, after, parent)


def _id(node: BaseNode, relationship: NodeRelationship) -> str | None:
    related = node.relationships.get(relationship)
    return related.node_id if isinstance(related, RelatedNodeInfo) else None


def put_together(links: Iterable[Link]) -> Whole:
    """Put a document together from all of its nodes, placed along the way from each node to the next.

    Where a neighbour is not among them, something is missing. Nodes that were cut from another one among them add
    nothing, nor does what was indexed twice.
    """
    held = {link.id: link for link in links}
    links = [link for link in held.values() if link.parent not in held]
    if all(link.before is None and link.after is None for link in links):
        return rebuild(Chunk(link.text, link.start) for link in links)
    ways = _once(_ways(links))
    more = ways[-1][-1].after is not None
    held.clear()
    links.clear()
    whole = rebuild(_placed(ways))
    end = (len(whole.text), len(whole.text))
    return replace(whole, gaps=(*whole.gaps, end)) if more and end not in whole.gaps else whole


def _placed(ways: list[list[Link]]) -> Iterator[Chunk]:
    place = 0
    for way in ways:
        place += 2 * (way[0].before is not None)  # a number is left out where a neighbour is missing
        for link in way:
            yield Chunk(link.text, link.start, (place,))
            place += 1
        place += way[-1].after is not None
    ways.clear()


def _ways(links: list[Link]) -> list[list[Link]]:
    known = {link.id: link for link in links}
    passed = set[str]()
    ways = []
    for first in [link for link in links if link.before not in known] + links:  # the latter only if they go in a ring
        way, link = [], first
        while link.id not in passed:
            passed.add(link.id)
            way.append(link)
            link = known.get(link.after or "", link)
        if way:
            ways.append(way)
    return ways


def _once(ways: list[list[Link]]) -> list[list[Link]]:
    """Leave out ways that are part of another one: what was indexed once more, maybe by half."""
    if len(ways) < 2:  # noqa: PLR2004
        return ways
    read = [[(link.text, link.start) for link in way] for way in ways]
    where: dict[tuple[str, int | None], list[tuple[int, int]]] = {}
    for number, way in enumerate(read):
        for index, one in enumerate(way):
            where.setdefault(one, []).append((number, index))

    def again(number: int) -> bool:
        way = read[number]
        return any(
            (len(read[other]), -other) > (len(way), -number) and read[other][index : index + len(way)] == way
            for other, index in where[way[0]]
        )

    # What is cut from parents comes in several ways, of which two may well be the same.
    return [way for number, way in enumerate(ways) if way[0].parent or not again(number)]
