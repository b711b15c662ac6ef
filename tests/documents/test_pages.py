"""Documents of which a loader made one of each page: they are put together page by page, and know their pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_text_splitters import RecursiveCharacterTextSplitter

from lanes import examples
from llamaindex_selfroute.stored.links import Link, put_together
from selfroute.documents import RebuiltDocument, rebuild
from selfroute.documents.chunks import chunks_of
from selfroute.documents.ordering import UnknownOrderError
from selfroute.documents.pages import page_at, page_of

Row = tuple[str, dict[str, Any]]
HEAD = "Harbour board, confidential."  # on each page, at its top and at its end
PAGES = [
    f"{HEAD}\nThe crane was old. It lifted two tonnes. {HEAD}",
    f"{HEAD}\nMs Okafor chaired it, and tea was served at nine. {HEAD}",
    f"{HEAD}\n{HEAD}",
    f"{HEAD}\nNobody came from the harbour. It rained. {HEAD}",
]
WHOLE = "\n".join(PAGES)
TOPS = [sum(len(page) + 1 for page in PAGES[:number]) for number in range(len(PAGES))]


def rows_of(texts: Sequence[str], size: int = 36) -> list[Row]:
    """What a loader that makes a document of each page and a splitter that notes offsets leave in a store."""
    splitter = RecursiveCharacterTextSplitter(chunk_size=size, chunk_overlap=size // 4, add_start_index=True)
    made = [splitter.create_documents([text], [{"page": page}]) for page, text in enumerate(texts)]
    return [(one.page_content, one.metadata) for page in made for one in page]


def starts_of(pages: Sequence[Any]) -> tuple[tuple[int, Any], ...]:
    return tuple(zip(TOPS, pages, strict=True))


ROMAN = ["iii", "iv", "v", "A-1"]


@given(st.lists(st.text("abé .\n", max_size=90), min_size=1, max_size=6), st.randoms(), st.sampled_from([12, 25, 60]))
@examples(100)
def test_pages_are_exact_or_not_said_to_be(texts: list[str], random: Random, size: int) -> None:
    rows = rows_of(texts, size)
    whole = rebuild(chunks_of(random.sample(rows, len(rows)), start_key="start_index"))
    if whole.method == "offsets" and not whole.gaps:
        assert "".join(whole.text.split()) == "".join("".join(texts).split())
    assert list(whole.pages) == sorted(whole.pages)
    assert [page for _, page in whole.pages] == sorted({metadata["page"] for _, metadata in rows})


# LlamaIndex: a document of each page, with the id of the file


def links_of(pages: Sequence[Any], *, linked: bool) -> list[Link]:
    links: list[Link] = []
    for number, page in enumerate(pages):
        rows = [(text, one["start_index"]) for text, one in rows_of(PAGES[number : number + 1])]
        for index, (text, start) in enumerate(rows):
            before = f"{number}.{index - 1}" if linked and index else None
            after = f"{number}.{index + 1}" if linked and index < len(rows) - 1 else None
            links.append(Link(f"{number}.{index}", text, start, before, after, None, ("file", f"v{number}"), page))
    return links


@pytest.mark.parametrize("linked", [True, False], ids=["linked", "not linked"])
def test_pages_of_nodes(linked: bool) -> None:
    pages = ["1", "2", "3", "4"]
    links = links_of(pages, linked=linked)
    expected = RebuiltDocument(WHOLE, "offsets", len(links), (), starts_of(pages))
    assert put_together(links) == expected
    assert put_together(Random(1).sample(links, len(links)), ordered=False) == expected  # noqa: S311
    roman = links_of(ROMAN, linked=linked)
    assert put_together(roman) == replace(expected, pages=starts_of(ROMAN))
    with pytest.raises(UnknownOrderError):
        put_together(roman, ordered=False)


@pytest.mark.parametrize("linked", [True, False], ids=["linked", "not linked"])
def test_pages_of_nodes_in_doubt(linked: bool) -> None:
    links = links_of(["1", "2", "3", "4"], linked=linked)
    assert put_together([link for link in links if link.page != "2"]).gaps
    assert put_together([link for link in links if link.page != "1"] if linked else links[-1:]).gaps or not linked
    old = [
        replace(link, id=f"old {link.id}", text="Other words.", version=("file", "old"))
        for link in links
        if link.page == "2"
    ]
    assert put_together([*links, *old[:1]]).gaps
    mixed = [replace(link, version=("file", "old" if int(str(link.page)) > 2 else "new")) for link in links]
    assert put_together(mixed).gaps, "a document of several pages has one version"


# Where an offset is


def test_page_at() -> None:
    starts: list[list[Any]] = [[10, "iv"], [20, None], [30, 1]]
    found = [page_at(starts, offset) for offset in (0, 9, 10, 19, 20, 30, 99)]
    assert found == [None, None, "iv", "iv", None, 1, 1]


@pytest.mark.parametrize(
    ("metadata", "page"),
    [
        ({"page": 0, "page_label": "i"}, 0),
        ({"page_label": "iv"}, "iv"),
        ({"page": "", "page_label": "2"}, "2"),
        ({"page": None, "page_number": 3}, 3),
        ({"page": 4.0}, 4),
        ({"page": True}, None),
        ({"page": [1]}, None),
        ({}, None),
    ],
)
def test_page_of(metadata: dict[str, Any], page: Any) -> None:
    found = page_of(metadata)
    assert (found, type(found)) == (page, type(page))
