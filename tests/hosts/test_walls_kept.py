"""A question has one wall: that of its retriever when it was asked, however the retriever is changed meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import langchain_wrappers
import llamaindex_wrappers
from hosts_documents import (
    FAR_APART,
    HOSTS,
    ITS_OWN,
    MINE,
    MODES,
    NOTHING_HIDDEN,
    OTHER,
    Holds,
    Pipeline,
    house,
    in_both,
    no_leak,
    of,
    two_tenants,
)
from langchain_stores import text_of
from selfroute.errors import ConfigurationError
from selfroute.policies import Case

OF: dict[str, ModuleType] = dict(zip(HOSTS, (langchain_wrappers, llamaindex_wrappers), strict=True))
every_mode = pytest.mark.parametrize("mode", MODES)
everywhere = pytest.mark.parametrize(
    ("kind", "mode"), [("memory", "sync"), ("chroma", "async"), ("chroma", "stream"), ("memory", "astream")]
)
both_modes = pytest.mark.parametrize("mode", FAR_APART)
every_change = pytest.mark.parametrize(
    ("host", "change"), [(host, name) for host in HOSTS for name in OF[host].CHANGES]
)


def _shared(host: str, kind: str, change: str = "") -> tuple[Any, Any]:
    """A house, and a retriever that others use, too."""
    if (host, kind, change) == ("langchain", "memory", "its filter is changed"):
        pytest.skip("its filters are callables")
    home = house(f"{host} {kind}", two_tenants())
    return home, home.search(ITS_OWN)


def _pipeline(home: Any, retriever: Any, change: Callable[[], None] = lambda: None, **fields: Any) -> Pipeline:
    def draft(_: str) -> tuple[str, ...]:
        change()
        return ("unanswerable",)

    documents = fields.pop("documents", None) or home.documents()
    pipeline: Pipeline = home.pipeline(retriever, documents, model={"draft": draft}, **fields)
    return pipeline


@everywhere
@pytest.mark.parametrize(
    ("host", "around", "change"),
    [(host, around, change) for host in HOSTS for around in OF[host].AROUND for change in OF[host].CHANGES],
)
async def test_change_while_the_draft_runs(host: str, around: str, change: str, kind: str, mode: str) -> None:
    home, search = _shared(host, kind, change)
    pipeline = _pipeline(home, OF[host].AROUND[around](home, search), lambda: OF[host].CHANGES[change](home, search))
    with no_leak(pipeline):
        answered = await pipeline.ask(mode)
    assert answered.read == [text_of(MINE)]
    await pipeline.ask(mode)  # the next question has the new wall
    assert OTHER in pipeline.prompts


@every_mode
@every_change
async def test_change_while_it_searches(host: str, change: str, mode: str) -> None:
    home, search = _shared(host, "chroma", change)
    home.embedding.before = lambda: OF[host].CHANGES[change](home, search)
    pipeline = _pipeline(home, search)
    with no_leak(pipeline):
        answered = await pipeline.ask(mode)
    assert answered.read == [text_of(MINE)]


@both_modes
@every_change
async def test_sections_and_a_policy_stay_behind_the_same_wall(host: str, change: str, mode: str) -> None:
    (home, search), seen = _shared(host, "chroma", change), list[Any]()

    def policy(case: Case) -> bool:
        seen.extend(case.documents() if mode == "sync" else ())
        return True

    options: Any = {"sections": 300, "max_documents": 0, "escalation": policy}
    pipeline = _pipeline(home, search, lambda: OF[host].CHANGES[change](home, search), **options)
    with no_leak(pipeline):
        answered = await pipeline.ask(mode)
    assert OTHER not in "".join(map(repr, seen))
    assert (answered.route, len(pipeline.model.calls), answered.read) == ("sections", 2, [text_of(MINE)])


@both_modes
@in_both("how", ["in place", "replaced"])
async def test_change_of_a_declared_filter(host: str, how: str, mode: str) -> None:
    home, _ = _shared(host, "chroma")
    documents = home.documents(ITS_OWN)

    def change() -> None:
        if host == "langchain":
            in_place, name = (lambda: documents.filter.update(tenant=OTHER)), "filter"
        else:
            in_place, name = (lambda: setattr(documents.filters.filters[0], "value", OTHER)), "filters"
        in_place() if how == "in place" else setattr(documents, name, home.filter(Holds("tenant", OTHER)))

    pipeline = _pipeline(home, home.hidden(home.search(Holds("tenant", [MINE], "in"))), change, documents=documents)
    with no_leak(pipeline):
        assert (await pipeline.ask(mode)).read == [text_of(MINE)]


# Parts that are known by what they are

every_part = pytest.mark.parametrize(("host", "name"), [(host, name) for host in HOSTS for name in OF[host].DROPPING])
DROPPED = "lifts 25 crates"


@everywhere
@every_part
async def test_unknown_part_that_drops_is_refused(host: str, name: str, kind: str, mode: str) -> None:
    """Even if its metadata are those of the others."""
    home = house(f"{host} {kind}", of(MINE))
    retriever, fields = OF[host].DROPPING[name](home, DROPPED)
    pipeline = _pipeline(home, retriever, **fields)
    with no_leak(pipeline, DROPPED), pytest.raises(ConfigurationError, match=r"found, and then dropped.*filters?="):
        await pipeline.ask(mode)
    wall = await pipeline.check(mode)
    assert wall.ok is False
    declared = _pipeline(home, retriever, documents=home.documents(NOTHING_HIDDEN), **fields)
    assert (await declared.ask(mode)).read == [text_of(MINE)]


@both_modes
@pytest.mark.parametrize(
    ("host", "name"), [(host, name) for host in HOSTS for name in OF[host].DROPPING if "masks" not in name]
)
async def test_unknown_part_that_drops_others(host: str, name: str, mode: str) -> None:
    home = house(f"{host} chroma", [*of(MINE), *of("Cedar", "other", tenant=MINE)])
    retriever, fields = OF[host].DROPPING[name](home, "Cedar")
    assert (await _pipeline(home, retriever, **fields).ask(mode)).read[0] == text_of(MINE)


@both_modes
@pytest.mark.parametrize(("host", "name"), [(host, name) for host in HOSTS for name in OF[host].HARMLESS])
async def test_what_a_known_part_drops_hides_nothing(host: str, name: str, mode: str) -> None:
    home = house(f"{host} chroma", of(MINE))
    retriever, fields = OF[host].HARMLESS[name](home)
    pipeline = _pipeline(home, retriever, **fields)
    wall = await pipeline.check(mode)
    assert (wall.ok, pipeline.model.calls) == (True, [])
    assert "no filter hides any chunk" in wall.message
    assert (await pipeline.ask(mode)).read == [text_of(MINE)]
