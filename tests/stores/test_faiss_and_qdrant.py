"""What holds for FAISS and Qdrant alone."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_selfroute import StoredDocuments
from selfroute.errors import ConfigurationError, DocumentNotFoundError
from store_cases import Piece, cut, numbered, text_of
from store_cases.in_langchain import HashEmbeddings

pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant:UserWarning")
PIECES = cut(numbered("minutes", 20))


@pytest.fixture
def faiss(tmp_path: Path) -> Any:
    pytest.importorskip("faiss")
    pytest.importorskip("langchain_community")
    from store_cases.in_faiss_and_qdrant import FaissCase  # noqa: PLC0415

    return FaissCase(tmp_path)


@pytest.fixture
def qdrant(tmp_path: Path) -> Any:
    pytest.importorskip("langchain_qdrant")
    from store_cases.in_faiss_and_qdrant import QdrantCase  # noqa: PLC0415

    return QdrantCase(tmp_path)


def read(stored: StoredDocuments, source: Any = "minutes", key: str = "source") -> str:
    (document,) = stored({"input": "?", "retrieved": [Document(PIECES[0].text, metadata={key: source})]})
    return document.page_content


def test_faiss_saved_and_loaded(faiss: Any, tmp_path: Path) -> None:
    unplaced = [Piece(piece.text) for piece in PIECES]
    ids = faiss.add([*unplaced[:10], Piece("in between"), *unplaced[10:]])
    faiss.delete(ids[10:11])
    faiss.vectorstore.save_local(str(tmp_path / "saved"))
    again = type(faiss.vectorstore).load_local(
        str(tmp_path / "saved"), HashEmbeddings(), allow_dangerous_deserialization=True
    )
    assert "".join(read(StoredDocuments(again, filter={})).split()) == "".join(text_of(PIECES).split())


def test_faiss_reads_what_was_changed_since(faiss: Any) -> None:
    ids = faiss.add(PIECES[:10])
    stored, looked = StoredDocuments(faiss.vectorstore, filter={}), list[str]()
    search = faiss.vectorstore.docstore.search
    faiss.vectorstore.docstore.search = lambda id_: looked.append(id_) or search(id_)

    def reads(pieces: list[Piece]) -> bool:
        return "".join(read(stored).split()) == "".join(text_of(pieces).split())

    faiss.add([Piece(f"other {number}", {"source": "others"}) for number in range(50)])
    assert reads(PIECES[:10])
    looked.clear()
    assert reads(PIECES[:10])
    assert len(looked) == 10
    faiss.add(PIECES[10:15])
    assert reads(PIECES[:15])
    faiss.delete(ids[:3])
    assert reads(PIECES[3:15])
    other = type(faiss.vectorstore).from_texts(["last"], HashEmbeddings(), metadatas=[{"source": "minutes"}])
    faiss.vectorstore.merge_from(other)
    assert read(stored).endswith("last")


async def _north(about: Any) -> bool:
    return bool(about["tenant"] == "north")


class _North:
    async def __call__(self, about: Any) -> bool:
        return await _north(about)


def test_faiss_refuses_filters_that_it_cannot_apply(faiss: Any) -> None:
    """The coroutine of an async filter would let all through."""
    for wrong in (_north, partial(_north), _North()):
        for vectorstore in (faiss.vectorstore, InMemoryVectorStore(HashEmbeddings())):
            with pytest.raises(ConfigurationError, match=r"takes a .*sync callable .*, not an async"):
                StoredDocuments(vectorstore, filter=wrong)
    with pytest.raises(ConfigurationError, match="FAISS cannot use this filter"):
        StoredDocuments(faiss.vectorstore, filter={"$near": [{"tenant": "north"}]})


def test_faiss_refuses_a_dict_where_its_test_has_changed(faiss: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(type(faiss.vectorstore), "_create_filter_func")
    with pytest.raises(ConfigurationError, match=r"use 0\.4"):
        StoredDocuments(faiss.vectorstore, filter={"tenant": "north"})


def test_faiss_vectorstore_refuses_filters_that_its_search_ignores(tmp_path: Path) -> None:
    pytest.importorskip("langchain_faiss.vectorstores")
    from store_cases.in_faiss_and_qdrant import FaissWithoutFiltersCase  # noqa: PLC0415

    case, north = FaissWithoutFiltersCase(tmp_path), {"tenant": "north"}
    case.add([*PIECES[:3], *cut(numbered("theirs"), tenant="south")])
    assert len({chunk.metadata["tenant"] for chunk in case.vectorstore.similarity_search("?", k=9, filter=north)}) == 2
    fetching = {"fetch": lambda *_: []}
    retriever = case.vectorstore.as_retriever(search_kwargs={"filter": north})
    for options in ({}, fetching):
        with pytest.raises(ConfigurationError, match="search of Faiss ignores filters"):
            StoredDocuments(case.vectorstore, filter=north, **options)
        with pytest.raises(ConfigurationError, match="search of Faiss ignores filters"):
            read(StoredDocuments(case.vectorstore, **options).limited_to(retriever, {}))
    own = type("Own", (type(case.vectorstore),), {"similarity_search": lambda *_, **__: []})()
    assert StoredDocuments(own, filter=north, **fetching)


def test_faiss_vectorstore_saved_and_loaded(tmp_path: Path) -> None:
    pytest.importorskip("langchain_faiss.vectorstores")
    from store_cases.in_faiss_and_qdrant import FaissWithoutFiltersCase  # noqa: PLC0415

    case = FaissWithoutFiltersCase(tmp_path)
    ids = case.add([Piece(piece.text) for piece in PIECES])
    case.delete(ids[5:6])
    case.vectorstore.save_local(tmp_path / "saved")
    again = type(case.vectorstore).load_local(tmp_path / "saved", HashEmbeddings())
    left = text_of([*PIECES[:5], *PIECES[6:]])
    (document,) = StoredDocuments(again, filter={})({"input": "?", "retrieved": again.similarity_search("?")})
    assert "".join(document.page_content.split()) == "".join(left.split())
    assert "_id" not in document.metadata


def test_qdrant_quotes_keys_or_refuses_them(qdrant: Any) -> None:
    for key in ("file.name", "my key", "é", "a-b", "x[0]", "two\nlines", "it's"):
        qdrant.vectorstore.add_texts([PIECES[0].text], [{key: "minutes"}])
        assert read(StoredDocuments(qdrant.vectorstore, source_key=key), key=key) == PIECES[0].text
    for key in ('q"k', "q\\k"):
        with pytest.raises(ConfigurationError, match="has a quote or a backslash in it"):
            read(StoredDocuments(qdrant.vectorstore, source_key=key), key=key)


def test_qdrant_source_within_a_list_is_another(qdrant: Any) -> None:
    qdrant.vectorstore.add_texts(["Of both."], [{"source": ["minutes", "agenda"]}])
    with pytest.raises(DocumentNotFoundError):
        read(StoredDocuments(qdrant.vectorstore))


def test_qdrant_pages_without_order(qdrant: Any) -> None:
    about = [{"source": "minutes", "start_index": 0, "page": page} for page in ("iv", "v")]
    qdrant.vectorstore.add_texts(["One page.", "Another."], about)
    with pytest.raises(ConfigurationError, match="index the document again: number its pages in "):
        read(StoredDocuments(qdrant.vectorstore, filter={}))


def test_qdrant_collection_of_clients() -> None:
    pytest.importorskip("qdrant_client")
    from qdrant_client import QdrantClient  # noqa: PLC0415

    from selfroute.stores.qdrant import collection_of  # noqa: PLC0415

    def client(**options: Any) -> Any:
        return QdrantClient(check_compatibility=False, **options)

    one = collection_of(client(url="http://127.0.0.1:1"), "chunks")
    assert one == collection_of(client(url="http://127.0.0.1:1", api_key=None), "chunks")
    assert one != collection_of(client(url="http://127.0.0.1:1"), "others")
    assert one != collection_of(client(url="http://127.0.0.1:2"), "chunks")
    keyed = collection_of(client(url="https://127.0.0.1:1", api_key="k-3141"), "chunks")
    assert keyed == collection_of(client(url="https://127.0.0.1:1", api_key="k-3141"), "chunks")
    assert keyed != collection_of(client(url="https://127.0.0.1:1"), "chunks")
    assert "3141" not in repr(keyed)
    assert collection_of(client(location=":memory:"), "chunks") != collection_of(client(location=":memory:"), "chunks")


def test_qdrant_document_is_complete_on_any_pages(qdrant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    qdrant.add(PIECES)
    for rows in (1, 7):
        monkeypatch.setattr("selfroute.stores.qdrant.LOCAL_PAGE", rows)
        assert qdrant.reader().read(PIECES[0]).text == text_of(PIECES)


def test_qdrant_search_arguments_may_hide_chunks(qdrant: Any) -> None:
    qdrant.add(PIECES)
    for argument in ({"offset": 1}, {"timeout": 3}, {"search_params": None}):
        retriever = qdrant.vectorstore.as_retriever(search_kwargs={"k": 3, **argument})
        given = {"input": "?", "retrieved": retriever.invoke("?")}
        (document,) = StoredDocuments(qdrant.vectorstore).limited_to(retriever, {})(given)
        assert document.page_content == text_of(PIECES)
    retriever = qdrant.vectorstore.as_retriever(search_kwargs={"k": 3, "shard_key_selector": "north"})
    with pytest.raises(ConfigurationError, match="shard_key_selector, which may hide chunks"):
        StoredDocuments(qdrant.vectorstore).limited_to(retriever, {})


def test_qdrant_index_is_asked_by_its_indexed_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llama_index.vector_stores.qdrant")
    from llama_index.vector_stores.qdrant.base import DOCUMENT_ID_KEY  # noqa: PLC0415

    from store_cases.in_faiss_and_qdrant import IndexQdrantCase  # noqa: PLC0415

    case = IndexQdrantCase(tmp_path)
    case.add(PIECES)
    scroll, asked = case._client.scroll, []

    def heard(*given: Any, **options: Any) -> Any:
        asked.extend(condition.key for condition in options["scroll_filter"].must)
        return scroll(*given, **options)

    monkeypatch.setattr(case._client, "scroll", heard)
    assert case.reader().read(PIECES[0]).text == text_of(PIECES)
    assert set(asked) == {DOCUMENT_ID_KEY}


def test_qdrant_index_of_an_async_client_alone() -> None:
    pytest.importorskip("llama_index.vector_stores.qdrant")
    from llama_index.core import VectorStoreIndex  # noqa: PLC0415
    from llama_index.core.schema import NodeWithScore, QueryBundle  # noqa: PLC0415
    from llama_index.vector_stores.qdrant import QdrantVectorStore  # noqa: PLC0415
    from qdrant_client import AsyncQdrantClient  # noqa: PLC0415

    from llamaindex_selfroute import StoredDocuments as IndexDocuments  # noqa: PLC0415
    from store_cases.in_llamaindex import EMBEDDING, node_of  # noqa: PLC0415

    store = QdrantVectorStore("chunks", aclient=AsyncQdrantClient(":memory:"))
    index = VectorStoreIndex.from_vector_store(store, embed_model=EMBEDDING)
    with pytest.raises(ConfigurationError, match="pass it client=QdrantClient"):
        IndexDocuments(index).limited_to(index.as_retriever())(
            [NodeWithScore(node=node_of(PIECES[0]))], QueryBundle("?")
        )
