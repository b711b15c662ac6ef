"""RAPTOR (Sarthi et al., 2024): a tree of summaries over clusters of chunks, searched in one layer.

The sequel uses it (Li et al., 2025, section 3.2). Chunks are clustered by their vectors, each cluster is summarized,
and the summaries are clustered again, until they are too few. Clusters are soft: UMAP reduces the vectors, once for all
and once within each cluster of those, the Bayesian information criterion chooses how many Gaussians a mixture has, and
a text belongs to each one that has more than a tenth of its probability. A question is compared with all chunks and
summaries alike, the "collapsed tree".
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.utils import get_tokenizer
from numpy.typing import NDArray
from typing_extensions import override

from selfroute.errors import ConfigurationError

from .found import Dense, Floats, Found, embed

# The numbers of the authors, who count tokens with cl100k_base, as LlamaIndex does by itself.
_CHUNK, _FOUND = 100, 2_000  # tokens of a chunk at most, and of all that is found
_DIMENSIONS = 10
_NEIGHBOURS_WITHIN = 10
_MOST_CLUSTERS = 50
_BELONGS = 0.1
_MOST_TOKENS = 3_500  # of a cluster, which is split if it has more
_LAYERS = 5
_SEED = 224
_PROMPT = "Write a summary of the following, including as many key details as possible:\n\n{context}"


class _Node(NamedTuple):
    text: str
    vector: Floats
    tokens: int


class RaptorRetriever(Dense):
    """Finds chunks and summaries of clusters of chunks, whichever are nearest to the question.

    It splits the document again, at the ends of sentences. `k` is not used: it finds what fits 2,000 tokens together.
    """

    def __init__(self, questions: Any, passages: Any, summarize: Callable[[str], str]) -> None:
        """Take what embeds questions, what embeds passages, and what answers a prompt for a summary.

        Raises:
            ConfigurationError: umap-learn or scikit-learn is not installed.
        """
        super().__init__(questions, passages)
        if not (find_spec("umap") and find_spec("sklearn")):
            msg = "the retriever raptor needs umap-learn and scikit-learn: pip install umap-learn scikit-learn"
            raise ConfigurationError(msg)
        self._summarize = summarize

    @override
    def _index(self, chunks: Sequence[str]) -> tuple[Sequence[str], Floats]:
        """Return all nodes: the chunks in their order, then the summaries, layer by layer."""
        splitter = SentenceSplitter(chunk_size=_CHUNK, chunk_overlap=0)
        layer = self._nodes(splitter.split_text(" ".join(chunks)))
        nodes = list(layer)
        for _ in range(_LAYERS):
            if len(layer) <= _DIMENSIONS + 1:
                break
            clusters = list(_clusters(layer))
            if len(clusters) >= len(layer):  # summaries of single texts would go on without an end
                break
            texts = ("\n\n".join(node.text for node in cluster) for cluster in clusters)
            layer = self._nodes([self._summarize(_PROMPT.format(context=text)) for text in texts])
            nodes += layer
        return [node.text for node in nodes], np.stack([node.vector for node in nodes])

    @override
    def _found(self, index: tuple[Sequence[str], Floats], question: str, k: int) -> list[Found]:
        found = super()._found(index, question, len(index[0]))
        tokens = accumulate(len(get_tokenizer()(one.text)) for one in found)
        return found[: max(1, sum(total <= _FOUND for total in tokens))]

    def _nodes(self, texts: list[str]) -> list[_Node]:
        vectors, count = embed(self._passages.encode_document, texts), get_tokenizer()
        return [_Node(text, vector, len(count(text))) for text, vector in zip(texts, vectors, strict=True)]


def _clusters(nodes: Sequence[_Node]) -> Iterator[list[_Node]]:
    """Yield clusters of nodes; one whose texts are too long for a summary is clustered again."""
    vectors = np.stack([node.vector for node in nodes])
    for members in soft_clusters(vectors):
        cluster = [nodes[place] for place in members]
        is_too_long = sum(node.tokens for node in cluster) > _MOST_TOKENS
        if is_too_long and 1 < len(cluster) < len(nodes):
            yield from _clusters(cluster)
        else:
            yield cluster


def soft_clusters(vectors: Floats) -> list[list[int]]:
    """Cluster vectors of shape (texts, dimensions), all and then within each cluster; return the places of each's."""
    if len(vectors) <= _DIMENSIONS + 1:
        return [list(range(len(vectors)))]
    found: dict[tuple[int, ...], None] = {}  # each once: neighbouring clusters may hold the same parts
    for members in _mixture(vectors, neighbours=int((len(vectors) - 1) ** 0.5)):
        within = vectors[members]
        parts = _mixture(within, neighbours=_NEIGHBOURS_WITHIN) if len(members) > _DIMENSIONS + 1 else None
        for part in parts or [list(range(len(members)))]:
            found[tuple(members[place] for place in part)] = None
    return [list(members) for members in found]


def _mixture(vectors: Floats, *, neighbours: int) -> list[list[int]]:
    """Reduce vectors, fit mixtures of Gaussians, and return the members of each of the best one's."""
    count = len(vectors)
    with warnings.catch_warnings():
        # UMAP misses TensorFlow, which nothing here needs; graphs fall apart, and mixtures stop early.
        warnings.simplefilter("ignore")
        from sklearn.mixture import GaussianMixture  # type: ignore[import-untyped]  # noqa: PLC0415 - heavy
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # noqa: PLC0415
        from umap import UMAP  # type: ignore[import-untyped]  # noqa: PLC0415

        reducer = UMAP(
            n_neighbors=max(2, min(neighbours, count - 1)),
            n_components=min(_DIMENSIONS, count - 2),
            metric="cosine",
            init="spectral" if count > 2 * _DIMENSIONS else "random",  # so few have too few dimensions for a spectrum
            random_state=_SEED,
            n_jobs=1,
        )
        with threadpool_limits(1):  # so little is computed at a time that threads would mostly wait for each other
            reduced = np.asarray(reducer.fit_transform(vectors), dtype=np.float64)
            mixtures = [
                GaussianMixture(n_components=number, random_state=_SEED).fit(reduced)
                for number in range(1, min(_MOST_CLUSTERS, count))
            ]
    best = min(mixtures, key=lambda mixture: float(mixture.bic(reduced)))
    return members_of(best.predict_proba(reduced))


def members_of(shares: NDArray[np.float64]) -> list[list[int]]:
    """Return the texts of each Gaussian, by shares of shape (texts, Gaussians); each is in its likeliest at least."""
    belongs = shares > _BELONGS
    belongs[np.arange(len(shares)), shares.argmax(axis=1)] = True
    return [found for column in belongs.T if (found := [int(place) for place in np.flatnonzero(column)])]
