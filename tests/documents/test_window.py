"""Fitting passages and documents to a window: golden results, and what holds for any texts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden import GOLDEN, golden
from selfroute.documents.window import fit, fit_documents, fit_passages, prompt_limit, room_in, room_of, trim
from selfroute.languages.tokens import count_tokens

COUNTERS = {
    "characters": len,
    "words": lambda text: len(text.split()),
    "tokens": count_tokens,
    "uneven": lambda text: sum(3 if character in "aeiou" else 1 for character in text),
}


counters = st.sampled_from(sorted(COUNTERS)).map(COUNTERS.__getitem__)
words = st.text(st.sampled_from("abcdeé是 \n"), min_size=1, max_size=9)
texts = st.lists(words, max_size=40).map(" ".join)
every_counter = pytest.mark.parametrize("count", COUNTERS.values(), ids=COUNTERS)


@golden("trim")
def test_trim(case: dict[str, Any]) -> None:
    text, count = case.get("text", GOLDEN["minutes"]), COUNTERS[case.get("count", "characters")]
    assert trim(text, passages=case["passages"], budget=case["budget"], count=count) == case["is"]


@golden("fit")
def test_fit(case: dict[str, Any]) -> None:
    about: Any = {"passages": case["passages"], "budget": case["budget"], "count": len}
    parts = fit(case["texts"], **about)
    documents = fit_documents(case["texts"], **about, text_of=str, trimmed=lambda _, text, **said: [text, said])
    read = [{"trimmed": True, "read": [part.start, part.start + len(part.text)]} for part in parts]
    assert documents == [
        [part.text, said] if part.trimmed else part.text for part, said in zip(parts, read, strict=True)
    ]
    assert [[part.index, part.start, part.text, part.trimmed] for part in parts] == case["is"]


@golden("room")
def test_room_in(case: list[int]) -> None:
    window, around, prompt, room = case
    assert (prompt_limit(window), room_in(window, around=around)) == (prompt, room)


@golden("room_of")
def test_room_of(case: list[int]) -> None:
    limit, around, room = case
    assert room_of(limit, around=around) == room


@given(st.lists(texts, max_size=5), st.lists(texts, max_size=3), st.integers(0, 120), counters)
def test_fit_never_goes_above_the_budget(documents: list[str], passages: list[str], budget: int, count: Any) -> None:
    parts = fit(documents, passages=passages, budget=budget, count=count)
    assert sum(count(part.text) for part in parts) <= budget
    assert [part.index for part in parts] == sorted({part.index for part in parts})
    assert all(part.text == documents[part.index] for part in parts if not part.trimmed)
    for part in parts:
        assert part.text == documents[part.index][part.start : part.start + len(part.text)]
        assert part.text or not part.trimmed
    assert [part.trimmed for part in parts[:-1]] == [False] * len(parts[:-1])
    for enough in (None, sum(map(count, documents))):
        whole = fit(documents, passages=passages, budget=enough, count=count)
        assert [(part.text, part.trimmed) for part in whole] == [(text, False) for text in documents]


@given(texts, texts, texts, st.integers(0, 60), counters)
def test_trim_keeps_the_best_passage(before: str, passage: str, after: str, more: int, count: Any) -> None:
    passage = f"<{passage.strip()}>"
    text = f"{before} {passage} {after}"
    part = trim(text, passages=["elsewhere", passage], budget=count(passage) + more, count=count)
    assert passage in part
    assert count(part) <= count(passage) + more


@given(st.lists(st.integers(0, 50)), st.integers(0, 200))
def test_fit_passages(sizes: list[int], budget: int) -> None:
    taken = fit_passages(sizes, budget=budget, size=sum)
    assert taken == sizes[: len(taken)]
    assert sum(taken) <= budget
    assert len(taken) == len(sizes) or sum(taken) + sizes[len(taken)] > budget


@given(st.integers(1_000, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_room_in_shrinks_but_some_is_left(window: int, around: int, more: int) -> None:
    rooms = [room_in(window), room_in(window, around=around), room_in(window, around=around + more)]
    assert rooms == sorted(rooms, reverse=True)
    assert window // 10 <= rooms[-1] <= rooms[0] <= window
    assert rooms[1] + around <= prompt_limit(window) <= window or rooms[1] == window // 10


def test_room_in_is_the_same_for_most_questions() -> None:
    assert len({room_in(128_000, around=around) for around in range(200)}) == 1
    assert len({room_in(128_000, around=around) for around in range(10_000)}) <= 5


def test_trim_counts_a_long_text_few_times() -> None:
    calls = 0

    def count(text: str) -> int:
        nonlocal calls
        calls += 1
        return len(text.split())

    assert trim("a bb ccc dddd " * 50_000, passages=["dddd a"], budget=20_000, count=count)
    assert calls < 12


@every_counter
def test_trim_of_near_passages_is_the_same(count: Any) -> None:
    marks = [f"<{number}>" for number in range(400)]
    text = " ".join(f"{mark} some words of its own" for mark in marks)
    stretches = [trim(text, passages=[mark], budget=count(text) // 4, count=count) for mark in marks]
    assert all(mark in stretch for mark, stretch in zip(marks, stretches, strict=True))
    assert len(set(stretches)) <= 30  # of 400, so that a provider's prompt cache is hit
