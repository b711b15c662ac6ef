"""Putting documents together: golden results, and that what is said to be exact is."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import permutations
from random import Random
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from golden import GOLDEN, golden, text_of
from selfroute.documents import Chunk, RebuiltDocument, rebuild
from selfroute.documents.chunks import Title, chunks_of, headings_of, offset
from selfroute.documents.found import rebuild_found
from selfroute.documents.label import original_label
from selfroute.documents.offsets import repeats_itself
from selfroute.documents.ordering import UnknownOrderError, deduplicate, sort_by_place, split_by_page

# No two characters are the same: nothing repeats itself, so that nothing is in doubt.
plain_texts = st.lists(st.characters(codec="utf-8"), unique=True, max_size=120).map("".join)
any_texts = plain_texts | st.text(max_size=120) | st.text("ab \n", max_size=120)


def _windows(text: str, step: int, overlap: int) -> list[Chunk]:
    """Stretches that begin every so many characters and overlap by half at most, the last of which ends the text."""
    overlap = min(overlap, step)
    starts = range(0, max(len(text) - overlap, 1), step) if text else ()
    return [Chunk(text[start : start + step + overlap], start) for start in starts]


def rebuilt(chunks: Sequence[Chunk], **options: bool) -> Any:
    """Return the document as golden.json writes it: text, method, number of chunks, gaps, pages; or the refusal."""
    try:
        whole = rebuild(chunks, **options)
    except UnknownOrderError as error:
        return f"refused, {'with' if error.have_offsets else 'without'} offsets"
    return shown(whole)


def shown(whole: RebuiltDocument) -> list[Any]:
    return [whole.text, whole.method, whole.chunks, [*map(list, whole.gaps)], [*map(list, whole.pages)]]


def in_some_orders(chunks: list[Chunk]) -> list[Any]:
    """Return all orders of a few chunks, and some of many."""
    if len(chunks) < 5:
        return [*permutations(chunks)]
    return [chunks[::-1], *(Random(seed).sample(chunks, len(chunks)) for seed in range(20))]  # noqa: S311


def chunks_in(case: dict[str, Any]) -> list[Chunk]:
    rows = [GOLDEN["chunks"][row] if isinstance(row, str) else row for row in case["rows"]]
    return list(chunks_of([(text_of(text), metadata) for text, metadata in rows], start_key="at"))


@golden("rebuild")
def test_rebuild(case: dict[str, Any]) -> None:
    """`mixed` is the result for chunks in no order, where that is another one."""
    chunks, doubtful = chunks_in(case), case.get("doubtful", False)
    assert rebuilt(chunks, doubtful=doubtful) == case["is"]
    for mixed in in_some_orders(chunks):
        assert rebuilt(mixed, doubtful=doubtful, ordered=False) == case.get("mixed", case["is"])


@golden("found")
def test_rebuild_found(case: dict[str, Any]) -> None:
    """The text that was found, of all under one name: as `rebuilt`, the number of texts, and whether it is doubtful."""

    def told(chunks: Sequence[Chunk], *, ordered: bool) -> Any:
        try:
            whole = rebuild_found(chunks, case["found"], ordered=ordered)
        except UnknownOrderError as error:
            return f"refused, {'with' if error.have_offsets else 'without'} offsets"
        return [*shown(whole), whole.texts, *(["doubtful"] if whole.doubtful else [])]

    chunks = chunks_in(case)
    assert told(chunks, ordered=True) == case["is"]
    for mixed in in_some_orders(chunks):
        assert told(mixed, ordered=False) == case.get("mixed", case["is"])


@golden("chunks_of")
def test_chunks_of(case: dict[str, Any]) -> None:
    assert [[chunk.start, [*chunk.place], chunk.page] for chunk in chunks_in(case)] == case["is"]


def test_chunks_of_two_dates_are_copies() -> None:
    assert Chunk("Tea.", 0, version="May", kind="a") == Chunk("Tea.", 0, version="June", kind="b")
    assert Chunk("Tea.", 0, headings=("May",)) != Chunk("Tea.", 0, headings=("June",))


@golden("headings_of")
def test_headings_of(case: dict[str, Any]) -> None:
    """A title that may be the file's is said to be one."""
    found = headings_of(case["metadata"])
    assert [["title", one] if isinstance(one, Title) else one for one in found] == case["is"]


@golden("deduplicate")
def test_deduplicate(case: dict[str, Any]) -> None:
    kept, certain, copies = deduplicate(chunks_in(case), ordered=case["ordered"])
    assert [[one.text for one in kept], certain, [one.text for one in copies]] == case["is"]


@golden("sort_by_place")
def test_sort_by_place(case: dict[str, Any]) -> None:
    assert [[one.text, *one.place] for one in sort_by_place(chunks_in(case))] == case["is"]


@golden("split_by_page")
def test_split_by_page(case: dict[str, Any]) -> None:
    assert [[one.text for one in page] for page in split_by_page(chunks_in(case))] == case["is"]


@golden("repeats_itself")
def test_repeats_itself(case: dict[str, Any]) -> None:
    assert repeats_itself(text_of(case["text"]), within=case["within"]) is case["is"]


def _is_exact(whole: RebuiltDocument) -> bool:
    return whole.method == "offsets" and not whole.gaps


@given(any_texts, st.integers(1, 12), st.integers(0, 6), st.data())
def test_rebuild_claims_no_other_text(text: str, step: int, overlap: int, data: st.DataObject) -> None:
    """All of them, or some are missing and some stored again, in any order."""
    chunks = _windows(text, step, overlap)
    held = data.draw(st.permutations(chunks) | st.lists(st.sampled_from(chunks), max_size=20)) if chunks else []
    whole = rebuild(held)
    assert whole.chunks <= len(held)
    if whole.method == "order":
        assert all(chunk.text in whole.text for chunk in held)
    if _is_exact(whole):
        until = max(chunk.start + len(chunk.text) for chunk in held if chunk.start is not None)
        missing = [index for index in range(until) if not any(_holds(chunk, index) for chunk in held)]
        runs = "".join("\0" if index in missing else "." for index in range(until)).split(".")
        blanks = [len(run) for chunk in held for run in re.findall(r"\s+", chunk.text)]
        usual = 2 * max([1, *blanks]) + (step + overlap) // 10
        assert max(map(len, runs)) <= max(4, usual), "more than white space is missing"
        if not missing:
            assert whole.text == text[:until]


def _holds(chunk: Chunk, index: int) -> bool:
    return chunk.start is not None and chunk.start <= index < chunk.start + len(chunk.text)


@given(plain_texts.filter(bool), plain_texts, st.data())
def test_rebuild_of_two_versions(text: str, other: str, data: st.DataObject) -> None:
    """Indexing it again stopped half-way: the chunks of either are half old and half new."""
    at = data.draw(st.integers(0, len(text)))
    step, overlap = data.draw(st.integers(5, 9)), data.draw(st.integers(1, 4))
    changed = text[:at] + "".join(character for character in other if character not in text) + text[at:]
    old, new = _windows(text, step, overlap), _windows(changed, step, overlap)
    cut = data.draw(st.integers(0, len(new)))
    # Where one ends, a chunk of the other may begin, or up to four characters on, which may be white space.
    assume(not any((chunk.start or 0) - len(whole) in range(5) for whole in (text, changed) for chunk in old + new))
    for chunks in (new[:cut] + old[cut:], old[:cut] + new[cut:], old + new[:cut], new[:cut] + old):
        whole = rebuild(chunks)  # which may lack the end: nothing tells
        assert text.startswith(whole.text) or changed.startswith(whole.text) or not _is_exact(whole)


NO_OFFSETS = (-1, 7.5, "-7", "٧", "", "9" * 5_000, float("nan"), float("inf"), None, True, False, [7], {})


def test_offset() -> None:
    assert [offset(value) for value in (7, 0, 8.0, "07")] == [7, 0, 8, 7]
    assert [value for value in NO_OFFSETS if offset(value) is not None] == []


def test_label() -> None:
    label = rebuild([Chunk("The minutes.", 20, (), "iv"), Chunk("Tea.", 50, (), 1)]).label()
    assert json.loads(json.dumps(label)) == label
    pages = {"pages": [[0, "iv"], [14, 1]]}
    assert label == {"method": "offsets", "chunks": 2, "gaps": [[0, 20], [32, 50]], "trimmed": False, **pages}
    assert original_label("") == {"method": "original", "chunks": 0, "gaps": [], "trimmed": False}
