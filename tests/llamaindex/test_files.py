"""A document is a file: the pages that a loader made documents of, elements of pages, and names under other keys."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.node_parser import TokenTextSplitter
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import MetadataFilters

from llamaindex_parts import MODES, STREAMS, ask
from llamaindex_selfroute import SelfRouteQueryEngine, StoredDocuments
from llamaindex_stores_parts import SPLIT, STORES, Shelf, Words, declining, only, simple, split
from selfroute.errors import ConfigurationError, DocumentNotFoundError

ASK = "Who signed for the pilot boat?"
LINE = "Page {page} of the {name} says that berth {page} pays {page}0 crowns, line {line}."
every_store = pytest.mark.parametrize("store", list(STORES))


def page_text(name: str, page: int) -> str:
    lines = [LINE.format(page=page, name=name, line=line) for line in range(1, 6)]
    return "\n".join([*lines, *(["Ms Okafor signed for the pilot boat."] if page == 7 else [])])


def pages(name: str = "rules.pdf", *, by: str = "file_path", labels: Any = range(1, 10), **more: Any) -> list[Document]:
    """A document of each page, as `SimpleDirectoryReader` and LlamaParse make them."""
    return [
        Document(text=page_text(name, at), metadata={by: f"/in/{name}", "page_label": str(label), **more})
        for at, label in enumerate(labels, 1)
    ]


def whole(name: str = "rules.pdf", among: Any = range(1, 10)) -> str:
    return "\n".join(page_text(name, page) for page in among)


def read(index: Any, ask_for: str = ASK, **options: Any) -> list[Any]:
    settings = {"sections": None, "answerability": "text", "similarity_top_k": 2, **options}
    return SelfRouteQueryEngine.from_index(index, llm=declining(), **settings).query(ask_for).source_nodes


@pytest.mark.parametrize("mode", MODES)
async def test_pages_of_files(mode: str) -> None:
    """The last step reads the whole files, each page once and in order, and cites the page."""
    index = simple(split(*pages(), *pages("fees.pdf", by="file_name")))
    engine = SelfRouteQueryEngine.from_index(
        index, llm=declining(), sections=None, answerability="text", citations=True, streaming=mode in STREAMS
    )
    response = (await ask(engine, ASK, mode)).response
    found = {source.node.node_id: source for source in response.source_nodes}
    assert sorted(found) == ["/in/fees.pdf", "/in/rules.pdf"]
    assert found["/in/rules.pdf"].node.get_content() == whole()
    assert found["/in/fees.pdf"].node.get_content() == whole("fees.pdf")
    label = found["/in/rules.pdf"].node.metadata["selfroute"]
    assert (label["gaps"], [page for _, page in label["pages"]]) == ([], [str(page) for page in range(1, 10)])
    assert "doubtful" not in label


@every_store
def test_pages_of_every_store(store: str) -> None:
    (source,) = read(STORES[store](split(*pages())))
    assert (source.node.node_id, source.node.get_content()) == ("/in/rules.pdf", whole())


def test_pages_behind_filters() -> None:
    """A page that the filters hide is not read, nor one of another document that the retriever may not search."""
    docs = [*pages(tenant="north")[:6], *pages(tenant="south")[6:]]
    index = simple(split(*docs))
    (source,) = read(index, "What does berth 2 pay?", filters=only("tenant", "north"))
    assert source.node.get_content() == whole(among=range(1, 7))
    allowed = [one.doc_id for one in docs[:3]]
    retriever = index.as_retriever(doc_ids=allowed)
    engine = SelfRouteQueryEngine(retriever, llm=declining(), sections=None, answerability="text")
    (source,) = engine.query("What does berth 2 pay?").source_nodes
    assert source.node.get_content() == whole(among=range(1, 4))


def test_pages_with_labels() -> None:
    """Numbers order pages, "10" behind "9"; labels that are no numbers leave the order of the store."""
    docs = pages(labels=range(4, 13))
    (source,) = read(simple(split(*docs[::-1])))
    assert source.node.get_content() == whole()
    (source,) = read(simple(split(*pages(labels=["i", "ii", "iii", "iv", 1, 2, 3, 4, 5]))))
    assert source.node.get_content() == whole()
    assert [page for _, page in source.node.metadata["selfroute"]["pages"]][2:5] == ["iii", "iv", "1"]


def test_elements_of_pages() -> None:
    """Several documents of one page and path are parts of the file, in the order of the store within the page."""
    texts = [f"Element {number} of page {page} is about berth {number}." for page in (1, 2, 3) for number in (3, 1, 2)]
    docs = [
        Document(text=text, metadata={"file_path": "/in/slides.pptx", "page": at // 3 + 1})
        for at, text in enumerate(texts)
    ]
    (source,) = read(simple(split(*docs)), "berth 2")
    assert source.node.get_content().split("\n") == texts
    assert source.node.metadata["selfroute"]["gaps"] == []


def test_pages_with_one_id() -> None:
    """LlamaIndex writes the page of the last one into the nodes of all; their own documents know better."""
    docs = [one.model_copy(update={"id_": "rules"}) for one in pages()]
    index = VectorStoreIndex.from_documents(docs, embed_model=Words())
    engine = SelfRouteQueryEngine.from_index(
        index, llm=declining(), sections=None, answerability="text", citations=True, similarity_top_k=2
    )
    (source,) = engine.query(ASK).source_nodes
    label = source.node.metadata["selfroute"]
    assert (source.node.get_content(), label["gaps"]) == (whole(), [])
    assert [page for _, page in label["pages"]] == [str(page) for page in range(1, 10)]


def test_source_key() -> None:
    """It comes before the file, finds nodes without a source, and is refused where it names nothing."""
    nodes = [
        TextNode(text=f"Clause {number} is about berth {number}.", metadata={"book": "rules", "chunk_id": number})
        for number in range(1, 13)
    ]
    index = simple([nodes[at] for at in (11, 3, 0, 7, 1, 2, 4, 5, 6, 8, 9, 10)])
    with pytest.raises(DocumentNotFoundError, match=r"\['book', 'chunk_id'\].*source_key="):
        read(index)
    (source,) = read(index, source_key="book")
    assert source.node.get_content().split("\n") == [node.text for node in nodes]
    docs = pages(volume=7)
    (source,) = read(simple(split(*docs)), source_key="volume")
    assert (source.node.node_id, source.node.get_content()) == ("7", whole())
    for wrong in ("", 3):
        with pytest.raises(ConfigurationError, match="source_key must be a key of the metadata"):
            StoredDocuments(index, source_key=wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="leave documents out"):
        SelfRouteQueryEngine.from_index(index, llm=declining(), documents=docs, order_key="page")


def test_order_key() -> None:
    nodes = [
        TextNode(text=f"Clause {number} is about berth {number}.", metadata={"book": "rules", "nth": number * 1_000})
        for number in range(1, 13)
    ]
    (source,) = read(simple(nodes[::-1]), source_key="book", order_key="nth")
    assert source.node.get_content().split("\n") == [node.text for node in nodes]


def test_names_of_another_type_or_key_are_of_other_documents() -> None:
    """7 is not "7", and a file is not a document whose id is its path."""
    nodes = [
        TextNode(text=f"Berth {at} of volume {volume!r} pays.", metadata={"volume": volume})
        for at in range(3)
        for volume in (7, "7")
    ]
    found = read(
        simple(nodes),
        "What does berth 1 of volume 7 pay?",
        source_key="volume",
        similarity_top_k=6,
        start="long_context",
    )
    assert {source.node.get_content() for source in found} == {
        "\n".join(node.get_content() for node in nodes if node.metadata["volume"] == volume) for volume in (7, "7")
    }
    other = Document(text="Ms Okafor signed for the pilot boat, too.", id_="/in/rules.pdf")
    found = read(simple(split(*pages(), other)), similarity_top_k=4)
    assert sorted(source.node.get_content() for source in found) == sorted([whole(), other.text])


def test_fetch_with_pages() -> None:
    """A callable is asked for what it knows: the id of a page, or with a `source_key` the value of that."""
    shelf = Shelf()
    index = VectorStoreIndex.from_vector_store(shelf, embed_model=Words())
    index.insert_nodes(split(*pages()))
    asked: list[Any] = []

    def fetch(document: Any, filters: MetadataFilters | None) -> list[Any]:
        asked.append(document)
        found = shelf.found(filters)
        return [node for node in found if document in (node.ref_doc_id, node.metadata["file_path"])]

    for key, name in ((None, 2), ("file_path", 1)):
        documents = StoredDocuments(index, source_key=key, fetch=fetch)
        engine = SelfRouteQueryEngine(
            index.as_retriever(similarity_top_k=2), documents=documents, llm=declining(), answerability="text"
        )
        assert len(engine.query(ASK).source_nodes) == name
    assert asked[-1] == "/in/rules.pdf"


@pytest.mark.parametrize("labels", [["i", "ii", "iii", "iv", 1, 2, 3, 4, 5], ["Cover", *range(1, 9)]])
@pytest.mark.parametrize("by", [SPLIT, TokenTextSplitter(chunk_size=900)], ids=["several nodes a page", "one"])
@pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant")
def test_labels_in_a_store_without_an_order(labels: list[Any], by: Any) -> None:
    """Roman numerals come first in a book; where nobody knows the order, pages are documents, as they were."""
    qdrant = pytest.importorskip("llama_index.vector_stores.qdrant")
    client = pytest.importorskip("qdrant_client").QdrantClient(":memory:")
    store = qdrant.QdrantVectorStore("pages", client=client)
    index = VectorStoreIndex.from_vector_store(store, embed_model=Words())
    index.insert_nodes(split(*pages(labels=labels), by=by))
    found = read(index, similarity_top_k=50, start="long_context", max_documents=None)
    client.close()
    apart = [page_text("rules.pdf", page) for page in range(1, 10)]
    assert sorted(source.node.get_content() for source in found) == ([whole()] if "i" in labels else apart)


def test_source_key_of_nodes_of_one_document() -> None:
    """Each node is looked at: a document may hold several that the key names."""
    nodes = split(Document(text="\n".join(LINE.format(page=1, name="rules", line=line) for line in range(6))))
    for at, node in enumerate(nodes):
        node.metadata["part"] = f"part {at % 2}"
    (source,) = read(simple(nodes), "line 2", source_key="part", similarity_top_k=1, reach=1)
    wanted = [node.get_content() for node in nodes if node.metadata["part"] == source.node.node_id]
    assert len(wanted) == len(nodes) // 2
    assert all(text in source.node.get_content() for text in wanted)
