"""A gap is a stretch of text that no chunk holds; white space that a splitter stripped does not count."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_text_splitters import CharacterTextSplitter, RecursiveCharacterTextSplitter, TextSplitter

from lanes import examples
from selfroute.documents import Chunk, rebuild
from selfroute.documents.chunks import chunks_of

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
def test_gaps_are_no_stripped_white_space(splitter: TextSplitter, blank: Callable[[Random], str]) -> None:
    text = _filing(1, blank)
    whole = rebuild(_chunks(splitter, text))
    assert (whole.method, whole.gaps) == ("offsets", ())
    assert whole.text.split() == text.split()


PARTS = ["The crane was old.", "Tea was served.", "Nobody came."]


@given(st.integers(0, 10**6), st.sampled_from(sorted(BLANKS)))
@examples(200)
def test_gaps_or_all_page_numbers(seed: int, blank: str) -> None:
    """They come again in the text before, so that the splitter finds some of them there."""
    random = Random(seed)  # noqa: S311
    paragraphs = [" ".join(random.choices(WORDS, k=60)) + f" of {page}." for page in range(10, 30)]
    pages = [f"{text}{BLANKS[blank](random)}{page}\n\n" for page, text in enumerate(paragraphs, 10)]
    text = "".join(pages).strip()
    whole = rebuild(_chunks(SPLITTERS["500 with 50"], text))
    assert whole.gaps or whole.text.split() == text.split()
