"""A gap is a stretch of text that no chunk holds; white space that a splitter stripped does not count."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_text_splitters import CharacterTextSplitter, RecursiveCharacterTextSplitter, TextSplitter

from lanes import examples
from llamaindex_selfroute.stored.nodes import Link, put_together
from selfroute.documents import Chunk, RebuiltDocument, chunks_of, rebuild

WORDS = list("abcdefghijklmnop")
BLANKS: dict[str, Callable[[Random], str]] = {
    "none but line breaks": lambda _: "\n\n",
    "indents": lambda random: "\n\n" + " " * random.randint(3, 14),
    "pages": lambda random: "\n" * random.randint(2, 17),
    "padded tables": lambda random: " " * random.choice([60, 90, 137]) + "\xa0\n\n",
    "empty rows of padded tables": lambda random: (" " * 137 + "\xa0\n\n") * random.randint(1, 2),
}
SPLITTERS: dict[str, TextSplitter] = {
    "1,200 with 200 of overlap": RecursiveCharacterTextSplitter(
        chunk_size=1200, chunk_overlap=200, add_start_index=True
    ),
    "1,000 without": RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=0, add_start_index=True),
    "500 with 50": RecursiveCharacterTextSplitter(chunk_size=500, chunk_overlap=50, add_start_index=True),
    "paragraphs": CharacterTextSplitter(chunk_size=1000, chunk_overlap=100, keep_separator=True, add_start_index=True),
}


def _filing(seed: int, blank: Callable[[Random], str]) -> str:
    """A text of numbered sentences, so that none comes twice, with white space of many lengths."""
    random = Random(seed)  # noqa: S311
    parts = []
    for number in range(90):
        words = " ".join(random.choices(WORDS, k=random.choice([3, 30, 60, 90])))
        parts += [f"Item {number + 1000}. {words}.", blank(random) if random.random() < 0.4 else "\n\n"]
    return "".join(parts).strip()


def _chunks(splitter: TextSplitter, text: str) -> list[Chunk]:
    rows = ((chunk.page_content, chunk.metadata) for chunk in splitter.create_documents([text]))
    return list(chunks_of(rows, start_key="start_index"))


@pytest.mark.parametrize("splitter", SPLITTERS.values(), ids=SPLITTERS)
@pytest.mark.parametrize("blank", BLANKS.values(), ids=BLANKS)
def test_stripped_white_space_is_no_gap(splitter: TextSplitter, blank: Callable[[Random], str]) -> None:
    text = _filing(1, blank)
    whole = rebuild(_chunks(splitter, text))
    assert (whole.method, whole.gaps) == ("offsets", ())
    assert whole.text.split() == text.split()


@pytest.mark.parametrize("splitter", SPLITTERS.values(), ids=SPLITTERS)
@pytest.mark.parametrize("blank", BLANKS.values(), ids=BLANKS)
def test_a_chunk_that_is_missing_is_a_gap_unless_it_is_as_short_as_white_space(
    splitter: TextSplitter, blank: Callable[[Random], str]
) -> None:
    chunks = _chunks(splitter, _filing(2, blank))
    longest = max(len(run) for chunk in chunks for run in re.findall(r"\s+", chunk.text))
    told = []
    for index in range(1, len(chunks) - 1):
        left, right = chunks[index - 1], chunks[index + 1]
        assert left.start is not None
        assert right.start is not None
        stretch = (left.start + len(left.text), right.start)
        if stretch[1] - stretch[0] > 2 * longest + 16:
            told.append(stretch in rebuild(chunks[:index] + chunks[index + 1 :]).gaps)
    assert len(told) > 5
    assert all(told)


def test_without_long_white_space_in_the_text_a_lost_heading_is_a_gap() -> None:
    text = _filing(3, BLANKS["none but line breaks"])
    chunks = _chunks(SPLITTERS["1,000 without"], text)
    heading = Chunk("Part II. Other information", (chunks[-1].start or 0) + len(chunks[-1].text) + 2)
    after = Chunk(chunks[0].text, (heading.start or 0) + len(heading.text) + 2)
    assert not rebuild([*chunks, heading, after]).gaps
    assert rebuild([*chunks, after]).gaps == (((heading.start or 0) - 2, after.start),)


UNSTRIPPED = {"before": " Tea was served.", "after": "Tea was served. ", "line break": "Tea was served.\n"}


@pytest.mark.parametrize("text", UNSTRIPPED.values(), ids=UNSTRIPPED)
def test_a_splitter_that_keeps_white_space_strips_none(text: str) -> None:
    chunks = [Chunk("The crane          was old.", 0), Chunk("Nobody came.", 35), Chunk(text, 47)]
    assert rebuild(chunks).gaps == ((27, 35),)
    assert not rebuild([*chunks[:2], Chunk(text.strip(), 47)]).gaps


PARTS = ["The crane was old.", "Tea was served.", "Nobody came."]


def test_between_chunks_with_consecutive_numbers_nothing_is_missing() -> None:
    starts = (0, 2_000, 9_000)
    numbered = [Chunk(text, start, (number,)) for number, (text, start) in enumerate(zip(PARTS, starts, strict=True))]
    assert rebuild(numbered) == RebuiltDocument("\n\n".join(PARTS), "offsets", 3)
    assert rebuild([numbered[0], numbered[2]]).gaps == ((18, 9_000),)
    paged = [Chunk(chunk.text, chunk.start, (chunk.place[0] // 2,)) for chunk in numbered]
    assert rebuild(paged).gaps == ((18, 2_000), (2_015, 9_000))  # a page may hold more chunks


def test_between_linked_nodes_nothing_is_missing() -> None:
    ids = [None, *"abc", None]
    links = [Link(str(ids[n + 1]), text, 900 * n, ids[n], ids[n + 2], None) for n, text in enumerate(PARTS)]
    assert put_together(links) == RebuiltDocument("\n\n".join(PARTS), "offsets", 3)
    assert put_together([links[0], links[2]]).gaps == ((18, 1_800),)


PAGE = "Signed on page 14 of the annual report by Ms Okafor, who chaired the meeting of the harbour board"
REPEATED: dict[str, tuple[list[Chunk], str, tuple[tuple[int, int], ...]]] = {
    "a page number that was found in a sentence": (
        [Chunk(PAGE, 0), Chunk("14", 15), Chunk("The slipway was paid for.", 104)],
        f"{PAGE}\n\n14\n\nThe slipway was paid for.",
        (),
    ),
    "a heading that is the beginning of a sentence": (
        [Chunk(PAGE, 0), Chunk("Signed", 0), Chunk("The slipway was paid for.", 107)],
        f"{PAGE}\n\nSigned\n\nThe slipway was paid for.",
        (),
    ),
    "two of them": (
        [Chunk(PAGE, 0), Chunk("page", 10), Chunk("14", 15), Chunk("The slipway was paid for.", 107)],
        f"{PAGE}\n\npage\n14\nThe slipway was paid for.",
        (),
    ),
    "one that fits, while more is missing": (
        [Chunk(PAGE, 0), Chunk("14", 15), Chunk("The slipway was paid for.", 300)],
        f"{PAGE}\n\n14\n\nThe slipway was paid for.",
        ((101, 300),),
    ),
    "one that fits nowhere": (
        [Chunk(PAGE, 0), Chunk("page 14", 10), Chunk("The slipway was paid for.", 99)],
        f"{PAGE}\n\nThe slipway was paid for.",
        ((124, 124),),
    ),
    "the last one": ([Chunk(PAGE, 0), Chunk("14", 15)], PAGE, ((97, 97),)),
    "one that may only be an overlap, at the end of the chunk before": (
        [Chunk("A word of the ledger.", 0), Chunk(PAGE, 30), Chunk("harbour board", 114), Chunk("The slipway.", 129)],
        f"A word of the ledger.\n\n{PAGE}\n\nThe slipway.",
        ((21, 30), (141, 141)),
    ),
}


@pytest.mark.parametrize(("chunks", "text", "gaps"), REPEATED.values(), ids=REPEATED)
def test_a_repeated_chunk_goes_into_the_stretch_that_it_fits(
    chunks: list[Chunk], text: str, gaps: tuple[tuple[int, int], ...]
) -> None:
    assert len(PAGE) == 97
    whole = rebuild(chunks)
    assert (whole.text, whole.gaps, whole.chunks) == (text, gaps, len(chunks))
    assert rebuild(chunks[::-1], ordered=False) == whole


def test_what_a_splitter_carries_on_is_in_its_place() -> None:
    """The splitter overlaps by this much elsewhere, and had the words come again it would have joined them."""
    chunks = [Chunk(PAGE, 0), Chunk("harbour board", 84), Chunk("The gate was shut by the harbour", 99)]
    chunks += [Chunk("shut by the harbour master at nine, when nobody came", 112)]
    whole = rebuild(chunks)
    assert (whole.gaps, whole.text.count("harbour board")) == ((), 1)


@given(st.integers(0, 10**6), st.sampled_from(sorted(BLANKS)))
@examples(200)
def test_page_numbers_between_paragraphs_are_not_lost(seed: int, blank: str) -> None:
    """They come again in the text before, so that the splitter finds some of them there."""
    random = Random(seed)  # noqa: S311
    paragraphs = [" ".join(random.choices(WORDS, k=60)) + f" of {page}." for page in range(10, 30)]
    pages = [f"{text}{BLANKS[blank](random)}{page}\n\n" for page, text in enumerate(paragraphs, 10)]
    text = "".join(pages).strip()
    whole = rebuild(_chunks(SPLITTERS["500 with 50"], text))
    assert whole.gaps or whole.text.split() == text.split()


def test_gaps_and_chunks_do_not_overlap() -> None:
    chunks = _chunks(SPLITTERS["500 with 50"], _filing(5, BLANKS["padded tables"]))
    held = [chunk for number, chunk in enumerate(chunks) if number % 4]
    gaps = [(left, right) for left, right in rebuild(held).gaps if left < right]
    assert len(gaps) > 5
    assert all(left[1] <= right[0] for left, right in pairwise(gaps))
    spans = [(chunk.start or 0, (chunk.start or 0) + len(chunk.text)) for chunk in held]
    assert not any(left < end and start < right for left, right in gaps for start, end in spans)
