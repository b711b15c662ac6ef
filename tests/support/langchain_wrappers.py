"""LangChain's own retrievers around a search of a vector store, each as its users build it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain_classic.chains.query_constructor.base import (
    StructuredQueryOutputParser,
    fix_filter_directive,
    get_query_constructor_prompt,
)
from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
    EnsembleRetriever,
    MergerRetriever,
    MultiQueryRetriever,
    MultiVectorRetriever,
    ParentDocumentRetriever,
    RePhraseQueryRetriever,
    SelfQueryRetriever,
    TimeWeightedVectorStoreRetriever,
)
from langchain_classic.retrievers.document_compressors import (
    CrossEncoderReranker,
    DocumentCompressorPipeline,
    LLMChainExtractor,
)
from langchain_classic.retrievers.document_compressors.cross_encoder import BaseCrossEncoder
from langchain_classic.storage import InMemoryByteStore
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import ConfigurableField, Runnable, RunnableLambda
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from langchain_stores import chunks_of, store_with, text_of
from langchain_walls import MINE


class Longest(BaseCrossEncoder):
    """Prefers long passages."""

    def score(self, text_pairs: Any) -> list[float]:
        return [float(len(text)) for _, text in text_pairs]


class InMemoryWithScores(InMemoryVectorStore):
    """Says how relevant its findings are, which `TimeWeightedVectorStoreRetriever` asks for."""

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return lambda score: (score + 1) / 2


class Words:
    """Ranks texts by the words that they share with a question, as `rank_bm25` does."""

    def get_top_n(self, words: list[str], documents: list[Document], n: int) -> list[Document]:
        return sorted(documents, key=lambda one: -len(set(words) & set(one.page_content.split())))[:n]


def splitter(size: int) -> RecursiveCharacterTextSplitter:
    """As the documentation of LangChain and ours recommend."""
    return RecursiveCharacterTextSplitter(chunk_size=size, chunk_overlap=0, add_start_index=True)


@dataclass
class Shelves:
    """What a retriever is built from: a kind of store, what is indexed in it, and the arguments of the search."""

    kind: str
    owners: tuple[str, ...] = (MINE,)
    search: dict[str, Any] = field(default_factory=dict)
    varied: bool = False
    source: str = "handbook"

    def chunks(self, owners: Iterable[str] = ()) -> list[Document]:
        """The chunks of the owners' documents in turn; `varied` ones have metadata of their own."""
        found = [self._chunks_of(owner) for owner in owners or self.owners]
        return [chunk for row in zip(*found, strict=True) for chunk in row]

    def _chunks_of(self, owner: str) -> list[Document]:
        chunks = chunks_of(text_of(owner), size=120, source=self.source, tenant=owner)
        for n, chunk in enumerate(chunks if self.varied else []):
            chunk.metadata |= {"Header 2": f"Section {n}", "element_id": f"e{n}", "row": n}
        return chunks

    def whole(self) -> list[Document]:
        """The owners' documents."""
        return [Document(text_of(owner), metadata={"source": self.source, "tenant": owner}) for owner in self.owners]

    def store(self) -> Any:
        """A store that holds the chunks."""
        return store_with(self.kind, self.chunks())

    def over(self, store: Any) -> Any:
        """A plain retriever."""
        return store.as_retriever(search_kwargs={"k": 3, **self.search})

    def words(self) -> Any:
        """A retriever by words over the documents of the first owner."""
        module = pytest.importorskip("langchain_community.retrievers")
        return module.BM25Retriever(vectorizer=Words(), docs=self.chunks([MINE]), k=2)


def _model(*replies: str) -> FakeListChatModel:
    return FakeListChatModel(responses=list(replies))


def _around(wrap: Callable[[Shelves, Any], Any]) -> Callable[[Shelves], tuple[Any, Any]]:
    """Build a retriever around a plain one."""

    def build(shelves: Shelves) -> tuple[Any, Any]:
        store = shelves.store()
        return wrap(shelves, shelves.over(store)), store

    return build


def _reranked(inner: Any) -> Any:
    return ContextualCompressionRetriever(
        base_compressor=CrossEncoderReranker(model=Longest(), top_n=2), base_retriever=inner
    )


def _extracted(inner: Any) -> Any:
    extractor = LLMChainExtractor.from_llm(_model(f"the crane of {MINE} lifts"))
    return ContextualCompressionRetriever(base_compressor=extractor, base_retriever=inner)


def _piped(inner: Any) -> Any:
    parts = [splitter(60), CrossEncoderReranker(model=Longest(), top_n=2)]
    return ContextualCompressionRetriever(
        base_compressor=DocumentCompressorPipeline(transformers=parts), base_retriever=inner
    )


def ensemble(*retrievers: Any) -> EnsembleRetriever:
    """All of them, with equal weights."""
    return EnsembleRetriever(retrievers=list(retrievers))


def queries(inner: Any) -> Any:
    """A retriever that asks twice."""
    return MultiQueryRetriever.from_llm(inner, _model("crane\ncrates"))


def _configurable(shelves: Shelves, inner: Any) -> Any:
    fields = inner.vectorstore.as_retriever().configurable_fields(search_kwargs=ConfigurableField(id="search"))
    return fields.with_config(configurable={"search": inner.search_kwargs})


def asking_itself(shelves: Shelves, store: Any, reply: str = "NO_FILTER", **fields: Any) -> SelfQueryRetriever:
    """A retriever whose model writes this filter; the parser of filters is LangChain's own."""
    chroma = pytest.importorskip("langchain_community.query_constructors.chroma")
    parser = StructuredQueryOutputParser(ast_parse=fix_filter_directive)
    prompt = get_query_constructor_prompt("A handbook", [])
    model = _model(f'```json\n{{"query": "crane", "filter": "{reply}"}}\n```')
    parts = {
        "query_constructor": (prompt | model | parser).with_config(run_name="query_constructor"),
        "structured_query_translator": chroma.ChromaTranslator(),
        "search_kwargs": {"k": 3, **shelves.search},
        **fields,
    }
    return SelfQueryRetriever(vectorstore=store, **parts)


def _self_query(shelves: Shelves) -> tuple[Any, Any]:
    store = shelves.store()
    return asking_itself(shelves, store), store


def time_weighted(shelves: Shelves, **fields: Any) -> tuple[Any, Any]:
    """A retriever that prefers what was added or found lately; it takes metadata that Chroma cannot hold."""
    store = store_with("memory", of=InMemoryWithScores)
    retriever = TimeWeightedVectorStoreRetriever(
        vectorstore=store, k=3, search_kwargs={"k": 4, **shelves.search}, **fields
    )
    retriever.add_documents(shelves.chunks())
    return retriever, store


def parents(documents: list[Document], shelves: Shelves, **fields: Any) -> tuple[Any, Any]:
    """A retriever that finds small chunks and returns larger ones."""
    store = store_with(shelves.kind)
    parts = {"docstore": InMemoryStore(), "child_splitter": splitter(60), **fields}
    retriever = ParentDocumentRetriever(vectorstore=store, search_kwargs={"k": 3, **shelves.search}, **parts)
    retriever.add_documents(documents)
    return retriever, store


def summaries(shelves: Shelves, originals: list[Document], **fields: Any) -> tuple[Any, Any]:
    """A retriever that finds summaries and returns what they are of."""
    parts = fields or {"docstore": InMemoryStore()}
    retriever = MultiVectorRetriever(
        vectorstore=store_with(shelves.kind), search_kwargs={"k": 3, **shelves.search}, **parts
    )
    about = [
        Document(f"A summary of {n}.", metadata={**original.metadata, retriever.id_key: f"id{n}"})
        for n, original in enumerate(originals)
    ]
    retriever.vectorstore.add_documents(about, ids=[f"id{n}" for n in range(len(about))])
    retriever.docstore.mset([(f"id{n}", original) for n, original in enumerate(originals)])
    return retriever, retriever.vectorstore


WRAPPERS: dict[str, Callable[[Shelves], tuple[Any, Any]]] = {
    "ensemble": _around(lambda _, inner: ensemble(inner, inner.model_copy())),
    "ensemble with words": _around(lambda shelves, inner: ensemble(inner, shelves.words())),
    "ensemble of bound": _around(
        lambda shelves, inner: ensemble(inner.vectorstore.as_retriever().bind(**inner.search_kwargs), inner)
    ),
    "ensemble of configurable": _around(lambda shelves, inner: ensemble(_configurable(shelves, inner), inner)),
    "merger": _around(lambda _, inner: MergerRetriever(retrievers=[inner, inner.model_copy()])),
    "merger with words": _around(lambda shelves, inner: MergerRetriever(retrievers=[shelves.words(), inner])),
    "multi query": _around(lambda _, inner: queries(inner)),
    "rephrased": _around(lambda _, inner: RePhraseQueryRetriever.from_llm(inner, _model("crane"))),
    "reranked": _around(lambda _, inner: _reranked(inner)),
    "reranked, bound": _around(
        lambda _, inner: _reranked(inner.vectorstore.as_retriever()).bind(**inner.search_kwargs)
    ),
    "extracted": _around(lambda _, inner: _extracted(inner)),
    "pipeline": _around(lambda _, inner: _piped(inner)),
    "self query": _self_query,
    "time weighted": time_weighted,
    "parents": lambda shelves: parents(shelves.chunks(), shelves),
    "parents, whole": lambda shelves: parents(shelves.whole(), shelves),
    "parents, split": lambda shelves: parents(shelves.whole(), shelves, parent_splitter=splitter(120)),
    "parents in bytes": lambda shelves: parents(
        shelves.whole(), shelves, docstore=None, byte_store=InMemoryByteStore()
    ),
    "summaries": lambda shelves: summaries(shelves, shelves.chunks()),
    "summaries of wholes": lambda shelves: summaries(shelves, shelves.whole()),
    "reranked ensemble of queries and words": _around(
        lambda shelves, inner: _reranked(ensemble(queries(inner), shelves.words())).with_retry().with_config(tags=["t"])
    ),
    "rewriter before a merger": _around(
        lambda shelves, inner: (
            RunnableLambda(lambda given: given["input"]) | MergerRetriever(retrievers=[inner, queries(inner)])
        )
    ),
}


def built(name: str, shelves: Shelves) -> tuple[Runnable[Any, Any], Any]:
    """The retriever of this name, and the store that it searches."""
    return WRAPPERS[name](shelves)
