"""Small documents in real stores of either framework, and what a question reads of them, in the words of neither.

A house is a store where tenants live: `house(kind, pieces)`. It makes retrievers, `StoredDocuments` and pipelines of
its framework; `holds` and `Together` are filters, which it translates.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import pytest
from langchain_core.documents import Document as LangChainDocument
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever as LangChainRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.stores import InMemoryStore
from llama_index.core.retrievers import BaseRetriever as LlamaIndexRetriever
from llama_index.core.schema import Document as LlamaIndexDocument
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

import both_parts
import langchain_parts
import langchain_selfroute
import langchain_stores
import llamaindex_parts
import llamaindex_selfroute
import llamaindex_stores_parts
from both_parts import Outcome, Read
from langchain_stores import chunks_of, text_of
from scenarios import DRAFTED
from selfroute.errors import ConfigurationError

MINE, OTHER = "Ash", "Birch"
HOSTS = ("langchain", "llamaindex")
CHROMA = ("langchain chroma", "llamaindex chroma")
FETCHED = ("langchain fetch", "llamaindex fetch")
KINDS = ("langchain memory", "llamaindex memory", *CHROMA, "llamaindex again", "llamaindex listing")
MODES = ("sync", "async", "stream", "astream")
FAR_APART = ("sync", "astream")  # for what happens before a mode matters
QUESTION = "What does the crane lift?"


def in_both(name: str, values: Iterable[Any]) -> Any:
    """Run a test with each of these values in both frameworks, also in the fast lane."""
    pairs = [(host, value) for host in HOSTS for value in values]
    named = [f"{host}-{value if isinstance(value, str) else type(value).__name__}" for host, value in pairs]
    return pytest.mark.parametrize(("host", name), pairs, ids=named)


def in_turn(kinds: Sequence[str], modes: Sequence[str] = FAR_APART) -> Any:
    """Run a test with each of these kinds, each in one of the modes."""
    pairs = [(kind, modes[(at + at // len(modes)) % len(modes)]) for at, kind in enumerate(kinds)]
    return pytest.mark.parametrize(("kind", "mode"), pairs)


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


def whole(chunks: int, method: str = "offsets", gaps: Sequence[Sequence[int]] = (), **more: Any) -> dict[str, Any]:
    """The label of a document."""
    return {"method": method, "chunks": chunks, "gaps": list(gaps), "trimmed": False, **more}


ORIGINAL = whole(0, "original")


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

    def _in(self, mode: str, config: Any = None) -> both_parts.Pipeline:
        words = _LANGCHAIN if self.host == "langchain" else _LLAMAINDEX
        return both_parts.Pipeline(f"{self.host} {words[mode]}", self.of("stream" in mode), self.model, config or {})

    async def ask(self, mode: str = "sync", question: Any = QUESTION, config: Any = None) -> Outcome:
        """Ask a question; the streams are read to the end."""
        return await self._in(mode, config).ask(question)

    async def check(self, mode: str) -> Any:
        """What `check` finds of the wall."""
        run = self.of(False)
        findings = await run.acheck(QUESTION) if mode.startswith("a") else run.check(QUESTION)
        (wall,) = (finding for finding in findings if finding.subject == "wall")
        return wall


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
) -> Read:
    """The pipeline reads the one document of its tenant, whole; the second time out of the cache."""
    for _ in range(times):
        with no_leak(pipeline, OTHER if owner == MINE else MINE):
            answered = await pipeline.ask(mode, config=config)
        assert answered.read == [text_of(owner)]
        assert answered.documents[0].label["gaps"] == []
    return answered.documents[0]


async def refuses(
    pipeline: Pipeline, mode: str = "sync", match: str | None = "filters?=", error: Any = ConfigurationError
) -> None:
    """The pipeline says that it cannot know, and reads nothing."""
    with no_leak(pipeline), pytest.raises(error, match=match):
        await pipeline.ask(mode)
    assert pipeline.model.steps == ["rag"]


# Houses


class House:
    """A store where tenants live, and what its framework makes of it.

    Beside what is here, a house can `add(pieces)` and `delete(ids)`, make a `passage(piece)`, a `search(condition, k)`,
    a retriever of somebody's own (`hidden(retriever)`, `returning(passages)`) and `documents(condition, originals=)`,
    and tell what a retriever has `found`. In Chroma it has a `collection`, and is opened `again(client)`.
    """

    host: str
    made: Any  # makes a chain or an engine
    filters_as: Any  # translates a condition
    embedding: Any  # `before` is called before a question is searched
    unnamed: str  # what the error says where no passage names its document
    advice: str  # what the error says where fetch= is needed
    nonsense: Sequence[Any]  # what is no filter of this store

    def __init__(self, kind: str, pieces: Iterable[Piece] = (), *, over: Any = None, client: Any = None) -> None:
        """Put pieces into a new store of this kind, or one `over` a store or class of somebody's own."""
        self.kind, self.client, self._filters = kind, client, dict[str, Any]()
        self.open(over)
        if pieces := list(pieces):
            self.ids = self.add(pieces)

    @classmethod
    def on(cls, kind: str, made: Any) -> Any:
        """A house around a store or an index that is there already."""
        home = cls(kind)
        setattr(home, "store" if cls.host == "langchain" else "index", made)
        return home

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def filter(self, condition: Condition | None) -> Any:
        """A filter in the store's own words, the same one for the same condition."""
        if condition is None:
            return None
        return self._filters.setdefault(repr(condition), self.filters_as(condition))

    def rewrite(self, id_: str, text: str) -> None:
        """Change the text of a chunk in Chroma and keep its id."""
        self.collection.update(ids=[id_], documents=[text], embeddings=[_Words().embed_query(text)])

    def pipeline(self, retriever: Any = None, documents: Any = None, **fields: Any) -> Pipeline:
        """A chain or an engine; without a retriever with the store's own."""
        parts = {"retriever": retriever or self.search(), "documents": documents or self.documents()}
        return self._pipeline(self.made, fields.pop("model", {}), {**parts, **fields})  # type: ignore[no-any-return]

    def alone(self, retriever: Any, **fields: Any) -> Pipeline:
        """The same, with the documents that are behind the retriever."""
        return self._pipeline(self.made, {}, {"retriever": retriever, **fields})  # type: ignore[no-any-return]

    def built(self, condition: Condition | None = None, k: int = 4, **fields: Any) -> Pipeline:
        """The same as the README builds it: over the store alone."""
        make, parts = self._over_store(condition, k, fetched=fields.pop("fetched", True))
        return self._pipeline(make, fields.pop("model", {}), {**parts, **fields})  # type: ignore[no-any-return]

    def fetching(self, listing: Callable[..., Any]) -> Pipeline:
        """The same with `fetch=`; `listing(source, condition)` returns the framework's chunks."""
        return self.pipeline(self.search(k=1), self.documents(fetch=self.fetch_of(listing)))

    def chunks(self, pieces: Iterable[Piece]) -> list[Any]:
        """Pieces as a store lists them."""
        return [getattr(one, "node", one) for one in map(self.passage, pieces)]


class _Words(Embeddings):
    """Texts that share words are near to each other; `before` is called before a question is searched."""

    before: Any = None

    def embed_query(self, text: str) -> list[float]:
        if self.before:
            self.before()
        return llamaindex_stores_parts.Words().get_text_embedding(text)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


class _NodeWords(llamaindex_stores_parts.Words):
    """The same for LlamaIndex."""

    before: Any = None

    def _get_query_embedding(self, query: str) -> list[float]:
        if self.before:
            self.before()
        return super()._get_query_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


class Hidden(LangChainRetriever):
    """A retriever of somebody's own around another one."""

    inside: Any

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[LangChainDocument]:
        return self.inside.invoke(query)  # type: ignore[no-any-return]


class Narrowing(LlamaIndexRetriever):
    """The same in LlamaIndex."""

    def __init__(self, retriever: Any) -> None:
        super().__init__()
        self._inside = retriever

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._inside.retrieve(query_bundle)  # type: ignore[no-any-return]


class InLangChain(House):
    """A vector store of LangChain."""

    host = "langchain"
    unnamed = r"metadata\['source'\].*\['file'.*source_key="
    advice = r"a Shelf has no known way .* pass fetch=, a callable"

    def open(self, over: Any) -> None:
        self.embedding = _Words()
        if self.kind == "fetch":
            self.store: Any = langchain_stores.Shelf()
        else:
            self.store = langchain_stores.store_with(self.kind, of=over, client=self.client, embedding=self.embedding)
        self.nonsense = (3, (lambda _: True) if self.kind == "chroma" else {"tenant": MINE})

    def filters_as(self, condition: Condition) -> Any:
        if condition == NOTHING_HIDDEN:
            return {}
        if self.kind == "chroma":
            return _where(condition)
        return lambda one: meets(getattr(one, "metadata", one), condition)

    def add(self, pieces: Iterable[Piece]) -> list[str]:
        if self.kind == "fetch":
            self.store.chunks += self.chunks(pieces)
            return []
        return self.store.add_documents(self.chunks(pieces))  # type: ignore[no-any-return]

    def delete(self, ids: Sequence[str]) -> None:
        self.store.delete(list(ids))

    @property
    def collection(self) -> Any:
        return self.store._collection

    def again(self, client: Any = None) -> Any:
        client = client or self.store._client
        return self.on("chroma", type(self.store)(self.collection.name, self.embedding, client=client))

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
        made = langchain_selfroute.StoredDocuments
        return made(self.store, filter=self.filter(condition), **{**fetch, **options})

    def fetch_of(self, listing: Callable[..., Any]) -> Any:
        return lambda _, source, condition: listing(source, condition)

    def _pipeline(self, make: Any, model: Any, fields: dict[str, Any]) -> Pipeline:
        llm = langchain_stores.a_model(**model)
        chain = make(llm=llm, **{**DRAFTED, **fields})
        return Pipeline(self.host, lambda _: chain, llm)

    def _over_store(self, condition: Condition | None, k: int, *, fetched: bool) -> tuple[Any, dict[str, Any]]:
        fetch = {"fetch": self.store.fetch} if self.kind == "fetch" and fetched else {}
        own = {} if condition is None else {"filter": self.filter(condition)}
        return langchain_selfroute.SelfRouteChain.from_vectorstore, {
            "vectorstore": self.store,
            "k": k,
            **own,
            **fetch,
        }

    made = langchain_selfroute.SelfRouteChain


class InLlamaIndex(House):
    """An index of LlamaIndex."""

    host = "llamaindex"
    unnamed = r"ref_doc_id.*documents="
    advice = r"(?s)Shelf.*fetch=.*documents="
    nonsense = ({"tenant": MINE}, [MetadataFilters(filters=[])])

    def open(self, over: Any) -> None:
        made = {"listing": llamaindex_stores_parts.ListingShelf, "fetch": llamaindex_stores_parts.Shelf}
        store = over or (made[self.kind]() if self.kind in made else None)
        if store is None and self.kind != "memory":
            store = llamaindex_stores_parts.a_chroma(self.client)
        self.embedding: Any = _NodeWords()
        self.index: Any = llamaindex_stores_parts.over(store, [], embed_model=self.embedding)

    def filters_as(self, condition: Condition) -> Any:
        made = _filters(condition)
        return made if isinstance(made, MetadataFilters) else MetadataFilters(filters=[made])

    def add(self, pieces: Iterable[Piece]) -> list[str]:
        nodes = self.nodes = self.chunks(pieces)
        self.index.insert_nodes(nodes)
        if self.kind == "again":  # what another process has put there: no document store, no list of nodes
            self.index = llamaindex_stores_parts.from_store(self.index.vector_store)
        return [node.node_id for node in nodes]

    def delete(self, ids: Sequence[str]) -> None:
        self.index.delete_nodes(list(ids), delete_from_docstore=True)

    @property
    def collection(self) -> Any:
        return self.index.vector_store.client

    def again(self, client: Any = None) -> Any:
        collection = client.get_collection(self.collection.name) if client else self.collection
        return self.on(self.kind, llamaindex_stores_parts.from_store(type(self.index.vector_store)(collection)))

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
            originals = [
                LlamaIndexDocument(text=one.text, id_=one.source, metadata=dict(one.about))
                for one in options.pop("originals")
            ]
            options["docstore"] = SimpleDocumentStore()
            options["docstore"].add_documents(originals)
        fetch = {"fetch": self._fetch} if self.kind == "fetch" else {}
        made = llamaindex_selfroute.StoredDocuments
        return made(self.index, filters=self.filter(condition), **{**fetch, **options})

    def _fetch(self, document: str, filters: Any) -> list[Any]:
        return [node for node in self.index.vector_store.found(filters) if node.ref_doc_id == document]

    def fetch_of(self, listing: Callable[..., Any]) -> Any:
        return listing

    def _pipeline(self, make: Any, model: Any, fields: dict[str, Any]) -> Pipeline:
        llm = llamaindex_stores_parts.declining(**model)
        engine = cache(lambda streaming: make(llm=llm, streaming=streaming, **{**DRAFTED, **fields}))
        engine(False)  # what is wrong is said at once
        return Pipeline(self.host, engine, llm)

    def _over_store(self, condition: Condition | None, k: int, *, fetched: bool) -> tuple[Any, dict[str, Any]]:
        own = {} if condition is None else {"filters": self.filter(condition)}
        own |= {"documents": self.documents()} if self.kind == "fetch" and fetched else {}
        return llamaindex_selfroute.SelfRouteQueryEngine.from_index, {
            "index": self.index,
            "similarity_top_k": k,
            **own,
        }

    made = llamaindex_selfroute.SelfRouteQueryEngine


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
