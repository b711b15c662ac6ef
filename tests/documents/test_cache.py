"""What is kept of the documents that were read, and for how long."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from selfroute.documents import RebuiltDocument
from selfroute.documents.cache import Cache, CachedDocument, ids_digest

ALL = ""  # through no filter


def _kept(text: str, ids: str = "a") -> CachedDocument:
    return CachedDocument(RebuiltDocument(text, "offsets", len(ids)), {"source": "minutes"}, ids_digest(ids))


def _held(cache: Cache, sources: Iterable[Any]) -> list[Any]:
    return [source for source in sources if cache.get(source, ALL)]


class Clock:
    """A clock that is set by hand."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_a_document_is_kept_under_its_source_and_filter() -> None:
    cache = Cache()
    cache.put("minutes", "a", _kept("of a"))
    cache.put("minutes", "b", _kept("of b"))
    assert cache.get("minutes", "a") == _kept("of a")
    assert cache.get("minutes", "b") == _kept("of b")
    assert cache.get("minutes", ALL) is None
    assert cache.get("budget", "a") is None


sizes = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 12), st.sampled_from(["put", "get", "forget"])))


@given(sizes, st.integers(0, 20))
def test_it_never_holds_more_characters_than_it_may_nor_less_than_it_could(
    steps: list[tuple[int, int, str]], room: int
) -> None:
    cache = Cache(room)
    recent: list[tuple[int, int]] = []  # source and size, the one that was asked for last at the end
    for source, size, step in steps:
        before = [one for one in recent if one[0] != source]
        own = [one for one in recent if one[0] == source]
        if step == "get":
            assert bool(cache.get(source, ALL)) == bool(own)
            recent = before + own
        elif step == "forget":
            cache.forget(source)
            recent = before
        else:
            cache.put(source, ALL, _kept("." * size))
            recent = before if size > room else [*before, (source, size)]
            while sum(size for _, size in recent) > room:
                del recent[0]
    assert _held(cache, range(6)) == sorted(source for source, _ in recent)


def test_a_document_is_kept_for_five_minutes_however_often_it_is_asked_for() -> None:
    clock = Clock()
    cache = Cache(characters=20, clock=clock)
    cache.put("minutes", ALL, _kept("." * 10))
    for _ in range(5):
        clock.now += 60
        assert cache.get("minutes", ALL)
    clock.now += 0.5
    assert cache.get("minutes", ALL) is None
    cache.put("minutes", ALL, _kept("." * 10))
    cache.put("budget", ALL, _kept("." * 10))
    assert _held(cache, ["minutes", "budget"]) == ["minutes", "budget"], "what is too old takes no room"


def test_one_document_can_be_forgotten_through_whatever_filter_it_was_read() -> None:
    cache = Cache()
    for source in ("minutes", "budget"):
        for through in (ALL, "a", "b"):
            cache.put(source, through, _kept(source))
    cache.forget("minutes")
    assert [bool(cache.get("minutes", through)) for through in (ALL, "a", "b")] == [False] * 3
    assert [bool(cache.get("budget", through)) for through in (ALL, "a", "b")] == [True] * 3
    cache.forget("nothing")
    cache.forget()
    assert _held(cache, ["minutes", "budget"]) == []


@pytest.mark.parametrize("source", ["minutes", None])
def test_what_was_read_before_it_was_to_be_forgotten_is_not_kept(source: str | None) -> None:
    cache = Cache()
    before = cache.generation
    cache.forget(source)  # while the document is being read
    cache.put("minutes", ALL, _kept("old"), generation=before)
    assert cache.get("minutes", ALL) is None
    cache.put("minutes", ALL, _kept("new"), generation=cache.generation)
    assert cache.get("minutes", ALL) == _kept("new")
    cache.put("minutes", ALL, _kept("old"), generation=before)
    assert cache.get("minutes", ALL) is None, "either may be the one that is to be forgotten"


def test_threads_do_not_get_in_each_other_s_way() -> None:
    """Each reads and writes some documents of its own and one of all; in the end the count is still right."""
    cache, workers = Cache(characters=1_000), 8
    together = threading.Barrier(workers)

    def work(worker: int) -> None:
        together.wait()
        for step in range(300):
            source: Any = "all" if step % 3 == 0 else (worker, step % 5)
            cache.put(source, ALL, _kept(f"{source}" * (step % 7)))
            kept = cache.get(source, ALL)
            assert kept is None or source == "all" or kept.document.text == f"{source}" * (step % 7)
            if step % 11 == 0:
                cache.forget(source)

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, range(workers)))
    for source in range(21):
        cache.put(source, ALL, _kept("." * 100))
    assert _held(cache, range(21)) == list(range(11, 21))


def test_a_stamp_tells_one_set_of_chunks_from_another() -> None:
    assert ids_digest(["a", "b", "c"]) == ids_digest(iter("cab"))
    others = [["a", "b"], ["a", "b", "c", "c"], ["ab", "c"], ["a", "bc"], ["abc"], ["a", "b", "d"], [], ["\ud83c"]]
    stamps = [ids_digest(ids) for ids in [["a", "b", "c"], *others]]
    assert len(set(stamps)) == len(stamps)
