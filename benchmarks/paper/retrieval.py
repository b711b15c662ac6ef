"""Retrievers over the chunks of one document: those of the papers, and any model of sentence-transformers."""

from __future__ import annotations

import hashlib
import re
import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from selfroute.documents.cache import Recent
from selfroute.errors import ConfigurationError
from selfroute_workbench.demo.weights import weights
from selfroute_workbench.evaluation.replies import Replies

from .found import Found, Retriever
from .hub import is_online

_MISSPELT = ("contriever", "dragon", "bm25")
SUMMARIZED = ("tree", "raptor")
INDEXED = ("window", *SUMMARIZED)
RETRIEVERS = ("contriever", "dragon", "all-MiniLM-L6-v2", "bm25", *INDEXED)
WITHOUT_DOWNLOAD = "without a download: --retriever all-MiniLM-L6-v2, bm25 or a folder with the weights"
_SHORT = 100  # characters of a line that is no paragraph
_PROVIDER = re.compile(r"[a-z_]{2,}:[^\\/]")
_MINILM = ("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2")
_CONTRIEVER = "facebook/contriever"
_DRAGON = ("facebook/dragon-plus-query-encoder", "facebook/dragon-plus-context-encoder")
_DOCUMENTS, _QUESTIONS = 32, 1_000  # whose vectors stay in memory

_Floats = NDArray[np.float32]


class _Scored(Retriever):
    """Scores each chunk."""

    def __init__(self) -> None:
        self._documents: Recent[Any] = Recent(_DOCUMENTS)
        self._lock = threading.Lock()  # a tokenizer serves one thread at a time

    @override
    def search(self, chunks: Sequence[str], question: str, *, k: int, document_id: str) -> list[Found]:
        if not chunks:
            return []
        lengths = hashlib.sha256(repr([len(chunk) for chunk in chunks]).encode()).hexdigest()[:16]
        scores = self._scores(chunks, question, document=f"{document_id}-{lengths}")
        best = np.argsort(-scores, kind="stable")[:k]
        return [Found(int(index), chunks[index], float(scores[index])) for index in best]

    @abstractmethod
    def _scores(self, chunks: Sequence[str], question: str, *, document: str) -> _Floats:
        """Score each chunk; `document` stands for the text and how it was split."""


class _Dense(_Scored):
    """Compares vectors by their cosine.

    A model sees no more of a chunk than it takes: Contriever and Dragon 512 word pieces, all-MiniLM-L6-v2 256.
    """

    def __init__(self, questions: Any, passages: Any) -> None:
        super().__init__()
        self._of_questions, self._of_passages = questions, passages
        self._questions: Recent[_Floats] = Recent(_QUESTIONS)

    @override
    def _scores(self, chunks: Sequence[str], question: str, *, document: str) -> _Floats:
        vector, vectors = self._questions.get(question), self._documents.get(document)
        if vector is None or vectors is None:
            with self._lock:
                vector = self._question(question)
                vectors = self._document(chunks, document)
        scores: _Floats = vectors @ vector
        return scores

    def _question(self, question: str) -> _Floats:
        vector = self._questions.get(question)
        if vector is None:
            vector = _embed(self._of_questions.encode_query, question)
            self._questions.put(question, vector)
        return vector

    def _document(self, chunks: Sequence[str], document: str) -> _Floats:
        vectors: _Floats | None = self._documents.get(document)
        if vectors is None:
            vectors = _embed(self._of_passages.encode_document, list(chunks))
            self._documents.put(document, vectors)
        return vectors


class _BM25(_Scored):
    """BM25 as bm25s does it by default: Lucene's variant, English stop words, words of two letters and more."""

    @override
    def _scores(self, chunks: Sequence[str], question: str, *, document: str) -> _Floats:
        with self._lock:
            index = self._documents.get(document) or _index(chunks)
            self._documents.put(document, index)
        words = [word for word in _tokens([question])[0] if word in index.vocab_dict]
        if not words:
            return np.zeros(len(chunks), dtype=np.float32)
        scores: _Floats = index.get_scores(words)
        return scores


def load_retriever(
    name: str,
    *,
    embeddings: str = _MINILM[0],
    replies: Replies | None = None,
    summarize: Callable[[str], str] | None = None,
) -> Retriever:
    """Load a retriever.

    Args:
        name: `contriever` and `dragon` (Li et al., 2024, section 3.2), `all-MiniLM-L6-v2`, `bm25`; `window`, `tree` and
            `raptor` (Li et al., 2025, section 3.2); embeddings of a provider as `provider:name`, such as
            openai:text-embedding-3-small; or anything that sentence-transformers loads: a name on the Hugging Face Hub
            or a folder with weights.
        embeddings: What `window`, `tree` and `raptor` compare by: any other name but bm25.
        replies: Keeps the vectors of a provider, and counts what they cost.
        summarize: Answers the prompts by which `tree` and `raptor` have texts summarized.

    Raises:
        ConfigurationError: It cannot be loaded; the message names others.
    """
    _check_name(name)
    if name == "bm25":
        _need("bm25s", name)
        return _BM25()
    if name not in INDEXED:
        return _Dense(*_encoders(name, replies=replies))
    from . import indexed, raptor  # noqa: PLC0415 - with LlamaIndex

    if embeddings in (*INDEXED, "bm25"):
        msg = f"the retriever {name} compares vectors: --embeddings takes a name of embeddings, not {embeddings}"
        raise ConfigurationError(msg)
    encoders = _encoders(embeddings, replies=replies)
    if name == "window":
        return indexed.WindowRetriever(*encoders)
    made = indexed.TreeRetriever if name == "tree" else raptor.RaptorRetriever
    if summarize is None:
        msg = f"the retriever {name} needs a model that summarizes"
        raise ConfigurationError(msg)
    return made(*encoders, summarize)


def first_sentences(prompt: str) -> str:
    """Return the first sentence of each paragraph of a prompt: what stands for a summary where there is no model."""
    return " ".join(line.partition(". ")[0].strip() for line in prompt.splitlines() if len(line) > _SHORT)


def _check_name(name: str) -> None:
    meant = get_close_matches(name, _MISSPELT, n=1) if name not in RETRIEVERS and not Path(name).exists() else None
    if meant:
        msg = f"there is no retriever {name!r}: is it {meant[0]}?"
        raise ConfigurationError(msg)


def is_of_provider(name: str) -> bool:
    """Return whether a name stands for embeddings of a provider."""
    return bool(_PROVIDER.match(name)) and not Path(name).exists()


def _encoders(name: str, *, replies: Replies | None) -> tuple[Any, Any]:
    """Return what embeds questions and what embeds passages."""
    if is_of_provider(name):
        from .embedding import ProviderEncoder  # noqa: PLC0415 - with LangChain

        encoder = ProviderEncoder(name, replies or Replies())
        return encoder, encoder
    _need("sentence_transformers", name)
    if name == "dragon":
        questions, passages = (_load(path, first_token=True) for path in _DRAGON)
        return questions, passages
    loaded = _load(None if name in _MINILM else _CONTRIEVER if name == "contriever" else name)
    return loaded, loaded


def _need(package: str, name: str) -> None:
    if not find_spec(package):
        msg = f"the retriever {name} needs {package}, which is not installed: pip install --group paper"
        raise ConfigurationError(msg)


def _load(name: str | None, *, first_token: bool = False) -> Any:
    """Load an encoder: pooled as its own files say, or by the mean; with `first_token`, by its first token."""
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - heavy

    try:
        with weights(name) as path:
            is_here = Path(path).exists() or not is_online(path, "model")
            model: Any = SentenceTransformer(path, local_files_only=is_here)
    except ConfigurationError as error:
        msg = f"{str(error).rstrip('.')}; {WITHOUT_DOWNLOAD}"
        raise ConfigurationError(msg) from error
    if first_token:
        model[1] = type(model[1])(model[0].auto_model.config.hidden_size, "cls")  # sentence-transformers' Pooling
    return model


def _embed(encode: Any, texts: str | list[str]) -> _Floats:
    vectors = encode(texts, normalize_embeddings=True, show_progress_bar=False)
    return np.asarray(vectors, dtype=np.float32)


def _index(chunks: Sequence[str]) -> Any:
    import bm25s  # type: ignore[import-untyped]  # noqa: PLC0415 - heavy

    words = _tokens(list(chunks))
    index = bm25s.BM25()
    index.index(words if any(words) else [[""]], show_progress=False)  # an index of nothing cannot be made
    return index


def _tokens(texts: list[str]) -> list[list[str]]:
    import bm25s  # noqa: PLC0415 - heavy

    tokens: list[list[str]] = bm25s.tokenize(texts, return_ids=False, show_progress=False)
    return tokens
