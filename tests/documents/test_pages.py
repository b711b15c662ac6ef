"""Documents of which a loader made one of each page: they are put together page by page, and know their pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_text_splitters import RecursiveCharacterTextSplitter

from lanes import examples
from llamaindex_selfroute.stored.nodes import Link, put_together
from selfroute.documents import Chunk, RebuiltDocument, chunks_of, rebuild
from selfroute.documents.ordering import UnknownOrderError
from selfroute.documents.pages import page_at, page_of, placing_of

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


def rows_of(pages: Sequence[Any], texts: Sequence[str] = PAGES, *, key: str = "page", size: int = 36) -> list[Row]:
    """What a loader that makes a document of each page and a splitter that notes offsets leave in a store."""
    splitter = RecursiveCharacterTextSplitter(chunk_size=size, chunk_overlap=9, add_start_index=True)
    made = [splitter.create_documents([text], [{key: page}]) for text, page in zip(texts, pages, strict=True)]
    return [(one.page_content, one.metadata) for page in made for one in page]


def whole_of(rows: Sequence[Row], *, ordered: bool = True) -> RebuiltDocument:
    return rebuild(chunks_of(rows, start_key="start_index"), ordered=ordered)


def starts_of(pages: Sequence[Any]) -> tuple[tuple[int, Any], ...]:
    return tuple(zip(TOPS, pages, strict=True))


NAMED: dict[str, tuple[str, list[Any]]] = {
    "from zero": ("page", [0, 1, 2, 3]),
    "from one": ("page", [1, 2, 3, 4]),
    "digits": ("page_label", ["1", "2", "3", "4"]),
    "floats, as some stores hand them over": ("page", [0.0, 1.0, 2.0, 3.0]),
    "another key": ("page_number", [1, 2, 3, 4]),
    "digits of two lengths": ("page", ["8", "9", "10", "11"]),
}


@pytest.mark.parametrize("size", [36, 500], ids=["several chunks a page", "one chunk a page"])
@pytest.mark.parametrize("name", NAMED)
def test_pages_are_joined_in_their_order_whatever_the_store_s(name: str, size: int) -> None:
    key, pages = NAMED[name]
    rows = rows_of(pages, key=key, size=size)
    gaps = ((0, 0),) if pages[0] == "8" else ()  # pages are missing
    expected = RebuiltDocument(WHOLE, "offsets", len(rows), gaps, starts_of(pages))
    mixed = Random(3).sample(rows, len(rows))  # noqa: S311
    for listed in (rows, rows[::-1], mixed):
        assert whole_of(listed) == expected
        assert whole_of(listed, ordered=False) == expected


def test_of_two_keys_the_page_comes_before_its_label() -> None:
    labels = ["iii", "iv", "1", "2"]
    rows = [(text, {**one, "page_label": labels[one["page"]]}) for text, one in rows_of(range(4))]
    assert whole_of(rows[::-1]).pages == starts_of(range(4))


ROMAN = ["iii", "iv", "v", "A-1"]


@pytest.mark.parametrize("size", [36, 500], ids=["several chunks a page", "one chunk a page"])
def test_pages_without_numbers_come_in_the_order_of_the_store_or_are_refused(size: int) -> None:
    rows = rows_of(ROMAN, size=size)
    assert whole_of(rows) == RebuiltDocument(WHOLE, "offsets", len(rows), (), starts_of(ROMAN))
    with pytest.raises(UnknownOrderError) as caught:
        whole_of(rows, ordered=False)
    assert caught.value.have_offsets


def test_numbers_that_begin_anew_on_pages_without_numbers_do_not_mix_the_pages() -> None:
    rows: list[Row] = []
    for text, metadata in rows_of(ROMAN):
        again = sum(metadata["page"] == one["page"] for _, one in rows)
        rows.append((text, {**metadata, "chunk_index": again}))
    assert whole_of(rows) == RebuiltDocument(WHOLE, "offsets", len(rows), (), starts_of(ROMAN))
    with pytest.raises(UnknownOrderError):
        whole_of(rows, ordered=False)


@pytest.mark.parametrize("through", [True, False], ids=["through the document", "on each page"])
def test_chunks_may_have_numbers_beside_their_pages(through: bool) -> None:
    rows: list[Row] = []
    for text, metadata in rows_of(range(4)):
        again = sum(metadata["page"] == one["page"] for _, one in rows)
        rows.append((text, {**metadata, "chunk_index": len(rows) if through else again}))
    expected = RebuiltDocument(WHOLE, "offsets", len(rows), (), starts_of(range(4)))
    assert whole_of(rows[::-1], ordered=False) == expected
    inner = next(place for place, (_, one) in enumerate(rows) if one["page"] == 1 and one["start_index"] > 0)
    damaged = whole_of([*rows[:inner], *rows[inner + 1 :]])
    assert damaged.gaps
    assert damaged.pages[:2] == ((0, 0), (TOPS[1], 1))


def test_offsets_in_the_whole_document_are_read_as_such_although_chunks_have_pages() -> None:
    texts = ["The crane was old. It lifted two tonnes.", "Ms Okafor chaired it at nine.", "Nobody came. It rained."]
    text, tops = "\n".join(texts), [0, len(texts[0]) + 1, len(texts[0] + texts[1]) + 2]
    splitter = RecursiveCharacterTextSplitter(chunk_size=25, chunk_overlap=9, add_start_index=True)
    rows: list[Row] = []
    for one in splitter.create_documents([text]):
        start = one.metadata["start_index"]
        rows.append((one.page_content, {"start_index": start, "page": sum(top <= start for top in tops)}))
    whole = whole_of(rows[::-1], ordered=False)
    assert (whole.method, whole.gaps, whole.text) == ("offsets", (), text)
    assert whole.pages == tuple(zip(tops, [1, 2, 3], strict=True))


@pytest.mark.parametrize("ordered", [True, False])
def test_a_document_of_one_page_has_one(ordered: bool) -> None:
    rows = rows_of([7], PAGES[:1])
    whole = whole_of(rows, ordered=ordered)
    assert (whole.text, whole.method, whole.pages) == (PAGES[0], "offsets", ((0, 7),))


def test_without_offsets_pages_are_known_too() -> None:
    rows = [(text, {"page": page}) for page, text in enumerate(PAGES)]
    whole = whole_of(rows[::-1], ordered=False)
    assert (whole.method, [page for _, page in whole.pages]) == ("order", [0, 1, 2, 3])


@pytest.mark.parametrize("pages", [[0, 1, 2, 3], ROMAN], ids=["numbers", "texts"])
def test_pages_that_were_stored_again_count_once(pages: list[Any]) -> None:
    rows = rows_of(pages)
    once = whole_of(rows)
    assert whole_of(rows * 2) == once
    second = [row for row in rows if row[1]["page"] == pages[1]]
    assert whole_of([*rows, *second]) == once
    if pages[0] == 0:
        assert whole_of(Random(5).sample(rows * 2, len(rows) * 2), ordered=False) == once  # noqa: S311


def test_pages_that_read_alike_are_all_there() -> None:
    texts = [PAGES[0]] * 3
    for size in (36, 500):
        rows = rows_of(range(3), texts, size=size)
        for ordered in (True, False):
            whole = whole_of(rows, ordered=ordered)
            assert (whole.text, whole.method, whole.gaps) == ("\n".join(texts), "offsets", ())


def test_a_page_that_no_chunk_is_of_is_a_gap() -> None:
    rows = [row for row in rows_of(range(4)) if row[1]["page"] != 1]
    whole = whole_of(rows)
    assert whole.text == "\n".join([PAGES[0], *PAGES[2:]])
    assert (whole.method, whole.gaps) == ("offsets", ((len(PAGES[0]), len(PAGES[0])),))


def test_a_page_whose_offsets_lie_is_joined_in_order_and_the_others_are_not() -> None:
    rows: list[Row] = [
        (text, {**one, "start_index": 0} if one["page"] == 1 else one) for text, one in rows_of(range(4))
    ]
    whole = whole_of(rows)
    assert (whole.method, [page for _, page in whole.pages]) == ("order", [0, 1, 2, 3])
    assert all(page in whole.text for page in (PAGES[0], PAGES[2], PAGES[3]))
    with pytest.raises(UnknownOrderError):
        whole_of(rows, ordered=False)


def test_where_a_chunk_names_no_page_none_is_known() -> None:
    texts = ("The crane was old.", "Tea was served.", "Nobody came.", "It rained.")
    pages: list[dict[str, Any]] = [{}, {"page": 4}, {}, {"page": 5}]
    rows = [(text, {"start_index": 20 * n, **page}) for n, (text, page) in enumerate(zip(texts, pages, strict=True))]
    whole = whole_of(rows)
    found = [page_at(whole.pages, whole.text.index(text)) for text in texts]
    assert found == [None, 4, None, 5]
    assert "pages" not in whole_of([(text, {}) for text in texts]).label()


@given(st.lists(st.text("abé .\n", max_size=90), min_size=1, max_size=6), st.randoms(), st.sampled_from([12, 25, 60]))
@examples(100)
def test_any_pages_are_exact_or_not_said_to_be(texts: list[str], random: Random, size: int) -> None:
    splitter = RecursiveCharacterTextSplitter(chunk_size=size, chunk_overlap=size // 4, add_start_index=True)
    made = [splitter.create_documents([text], [{"page": page}]) for page, text in enumerate(texts)]
    rows = [(one.page_content, one.metadata) for page in made for one in page]
    whole = whole_of(random.sample(rows, len(rows)))
    if whole.method == "offsets" and not whole.gaps:
        assert "".join(whole.text.split()) == "".join("".join(texts).split())
    assert list(whole.pages) == sorted(whole.pages)
    assert [page for _, page in whole.pages] == sorted({metadata["page"] for _, metadata in rows})


# LlamaIndex: a document of each page, with the id of the file


def links_of(pages: Sequence[Any], *, linked: bool) -> list[Link]:
    links: list[Link] = []
    for number, page in enumerate(pages):
        rows = [(text, one["start_index"]) for text, one in rows_of([page], PAGES[number : number + 1])]
        for index, (text, start) in enumerate(rows):
            before = f"{number}.{index - 1}" if linked and index else None
            after = f"{number}.{index + 1}" if linked and index < len(rows) - 1 else None
            links.append(Link(f"{number}.{index}", text, start, before, after, None, f"v{number}", page))
    return links


@pytest.mark.parametrize("linked", [True, False], ids=["linked", "not linked"])
def test_nodes_of_pages_that_are_documents_are_joined_page_by_page(linked: bool) -> None:
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
def test_nodes_of_two_versions_of_a_page_or_of_pages_with_one_missing_are_in_doubt(linked: bool) -> None:
    links = links_of(["1", "2", "3", "4"], linked=linked)
    assert put_together([link for link in links if link.page != "2"]).gaps
    assert put_together([link for link in links if link.page != "1"] if linked else links[-1:]).gaps or not linked
    old = [replace(link, id=f"old {link.id}", text="Other words.", version="old") for link in links if link.page == "2"]
    assert put_together([*links, *old[:1]]).gaps
    mixed = [replace(link, version="old" if int(str(link.page)) > 2 else "new") for link in links]
    assert put_together(mixed).gaps, "a document of several pages has one version"


# Where an offset is


@pytest.mark.parametrize(
    ("offset", "page"), [(0, None), (9, None), (10, "iv"), (19, "iv"), (20, None), (30, 1), (99, 1)]
)
def test_an_offset_is_on_the_page_that_begins_last_before_it(offset: int, page: Any) -> None:
    assert page_at([[10, "iv"], [20, None], [30, 1]], offset) == page


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
def test_a_page_is_a_number_or_a_text_as_it_is(metadata: dict[str, Any], page: Any) -> None:
    found = page_of(metadata)
    assert (found, type(found)) == (page, type(page))


@pytest.mark.parametrize(
    "label",
    ["text", 7, {"pages": 3}, {"pages": [[1]]}, {"read": []}, {"method": "sections", "start": "0"}, {"read": 2}],
)
def test_a_label_that_somebody_else_wrote_says_nothing(label: Any) -> None:
    placing = placing_of({"selfroute": label, "page": 5})
    assert (placing.begins, placing.shift, placing.page_at(3)) == (0, 0, 5)


def test_pages_are_plain_json_in_the_label() -> None:
    label = rebuild([Chunk("Tea.", 0, (), "iv"), Chunk("Ice.", 5, (), 1)]).label()
    assert label["pages"] == [[0, "iv"], [5, 1]]


def test_chunks_of_several_pages_come_in_any_order() -> None:
    chunks = [Chunk("a b", 0, (0,), 0), Chunk("c d", 4, (0,), 0), Chunk("e f", 0, (1,), 1)]
    assert {rebuild(mixed, ordered=False) for mixed in permutations(chunks)} == {
        RebuiltDocument("a b\nc d\ne f", "offsets", 3, (), ((0, 0), (8, 1)))
    }
