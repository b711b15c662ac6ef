"""Retrievers of LlamaIndex that index a document in their own way (Li et al., 2025, section 3.2)."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llama_index.core import TreeIndex, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import CompletionResponse, CompletionResponseGen, CustomLLM, LLMMetadata
from llama_index.core.node_parser import SentenceWindowNodeParser
from llama_index.core.postprocessor import MetadataReplacementPostProcessor
from llama_index.core.schema import Document, MetadataMode, NodeWithScore, QueryBundle, TextNode
from pydantic import Field
from typing_extensions import override

from selfroute.documents.cache import Recent

from .found import Found, Retriever

_WINDOW = 8_000  # tokens of text that a summary may be made of
_SUMMARY = 500
_DOCUMENTS, _VECTORS = 32, 20_000  # that stay in memory

Summarize = Callable[[str], str]
"""Asks a model to summarize, by the prompt that LlamaIndex made."""


class _Embedding(BaseEmbedding):
    """The vectors of our encoders."""

    questions: Any = Field(exclude=True)
    passages: Any = Field(exclude=True)
    known: Any = Field(default_factory=lambda: Recent(_VECTORS), exclude=True)

    @override
    def _get_query_embedding(self, query: str) -> list[float]:
        return self._listed(self.questions.encode_query(query, normalize_embeddings=True, show_progress_bar=False))

    @override
    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)

    @override
    def _get_text_embedding(self, text: str) -> list[float]:
        vector: list[float] | None = self.known.get(text)
        if vector is None:
            (vector,) = self._get_text_embeddings([text])
            self.known.put(text, vector)
        return vector

    def learn(self, texts: Sequence[str]) -> None:
        """Embed texts together that will be asked for one by one: TreeIndex embeds its nodes for every question."""
        for text, vector in zip(texts, self._get_text_embeddings(list(texts)), strict=True):
            self.known.put(text, vector)

    @override
    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        found = self.passages.encode_document(texts, normalize_embeddings=True, show_progress_bar=False)
        return [self._listed(vector) for vector in found]

    @staticmethod
    def _listed(vector: Any) -> list[float]:
        values: list[float] = np.asarray(vector, dtype=float).tolist()
        return values


class _Summarizer(CustomLLM):
    """The model that summarizes, as LlamaIndex calls it."""

    summarize: Any = Field(exclude=True)

    @property
    @override
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=_WINDOW, num_output=_SUMMARY)

    @override
    def complete(self, prompt: str, formatted: bool = False, **options: Any) -> CompletionResponse:
        return CompletionResponse(text=self.summarize(prompt))

    @override
    def stream_complete(self, prompt: str, formatted: bool = False, **options: Any) -> CompletionResponseGen:
        raise NotImplementedError  # nothing streams here


class _Indexed(Retriever):
    """Indexes each document once."""

    def __init__(self, questions: Any, passages: Any) -> None:
        """Take what embeds questions, and what embeds passages."""
        self._documents: Recent[Any] = Recent(_DOCUMENTS)
        self._embedding, self._building = _Embedding(questions=questions, passages=passages), threading.Lock()

    @override
    def search(self, chunks: Sequence[str], question: str, *, k: int, document_id: str) -> list[Found]:
        if not chunks:
            return []
        with self._building:  # one at a time, so that nothing is paid twice
            index = self._documents.get(document_id)
            if index is None:
                index = self._index(chunks)
                self._documents.put(document_id, index)
            found = self._search(index, question, k)
        return [
            Found(item.node.metadata.get("place", len(chunks)), item.node.get_content(), item.score or 0.0)
            for item in found[:k]
        ]

    @abstractmethod
    def _index(self, chunks: Sequence[str]) -> Any:
        """Index a document."""

    @abstractmethod
    def _search(self, index: Any, question: str, k: int) -> list[NodeWithScore]:
        """Return the best nodes, best first."""


class WindowRetriever(_Indexed):
    """Finds single sentences, and gives each with the three before and after it: SentenceWindowNodeParser."""

    @override
    def _index(self, chunks: Sequence[str]) -> Any:
        parser = SentenceWindowNodeParser.from_defaults()
        nodes = parser.get_nodes_from_documents([Document(text=" ".join(chunks))])
        for place, node in enumerate(nodes):
            node.metadata["place"] = place
            for hidden in (node.excluded_embed_metadata_keys, node.excluded_llm_metadata_keys):
                hidden.append("place")
        return VectorStoreIndex(nodes, embed_model=self._embedding)

    @override
    def _search(self, index: Any, question: str, k: int) -> list[NodeWithScore]:
        found = index.as_retriever(similarity_top_k=k).retrieve(question)
        return MetadataReplacementPostProcessor("window").postprocess_nodes(found)


class _Summarized(_Indexed):
    """An index that has summaries in it, which a model writes."""

    def __init__(self, questions: Any, passages: Any, summarize: Summarize) -> None:
        """Take what embeds questions, what embeds passages, and what summarizes."""
        super().__init__(questions, passages)
        self._summarizer = _Summarizer(summarize=summarize)

    def _nodes(self, chunks: Sequence[str]) -> list[TextNode]:
        nodes = [TextNode(id_=str(place), text=chunk, metadata={"place": place}) for place, chunk in enumerate(chunks)]
        for node in nodes:
            node.excluded_embed_metadata_keys, node.excluded_llm_metadata_keys = ["place"], ["place"]
        return nodes


class TreeRetriever(_Summarized):
    """Goes from summaries down to the chunks that they are of, by vectors: TreeIndex with select_leaf_embedding."""

    @override
    def _index(self, chunks: Sequence[str]) -> Any:
        index = TreeIndex(self._nodes(chunks), llm=self._summarizer)
        nodes = index.docstore.docs.values()
        self._embedding.learn([node.get_content(metadata_mode=MetadataMode.EMBED) for node in nodes])
        return index

    @override
    def _search(self, index: Any, question: str, k: int) -> list[NodeWithScore]:
        bundle = QueryBundle(question)
        retriever = index.as_retriever(
            retriever_mode="select_leaf_embedding", child_branch_factor=k, embed_model=self._embedding
        )
        found: list[NodeWithScore] = retriever.retrieve(bundle)
        for item in found:
            vector = self._embedding.get_text_embedding(item.node.get_content(metadata_mode=MetadataMode.EMBED))
            item.score = float(np.dot(bundle.embedding or self._embedding.get_query_embedding(question), vector))
        return sorted(found, key=lambda item: -(item.score or 0.0))
