"""`StoredDocuments` and `from_vectorstore` on real stores: what comes back, how it is labelled, what it costs."""

from __future__ import annotations

import asyncio
import functools
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_classic.retrievers import ParentDocumentRetriever
from langchain_classic.storage import LocalFileStore, create_kv_docstore
from langchain_core.documents import Document
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import ConfigurableField
from langchain_core.stores import InMemoryByteStore, InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter
from pydantic import ValidationError

from langchain_parts import MODES, QUESTION, TreeTracer, ask, outline
from langchain_selfroute import SelfRouteChain, StoredDocuments
from langchain_stores import (
    EMBEDDING,
    KINDS,
    LONG,
    Shelf,
    a_model,
    chain_on,
    chroma_class,
    chunks_of,
    holding,
    prompts_of,
    read_by,
    store_with,
    text_of,
    watched,
)
from scenarios import FOUND
from selfroute.errors import ConfigurationError, DocumentNotFoundError, ReplyError
from selfroute.stores import chroma

every_mode = pytest.mark.parametrize("mode", MODES)
every_kind = pytest.mark.parametrize("kind", KINDS)
TEXT = text_of("Ash")


def _label(chunks: int, method: str = "offsets", gaps: Any = ()) -> dict[str, Any]:
    return {"method": method, "chunks": chunks, "gaps": list(gaps), "trimmed": False}


# What comes back


@pytest.fixture(scope="module", params=KINDS)
def library(request: pytest.FixtureRequest) -> Any:
    """A store with two documents, read only."""
    chunks = [
        *chunks_of(TEXT, size=120, overlap=60, source="ash.md", shelf="north"),
        *chunks_of(text_of("Birch", 3), source="birch.md", shelf="north", page=3),
    ]
    return store_with(request.param, chunks)


@every_mode
async def test_a_document_comes_back_word_for_word(library: Any, mode: str) -> None:
    chain = SelfRouteChain.from_vectorstore(library, a_model())
    result = await ask(chain, QUESTION, mode)
    assert (result["answer"], result["route"], result["answerable"]) == (FOUND, "long_context", True)
    read = {document.metadata["source"]: document for document in result["context"]}
    assert read["ash.md"].page_content == TEXT
    assert read["ash.md"].metadata == {"source": "ash.md", "shelf": "north", "selfroute": _label(8)}


@every_mode
async def test_documents_come_best_first_each_once_and_by_name_in_the_prompt(library: Any, mode: str) -> None:
    chain = SelfRouteChain.from_vectorstore(library, a_model(), k=9)
    result = await ask(chain, QUESTION, mode)
    order = list(dict.fromkeys(passage.metadata["source"] for passage in result["retrieved"]))
    assert len(result["retrieved"]) == 9
    assert sorted(order) == ["ash.md", "birch.md"]
    assert [document.metadata["source"] for document in result["context"]] == order
    texts = {"ash.md": TEXT, "birch.md": text_of("Birch", 3)}
    named = [f"Document {n}: {source}\n{texts[source]}" for n, source in enumerate(sorted(order), 1)]
    assert "\n\n".join(named) in prompts_of(chain.llm)


async def test_the_place_of_a_chunk_is_none_of_its_document(library: Any) -> None:
    chain = SelfRouteChain.from_vectorstore(library, a_model(), k=20)
    (birch,) = [document for document in await read_by(chain) if document.metadata["source"] == "birch.md"]
    assert birch.metadata == {"source": "birch.md", "shelf": "north", "selfroute": {**_label(3), "pages": [[0, 3]]}}


@every_kind
async def test_what_only_some_chunks_say_is_none_of_their_document(kind: str) -> None:
    chunks = chunks_of(TEXT, source="ash.md", shelf="north")
    for n, chunk in enumerate(chunks):
        chunk.metadata.update({"hash": f"h{n}", "long": n > 3} if n else {"long": False})
    (document,) = await read_by(SelfRouteChain.from_vectorstore(store_with(kind, chunks), a_model()))
    assert document.metadata == {"source": "ash.md", "shelf": "north", "selfroute": _label(9)}


@every_mode
@every_kind
async def test_every_answer_of_a_batch_reads_its_own_documents(kind: str, mode: str) -> None:
    chunks = {owner: chunks_of(text_of(owner, 4), source=owner) for owner in ("Ash", "Birch", "Cedar")}
    store = store_with(kind, [chunk for own in chunks.values() for chunk in own])
    chain = SelfRouteChain.from_vectorstore(store, a_model(), k=1)
    questions = [own[2].page_content for own in chunks.values()]  # the same text has the same vector
    call = chain.abatch if mode.startswith("a") else chain.batch
    answers: Any = call(questions)
    results = await answers if mode.startswith("a") else answers
    assert [result["context"][0].page_content for result in results] == [text_of(owner, 4) for owner in chunks]


@every_kind
async def test_a_rag_answer_reads_no_document(kind: str) -> None:
    store = store_with(kind, chunks_of(TEXT, source="ash.md"))
    chain = SelfRouteChain.from_vectorstore(store, a_model(draft=("Ms Okafor.",)), k=2)
    result = chain.invoke(QUESTION)
    assert (result["route"], len(result["context"])) == ("rag", 2)
    assert all("selfroute" not in document.metadata for document in result["context"])


@every_kind
async def test_chunks_without_offsets_come_in_order_and_say_so(kind: str) -> None:
    chunks = chunks_of(TEXT, source="ash.md")
    for chunk in chunks:
        del chunk.metadata["start_index"]
    (document,) = await read_by(SelfRouteChain.from_vectorstore(store_with(kind, chunks), a_model()))
    assert document.page_content.split() == TEXT.split()
    assert document.metadata["selfroute"] == _label(9, "order")


@every_kind
async def test_a_chunk_that_is_gone_leaves_a_gap_that_is_told(kind: str) -> None:
    chunks = chunks_of(TEXT, source="ash.md")
    start = chunks[4].metadata["start_index"]
    store = store_with(kind, chunks[:4] + chunks[5:])
    (document,) = await read_by(SelfRouteChain.from_vectorstore(store, a_model()))
    gap = [start - 2, chunks[5].metadata["start_index"]]
    assert document.metadata["selfroute"] == _label(8, gaps=[gap])


@every_kind
async def test_chunks_stored_in_any_order_come_back_in_the_documents(kind: str) -> None:
    store = store_with(kind, reversed(chunks_of(TEXT, source="ash.md")))
    (document,) = await read_by(SelfRouteChain.from_vectorstore(store, a_model()))
    assert document.page_content == TEXT


@every_kind
async def test_another_key_may_name_the_document(kind: str) -> None:
    store = store_with(kind, chunks_of(TEXT, file="ash.md") + chunks_of(text_of("Birch", 4), file="birch.md"))
    chain = SelfRouteChain.from_vectorstore(store, a_model(), source_key="file", k=20)
    names = {document.metadata["file"] for document in await read_by(chain)}
    assert names == {"ash.md", "birch.md"}
    assert ": ash.md\nParagraph 0 of Ash" in prompts_of(chain.llm)


async def test_the_other_fields_are_handed_through() -> None:
    long, prompt = a_model(), PromptTemplate.from_template("Say no. {context}")
    store = store_with("memory", chunks_of(TEXT, source="ash.md"))
    chain = SelfRouteChain.from_vectorstore(
        store,
        a_model(draft=("no",)),
        k=3,
        long_context_llm=long,
        rag_prompt=prompt,
        refusal="no",
        max_context_tokens=20,
        token_counter=lambda text: len(text.split()),
    )
    result = chain.invoke(QUESTION)
    assert chain.retriever.search_kwargs == {"k": 3}
    assert (chain.rag_prompt, long.steps) == (prompt, ["long_context"])
    assert result["context"][0].metadata["selfroute"]["trimmed"] is True


@pytest.mark.parametrize("field", [{"ks": 3}, {"top_k": 1}, {"source": "file"}])
def test_unknown_fields_are_refused(field: Any) -> None:
    with pytest.raises((ValidationError, TypeError)):
        SelfRouteChain.from_vectorstore(store_with("memory"), a_model(), **field)


@pytest.mark.parametrize(
    ("kind", "condition"), [("memory", {"tenant": "a"}), ("chroma", lambda _: True), ("chroma", 3)]
)
def test_a_filter_that_can_be_none_is_refused_at_once(kind: str, condition: Any) -> None:
    store = store_with(kind)
    with pytest.raises(ConfigurationError, match="as filter"):
        SelfRouteChain.from_vectorstore(store, a_model(), filter=condition)
    with pytest.raises(ConfigurationError, match="as filter"):
        StoredDocuments(store, filter=condition)


SOURCES = (
    7,
    -7,
    0,
    2.5,
    True,
    "Über die Größe.pdf",
    "岩波/本.txt",
    "a 'b' \"c\"",
    "$ne",
    "{x}",
    "%s",
    "a\nb",
    "",
    " ",
    "x" * 900,
)


@every_kind
@pytest.mark.parametrize("source", SOURCES, ids=repr)
async def test_a_source_of_any_plain_kind_is_found(kind: str, source: Any) -> None:
    store = store_with(kind, chunks_of(TEXT, source=source) + chunks_of(text_of("Birch", 3), source="another"))
    chain = chain_on(store, StoredDocuments(store), store.as_retriever(search_kwargs={"k": 20}))
    (document,) = [one for one in await read_by(chain) if one.metadata["source"] == source]
    assert (document.page_content, type(document.metadata["source"])) == (TEXT, type(source))


# Passages without a document


@every_mode
@every_kind
async def test_a_source_that_the_store_does_not_know_is_an_error_that_names_it(kind: str, mode: str) -> None:
    store = store_with(kind, chunks_of(TEXT, source="ash.md"))
    other = store_with(kind, chunks_of(TEXT, source="birch.md"))
    for fields in ({"filter": {}}, {}):
        chain = chain_on(store, StoredDocuments(store, **fields), other.as_retriever())
        with pytest.raises(LookupError, match=r"no chunk of 'birch\.md'") as caught:
            await ask(chain, QUESTION, mode)
        assert isinstance(caught.value, DocumentNotFoundError)


@every_mode
@every_kind
async def test_if_no_passage_names_its_document_the_error_says_what_there_is(kind: str, mode: str) -> None:
    store = store_with(kind, chunks_of(TEXT, file="ash.md"))
    with pytest.raises(LookupError, match=r"metadata\['source'\].*\['file', 'start_index'\].*source_key="):
        await ask(SelfRouteChain.from_vectorstore(store, a_model()), QUESTION, mode)


@pytest.mark.parametrize(
    ("source", "what"),
    [
        (None, "None"),
        (["a"], "a list"),
        ({"a": 1}, "a dict"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (b"a", "a bytes"),
        (Path("a"), "a "),
    ],
    ids=repr,
)
async def test_a_source_that_cannot_name_a_document_is_said_to_be_that(source: Any, what: str) -> None:
    store = store_with("memory", [Document("Some crane.", metadata={"source": source, "file": "a"})])
    with pytest.raises(LookupError, match=r"metadata\['source'\] of a retrieved passage is " + what) as refused:
        await read_by(chain_on(store, StoredDocuments(store)))
    assert "index the chunks with a string or a number" in str(refused.value)
    (document,) = await read_by(chain_on(store, StoredDocuments(store, source_key="file")))
    assert document.page_content == "Some crane."


@pytest.mark.parametrize("source", ["", 0, 7, 1.5, True], ids=repr)
async def test_texts_and_numbers_name_documents(source: Any) -> None:
    store = store_with("memory", [Document("Some crane.", metadata={"source": source})])
    (document,) = await read_by(chain_on(store, StoredDocuments(store)))
    assert document.metadata["selfroute"]["chunks"] == 1


@every_kind
async def test_a_passage_without_a_source_stands_for_itself_beside_others(kind: str) -> None:
    store = store_with(kind, [*chunks_of(TEXT, source="ash.md"), Document("A loose leaf."), Document("Another leaf.")])
    chain = SelfRouteChain.from_vectorstore(store, a_model(), k=20, max_documents=None)
    read = await read_by(chain)
    texts = {document.page_content: document.metadata["selfroute"] for document in read}
    assert texts == {TEXT: _label(9), "A loose leaf.": _label(1, "order"), "Another leaf.": _label(1, "order")}
    assert all(f"Document {n}" in prompts_of(chain.llm) for n in (1, 2, 3))


@every_mode
@every_kind
async def test_an_empty_store_leads_to_no_answer_and_no_model_call(kind: str, mode: str) -> None:
    chain = SelfRouteChain.from_vectorstore(store_with(kind), a_model())
    result = await ask(chain, QUESTION, mode)
    assert (result["answerable"], result["context"], result["decision"]["signal"]) == (False, [], "no_passages")
    assert chain.llm.calls == []


@every_kind
async def test_empty_chunks_are_passed_over(kind: str) -> None:
    chunks = chunks_of(TEXT, source="ash.md")
    empty = [Document("", metadata={"source": "ash.md", "start_index": start}) for start in (0, 53, 4000)]
    (document,) = await read_by(SelfRouteChain.from_vectorstore(store_with(kind, chunks + empty), a_model(), k=20))
    assert (document.page_content, document.metadata["selfroute"]) == (TEXT, _label(9))


@every_mode
@every_kind
async def test_a_document_without_text_is_no_document(kind: str, mode: str) -> None:
    store = store_with(kind, [Document("", metadata={"source": "ash.md"})])
    chain = SelfRouteChain.from_vectorstore(store, a_model())
    result = await ask(chain, QUESTION, mode)
    assert (result["answerable"], chain.llm.steps) == (False, ["rag"])


async def test_rows_without_text_or_metadata_are_passed_over() -> None:
    store = store_with("chroma", chunks_of(TEXT, source="ash.md"))
    store._collection.add(ids=["bare"], embeddings=[[0.0] * 4])
    store._collection.add(ids=["vector"], embeddings=[[0.0] * 4], metadatas=[{"source": "ash.md"}])
    (document,) = await read_by(SelfRouteChain.from_vectorstore(store, a_model(), k=5))
    # A row that stands nowhere: nobody knows where its text would belong.
    assert document.page_content.split() == TEXT.split()
    memory = store_with("memory", chunks_of(TEXT, source="ash.md"))
    memory.store["bare"] = {"id": "bare", "vector": [0.0] * 4, "text": "Bare.", "metadata": None}
    passage = memory.get_by_ids(list(memory.store)[:1])
    assert StoredDocuments(memory)({"input": QUESTION, "retrieved": passage})[0].page_content == TEXT


# Originals


def _originals(kind: str, folder: Path) -> Any:
    return InMemoryStore() if kind == "in memory" else create_kv_docstore(LocalFileStore(folder))


@every_mode
@pytest.mark.parametrize("docstore", ["in memory", "in files"])
@every_kind
async def test_an_original_is_taken_where_there_is_one(kind: str, docstore: str, mode: str, tmp_path: Path) -> None:
    originals = _originals(docstore, tmp_path)
    originals.mset([("ash.md", Document("The original.", metadata={"source": "ash.md", "author": "Ash"}))])
    store = store_with(kind, chunks_of(TEXT, source="ash.md") + chunks_of(text_of("Birch", 3), source="birch.md"))
    chain = SelfRouteChain.from_vectorstore(store, a_model(), k=20, docstore=originals)
    result = await ask(chain, QUESTION, mode)
    read = {document.metadata["source"]: document for document in result["context"]}
    assert read["ash.md"].page_content == "The original."
    assert read["ash.md"].metadata == {"source": "ash.md", "author": "Ash", "selfroute": _label(0, "original")}
    assert read["birch.md"].metadata["selfroute"] == _label(3)
    assert "selfroute" not in originals.mget(["ash.md"])[0].metadata


def _parents(kind: str, folder: Path, **fields: Any) -> ParentDocumentRetriever:
    children = RecursiveCharacterTextSplitter(chunk_size=90, chunk_overlap=0, add_start_index=True)
    docstore = _originals("in files" if kind == "chroma" else "in memory", folder)
    retriever = ParentDocumentRetriever(
        vectorstore=store_with(kind), docstore=docstore, child_splitter=children, **fields
    )
    owners = ("Ash", "Birch")
    retriever.add_documents([Document(text_of(owner), metadata={"source": owner, "tenant": owner}) for owner in owners])
    return retriever


@every_mode
@every_kind
async def test_child_passages_lead_to_the_originals_of_a_parent_retriever(kind: str, mode: str, tmp_path: Path) -> None:
    indexer = _parents(kind, tmp_path)
    store = indexer.vectorstore
    documents = StoredDocuments(store, source_key="doc_id", docstore=indexer.docstore)
    read = await read_by(chain_on(store, documents, store.as_retriever(search_kwargs={"k": 20})), mode)
    assert {document.page_content for document in read} == {text_of("Ash"), text_of("Birch")}
    assert [document.metadata["selfroute"]["method"] for document in read] == ["original"] * 2


@every_mode
@every_kind
async def test_a_parent_retriever_may_be_the_chains_own(kind: str, mode: str, tmp_path: Path) -> None:
    retriever = _parents(kind, tmp_path, search_kwargs={"k": 20})
    chain = chain_on(retriever.vectorstore, StoredDocuments(retriever.vectorstore), retriever)
    read = {document.metadata["source"]: document for document in await read_by(chain, mode)}
    assert {source: document.page_content for source, document in read.items()} == {
        owner: text_of(owner) for owner in ("Ash", "Birch")
    }


@every_kind
async def test_parts_of_a_document_that_count_from_zero_each_are_not_called_exact(kind: str, tmp_path: Path) -> None:
    retriever = _parents(
        kind, tmp_path, parent_splitter=RecursiveCharacterTextSplitter(chunk_size=300, chunk_overlap=0)
    )
    chain = chain_on(retriever.vectorstore, StoredDocuments(retriever.vectorstore))
    for document in await read_by(chain):
        exact = document.page_content.split() == text_of(document.metadata["source"]).split()
        assert exact or document.metadata["selfroute"]["method"] == "order" or document.metadata["selfroute"]["gaps"]


@pytest.mark.parametrize(
    "docstore", [{}, [], "folder", InMemoryVectorStore(EMBEDDING)], ids=lambda it: type(it).__name__
)
def test_what_can_be_no_docstore_is_refused_at_once(docstore: Any) -> None:
    with pytest.raises(ConfigurationError, match="docstore must be"):
        SelfRouteChain.from_vectorstore(store_with("memory"), a_model(), docstore=docstore)


async def test_a_docstore_of_something_else_is_told() -> None:
    docstore: Any = InMemoryByteStore()
    docstore.mset([("ash.md", b"bytes")])
    store = store_with("memory", chunks_of(TEXT, source="ash.md"))
    with pytest.raises(ReplyError, match="docstore must return a list of Documents; got bytes"):
        await read_by(SelfRouteChain.from_vectorstore(store, a_model(), docstore=docstore))


# Other stores


@every_mode
async def test_any_other_store_is_read_through_fetch(mode: str) -> None:
    shelf = Shelf(chunks_of(TEXT, source="ash.md") + chunks_of(text_of("Birch", 3), source="birch.md"))
    chain = SelfRouteChain.from_vectorstore(shelf, a_model(), k=4, fetch=shelf.fetch)
    read = await read_by(chain, mode)
    assert [document.page_content for document in read] == [text_of("Birch", 3), TEXT]
    assert [document.metadata["selfroute"] for document in read] == [_label(3), _label(9)]


def test_another_store_without_fetch_is_refused_with_what_to_do() -> None:
    for make in (StoredDocuments, functools.partial(SelfRouteChain.from_vectorstore, llm=a_model())):
        with pytest.raises(ConfigurationError, match=r"a Shelf has no known way .* pass fetch=, a callable"):
            make(Shelf())


RETURNS: dict[str, Callable[[list[Document]], Any]] = {
    "list": list,
    "tuple": tuple,
    "generator": lambda chunks: (chunk for chunk in chunks),
    "dict values": lambda chunks: dict(enumerate(chunks)).values(),
    "without ids": lambda chunks: [Document(chunk.page_content, metadata=chunk.metadata) for chunk in chunks],
    "only offsets": lambda chunks: [
        Document(chunk.page_content, metadata={"start_index": chunk.metadata["start_index"]}) for chunk in chunks
    ],
}


@pytest.mark.parametrize("name", RETURNS)
async def test_fetch_may_return_chunks_in_any_collection(name: str) -> None:
    shelf = Shelf(chunks_of(TEXT, source="ash.md"))
    fetch = lambda *asked: RETURNS[name](shelf.fetch(*asked))  # noqa: E731
    (document,) = await read_by(SelfRouteChain.from_vectorstore(shelf, a_model(), fetch=fetch))
    assert (document.page_content, document.metadata["selfroute"]) == (TEXT, _label(9))


async def _afetch(*_: Any) -> list[Document]:
    return []


class _AsyncFetch:
    async def __call__(self, *_: Any) -> list[Document]:
        return []


@pytest.mark.parametrize(
    "fetch", [_afetch, functools.partial(_afetch, 1), _AsyncFetch(), "fetch", [], 3], ids=lambda it: type(it).__name__
)
def test_a_fetch_that_is_async_or_can_not_be_called_is_refused_at_once(fetch: Any) -> None:
    with pytest.raises(ConfigurationError, match="fetch must be a sync callable"):
        StoredDocuments(Shelf(), fetch=fetch)


NONSENSE: dict[str, Any] = {
    "None": None,
    "text": "Ms Okafor",
    "a document": Document("Ms Okafor"),
    "a dict": {"documents": []},
    "texts": ["Ms Okafor"],
    "a number": 3,
    "rows": [("id", "text")],
}


@every_mode
@pytest.mark.parametrize("name", NONSENSE)
async def test_a_fetch_that_returns_nonsense_is_told(name: str, mode: str) -> None:
    shelf = Shelf(chunks_of(TEXT, source="ash.md"))
    chain = SelfRouteChain.from_vectorstore(shelf, a_model(), fetch=lambda *_: NONSENSE[name])
    with pytest.raises(ReplyError, match="fetch must return a list of Documents; got"):
        await ask(chain, QUESTION, mode)


@every_mode
async def test_a_fetch_that_hides_that_it_is_async_is_told(mode: str) -> None:
    shelf = Shelf(chunks_of(TEXT, source="ash.md"))
    chain = SelfRouteChain.from_vectorstore(shelf, a_model(), fetch=lambda *_: _afetch())  # type: ignore[arg-type]
    with pytest.raises(ReplyError, match="fetch must return a list of Documents; got coroutine"):
        await ask(chain, QUESTION, mode)


async def test_a_fetch_that_returns_chunks_of_other_documents_is_told() -> None:
    shelf = Shelf(chunks_of(TEXT, source="ash.md") + chunks_of(text_of("Birch", 3), source="birch.md"))
    chain = SelfRouteChain.from_vectorstore(shelf, a_model(), k=1, fetch=lambda *_: shelf.chunks)
    with pytest.raises(ReplyError, match=r"asked for 'birch\.md' and returned a chunk of 'ash\.md'"):
        chain.invoke(QUESTION)


@every_mode
async def test_what_fetch_raises_passes_untouched(mode: str) -> None:
    shelf, error = Shelf(chunks_of(TEXT, source="ash.md")), OSError("the shelf is down")

    def fetch(*_: Any) -> list[Document]:
        raise error

    with pytest.raises(OSError, match="down") as caught:
        await ask(SelfRouteChain.from_vectorstore(shelf, a_model(), fetch=fetch), QUESTION, mode)
    assert caught.value is error


async def test_fetch_is_given_key_source_and_filter() -> None:
    asked: list[Any] = []
    condition = lambda metadata: metadata["source"] == "ash.md"  # noqa: E731
    shelf = Shelf(chunks_of(TEXT, source="ash.md"))

    def fetch(*given: Any) -> list[Document]:
        asked.append(given)
        return shelf.fetch(*given)

    await read_by(SelfRouteChain.from_vectorstore(shelf, a_model(), fetch=fetch, filter=condition))
    await read_by(SelfRouteChain.from_vectorstore(shelf, a_model(), fetch=fetch))
    assert asked == [("source", "ash.md", condition), ("source", "ash.md", None)]


async def test_fetch_goes_before_what_is_known_of_a_store() -> None:
    store = store_with("memory", chunks_of(TEXT, source="ash.md"))
    fetch = lambda *_: [Document("Fetched.")]  # noqa: E731
    (document,) = await read_by(SelfRouteChain.from_vectorstore(store, a_model(), fetch=fetch))
    assert document.page_content == "Fetched."


# The cache


def _texts_read(seen: list[Any]) -> int:
    return sum(1 for options in seen if options["include"] and not options["offset"])


@every_mode
async def test_a_second_question_does_not_read_the_text_again(mode: str) -> None:
    seen: list[Any] = []
    store = store_with("chroma", chunks_of(TEXT, source="ash.md"), of=watched(seen))
    chain = SelfRouteChain.from_vectorstore(store, a_model())
    first, again = await read_by(chain, mode), await read_by(chain, mode)
    assert first == again
    assert [bool(options["include"]) for options in seen] == [True, False]


async def test_what_a_caller_does_to_a_document_does_not_reach_the_cache() -> None:
    store = store_with("chroma", chunks_of(TEXT, source="ash.md"))
    chain = SelfRouteChain.from_vectorstore(store, a_model())
    (document,) = await read_by(chain)
    document.page_content, document.metadata["source"] = "Changed.", "changed.md"
    document.metadata["selfroute"]["gaps"].append([0, 1])
    (document,) = await read_by(chain)
    assert (document.page_content, document.metadata) == (TEXT, {"source": "ash.md", "selfroute": _label(9)})


@every_mode
@every_kind
async def test_added_deleted_and_reindexed_chunks_are_noticed(kind: str, mode: str) -> None:
    chunks = chunks_of(TEXT, source="ash.md")
    store = store_with(kind)
    ids = store.add_documents(chunks[:8])
    chain = SelfRouteChain.from_vectorstore(store, a_model())
    assert (await read_by(chain, mode))[0].metadata["selfroute"]["chunks"] == 8
    ids += store.add_documents(chunks[8:])
    assert (await read_by(chain, mode))[0].page_content == TEXT
    store.delete(ids[3:4])
    assert (await read_by(chain, mode))[0].metadata["selfroute"]["gaps"] != []
    store.delete([*ids[:3], *ids[4:]])
    store.add_documents(chunks_of(text_of("Birch"), source="ash.md"))
    assert (await read_by(chain, mode))[0].page_content == text_of("Birch")


async def test_a_chunk_that_changes_under_its_id_is_noticed_when_told_or_retrieved() -> None:
    chunks = chunks_of(TEXT, source="ash.md")
    store = store_with("chroma")
    ids = store.add_documents(chunks)
    stored = StoredDocuments(store)
    given = {"input": QUESTION, "retrieved": store.get_by_ids(ids[:1])}
    read = stored.behind(store.as_retriever(), {})
    read(given)
    changed = Document(chunks[5].page_content.replace("crates", "barrel"), metadata=chunks[5].metadata)
    store.update_document(ids[5], changed)
    assert read(given)[0].page_content == TEXT
    for forget in (lambda: stored.forget("ash.md"), stored.forget):
        forget()
        assert "barrel" in read(given)[0].page_content
    store.update_document(ids[5], chunks[5])
    stored.forget("birch.md")
    assert "barrel" in read(given)[0].page_content
    # A passage that is not in the kept text shows that it is out of date.
    assert read({"input": QUESTION, "retrieved": store.get_by_ids(ids[5:6])})[0].page_content == TEXT


@every_mode
@pytest.mark.parametrize("kind", ["memory", "fetch"])
async def test_a_store_that_does_not_tell_ids_for_less_is_read_each_time(kind: str, mode: str) -> None:
    chunks = chunks_of(TEXT, source="ash.md")
    for n, chunk in enumerate(chunks):
        chunk.id = f"chunk {n}"
    changed = Document("Paragraph 5 is void.", id="chunk 5", metadata=chunks[5].metadata)
    if kind == "memory":
        store = store_with("memory", chunks)
        chain = SelfRouteChain.from_vectorstore(store, a_model(), k=1)
        change = lambda: store.add_documents([changed])  # noqa: E731
    else:
        shelf = Shelf(chunks)
        chain = SelfRouteChain.from_vectorstore(shelf, a_model(), k=1, fetch=shelf.fetch)
        change = lambda: shelf.chunks.__setitem__(5, changed)  # noqa: E731
    chain.invoke(QUESTION)
    change()
    assert changed.page_content in (await read_by(chain, mode))[0].page_content


@pytest.mark.parametrize("forget", [None, "ash.md"])
async def test_to_forget_while_a_document_is_read_holds_for_that_reading(forget: str | None) -> None:
    changes: list[Any] = []
    store = store_with("chroma", of=watched([], after=lambda: changes.pop()() if changes else None))
    chunks = chunks_of(TEXT, source="ash.md")
    ids = store.add_documents(chunks)
    chain = SelfRouteChain.from_vectorstore(store, a_model(), k=1)
    changed = Document("Paragraph 5 is void.", metadata=chunks[5].metadata)

    def change() -> None:  # once the old text was handed out
        store.update_document(ids[5], changed)
        chain.documents.forget(forget)

    changes.append(change)
    assert (await read_by(chain))[0].page_content == TEXT
    assert changed.page_content in (await read_by(chain))[0].page_content


# Many rows


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 8, 9, 24])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
async def test_a_store_is_read_in_pages(count: int, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert chroma.PAGE < 32_766, "more than Chroma answers"
    monkeypatch.setattr(chroma, "PAGE", size)
    seen: list[Any] = []
    chunks = chunks_of(text_of("Ash", count), source="ash.md")
    store = store_with("chroma", chunks + chunks_of(text_of("Birch"), source="birch.md"), of=watched(seen))
    chain = SelfRouteChain.from_vectorstore(store, a_model(), filter=holding("chroma", source="ash.md"))
    for _ in range(2):
        (document,) = await read_by(chain)
        assert (document.page_content, document.metadata["selfroute"]) == (text_of("Ash", count), _label(count))
    assert _texts_read(seen) == 1
    assert all(options["limit"] == size for options in seen if options["include"])


@pytest.mark.matrix
async def test_a_document_of_more_chunks_than_chroma_answers_at_once_is_read_whole() -> None:
    chromadb = pytest.importorskip("chromadb")
    client, count, page = chromadb.EphemeralClient(), 33_000, 5_000  # it answers 32,766
    quick = {"hnsw": {"batch_size": 100_000, "sync_threshold": 200_000, "ef_construction": 4, "max_neighbors": 2}}
    collection = client.create_collection(f"c{uuid.uuid4().hex}", configuration=quick)
    words = [f"w{n}" for n in range(count)]
    for at in range(0, count, page):
        some = words[at : at + page]
        where = [{"source": "long"}] * len(some)
        collection.add(ids=some, documents=some, metadatas=where, embeddings=[[0.0]] * len(some))  # type: ignore[arg-type]
    store = chroma_class()(collection.name, EMBEDDING, client=client)
    read = StoredDocuments(store).behind(store.as_retriever(), {})
    for _ in range(2):
        (document,) = read({"input": QUESTION, "retrieved": store.get_by_ids(["w7"])})
        assert document.page_content.split() == words
    client.delete_collection(collection.name)


# Async


@pytest.mark.parametrize("mode", ["ainvoke", "astream"])
@pytest.mark.parametrize("kind", ["fetch", "chroma", "memory", "docstore"])
async def test_the_event_loop_goes_on_while_documents_are_read(kind: str, mode: str) -> None:
    loop, reading, gone_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    waited: list[bool] = []

    def block(*_: Any) -> None:
        loop.call_soon_threadsafe(reading.set)
        waited.append(gone_on.wait(30))  # for the loop: if that were blocked, nobody would come

    chunks = chunks_of(TEXT, source="ash.md")
    if kind == "fetch":
        shelf = Shelf(chunks)
        chain = SelfRouteChain.from_vectorstore(shelf, a_model(), fetch=lambda *asked: block() or shelf.fetch(*asked))
    elif kind == "docstore":

        class Slow(InMemoryStore):
            def mget(self, keys: Any) -> Any:
                block()
                return super().mget(keys)

        chain = SelfRouteChain.from_vectorstore(store_with("memory", chunks), a_model(), docstore=Slow())
    elif kind == "chroma":
        store = store_with("chroma", chunks, of=watched([], before=block))
        chain = SelfRouteChain.from_vectorstore(store, a_model())
    else:
        store = store_with("memory", chunks)
        # The retriever's filter looks at every chunk as well, but on other threads and before this one.
        chain = chain_on(store, StoredDocuments(store, filter=lambda _: block() or True))

    async def somebody_else() -> None:
        await reading.wait()
        gone_on.set()

    (document,), _ = await asyncio.gather(read_by(chain, mode), somebody_else())
    assert document.page_content == TEXT
    assert waited
    assert all(waited)


# Among the other parts


@every_mode
@every_kind
async def test_the_run_that_reads_records_no_text(kind: str, mode: str) -> None:
    store = store_with(kind, chunks_of(TEXT, source="ash.md"))
    chain, tracer = SelfRouteChain.from_vectorstore(store, a_model(), k=1), TreeTracer()
    await ask(chain, QUESTION, mode, {"callbacks": [tracer]})
    assert outline(tracer.root) == {"SelfRouteChain": ["retrieve", "rag", "read_documents", "long_context"]}
    (run,) = [child for child in tracer.root.children if child.name == "read_documents"]
    assert run.inputs == {"input": QUESTION, "retrieved": 1}
    assert run.outputs == {"documents": [{"source": "ash.md", "characters": len(TEXT), **_label(9)}]}


@every_mode
async def test_a_failure_to_read_ends_its_run(mode: str) -> None:
    store = store_with("memory", chunks_of(TEXT, file="ash.md"))
    chain, tracer = SelfRouteChain.from_vectorstore(store, a_model(), k=1), TreeTracer()
    with pytest.raises(LookupError):
        await ask(chain, QUESTION, mode, {"callbacks": [tracer]})
    (run,) = [child for child in tracer.root.children if child.name == "read_documents"]
    assert "DocumentNotFoundError" in (run.error or "")
    assert tracer.open_runs == []


@every_kind
def test_the_graph_shows_the_same_steps(kind: str) -> None:
    chain = SelfRouteChain.from_vectorstore(store_with(kind), a_model())
    names = {node.name for node in chain.get_graph().nodes.values()}
    assert names > {"retrieve", "rag", "read_documents", "long_context"}


@pytest.mark.filterwarnings("ignore:.*beta:langchain_core._api.beta_decorator.LangChainBetaWarning")
def test_a_chain_on_a_store_is_a_tool() -> None:
    store = store_with("memory", chunks_of(TEXT, source="ash.md"))
    chain = SelfRouteChain.from_vectorstore(store, a_model())
    assert chain.pick("answer").as_tool(name="ask", description="Asks.").invoke({"input": QUESTION}) == FOUND


@every_mode
async def test_fields_and_documents_may_be_configured_per_call(mode: str) -> None:
    chunks = chunks_of(TEXT, source="ash.md")
    store, other = store_with("memory", chunks), store_with("memory", chunks_of(text_of("Birch"), source="birch.md"))
    chain = SelfRouteChain.from_vectorstore(store, a_model()).configurable_fields(
        documents=ConfigurableField(id="documents"),
        retriever=ConfigurableField(id="retriever"),
        max_context_tokens=ConfigurableField(id="most"),
    )
    (document,) = await read_by(chain, mode, {"configurable": {"most": 20}})
    assert document.metadata["selfroute"]["trimmed"] is True
    there = {"documents": StoredDocuments(other), "retriever": other.as_retriever()}
    assert (await read_by(chain, mode, {"configurable": there}))[0].page_content == text_of("Birch")


@every_mode
async def test_the_default_prompts_and_the_marker_of_these_tests_go_together(mode: str) -> None:
    chain = SelfRouteChain.from_vectorstore(store_with("memory", chunks_of(TEXT, source="ash.md")), a_model())
    await ask(chain, QUESTION, mode)
    assert chain.llm.steps == ["rag", "long_context"]
    assert chain.llm.calls[1].prompt.startswith(LONG)
