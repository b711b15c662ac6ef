"""What holds for Milvus alone: ids are data, each form of a collection, filters mean what they mean in a search."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import (
    MetadataFilter,
    MetadataFilters,
)

from langchain_parts import QUESTION
from langchain_selfroute import StoredDocuments
from llamaindex_selfroute.stored.naming import Name
from selfroute.errors import ConfigurationError, DocumentNotFoundError
from selfroute.stores import milvus
from store_cases import Piece, cut, missing, numbered, text_of
from store_cases.in_langchain import read
from store_cases.in_llamaindex import VECTOR, filtered, listing_of, node_of
from store_cases.in_milvus_and_lancedb import ORM, LangChainMilvusCase, LlamaIndexMilvusCase, open_milvus

pytestmark = [
    pytest.mark.matrix,
    pytest.mark.skipif(bool(missing(LangChainMilvusCase, LlamaIndexMilvusCase)), reason="not installed"),
    pytest.mark.filterwarnings(f"ignore:{ORM}"),
]

HOSTILE_IDS = ('a" or "1" == "1', "b\\", 'c"', "d\\' or 1 == 1", "e\nf", 'g" or tenant == "south', "h", "~")
NORTH = MetadataFilter(key="tenant", value="north")
FORMS = {
    "dynamic": {"enable_dynamic_field": True},
    "static": {"enable_dynamic_field": False},
    "json": {"enable_dynamic_field": False, "metadata_field": "metadata"},
    "renamed": {"primary_field": "number", "text_field": "content", "vector_field": "embedding"},
}


@pytest.fixture
def case(tmp_path: Path) -> Iterator[LangChainMilvusCase]:
    case = LangChainMilvusCase(tmp_path)
    yield case
    case.close()


@pytest.fixture
def index_case(tmp_path: Path) -> Iterator[LlamaIndexMilvusCase]:
    case = LlamaIndexMilvusCase(tmp_path)
    yield case
    case.close()


def test_ids_are_data_where_a_page_ends(case: LangChainMilvusCase, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_milvus(case.file, auto_id=False, collection_name="named")
    ours = cut(numbered("ours", 9), size=18)[: len(HOSTILE_IDS)]
    theirs = Piece("theirs", ours[0].source, "south", 0)
    for piece, id_ in [*zip(ours, HOSTILE_IDS, strict=True), (theirs, "zz"), (theirs, "B")]:
        about = {"source": piece.source, "tenant": piece.tenant, "start_index": piece.start}
        store.add_texts([piece.text], [about], ids=[id_])
    for page in (1, 2, 3, 5_000):
        monkeypatch.setattr(milvus, "PAGE", page)
        stored = StoredDocuments(store)
        assert read(stored, "minutes", "tenant == 'north'") == text_of(ours), page
        assert sorted(stored._store.ids("source", "minutes", ["tenant == 'north'"])) == sorted(HOSTILE_IDS)


def test_ids_of_nodes_are_data_where_a_page_ends(
    index_case: LlamaIndexMilvusCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = cut(numbered("ours", 9), size=18)[: len(HOSTILE_IDS)]
    pieces = [*zip(ours, HOSTILE_IDS, strict=True), (Piece("theirs", "minutes", "south", 0), "zz")]
    nodes = [node_of(piece, embedding=VECTOR) for piece, _ in pieces]
    for node, (_, id_) in zip(nodes, pieces, strict=True):
        node.id_ = id_
    index_case.index.insert_nodes(nodes)
    within = index_case.filters("north")["=="]
    for page in (1, 2, 3, 5_000):
        monkeypatch.setattr(milvus, "PAGE", page)
        assert index_case.reader(within=within).read(ours[0]).text == text_of(ours), page


@pytest.mark.parametrize("form", FORMS)
def test_milvus_forms_are_read_in_order(case: LangChainMilvusCase, form: str) -> None:
    store = open_milvus(case.file, collection_name=form, **FORMS[form])
    lines = numbered("minutes", 30).splitlines()
    store.add_texts(lines, [{"source": 'a "quoted"\\name', "tenant": "north"}] * len(lines))
    expr = "metadata['tenant'] == 'north'" if form == "json" else "tenant == 'north'"
    (found,) = store.similarity_search("minutes", k=1)
    stored = StoredDocuments(store)
    (document,) = stored.limited_to(store.as_retriever(search_kwargs={"expr": expr}), {})(
        {"input": QUESTION, "retrieved": [found]}
    )
    assert document.page_content.splitlines() == lines
    assert {**document.metadata, "selfroute": 0} == {
        "source": found.metadata["source"],
        "tenant": "north",
        "selfroute": 0,
    }
    assert stored._store.ordered


def test_ids_that_were_given_say_nothing_about_the_order(case: LangChainMilvusCase) -> None:
    store = open_milvus(case.file, auto_id=False, collection_name="named")
    store.add_texts(["one", "two"], [{"source": "a"}] * 2, ids=["2", "1"])
    for auto_id in (False, True):  # whatever a later object says
        again = open_milvus(case.file, auto_id=auto_id, collection_name="named")
        with pytest.raises(ConfigurationError, match="add_start_index"):
            read(StoredDocuments(again), "a")


def test_the_id_of_a_row_in_a_passage_hides_nothing(case: LangChainMilvusCase) -> None:
    case.add(cut(numbered("minutes", 8)))
    found = case.vectorstore.similarity_search("minutes", k=2)
    assert all("pk" in passage.metadata for passage in found)
    unknown = RunnableLambda(lambda _: found)
    (document,) = StoredDocuments(case.vectorstore).limited_to(unknown, {})({"input": QUESTION, "retrieved": found})
    assert document.page_content == numbered("minutes", 8)


def test_a_key_is_data(case: LangChainMilvusCase) -> None:
    for key in ("a b", 'qu"ote', "back\\slash", "a.b", "x] == 1 or $meta[", "Quelle – 会議", "source"):
        about = {key: key, "tenant": "north"}
        case.vectorstore.add_texts([f"of {key}"], [{**about, "start_index": 0}])
        case.vectorstore.add_texts([f" not {key}"], [{**about, key: "other", "start_index": 0}])
        stored = StoredDocuments(case.vectorstore, source_key=key)
        assert read(stored, key, key=key) == f"of {key}"


def test_a_key_that_no_row_can_have_names_no_document(case: LangChainMilvusCase) -> None:
    store = open_milvus(case.file, collection_name="static", enable_dynamic_field=False)
    store.add_texts(["a text"], [{"source": "minutes"}])
    with pytest.raises(DocumentNotFoundError, match="nokey"):
        read(StoredDocuments(store, source_key="nokey"), "minutes", key="nokey")


def test_an_empty_filter_hides_nothing(case: LangChainMilvusCase) -> None:
    case.add(cut(numbered("minutes")))
    for condition in ("", "  "):
        assert read(StoredDocuments(case.vectorstore, filter=condition), "minutes", condition) == numbered("minutes")


def test_what_was_written_before_is_read_by_another_object(case: LangChainMilvusCase) -> None:
    case.add([*cut(numbered("minutes")), *cut(numbered("theirs"), tenant="south")])
    again = open_milvus(case.file)
    retriever = case.vectorstore.as_retriever(search_kwargs={"expr": "tenant == 'north'"})
    given = {"input": QUESTION, "retrieved": [Document("Line", metadata={"source": "minutes"})]}
    (document,) = StoredDocuments(again).limited_to(retriever, {})(given)
    assert document.page_content == numbered("minutes")
    other = open_milvus(case.file, collection_name="other")
    assert not StoredDocuments(other)._store.is_of(again)


def test_a_collection_that_was_dropped_is_an_error_that_names_it(case: LangChainMilvusCase) -> None:
    case.add(cut(numbered("minutes")))
    stored = StoredDocuments(case.vectorstore)
    case.vectorstore.client.drop_collection(case.vectorstore.collection_name)  # its own `drop` leaves a coroutine
    with pytest.raises(Exception, match="LangChainCollection"):
        read(stored, "minutes")


VALUES: tuple[Any, ...] = ("north", "nor", "o'hara \"\\", "x' or tenant != '", 7, 7.5, ["a", "b"], None)


def test_a_filter_of_nodes_lets_through_no_more_than_the_search(index_case: LlamaIndexMilvusCase) -> None:
    about: list[dict[str, Any]] = [
        {"tenant": "north", "tags": ["a", "b"], "page": 7},
        {"tenant": "northern", "tags": ["b", "c"], "page": 7.5},
        {"tenant": "o'hara \"\\", "tags": []},
        {"page": 8},
        {"my key": "north"},
    ]
    seen = list(filtered(index_case, about, ("tenant", "tags", "page", "nothing"), VALUES))
    assert not [what for what, found, listed in seen if not listed <= found]
    assert sum(bool(found) and listed == found for _, found, listed in seen) > 5


def test_the_metadata_in_a_row_decide_what_a_filter_hides(index_case: LlamaIndexMilvusCase) -> None:
    index_case.add(cut(numbered("minutes", 3)))
    client, name = index_case.store.client, index_case.store.collection_name
    rows = client.query(name, filter='id != ""', output_fields=["*"])
    client.upsert(name, [{**rows[0], "tenant": "south"}])
    found = listing_of(index_case.index).nodes(Name.of("minutes"), (MetadataFilters(filters=[NORTH]),))
    assert rows[0]["id"] not in {node.node_id for node in found}


def test_a_node_comes_back_as_it_was_added(index_case: LlamaIndexMilvusCase) -> None:
    metadata = {"tenant": "north", "page": 7, "none": None, "empty": "", "list": ["a"], "text": "own", "id": "own"}
    node: TextNode = node_of(Piece("a text", start=0), embedding=VECTOR)
    node.metadata = metadata
    index_case.index.insert_nodes([node])
    (found,) = listing_of(index_case.index).nodes(Name.of("minutes"), ())
    assert (found.metadata, found.get_content()) == (metadata, "a text")
