"""Retrievers of the paper's sequel, and embeddings of a provider: what they find, ask for, keep and cost."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from loopback import LoopbackServer, Request
from paper import __main__ as study
from paper.indexed import TreeRetriever, WindowRetriever
from paper.retrieval import load_retriever
from selfroute_workbench.evaluation.replies import Replies
from selfroute_workbench.evaluation.spending import CostCapError

pytestmark = pytest.mark.matrix
SMALL = "openai:text-embedding-3-small"


def vector_of(text: str) -> list[float]:
    vector = [0.0] * 1024
    for word in re.findall(r"\w+", text.lower()):
        vector[crc32(word.encode()) % 1024] += 1.0
    return vector


class Words:
    """Texts are near that share words."""

    def encode_query(self, text: str, **_: Any) -> Any:
        return self.encode_document([text])[0]

    def encode_document(self, texts: list[str], **_: Any) -> Any:
        vectors = np.array([vector_of(text) for text in texts], dtype=np.float32)
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch, server: LoopbackServer) -> LoopbackServer:
    server.embed = vector_of
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_API_BASE", server.openai_url)
    return server


def parts(number: int) -> list[str]:
    return [f"Part {each}. The gull {each} sat on pier {each * 7}. Nobody saw it leave." for each in range(number)]


def test_window_retriever() -> None:
    text = [" ".join(f"Gull number {each} sat on the rail." for each in range(30))]
    best, *_ = WindowRetriever(Words(), Words()).search(text, "number 12", k=2, document_id="a")
    assert best.index == 12
    assert [each.strip() for each in best.text.split(".")][:-1] == [
        f"Gull number {each} sat on the rail" for each in range(9, 16)
    ]


def test_tree_retriever() -> None:
    asked: list[str] = []

    def summarize(prompt: str) -> str:
        asked.append(prompt)
        return " ".join(word for word in prompt.split() if word.isdigit())

    retriever, texts = TreeRetriever(Words(), Words(), summarize), parts(25)
    found = retriever.search(texts, "gull 17 pier 119", k=3, document_id="a")
    assert [each.text for each in found] == [texts[each.index] for each in found]
    assert len(found) == 3
    assert len(asked) == 3  # ten chunks each
    assert all(text in "".join(asked) for text in texts)
    scores = [each.score for each in found]
    assert scores == sorted(scores, reverse=True)
    retriever.search(texts, "another question", k=2, document_id="a")
    assert len(asked) == 3


def test_tree_summaries_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    rows = [{"question": "Where did gull 3 sit?", "answers": ["pier 21"], "document": long_document()}]
    Path("q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def answer(request: Request) -> str:
        return "A summary of gulls." if "SUMMARY" in request.prompt else "pier 21"

    with LoopbackServer(answer) as server:
        command = ["q.jsonl", "--model", "openai:gpt-4o-mini", "--base-url", server.openai_url]
        command += ["--priced-as", "openai:gpt-4o-mini", "--retriever", "tree", "--concurrency", "1"]
        assert study.main(command) == 0
        asked = len(server.book)
        kept = [json.loads(line) for line in Path("paper/looks.jsonl").read_text().splitlines()]
        steps = [row["step"] for row in kept if "text" in row]
        assert steps.count("index") == 3
        assert study.main(command) == 0
        assert len(server.book) == asked
        assert study.main([*command, "--out", "capped", "--max-cost", "0.0001"]) == 1


def long_document() -> str:
    """A text of some twenty chunks."""
    return "\n\n".join(
        " ".join([f"Gull {each} sat on pier {each * 7}.", "It said nothing."] * 60) for each in range(14)
    )


def test_provider_embeddings_are_kept(provider: LoopbackServer, tmp_path: Path) -> None:
    texts = parts(100)
    with Replies(tmp_path) as replies:
        first = load_retriever(SMALL, replies=replies).search(texts, "gull 17 pier 119", k=2, document_id="a")
        spent = replies.spending.spent
    assert first[0].index == 17
    assert [len(each) for each in provider.embedded] == [1, 64, 36]
    assert 0 < spent < Decimal("0.001")
    with Replies(tmp_path) as replies:
        again = load_retriever(SMALL, replies=replies).search(texts, "gull 17 pier 119", k=2, document_id="a")
        assert (again, replies.spending.spent, len(provider.embedded)) == (first, spent, 3)
    with Replies(tmp_path, max_cost=spent) as replies, pytest.raises(CostCapError):
        load_retriever(SMALL, replies=replies).search(texts, "another question", k=2, document_id="a")
