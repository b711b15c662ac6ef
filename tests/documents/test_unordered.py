"""Stores that list chunks in no order: the text is that of an ordered store, or it is refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import permutations
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_text_splitters import RecursiveCharacterTextSplitter

from lanes import examples
from llamaindex_selfroute.stored.links import Link, put_together
from selfroute.documents import rebuild
from selfroute.documents.chunks import chunks_of
from selfroute.documents.ordering import UnknownOrderError
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


NAMES = [
    "page",
    "page_number",
    "page_num",
    "page_no",
    "pageNumber",
    "slide",
    "sheet",
    "section",
    "paragraph",
    "block",
    "row",
    "line",
    "seq_num",
    "seq",
    "sequence",
    "order",
    "index",
    "position",
    "part",
    "part_number",
    "number",
    "chunk",
    "chunk_index",
    "chunkIndex",
    "chunk_idx",
    "chunk_number",
    "chunk_num",
    "chunk_no",
    "chunk_id",
    "split_id",
    "start",
    "start_char",
    "start_char_idx",
    "char_start",
    "start_offset",
    "offset",
    "split_idx_start",
]
LINES = [f"Part {number} of the notes says nothing of week {number}." for number in range(12)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("step", [1, 53], ids=["counted", "in characters"])
@pytest.mark.parametrize("kind", [int, float, str])
def test_usual_names_of_numbers_put_chunks_in_order(name: str, step: int, kind: Any) -> None:
    rows = [(text, {"source": "notes", name: kind(step * number)}) for number, text in enumerate(LINES)]
    found = rebuild(chunks_of(reversed(rows), start_key="start_index"), ordered=False)
    assert found.text.splitlines() == LINES
    assert found.gaps == ()


@pytest.mark.parametrize(
    "values",
    [
        [7] * 12,
        [hash_of * 7_919_000_003 % 10**12 for hash_of in range(1, 13)],
        [f"{n:x}f" for n in range(12)],
        [None] * 12,
    ],
    ids=["constant", "hashes", "hex", "none"],
)
def test_what_is_no_order_puts_nothing_in_order(values: list[Any]) -> None:
    rows = [(text, {"chunk_id": value}) for text, value in zip(LINES, values, strict=True)]
    with pytest.raises(UnknownOrderError):
        rebuild(chunks_of(rows, start_key="start_index"), ordered=False)
    assert rebuild(chunks_of(rows, start_key="start_index")).text.splitlines() == LINES


def test_a_page_comes_before_a_position() -> None:
    rows = [(text, {"position": 100 - number, "page_num": number // 4}) for number, text in enumerate(LINES)]
    found = rebuild(chunks_of(rows, start_key="start_index"), ordered=False).text.splitlines()
    assert found == [*LINES[3::-1], *LINES[7:3:-1], *LINES[11:7:-1]]
