"""`StoredDocuments` and `from_vectorstore` where LangChain has its own ways; `tests/hosts` has what both share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_classic.retrievers import ParentDocumentRetriever
from langchain_classic.storage import LocalFileStore, create_kv_docstore
from langchain_core.documents import Document
from langchain_core.stores import InMemoryByteStore, InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore

from hosts_documents import ORIGINAL, whole
from langchain_parts import MODES, QUESTION
from langchain_selfroute import SelfRouteChain, StoredDocuments
from langchain_stores import (
    EMBEDDING,
    KINDS,
    Shelf,
    a_model,
    chain_on,
    chunks_of,
    prompts_of,
    read_by,
    store_with,
    text_of,
)
from langchain_wrappers import splitter
from scenarios import STARTED
from selfroute.errors import ConfigurationError, ReplyError

every_mode = pytest.mark.parametrize("mode", MODES)
every_kind = pytest.mark.parametrize("kind", KINDS)
TEXT, BIRCH = text_of("Ash"), text_of("Birch", 3)


@every_kind
async def test_another_key_may_name_the_document(kind: str) -> None:
    store = store_with(kind, chunks_of(TEXT, file="ash.md") + chunks_of(text_of("Birch", 4), file="birch.md"))
    chain = SelfRouteChain.from_vectorstore(store, a_model(), source_key="file", k=20, draft_passages=2)
    assert {document.metadata["file"] for document in await read_by(chain)} == {"ash.md", "birch.md"}
    assert ": ash.md\nParagraph 0 of Ash" in prompts_of(chain.llm)


@every_kind
@pytest.mark.parametrize("source", [7, -7, 0, 1, 1.5, True, "", " ", "x" * 900], ids=lambda it: repr(it)[:9])
async def test_texts_and_numbers_name_documents(kind: str, source: Any) -> None:
    store = store_with(kind, chunks_of(TEXT, source=source) + chunks_of(BIRCH, source="another"))
    retriever = store.as_retriever(search_kwargs={"k": 20})
    chain = chain_on(store, StoredDocuments(store), retriever, **STARTED, draft_passages=None)
    (document,) = [one for one in await read_by(chain) if one.metadata["source"] == source]
    assert (document.page_content, type(document.metadata["source"])) == (TEXT, type(source))


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
    named = {"source": source, "file": "a"}
    store = store_with("memory", [Document("Some crane.", metadata=named), Document("It lifts.", metadata=named)])
    with pytest.raises(LookupError, match=r"metadata\['source'\] of a retrieved passage is " + what) as refused:
        await read_by(chain_on(store, StoredDocuments(store)))
    assert "index the chunks with a string or a number" in str(refused.value)
    (document,) = await read_by(chain_on(store, StoredDocuments(store, source_key="file")))
    assert document.page_content.split() == ["Some", "crane.", "It", "lifts."]


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


def _parents(kind: str, docstore: Any, **fields: Any) -> ParentDocumentRetriever:
    retriever = ParentDocumentRetriever(
        vectorstore=store_with(kind), docstore=docstore, child_splitter=splitter(90), **fields
    )
    retriever.add_documents([Document(text_of(owner), metadata={"source": owner}) for owner in ("Ash", "Birch")])
    return retriever


@every_mode
@every_kind
@pytest.mark.parametrize("docstore", ["in memory", "in files"])
async def test_children_lead_to_their_parents(kind: str, docstore: str, mode: str, tmp_path: Path) -> None:
    indexer = _parents(
        kind, InMemoryStore() if docstore == "in memory" else create_kv_docstore(LocalFileStore(tmp_path))
    )
    store = indexer.vectorstore
    documents = StoredDocuments(store, source_key="doc_id", docstore=indexer.docstore)
    retriever = store.as_retriever(search_kwargs={"k": 20})
    read = await read_by(chain_on(store, documents, retriever, **STARTED, draft_passages=None), mode)
    assert {document.page_content for document in read} == {text_of("Ash"), text_of("Birch")}
    assert [document.metadata["selfroute"] for document in read] == [ORIGINAL] * 2


def test_what_can_be_no_docstore_is_refused_at_once() -> None:
    for docstore in ({}, [], "folder", InMemoryVectorStore(EMBEDDING)):
        with pytest.raises(ConfigurationError, match="docstore must be"):
            SelfRouteChain.from_vectorstore(store_with("memory"), a_model(), docstore=docstore)  # type: ignore[arg-type]


async def test_a_docstore_of_something_else_is_told() -> None:
    docstore: Any = InMemoryByteStore()
    docstore.mset([("ash.md", b"bytes")])
    store = store_with("memory", chunks_of(TEXT, source="ash.md"))
    with pytest.raises(ReplyError, match=r"docstore must hold .*create_kv_docstore; got bytes"):
        await read_by(SelfRouteChain.from_vectorstore(store, a_model(), docstore=docstore))


async def test_fetch_is_given_key_source_and_filter() -> None:
    condition = lambda metadata: metadata["source"] == "ash.md"  # noqa: E731
    shelf = Shelf(chunks_of(TEXT, source="ash.md"))
    asked: list[Any] = []

    def fetch(*given: Any) -> list[Document]:
        asked.append(given)
        starts = [{"start_index": one.metadata["start_index"]} for one in shelf.fetch(*given)]
        return [Document(one.page_content, metadata=at) for one, at in zip(shelf.fetch(*given), starts, strict=True)]

    for fields in ({"filter": condition}, {}):
        (document,) = await read_by(SelfRouteChain.from_vectorstore(shelf, a_model(), fetch=fetch, **fields))
        assert (document.page_content, document.metadata["selfroute"]) == (TEXT, whole(9))
    assert asked == [("source", "ash.md", condition), ("source", "ash.md", None)]
