"""Embeddings that cost nothing, for both frameworks: texts are near that share long words. Numbers count for nothing.

The real ones take seconds to load, and torch makes each test that comes after it slower.
"""

from __future__ import annotations

import re
from zlib import crc32

from langchain_core.embeddings import Embeddings
from llama_index.core.base.embeddings.base import BaseEmbedding
from typing_extensions import override

SIZE = 512


def embed(text: str) -> list[float]:
    """Return the vector of a text."""
    vector = [0.0] * SIZE
    for word in re.findall(r"[^\W\d_]{4,}", text.lower()):
        vector[crc32(word[:4].encode()) % SIZE] += 1.0
    return vector if any(vector) else [1.0] * SIZE


class LangChainWords(Embeddings):
    """For LangChain; it counts how many texts of a store were embedded."""

    def __init__(self) -> None:
        self.embedded = 0

    @override
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.embedded += len(texts)
        return [embed(text) for text in texts]

    @override
    def embed_query(self, text: str) -> list[float]:
        return embed(text)


class LlamaIndexWords(BaseEmbedding):
    """For LlamaIndex."""

    @override
    def _get_text_embedding(self, text: str) -> list[float]:
        return embed(text)

    @override
    def _get_query_embedding(self, query: str) -> list[float]:
        return embed(query)

    @override
    async def _aget_query_embedding(self, query: str) -> list[float]:
        return embed(query)
