"""The vectors of the demo's passages and questions, made once, so that the demo needs no embedding model."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from importlib.resources import files
from io import BytesIO
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from numpy.typing import NDArray
from typing_extensions import override

from selfroute.errors import InputError
from selfroute_workbench.demo.corpus import load_documents
from selfroute_workbench.demo.splitting import make_splitter


class ShippedVectors(Embeddings):
    """The vectors of all-MiniLM-L6-v2 that come with the package, of its passages and questions alone.

    `recording/README.md` says how they were made.
    """

    @override
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of passages or questions.

        Raises:
            InputError: One did not come with the package.
        """
        return [self.embed_query(text) for text in texts]

    @override
    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a passage or a question; raises as `embed_documents` does."""
        vector = _shipped().get(_name_of(text))
        if vector is None:
            msg = (
                f"no vector of {text[:60]!r} came with selfroute: pass --embeddings all-MiniLM-L6-v2 in a command, and "
                "in Python another embedding model in place of ShippedVectors(), such as load_embeddings() of "
                "selfroute_workbench.demo.with_langchain, or for LlamaIndex that of "
                "selfroute_workbench.demo.with_llamaindex"
            )
            raise InputError(msg)
        return [float(number) for number in vector]


def demo_store() -> InMemoryVectorStore:
    """Return a store in memory with the passages of the document that comes with the package."""
    texts = load_documents()
    about = [{"source": name, "title": name} for name in texts]
    passages = make_splitter().create_documents([*texts.values()], about)
    return InMemoryVectorStore.from_documents(passages, ShippedVectors())


def pack(texts: Iterable[str], vectors: Any) -> bytes:
    """Return the file of vectors."""
    data = BytesIO()
    np.savez(data, names=np.array(list(map(_name_of, texts))), vectors=np.asarray(vectors, dtype=np.float16))
    return data.getvalue()


def _name_of(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


@cache
def _shipped() -> dict[str, NDArray[np.float16]]:
    with (files("selfroute_workbench.demo") / "recording" / "vectors.npz").open("rb") as file, np.load(file) as kept:
        return dict(zip(kept["names"].tolist(), kept["vectors"], strict=True))
