"""The command in a folder of its own, with embeddings that take no time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from langchain_core.embeddings import Embeddings
from typing_extensions import override

from loopback import LoopbackServer

FERRY = "# Ferry\n\nThe ferry leaves Haldon pier at seven in the morning. On Sundays nobody sails.\n"
QUESTION = "When does the ferry leave Haldon pier?"
ANSWER = "The ferry leaves Haldon pier at seven in the morning."


class Words:
    """Texts are near that share long words. The real embeddings take seconds to load: one test does that."""

    def __init__(self) -> None:
        self.embedded = 0

    def embed(self, text: str) -> list[float]:
        vector = [0.0] * 512
        for word in re.findall(r"\w{4,}", text.lower()):
            vector[crc32(word[:4].encode()) % 512] += 1.0
        return vector if any(vector) else [1.0] * 512

    def count(self, text: str) -> list[float]:
        self.embedded += 1
        return self.embed(text)


class LangChainWords(Embeddings):
    def __init__(self, words: Words | None = None) -> None:
        self.words = words or Words()

    @override
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.words.count(text) for text in texts]

    @override
    def embed_query(self, text: str) -> list[float]:
        return self.words.embed(text)


@dataclass
class Result:
    """How a call of the command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The JSON that it printed."""
        return dict(json.loads(self.out))

    @property
    def words(self) -> str:
        """What it printed, on one line."""
        return " ".join(self.out.split())

    def has(self, *patterns: str) -> bool:
        """Whether it printed lines with all of these expressions."""
        missing = [each for each in patterns if not re.search(each, self.out, re.MULTILINE)]
        assert missing == [], self.out
        return True


Run = Callable[..., Result]


def model(server: LoopbackServer) -> list[str]:
    return ["--model", "openai:test", "--base-url", server.openai_url]
