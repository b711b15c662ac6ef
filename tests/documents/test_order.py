"""Passages of a wider look come as they follow one another in their documents."""

from __future__ import annotations

from typing import Any

import pytest

from selfroute.documents.chunks import Place, in_document_order

Row = tuple[str, str, Any, dict[str, Any]]  # name, source, start, other metadata; best first

ORDERS: dict[str, tuple[list[Row], str]] = {
    "by offset": ([("c", "a", 20, {}), ("a", "a", 0, {}), ("b", "a", 10, {})], "abc"),
    "by page, then by offset": (
        [("c", "a", 0, {"page": 2}), ("b", "a", 9, {"page": 1}), ("a", "a", 0, {"page": 1})],
        "abc",
    ),
    "by number": ([("b", "a", None, {"chunk": "10"}), ("a", "a", None, {"chunk": "9"})], "ab"),
    "the best document first": (
        [("c", "late", 5, {}), ("e", "early", 9, {}), ("b", "late", 0, {}), ("d", "early", 0, {})],
        "bcde",
    ),
    "as they came where one has no place": ([("a", "a", 20, {}), ("b", "a", None, {}), ("c", "a", 0, {})], "abc"),
    "as they came where a splitter lost one": ([("a", "a", 20, {}), ("b", "a", -1, {})], "ab"),
    "as they came without a place": ([("a", "a", None, {}), ("b", "a", None, {})], "ab"),
    "a document without places beside one with them": (
        [("c", "a", 9, {}), ("x", "b", None, {}), ("a", "a", 0, {}), ("y", "b", None, {})],
        "acxy",
    ),
    "none": ([], ""),
}


@pytest.mark.parametrize("name", ORDERS)
def test_passages_come_in_the_order_of_their_documents(name: str) -> None:
    rows, expected = ORDERS[name]
    ordered = in_document_order(rows, lambda row: Place(row[1], row[2], row[3]))
    assert "".join(row[0] for row in ordered) == expected
