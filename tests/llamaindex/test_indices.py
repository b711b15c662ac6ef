"""An index becomes an engine that routes, in place of its own `as_query_engine` and `as_chat_engine`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from llama_index.core import Document, MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode

from llamaindex_agents_parts import ANSWERS, CHATS, ROUTES, TEA, a_memory, say
from llamaindex_parts import DOCUMENTS, MODES, QUESTION, STREAMS, ScriptedLLM, ask
from llamaindex_selfroute import SelfRouteQueryEngine, SelfRouteSynthesizer
from scenarios import FINAL
from selfroute.errors import SelfRouteError

every_mode = pytest.mark.parametrize("mode", MODES)
either_route = pytest.mark.parametrize("kind", list(ROUTES))

CONDENSED = "Who chaired the meeting of May?"
MINUTES = Document(text="The meeting was long.\nTea was served.\nMs Okafor chaired it.", id_="minutes")
# By lines: the default asks nltk, which refuses to read its word lists where an installer has hard-linked them.
SPLIT = SentenceSplitter(chunk_size=9, chunk_overlap=0, chunking_tokenizer_fn=lambda text: text.splitlines(True))


def _reader(kind: str) -> ScriptedLLM:
    """A model for the index over `MINUTES`: only the whole document holds two sentences together."""
    draft = ("unanswerable",) if kind == "declined" else TEA
    return ScriptedLLM(draft=draft, final=FINAL, marker="served.\nMs")


@cache
def _plain() -> VectorStoreIndex:
    return VectorStoreIndex.from_documents([MINUTES], embed_model=MockEmbedding(embed_dim=8), transformations=[SPLIT])


@cache
def _chroma() -> VectorStoreIndex:
    client = pytest.importorskip("chromadb").EphemeralClient()
    stores = pytest.importorskip("llama_index.vector_stores.chroma")
    store = stores.ChromaVectorStore(client.get_or_create_collection("composition"))
    return VectorStoreIndex.from_documents(
        [MINUTES],
        storage_context=StorageContext.from_defaults(vector_store=store),
        embed_model=MockEmbedding(embed_dim=8),
        transformations=[SPLIT],
    )


INDICES = {"plain": _plain, "chroma": _chroma}
ENGINES: dict[str, Callable[..., RetrieverQueryEngine]] = {
    "as_query_engine": lambda index, *, llm, streaming: index.as_query_engine(
        response_synthesizer=SelfRouteSynthesizer(documents=[MINUTES], llm=llm, streaming=streaming), llm=llm
    ),
    "retriever": lambda index, *, llm, streaming: SelfRouteQueryEngine(
        index.as_retriever(similarity_top_k=2), documents=[MINUTES], llm=llm, streaming=streaming
    ),
    "from_args": lambda index, *, llm, streaming: SelfRouteQueryEngine.from_args(
        index.as_retriever(similarity_top_k=2), llm, documents=[MINUTES], streaming=streaming
    ),
    "from_index": lambda index, *, llm, streaming: SelfRouteQueryEngine.from_index(
        index, similarity_top_k=2, documents=[MINUTES], llm=llm, streaming=streaming
    ),
    "from_index with what it holds": lambda index, *, llm, streaming: SelfRouteQueryEngine.from_index(
        index, similarity_top_k=2, llm=llm, streaming=streaming
    ),
}


@every_mode
@either_route
@pytest.mark.parametrize(
    ("index", "name"),
    [(index, name) for index in INDICES for name in ENGINES],
)
async def test_an_index_becomes_an_engine_in_place_of_its_own(index: str, name: str, kind: str, mode: str) -> None:
    over, llm = INDICES[index](), _reader(kind)
    built_in = over.as_query_engine(llm=_reader(kind), streaming=mode in STREAMS)
    engine = ENGINES[name](over, llm=llm, streaming=mode in STREAMS)
    expected = await ask(built_in, QUESTION, mode)
    asked = await ask(engine, QUESTION, mode)
    retrieved = [item.node_id for item in expected.source_nodes]
    assert len(retrieved) == 2
    assert (asked.text, asked.route, asked.retrieved) == (ANSWERS[kind], ROUTES[kind], retrieved)
    if kind == "answered":
        assert (asked.text, asked.source_nodes) == (expected.text, expected.source_nodes)
    else:
        assert asked.sources == [MINUTES.text]
    for item in expected.source_nodes:
        assert item.get_content() in llm.calls[0].prompt


@either_route
@pytest.mark.parametrize("way", CHATS)
async def test_an_index_becomes_a_chat_engine_that_routes(kind: str, way: str) -> None:
    letter = Document(text="Tea was served.")
    index = VectorStoreIndex.from_documents([letter], embed_model=MockEmbedding(embed_dim=8))
    draft = ("unanswerable",) if kind == "declined" else TEA
    llm = ScriptedLLM(draft=lambda prompt: (CONDENSED,) if "<Chat History>" in prompt else draft, final=FINAL)
    synthesizer = SelfRouteSynthesizer(documents=DOCUMENTS, llm=llm)
    chat = index.as_chat_engine(
        chat_mode="condense_question", response_synthesizer=synthesizer, llm=llm, memory=a_memory()
    )
    for message in (QUESTION, "And in May?"):
        pieces, response = await say(chat, message, way)
        assert "".join(pieces) == ANSWERS[kind]
        assert response.sources[0].raw_output.metadata["route"] == ROUTES[kind]
    assert response.sources[0].raw_input == {"query": CONDENSED}


def _over(nodes: list[TextNode], *originals: Document) -> SelfRouteQueryEngine:
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=8))
    index.docstore.add_documents(originals)
    llm = ScriptedLLM(draft=("unanswerable",), final=FINAL, marker="Read the following text")
    return SelfRouteQueryEngine.from_index(index, llm=llm)


def _node(text: str, start: int | None, *, of: str | None = "May") -> TextNode:
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=of)} if of else {}
    metadata = {"shelf": "north", "page": start}
    return TextNode(text=text, start_char_idx=start, relationships=source, metadata=metadata)


HELD = [_node("Minutes of May.", 0), _node("May. Tea was served.", 11), _node("Ms Okafor chaired it.", 40)]


def test_an_original_in_the_docstore_is_read_as_it_is() -> None:
    original = Document(id_="May", text="Minutes of May.  Tea was served. Ms Okafor chaired it.")
    (source,) = _over(HELD, original).query(QUESTION).source_nodes
    assert source.text == original.text
    assert source.metadata["selfroute"] == {"method": "original", "chunks": 0, "gaps": [], "trimmed": False}


def test_without_it_the_document_is_put_together_from_its_nodes_and_says_how() -> None:
    (source,) = _over(HELD).query(QUESTION).source_nodes
    assert (source.node_id, source.text) == ("May", "Minutes of May. Tea was served.\n\nMs Okafor chaired it.")
    assert source.metadata["shelf"] == "north"
    assert "page" not in source.metadata
    label = {"method": "offsets", "chunks": 3, "gaps": [[31, 40]], "trimmed": False}
    assert source.metadata["selfroute"] == {**label, "pages": [[0, 0], [11, 11], [33, 40]]}


def test_the_documents_that_were_hit_are_read_best_first_and_once() -> None:
    june = _node("Minutes of June, not of May.", 0, of="June")
    engine = _over([*HELD, june])
    hits = [NodeWithScore(node=node) for node in (HELD[2], june, HELD[0])]
    response = engine.synthesize(QueryBundle(QUESTION), hits)
    assert [source.node_id for source in response.source_nodes] == ["May", "June"]


@pytest.mark.parametrize("of", ["May", None])
def test_a_node_whose_document_is_not_held_is_told_with_what_to_do(of: str | None) -> None:
    engine = _over(HELD)
    other = NodeWithScore(node=_node("Minutes of July, not of May.", 0, of=of and "July"))
    with pytest.raises(LookupError, match="documents=") as refused:
        engine.synthesize(QueryBundle(QUESTION), [other])
    assert isinstance(refused.value, SelfRouteError)
