"""What the retriever may not see, the second step does not read: two tenants who call their documents alike.

Whatever hides the other tenant, the outcome is right or a loud error; no prompt ever holds the other's text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.documents import Document as LangChainDocument
from llama_index.core import Document as LlamaIndexDocument
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import QueryBundle

from hosts_documents import (
    CHROMA,
    FAR_APART,
    FETCHED,
    ITS_OWN,
    KINDS,
    MINE,
    MODES,
    NOTHING_HIDDEN,
    ORIGINAL,
    OTHER,
    QUESTION,
    Condition,
    Holds,
    Piece,
    Pipeline,
    Together,
    apart,
    cut,
    house,
    in_both,
    in_turn,
    no_leak,
    of,
    reads,
    refuses,
    shared,
    two_tenants,
    watched,
    whole,
)
from langchain_stores import text_of

every_mode = pytest.mark.parametrize("mode", MODES)
everywhere = in_turn(KINDS)
everywhere_known = in_turn(["memory", "chroma"])
both_modes = pytest.mark.parametrize("mode", FAR_APART)
kinds = pytest.mark.parametrize("kind", ["memory", "chroma"])
every_kind = pytest.mark.parametrize("kind", KINDS)
in_chroma = pytest.mark.parametrize("kind", CHROMA)
THEIRS = Holds("tenant", OTHER)
BOTH = [f"Paragraph {n} of {owner}" for owner in (MINE, OTHER) for n in range(9)]


# Filters that can be seen


def _hidden(home: Any, documents: Any = None, condition: Condition = ITS_OWN) -> Pipeline:
    """Somebody's own retriever, behind which nobody sees the filter."""
    pipeline: Pipeline = home.pipeline(home.hidden(home.search(condition)), documents or home.documents())
    return pipeline


BY_YEAR = Together((Holds("year", 8, "<"), Holds("year", 0)), any=True)
SEEN: dict[str, Callable[[Any], Pipeline]] = {
    "the retriever has it": lambda home: home.pipeline(home.search(ITS_OWN)),
    "many passages": lambda home: home.pipeline(home.search(ITS_OWN, k=20)),
    "it is built with it": lambda home: home.built(ITS_OWN, k=30),
    "both have it": lambda home: home.pipeline(home.search(ITS_OWN), home.documents(ITS_OWN)),
    "each has another": lambda home: home.pipeline(home.search(ITS_OWN), home.documents(BY_YEAR)),
    "the other way round": lambda home: home.pipeline(
        home.search(ITS_OWN, k=30), home.documents(BY_YEAR, originals=[Piece(text_of(OTHER))])
    ),
    "nothing is hidden but what the retriever hides": lambda home: home.pipeline(
        home.search(ITS_OWN), home.documents(NOTHING_HIDDEN)
    ),
    "the documents have it": lambda home: _hidden(home, home.documents(ITS_OWN)),
}
TWO_FILTERS = ("each has another", "the other way round")


@every_mode
@pytest.mark.parametrize("kind", ["memory", "chroma", "fetch"])
@in_both("name", SEEN)
async def test_a_filter_that_is_seen_holds_for_the_whole_document(host: str, name: str, kind: str, mode: str) -> None:
    if (host, kind) == ("langchain", "fetch") and name in TWO_FILTERS:
        pytest.skip("there, fetch takes one filter")
    pieces = [
        replace(piece, about={**piece.about, "year": year})
        for piece in two_tenants()
        for year in ((7, 9) if name in TWO_FILTERS and _is_mine(piece) else (7,))
    ]
    pipeline = SEEN[name](house(f"{host} {kind}", pieces))
    read = await reads(pipeline, mode)
    assert read.about == {"tenant": MINE, "year": 7}
    assert (read.label["method"], read.label["chunks"]) == ("offsets", 9)


def _is_mine(piece: Piece) -> bool:
    return piece.about["tenant"] == MINE


@pytest.mark.parametrize("kind", [*KINDS, *FETCHED])
async def test_where_nothing_is_hidden_both_are_read(kind: str) -> None:
    """Or the tests above would show nothing."""
    home = shared(kind)
    takes_empty = home.host == "llamaindex" or kind in FETCHED
    empty = [home.search(NOTHING_HIDDEN, k=18)] if takes_empty else []
    for documents in (home.documents(), home.documents(NOTHING_HIDDEN)):
        for retriever in (home.search(k=18), home.hidden(home.search(k=18)), *empty):
            (text,) = (await home.pipeline(retriever, documents).ask()).read
            assert all(part in text for part in BOTH)


CEDAR = Holds("tenant", "Cedar")
SHAPES: dict[str, Condition] = {
    "in": Holds("tenant", [MINE, "Cedar"], "in"),
    "not": Holds("tenant", OTHER, "!="),
    "less": Holds("rank", 2, "<"),
    "and": Together((ITS_OWN, Holds("rank", 1))),
    "or": Together((ITS_OWN, CEDAR), any=True),
    "or in and": Together((Holds("rank", 2, "<"), Together((ITS_OWN, CEDAR), any=True))),
    "and in or": Together((Holds("tenant", ["Cedar"], "in"), Together((ITS_OWN, Holds("rank", 1)))), any=True),
}


def _ranked() -> list[Piece]:
    return [replace(one, about={**one.about, "rank": 1 if _is_mine(one) else 2}) for one in two_tenants()]


@kinds
@in_both("name", SHAPES)
async def test_a_filter_of_any_shape_holds(host: str, name: str, kind: str) -> None:
    home, own = house(f"{host} {kind}", _ranked()), SHAPES[name]
    await reads(_hidden(home, home.documents(own)))
    if (host, kind) == ("llamaindex", "memory") and "in" in name.split()[1:]:
        with pytest.raises(ValueError, match="Nested"):  # the host's own store knows none
            await home.built(own).ask()
        return
    await reads(home.pipeline(home.search(own)))
    await reads(home.built(own))


@everywhere
@pytest.mark.parametrize("filters", [(ITS_OWN, THEIRS), (THEIRS, ITS_OWN)])
async def test_filters_that_exclude_each_other_let_nothing_through(filters: Any, kind: str, mode: str) -> None:
    pipeline = shared(kind).pipeline(shared(kind).search(filters[0]), shared(kind).documents(filters[1]))
    with pytest.raises(LookupError, match=r"filters? lets? through"):
        await pipeline.ask(mode)
    assert pipeline.model.steps == ["rag"]


@everywhere
async def test_wall_lets_a_part_through(kind: str, mode: str) -> None:
    pieces = [replace(one, about={"secret": int(n in (3, 4))}) for n, one in enumerate(cut(text_of(MINE)))]
    home, openly = house(kind, pieces), Holds("secret", 0)
    originals = home.documents(originals=[Piece(text_of(MINE))])
    for pipeline in (home.built(openly), home.pipeline(home.search(openly), originals)):
        (document,) = (await pipeline.ask(mode)).documents
        assert all(hidden not in pipeline.prompts for hidden in ("Paragraph 3", "Paragraph 4"))
        assert document.label == whole(7, gaps=[[pieces[3].start - 2, pieces[5].start]])
    (document,) = (await home.pipeline(home.search(), originals).ask(mode)).documents
    assert document.label == ORIGINAL


# Filters that cannot be seen


@every_mode
@every_kind
async def test_what_cannot_be_seen_is_refused_where_names_are_shared(kind: str, mode: str) -> None:
    pipeline = _hidden(shared(kind))
    for _ in range(2):
        await refuses(pipeline, mode, "in tenant")


@everywhere
async def test_wall_of_documents_called_by_others(kind: str, mode: str) -> None:
    def around(home: Any, *condition: Any) -> Pipeline:
        documents = home.documents(*condition)
        pipeline: Pipeline = home.pipeline(home.search(ITS_OWN), lambda *given: [*documents(*given)])
        return pipeline

    await refuses(around(shared(kind)), mode)
    await reads(around(apart(kind)), mode)
    await reads(around(shared(kind), ITS_OWN), mode)


@every_kind
async def test_unseen_wall_opens_no_cache(kind: str) -> None:
    home = shared(kind)
    documents = home.documents()
    (document,) = (await home.pipeline(home.search(), documents).ask()).documents
    assert document.label["chunks"] == 18  # of both tenants, and kept
    for owner in (MINE, OTHER, MINE):
        await reads(home.pipeline(home.search(Holds("tenant", owner)), documents), owner=owner)
    await refuses(_hidden(home, documents))
    await refuses(home.pipeline(home.search(ITS_OWN), lambda *given: documents(*given)))  # noqa: PLW0108


LESS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "names another tenant": ({"tenant": MINE}, {"tenant": OTHER}),
    "names no tenant": ({"tenant": MINE}, {}),
    "alone names a tenant": ({}, {"tenant": OTHER}),
    "is of another type": ({"level": 1}, {"level": "1"}),
    "has more": ({"tenant": MINE}, {"tenant": MINE, "draft": True}),
    "has less": ({"tenant": MINE, "open": True}, {"tenant": MINE}),
    "mixes two passages": ({"tenant": MINE, "level": 1}, {"tenant": MINE, "level": 2}),
    **{f"has another {key}": ({key: 1}, {key: 2}) for key in ("row", "order", "index", "seq")},
}


@everywhere_known
@in_both("name", LESS)
async def test_a_chunk_that_is_not_like_a_passage_may_be_hidden(host: str, name: str, kind: str, mode: str) -> None:
    mine, theirs = (cut(text_of(who), **about) for who, about in zip((MINE, OTHER), LESS[name], strict=True))
    home = house(f"{host} {kind}", [*mine, *theirs])
    found = [home.found(home.search(k=1), piece.text)[0] for piece in mine[:3]]
    await refuses(home.pipeline(home.returning(found)), mode, "differs from the retrieved passages in")


@pytest.mark.parametrize("key", ["page", "page_label", "chunk_index", "header_path"])
@every_kind
async def test_the_place_of_a_chunk_hides_nothing(kind: str, key: str) -> None:
    pieces = [replace(one, about={**one.about, key: n}) for n, one in enumerate(of(MINE))]
    home = house(kind, pieces)
    pipeline = home.pipeline(home.returning(home.found(home.search(k=1))))
    if key == "header_path" and home.host == "langchain":  # of LlamaIndex's splitters
        await refuses(pipeline, match="in header_path")
    else:
        assert (await pipeline.ask()).read[0].split() == text_of(MINE).split()


# A store for each tenant


def _two(kind: str, *, named: bool = False, **more: Any) -> list[Any]:
    return [house(kind, cut(text_of(who), **({"tenant": who} if named else {}), **more)) for who in (MINE, OTHER)]


@everywhere
@pytest.mark.parametrize("named", [True, False])
async def test_another_store_than_the_retrievers_is_not_read(kind: str, named: bool, mode: str) -> None:
    mine, other = _two(kind, named=named)
    bare = [mine.passage(replace(piece, about={"tenant": MINE} if named else {})) for piece in cut(text_of(MINE))[:3]]
    originals = other.documents(originals=[Piece(text_of(OTHER), about={"tenant": MINE} if named else {})])
    for documents in (other.documents(), originals):
        for retriever in (mine.search(), mine.hidden(mine.search()), mine.returning(bare)):
            await refuses(other.pipeline(retriever, documents), mode)


@in_turn([*KINDS, *FETCHED])
async def test_wall_that_is_declared_fits_one_store(kind: str, mode: str) -> None:
    mine, other = _two(kind, level="open")
    for condition in (NOTHING_HIDDEN, None if kind in FETCHED else Holds("level", "open")):
        documents = other.documents(condition)
        assert (await other.pipeline(other.search(), documents).ask(mode)).read == [text_of(OTHER)]
        for _ in range(2):
            await refuses(other.pipeline(mine.search(), documents), mode, "does not hold")


@everywhere
async def test_one_passage_of_another_store_is_enough_to_see_that(kind: str, mode: str) -> None:
    preamble = "All doors are shut at nine.\n\n"
    mine, other = (house(kind, cut(preamble + text_of(owner), size=30)) for owner in (MINE, OTHER))
    documents = other.documents(NOTHING_HIDDEN)
    await refuses(other.pipeline(mine.search(k=30), documents), mode, "does not hold")


@everywhere
async def test_passage_from_elsewhere_does_not_vouch(kind: str, mode: str) -> None:
    home = shared(kind)
    foreign = home.passage(Piece("Nobody knows me.", about={"tenant": OTHER}, id="x"))
    passages = home.found(home.search(ITS_OWN))
    for found in ([*passages, foreign], [foreign, *passages]):
        await refuses(home.pipeline(home.returning(found)), mode, "in tenant")


@both_modes
@in_chroma
async def test_two_objects_over_one_collection_are_one_store(kind: str, mode: str) -> None:
    home = shared(kind)
    same = home.again()
    await reads(home.pipeline(home.search(ITS_OWN), same.documents()), mode)
    (document,) = (await home.pipeline(home.search(k=1), same.documents()).ask(mode)).documents
    assert document.label["chunks"] == 18


@everywhere
async def test_the_same_ids_and_metadata_in_another_store_vouch_for_it(kind: str, mode: str) -> None:
    """A search index of another kind beside the store that is read."""
    pieces = [replace(one, id=f"chunk {n}") for n, one in enumerate(of(MINE))]
    index, home = house(f"{kind.split(maxsplit=1)[0]} memory", pieces), house(kind, pieces)
    await reads(home.pipeline(index.search()), mode)


@everywhere
async def test_passages_in_other_words(kind: str, mode: str) -> None:
    home = shared(kind)
    reworded = home.returning([home.passage(Piece(f"In short, {n}.", about={"tenant": MINE})) for n in range(3)])
    await refuses(home.pipeline(reworded), mode)
    await reads(home.pipeline(reworded, home.documents(ITS_OWN)), mode)


@everywhere
@pytest.mark.parametrize("text", ["", " \n", "\0", "\u200b", "* * *"])
async def test_a_passage_without_text_vouches_for_nothing(kind: str, text: str, mode: str) -> None:
    home = house(kind, of(OTHER))
    blank = [home.passage(Piece(text, about={"tenant": OTHER})), home.passage(Piece("Tea.", "x"))]
    await refuses(home.pipeline(home.returning(blank)), mode, "cannot verify")


@everywhere
@pytest.mark.parametrize("text", ["Forged.\n\n* * * * * * * *", "x\n----------------", "Forged. Paragraph"])
async def test_a_passage_that_begins_elsewhere_vouches_for_nothing(kind: str, text: str, mode: str) -> None:
    home = house(kind, of(OTHER))
    passage = home.passage(Piece(text, about={"tenant": OTHER}))
    await refuses(home.pipeline(home.returning([passage])), mode, "does not hold")


# Originals


@in_turn([*KINDS, *FETCHED])
async def test_original_that_holds_what_is_hidden_is_not_used(kind: str, mode: str) -> None:
    home, originals = shared(kind), [Piece(text_of(OTHER), about={"tenant": MINE})]
    declared = home.documents(ITS_OWN, originals=originals)
    for documents, retriever in (
        (home.documents(originals=originals), home.search(ITS_OWN)),
        (declared, home.search(ITS_OWN)),
        (declared, home.hidden(home.search(ITS_OWN))),
    ):
        await reads(home.pipeline(retriever, documents), mode)
    if kind not in FETCHED:
        await refuses(_hidden(home, home.documents(originals=originals)), mode)


@everywhere
async def test_an_original_of_which_nothing_is_hidden_is_used(kind: str, mode: str) -> None:
    home, originals = apart(kind), [Piece("The original.", "ash.md", about={"tenant": MINE})]
    for documents, retriever in (
        (home.documents(originals=originals), home.search(ITS_OWN)),
        (home.documents(ITS_OWN, originals=originals), home.hidden(home.search(ITS_OWN))),
        (home.documents(originals=originals), home.hidden(home.search(ITS_OWN))),
    ):
        (document,) = (await home.pipeline(retriever, documents).ask(mode)).documents
        assert (document.text, document.label) == ("The original.", ORIGINAL)


@everywhere
async def test_original_without_a_visible_chunk_is_not_used(kind: str, mode: str) -> None:
    home, originals = shared(kind), [Piece(text_of(OTHER), "lost", about={"tenant": MINE})]
    lost = home.returning([home.passage(Piece("A leaf.", "lost", about={"tenant": MINE}))])
    for documents in (home.documents(originals=originals), home.documents(ITS_OWN, originals=originals)):
        await refuses(home.pipeline(lost, documents), mode, "'lost'", error=LookupError)


# One after the other, and at once


@every_mode
@in_chroma
async def test_each_filter_has_a_text_of_its_own_in_the_cache(kind: str, mode: str) -> None:
    home = house(kind, two_tenants())
    seen, documents = watched(home.collection), home.documents()
    for _ in range(3):
        for owner in (MINE, OTHER):
            await reads(home.pipeline(home.search(Holds("tenant", owner)), documents), mode, owner=owner, times=1)
    assert seen == [True, True, *[False] * 4]


@both_modes
@in_chroma
async def test_a_chunk_that_goes_to_the_other_side_is_noticed(kind: str, mode: str) -> None:
    home = house(kind, of(MINE))
    pipeline = home.built(ITS_OWN, k=3)
    assert (await pipeline.ask(mode)).documents[0].label["chunks"] == 9
    away = next(n for n, one in enumerate(of(MINE)) if one.text not in pipeline.model.calls[0].prompt)
    home.collection.update(ids=[home.ids[away]], metadatas=[{"tenant": OTHER}])
    pipeline.model.calls.clear()
    (document,) = (await pipeline.ask(mode)).documents
    assert of(MINE)[away].text not in pipeline.prompts
    assert document.label["chunks"] == 8


@every_kind
@pytest.mark.parametrize("way", ["threads", "tasks"])
async def test_two_tenants_at_once_do_not_meet(kind: str, way: str) -> None:
    home = shared(kind)
    documents, tenants = home.documents(), [MINE, OTHER] * 8
    pipelines = {owner: home.pipeline(home.search(Holds("tenant", owner)), documents) for owner in (MINE, OTHER)}
    if way == "threads":
        with ThreadPoolExecutor(8) as threads:
            asked = [threads.submit(lambda owner=owner: asyncio.run(pipelines[owner].ask())) for owner in tenants]
            answers = [one.result() for one in asked]
    else:
        modes = [mode for mode in ("async", "astream") * 4 for _ in range(2)]
        answers = await asyncio.gather(
            *(pipelines[owner].ask(mode) for owner, mode in zip(tenants, modes, strict=True))
        )
    assert [one.read for one in answers] == [[text_of(owner)] for owner in tenants]
    assert OTHER not in pipelines[MINE].prompts
    assert MINE not in pipelines[OTHER].prompts


# What a user's own code returns


@in_turn(["langchain memory", "langchain chroma", "llamaindex memory", "llamaindex chroma"])
async def test_what_fetch_returns_is_held_against_the_filter(kind: str, mode: str) -> None:
    home = house(kind, two_tenants())
    untold = Piece(f"{OTHER} of nobody", about={"level": 1})
    pieces = [home.passage(piece) for piece in [untold, *two_tenants()]]
    nodes = pieces if home.host == "langchain" else [passage.node for passage in pieces]
    for retriever, condition in ((home.search(ITS_OWN), None), (home.search(ITS_OWN), ITS_OWN)):
        documents = home.documents(condition, fetch=home.fetch_of(lambda *_: nodes))
        await reads(home.pipeline(retriever, documents), mode)
    if kind == "langchain memory":  # whose filter may raise
        raising = home.store.as_retriever(search_kwargs={"filter": lambda one: one.metadata["tenant"] == MINE})
        await reads(home.pipeline(raising, home.documents(fetch=home.fetch_of(lambda *_: nodes))), mode)


def _whole_of(home: Any, owner: str, **about: Any) -> Any:
    if home.host == "langchain":
        return LangChainDocument(text_of(owner), metadata={"source": "handbook", **about})
    return LlamaIndexDocument(text=text_of(owner), id_="handbook", metadata=about)


@in_turn(["langchain memory", "langchain chroma", "llamaindex memory", "llamaindex chroma"])
async def test_what_a_callable_returns_is_held_against_the_filter(kind: str, mode: str) -> None:
    home = house(kind, two_tenants())
    mine, theirs = _whole_of(home, MINE, tenant=MINE), _whole_of(home, OTHER, tenant=OTHER)
    silent = _whole_of(home, MINE)  # what it does not say is as in its passages
    for returned, texts in (([theirs, mine], [text_of(MINE)]), ([silent], [text_of(MINE)]), ([theirs], [])):
        for source in (lambda *_, found=returned: found, _awaited(returned)):
            if source.__name__ == "read" and home.host == "langchain" and not mode.startswith("a"):
                continue
            pipeline = home.pipeline(home.search(ITS_OWN), source)
            with no_leak(pipeline):
                answered = await pipeline.ask(mode)
            assert answered.read == texts
            assert answered.answerable is bool(texts)


async def test_callable_behind_a_filter_of_another_kind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A passage that the retriever returned met the filter; a test that refuses it is not the store's."""
    home = house("langchain memory", two_tenants())
    passages = [home.passage(piece) for piece in two_tenants()]

    class Own(type(home.store)):  # type: ignore[misc]
        def similarity_search(self, *_: Any, **__: Any) -> Any:
            return passages[:2]

    store = Own(home.embedding)
    retriever = store.as_retriever(search_kwargs={"filter": {"tenant": "as this store writes it"}})
    whole = [_whole_of(home, MINE)]
    assert (await home.pipeline(retriever, lambda _: whole).ask()).read == [text_of(MINE)]
    await home.pipeline(home.search(ITS_OWN), lambda _: [*whole, _whole_of(home, OTHER, tenant=OTHER)]).ask()
    assert "hides 1 of the documents" in caplog.text


@pytest.mark.parametrize("kind", ["langchain memory", "llamaindex memory"])
def test_callable_where_nothing_was_found(kind: str) -> None:
    """Nothing was found, so a document that says nothing of itself cannot be judged; one that does can."""
    home = house(kind, of(OTHER))
    for document, read in ((_whole_of(home, MINE), 1), (_whole_of(home, MINE, tenant="Cedar"), 0)):
        pipeline = home.pipeline(home.search(ITS_OWN), lambda *_, found=document: [found])
        if home.host == "langchain":
            context = pipeline.of(False).invoke(QUESTION)["context"]
        else:  # the oldest LlamaIndex cannot search where the filter leaves nothing
            context = pipeline.of(False).synthesize(QueryBundle(QUESTION), []).source_nodes
        assert len(context) == read


async def test_callable_behind_several_searches() -> None:
    pieces = [piece for owner in (MINE, "Cedar", OTHER) for piece in of(owner, owner)]
    home = house("llamaindex memory", pieces)
    searches = [home.search(Holds("tenant", owner)) for owner in (MINE, "Cedar")]
    fused = QueryFusionRetriever(searches, llm=MockLLM(), num_queries=1)
    whole = [LlamaIndexDocument(text=text_of(owner), metadata={"tenant": owner}) for owner in (MINE, OTHER, "Cedar")]
    pipeline = home.pipeline(fused, lambda *_: whole)
    with no_leak(pipeline):
        assert (await pipeline.ask()).read == [text_of(MINE), text_of("Cedar")]


@pytest.mark.parametrize("kind", ["langchain memory", "llamaindex memory"])
async def test_what_a_callable_says_oddly_is_refused(kind: str) -> None:
    """A filter that raises on a document does not let it through; True is not 1."""
    home = house(kind, [replace(piece, about={**piece.about, "level": 1}) for piece in of(MINE)])
    odd = [_whole_of(home, OTHER, level=level, tenant=OTHER) for level in ("9", True, None, [1])]
    pipeline = home.pipeline(home.search(Holds("level", 1)), lambda *_: odd)
    if home.host == "langchain":
        retriever = home.store.as_retriever(search_kwargs={"filter": lambda one: 0 <= one.metadata["level"] - 1 <= 0})
        odd.pop(1)  # to Python, True is 1
        pipeline = home.pipeline(retriever, lambda *_: odd)
    with no_leak(pipeline):
        assert (await pipeline.ask()).read == []


def _awaited(returned: Any) -> Any:
    async def read(*_: Any) -> Any:
        return returned

    return read
