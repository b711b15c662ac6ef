"""LangChain's own retrievers around a search of a vector store, and parts that may hide more than its filter says."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_classic.chains import create_history_aware_retriever
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
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import PromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField, RunnableBranch, RunnableLambda
from langchain_core.stores import InMemoryStore
from langchain_core.structured_query import StructuredQuery
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from hosts_documents import ITS_OWN, MINE, OTHER, QUESTION, Condition, Hidden, Holds, InLangChain, house
from langchain_stores import chunks_of, store_with, text_of


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
    """What a retriever is built from: a kind of store, what is indexed in it, and the filter of the search."""

    kind: str
    owners: tuple[str, ...] = (MINE,)
    condition: Condition | None = None
    varied: bool = False

    @property
    def search(self) -> dict[str, Any]:
        """The arguments of the search."""
        return {} if self.condition is None else {"filter": house(f"langchain {self.kind}").filter(self.condition)}

    def chunks(self, owners: Iterable[str] = ()) -> list[Document]:
        """The chunks of the owners' documents in turn; `varied` ones have metadata of their own."""
        found = [self._chunks_of(owner) for owner in owners or self.owners]
        return [chunk for row in zip(*found, strict=True) for chunk in row]

    def _chunks_of(self, owner: str) -> list[Document]:
        chunks = chunks_of(text_of(owner), size=120, source="handbook", tenant=owner)
        for n, chunk in enumerate(chunks if self.varied else []):
            chunk.metadata |= {"topic": f"Section {n}", "element_id": f"e{n}", "row": n}
        return chunks

    def whole(self) -> list[Document]:
        """The owners' documents."""
        return [Document(text_of(owner), metadata={"source": "handbook", "tenant": owner}) for owner in self.owners]

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


def _history_aware(inner: Any) -> Any:
    return create_history_aware_retriever(_model("crane"), inner, PromptTemplate.from_template("{input}"))


def _branch(one: Any, other: Any) -> Any:
    """The first of them for each question."""
    return RunnableLambda(lambda given: given["input"]) | RunnableBranch((lambda _: True, one), other)


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
    "history aware": _around(lambda _, inner: _history_aware(inner)),
    "history aware, reranked": _around(lambda _, inner: _history_aware(_reranked(inner))),
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


def built(name: str, kind: str, **shelves: Any) -> tuple[Any, Any]:
    """A house, and the retriever of this name over its store."""
    kind = "memory" if name == "time weighted" else kind
    retriever, store = WRAPPERS[name](Shelves(kind, **shelves))
    return InLangChain.on(kind, store), retriever


# What may hide more than the filters of its searches say


class OwnEnsemble(EnsembleRetriever):
    """May hide something."""


class _Namesake(BaseRetriever):
    """Is called like a wrapper of LangChain's."""

    inside: Any

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self.inside.invoke(query)  # type: ignore[no-any-return]


_Namesake.__name__ = "EnsembleRetriever"


class OwnCompressor(BaseDocumentCompressor):
    """Drops what is not of the first tenant, or what has these words."""

    without: str = ""

    def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> list[Document]:
        if self.without:
            return [document for document in documents if self.without not in document.page_content]
        return [document for document in documents if document.metadata["tenant"] == MINE]


class OwnReranker(CrossEncoderReranker):
    """Hides the other tenant."""

    def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> list[Document]:
        return OwnCompressor().compress_documents(documents, query)


def compressed(inner: Any, compressor: Any) -> Any:
    """A retriever whose findings go through a compressor."""
    return ContextualCompressionRetriever(base_compressor=compressor, base_retriever=inner)


def _configured(home: Any) -> Any:
    return _configurable(Shelves(home.kind), home.search(ITS_OWN))


UNSEEN: dict[str, Callable[[Any], Any]] = {
    "unequal filters": lambda home: ensemble(home.search(ITS_OWN), home.search(Holds("source", "x"), k=1)),
    "unequal filters, bound": lambda home: MergerRetriever(
        retrievers=[
            home.search(ITS_OWN, k=2),
            ensemble(home.search().bind(filter=home.filter(Holds("tenant", "Cedar")))),
        ]
    ),
    "another store beside it": lambda home: ensemble(
        home.search(ITS_OWN, k=3), house(f"langchain {home.kind}").search(k=1)
    ),
    "own retriever inside": lambda home: ensemble(home.search(ITS_OWN), Hidden(inside=home.search(ITS_OWN))),
    "own retriever in a branch": lambda home: _branch(Hidden(inside=home.search(ITS_OWN)), home.search(ITS_OWN)),
    "branches with unequal filters": lambda home: _branch(
        home.search(ITS_OWN), home.search().bind(filter=home.filter(Holds("tenant", "Cedar")))
    ),
    "own ensemble": lambda home: OwnEnsemble(retrievers=[home.search(ITS_OWN)]),
    "own ensemble of the same name": lambda home: _Namesake(inside=home.search(ITS_OWN)),
    "own compressor": lambda home: compressed(home.search(k=18), OwnCompressor()),
    "own reranker": lambda home: compressed(home.search(k=18), OwnReranker(model=Longest(), top_n=9)),
    "own compressor in a pipeline": lambda home: compressed(
        home.search(k=18), DocumentCompressorPipeline(transformers=[splitter(900), OwnCompressor()])
    ),
    "bound to a wrapper that ignores it": lambda home: queries(home.search(ITS_OWN)).bind(
        filter=home.filter(Holds("tenant", OTHER))
    ),
    "bound to an ensemble": lambda home: ensemble(home.search(ITS_OWN)).bind(
        filter=home.filter(Holds("tenant", OTHER))
    ),
    "configured where the config does not get": lambda home: _reranked(_configured(home)),
    "only words": lambda home: Shelves(home.kind).words(),
    "only words, reranked": lambda home: _reranked(Shelves(home.kind).words()),
    "own translator": lambda home: asking_itself(
        Shelves(home.kind), home.store, structured_query_translator=translator(filter=home.filter(ITS_OWN))
    ),
}


def translator(**added: Any) -> Any:
    """A translator of the user's own, which adds something to each search."""
    base = pytest.importorskip("langchain_community.query_constructors.chroma").ChromaTranslator

    class Own(base):  # type: ignore[misc]
        def visit_structured_query(self, structured_query: StructuredQuery) -> Any:
            return structured_query.query, added

    return Own()


def no_filter(given: Any) -> StructuredQuery:
    """A chain of the user's own that writes a query."""
    return StructuredQuery(query=given["query"], filter=None, limit=None)


# A search that is changed while a question is asked


def _in_place(home: Any, search: Any) -> None:
    search.search_kwargs["filter"] = home.filter(Holds("tenant", OTHER))


CHANGES: dict[str, Callable[[Any, Any], None]] = {
    "replaced": lambda home, search: setattr(
        search, "search_kwargs", {"filter": home.filter(Holds("tenant", OTHER)), "k": 3}
    ),
    "changed in place": _in_place,
    "dropped": lambda _, search: search.search_kwargs.clear(),
    "its filter is changed": lambda home, search: search.search_kwargs["filter"].update(tenant=OTHER),
}
AROUND: dict[str, Callable[[Any, Any], Any]] = {
    "itself": lambda home, search: search,
    "with retries": lambda home, search: search.with_retry().with_config(tags=["mine"]),
    "an alternative": lambda home, search: (
        home.search(Holds("tenant", OTHER))
        .configurable_alternatives(ConfigurableField(id="who"), default_key="no", prefix_keys=True, yes=search)
        .with_config(configurable={"who": "yes"})
    ),
    "an ensemble": lambda home, search: ensemble(search, search),
    "a history": lambda home, search: _history_aware(search),
    "a rewriter": lambda home, search: RunnableLambda(lambda given: given["input"]) | queries(search),
}


# Parts that are known by what they are


def _in_package(name: str, without: str) -> Any:
    return type("Clearance", (OwnCompressor,), {"__module__": name})(without=without)


def _dropping(part: Callable[[str], Any]) -> Callable[[Any, str], tuple[Any, dict[str, Any]]]:
    return lambda home, without: (compressed(home.search(k=18), part(without)), {})


DROPPING: dict[str, Callable[[Any, str], tuple[Any, dict[str, Any]]]] = {
    "in a package of the user's own": _dropping(lambda without: _in_package("acme.access", without)),
    "in a package that is called like a partner's": _dropping(lambda no: _in_package("langchain_acme.access", no)),
    "in the host's own package": _dropping(
        lambda without: _in_package("langchain_classic.retrievers.document_compressors.base", without)
    ),
    "in a pipeline": _dropping(
        lambda without: DocumentCompressorPipeline(
            transformers=[splitter(900), _in_package("langchain_acme.access", without)]
        )
    ),
    "a function after the retriever": lambda home, without: (
        home.search(k=18)
        | RunnableLambda(lambda found: OwnCompressor(without=without).compress_documents(found, QUESTION)),
        {},
    ),
}
HARMLESS: dict[str, Callable[[Any], tuple[Any, dict[str, Any]]]] = {
    "an empty pipeline": lambda home: (compressed(home.search(), DocumentCompressorPipeline(transformers=[])), {}),
}
