"""Whole documents and walls over HTTP: a real Chroma server on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hosts_documents import (
    CHROMA,
    ITS_OWN,
    MINE,
    MODES,
    OTHER,
    Holds,
    Together,
    cut,
    house,
    reads,
    refuses,
    two_tenants,
    watched,
    whole,
)
from langchain_stores import text_of
from llamaindex_stores_parts import a_chroma_server

every_mode = pytest.mark.parametrize("mode", MODES)
in_chroma = pytest.mark.parametrize("kind", CHROMA)


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Two clients of a Chroma server."""
    with a_chroma_server(tmp_path_factory.mktemp("chroma")) as both:
        yield both


@every_mode
@in_chroma
async def test_chroma_server_gives_documents_word_for_word(clients: Any, kind: str, mode: str) -> None:
    texts = {name: text_of(owner) for name, owner in (("ash.md", MINE), ("birch.md", OTHER))}
    pieces = [piece for name, text in texts.items() for piece in cut(text, name, shelf="north")]
    home = house(kind, pieces, client=clients[0])
    documents = home.documents()
    pipeline = home.pipeline(home.search(k=18), documents)
    seen = watched(home.collection)
    for _ in range(2):
        answered = await pipeline.ask(mode)
        assert {one.name: one.text for one in answered.documents} == texts
        assert [(one.about, one.label) for one in answered.documents] == [({"shelf": "north"}, whole(9))] * 2
    assert seen == [True, True, False, False]
    home.add(cut(text_of(MINE, 10), "ash.md", shelf="north")[9:])
    assert text_of(MINE, 10) in (await home.pipeline(home.search(k=19), documents).ask(mode)).read


@every_mode
@in_chroma
async def test_the_wall_holds(clients: Any, kind: str, mode: str) -> None:
    condition = Together((Holds("tenant", [MINE, "Cedar"], "in"), Together((ITS_OWN, Holds("a", 1)), any=True)))
    home = house(kind, two_tenants(), client=clients[0])
    hidden, same = home.hidden(home.search(condition)), home.again(clients[1])
    await reads(home.built(condition), mode)
    await reads(home.pipeline(hidden, home.documents(condition)), mode)
    await reads(home.pipeline(same.search(condition)), mode)  # another client, and the same collection
    await refuses(home.pipeline(hidden), mode, "in tenant")
