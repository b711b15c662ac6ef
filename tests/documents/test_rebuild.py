"""Laws of putting documents together: what is said to be exact is, and what is not known is said."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from selfroute.documents import Chunk, RebuiltDocument, chunks_of, offset, original_label, rebuild

# No two characters are the same: nothing repeats itself, so that nothing is in doubt.
plain_texts = st.lists(st.characters(codec="utf-8"), unique=True, max_size=120).map("".join)
any_texts = plain_texts | st.text(max_size=120) | st.text("ab \n", max_size=120)


def _windows(text: str, step: int, overlap: int) -> list[Chunk]:
    """Stretches that begin every so many characters and overlap by half at most, the last of which ends the text."""
    overlap = min(overlap, step)
    starts = range(0, max(len(text) - overlap, 1), step) if text else ()
    return [Chunk(text[start : start + step + overlap], start) for start in starts]


def _is_exact(whole: RebuiltDocument) -> bool:
    return whole.method == "offsets" and not whole.gaps


def _end(whole: RebuiltDocument) -> tuple[int, int]:
    return len(whole.text), len(whole.text)


@given(plain_texts, st.integers(1, 40), st.integers(0, 20))
def test_windows_over_a_text_give_it_back(text: str, step: int, overlap: int) -> None:
    chunks = _windows(text, step, overlap)
    assert rebuild(chunks) == RebuiltDocument(text, "offsets" if chunks else "order", len(chunks))


@given(plain_texts, st.integers(1, 40), st.integers(0, 20), st.randoms())
def test_they_do_so_in_any_order_if_each_adds_something(text: str, step: int, overlap: int, random: Random) -> None:
    text = "".join(text.split())
    chunks = _windows(text, step, min(overlap, step - 1))
    random.shuffle(chunks)
    assert rebuild(chunks) == RebuiltDocument(text, "offsets" if chunks else "order", len(chunks))


@given(any_texts, st.integers(1, 40), st.integers(0, 20), st.randoms(), st.booleans())
def test_what_is_said_to_be_exact_is_exact(text: str, step: int, overlap: int, random: Random, mixed: bool) -> None:
    chunks = _windows(text, step, overlap)
    if mixed:
        random.shuffle(chunks)
    whole = rebuild(chunks)
    if _is_exact(whole):
        assert whole.text == text
    if whole.method == "order":
        assert all(chunk.text in whole.text for chunk in chunks)


@given(any_texts, st.integers(1, 12), st.integers(0, 6), st.data())
def test_any_chunks_of_a_text_never_claim_to_be_another_one(
    text: str, step: int, overlap: int, data: st.DataObject
) -> None:
    """Some are missing, some are stored again, some lost their offset, in any order."""
    chunks = _windows(text, step, overlap)
    held = data.draw(st.lists(st.sampled_from(chunks), max_size=20)) if chunks else []
    whole = rebuild(held)
    assert whole.chunks <= len(held)
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


@given(st.lists(st.text("abé是.", min_size=1, max_size=30), min_size=1, max_size=12), st.integers(1, 4))
def test_stripped_white_space_is_white_space_again(lines: list[str], width: int) -> None:
    starts = [sum(len(line) + width for line in lines[:index]) for index in range(len(lines))]
    whole = rebuild([Chunk(line, start) for line, start in zip(lines, starts, strict=True)])
    assert whole == RebuiltDocument(("\n" if width == 1 else "\n\n").join(lines), "offsets", len(lines))


def test_what_no_chunk_holds_is_reported() -> None:
    whole = rebuild([Chunk("The minutes.", 20), Chunk("Tea was served.", 50)])
    assert whole == RebuiltDocument("The minutes.\n\nTea was served.", "offsets", 2, ((0, 20), (32, 50)))


MINUTES = (
    "The crane was old. Tea was served at nine, and Ms Okafor chaired it. Nobody came from the harbour. It rained."
)
STARTS = (0, 19, 44, 69, 99)
PARTS = [Chunk(MINUTES[start : start + 36].strip(), start) for start in STARTS]
END = ((len(MINUTES), len(MINUTES)),)


REFRAIN = ["Row the boat. Row the boat. Row", "boat. Row the boat. Row the boat."]
UNTRUSTED = {
    "a repetitive text, where each chunk was found at the first place": [Chunk(text, 0) for text in REFRAIN],
    "an overlap that the texts do not share": [Chunk("Ms Okafor chaired it.", 0), Chunk("Tea was served.", 15)],
    "a chunk without an offset": [Chunk("Tea was served.", 30), Chunk("Ms Okafor chaired it.")],
    "an overlap by more than half a chunk": [Chunk(MINUTES[:30], 0), Chunk(MINUTES[14:44], 14)],
    "two chunks at one place": [*PARTS, Chunk("It poured.", 99)],
    "a chunk that lies across others": [*PARTS, Chunk("somebody else wrote this", 30)],
    "an offset that is one too small": [*PARTS[:2], Chunk(PARTS[2].text, 43), *PARTS[3:]],
    "numbers that tell another order": [
        Chunk(part.text, part.start, (-index % 5,)) for index, part in enumerate(PARTS)
    ],
    "much that repeats itself and overlaps": [Chunk("ha " * 9 + "ha", 21 * index) for index in range(9)],
}


@pytest.mark.parametrize("chunks", UNTRUSTED.values(), ids=UNTRUSTED)
def test_offsets_that_contradict_the_texts_give_way_to_the_order(chunks: list[Chunk]) -> None:
    whole = rebuild(chunks)
    assert whole.method == "order"
    assert all(chunk.text in whole.text for chunk in chunks)


DOUBTFUL = {
    "one that lies in another": [*PARTS[:2], Chunk("Tea was", 19), *PARTS[2:]],
    "one that could stand one word further on": [Chunk(MINUTES + " ha ha", 0), Chunk("ha ha ha", len(MINUTES) + 4)],
    "one across two others, in no order": [Chunk("ab cd", 0), Chunk("ef gh", 6), Chunk("cd\nef", 3)],
}


@pytest.mark.parametrize("chunks", DOUBTFUL.values(), ids=DOUBTFUL)
def test_a_chunk_that_may_belong_further_on_puts_the_end_in_doubt(chunks: list[Chunk]) -> None:
    whole = rebuild(chunks)
    until = max((chunk.start or 0) + len(chunk.text) for chunk in chunks)
    assert (whole.method, whole.gaps) == ("offsets", ((until, until),))


def test_a_chunk_across_two_others_is_in_its_place_if_the_order_says_so() -> None:
    assert rebuild([Chunk("ab cd", 0), Chunk("cd\nef", 3), Chunk("ef gh", 6)]) == RebuiltDocument(
        "ab cd\nef gh", "offsets", 3
    )


def test_much_that_repeats_itself_is_in_doubt_if_nothing_but_offsets_tells_the_order() -> None:
    chunks = [Chunk("ha " * 9 + "ha", 21 * index) for index in range(9)]
    whole = rebuild([*chunks[1:], chunks[0]])
    assert (whole.text, whole.method, whole.gaps) == ("ha " * 65 + "ha", "offsets", ((197, 197),))


def test_what_the_caller_doubts_is_in_doubt() -> None:
    assert rebuild(PARTS, doubtful=True) == RebuiltDocument(MINUTES, "offsets", 5, END)
    assert rebuild([Chunk(MINUTES)], doubtful=True) == RebuiltDocument(MINUTES, "order", 1, END)


def _without_offsets(chunks: list[Chunk]) -> list[Chunk]:
    return [Chunk(chunk.text) for chunk in chunks]


def _numbered(chunks: list[Chunk]) -> list[Chunk]:
    return [Chunk(chunk.text, chunk.start, (PARTS.index(chunk),)) for chunk in chunks]


STORED_AGAIN = {
    "all of it": (PARTS * 2, True),
    "all of it, ten times": (PARTS * 10, True),
    "all of it, handed over by offset": ([part for part in PARTS for _ in range(2)], False),
    "the first half": (PARTS + PARTS[:3], True),
    "the second half": (PARTS[2:] + PARTS, False),
    "one chunk": ([*PARTS, PARTS[1]], True),
    "one chunk, next to itself": ([*PARTS[:2], *PARTS[1:]], False),
    "the last chunk": ([*PARTS, PARTS[-1]], False),
}


@pytest.mark.parametrize("name", STORED_AGAIN)
def test_what_was_stored_again_counts_once(name: str) -> None:
    """A short one may be of a refrain, or one right after itself; if all chunks are numbered none may."""
    chunks, sure = STORED_AGAIN[name]
    assert rebuild(chunks) == RebuiltDocument(MINUTES, "offsets", 5, () if sure else END)
    assert rebuild(_numbered(chunks)) == RebuiltDocument(MINUTES, "offsets", 5)
    numbers = [Chunk(chunk.text, None, chunk.place) for chunk in _numbered(chunks)]
    assert rebuild(numbers).chunks == 5
    assert "".join(rebuild(numbers).text.split()).count("Okafor") == 1


def test_a_splitter_does_not_step_back_far() -> None:
    """The last chunk was found where the first is, or that was stored again: the overlap may have been ten."""
    chunks = [Chunk("aaaabba", 0), Chunk("c", 9), Chunk("aaaabba", 0)]
    assert rebuild(chunks) == RebuiltDocument("aaaabba\n\nc", "offsets", 2, ((10, 10),))
    chunks = [Chunk("aaaabba", 0), Chunk("cdcddcd", 9), Chunk("ee", 17), Chunk("ff", 20), Chunk("aaaabba", 0)]
    assert rebuild(chunks) == RebuiltDocument("aaaabba\n\ncdcddcd\nee\nff", "offsets", 4)
    chunks += [Chunk("cdcddcd", 9), Chunk("cdcddcd", 9)]
    assert rebuild(chunks) == RebuiltDocument("aaaabba\n\ncdcddcd\nee\nff", "offsets", 4, ((22, 22),))


def test_white_space_may_be_found_twice_at_one_place() -> None:
    blank = Chunk(" ", 36)
    assert rebuild([*PARTS[:2], blank, blank, *PARTS[2:]]) == RebuiltDocument(MINUTES, "offsets", 6)


def test_a_document_that_was_stored_twice_without_offsets_counts_once() -> None:
    once = rebuild(_without_offsets(PARTS))
    assert rebuild(_without_offsets(PARTS * 2)) == RebuiltDocument(once.text, "order", 5, (_end(once),))
    assert rebuild(_without_offsets([*PARTS, PARTS[1]])).chunks == 6  # who knows?


@pytest.mark.parametrize("start", [0, None])
@pytest.mark.parametrize("times", [2, 9])
def test_one_chunk_that_was_stored_again_may_be_a_refrain(start: int | None, times: int) -> None:
    whole = rebuild([Chunk(MINUTES, start)] * times)
    assert whole == RebuiltDocument(MINUTES, "order" if start is None else "offsets", 1, END)


LINES = "same line\n" * 800
REPETITIVE = {
    "where they are": [Chunk(LINES[at : at + 99], at) for at in range(0, 8000, 100)],
    "where they are, overlapping": [Chunk(LINES[at : at + 99], at) for at in range(0, 8000, 80)],
    "all at the beginning": [Chunk(LINES[:99], 0) for _ in range(80)],
    "all at the beginning, but for the last": [*[Chunk(LINES[:99], 0) for _ in range(80)], Chunk("The end.", 8000)],
    "all at the beginning, numbered": [Chunk(LINES[:99], 0, (index,)) for index in range(80)],
    "each a line further on": [Chunk(LINES[:99], index * 10) for index in range(80)],
    "each four lines further on": [Chunk(LINES[:99], index * 40) for index in range(80)],
    "nowhere": [Chunk(LINES[:99]) for _ in range(80)],
    "nowhere, numbered": [Chunk(LINES[:99], None, (index,)) for index in range(80)],
    "nowhere, two lines each": [Chunk(LINES[:19]) for _ in range(400)],
}


@pytest.mark.parametrize("chunks", REPETITIVE.values(), ids=REPETITIVE)
def test_a_repetitive_text_does_not_lose_most_of_itself(chunks: list[Chunk]) -> None:
    whole = rebuild(chunks)
    assert whole.text.count("same line") >= 790
    assert not _is_exact(whole) or whole.text.split() == LINES.split()


NUMBERS: dict[str, tuple[str, list[Any]]] = {
    "numbers": ("chunk_index", [0, 1, 2]),
    "from one": ("chunk", [1, 2, 3]),
    "digits": ("seq", ["8", "9", "10"]),
    "floats, as some stores hand them over": ("index", [0.0, 1.0, 2.0]),
    "pages": ("page", [0, 1, 2]),
    "page labels": ("page_label", ["1", "2", "3"]),
}
TEXTS = ("The crane was old.", "Tea was served.", "Nobody came.")


@pytest.mark.parametrize(("key", "values"), NUMBERS.values(), ids=NUMBERS)
def test_chunks_are_joined_in_the_order_of_their_numbers(key: str, values: list[Any]) -> None:
    rows = [(text, {key: value, "source": "minutes"}) for text, value in zip(TEXTS, values, strict=True)]
    gaps = ((0, 0),) if values[0] == "8" else ()  # numbers begin with 0 or 1
    whole = rebuild(chunks_of(rows[::-1], start_key="start"))
    assert replace(whole, pages=()) == RebuiltDocument("\n".join(TEXTS), "order", 3, gaps)


MISSING: dict[str, tuple[list[dict[str, Any]], tuple[tuple[int, int], ...]]] = {
    "in the middle": ([{"chunk": 0}, {"chunk": 1}, {"chunk": 3}], ((34, 34),)),
    "at the beginning": ([{"chunk": 2}, {"chunk": 3}, {"chunk": 4}], ((0, 0),)),
    "twice": ([{"chunk": 0}, {"chunk": 4}, {"chunk": 9}], ((18, 18), (34, 34))),
    "a page": ([{"page": 0}, {"page": 0}, {"page": 2}], ((34, 34),)),
    "chunks on the next page": ([{"page": 0, "chunk": 0}, {"page": 0, "chunk": 1}, {"page": 1, "chunk": 0}], ()),
    "chunks on a page": ([{"page": 0, "chunk": 0}, {"page": 0, "chunk": 2}, {"page": 1, "chunk": 0}], ((18, 18),)),
    "an empty page": ([{"page": 0, "chunk": 0}, {"page": 2, "chunk": 1}, {"page": 2, "chunk": 2}], ()),
    "numbers of one alone": ([{"chunk": 0}, {"chunk": 5}, {}], ()),
    "what only looks like numbers": ([{"page_label": "i"}, {"page_label": "ii"}, {"page_label": "7"}], ()),
}


@pytest.mark.parametrize(("metadata", "gaps"), MISSING.values(), ids=MISSING)
def test_a_number_that_is_missing_is_a_gap_of_unknown_length(metadata: list[dict[str, Any]], gaps: Any) -> None:
    rows = list(zip(TEXTS, metadata, strict=True))
    whole = rebuild(chunks_of(rows, start_key="start"))
    assert replace(whole, pages=()) == RebuiltDocument("\n".join(TEXTS), "order", 3, gaps)


def test_a_number_that_is_missing_is_a_gap_although_offsets_meet() -> None:
    """A refrain was hidden, and the chunk after it found in its place."""
    chunks = [Chunk(part.text, part.start, (index + (index > 2),)) for index, part in enumerate(PARTS)]
    assert rebuild(chunks) == RebuiltDocument(MINUTES, "offsets", 5, ((69, 69),))
    assert rebuild([Chunk("ab", 0, (0,)), Chunk("cd", 3, (2,))]) == RebuiltDocument("ab\ncd", "offsets", 2, ((2, 3),))


PAGES = [[("The crane was old.", 0), ("Tea was served.", 19)], [("Ms Okafor", 0), ("chaired it.", 10), ("No.", 22)]]
PAGED = "The crane was old.\nTea was served.\nMs Okafor\nchaired it.\nNo."


@pytest.mark.parametrize("numbered", [True, False])
def test_offsets_may_begin_again_on_each_page(numbered: bool) -> None:
    chunks = [
        Chunk(text, start, (number,) if numbered else ()) for number, page in enumerate(PAGES) for text, start in page
    ]
    assert rebuild(chunks) == RebuiltDocument(PAGED, "order", 5)
    if numbered:
        assert rebuild(chunks[::-1]) == RebuiltDocument(PAGED, "order", 5)
    del chunks[3]
    assert rebuild(chunks) == RebuiltDocument(PAGED.replace("\nchaired it.\n", "\n\n"), "order", 4, ((44, 57),))


def test_a_page_that_lacks_its_beginning_says_so() -> None:
    pages = [("The crane was old.", 0), ("Tea.", 20), ("chaired it.", 10), ("No.", 22), ("It rained.", 9)]
    chunks = [Chunk(text, start, (page,)) for (text, start), page in zip(pages, (0, 0, 1, 1, 2), strict=True)]
    gaps = ((25, 35), (51, 60))
    assert rebuild(chunks) == RebuiltDocument(
        "The crane was old.\n\nTea.\nchaired it.\nNo.\nIt rained.", "order", 5, gaps
    )


def test_offsets_that_no_order_explains_make_no_gaps() -> None:
    chunks = [PARTS[3], PARTS[1], PARTS[4], Chunk("somebody else wrote this", 30), PARTS[2], PARTS[0]]
    whole = rebuild(chunks)
    assert (whole.method, whole.gaps) == ("order", ())
    assert all(chunk.text in whole.text for chunk in chunks)
    whole = rebuild([Chunk(chunk.text, chunk.start, (number,)) for number, chunk in enumerate(chunks)])
    assert (whole.method, whole.gaps) == ("order", ())


def test_without_any_order_the_store_s_own_is_taken() -> None:
    assert rebuild([Chunk(text) for text in TEXTS]) == RebuiltDocument("\n".join(TEXTS), "order", 3)


def test_what_neighbours_share_is_written_once() -> None:
    chunks = ["The crane was old. Tea was served.", "Tea was served. Ms Okafor chaired it.", "Nobody came."]
    assert rebuild([Chunk(text) for text in chunks]) == RebuiltDocument(
        "The crane was old. Tea was served. Ms Okafor chaired it.\nNobody came.", "order", 3
    )


NOT_SHARED = {
    "too little": ("It was nine.", "nine. Tea was served."),
    "more than half": ("Tea was served at nine.", "was served at nine. Tea."),
    "a text that overlaps in two ways": (
        MINUTES + " Tea was served. Tea was served.",
        "Tea was served. Tea was served. X",
    ),
    "a text that goes on like this": ("The end.\nha ha ha ha ha", "ha ha ha ha ha ha ha ha ha ha"),
}


@pytest.mark.parametrize(("left", "right"), NOT_SHARED.values(), ids=NOT_SHARED)
def test_what_may_be_no_overlap_is_not_taken_for_one(left: str, right: str) -> None:
    assert rebuild([Chunk(left), Chunk(right)]).text == f"{left}\n{right}"


@given(st.lists(st.text("ab \n", max_size=60), max_size=8))
def test_chunks_without_offsets_are_all_in_the_document(texts: list[str]) -> None:
    whole = rebuild([Chunk(text) for text in texts])
    assert whole.method == "order"
    assert all(text in whole.text for text in texts)


def test_empty_chunks_have_a_place_and_nothing_else() -> None:
    assert rebuild([Chunk("", 0), *PARTS, Chunk(""), Chunk("", 7_000)]) == RebuiltDocument(MINUTES, "offsets", 5)
    assert rebuild([Chunk("ab", None, (0,)), Chunk("", None, (1,)), Chunk("cd", None, (2,))]) == RebuiltDocument(
        "ab\ncd", "order", 2
    )
    assert rebuild([]) == rebuild([Chunk(""), Chunk("", 3, (1,))]) == RebuiltDocument("", "order", 0)


def test_one_chunk_is_a_document_if_it_stands_at_the_beginning() -> None:
    assert rebuild([Chunk(MINUTES, 0)]) == rebuild([Chunk(MINUTES, 4)]) == RebuiltDocument(MINUTES, "offsets", 1)
    assert rebuild([Chunk(MINUTES, 5)]) == RebuiltDocument(MINUTES, "offsets", 1, ((0, 5),))
    assert rebuild([Chunk(MINUTES)]) == RebuiltDocument(MINUTES, "order", 1)


UNICODE = {
    "beyond the first plane": "🏗️ The crane 𝔴𝔞𝔰 old. 👩‍👩‍👧 came, 🫖 was served.",
    "combining marks": "Cafe\u0301 au lait, nai\u0308ve, A\u030angstro\u0308m and e\u0301te\u0301 alike",
    "no white space": "会议由奥卡福女士主持。茶在九点供应。港口没有人来。下雨了。",
    "right to left": "הפגישה הייתה ארוכה. תה הוגש. איש לא בא.",
    "Windows line ends": "The crane was old.\r\nTea was served.\r\n\r\nNobody came.\r\n",
    "odd white space": "The\u00a0crane\u2003was\u3000old.\x0bTea\x0cwas\x85served.\u2028Nobody\tcame.",
    "invisible": "\ufeffThe\u200b crane\u00ad was\u2060 old.",
    "half a character": "The \ud83c crane",
}


@pytest.mark.parametrize("text", UNICODE.values(), ids=UNICODE)
@pytest.mark.parametrize("step", [3, 8])
def test_characters_are_counted_as_python_does(text: str, step: int) -> None:
    assert rebuild(_windows(text, step, 2)) == RebuiltDocument(text, "offsets", len(_windows(text, step, 2)))


@given(plain_texts.filter(bool), plain_texts, st.data())
def test_two_versions_of_a_document_do_not_claim_to_be_one(text: str, other: str, data: st.DataObject) -> None:
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


OFFSETS: dict[Any, int | None] = {
    7: 7,
    0: 0,
    -1: None,
    8.0: 8,
    7.5: None,
    "07": 7,
    "-7": None,
    "٧": None,
    "": None,
    "9" * 5_000: None,
    float("nan"): None,
    float("inf"): None,
    None: None,
}


@pytest.mark.parametrize("value", OFFSETS, ids=lambda value: repr(value)[:9])
def test_an_offset_is_a_number_in_whatever_form(value: Any) -> None:
    assert offset(value) == OFFSETS[value]


@pytest.mark.parametrize("value", [True, False, [7], {}])
def test_anything_else_is_no_offset(value: Any) -> None:
    assert offset(value) is None


def test_offsets_that_a_store_hands_over_as_floats_or_digits_are_offsets() -> None:
    for form in (float, str):
        rows = [(part.text, {"at": form(part.start)}) for part in PARTS if part.start is not None]
        assert rebuild(chunks_of(rows, start_key="at")) == RebuiltDocument(MINUTES, "offsets", 5)


def test_a_label_is_plain_json() -> None:
    label = rebuild([Chunk("The minutes.", 20), Chunk("Tea.", 50)]).label()
    assert json.loads(json.dumps(label)) == label
    assert label == {"method": "offsets", "chunks": 2, "gaps": [[0, 20], [32, 50]], "trimmed": False}
    assert original_label("") == {"method": "original", "chunks": 0, "gaps": [], "trimmed": False}
