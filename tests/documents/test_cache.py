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


sizes = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 12), st.sampled_from(["put", "get", "forget"])))


@given(sizes, st.integers(0, 20))
def test_cache_holds_as_much_as_it_may(steps: list[tuple[int, int, str]], room: int) -> None:
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


def test_cache_keeps_a_document_for_five_minutes() -> None:
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


def test_cache_forgets_a_document_through_any_filter() -> None:
    cache = Cache()
    for source in ("minutes", "budget"):
        for through in (ALL, "a", "b"):
            cache.put(source, through, _kept(f"{source} of {through}"))
            assert cache.get(source, through) == _kept(f"{source} of {through}")
    assert (cache.get("minutes", "c"), cache.get("others", "a")) == (None, None)
    cache.forget("minutes")
    assert [bool(cache.get("minutes", through)) for through in (ALL, "a", "b")] == [False] * 3
    assert [bool(cache.get("budget", through)) for through in (ALL, "a", "b")] == [True] * 3
    cache.forget("nothing")
    cache.forget()
    assert _held(cache, ["minutes", "budget"]) == []


@pytest.mark.parametrize("source", ["minutes", None])
def test_cache_keeps_nothing_that_was_to_be_forgotten(source: str | None) -> None:
    cache = Cache()
    before = cache.generation
    cache.forget(source)  # while the document is being read
    cache.put("minutes", ALL, _kept("old"), generation=before)
    assert cache.get("minutes", ALL) is None
    cache.put("minutes", ALL, _kept("new"), generation=cache.generation)
    assert cache.get("minutes", ALL) == _kept("new")
    cache.put("minutes", ALL, _kept("old"), generation=before)
    assert cache.get("minutes", ALL) is None, "either may be the one that is to be forgotten"


def test_cache_in_threads() -> None:
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


def test_ids_digest() -> None:
    assert ids_digest(["a", "b", "c"]) == ids_digest(iter("cab"))
    others = [["a", "b"], ["a", "b", "c", "c"], ["ab", "c"], ["a", "bc"], ["abc"], ["a", "b", "d"], [], ["\ud83c"]]
    stamps = [ids_digest(ids) for ids in [["a", "b", "c"], *others]]
    assert len(set(stamps)) == len(stamps)
