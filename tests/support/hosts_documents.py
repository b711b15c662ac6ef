"""Small documents in real stores of either framework, and what a question reads of them, in the words of neither.

A house is a store where tenants live: `house(kind, pieces)`. It makes retrievers, `StoredDocuments` and pipelines of
its framework; `holds` and `Together` are filters, which it translates.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document as LangChainDocument
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever as LangChainRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core.retrievers import BaseRetriever as LlamaIndexRetriever
from llama_index.core.schema import Document as LlamaIndexDocument
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

import langchain_parts
import langchain_selfroute
import langchain_stores
import llamaindex_parts
import llamaindex_selfroute
import llamaindex_stores_parts
from langchain_stores import chunks_of, text_of
from selfroute.errors import ConfigurationError

MINE, OTHER = "Ash", "Birch"
HOSTS = ("langchain", "llamaindex")
CHROMA = ("langchain chroma", "llamaindex chroma")
FETCHED = ("langchain fetch", "llamaindex fetch")
KINDS = ("langchain memory", "llamaindex memory", *CHROMA, "llamaindex again", "llamaindex listing")
MODES = ("sync", "async", "stream", "astream")
FAR_APART = ("sync", "astream")  # for what happens before a mode matters
QUESTION = "What does the crane lift?"
_LANGCHAIN = dict(zip(MODES, langchain_parts.MODES, strict=True))
_LLAMAINDEX = dict(zip(MODES, llamaindex_parts.MODES, strict=True))


@dataclass(frozen=True)
class Piece:
    """A chunk before it is indexed; `source` names its document, and None names none."""

    text: str
    source: Any = "handbook"
    start: int | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None


def cut(text: str, source: Any = "handbook", *, size: int = 90, overlap: int = 0, **about: Any) -> list[Piece]:
    """Cut a text into chunks with offsets."""
    chunks = chunks_of(text, size=size, overlap=overlap)
    return [Piece(chunk.page_content, source, chunk.metadata["start_index"], about) for chunk in chunks]


def of(owner: str, source: str = "handbook", **about: Any) -> list[Piece]:
    """The document of a tenant, which names the tenant in each chunk."""
    return cut(text_of(owner), source, **{"tenant": owner, **about})


def two_tenants() -> list[Piece]:
    """Two tenants with a handbook each, their chunks in turn, so that both are near."""
    return [piece for both in zip(of(MINE), of(OTHER), strict=True) for piece in both]


# Filters


@dataclass(frozen=True)
class Holds:
    """The metadata hold this value."""

    key: str
    value: Any
    by: str = "=="


@dataclass(frozen=True)
class Together:
    """All parts hold, or any of them."""

    parts: tuple[Holds | Together, ...]
    any: bool = False


Condition = Holds | Together
NOTHING_HIDDEN = Together(())
ITS_OWN = Holds("tenant", MINE)
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "in": lambda held, wanted: held in wanted,
}
_IN_CHROMA = {"==": "$eq", "!=": "$ne", "<": "$lt", "in": "$in"}


def meets(metadata: Mapping[str, Any], condition: Condition) -> bool:
    """Whether metadata meet a filter."""
    if isinstance(condition, Together):
        return (any if condition.any else all)(meets(metadata, part) for part in condition.parts)
    return condition.key in metadata and _COMPARE[condition.by](metadata[condition.key], condition.value)


def _where(condition: Condition) -> dict[str, Any]:
    if isinstance(condition, Together):
        return {"$or" if condition.any else "$and": [_where(part) for part in condition.parts]}
    plain = condition.by == "=="
    return {condition.key: condition.value if plain else {_IN_CHROMA[condition.by]: condition.value}}


def _filters(condition: Condition) -> Any:
    if isinstance(condition, Together):
        return MetadataFilters(
            filters=[_filters(part) for part in condition.parts], condition="or" if condition.any else "and"
        )
    return MetadataFilter(key=condition.key, value=condition.value, operator=condition.by)


# Questions


@dataclass(frozen=True)
class Text:
    """A document that was read, or a passage that was found."""

    text: str
    name: Any
    about: Mapping[str, Any]  # its metadata, without its name
    label: Mapping[str, Any]


def whole(chunks: int, method: str = "offsets", gaps: Sequence[Sequence[int]] = (), **more: Any) -> dict[str, Any]:
    """The label of a document."""
    return {"method": method, "chunks": chunks, "gaps": list(gaps), "trimmed": False, **more}


ORIGINAL = whole(0, "original")


@dataclass(frozen=True)
class Answered:
    """What a question came to."""

    answer: str
    route: str
    answerable: bool
    signal: str
    found: list[Text]
    read: list[Text]

    @property
    def texts(self) -> list[str]:
        """The texts of the documents that were read."""
        return [one.text for one in self.read]


@dataclass(frozen=True)
class Pipeline:
    """A chain or an engine, with the scripted model that it asks; `of` makes it, streaming or not."""

    host: str
    of: Callable[[bool], Any]
    model: Any

    @property
    def prompts(self) -> str:
        """All that the model was asked."""
        return "\n".join(call.prompt for call in self.model.calls)

    def through(self, run: Any) -> Pipeline:
        """The same model behind another runnable or engine."""
        return replace(self, of=lambda _: run)

    async def ask(self, mode: str = "sync", question: Any = QUESTION, config: Any = None) -> Answered:
        """Ask a question; the streams are read to the end."""
        run = self.of("stream" in mode)
        if self.host == "langchain":
            return _of_chain(await langchain_parts.ask(run, question, _LANGCHAIN[mode], config))
        asked = await llamaindex_parts.ask(run, question, _LLAMAINDEX[mode])
        return _of_response(asked.response, asked.text)

    async def twice(self, mode: str, between: Callable[[], None] = lambda: None) -> Answered:
        """Ask the first step and hand its row to the second one, after something has happened."""
        run = self.of("stream" in mode)
        if self.host == "langchain":
            row = run.first_step.invoke(QUESTION)
            between()
            return _of_chain(await langchain_parts.ask(run.second_step, row, _LANGCHAIN[mode]))
        row = run.first_step(QUESTION)
        between()
        response = await run.asecond_step(row) if mode.startswith("a") else run.second_step(row)
        pieces = [piece async for piece in llamaindex_parts.pieces_of(response, _LLAMAINDEX[mode])]
        return _of_response(response, "".join(pieces))

    async def check(self, mode: str) -> Any:
        """What `check` finds of the wall."""
        run = self.of(False)
        findings = await run.acheck(QUESTION) if mode.startswith("a") else run.check(QUESTION)
        (wall,) = (finding for finding in findings if finding.subject == "wall")
        return wall


def _of_chain(result: Any) -> Answered:
    decision = {key: result[key] for key in ("answer", "route", "answerable")}
    found, read = ([_text(one.page_content, one.metadata) for one in result[key]] for key in ("retrieved", "context"))
    return Answered(**decision, signal=result["decision"]["signal"], found=found, read=read)


def _of_response(response: Any, answer: str) -> Answered:
    told, nodes = response.metadata, [item.node for item in response.source_nodes]
    texts = [_text(node.get_content(), node.metadata, node.ref_doc_id or node.node_id) for node in nodes]
    found = [Text("", name, {}, {}) for name in told["retrieved"]]
    return Answered(answer, told["route"], told["answerable"], told["decision"]["signal"], found, texts)


def _text(text: str, metadata: Mapping[str, Any], name: Any = None) -> Text:
    about = {key: value for key, value in metadata.items() if key not in ("selfroute", "source")}
    return Text(text, metadata.get("source") if name is None else name, about, metadata.get("selfroute", {}))


@contextmanager
def no_leak(pipeline: Pipeline, hidden: str = OTHER) -> Iterator[None]:
    """Whatever happens, no prompt holds the text of the other tenant."""
    pipeline.model.calls.clear()
    try:
        yield
    finally:
        assert hidden not in pipeline.prompts


async def reads(
    pipeline: Pipeline, mode: str = "sync", config: Any = None, *, owner: str = MINE, times: int = 2
) -> Text:
    """The pipeline reads the one document of its tenant, whole; the second time out of the cache."""
    for _ in range(times):
        with no_leak(pipeline, OTHER if owner == MINE else MINE):
            answered = await pipeline.ask(mode, config=config)
        assert answered.texts == [text_of(owner)]
        assert answered.read[0].label["gaps"] == []
    return answered.read[0]


async def refuses(
    pipeline: Pipeline, mode: str = "sync", match: str | None = "filters?=", error: Any = ConfigurationError
) -> None:
    """The pipeline says that it cannot know, and reads nothing."""
    with no_leak(pipeline), pytest.raises(error, match=match):
        await pipeline.ask(mode)
    assert pipeline.model.steps == ["rag"]


# Houses


class House(ABC):
    """A store where tenants live, and what its framework makes of it."""

    host: str
    filters_as: Callable[[Condition], Any]
    unnamed: str  # what the error says where no passage names its document
    advice: str  # what fetch= is asked for
    nonsense: Sequence[Any]  # what is no filter of this store

    def __init__(self, kind: str, pieces: Iterable[Piece] = (), *, over: Any = None, client: Any = None) -> None:
        """Put pieces into a new store of the kind.

        Args:
            kind: The kind, without the host.
            pieces: The pieces.
            over: A store of somebody's own, in place of a new one.
            client: The client of a Chroma server.
        """
        self.kind, self.client, self._filters = kind, client, dict[str, Any]()
        self.open(over)
        if pieces := list(pieces):
            self.ids = self.add(pieces)

    @abstractmethod
    def open(self, over: Any) -> None:
        """Open the store."""

    @classmethod
    def on(cls, kind: str, made: Any) -> Any:
        """A house around a store or an index that is there already."""
        home = cls(kind)
        setattr(home, "store" if cls.host == "langchain" else "index", made)
        return home

    @abstractmethod
    def add(self, pieces: Iterable[Piece]) -> list[str]:
        """Index pieces and return their ids."""

    @abstractmethod
    def delete(self, ids: Sequence[str]) -> None:
        """Delete chunks."""

    @property
    @abstractmethod
    def collection(self) -> Any:
        """The collection in Chroma."""

    def rewrite(self, id_: str, text: str) -> None:
        """Change the text of a chunk in Chroma and keep its id."""
        self.collection.update(ids=[id_], documents=[text], embeddings=[_Words().embed_query(text)])

    @abstractmethod
    def again(self) -> House:
        """Another object over the same collection in Chroma."""

    @abstractmethod
    def passage(self, piece: Piece) -> Any:
        """A piece as it is retrieved."""

    @abstractmethod
    def search(self, condition: Condition | None = None, k: int = 4) -> Any:
        """A retriever of the store's own."""

    @abstractmethod
    def found(self, retriever: Any, question: str = QUESTION) -> list[Any]:
        """What a retriever finds."""

    @abstractmethod
    def hidden(self, retriever: Any) -> Any:
        """A retriever of somebody's own around another one."""

    @abstractmethod
    def returning(self, passages: Sequence[Any]) -> Any:
        """A retriever of somebody's own that finds these."""

    @abstractmethod
    def documents(self, condition: Condition | None = None, **options: Any) -> Any:
        """`StoredDocuments` over the store; `originals` are texts by name in a document store."""

    @abstractmethod
    def pipeline(self, retriever: Any = None, documents: Any = None, **fields: Any) -> Pipeline:
        """A chain or an engine; without a retriever with the store's own."""

    @abstractmethod
    def built(self, condition: Condition | None = None, k: int = 4, **fields: Any) -> Pipeline:
        """The same as the README builds it: over the store alone."""

    @abstractmethod
    def fetching(self, listing: Callable[..., Any], model: Any = None) -> Pipeline:
        """The same with `fetch=`; `listing(source, condition)` returns the framework's chunks."""

    def filter(self, condition: Condition | None) -> Any:
        """A filter in the store's own words, the same one for the same condition."""
        if condition is None:
            return None
        return self._filters.setdefault(repr(condition), self.filters_as(condition))


class _Words(Embeddings):
    """Texts that share words are near to each other; `before` is called before a question is searched."""

    def __init__(self) -> None:
        self.before: Any = None

    def embed_query(self, text: str) -> list[float]:
        if self.before:
            self.before()
        return llamaindex_stores_parts.Words().get_text_embedding(text)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


class Hidden(LangChainRetriever):
    """A retriever of somebody's own around another one."""

    inside: Any

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[LangChainDocument]:
        return self.inside.invoke(query)  # type: ignore[no-any-return]


class InLangChain(House):
    """A vector store of LangChain."""

    host = "langchain"
    unnamed = r"metadata\['source'\].*\['file'.*source_key="
    advice = r"a Shelf has no known way .* pass fetch=, a callable"
    _stored: Any = langchain_selfroute.StoredDocuments

    def open(self, over: Any) -> None:
        self.embedding = _Words()
        if self.kind == "chroma":
            made = langchain_stores.store_with("chroma", of=over, client=self.client, embedding=self.embedding)
            self.store, self.filters_as = made, lambda condition: _where(condition) if _is_some(condition) else {}
            self.nonsense = (3, lambda _: True)
            return
        self.store = (
            (over or InMemoryVectorStore)(self.embedding) if self.kind == "memory" else langchain_stores.Shelf()
        )
        about = (lambda one: one.metadata) if self.kind == "memory" else (lambda metadata: metadata)
        self.filters_as = lambda condition: (lambda one: meets(about(one), condition)) if _is_some(condition) else {}
        self.nonsense = ({"tenant": MINE}, 3)

    def add(self, pieces: Iterable[Piece]) -> list[str]:
        chunks = [self.passage(piece) for piece in pieces]
        if self.kind == "fetch":
            self.store.chunks += chunks
            return []
        return self.store.add_documents(chunks)  # type: ignore[no-any-return]

    def delete(self, ids: Sequence[str]) -> None:
        self.store.delete(list(ids))

    @property
    def collection(self) -> Any:
        return self.store._collection

    def again(self) -> House:
        made = langchain_stores.chroma_class()(self.collection.name, self.embedding, client=self.store._client)
        return InLangChain.on("chroma", made)  # type: ignore[no-any-return]

    def passage(self, piece: Piece) -> Any:
        named = {} if piece.source is None else {"source": piece.source}
        start = {} if piece.start is None else {"start_index": piece.start}
        return LangChainDocument(piece.text, id=piece.id, metadata={**piece.about, **named, **start})

    def search(self, condition: Condition | None = None, k: int = 4, **search: Any) -> Any:
        own = {} if condition is None else {"filter": self.filter(condition)}
        return self.store.as_retriever(search_kwargs={"k": k, **own, **search})

    def found(self, retriever: Any, question: str = QUESTION) -> list[Any]:
        return retriever.invoke(question)  # type: ignore[no-any-return]

    def hidden(self, retriever: Any) -> Any:
        return Hidden(inside=retriever)

    def returning(self, passages: Sequence[Any]) -> Any:
        return RunnableLambda(lambda _: list(passages))

    def documents(self, condition: Condition | None = None, **options: Any) -> Any:
        if "originals" in options:
            options["docstore"] = InMemoryStore()
            options["docstore"].mset([(one.source, self.passage(one)) for one in options.pop("originals")])
        fetch = {"fetch": self.store.fetch} if self.kind == "fetch" else {}
        return self._stored(self.store, filter=self.filter(condition), **{**fetch, **options})

    def pipeline(self, retriever: Any = None, documents: Any = None, **fields: Any) -> Pipeline:
        model = langchain_stores.a_model(**fields.pop("model", {}))
        parts = {"retriever": retriever or self.search(), "documents": documents or self.documents()}
        chain = langchain_selfroute.SelfRouteChain(llm=model, **parts, **fields)
        return Pipeline(self.host, lambda _: chain, model)

    def built(self, condition: Condition | None = None, k: int = 4, **fields: Any) -> Pipeline:
        model = langchain_stores.a_model(**fields.pop("model", {}))
        fetch = {"fetch": self.store.fetch} if self.kind == "fetch" and fields.pop("fetched", True) else {}
        own = {} if condition is None else {"filter": self.filter(condition)}
        chain = langchain_selfroute.SelfRouteChain.from_vectorstore(self.store, model, k=k, **own, **fetch, **fields)
        return Pipeline(self.host, lambda _: chain, model)

    def fetching(self, listing: Callable[..., Any], model: Any = None) -> Pipeline:
        documents = self._stored(self.store, fetch=lambda _, source, condition: listing(source, condition))
        return self.pipeline(self.search(k=1), documents)


class _NodeWords(llamaindex_stores_parts.Words):
    """The same for LlamaIndex."""

    before: Any = None

    def _get_query_embedding(self, query: str) -> list[float]:
        if self.before:
            self.before()
        return super()._get_query_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


class Narrowing(LlamaIndexRetriever):
    """A retriever of somebody's own around another one."""

    def __init__(self, retriever: Any) -> None:
        super().__init__()
        self._inside = retriever

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._inside.retrieve(query_bundle)  # type: ignore[no-any-return]


class InLlamaIndex(House):
    """An index of LlamaIndex."""

    host = "llamaindex"
    unnamed = r"ref_doc_id.*documents="
    advice = r"(?s)Shelf.*fetch=.*documents="
    nonsense = ({"tenant": MINE}, [MetadataFilters(filters=[])])
    _stored: Any = llamaindex_selfroute.StoredDocuments

    def open(self, over: Any) -> None:
        made = {"listing": llamaindex_stores_parts.ListingShelf, "fetch": llamaindex_stores_parts.Shelf}
        store = over or (made[self.kind]() if self.kind in made else None)
        if store is None and self.kind != "memory":
            store = llamaindex_stores_parts.a_chroma(self.client)
        self.embedding: Any = _NodeWords()
        self.index: Any = llamaindex_stores_parts.over(store, [], embed_model=self.embedding)
        self.filters_as = lambda condition: (
            one if isinstance(one := _filters(condition), MetadataFilters) else MetadataFilters(filters=[one])
        )

    def add(self, pieces: Iterable[Piece]) -> list[str]:
        nodes = self.nodes = [self.passage(piece).node for piece in pieces]
        self.index.insert_nodes(nodes)
        if self.kind == "again":  # what another process has put there: no document store, no list of nodes
            self.index = llamaindex_stores_parts.from_store(self.index.vector_store)
        return [node.node_id for node in nodes]

    def delete(self, ids: Sequence[str]) -> None:
        self.index.delete_nodes(list(ids), delete_from_docstore=True)

    @property
    def collection(self) -> Any:
        return self.index.vector_store.client

    def again(self) -> House:
        store = self.index.vector_store
        made = llamaindex_stores_parts.from_store(type(store)(self.collection))
        return InLlamaIndex.on(self.kind, made)  # type: ignore[no-any-return]

    def passage(self, piece: Piece) -> Any:
        named = {} if piece.source is None else {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=piece.source)}
        node = TextNode(
            text=piece.text,
            metadata=dict(piece.about),
            excluded_llm_metadata_keys=list(piece.about),
            excluded_embed_metadata_keys=list(piece.about),
            start_char_idx=piece.start,
            end_char_idx=None if piece.start is None else piece.start + len(piece.text),
            relationships=named,
            **({"id_": piece.id} if piece.id else {}),
        )
        return NodeWithScore(node=node)

    def search(self, condition: Condition | None = None, k: int = 4, **search: Any) -> Any:
        own = {} if condition is None else {"filters": self.filter(condition)}
        return self.index.as_retriever(similarity_top_k=k, **own, **search)

    def found(self, retriever: Any, question: str = QUESTION) -> list[Any]:
        return retriever.retrieve(question)  # type: ignore[no-any-return]

    def hidden(self, retriever: Any) -> Any:
        return Narrowing(retriever)

    def returning(self, passages: Sequence[Any]) -> Any:
        return llamaindex_parts.ListRetriever(passages, k=len(passages))

    def documents(self, condition: Condition | None = None, **options: Any) -> Any:
        if "originals" in options:
            options["docstore"] = SimpleDocumentStore()
            originals = [
                LlamaIndexDocument(text=one.text, id_=one.source, metadata=dict(one.about))
                for one in options.pop("originals")
            ]
            options["docstore"].add_documents(originals)
        fetch = {"fetch": self._fetch} if self.kind == "fetch" else {}
        return self._stored(self.index, filters=self.filter(condition), **{**fetch, **options})

    def _fetch(self, document: str, filters: Any) -> list[Any]:
        return [node for node in self.index.vector_store.found(filters) if node.ref_doc_id == document]

    def pipeline(self, retriever: Any = None, documents: Any = None, **fields: Any) -> Pipeline:
        model = llamaindex_stores_parts.declining(**fields.pop("model", {}))
        parts = {"retriever": retriever or self.search(), "documents": documents or self.documents()}

        @cache
        def engine(streaming: bool) -> Any:
            return llamaindex_selfroute.SelfRouteQueryEngine(llm=model, streaming=streaming, **parts, **fields)

        engine(False)  # what is wrong is said at once
        return Pipeline(self.host, engine, model)

    def built(self, condition: Condition | None = None, k: int = 4, **fields: Any) -> Pipeline:
        model = llamaindex_stores_parts.declining(**fields.pop("model", {}))
        own = {} if condition is None else {"filters": self.filter(condition)}
        own |= {"documents": self.documents()} if self.kind == "fetch" and fields.pop("fetched", True) else {}

        @cache
        def engine(streaming: bool) -> Any:
            of_index = llamaindex_selfroute.SelfRouteQueryEngine.from_index
            return of_index(self.index, llm=model, streaming=streaming, similarity_top_k=k, **own, **fields)

        engine(False)
        return Pipeline(self.host, engine, model)

    def fetching(self, listing: Callable[..., Any], model: Any = None) -> Pipeline:
        return self.pipeline(self.search(k=1), self._stored(self.index, fetch=listing))


def _is_some(condition: Condition) -> bool:
    return condition != NOTHING_HIDDEN


def house(kind: str, pieces: Iterable[Piece] = (), **options: Any) -> Any:
    """A house of this kind, `host kind`, with these pieces in it."""
    host, kind = kind.split()
    return (InLangChain if host == "langchain" else InLlamaIndex)(kind, pieces, **options)


@cache
def shared(kind: str) -> Any:
    """A house with two tenants, which nobody changes."""
    return house(kind, two_tenants())


@cache
def apart(kind: str) -> Any:
    """The same tenants, whose documents have names of their own."""
    return house(kind, of(MINE, "ash.md") + of(OTHER, "birch.md"))


def watched(
    collection: Any, *, before: Callable[[], Any] = lambda: None, after: Callable[[], Any] = lambda: None
) -> list[bool]:
    """Note each reading of a collection in Chroma: whether it asks for the texts; do something before and after it."""
    seen: list[bool] = []

    class Watched(type(collection)):  # type: ignore[misc]
        def get(self, *args: Any, **options: Any) -> Any:
            before()
            seen.append("documents" in options["include"])
            found = super().get(*args, **options)
            after()
            return found

    collection.__class__ = Watched
    return seen


def originals_of(folder: Path) -> Any:
    """A document store of LangChain in files."""
    from langchain_classic.storage import LocalFileStore, create_kv_docstore

    return create_kv_docstore(LocalFileStore(folder))
