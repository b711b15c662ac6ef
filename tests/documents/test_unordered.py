"""Stores that list chunks in no order: the text is that of an ordered store, or it is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_text_splitters import RecursiveCharacterTextSplitter

from lanes import examples
from llamaindex_selfroute.stored.nodes import Link, put_together
from selfroute.documents import RebuiltDocument, chunks_of, rebuild
from selfroute.documents.access import Access, RetrievedChunk, StoredChunk
from selfroute.documents.stored import StoredReader
from selfroute.errors import ConfigurationError

TEXTS = ("The crane was old.", "Tea was served.", "Nobody came.", "It rained.")


WORDS = list("abcdefghijkl")


@given(st.integers(0, 10**6), st.sampled_from([(200, 40), (300, 0), (120, 30)]), st.randoms())
@examples(100)
def test_rebuild_is_the_same_in_any_order(seed: int, size: tuple[int, int], random: Random) -> None:
    words = Random(seed)  # noqa: S311
    text = "\n\n".join(
        f"{number}. {' '.join(words.choices(WORDS, k=words.choice([2, 20, 40])))}." for number in range(30)
    )
    splitter = RecursiveCharacterTextSplitter(chunk_size=size[0], chunk_overlap=size[1], add_start_index=True)
    rows = [(chunk.page_content, chunk.metadata) for chunk in splitter.create_documents([text])]
    chunks = list(chunks_of(rows, start_key="start_index"))
    twice = rebuild(chunks * 2)
    for held, listed in ((chunks, rebuild(chunks)), (chunks * 2, twice)):
        mixed = random.sample(held, len(held))
        assert rebuild(mixed, ordered=False) == listed
    assert re.sub(r"\s", "", twice.text) == re.sub(r"\s", "", text)


def _links(ids: Sequence[str | None], *, starts: bool) -> list[Link]:
    """Nodes that are linked to their neighbours; None stands for one that is missing."""
    links = []
    for number, id_ in enumerate(ids):
        if id_ is not None:
            before, after = f"{number - 1}" if number else None, f"{number + 1}" if number < len(ids) - 1 else None
            links.append(Link(f"{number}", TEXTS[number], 20 * number if starts else None, before, after, None))
    return links


LINKED: dict[str, tuple[list[Link], bool]] = {
    "one way": (_links("abcd", starts=False), True),
    "one way with offsets": (_links("abcd", starts=True), True),
    "two ways with offsets": (_links(["a", None, "c", "d"], starts=True), True),
    "two ways": (_links(["a", None, "c", "d"], starts=False), False),
    "offsets, no links": ([Link(text, text, 20 * n, None, None, None) for n, text in enumerate(TEXTS)], True),
    "neither": ([Link(text, text, None, None, None, None) for text in TEXTS], False),
    "one node": ([Link("a", TEXTS[0], None, None, None, None)], True),
    "two groups, cut from other nodes": (
        [Link("a", "xy", 0, "x", None, None), Link("b", "ab", 3, "a", None, None), Link("c", "cd", 6, "y", None, None)],
        False,
    ),
}


@pytest.mark.parametrize(("links", "known"), LINKED.values(), ids=LINKED)
def test_put_together_by_links_or_offsets(links: list[Link], known: bool) -> None:
    listed = put_together(links)
    for mixed in permutations(links):
        if known:
            assert put_together(mixed, ordered=False) == listed
        else:
            with pytest.raises(ConfigurationError):
                put_together(mixed, ordered=False)


class Shelf(StoredReader[str, str]):
    """A store of a few chunks, which lists them in no order."""

    order_advice = "number the chunks"

    def __init__(self, *rows: tuple[str, dict[str, Any]], ordered: bool) -> None:
        super().__init__()
        self._rows, self._is_ordered = rows, ordered

    @property
    def _ordered(self) -> bool:
        return self._is_ordered

    def _access(self, scope: Any) -> Access:
        return Access(None, (), cached=False, verified=False, declared=True)

    def _source_of(self, passage: str) -> str:
        return "minutes.txt"

    def _retrieved(self, passage: str) -> RetrievedChunk:
        return RetrievedChunk(passage, {}, None)

    def _chunks(self, source: Any, limits: Any) -> Iterator[StoredChunk]:
        return (StoredChunk(str(number), text, metadata) for number, (text, metadata) in enumerate(self._rows))

    def _document(self, source: Any, rebuilt: RebuiltDocument, fields: Mapping[str, Any]) -> str:
        return rebuilt.text

    def _text_of(self, document: str) -> str:
        return document


def test_reader_names_the_document_without_order() -> None:
    rows = [(text, {}) for text in TEXTS]
    with pytest.raises(ConfigurationError, match=r"'minutes\.txt' cannot be put in order.*: number the chunks"):
        Shelf(*rows, ordered=False)(["It rained."])
    assert Shelf(*rows, ordered=True)(["It rained."]) == ["\n".join(TEXTS)]
    numbered = [(text, {"chunk": number}) for number, text in enumerate(TEXTS)]
    assert Shelf(*numbered[::-1], ordered=False)(["It rained."]) == ["\n".join(TEXTS)]
    for page in ("iv", "v"), (None, None):
        rows = [(text, {"start_index": 0, "page": name}) for text, name in zip(TEXTS, page, strict=False)]
        with pytest.raises(ConfigurationError, match=r"index the document again: number its pages and chunks$"):
            Shelf(*rows, ordered=False)(["It rained."])
