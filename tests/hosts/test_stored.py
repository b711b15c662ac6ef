"""`StoredDocuments` in both frameworks: what comes back, how it is labelled, and what it costs to read."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from hosts_documents import (
    CHROMA,
    FETCHED,
    KINDS,
    MODES,
    ORIGINAL,
    Holds,
    Piece,
    cut,
    house,
    in_both,
    watched,
    whole,
)
from langchain_stores import text_of
from scenarios import FOUND, STARTED
from selfroute.errors import ConfigurationError, DocumentNotFoundError, ReplyError, SelfRouteError

every_mode = pytest.mark.parametrize("mode", MODES)
every_kind = pytest.mark.parametrize("kind", KINDS)
in_chroma = pytest.mark.parametrize("kind", CHROMA)
by_fetch = pytest.mark.parametrize("kind", FETCHED)
ASH, BIRCH = text_of("Ash"), text_of("Birch", 3)


def _ash(**about: Any) -> list[Piece]:
    return cut(ASH, "ash.md", **about)


def _library(**about: Any) -> list[Piece]:
    return [*cut(ASH, "ash.md", size=120, overlap=60, **about), *cut(BIRCH, "birch.md", **about)]


# What comes back


@every_mode
@pytest.mark.parametrize("kind", [*KINDS, *FETCHED])
async def test_a_document_comes_back_word_for_word(kind: str, mode: str) -> None:
    pipeline = house(kind, _library(shelf="north")).built(k=12)
    answered = await pipeline.ask(mode, "What does the crane of Ash lift?")
    assert (answered.answer, answered.route, answered.answerable) == (FOUND, "long_context", True)
    (document,) = [one for one in answered.documents if one.name == "ash.md"]
    assert (document.text, document.about, document.label) == (ASH, {"shelf": "north"}, whole(8))
    assert pipeline.model.steps == ["rag", "long_context"]
    assert ASH in pipeline.prompts
    assert "selfroute" not in pipeline.prompts


@every_mode
@every_kind
@pytest.mark.parametrize("first", ["Ash", "Birch"])
async def test_stored_documents_come_best_first(first: str, kind: str, mode: str) -> None:
    texts = {"ash.md": text_of("Ash"), "birch.md": text_of("Birch")}
    home = house(kind, [piece for name, text in texts.items() for piece in cut(text, name)])
    pipeline = home.built(k=18)
    answered = await pipeline.ask(mode, cut(text_of(first))[2].text)
    assert answered.retrieved == 18
    assert [one.name for one in answered.documents] == sorted(texts, reverse=first == "Birch")
    prompt = pipeline.model.calls[-1].prompt
    places = [prompt.index(part) for name, text in texts.items() for part in (f": {name}\n", text)]
    assert places == sorted(places)
    assert prompt.index("Document 1: ash.md") < prompt.index("Document 2: birch.md")


@every_kind
async def test_what_only_some_chunks_say_is_not_said_of_their_document(kind: str) -> None:
    pieces = [
        Piece(one.text, one.source, one.start, {"shelf": "north", "page": n, "speaker": "Lin" if n else "Okafor"})
        for n, one in enumerate(_ash())
    ]
    (document,) = (await house(kind, pieces).built(k=20).ask()).documents
    pages = document.label["pages"]
    assert (document.text, document.about, document.label) == (ASH, {"shelf": "north"}, whole(9, pages=pages))
    assert [page for _, page in pages] == list(range(9))
    assert all(ASH[start:].startswith(f"Paragraph {page}") for start, page in pages)
    (document,) = (await house(kind, _ash(page=3)).built(k=20).ask()).documents  # a page is a place
    assert (document.about, document.label) == ({}, whole(9, pages=[[0, 3]]))


@every_kind
async def test_what_is_no_filter_of_the_store_is_refused_at_once(kind: str) -> None:
    home = house(kind)
    for n, wrong in enumerate(home.nonsense):
        home.filters_as = lambda condition, wrong=wrong: wrong
        with pytest.raises(ConfigurationError, match=r"(as|^)\s?filters?"):
            home.documents(Holds("wrong", n))


# Passages without a document


@every_mode
@pytest.mark.parametrize("kind", [*KINDS, *FETCHED])
async def test_stored_document_that_is_unknown(kind: str, mode: str) -> None:
    home = house(kind, _ash())
    for documents in (home.documents(), home.documents(Holds("shelf", "north"))):
        pipeline = home.pipeline(home.returning([home.passage(Piece("In July.", "july.md"))]), documents)
        with pytest.raises(LookupError, match=r"'july\.md'") as refused:
            await pipeline.ask(mode)
        assert isinstance(refused.value, DocumentNotFoundError)
        assert isinstance(refused.value, SelfRouteError)


@every_mode
@every_kind
async def test_stored_passages_without_a_name(kind: str, mode: str) -> None:
    home = house(kind, [Piece("In July.", None, 0, {"file": "july.md"})])
    with pytest.raises(DocumentNotFoundError, match=home.unnamed):
        await home.built().ask(mode)


@every_kind
async def test_stored_passages_without_a_document(kind: str) -> None:
    started = {**STARTED, "draft_passages": None}
    loose = [Piece("A loose leaf of Ash.", None), Piece("Another loose leaf.", None)]
    home = house(kind, [*_ash(), *loose])
    answered = await home.built(k=20, max_documents=None, **started).ask()
    assert {one.text: one.label for one in answered.documents} == {
        ASH: whole(9),
        **{one.text: whole(1, "order") for one in loose},
    }
    twice = [home.passage(Piece("A leaf.", None, id="leaf"))] * 2
    named = home.passage(_ash()[0])
    (*_, alone) = (await home.pipeline(home.returning([named, *twice]), max_documents=None, **started).ask()).read[1:]
    assert alone == "A leaf."


@every_mode
@every_kind
async def test_stored_nothing_asks_no_model(kind: str, mode: str) -> None:
    home = house(kind)
    try:
        home.found(home.search())
    except AssertionError:
        pytest.skip("older versions of LlamaIndex cannot search their own store when it is empty")
    pipeline = home.built()
    answered = await pipeline.ask(mode)
    assert (answered.answerable, answered.read, answered.decision["signal"]) == (False, [], "no_passages")
    assert (answered.route, pipeline.model.calls) == ("rag", [])


@every_kind
async def test_chunks_without_text_are_passed_over(kind: str) -> None:
    empty = [Piece("", "ash.md", start) for start in (0, 53, 4000)]
    (document,) = (await house(kind, [*_ash(), *empty]).built(k=20).ask()).documents
    assert (document.text, document.label) == (ASH, whole(9))
    pipeline = house(kind, [Piece("", "ash.md")]).built()
    assert (await pipeline.ask()).answerable is False
    assert pipeline.model.steps == ["rag"]


# Originals


@every_mode
@every_kind
async def test_an_original_is_taken_where_there_is_one(kind: str, mode: str) -> None:
    home = house(kind, _ash(shelf="north") + cut(BIRCH, "birch.md", shelf="north"))
    documents = home.documents(originals=[Piece("The original.", "ash.md", about={"shelf": "north"})])
    for within in (None, Holds("shelf", "north")):
        answered = await home.pipeline(home.search(within, k=20), documents).ask(mode)
        read = {one.name: one for one in answered.documents}
        assert (read["ash.md"].text, read["ash.md"].label) == ("The original.", ORIGINAL)
        assert (read["birch.md"].text, read["birch.md"].label) == (BIRCH, whole(3))
        assert read["ash.md"].about == {"shelf": "north"}


# fetch


@by_fetch
def test_store_without_fetch_is_refused_with_what_to_do(kind: str) -> None:
    home = house(kind, _ash())
    for made in (lambda: home.documents(fetch=None), lambda: home.built(fetched=False)):
        with pytest.raises(ConfigurationError, match=home.advice):
            made()


RETURNS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "generator": lambda chunks: (chunk for chunk in chunks),
    "values": lambda chunks: dict(enumerate(chunks)).values(),
}


@in_both("name", RETURNS)
async def test_fetch_may_return_any_iterable(host: str, name: str) -> None:
    for home in (house(f"{host} fetch", _ash()), house(f"{host} memory", _ash())):
        chunks = home.chunks(_ash(fetched="yes"))
        asked: list[Any] = []

        def listing(source: str, condition: Any, asked: list[Any] = asked, chunks: list[Any] = chunks) -> Any:
            asked.append((source, condition))
            return RETURNS[name](chunks)

        documents = home.fetching(listing)
        (document,) = (await documents.ask()).documents
        assert (document.text, document.about, document.label) == (ASH, {"fetched": "yes"}, whole(9))
        assert asked == [("ash.md", None)]


async def _afetch(*_: Any) -> list[Any]:
    return []


class _AsyncFetch:
    async def __call__(self, *_: Any) -> list[Any]:
        return []


@pytest.mark.parametrize("kind", ["fetch", "memory"])
@in_both("fetch", [_afetch, functools.partial(_afetch, 1), _AsyncFetch(), "fetch", [], 3])
def test_fetch_that_is_async_is_refused(host: str, fetch: Any, kind: str) -> None:
    with pytest.raises(ConfigurationError, match="fetch must be a sync callable"):
        house(f"{host} {kind}", _ash()).documents(fetch=fetch)


NONSENSE: dict[str, tuple[Callable[[Any], Any], str]] = {
    "an error": (lambda home: 1 / 0, "division"),
    "None": (lambda home: None, "got NoneType"),
    "text": (lambda home: "Ms Okafor", "got str"),
    "a chunk": (lambda home: home.passage(Piece("Ms Okafor")), "got "),
    "texts": (lambda home: ["Ms Okafor"], "got str"),
    "a coroutine": (lambda home: _afetch(), "got coroutine"),
    "another document": (
        lambda home: home.chunks(cut(BIRCH, "birch.md")),
        r"'birch\.md'",
    ),
}


@every_mode
@in_both("name", NONSENSE)
async def test_a_fetch_that_returns_something_else_is_told_so(host: str, name: str, mode: str) -> None:
    home, (found, says) = house(f"{host} fetch", _ash()), NONSENSE[name]
    with pytest.raises((ReplyError, ZeroDivisionError), match=says):
        await home.fetching(lambda *_: found(home)).ask(mode)


# The cache


@every_kind
async def test_stored_document_is_a_copy(kind: str) -> None:
    home = house(kind, _ash(shelf="north"))
    read = home.documents().limited_to(home.search(), *([{}] if home.host == "langchain" else []))
    given = home.found(home.search())
    ask = (
        (lambda: read({"input": "?", "retrieved": given})) if home.host == "langchain" else (lambda: read(given, None))
    )
    for _ in range(2):
        (document,) = ask()
        assert document.metadata["selfroute"] == whole(9)
        assert document.metadata["shelf"] == "north"
        document.metadata["shelf"] = "elsewhere"
        document.metadata["selfroute"]["gaps"].append([0, 1])
        if home.host == "llamaindex":
            assert (document.get_content(), document.excluded_llm_metadata_keys) == (ASH, ["shelf", "selfroute"])
            document.excluded_llm_metadata_keys.append("page")
            document.set_content("Nothing.")


@every_mode
@every_kind
async def test_a_document_that_is_indexed_anew_is_noticed(kind: str, mode: str) -> None:
    pieces = _ash()
    home = house(kind, pieces[:8])
    pipeline = home.pipeline()
    assert (await pipeline.ask(mode)).documents[0].label["chunks"] == 8
    if kind != "llamaindex memory":  # its retriever is of the nodes that there were
        more = home.add(pieces[8:])
        assert (await pipeline.ask(mode)).read == [ASH]
        home.ids += more
    home.delete(home.ids)
    home.add(cut(text_of("Birch"), "ash.md"))
    assert (await home.pipeline(home.search()).ask(mode)).read == [text_of("Birch")]


@in_chroma
async def test_stored_chunk_that_changes_is_noticed(kind: str) -> None:
    home = house(kind, _ash())
    documents, question = home.documents(), _ash()[0].text
    pipeline = home.pipeline(home.search(k=1), documents)
    was, changed = _ash()[5].text, _ash()[5].text.replace("crates", "barrel")

    async def read(question: str = question) -> str:
        (text,) = (await pipeline.ask(question=question)).read
        return text

    assert await read() == ASH
    home.rewrite(home.ids[5], changed)
    documents.forget("birch.md")
    assert await read() == ASH
    for name in ("ash.md", None):
        documents.forget(name)
        assert changed in await read()
    home.rewrite(home.ids[5], was)
    assert changed in await read()
    home.rewrite(home.ids[0], question + " Amen.")
    assert (await read()).startswith(question + " Amen.")  # the passage itself shows that the kept text is out of date


@every_mode
@by_fetch
async def test_store_that_does_not_tell_ids_for_less_is_read_each_time(kind: str, mode: str) -> None:
    home, pieces = house(kind, _ash()), _ash()
    pipeline = home.fetching(lambda *_: home.chunks(pieces))
    for changed in ("Paragraph 5 is void.", "Paragraph 5 is back."):
        pieces[5] = Piece(changed, "ash.md", pieces[5].start)
        assert changed in (await pipeline.ask(mode)).read[0]


@pytest.mark.parametrize("name", [None, "ash.md"])
@in_chroma
async def test_stored_document_is_forgotten_as_it_is_read(kind: str, name: str | None) -> None:
    home, changes = house(kind, _ash()), list[Callable[[], None]]()
    documents = home.documents()
    watched(home.collection, after=lambda: changes.pop()() if changes else None)
    pipeline = home.pipeline(home.search(k=1), documents)

    def change() -> None:  # once the old text was handed out
        home.rewrite(home.ids[5], "Paragraph 5 is void.")
        documents.forget(name)

    changes.append(change)
    question = _ash()[0].text
    assert (await pipeline.ask(question=question)).read == [ASH]
    assert "Paragraph 5 is void." in (await pipeline.ask(question=question)).read[0]


@pytest.mark.matrix
async def test_stored_document_of_33_000_chunks() -> None:
    home, count, page = house(CHROMA[0], [Piece("w", "ash.md")]), 33_000, 5_000  # it answers 32,766
    about = home.collection.get(include=["metadatas"])["metadatas"][0]
    words = [f"w{n}" for n in range(count)]
    home.delete(home.ids)
    for at in range(0, count, page):
        some = words[at : at + page]
        metadatas = [{key: str(value).replace(home.ids[0], id_) for key, value in about.items()} for id_ in some]
        home.collection.add(ids=some, documents=some, metadatas=metadatas, embeddings=[[0.1] * 64] * len(some))
    for _ in range(2):
        assert (await home.built(k=1).ask()).read[0].split() == words
    hidden = home.collection.get(ids=["w0"], include=["metadatas"])["metadatas"][0]
    home.collection.update(ids=["w0"], metadatas=[hidden | {"tenant": "another"}])
    seen = watched(home.collection)
    with pytest.raises(ConfigurationError):
        await home.pipeline(home.returning(home.found(home.search(k=1), "w7"))).ask()
    assert seen == [True]  # what may be hidden is not read to its end


# Async
