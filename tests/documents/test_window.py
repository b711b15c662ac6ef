"""Laws of fitting passages and documents to a window."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from selfroute.documents.window import fit, fit_passages, prompt_limit, room_in, trim
from selfroute.usage import count_tokens

COUNTERS: dict[str, Callable[[str], int]] = {
    "quarters": count_tokens,
    "characters": len,
    "words": lambda text: len(text.split()),
    "bytes": lambda text: len(text.encode()),
    "uneven": lambda text: sum(3 if character in "aeiou" else 1 for character in text),
}
counters = st.sampled_from(sorted(COUNTERS)).map(COUNTERS.__getitem__)
words = st.text(st.sampled_from("abcdeé是 \n"), min_size=1, max_size=9)
texts = st.lists(words, max_size=40).map(" ".join)
every_counter = pytest.mark.parametrize("count", COUNTERS.values(), ids=COUNTERS)


@given(st.lists(texts, max_size=5), st.lists(texts, max_size=3), st.integers(0, 120), counters)
def test_documents_never_go_above_the_budget(
    documents: list[str], passages: list[str], budget: int, count: Any
) -> None:
    parts = fit(documents, passages=passages, budget=budget, count=count)
    assert sum(count(part.text) for part in parts) <= budget
    assert [part.index for part in parts] == sorted({part.index for part in parts})
    assert all(part.text == documents[part.index] for part in parts if not part.trimmed)
    for part in parts:
        assert part.text == documents[part.index][part.start : part.start + len(part.text)]
        assert part.text or not part.trimmed
    assert [part.trimmed for part in parts[:-1]] == [False] * len(parts[:-1])


@given(st.lists(texts, max_size=5), st.lists(texts, max_size=3), counters)
def test_documents_that_fit_are_all_taken_whole(documents: list[str], passages: list[str], count: Any) -> None:
    for budget in (None, sum(map(count, documents))):
        parts = fit(documents, passages=passages, budget=budget, count=count)
        assert [(part.index, part.text, part.trimmed) for part in parts] == [
            (index, text, False) for index, text in enumerate(documents)
        ]


@given(texts, texts, texts, st.integers(0, 60), counters)
def test_the_best_passage_is_kept_when_it_fits(before: str, passage: str, after: str, more: int, count: Any) -> None:
    passage = f"<{passage.strip()}>"
    text = f"{before} {passage} {after}"
    part = trim(text, passages=["elsewhere", passage], budget=count(passage) + more, count=count)
    assert passage in part
    assert count(part) <= count(passage) + more


@every_counter
def test_the_best_passage_is_kept_in_a_text_of_uneven_density(count: Any) -> None:
    passage = "Ms Okafor, in the chair, opened it at 9."
    text = "a b c d e f g h i j " * 200 + passage + " extraordinarily-long-compound-words" * 200
    assert passage in trim(text, passages=[passage], budget=count(passage), count=count)


@every_counter
def test_several_passages_are_kept_when_they_fit_together(count: Any) -> None:
    first, second = "Ms Okafor took the chair.", "Mr Lin kept the minutes."
    text = "word " * 300 + first + " word" * 20 + " " + second + " word" * 300
    part = trim(text, passages=[second, first], budget=count("word " * 100), count=count)
    assert first in part
    assert second in part


@given(texts, st.integers(0, 40), counters)
def test_a_passage_that_is_nowhere_keeps_the_beginning(text: str, budget: int, count: Any) -> None:
    part = trim(text, passages=["nowhere at all!"], budget=budget, count=count)
    assert text.strip().startswith(part.strip())


@every_counter
def test_a_trimmed_text_is_about_as_long_as_it_may_be(count: Any) -> None:
    text = "The committee met again in the hall. " * 400
    part = trim(text, passages=["met again"], budget=500, count=count)
    assert 450 <= count(part) <= 500


@every_counter
def test_words_are_not_cut_in_two(count: Any) -> None:
    text = " ".join(f"<{n}>" for n in range(2000))
    part = trim(text, passages=["<1000>"], budget=300, count=count)
    assert all(word[0] + word[-1] == "<>" for word in part.split())


def test_a_text_without_white_space_is_cut_all_the_same() -> None:
    assert count_tokens(trim("是" * 10_000, passages=["是是"], budget=100, count=count_tokens)) in range(90, 101)


@given(st.lists(st.integers(0, 50)), st.integers(0, 200))
def test_passages_are_taken_whole_and_nearest_first(sizes: list[int], budget: int) -> None:
    taken = fit_passages(sizes, budget=budget, size=sum)
    assert taken == sizes[: len(taken)]
    assert sum(taken) <= budget
    assert len(taken) == len(sizes) or sum(taken) + sizes[len(taken)] > budget


@given(st.integers(1_000, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_longer_question_or_history_leaves_less_room_but_some(window: int, around: int, more: int) -> None:
    rooms = [room_in(window), room_in(window, around=around), room_in(window, around=around + more)]
    assert rooms == sorted(rooms, reverse=True)
    assert window // 10 <= rooms[-1] <= rooms[0] <= window
    assert rooms[1] + around <= prompt_limit(window) <= window or rooms[1] == window // 10


def test_most_long_questions_leave_the_same_room_so_that_documents_are_trimmed_alike() -> None:
    assert len({room_in(128_000, around=around) for around in range(200)}) == 1
    assert len({room_in(128_000, around=around) for around in range(10_000)}) <= 5


def test_counting_a_long_text_is_not_repeated_without_need() -> None:
    calls = 0

    def count(text: str) -> int:
        nonlocal calls
        calls += 1
        return len(text.split())

    assert trim("a bb ccc dddd " * 50_000, passages=["dddd a"], budget=20_000, count=count)
    assert calls < 12


@every_counter
def test_passages_near_each_other_are_read_in_the_same_stretch(count: Any) -> None:
    marks = [f"<{number}>" for number in range(400)]
    text = " ".join(f"{mark} some words of its own" for mark in marks)
    stretches = [trim(text, passages=[mark], budget=count(text) // 4, count=count) for mark in marks]
    assert all(mark in stretch for mark, stretch in zip(marks, stretches, strict=True))
    assert len(set(stretches)) <= 30  # of 400, so that a provider's prompt cache is hit
