"""Retrievers over the chunks of one document: those of the papers, and any model of sentence-transformers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from typing_extensions import override

from selfroute.errors import ConfigurationError
from selfroute_workbench.demo.weights import weights
from selfroute_workbench.evaluation.replies import Replies

from .found import Dense, Floats, Found, Retriever, best_of

INDEXED = ("window", "tree", "raptor")
WITHOUT_DOWNLOAD = "without a download: --retriever all-MiniLM-L6-v2, bm25 or a folder with the weights"
_PROVIDER = re.compile(r"[a-z_]{2,}:[^\\/]")
_MINILM = ("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2")
_CONTRIEVER = "facebook/contriever"
_DRAGON = ("facebook/dragon-plus-query-encoder", "facebook/dragon-plus-context-encoder")


class _BM25(Retriever):
    """BM25 as bm25s does it by default: Lucene's variant, English stop words, words of two letters and more."""

    @override
    def _index(self, chunks: Sequence[str]) -> tuple[Sequence[str], Any]:
        import bm25s  # type: ignore[import-untyped]  # noqa: PLC0415 - heavy

        words, index = _tokens(chunks), bm25s.BM25()
        index.index(words if any(words) else [[""]], show_progress=False)  # an index of nothing cannot be made
        return chunks, index

    @override
    def _found(self, index: tuple[Sequence[str], Any], question: str, k: int) -> list[Found]:
        chunks, words = index[0], [word for word in _tokens([question])[0] if word in index[1].vocab_dict]
        scores = index[1].get_scores(words) if words else np.zeros(len(chunks), dtype=np.float32)
        return best_of(chunks, scores, k)


class Windows(Dense):
    """Finds single sentences, and gives each with the three before and after it: SentenceWindowNodeParser."""

    @override
    def _index(self, chunks: Sequence[str]) -> tuple[Sequence[str], Floats]:
        from llama_index.core.node_parser import SentenceWindowNodeParser  # noqa: PLC0415 - heavy
        from llama_index.core.schema import Document  # noqa: PLC0415

        nodes = SentenceWindowNodeParser.from_defaults().get_nodes_from_documents([Document(text=" ".join(chunks))])
        sentences = [node.get_content() for node in nodes]
        return [node.metadata["window"] for node in nodes], super()._index(sentences)[1]


def load_retriever(
    name: str,
    *,
    embeddings: str = _MINILM[0],
    replies: Replies | None = None,
    summarize: Callable[[str], str] | None = None,
) -> Retriever:
    """Load a retriever.

    Args:
        name: `contriever`, `dragon` (Li et al., 2024), `all-MiniLM-L6-v2`, `bm25`; `window`, `tree`, `raptor` (Li et
            al., 2025); a provider's, such as openai:text-embedding-3-small; or what sentence-transformers loads: a name
            on the Hugging Face Hub, or a folder with weights.
        embeddings: What `window` and `raptor` compare by: any other name but bm25.
        replies: Keeps the vectors of a provider, and counts what they cost.
        summarize: Answers the prompts by which `tree` and `raptor` have texts summarized, and `tree` chooses one.

    Raises:
        ConfigurationError: It cannot be loaded; the message says what to do.
    """
    if name == "bm25":
        _need("bm25s", name)
        return _BM25()
    if name not in INDEXED:
        return Dense(*_encoders(name, replies=replies))
    if name != "tree" and embeddings in (*INDEXED, "bm25"):
        msg = f"the retriever {name} compares vectors: --embeddings takes a name of embeddings, not {embeddings}"
        raise ConfigurationError(msg)
    if name == "window":
        return Windows(*_encoders(embeddings, replies=replies))
    if summarize is None:
        msg = f"the retriever {name} needs a model that summarizes: name one with --model"
        raise ConfigurationError(msg)
    from . import raptor, tree  # noqa: PLC0415 - with LlamaIndex

    if name == "tree":
        return tree.TreeRetriever(summarize)
    return raptor.RaptorRetriever(*_encoders(embeddings, replies=replies), summarize)


def _encoders(name: str, *, replies: Replies | None) -> tuple[Any, Any]:
    """Return what embeds questions and what embeds passages."""
    if _PROVIDER.match(name) and not Path(name).exists():
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
            try:
                model: Any = SentenceTransformer(path, local_files_only=True)
            except OSError:  # not downloaded yet
                model = SentenceTransformer(path)
    except ConfigurationError as error:
        msg = f"{str(error).rstrip('.')}; {WITHOUT_DOWNLOAD}"
        raise ConfigurationError(msg) from error
    if first_token:
        model[1] = type(model[1])(model[0].auto_model.config.hidden_size, "cls")  # sentence-transformers' Pooling
    return model


def _tokens(texts: Sequence[str]) -> Any:
    import bm25s  # noqa: PLC0415 - heavy

    return bm25s.tokenize(list(texts), return_ids=False, show_progress=False)
