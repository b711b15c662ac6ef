"""Retrievers of the paper's sequel, and embeddings of a provider: what they find, ask for, keep and cost."""

from __future__ import annotations

import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from loopback import LoopbackServer, Request
from paper import __main__ as study
from paper.found import Found
from paper.retrieval import Windows, load_retriever
from paper.tree import TreeRetriever
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
    best, *_ = Windows(Words(), Words()).search(text, "number 12", k=2, document_id="a")
    assert best.index == 12
    assert [each.strip() for each in best.text.split(".")][:-1] == [
        f"Gull number {each} sat on the rail" for each in range(9, 16)
    ]


class Model:
    """Summarizes always alike, and chooses as it is told."""

    def __init__(self, *choices: str) -> None:
        self.choices, self.summarized, self.chosen = iter(choices), list[str](), list[str]()

    def __call__(self, prompt: str) -> str:
        if "SUMMARY" in prompt:
            self.summarized.append(prompt)
            return f"Summary {len(self.summarized)}."
        self.chosen.append(prompt)
        return next(self.choices)


def test_tree_levels() -> None:
    model, texts, question = Model("ANSWER: 2, as of 9", "I choose 1.", "4"), parts(120), "gull 17 pier 119"
    tree = load_retriever("tree", embeddings="/no/such/folder", summarize=model)
    assert tree.search(texts, question, k=3, document_id="a") == [Found(103, texts[103], 0)]
    assert load_retriever("bm25").search(texts, question, k=1, document_id="a")[0].index == 17
    assert len(model.summarized) == 12 + 2
    assert all(text in "".join(model.summarized) for text in texts)
    shown = [re.findall(r"^\(\d+\) (.+)", prompt, re.MULTILINE) for prompt in model.chosen]
    assert shown == [["Summary 13.", "Summary 14."], ["Summary 11.", "Summary 12."], texts[100:110]]
    assert all(question in prompt for prompt in model.chosen)


@pytest.mark.parametrize("reply", ["None of them.", "ANSWER: 4"])
def test_tree_no_choice(reply: str) -> None:
    model, texts = Model("2", "10", reply), parts(25)
    tree = TreeRetriever(model)
    assert [each.index for each in tree.search(texts, "Where?", k=1, document_id="a")] == [19]
    assert tree.search(texts, "Where?", k=1, document_id="a") == []
    assert len(model.summarized) == 3, "they are asked for once"
    assert tree.search([], "Where?", k=1, document_id="b") == []


def test_tree_asks_at_once() -> None:
    both = threading.Barrier(2, timeout=10)
    tree = TreeRetriever(lambda _: str(1 + both.wait()))
    with ThreadPoolExecutor() as pool:
        found = pool.map(lambda question: tree.search(parts(3), question, k=1, document_id="a"), ("Where?", "When?"))
        assert {each.index for some in found for each in some} == {0, 1}


def test_tree_replies_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    rows = [{"question": "Where did gull 3 sit?", "answers": ["pier 21"], "document": long_document()}]
    Path("q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def answer(request: Request) -> str:
        if "ANSWER: <number>" in request.prompt:
            return "ANSWER: 1"
        return "A summary of gulls." if "SUMMARY" in request.prompt else "pier 21"

    with LoopbackServer(answer) as server:
        command = ["q.jsonl", "--model", "openai:gpt-4o-mini", "--base-url", server.openai_url]
        command += ["--priced-as", "openai:gpt-4o-mini", "--retriever", "tree", "--concurrency", "1"]
        assert study.main(command) == 0
        asked = len(server.book)
        kept = [json.loads(line) for line in Path("paper/looks.jsonl").read_text().splitlines()]
        steps = [row["step"] for row in kept if "text" in row]
        assert steps.count("index") == 3 + 2
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
    assert [len(each) for each in provider.embedded] == [64, 36, 1]
    assert 0 < spent < Decimal("0.001")
    with Replies(tmp_path) as replies:
        again = load_retriever(SMALL, replies=replies).search(texts, "gull 17 pier 119", k=2, document_id="a")
        assert (again, replies.spending.spent, len(provider.embedded)) == (first, spent, 3)
    with Replies(tmp_path, max_cost=spent) as replies, pytest.raises(CostCapError):
        load_retriever(SMALL, replies=replies).search(texts, "another question", k=2, document_id="a")
