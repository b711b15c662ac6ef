"""Indexes that are kept: who waits for whom, and how much memory they may take."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from demo_texts import load_documents
from golden import golden, text_of
from selfroute.documents import index
from selfroute.documents.index import WORD_INDEXES, Index, stems_of

TEXT = "The crane was repaired. " * 300
OTHER = "The ferry was late. " * 300


def taken_apart(text: str, stems: Sequence[str]) -> dict[str, Any]:
    """Return an index as golden.json writes it; of each stem the sentences, and how often each section has it."""
    found = Index(text)
    of_stems = {stem: [sorted(found.holding(stem)), sorted(found.in_sections(stem).items())] for stem in stems}
    return {
        "sentences": [text[start:end] for start, end in found.spans],
        "sizes": found.sizes,
        "sections": found.sections,
        "section_sizes": found.section_sizes,
        "grids": found.grids,
        "blocks": found.blocks,
        "stems": of_stems,
    }


@golden("index")
def test_index(case: dict[str, Any]) -> None:
    """Only what the case states is compared."""
    found = json.loads(json.dumps(taken_apart(text_of(case["text"]), case["is"].get("stems", ()))))
    assert {key: found[key] for key in case["is"]} == case["is"]


@golden("stems_of")
def test_stems_of(case: dict[str, Any]) -> None:
    assert sorted(stems_of(text_of(case["text"]))) == case["is"]


class Making:
    """Makes indexes; each text may have something done before, each time that it is taken apart."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.before: dict[str, list[Callable[[], object]]] = {}

    def __call__(self, text: str) -> Index:
        self.made.append(text)
        if to_do := self.before.get(text):
            to_do.pop(0)()
        return Index(text)


class Asked(str):
    """A text that says when it is looked up."""

    __slots__ = ("looked_up",)

    def __init__(self, _: str) -> None:
        self.looked_up = Event()

    def __hash__(self) -> int:
        self.looked_up.set()
        return super().__hash__()


@pytest.fixture
def making(monkeypatch: pytest.MonkeyPatch) -> Making:
    WORD_INDEXES.clear()
    making = Making()
    monkeypatch.setattr(index, "Index", making)
    return making


def test_kept_of_another_text_waits_for_nobody(making: Making) -> None:
    kept = WORD_INDEXES.of(TEXT)
    begun, go_on = Event(), Event()
    making.before = {OTHER: [lambda: (begun.set(), go_on.wait())]}
    with ThreadPoolExecutor(1) as threads:
        other = threads.submit(WORD_INDEXES.of, OTHER)
        begun.wait()
        assert WORD_INDEXES.of(TEXT) is kept
        assert WORD_INDEXES.of(TEXT + OTHER).sections
        assert not other.done()
        go_on.set()
    assert other.result() is WORD_INDEXES.of(OTHER)


@pytest.mark.parametrize("most", [0, index._MOST], ids=["too large to keep", "kept"])
def test_kept_of_a_text_in_the_making(most: int, making: Making, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "_MOST", most)
    asked = Asked(TEXT)
    with ThreadPoolExecutor(1) as threads:
        waiting = []
        making.before = {
            TEXT: [lambda: (waiting.append(threads.submit(WORD_INDEXES.of, asked)), asked.looked_up.wait())]
        }
        made = WORD_INDEXES.of(TEXT)
    assert waiting[0].result() is made
    assert making.made == [TEXT]
    WORD_INDEXES.of(TEXT)
    assert len(making.made) == (1 if most else 2)


def test_kept_of_a_text_that_failed(making: Making) -> None:
    asked = Asked(TEXT)
    with ThreadPoolExecutor(1) as threads:
        waiting = []

        def fail() -> None:
            waiting.append(threads.submit(WORD_INDEXES.of, asked))
            asked.looked_up.wait()
            raise MemoryError

        making.before = {TEXT: [fail]}
        with pytest.raises(MemoryError):
            WORD_INDEXES.of(TEXT)
    assert waiting[0].result() is WORD_INDEXES.of(TEXT)
    assert making.made == [TEXT, TEXT]


def test_kept_are_the_latest_texts(making: Making, monkeypatch: pytest.MonkeyPatch) -> None:
    lines, third = "a\n" * len(TEXT), TEXT.replace("crane", "quays")
    monkeypatch.setattr(index, "_MOST", Index(TEXT).memory + Index(OTHER).memory)
    for text in (TEXT, lines, OTHER, "".join([TEXT[:9], TEXT[9:]]), OTHER, lines):
        WORD_INDEXES.of(text)
    assert making.made == [TEXT, lines, OTHER, lines]
    for text in (third, OTHER, TEXT):
        WORD_INDEXES.of(text)
    assert making.made[4:] == [third, TEXT]


KINDS = {
    "English": "\n".join(load_documents().values()),
    "lines": "a\n" * 20_000,
    "Chinese": "".join(chr(0x4E00 + at * 7_919 % 20_000) for at in range(20_000)),
    "long words": " ".join(str(number) * 100 + "é" for number in range(1_000)),
    "one word": "crane " * 20_000,
    "many words at once": "a-b,c/d." * 5_000,
}


@pytest.mark.parametrize("kind", KINDS)
def test_index_memory_is_right_within_a_factor_of_two(kind: str) -> None:
    found = Index(KINDS[kind])
    if kind == "English":
        assert found.memory / len(KINDS[kind]) * 10_000_000 < index._MOST, "ten million characters are kept"
    held: list[object] = [KINDS[kind], *(getattr(found, name) for name in Index.__slots__)]
    seen: dict[int, int] = {}
    while held:
        one = held.pop()
        if id(one) in seen:
            continue
        seen[id(one)] = sys.getsizeof(one)
        if isinstance(one, dict):
            held += [*one, *one.values()]
        elif isinstance(one, list | tuple):
            held += one
    assert sum(seen.values()) / 2 < found.memory < sum(seen.values()) * 2
