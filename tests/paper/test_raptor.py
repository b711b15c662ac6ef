"""RAPTOR: soft clusters, summaries of them, and the collapsed tree, with real vectors and a rule that summarizes."""

from __future__ import annotations

import pytest
from llama_index.core.utils import get_tokenizer

from paper import raptor
from paper.found import Found, Retriever, chunks
from paper.retrieval import load_retriever
from selfroute_workbench.demo.corpus import load_documents

pytestmark = pytest.mark.matrix
QUESTION = "What did the council decide about the harbour?"


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Eleven chunks of the shipped document."""
    (found,) = map(chunks, load_documents().values())
    return found[:11]


class Book:
    """Summarizes by the first sentences, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.asked.append(prompt)
        return " ".join(text.partition(". ")[0] for text in prompt.split("\n\n")[1:])


def retriever_of(book: Book) -> Retriever:
    return load_retriever("raptor", summarize=book)


def search(retriever: Retriever, texts: list[str], question: str = QUESTION) -> list[Found]:
    return retriever.search(texts, question, k=1, document_id="a")


def tokens(found: Found) -> int:
    return len(get_tokenizer()(found.text))


def test_raptor_search(texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    book = Book()
    retriever = retriever_of(book)
    limited = search(retriever, texts)
    monkeypatch.setattr(raptor, "_FOUND", 1_000_000)
    found = search(retriever, texts)
    assert found[: len(limited)] == limited
    assert sum(map(tokens, limited)) <= 2_000 < sum(map(tokens, found[: len(limited) + 1]))
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    by_place = sorted(found, key=lambda each: each.index)
    leaves, summaries = by_place[: -len(book.asked)], by_place[-len(book.asked) :]
    assert len(summaries) >= 2
    assert "".join("".join(each.text for each in leaves).split()) == "".join("".join(texts).split())
    assert max(map(tokens, leaves)) <= 100
    assert all(any(leaf.text in prompt for prompt in book.asked) for leaf in leaves), "each chunk is in a cluster"
    monkeypatch.setattr(raptor, "_FOUND", 1)
    (nearest,) = search(retriever, texts, summaries[0].text)
    assert nearest.index >= len(leaves), "the nearest to a summary is a summary"


def test_raptor_tree_built_once(texts: list[str]) -> None:
    first, second = Book(), Book()
    retriever = retriever_of(first)
    found = search(retriever, texts)
    count = len(first.asked)
    search(retriever, texts, "Another question")
    assert len(first.asked) == count
    assert search(retriever_of(second), texts) == found
    assert second.asked == first.asked


def test_raptor_long_cluster(texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    whole, split = Book(), Book()
    monkeypatch.setattr(raptor, "_MOST_CLUSTERS", 3)  # so that they are long
    search(retriever_of(whole), texts)
    monkeypatch.setattr(raptor, "_MOST_TOKENS", 250)
    search(retriever_of(split), texts)
    assert len(split.asked) > len(whole.asked)
