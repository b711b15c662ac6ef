"""RAPTOR: soft clusters, summaries of them, and the collapsed tree, with real vectors and a rule that summarizes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from paper import raptor
from paper.chunks import chunks
from paper.found import Found
from paper.retrieval import first_sentences, load_retriever
from selfroute_workbench.demo.corpus import load_documents

pytestmark = pytest.mark.matrix
QUESTION = "What did the council decide about the harbour?"


def shipped(each: int) -> list[str]:
    """So many chunks of the shipped document, of sixty words each, spread over it."""
    (found,) = (chunks(text, 60) for text in load_documents().values())
    return found[:: len(found) // each][:each]


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Thirty chunks."""
    return shipped(30)


class Book:
    """Summarizes by a rule, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.asked.append(prompt)
        return first_sentences(prompt) or prompt[-200:]


def search(texts: Sequence[str], book: Book, question: str = QUESTION, k: int = 1_000) -> list[Found]:
    return load_retriever("raptor", summarize=book).search(texts, question, k=k, document_id="a")


def test_raptor_search(texts: list[str]) -> None:
    book = Book()
    found = search(texts, book)
    by_place = {each.index: each.text for each in found}
    assert [by_place[place] for place in range(len(texts))] == texts
    assert len(found) == len(texts) + len(book.asked)
    assert len(book.asked) >= 2
    assert all(any(text in prompt for prompt in book.asked) for text in texts), "each chunk is in a cluster"
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    summary = by_place[len(texts)]
    assert search(texts, Book(), summary, k=1)[0].index >= len(texts), "the nearest to a summary is a summary"


def test_raptor_tree_built_once(texts: list[str]) -> None:
    first, second = Book(), Book()
    retriever = load_retriever("raptor", summarize=first)
    found = retriever.search(texts, QUESTION, k=9, document_id="a")
    count = len(first.asked)
    retriever.search(texts, "Another question", k=9, document_id="a")
    assert len(first.asked) == count
    assert search(texts, second, k=9) == found
    assert second.asked == first.asked


def test_raptor_long_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, whole, split = shipped(60), Book(), Book()
    monkeypatch.setattr(raptor, "_MOST_CLUSTERS", 3)  # so that they are long
    search(texts, whole)
    monkeypatch.setattr(raptor, "_MOST_TOKENS", 250)
    search(texts, split)
    assert len(split.asked) > len(whole.asked)
