"""What LangChain's own retrievers return in place of chunks, and what their models write: no hole in the wall."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_classic.chains.query_constructor.base import StructuredQueryOutputParser, get_query_constructor_prompt
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda
from langchain_core.stores import InMemoryStore
from langchain_core.structured_query import Comparator, Comparison, StructuredQuery

from hosts_documents import (
    FAR_APART,
    ITS_OWN,
    MINE,
    NOTHING_HIDDEN,
    OTHER,
    QUESTION,
    Holds,
    InLangChain,
    in_turn,
    reads,
    refuses,
    shared,
)
from langchain_selfroute import StoredDocuments
from langchain_stores import KINDS, text_of
from langchain_wrappers import (
    OwnCompressor,
    Shelves,
    asking_itself,
    compressed,
    ensemble,
    no_filter,
    parents,
    summaries,
    time_weighted,
    translator,
)
from selfroute.errors import ReplyError

pytestmark = pytest.mark.filterwarnings("ignore:`langchain-community` is being sunset:DeprecationWarning")
everywhere = in_turn(KINDS)
both_modes = pytest.mark.parametrize("mode", FAR_APART)
every_kind = pytest.mark.parametrize("kind", KINDS)


def _asking(home: Any, inner: Any, **fields: Any) -> Any:
    return asking_itself(Shelves(home.kind), home.store, search_kwargs=inner.search_kwargs, **fields)


AT_LEAST: dict[str, Callable[[Any, Any], Any]] = {
    "own compressor": lambda home, inner: compressed(inner, OwnCompressor()),
    "own translator": lambda home, inner: _asking(home, inner, structured_query_translator=translator()),
    "own chain": lambda home, inner: _asking(home, inner, query_constructor=RunnableLambda(no_filter)),
}


@everywhere
@pytest.mark.parametrize("name", AT_LEAST)
@pytest.mark.parametrize("declared", [None, NOTHING_HIDDEN], ids=["nothing", "none hidden"])
async def test_filter_inside_holds_at_least(name: str, kind: str, declared: Any, mode: str) -> None:
    home = shared(f"langchain {kind}")
    await reads(home.pipeline(AT_LEAST[name](home, home.search(ITS_OWN)), home.documents(declared)), mode)


def _own_chain(given: Any) -> StructuredQuery:
    mine = Comparison(comparator=Comparator.EQ, attribute="tenant", value=MINE)
    return StructuredQuery(query=given["query"], filter=mine, limit=None)


@both_modes
async def test_own_query_chain_may_hide_something(mode: str) -> None:
    home = shared("langchain chroma")
    asking = asking_itself(Shelves("chroma"), home.store, query_constructor=RunnableLambda(_own_chain))
    await refuses(home.pipeline(asking), mode, "in tenant")


# Originals


def _summaries(kind: str, originals: list[Document] | None = None, **shelves: Any) -> tuple[Any, InLangChain]:
    """A retriever of originals by their summaries, and the house of the summaries."""
    made = Shelves(kind, **shelves)
    retriever, store = summaries(made, made.chunks() if originals is None else originals)
    return retriever, InLangChain.on(kind, store)


@everywhere
async def test_originals_are_read_and_not_their_summaries(kind: str, mode: str) -> None:
    retriever, home = _summaries(kind)
    assert (await reads(home.pipeline(retriever), mode)).label["method"] == "offsets"
    renewed = Document("It is new.", metadata=Shelves(kind).chunks()[0].metadata)
    retriever.docstore.mset([("id0", renewed)])
    assert (await home.pipeline(retriever).ask(mode)).read[0].startswith("It is new.")
    pipeline = home.pipeline(retriever)
    await pipeline.ask(mode)
    retriever.docstore.mset([("id0", Document("It is newer.", metadata=renewed.metadata))])
    assert (await pipeline.ask(mode)).read[0].startswith("It is newer.")


@everywhere
async def test_originals_that_say_less_vouch_for_nothing(kind: str, mode: str) -> None:
    retriever, home = _summaries(kind, owners=(MINE, OTHER))
    bare = [
        Document(one.page_content, metadata={"source": "handbook"}) for one in Shelves(kind, (MINE, OTHER)).chunks()
    ]
    retriever.docstore.mset([(f"id{n}", original) for n, original in enumerate(bare)])
    all_of_them = retriever.model_copy(update={"search_kwargs": {"k": 10}})
    await refuses(home.pipeline(compressed(all_of_them, OwnCompressor(without=OTHER))), mode, "differs .* tenant")


@everywhere
@pytest.mark.parametrize("beside", ["chunks", "other originals"])
async def test_originals_beside_something_else(kind: str, beside: str, mode: str) -> None:
    retriever, home = _summaries(kind)
    other = retriever.model_copy(update={"docstore": InMemoryStore()})
    await refuses(home.pipeline(ensemble(retriever, home.search() if beside == "chunks" else other)), mode)


@everywhere
async def test_originals_without_a_source_are_documents_themselves(kind: str, mode: str) -> None:
    originals = [Document(f"Original {n}.") for n in range(3)]
    retriever, home = _summaries(kind, originals)
    answered = await home.pipeline(retriever, max_documents=None).ask(mode)
    assert sorted(answered.read) == [one.page_content for one in originals]
    with pytest.raises(LookupError, match="no retrieved passage has metadata"):  # those of others have to name one
        await home.pipeline().ask(mode)


@everywhere
async def test_originals_that_are_strings_are_documents_themselves(kind: str, mode: str) -> None:
    """As in LangChain's recipes for tables and pictures."""
    texts: list[Any] = [f"<table>{n}</table>" for n in range(3)]
    retriever, home = _summaries(kind, [Document(text) for text in texts])
    retriever.docstore.mset([(f"id{n}", text) for n, text in enumerate(texts)])
    answered = await home.pipeline(retriever, max_documents=None).ask(mode)
    assert sorted(answered.read) == texts
    retriever.docstore.mset([("id1", b"<table>")])
    with pytest.raises(ReplyError, match="retriever must return a list of Documents or of strings; got bytes"):
        await home.pipeline(retriever).ask(mode)


@everywhere
async def test_strings_among_the_originals_of_a_document(kind: str, mode: str) -> None:
    retriever, home = _summaries(kind)
    retriever.docstore.mset([("id4", "It is a text.")])
    narrow = retriever.model_copy(update={"search_kwargs": {**retriever.search_kwargs, "k": 1}})
    (document,) = (await home.pipeline(narrow).ask(mode)).documents
    assert "It is a text." in document.text


async def test_chunk_without_original_is_not_read() -> None:
    retriever, home = _summaries("memory")
    about = {"source": "handbook", "tenant": MINE}
    loose = [Document("Loose.", metadata=about), Document("Loose.", metadata={**about, "doc_id": None})]
    home.store.add_documents(loose)
    await reads(home.pipeline(retriever))


@every_kind
async def test_original_that_is_gone_is_named(kind: str) -> None:
    retriever, home = _summaries(kind)
    retriever.docstore.mdelete(["id1"])
    with pytest.raises(LookupError, match=r"docstore does not hold 'id1'.*'handbook'.*index the document again"):
        await home.pipeline(retriever).ask()
    retriever, store = parents(Shelves(kind).whole(), Shelves(kind), child_metadata_fields=["tenant"])
    with pytest.raises(LookupError, match="index chunks and summaries with the source of their originals"):
        await InLangChain.on(kind, store).pipeline(retriever).ask()


@everywhere
async def test_an_original_is_read_only_if_a_chunk_of_it_can_be_seen(kind: str, mode: str) -> None:
    secret, openly = [n in (1, 3) for n in range(5)], Holds("secret", 0)
    originals = Shelves(kind).chunks()
    for original, hidden in zip(originals, secret, strict=True):
        original.metadata["secret"] = int(hidden)
    retriever, home = _summaries(kind, originals, condition=openly)
    (document,) = (await home.pipeline(retriever).ask(mode)).documents
    assert [one.page_content in document.text for one in originals] == [not hidden for hidden in secret]
    assert len(document.label["gaps"]) == 2


@everywhere
async def test_original_with_a_hidden_chunk(kind: str, mode: str) -> None:
    originals = Shelves(kind).chunks()
    for original in originals:
        original.metadata["secret"] = 0
    retriever, home = _summaries(kind, originals)
    more = {**originals[2].metadata, "secret": 1, "doc_id": "id2"}
    home.store.add_documents([Document("More of it.", metadata=more)])
    (text,) = (await home.pipeline(retriever, home.documents(Holds("secret", 0))).ask(mode)).read
    assert [one.page_content in text for one in originals] == [n != 2 for n in range(5)]


@both_modes
@pytest.mark.parametrize("held", [Document("All of it.", metadata={"source": "handbook"}), "All of it."], ids=type)
async def test_docstore_goes_before_originals(held: Any, mode: str) -> None:
    all_of_it = InMemoryStore()
    all_of_it.mset([("handbook", held)])
    retriever, home = _summaries("memory")
    answered = await home.pipeline(retriever, home.documents(docstore=all_of_it)).ask(mode)
    assert (answered.read, [one.name for one in answered.documents]) == (["All of it."], ["handbook"])


def test_lengths_of_originals() -> None:
    retriever, home = _summaries("memory")
    stored = StoredDocuments(home.store)
    read, by_chunks = stored.limited_to(retriever, {}), stored.limited_to(home.search(), {})
    passages = retriever.invoke(QUESTION)
    (document,) = read({"input": QUESTION, "retrieved": passages})
    assert [size.characters for size in read.reader.sizes(passages, read.view) or ()] == [len(document.page_content)]
    assert by_chunks.reader.sizes(passages, by_chunks.view) is None  # these are other documents


# What the models of a retriever write


async def test_filter_of_a_model_is_no_wall() -> None:
    pytest.importorskip("lark")
    home = shared("langchain chroma")
    asking = asking_itself(Shelves("chroma", condition=ITS_OWN), home.store, f'eq(\\"tenant\\", \\"{OTHER}\\")')
    constructor: Any = asking.query_constructor
    constructor.bound.last.ast_parse = StructuredQueryOutputParser.from_components().ast_parse
    assert {passage.metadata["tenant"] for passage in asking.invoke(QUESTION)} == {OTHER}  # LangChain's own doing
    for _ in range(2):
        assert (await home.pipeline(asking).ask()).read == [text_of(MINE)]


@pytest.mark.parametrize("known", [True, False])
async def test_a_parser_of_filters_is_known_by_what_it_makes_of_them(known: bool) -> None:
    lark = pytest.importorskip("lark")

    class Adding(lark.Transformer):  # type: ignore[misc,name-defined]
        """Adds something to each filter."""

    parse = lark.Lark("start: /.+/", parser="lalr", transformer=Adding()).parse
    parser = StructuredQueryOutputParser.from_components() if known else StructuredQueryOutputParser(ast_parse=parse)
    shelves = Shelves("chroma", varied=True)
    home = InLangChain.on("chroma", shelves.store())
    model = FakeListChatModel(responses=['```json\n{"query": "crane", "filter": "NO_FILTER"}\n```'])
    constructor = get_query_constructor_prompt("A handbook", []) | model | parser
    pipeline = home.pipeline(asking_itself(shelves, home.store, query_constructor=constructor))
    await (reads(pipeline) if known else refuses(pipeline))


# What LangChain adds to the metadata


@both_modes
async def test_recent_passages_do_not_open_the_wall(mode: str) -> None:
    retriever, store = time_weighted(Shelves("memory", (MINE, OTHER), ITS_OWN), default_salience=2.0)
    assert OTHER in {passage.metadata["tenant"] for passage in retriever.invoke(QUESTION)}
    home = InLangChain.on("memory", store)
    for _ in range(2):
        assert (await home.pipeline(retriever).ask(mode)).read == [text_of(MINE)]
