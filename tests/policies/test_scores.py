"""The two numbers that a graded draft begins with, however it writes them and however it arrives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes import examples
from scenarios import cut
from selfroute.answerability.graded import GradedGate
from selfroute.answerability.scores import Numbers, NumbersReader, numbers_of

NUMBERS = [
    "80 42",
    "80, 42",
    "80,42",
    "80/42",
    "80% / 42%",
    "80 % 42 %",
    "**80 42**",
    "**80** **42**",
    "80 | 42",
    "(80, 42)",
    "[80, 42]",
    "`80 42`",
    "80 - 42",
    "80 \u2013 42",
    "80; 42",
    "80.0 42.0",
    "80/100 42/100",
    "80 out of 100, 42 out of 100",
    "Prospect: 80, confidence: 42",
    "First: 80. Second: 42.",
    "80 and 42",
    "  80 42  ",
    "\n\n80 42",
    "80\u300142",
    "```\n80 42",
]
TEXTS = [
    "",
    "Paris",
    "80",
    "80\nParis",
    "80%\nParis",
    "80 42 17",
    "80 42 17\nParis",
    "1850 42\nParis",
    "1850 was the year.",
    "1850\nThe year is given twice.",
    "80 42 people came\nThat is all.",
    "In 80 of 42 cases",
    "-",
    "101 20\nParis",
    "unanswerable",
    "20 to 30 people\nas it says",
]


@pytest.mark.parametrize("line", NUMBERS)
@pytest.mark.parametrize("rest", ["\nParis", "\n\n \n\nParis", "\r\nParis\nor Rome"])
def test_two_numbers_are_read_however_they_are_written(line: str, rest: str) -> None:
    assert numbers_of(line + rest) == (Numbers(80, 42), rest.lstrip())


@pytest.mark.parametrize("line", NUMBERS)
@pytest.mark.parametrize("rest", ["", "\n", "\r\n", "\n\n \n"])
def test_two_numbers_with_nothing_after_them_are_text(line: str, rest: str) -> None:
    assert numbers_of(line + rest) == (None, line + rest)


def test_two_numbers_in_a_fence_with_nothing_after_it_are_text() -> None:
    assert numbers_of("```\n80 42\n```\n") == (None, "```\n80 42\n```\n")
    assert numbers_of("```\n80 42\n```\nParis") == (Numbers(80, 42), "Paris")


@pytest.mark.parametrize("text", TEXTS)
def test_anything_else_is_text(text: str) -> None:
    assert numbers_of(text) == (None, text)


@pytest.mark.parametrize(("line", "numbers"), [("0 0", (0, 0)), ("100 100", (100, 100)), ("5 0", (5, 0))])
def test_the_ends_of_the_scale_are_numbers(line: str, numbers: tuple[int, int]) -> None:
    assert numbers_of(f"{line}\nunanswerable") == (Numbers(*numbers), "unanswerable")


@given(
    text=st.sampled_from([f"{line}\nParis 1 2" for line in NUMBERS] + TEXTS) | st.text("80 42,%\n*Pa/-.", max_size=30),
    cuts=st.lists(st.integers(0, 30), max_size=6),
)
def test_the_pieces_do_not_matter(text: str, cuts: list[int]) -> None:
    places = sorted({cut for cut in cuts if cut < len(text)})
    reader = NumbersReader()
    pieces = [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
    shown = "".join([*map(reader.feed, pieces), reader.end()])
    assert (reader.numbers, shown) == numbers_of(text)


@pytest.mark.parametrize("text", ["Pa", "80 42 pe", "1 2 3 4 5", "The", "In 80 of 42 c"])
def test_what_cannot_become_two_numbers_flows_at_once(text: str) -> None:
    reader = NumbersReader()
    assert "".join(map(reader.feed, text)) == text
    assert reader.numbers is None


def test_the_numbers_are_known_as_soon_as_the_text_after_them_begins() -> None:
    reader = NumbersReader()
    assert [reader.feed(piece) for piece in ("80", " 4", "2", "\n", " \n")] == [""] * 5
    assert reader.numbers is None
    assert (reader.feed("P"), reader.numbers) == ("P", Numbers(80, 42))


DRAFTS = st.lists(
    st.sampled_from(
        ["80 42", "5 0", "12 and 15", "\n", " ", "**", "```", "Paris", "unanswerable", "The answer is:", "-"]
    ),
    max_size=6,
).map("".join)


@examples(200)
@given(
    draft=DRAFTS, cuts=st.lists(st.integers(0, 40), max_size=8), kind=st.sampled_from(["complete", "cut", "refused"])
)
def test_a_graded_draft_is_judged_alike_however_it_is_cut_into_pieces(draft: str, cuts: list[int], kind: Any) -> None:
    def judged(pieces: tuple[str, ...]) -> tuple[Any, str]:
        gate = GradedGate(doubt_below=50, stop_below=20)
        shown = "".join([*map(gate.feed, pieces), gate.end(kind)])
        return gate.verdict, shown

    assert judged(cut(draft, cuts)) == judged((draft,)) == judged(tuple(draft))
    verdict, shown = judged((draft,))
    if verdict and verdict.signal == "empty":
        assert verdict.ruling is None
    if verdict and verdict.prospect is None and verdict.signal == "answered":
        assert shown == draft
