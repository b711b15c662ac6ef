"""One set of laws over all stores: what any store holds is read whole, in order, and behind its wall."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from selfroute.errors import ConfigurationError, DocumentNotFoundError
from store_cases import CASES, Case, Piece, cut, missing, numbered, text_of
from store_cases.base import ANSWER
from store_cases.in_llamaindex import LlamaIndexCase, page_of

HOSTILE: tuple[str, ...] = (
    "o'hara's \"notes\".txt",
    "x' OR '1'='1",
    "' OR '1'='1' OR 'a'='",
    'x" or "1" == "1',
    "north' --",
    "a; drop table x; --",
    "x'); DELETE FROM chunks; --",
    "x\\' OR 1=1 --",
    "$eq",
    '{"$ne": ""}',
    "$1 $value",
    ":name",
    "%",
    "100%s%(x)s",
    "a_b",
    "*",
    ".*",
    "a?b",
    "[a-z]",
    "{x}",
    "{{ 7 * 7 }}",
    "C:\\dir\\new\\x",
    "ends in a backslash\\",
    "a\nb\tc.txt",
    "carriage\rreturn",
    "a,b|c",
    "a.b[0].c",
    "a b  c ",
    "null",
    "None",
    "true",
    "42",
    "4.2e1",
    "A.TXT",
    "a.txt",
    "Протокол – 会議 🗒️",
    "caf\u00e9.txt",
    "cafe\u0301.txt",
    "ʼmodifier＇fullwidth",
    "L" * 5_000,
)


def _cases(kinds: Iterable[type[Case]] = CASES) -> list[Any]:
    marks = {kind: [pytest.mark.matrix] if kind.heavy else [] for kind in kinds}
    ignored = {kind: [pytest.mark.filterwarnings(f"ignore:{each}") for each in kind.ignored] for kind in marks}
    return [pytest.param(kind, id=kind.name, marks=[*marks[kind], *ignored[kind]]) for kind in marks]


@pytest.fixture(params=_cases())
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Case]:
    kind: type[Case] = request.param
    if absent := missing(kind):
        pytest.skip(f"{', '.join(absent)} is not installed")
    opened = kind(tmp_path)
    yield opened
    opened.close()


def test_store_reads_word_for_word(store: Case) -> None:
    pieces = cut(numbered("minutes", 40))
    shuffled = random.Random(7).sample(pieces, len(pieces))  # noqa: S311
    store.add([*shuffled, *cut(numbered("another"), source="another")])
    read = store.reader().read(pieces[3])
    assert (read.text, read.label["method"], read.label["gaps"]) == (text_of(pieces), "offsets", [])


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_store_behind_a_routed_answer(store: Case, mode: str) -> None:
    pieces = cut(numbered("minutes"))
    store.add(pieces)
    routed = store.routed(mode)
    assert (routed.route, routed.answer) == ("long_context", ANSWER)
    assert text_of(pieces).strip() in routed.prompt


def check_filters(store: Case) -> None:
    """Skip the laws of filters for a store whose search ignores them: other tests see each filter refused."""
    if not store.filters("north"):
        pytest.skip("its search ignores filters")


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_store_filter_holds_on_both_steps(store: Case, mode: str) -> None:
    check_filters(store)
    ours = cut(numbered("ours"), tenant="north")
    store.add([*cut(numbered("theirs"), tenant="south"), *ours])
    for name, condition in store.filters("north").items():
        routed = store.routed(mode, within=condition)
        assert text_of(ours).strip() in routed.prompt, name
        assert "theirs" not in routed.prompt, name


def test_store_of_two_tenants(store: Case) -> None:
    check_filters(store)
    texts = {tenant: cut(numbered(tenant), tenant=tenant) for tenant in ("north", "south")}
    mixed = [piece for pair in zip(*texts.values(), strict=False) for piece in pair]
    store.add([*mixed, *(piece for pieces in texts.values() for piece in pieces if piece not in mixed)])
    for tenant, pieces in texts.items():
        for name, condition in store.filters(tenant).items():
            ways = ({"within": condition}, {"declared": condition}, {"within": condition, "declared": condition})
            for way in ways:
                read = store.reader(**way).read(pieces[0])
                assert read.text == text_of(pieces), (tenant, name, list(way))


def test_store_hides_what_is_behind_the_wall(store: Case) -> None:
    check_filters(store)
    pieces = cut(numbered("theirs"), source="theirs", tenant="south")
    store.add([*pieces, *cut(numbered("ours"), source="ours", tenant="north")])
    for condition in store.filters("north").values():
        reader = store.reader(within=condition)
        with pytest.raises((DocumentNotFoundError, ConfigurationError)):
            reader.read(pieces[0])


def test_store_of_hostile_sources(store: Case) -> None:
    texts = {source: cut(numbered(f"number {n}", 3), source=source) for n, source in enumerate(HOSTILE)}
    condition = next(iter(store.filters("north").values()), None)
    theirs = [Piece(f"theirs {n}", source, "south", 500) for n, source in enumerate(HOSTILE if condition else ())]
    store.add([*(piece for pieces in texts.values() for piece in pieces), *theirs])
    reader = store.reader(within=condition)
    wrong = {}
    for source, pieces in texts.items():
        try:
            found = reader.read(pieces[0]).text
        except Exception as error:  # noqa: BLE001 - all that went wrong is shown at once
            found = repr(error)
        if found != text_of(pieces):
            wrong[source[:40]] = found[:200]
    assert not wrong


@pytest.mark.parametrize("store", _cases(kind for kind in CASES if issubclass(kind, LlamaIndexCase)), indirect=True)
def test_store_of_pages(store: LlamaIndexCase) -> None:
    """Pages of a file are documents of their own to LlamaIndex; whatever the file is called, it is read whole."""
    names = HOSTILE[:-1]
    nodes = [
        page_of(f"Page {page} of {number}.", f"/in/{name}", page, tenant="north" if page < 3 else "south")
        for page in (1, 2, 3)
        for number, name in enumerate(names)
    ]
    store.index.insert_nodes(nodes)
    reader, north = store.reader(), store.reader(within=store.filters("north")["=="])
    for number, _ in enumerate(names):
        found = nodes[number]
        if not reader.stored._store.can_find("file_path", found.metadata["file_path"]):
            continue
        assert reader.read_node(found).text.split("\n") == [f"Page {page} of {number}." for page in (1, 2, 3)]
        assert north.read_node(found).text.split("\n") == [f"Page {page} of {number}." for page in (1, 2)]


@pytest.mark.parametrize("store", _cases(kind for kind in CASES if kind.typed), indirect=True)
def test_store_tells_numbers_from_digits(store: Case) -> None:
    for number in (7, 7.5):
        texts = {source: cut(numbered(f"{source!r}", 3), source=source) for source in (number, str(number))}
        for source, pieces in texts.items():
            store.add(pieces)
            assert store.reader().read(pieces[0]).text == text_of(pieces), repr(source)


@pytest.mark.matrix
@pytest.mark.timeout(600)
def test_store_of_many_chunks(store: Case) -> None:
    text = "".join(f"{n:05d} fills a line to forty characters.\n" for n in range(store.many))
    pieces = cut(text, size=len(text) // store.many)
    assert len(pieces) == store.many
    for at in range(0, store.many, 4_000):
        store.add(pieces[at : at + 4_000])
    condition = next(iter(store.filters("north").values()), None)
    read = store.reader(within=condition).read(pieces[0])
    assert (len(read.text), read.label["chunks"], read.label["gaps"]) == (len(text), store.many, [])
    assert read.text == text


def test_store_after_deleting_and_adding(store: Case) -> None:
    pieces = cut(numbered("minutes", 30))
    ids = store.add(pieces)
    reader, middle = store.reader(), slice(8, 12)
    assert reader.read(pieces[0]).text == text_of(pieces)
    store.delete(ids[middle])
    without = reader.read(pieces[0])
    assert not any(piece.text in without.text for piece in pieces[middle])
    assert without.label["gaps"] == [[pieces[8].start, pieces[12].start]]
    store.add(pieces[middle])
    again = reader.read(pieces[0])
    assert (again.text, again.label["gaps"]) == (text_of(pieces), [])


def test_store_in_threads(store: Case) -> None:
    texts = {f"minutes {n}": cut(numbered(f"minutes {n}", 20), source=f"minutes {n}") for n in range(8)}
    store.add([piece for pieces in texts.values() for piece in pieces])
    reader = store.reader()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda pieces: reader.read(pieces[0]).text, [*texts.values()] * 4))
    assert found == [text_of(pieces) for pieces in texts.values()] * 4


def test_store_of_chunks_without_places(store: Case) -> None:
    pieces = [Piece(piece.text.strip()) for piece in cut(numbered("minutes", 20))]
    store.add(pieces)
    if store.ordered:
        read = store.reader().read(pieces[0])
        assert read.label["method"] == "order"
        assert read.text.split() == " ".join(piece.text for piece in pieces).split()
    else:
        with pytest.raises(ConfigurationError, match=r"cannot be put in order: .*index the document again"):
            store.reader().read(pieces[0])


@pytest.mark.parametrize("store", _cases(kind for kind in CASES if kind.not_filters), indirect=True)
def test_store_refuses_another_stores_filter(store: Case) -> None:
    store.add([piece := Piece("Line.")])
    for wrong in (7, ["tenant == 'north'"], *store.not_filters):
        with pytest.raises(ConfigurationError, match=r"takes a .* as filter.*, not a "):
            store.reader(declared=wrong)
        with pytest.raises(ConfigurationError, match=r"takes a .* as filter.*, not a "):
            store.reader(within=wrong).read(piece)


COPIES: dict[str, Any] = {
    "deepcopy": copy.deepcopy,
    "cloudpickle": lambda one: pickle.loads(cloudpickle.dumps(one)),  # noqa: S301
}


@pytest.mark.parametrize("how", COPIES)
def test_store_copied(store: Case, how: str) -> None:
    pieces = cut(numbered("minutes"))
    store.add(pieces)
    reader = store.reader()
    assert reader.read(pieces[0]).text == text_of(pieces)
    if store.copied:
        assert replace(reader, stored=COPIES[how](reader.stored)).read(pieces[0]).text == text_of(pieces)
    else:
        with pytest.raises(Exception, match="pickle"):
            COPIES[how](reader.stored)
