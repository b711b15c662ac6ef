"""`StoredDocuments`: whole documents out of the index that people already have."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import (
    Document,
    DocumentSummaryIndex,
    KeywordTableIndex,
    StorageContext,
    SummaryIndex,
    TreeIndex,
    VectorStoreIndex,
)
from llama_index.core.indices.base import BaseIndex
from llama_index.core.indices.vector_store import VectorIndexRetriever
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import (
    HierarchicalNodeParser,
    MarkdownNodeParser,
    SentenceSplitter,
    SentenceWindowNodeParser,
    TokenTextSplitter,
    get_leaf_nodes,
)
from llama_index.core.postprocessor import MetadataReplacementPostProcessor
from llama_index.core.retrievers import AutoMergingRetriever
from llama_index.core.schema import BaseNode, MetadataMode, NodeRelationship, NodeWithScore, QueryBundle, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import MetadataFilters

from llamaindex_parts import MODES, STREAMS, ListRetriever, ScriptedLLM, ask
from llamaindex_selfroute import SelfRouteQueryEngine, SelfRouteSynthesizer, StoredDocuments
from llamaindex_stores_parts import (
    SPLIT,
    STORES,
    Shelf,
    Words,
    a_chroma,
    a_chroma_server,
    chroma,
    declining,
    listing,
    loaded,
    only,
    over,
    simple,
    split,
)
from scenarios import FOUND
from selfroute.errors import ConfigurationError, DocumentNotFoundError, ReplyError, SelfRouteError

every_mode = pytest.mark.parametrize("mode", MODES)
every_store = pytest.mark.parametrize("store", list(STORES))
updating = pytest.mark.filterwarnings("ignore:Call to deprecated method get_doc_id")  # by older hosts themselves


def _text(about: str, sentences: int = 30) -> str:
    return " ".join(f"Sentence {n} on the {about} says {n * n}." for n in range(sentences)) + f"\n\nEnd of the {about}."


MINUTES = Document(
    id_="minutes",
    text="\n".join(f"Item {n} of the meeting took {n + 3} minutes, said Ms Okafor." for n in range(40)),
    metadata={"shelf": "north", "key": "7f3a"},
    excluded_llm_metadata_keys=["key"],
    excluded_embed_metadata_keys=["key"],
)
CRANE = Document(
    id_="crane",
    text="\n".join(f"Bolt {n} of the crane in the harbour held {n * 7} tons." for n in range(40)),
    metadata={"shelf": "south", "key": "0000"},
    excluded_llm_metadata_keys=["key"],
    excluded_embed_metadata_keys=["key"],
)
NODES = split(MINUTES, CRANE)
ASK_MINUTES = "Who chaired the meeting, item by item, in minutes?"
EXACT = {"method": "offsets", "chunks": len(split(MINUTES)), "gaps": [], "trimmed": False}
ORIGINAL = {"method": "original", "chunks": 0, "gaps": [], "trimmed": False}


def _label(source: NodeWithScore) -> dict[str, Any]:
    return source.node.metadata["selfroute"]


def _plain(text: str) -> str:
    return " ".join(text.split())


def _read(index: BaseIndex[Any], question: str = ASK_MINUTES, **fields: Any) -> list[NodeWithScore]:
    return SelfRouteQueryEngine.from_index(index, llm=declining(), **fields).query(question).source_nodes


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A client of a Chroma server."""
    with a_chroma_server(tmp_path_factory.mktemp("chroma")) as client:
        yield client


async def _comes_back_word_for_word(index: VectorStoreIndex, mode: str) -> None:
    llm = declining()
    engine = SelfRouteQueryEngine.from_index(index, similarity_top_k=2, llm=llm, streaming=mode in STREAMS)
    asked = await ask(engine, ASK_MINUTES, mode)
    (source,) = asked.source_nodes
    assert (asked.text, asked.route, asked.sources) == (FOUND, "long_context", [MINUTES.text])
    assert (source.node.node_id, source.text, source.get_text()) == ("minutes", MINUTES.text, MINUTES.text)
    assert source.node.metadata == {**MINUTES.metadata, "selfroute": EXACT}
    assert {"key", "selfroute"} == set(source.node.excluded_llm_metadata_keys)
    assert {"key", "selfroute"} == set(source.node.excluded_embed_metadata_keys)
    prompt = llm.calls[-1].prompt
    assert MINUTES.text in prompt
    assert "shelf: north" in prompt
    for hidden in ("7f3a", "selfroute", "Document 1", "Bolt"):
        assert hidden not in prompt
    assert "selfroute" not in source.node.get_content(MetadataMode.EMBED)
    assert set(asked.retrieved) <= {node.node_id for node in NODES}


@every_mode
@every_store
async def test_a_document_comes_back_word_for_word_out_of_the_store_that_holds_its_nodes(store: str, mode: str) -> None:
    before = [node.model_dump() for node in NODES]
    await _comes_back_word_for_word(STORES[store](NODES), mode)
    assert [node.model_dump() for node in NODES] == before


@every_mode
async def test_so_it_does_out_of_an_index_that_was_persisted_and_loaded(tmp_path: Path, mode: str) -> None:
    await _comes_back_word_for_word(loaded(NODES, tmp_path), mode)


@every_mode
async def test_so_it_does_out_of_a_chroma_server(server: Any, mode: str) -> None:
    store = a_chroma(server)
    over(store, NODES)
    await _comes_back_word_for_word(VectorStoreIndex.from_vector_store(store, embed_model=Words()), mode)


@every_mode
async def test_what_a_filter_hides_on_a_chroma_server_is_not_read(server: Any, mode: str) -> None:
    theirs = Document(id_="minutes", text=CRANE.text, metadata={"shelf": "south"})
    store, llm = a_chroma(server), declining()
    index = over(store, [*split(MINUTES), *split(theirs)])
    engine = SelfRouteQueryEngine.from_index(index, filters=only("shelf", "north"), llm=llm, streaming=mode in STREAMS)
    asked = await ask(engine, ASK_MINUTES, mode)
    assert asked.sources == [MINUTES.text]
    assert all("crane" not in call.prompt for call in llm.calls)


def test_a_document_of_more_nodes_than_chroma_answers_with_at_once_comes_back_whole() -> None:
    lines = [f"Line {n} of many.\n" for n in range(4_321)]
    nodes, at = [], 0
    for line in lines:
        nodes.append(_node(line, "many"))
        nodes[-1].start_char_idx, nodes[-1].end_char_idx = at, (at := at + len(line))
        nodes[-1].embedding = [1.0, 0.0]
    store = a_chroma()
    store.add([*reversed(nodes)])
    documents = StoredDocuments(VectorStoreIndex.from_vector_store(store, embed_model=Words()))
    (document,) = documents([NodeWithScore(node=nodes[5])], QueryBundle("?"))
    assert document.get_content() == "".join(lines)
    assert document.metadata["selfroute"]["chunks"] == 4_321


@every_mode
@every_store
@pytest.mark.parametrize("first", [MINUTES, CRANE], ids=["minutes", "crane"])
async def test_several_documents_come_best_first_each_once_and_by_name_in_the_prompt(
    first: Document, store: str, mode: str
) -> None:
    llm, second = declining(), CRANE if first is MINUTES else MINUTES
    engine = SelfRouteQueryEngine.from_index(
        STORES[store](NODES), similarity_top_k=len(NODES), llm=llm, streaming=mode in STREAMS
    )
    asked = await ask(engine, first.text.splitlines()[0], mode)
    assert asked.sources == [first.text, second.text]
    assert len(asked.retrieved) == len(NODES)
    prompt = llm.calls[-1].prompt
    assert prompt.index("Document 1: crane") < prompt.index(CRANE.text) < prompt.index("Document 2: minutes")
    assert prompt.index("Document 2: minutes") < prompt.index(MINUTES.text)


def test_what_the_nodes_do_not_have_in_common_is_not_said_of_the_document() -> None:
    nodes = [TextNode.model_validate(node.model_dump()) for node in split(MINUTES)]
    for n, node in enumerate(nodes):
        node.metadata.update(page_label=str(n + 1), page=n + 1, speaker="Lin" if n else "Okafor")
    (source,) = _read(simple(nodes))
    assert source.text == MINUTES.text
    assert source.metadata == {**MINUTES.metadata, "selfroute": source.metadata["selfroute"]}


@every_store
def test_what_one_node_hides_from_models_is_hidden_in_its_document(store: str) -> None:
    nodes = [node.model_copy(deep=True) for node in split(MINUTES)]
    for node in nodes[:-1]:
        node.excluded_llm_metadata_keys = node.excluded_embed_metadata_keys = []
    llm = declining()
    SelfRouteQueryEngine.from_index(STORES[store](nodes), similarity_top_k=1, llm=llm).query(nodes[0].get_content())
    assert "7f3a" in llm.calls[0].prompt
    assert "7f3a" not in llm.calls[1].prompt
    assert "shelf: north" in llm.calls[1].prompt


# Originals

ORIGINALS = {
    "its own": lambda index: index.docstore.add_documents([MINUTES, CRANE]) or StoredDocuments(index),
    "another": lambda index: StoredDocuments(index, docstore=_docstore()),
    "a pipeline's": lambda index: StoredDocuments(index, docstore=_pipelined()),
}


def _docstore(*documents: Document) -> SimpleDocumentStore:
    docstore = SimpleDocumentStore()
    docstore.add_documents(documents or [MINUTES, CRANE])
    return docstore


def _pipelined() -> SimpleDocumentStore:
    docstore = SimpleDocumentStore()
    strategy = DocstoreStrategy.DUPLICATES_ONLY
    IngestionPipeline(transformations=[SPLIT], docstore=docstore, docstore_strategy=strategy).run(
        documents=[MINUTES, CRANE]
    )
    return docstore


@every_store
@pytest.mark.parametrize("way", list(ORIGINALS))
@pytest.mark.parametrize("filters", [None, only("shelf", "north"), MetadataFilters(filters=[])])
def test_an_original_is_read_as_it_is(store: str, way: str, filters: MetadataFilters | None) -> None:
    index = STORES[store](NODES)
    documents = ORIGINALS[way](index)
    (source,) = _read(index, similarity_top_k=2, documents=documents, filters=filters)
    assert (source.text, source.node.node_id) == (MINUTES.text, "minutes")
    assert source.node.metadata == {**MINUTES.metadata, "selfroute": ORIGINAL}
    assert documents.docstore.get_document("minutes").metadata == MINUTES.metadata


@every_store
def test_an_original_of_which_a_filter_hides_a_node_is_not_read(store: str) -> None:
    nodes = [node.model_copy(deep=True) for node in split(MINUTES)]
    for n, node in enumerate(nodes):
        node.metadata["open"] = "yes" if n != 1 else "no"
    index = STORES[store](nodes)
    documents = StoredDocuments(index, docstore=_docstore())
    (source,) = _read(index, documents=documents, filters=only("open", "yes"))
    hidden = nodes[1].get_content()
    assert _label(source)["method"] == "offsets"
    assert _label(source)["gaps"] == [[nodes[1].start_char_idx - 1, nodes[1].end_char_idx + 1]]
    assert hidden not in source.text
    assert nodes[0].get_content() in source.text
    (source,) = _read(index, documents=documents)
    assert source.text == MINUTES.text


@updating
@every_store
def test_an_original_that_was_indexed_anew_with_another_text_is_not_read(store: str) -> None:
    index = STORES[store]([])
    index._transformations = [SPLIT]
    index.insert(MINUTES)
    index.docstore.add_documents([MINUTES])
    assert _label(*_read(index))["method"] == "original"
    later = MINUTES.model_copy(deep=True)
    later.set_content(MINUTES.text.replace("Item 7", "Article 7"))
    index.update_ref_doc(later)
    (source,) = _read(index)
    assert (source.text, _label(source)["method"]) == (later.text, "offsets")


@every_store
def test_an_original_of_somebody_else_under_the_same_id_is_not_read(store: str) -> None:
    index = STORES[store](NODES)
    theirs = Document(id_="minutes", text="Of somebody else.", metadata={"shelf": "west"})
    (source,) = _read(index, similarity_top_k=2, documents=StoredDocuments(index, docstore=_docstore(theirs)))
    assert source.text == MINUTES.text


# Splitters

HEADED = Document(id_="minutes", text="\n\n".join(f"# Part {n}\n\n{_text(f'meeting {n}', 4)}" for n in range(6)))
FLAT = Document(id_="minutes", text=_text("meeting"))


def _sentences(*, overlap: int) -> SentenceSplitter:
    return SentenceSplitter(
        chunk_size=60, chunk_overlap=overlap, chunking_tokenizer_fn=lambda text: re.findall(r"[^.]+\.?", text)
    )


def _windows() -> SentenceWindowNodeParser:
    return SentenceWindowNodeParser(
        window_size=1, sentence_splitter=lambda text: [f"{sentence}." for sentence in text.split(".") if sentence]
    )


SPLITTERS: dict[str, tuple[Callable[[], Any], Document, bool]] = {
    "sentences": (lambda: _sentences(overlap=24), FLAT, True),
    "sentences without overlap": (lambda: _sentences(overlap=0), FLAT, True),
    "tokens": (lambda: TokenTextSplitter(chunk_size=50, chunk_overlap=10), FLAT, True),
    "windows": (_windows, FLAT, True),
    "markdown": (MarkdownNodeParser, HEADED, True),
}


@pytest.mark.parametrize("store", ["simple", "chroma"])
@pytest.mark.parametrize("name", list(SPLITTERS))
async def test_whatever_cut_it_a_document_comes_back_or_says_that_it_is_not_whole(name: str, store: str) -> None:
    make, document, expected = SPLITTERS[name]
    index = STORES[store](split(document, by=make()))
    posts = [MetadataReplacementPostProcessor(target_metadata_key="window")] if name == "windows" else None
    engine = SelfRouteQueryEngine.from_index(index, llm=declining(), node_postprocessors=posts)
    for mode in ("query", "aquery"):
        asked = await ask(engine, ASK_MINUTES, mode)
        (source,) = asked.source_nodes
        exact = _label(source)["method"] == "offsets" and not _label(source)["gaps"]
        assert _plain(source.text) == _plain(document.text) or not exact
        assert exact == expected
        assert not source.metadata.keys() & {"window", "original_text", "header_path"}


@pytest.mark.parametrize("store", ["simple", "chroma"])
@every_mode
async def test_hierarchical_leaves_that_were_all_merged_lead_to_their_document(store: str, mode: str) -> None:
    sizes = {"large": 240, "middle": 80, "small": 40}
    splitters = {name: TokenTextSplitter(chunk_size=size, chunk_overlap=0) for name, size in sizes.items()}
    parser = HierarchicalNodeParser.from_defaults(node_parser_ids=list(sizes), node_parser_map=splitters)
    nodes = split(FLAT, by=parser)
    leaves = get_leaf_nodes(nodes)
    index = STORES[store](leaves)
    index.docstore.add_documents(nodes)
    retriever = AutoMergingRetriever(index.as_retriever(similarity_top_k=len(leaves)), index.storage_context)
    merged = retriever.retrieve(ASK_MINUTES)
    assert all(item.node.parent_node is None for item in merged)
    engine = SelfRouteQueryEngine(
        retriever, documents=StoredDocuments(index), llm=declining(), streaming=mode in STREAMS
    )
    asked = await ask(engine, ASK_MINUTES, mode)
    (source,) = asked.source_nodes
    exact = _label(source)["method"] == "offsets" and not _label(source)["gaps"]
    assert _plain(source.text) == _plain(FLAT.text) or not exact
    assert exact == (store == "simple")  # Chroma has the leaves alone


# fetch


@every_mode
async def test_a_store_that_can_not_list_its_nodes_is_read_by_fetch(mode: str) -> None:
    shelf = Shelf()
    index, asked_for = over(shelf, NODES), []

    def fetch(document: str, filters: MetadataFilters | None) -> Iterator[BaseNode]:
        asked_for.append((document, filters))
        return (node for node in shelf.found(filters) if node.ref_doc_id == document)

    engine = SelfRouteQueryEngine.from_index(
        index,
        similarity_top_k=2,
        documents=StoredDocuments(index, fetch=fetch),
        llm=declining(),
        streaming=mode in STREAMS,
    )
    asked = await ask(engine, ASK_MINUTES, mode)
    assert asked.sources == [MINUTES.text]
    assert _label(*asked.source_nodes) == EXACT
    assert asked_for == [("minutes", None)]


def test_without_fetch_it_is_refused_at_once_with_what_to_do() -> None:
    index = over(Shelf(), NODES)
    for make in (StoredDocuments, lambda index: SelfRouteQueryEngine.from_index(index, llm=declining())):
        with pytest.raises(ConfigurationError, match=r"(?s)Shelf.*fetch=.*documents="):
            make(index)
    assert SelfRouteQueryEngine.from_index(index, documents=[MINUTES], llm=declining()).query("?").response == FOUND


class _Refusing(Shelf):
    def get_nodes(self, node_ids: Any = None, filters: Any = None) -> list[BaseNode]:
        msg = "not today"
        raise NotImplementedError(msg)


def test_a_store_that_says_only_when_asked_that_it_can_not_list_is_told_with_what_to_do() -> None:
    with pytest.raises(ConfigurationError, match=r"not today.*fetch="):
        _read(over(_Refusing(), NODES))


async def _afetch(document: str, filters: Any) -> list[BaseNode]:
    return []


class _AFetch:
    async def __call__(self, document: str, filters: Any) -> list[BaseNode]:
        return []


@pytest.mark.parametrize("fetch", ["nodes", 3, _afetch, _AFetch()])
def test_what_can_not_fetch_is_refused_at_once(fetch: Any) -> None:
    with pytest.raises(ConfigurationError, match="fetch must be a sync callable"):
        StoredDocuments(simple(NODES), fetch=fetch)


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (None, "got NoneType"),
        ("text", "got str"),
        (["text"], "got str"),
        (NODES[0], "got "),
        ([NodeWithScore(node=NODES[0])], "got NodeWithScore"),
        (split(CRANE), "returned a node of 'crane'"),
    ],
)
@pytest.mark.parametrize("filters", [None, only("shelf", "north")])
def test_a_fetch_that_returns_something_else_is_told_so(found: Any, says: str, filters: Any) -> None:
    index = simple(NODES)
    documents = StoredDocuments(index, fetch=lambda document, filters: found, docstore=_docstore())
    documents.docstore.delete_document("minutes") if filters is None else None
    with pytest.raises(ReplyError, match=says):
        _read(index, similarity_top_k=2, documents=documents, filters=filters)


def test_a_fetch_that_hands_over_a_coroutine_is_told_so() -> None:
    index = simple(NODES)
    with pytest.raises(ReplyError, match="got coroutine"):
        _read(index, documents=StoredDocuments(index, fetch=lambda document, _: _afetch(document, None)))


def test_an_error_of_fetch_passes_through() -> None:
    def fetch(document: str, filters: Any) -> list[BaseNode]:
        msg = "the shelf fell over"
        raise TimeoutError(msg)

    index = simple(NODES)
    with pytest.raises(TimeoutError, match="fell over"):
        _read(index, documents=StoredDocuments(index, fetch=fetch))


# What cannot be found


def _node(text: str, of: str | None) -> TextNode:
    node = TextNode(text=text)
    if of:
        node.relationships[NodeRelationship.SOURCE] = Document(id_=of, text="").as_related_node_info()
    return node


@every_store
def test_a_document_that_is_not_held_is_a_lookup_error(store: str) -> None:
    engine = SelfRouteQueryEngine.from_index(STORES[store](NODES), llm=declining())
    with pytest.raises(LookupError, match=r"'july'.*documents=") as refused:
        engine.synthesize(QueryBundle("?"), [NodeWithScore(node=_node("In July.", "july"))])
    assert isinstance(refused.value, SelfRouteError)


@every_store
def test_nodes_without_a_document_are_a_lookup_error(store: str) -> None:
    engine = SelfRouteQueryEngine.from_index(STORES[store]([_node("In July.", None)]), llm=declining())
    with pytest.raises(DocumentNotFoundError, match=r"ref_doc_id.*documents="):
        engine.query("In July?")


@every_store
def test_a_node_without_a_document_stands_for_itself_beside_others(store: str) -> None:
    loose = _node("Item 0 of the meeting took 3 minutes, was it not?", None)
    sources = _read(STORES[store]([*NODES, loose]), loose.text, similarity_top_k=3)
    assert {source.text for source in sources} == {MINUTES.text, loose.text}
    (label,) = [_label(source) for source in sources if source.text == loose.text]
    assert label["method"] == "order"


def test_documents_that_were_indexed_uncut_are_read_as_they_are() -> None:
    sources = _read(simple([MINUTES, CRANE]), similarity_top_k=1)
    assert [(source.text, _label(source)) for source in sources] == [(MINUTES.text, ORIGINAL)]
    assert "selfroute" not in MINUTES.metadata


@every_mode
@every_store
async def test_an_empty_index_asks_no_model(store: str, mode: str) -> None:
    llm = declining()
    engine = SelfRouteQueryEngine.from_index(STORES[store]([]), llm=llm, streaming=mode in STREAMS)
    try:
        engine.retrieve(QueryBundle("?"))
    except AssertionError:
        pytest.skip("older hosts cannot search their own store when it is empty")
    asked = await ask(engine, ASK_MINUTES, mode)
    assert (asked.answerable, asked.sources, llm.calls) == (False, [], [])


@pytest.mark.parametrize(
    "make",
    [
        lambda index: StoredDocuments(index.vector_store),
        lambda index: StoredDocuments(NODES),
        lambda index: StoredDocuments(index, filters={"shelf": "north"}),
        lambda index: StoredDocuments(index, filters=[only("shelf", "north")]),
    ],
)
def test_what_can_be_no_index_or_filter_is_refused_at_once(make: Callable[[Any], Any]) -> None:
    with pytest.raises(ConfigurationError):
        make(simple(NODES))


# Other kinds of indices

KEYWORDS = ScriptedLLM(draft=("KEYWORDS: bolt, okafor",))


@every_mode
@pytest.mark.parametrize("kind", [SummaryIndex, KeywordTableIndex])
async def test_indices_of_other_kinds_become_engines_too(kind: Any, mode: str) -> None:
    nodes = [node.model_copy(deep=True) for node in NODES]
    for n, node in enumerate(nodes):
        node.metadata["speaker" if kind is SummaryIndex else "page"] = n
    engine = SelfRouteQueryEngine.from_index(kind(nodes, llm=KEYWORDS), llm=declining(), streaming=mode in STREAMS)
    asked = await ask(engine, "Which bolt did Okafor hold?", mode)
    assert sorted(asked.sources) == sorted([MINUTES.text, CRANE.text])
    labels = [_label(source) for source in asked.source_nodes]
    assert ["pages" in label for label in labels] == [kind is KeywordTableIndex] * 2
    assert [{key: label[key] for key in EXACT} for label in labels] == [EXACT] * 2


@every_mode
async def test_a_summary_is_no_part_of_its_document(mode: str) -> None:
    index = DocumentSummaryIndex(NODES, llm=MockLLM(), embed_model=Words())
    engine = SelfRouteQueryEngine.from_index(index, similarity_top_k=1, llm=declining(), streaming=mode in STREAMS)
    asked = await ask(engine, ASK_MINUTES, mode)
    assert asked.sources == [MINUTES.text]
    in_chroma = StorageContext.from_defaults(vector_store=a_chroma())
    index = DocumentSummaryIndex(NODES, llm=MockLLM(), embed_model=Words(), storage_context=in_chroma)
    assert [source.text for source in _read(index, similarity_top_k=1)] == [MINUTES.text]


def test_the_leaves_of_a_tree_lead_to_their_documents() -> None:
    index = TreeIndex(NODES, build_tree=False, llm=MockLLM())
    engine = SelfRouteQueryEngine(
        index.as_retriever(retriever_mode="all_leaf"), documents=StoredDocuments(index), llm=declining()
    )
    assert sorted(source.text for source in engine.query("?").source_nodes) == sorted([MINUTES.text, CRANE.text])


@pytest.mark.parametrize("kind", [SummaryIndex, KeywordTableIndex])
def test_filters_that_the_retriever_of_an_index_passes_over_are_refused_at_once(kind: Any) -> None:
    with pytest.raises(ConfigurationError, match="ignores filters"):
        SelfRouteQueryEngine.from_index(kind(NODES, llm=KEYWORDS), filters=only("shelf", "north"), llm=declining())
    empty = MetadataFilters(filters=[])
    assert (
        SelfRouteQueryEngine.from_index(kind(NODES, llm=KEYWORDS), filters=empty, llm=declining())
        .query("bolt")
        .response
        == FOUND
    )


# The cache and changes


class _CountingDocstore(SimpleDocumentStore):
    reads = 0
    told: Callable[[BaseNode], None] | None = None

    def get_document(self, doc_id: str, raise_error: bool = True) -> BaseNode | None:
        found = super().get_document(doc_id, raise_error)
        if found:  # a node: there are no originals
            self.reads += 1
            if self.told:
                self.told(found)
        return found


def _counted(store: str) -> tuple[VectorStoreIndex, Callable[[], int]]:
    """An index, and how often whole nodes were asked for to put a document together."""
    nodes = [node.model_copy(deep=True) for node in NODES]
    for n, node in enumerate(nodes):
        node.metadata["half"] = "first" if n % 10 < 5 else "second"
    if store == "simple":
        docstore = _CountingDocstore()
        context = StorageContext.from_defaults(docstore=docstore)
        index = VectorStoreIndex(nodes, storage_context=context, embed_model=Words())
        return index, lambda: docstore.reads
    index = chroma(nodes)
    collection = index.vector_store.client
    reads = [0]

    class Counting(type(collection)):  # type: ignore[misc]
        def get(self, *given: Any, **named: Any) -> Any:
            reads[0] += "documents" in named["include"]
            return super().get(*given, **named)

    collection.__class__ = Counting
    return index, lambda: reads[0]


CACHING = pytest.mark.parametrize("store", ["simple", "chroma"])
HITS = [NodeWithScore(node=node) for node in NODES[:2]]


@CACHING
def test_a_second_question_does_not_read_again(store: str) -> None:
    index, reads = _counted(store)
    read = StoredDocuments(index).behind(index.as_retriever())
    before = reads()
    first = read(HITS, QueryBundle("?"))
    once = reads() - before
    assert once > 0
    for _ in range(3):
        assert read(HITS, QueryBundle("?")) == first
    assert reads() - before == once


@CACHING
def test_the_questions_of_several_walls_in_turn_do_not_read_again(store: str) -> None:
    index, reads = _counted(store)
    documents = StoredDocuments(index)
    ids = [node.node_id for node in NODES]
    retrievers = [
        index.as_retriever(),
        index.as_retriever(filters=only("half", "first")),
        index.as_retriever(filters=only("half", "second")),
        VectorIndexRetriever(index, node_ids=ids[:5]),
        VectorIndexRetriever(index, node_ids=ids[:6]),
    ]
    hits = [NodeWithScore(node=TextNode(text="", relationships=NODES[0].relationships))]
    seen = [documents.behind(retriever)(hits, QueryBundle("?")) for retriever in retrievers]
    assert len({document.get_content() for (document,) in seen}) == len(retrievers)
    before = reads()
    assert [documents.behind(retriever)(hits, QueryBundle("?")) for retriever in retrievers] == seen
    # a filter is tried on the nodes of a document store themselves
    assert reads() - before == (2 * len(split(MINUTES)) if store == "simple" else 0)


@CACHING
def test_a_document_that_is_told_to_be_forgotten_is_read_again(store: str) -> None:
    index, reads = _counted(store)
    documents = StoredDocuments(index)
    read = documents.behind(index.as_retriever())
    for told in ("minutes", None):
        read(HITS, QueryBundle("?"))
        before = reads()
        documents.forget("crane")
        read(HITS, QueryBundle("?"))
        assert reads() == before
        documents.forget(told)
        read(HITS, QueryBundle("?"))
        assert reads() > before


def test_what_is_forgotten_while_it_is_read_is_read_again() -> None:
    nodes = [node.model_copy(deep=True) for node in NODES]
    docstore = _CountingDocstore()
    context = StorageContext.from_defaults(docstore=docstore)
    index = VectorStoreIndex(nodes, storage_context=context, embed_model=Words())
    documents = StoredDocuments(index)

    def change(node: BaseNode) -> None:  # when the first node has been read
        docstore.told = None
        later = node.model_copy(deep=True)
        later.set_content(node.get_content().replace("Item 0", "Item O"))
        docstore.add_documents([later])
        documents.forget("minutes")

    docstore.told = change
    hits = [NodeWithScore(node=nodes[1])]
    documents.behind(index.as_retriever())(hits, QueryBundle("?"))
    (document,) = documents.behind(index.as_retriever())(hits, QueryBundle("?"))
    assert document.get_content() == MINUTES.text.replace("Item 0", "Item O")


def _texts(documents: StoredDocuments, index: VectorStoreIndex) -> list[str]:
    engine = SelfRouteQueryEngine(index.as_retriever(similarity_top_k=3), documents=documents, llm=declining())
    return [source.text for source in engine.query(ASK_MINUTES).source_nodes]


@updating
@every_store
def test_changes_of_the_store_are_noticed(store: str) -> None:
    nodes = split(MINUTES)
    index = STORES[store]([*nodes[:-1], *split(CRANE)])
    index._transformations = [SPLIT]
    documents = StoredDocuments(index)
    part = MINUTES.text[: nodes[-2].end_char_idx]
    assert _texts(documents, index) == [part]
    index.insert_nodes([nodes[-1]])
    assert _texts(documents, index) == [MINUTES.text]
    later = Document(id_="minutes", text=MINUTES.text.replace("meeting", "meeting of June"))
    index.update_ref_doc(later)
    assert _texts(documents, index) == [later.text]
    index.delete_ref_doc("minutes")
    assert _texts(documents, index) == [CRANE.text]
    last = Document(id_="minutes", text=MINUTES.text.replace("meeting", "meeting of July"))
    index.insert(last)
    assert _texts(documents, index) == [last.text]


@pytest.mark.parametrize("store", ["simple", "chroma", "from_vector_store"])
@pytest.mark.parametrize("thorough", [False, True])
async def test_deleted_nodes_are_not_read(store: str, thorough: bool) -> None:
    nodes = split(MINUTES)
    index = STORES[store](nodes)
    documents = StoredDocuments(index)
    assert _texts(documents, index) == [MINUTES.text]
    index.delete_nodes([nodes[1].node_id], delete_from_docstore=thorough)
    (text,) = _texts(documents, index)
    assert nodes[1].get_content() not in text
    assert nodes[2].get_content() in text
    await index.adelete_nodes([nodes[2].node_id], delete_from_docstore=thorough)
    (text,) = _texts(documents, index)
    assert nodes[2].get_content() not in text
    assert nodes[3].get_content() in text


@CACHING
def test_a_node_that_comes_back_with_another_text_under_its_id_is_noticed(store: str) -> None:
    nodes = split(MINUTES)
    index = STORES[store](nodes)
    documents = StoredDocuments(index)
    assert _texts(documents, index) == [MINUTES.text]
    changed = nodes[0].model_copy(deep=True)
    changed.set_content(nodes[0].get_content().replace("Item 0", "Item O"))
    index.delete_nodes([changed.node_id], delete_from_docstore=True)
    index.insert_nodes([changed])
    read = documents.behind(index.as_retriever())
    (seen,) = read([NodeWithScore(node=changed)], QueryBundle("?"))
    assert seen.get_content() == MINUTES.text.replace("Item 0", "Item O")


def test_what_a_reader_does_to_a_document_does_not_reach_the_next_one() -> None:
    index = simple(NODES)
    engine = SelfRouteQueryEngine.from_index(index, similarity_top_k=2, llm=declining())
    (source,) = engine.query(ASK_MINUTES).source_nodes
    source.node.metadata.update(shelf="elsewhere")
    source.node.metadata["selfroute"]["gaps"].append([0, 1])
    source.node.excluded_llm_metadata_keys.append("shelf")
    source.node.set_content("Nothing.")
    (source,) = engine.query(ASK_MINUTES).source_nodes
    assert (source.text, source.node.metadata) == (MINUTES.text, {**MINUTES.metadata, "selfroute": EXACT})
    assert "shelf" not in source.node.excluded_llm_metadata_keys


@pytest.mark.parametrize("mode", ["aquery", "astream"])
async def test_reading_does_not_hold_up_the_event_loop(mode: str) -> None:
    index, ready = simple(NODES), threading.Event()

    def fetch(document: str, filters: Any) -> Sequence[BaseNode]:
        assert ready.wait(30), "the event loop stood still"
        return split(MINUTES)

    engine = SelfRouteQueryEngine(
        index.as_retriever(similarity_top_k=2),
        documents=StoredDocuments(index, fetch=fetch),
        llm=declining(),
        streaming=mode in STREAMS,
    )

    async def let_go() -> None:
        await asyncio.sleep(0)
        ready.set()

    asked, _ = await asyncio.gather(ask(engine, ASK_MINUTES, mode), let_go())
    assert asked.sources == [MINUTES.text]


# Where it is given


def test_a_synthesizer_in_an_engine_of_the_hosts_reads_stored_documents() -> None:
    for store in STORES.values():
        index, llm = store(NODES), declining()
        synthesizer = SelfRouteSynthesizer(documents=StoredDocuments(index), llm=llm)
        engine = index.as_query_engine(response_synthesizer=synthesizer, llm=llm)
        assert [source.text for source in engine.query(ASK_MINUTES).source_nodes] == [MINUTES.text]


def test_a_retriever_of_ones_own_leads_to_documents_whose_nodes_are_alike() -> None:
    for store in STORES.values():
        index = store(NODES)
        engine = SelfRouteQueryEngine(ListRetriever(HITS), documents=StoredDocuments(index), llm=declining())
        assert [source.text for source in engine.query("?").source_nodes] == [MINUTES.text]
        hit = NodeWithScore(node=_node(NODES[0].get_content(), "minutes"))  # of its own making
        hit.node.metadata = {**MINUTES.metadata, "score": 0.9}
        engine = SelfRouteQueryEngine(ListRetriever([hit]), documents=StoredDocuments(index), llm=declining())
        assert [source.text for source in engine.query("?").source_nodes] == [MINUTES.text]


def test_another_retriever_over_the_same_nodes_is_known_for_that() -> None:
    nodes = [node.model_copy(deep=True) for node in NODES]
    for n, node in enumerate(nodes):
        node.metadata["speaker"] = n
    index = chroma(nodes)
    twin = VectorStoreIndex.from_vector_store(type(index.vector_store)(index.vector_store.client), embed_model=Words())
    assert _read(index, similarity_top_k=2, documents=StoredDocuments(twin))[0].text == MINUTES.text
    index = listing(nodes)
    twin = VectorStoreIndex.from_vector_store(index.vector_store, embed_model=Words())
    assert _read(index, similarity_top_k=2, documents=StoredDocuments(twin))[0].text == MINUTES.text


def test_another_index_of_the_same_nodes_is_read_if_it_is_said_what_is_hidden(tmp_path: Path) -> None:
    nodes = [node.model_copy(deep=True) for node in NODES]
    for n, node in enumerate(nodes):
        node.metadata["speaker"] = n
    index, twin = simple(nodes), loaded(nodes, tmp_path)
    with pytest.raises(ConfigurationError, match="speaker"):
        _read(index, similarity_top_k=2, documents=StoredDocuments(twin))
    documents = StoredDocuments(twin, filters=MetadataFilters(filters=[]))
    assert _read(index, similarity_top_k=2, documents=documents)[0].text == MINUTES.text
