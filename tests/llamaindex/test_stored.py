"""`StoredDocuments` over LlamaIndex's own indices, splitters and engines; `tests/hosts` has what both hosts share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from llama_index.core import (
    Document,
    DocumentSummaryIndex,
    KeywordTableIndex,
    PropertyGraphIndex,
    SQLDatabase,
    StorageContext,
    SummaryIndex,
    TreeIndex,
)
from llama_index.core.indices.empty import EmptyIndex
from llama_index.core.indices.property_graph import ImplicitPathExtractor
from llama_index.core.indices.struct_store import SQLStructStoreIndex
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import MarkdownNodeParser, SentenceWindowNodeParser, TokenTextSplitter
from llama_index.core.postprocessor import MetadataReplacementPostProcessor
from llama_index.core.schema import MetadataMode, NodeWithScore
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import MetadataFilters

from hosts_documents import ORIGINAL, whole
from langchain_stores import text_of
from llamaindex_parts import MODES, STREAMS, ScriptedLLM, ask
from llamaindex_selfroute import SelfRouteQueryEngine, StoredDocuments
from llamaindex_stores_parts import SPLIT, STORES, Shelf, Words, a_chroma, declining, loaded, only, over, simple, split
from scenarios import DRAFTED, FOUND, STARTED
from selfroute.errors import ConfigurationError

every_mode = pytest.mark.parametrize("mode", MODES)
every_store = pytest.mark.parametrize("store", list(STORES))
two_stores = pytest.mark.parametrize("store", ["simple", "chroma"])
updating = pytest.mark.filterwarnings("ignore:Call to deprecated method get_doc_id")  # by older hosts themselves


def _document(name: str, owner: str, shelf: str) -> Document:
    hidden = ["key"]
    about = {"shelf": shelf, "key": "7f3a"}
    text = text_of(owner, 20).replace("\n\n", "\n")
    return Document(
        id_=name, text=text, metadata=about, excluded_llm_metadata_keys=hidden, excluded_embed_metadata_keys=hidden
    )


MINUTES, CRANE = _document("minutes", "Ash", "north"), _document("crane", "Birch", "south")
NODES = split(MINUTES, CRANE)
ASK = "What does the crane of Ash lift?"
EXACT = whole(len(split(MINUTES)))


def _read(index: Any, question: str = ASK, **fields: Any) -> list[NodeWithScore]:
    engine = SelfRouteQueryEngine.from_index(index, llm=declining(), **{**DRAFTED, **fields})
    return engine.query(question).source_nodes


def _label(source: NodeWithScore) -> dict[str, Any]:
    return source.node.metadata["selfroute"]  # type: ignore[no-any-return]


@every_mode
@pytest.mark.parametrize("store", [*STORES, "loaded"])
async def test_a_document_comes_back_as_it_was_for_models_and_readers(store: str, mode: str, tmp_path: Path) -> None:
    before = [node.model_dump() for node in NODES]
    index, llm = loaded(NODES, tmp_path) if store == "loaded" else STORES[store](NODES), declining()
    engine = SelfRouteQueryEngine.from_index(index, similarity_top_k=2, llm=llm, streaming=mode in STREAMS, **DRAFTED)
    asked = await ask(engine, ASK, mode)
    (source,) = asked.source_nodes
    assert (asked.text, asked.route, asked.sources) == (FOUND, "long_context", [MINUTES.text])
    assert (source.node.node_id, source.text, source.get_text()) == ("minutes", MINUTES.text, MINUTES.text)
    assert source.node.metadata == {**MINUTES.metadata, "selfroute": EXACT}
    assert {"key", "selfroute"} == set(source.node.excluded_llm_metadata_keys)
    assert {"key", "selfroute"} == set(source.node.excluded_embed_metadata_keys)
    prompt = llm.calls[-1].prompt
    assert MINUTES.text in prompt
    assert "shelf: north" in prompt
    assert not any(hidden in prompt for hidden in ("7f3a", "selfroute", "Document 1", "Birch"))
    assert "selfroute" not in source.node.get_content(MetadataMode.EMBED)
    assert set(asked.retrieved) <= {node.node_id for node in NODES}
    assert [node.model_dump() for node in NODES] == before


@every_store
def test_what_a_node_hides_its_document_hides(store: str) -> None:
    nodes: Any = [node.model_copy(deep=True) for node in split(MINUTES)]
    for node in nodes[:-1]:
        node.excluded_llm_metadata_keys = node.excluded_embed_metadata_keys = []
    llm = declining()
    SelfRouteQueryEngine.from_index(STORES[store](nodes), similarity_top_k=1, llm=llm).query(nodes[0].get_content())
    assert ["7f3a" in call.prompt for call in llm.calls] == [True, False]


# Originals


def _docstore(*documents: Document) -> SimpleDocumentStore:
    docstore = SimpleDocumentStore()
    docstore.add_documents(documents or [MINUTES, CRANE])
    return docstore


def _pipelined() -> SimpleDocumentStore:
    docstore, strategy = SimpleDocumentStore(), DocstoreStrategy.DUPLICATES_ONLY
    pipeline = IngestionPipeline(transformations=[SPLIT], docstore=docstore, docstore_strategy=strategy)
    pipeline.run(documents=[MINUTES, CRANE])
    return docstore


WAYS: dict[str, Callable[[Any], StoredDocuments]] = {
    "its own": lambda index: index.docstore.add_documents([MINUTES, CRANE]) or StoredDocuments(index),
    "another": lambda index: StoredDocuments(index, docstore=_docstore()),
    "a pipeline's": lambda index: StoredDocuments(index, docstore=_pipelined()),
}


@every_store
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("filters", [None, only("shelf", "north"), MetadataFilters(filters=[])])
def test_an_original_is_read_as_it_is(store: str, way: str, filters: Any) -> None:
    index = STORES[store](NODES)
    documents = WAYS[way](index)
    (source,) = _read(index, similarity_top_k=2, documents=documents, filters=filters)
    assert (source.text, source.node.node_id) == (MINUTES.text, "minutes")
    assert source.node.metadata == {**MINUTES.metadata, "selfroute": ORIGINAL}
    assert documents.docstore.get_document("minutes").metadata == MINUTES.metadata


@updating
@every_store
def test_changes_of_an_index_are_noticed(store: str) -> None:
    index = STORES[store](split(CRANE))
    index._transformations = [SPLIT]
    index.insert(MINUTES)
    index.docstore.add_documents([MINUTES])
    documents = StoredDocuments(index)

    def read() -> NodeWithScore:
        engine = SelfRouteQueryEngine(index.as_retriever(similarity_top_k=2), documents=documents, llm=declining())
        return engine.query(ASK).source_nodes[0]  # type: ignore[no-any-return]

    assert _label(read()) == ORIGINAL
    for month in ("June", "July"):
        later = MINUTES.model_copy(deep=True)
        later.set_content(MINUTES.text.replace("crane", f"crane of {month}"))
        index.update_ref_doc(later)
        assert (read().text, _label(read())["method"]) == (later.text, "offsets")
    index.delete_ref_doc("minutes")
    assert read().text == CRANE.text


def test_documents_that_were_indexed_uncut_are_read_as_they_are() -> None:
    sources = _read(simple([MINUTES, CRANE]), similarity_top_k=1, **STARTED)
    assert [(source.text, _label(source)) for source in sources] == [(MINUTES.text, ORIGINAL)]
    assert "selfroute" not in MINUTES.metadata


# Splitters

HEADED = Document(id_="minutes", text="\n\n".join(f"# Part {n}\n\n{text_of(f'Ash {n}', 2)}" for n in range(6)))
SPLITTERS: dict[str, tuple[Any, Document]] = {
    "windows": (
        SentenceWindowNodeParser(window_size=1, sentence_splitter=lambda text: text.splitlines(keepends=True)),
        MINUTES,
    ),
    "tokens": (TokenTextSplitter(chunk_size=50, chunk_overlap=10), MINUTES),
    "markdown": (MarkdownNodeParser(), HEADED),
}


@every_mode
@two_stores
@pytest.mark.parametrize("name", SPLITTERS)
async def test_whatever_cut_it_a_document_comes_back(name: str, store: str, mode: str) -> None:
    splitter, document = SPLITTERS[name]
    posts = [MetadataReplacementPostProcessor(target_metadata_key="window")] if name == "windows" else None
    engine = SelfRouteQueryEngine.from_index(
        STORES[store](split(document, by=splitter)),
        llm=declining(),
        node_postprocessors=posts,
        streaming=mode in STREAMS,
    )
    (source,) = (await ask(engine, ASK, mode)).source_nodes
    assert source.text.split() == document.text.split()
    assert (_label(source)["method"], _label(source)["gaps"]) == ("offsets", [])
    assert not source.metadata.keys() & {"window", "original_text", "header_path"}


def test_what_replaces_the_text_by_anything_else_is_not_trusted() -> None:
    nodes: Any = [node.model_copy(deep=True) for node in split(MINUTES)]
    for node in nodes:
        node.metadata["summary"] = "Something else."
    posts = [MetadataReplacementPostProcessor(target_metadata_key="summary")]
    with pytest.raises(ConfigurationError, match="filters="):
        _read(simple(nodes), node_postprocessors=posts)


# What cannot be listed


class _Refusing(Shelf):
    def get_nodes(self, node_ids: Any = None, filters: Any = None) -> list[Any]:
        msg = "not today"
        raise NotImplementedError(msg)


def test_store_that_cannot_list() -> None:
    index = over(_Refusing(), NODES)
    with pytest.raises(ConfigurationError, match=r"not today.*fetch="):
        _read(index)
    assert SelfRouteQueryEngine.from_index(index, documents=[MINUTES], llm=declining()).query("?").response == FOUND


def test_what_can_be_no_index_or_docstore_is_refused_at_once() -> None:
    for wrong in (simple(NODES).vector_store, NODES):
        with pytest.raises(ConfigurationError):
            StoredDocuments(wrong)
    for docstore in ({}, [], "folder", MockLLM()):
        with pytest.raises(ConfigurationError, match="docstore must be"):
            StoredDocuments(simple(NODES), docstore=docstore)  # type: ignore[arg-type]


# Other kinds of indices

KEYWORDS = ScriptedLLM(draft=("KEYWORDS: crane",))


def _varied(key: str = "speaker") -> list[Any]:
    nodes: list[Any] = [node.model_copy(deep=True) for node in NODES]
    for n, node in enumerate(nodes):
        node.metadata[key] = n
    return nodes


def _summaries(store: Any) -> Any:
    context = StorageContext.from_defaults(vector_store=store and store())
    index = DocumentSummaryIndex(_varied(), llm=MockLLM(), embed_model=Words(), storage_context=context)
    return index, index.as_retriever(retriever_mode="embedding", similarity_top_k=2)


def _tree() -> Any:
    index = TreeIndex(_varied(), build_tree=False, llm=MockLLM())
    return index, index.as_retriever(retriever_mode="all_leaf")


def _plain(kind: Any) -> Any:
    index = kind(_varied("page" if kind is KeywordTableIndex else "speaker"), llm=KEYWORDS)
    return index, index.as_retriever()


INDICES: dict[str, Callable[[], Any]] = {
    "list": lambda: _plain(SummaryIndex),
    "keywords": lambda: _plain(KeywordTableIndex),
    "summaries in Chroma": lambda: _summaries(a_chroma),
    "tree": _tree,
}


@every_mode
@pytest.mark.parametrize("kind", INDICES)
async def test_indices_of_other_kinds_lead_to_their_documents_too(kind: str, mode: str) -> None:
    index, retriever = INDICES[kind]()
    documents = StoredDocuments(index)
    fields: Any = {"llm": declining(), "streaming": mode in STREAMS, **STARTED}
    engine = SelfRouteQueryEngine(retriever, documents=documents, **fields)
    asked = await ask(engine, "Which crane?", mode)
    assert sorted(asked.sources) == sorted([MINUTES.text, CRANE.text])
    assert [{key: _label(source)[key] for key in EXACT} for source in asked.source_nodes] == [EXACT] * 2
    if kind != "tree":
        of_index = SelfRouteQueryEngine.from_index(index, **fields)
        assert set((await ask(of_index, "Which crane?", mode)).sources) <= {MINUTES.text, CRANE.text}


PATHLESS: dict[str, Callable[[], Any]] = {
    "property graph": lambda: PropertyGraphIndex(
        NODES, kg_extractors=[ImplicitPathExtractor()], embed_model=Words(), llm=MockLLM()
    ),
    "empty": EmptyIndex,
    "table": lambda: SQLStructStoreIndex([], sql_database=SQLDatabase(a_table()), table_name="crane"),
}


def a_table() -> Any:
    engine = sqlalchemy.create_engine("sqlite://", poolclass=sqlalchemy.StaticPool)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE crane (name TEXT)"))
    return engine


@pytest.mark.parametrize("kind", PATHLESS)
def test_indices_whose_nodes_lead_to_no_documents_are_refused_at_once(kind: str) -> None:
    index = PATHLESS[kind]()
    for build in (StoredDocuments, lambda index: SelfRouteQueryEngine.from_index(index, llm=declining())):
        with pytest.raises(
            ConfigurationError, match=f"nodes of a.* {type(index).__name__} do not .*: pass .*documents="
        ):
            build(index)
    StoredDocuments(index, fetch=lambda _name, _filters: [])
    if kind == "property graph":
        SelfRouteQueryEngine.from_index(index, documents=[MINUTES], llm=declining())


@pytest.mark.parametrize("kind", [SummaryIndex, KeywordTableIndex])
def test_filters_that_are_ignored_are_refused(kind: Any) -> None:
    with pytest.raises(ConfigurationError, match="ignores filters"):
        SelfRouteQueryEngine.from_index(kind(NODES, llm=KEYWORDS), filters=only("shelf", "north"), llm=declining())
    empty = MetadataFilters(filters=[])
    engine = SelfRouteQueryEngine.from_index(kind(NODES, llm=KEYWORDS), filters=empty, llm=declining())
    assert engine.query("crane").response == FOUND


# Where it is given


# An index becomes an engine that routes, in place of its own
