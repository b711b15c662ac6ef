"""Measure how often the right document of one store stands behind the passages that a search finds.

    python benchmarks/hybrid.py DATA [--embeddings CACHE] [--json]

DATA holds `questions.jsonl` (`question`, `document`, and `answerable`, if some have no answer) and `documents/`, or
`*.jsonl` with `context`, `doc_id`, `question` and `is_impossible`. All documents are put into one store, in chunks of
1,200 characters with all-MiniLM-L6-v2's vectors. Each question that has an answer is searched for in each way:

    nearest       the passages whose vectors are nearest
    BM25          those that share the rarest words with the question
    hybrid        both, joined by the sum of their reciprocal ranks, as in docs/documents.md

"behind" is the share of questions whose right document is among those that the passages come from, "documents" is how
many these are, and "first" and "two" are the shares of questions whose right document is the first, or among the first
two, in the order in which `max_documents` takes them. No model is asked. CACHE is a file that keeps the vectors.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple, TypeAlias

import bm25s  # type: ignore[import-untyped]
import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from selfroute.documents.sections import ranked
from selfroute_workbench.demo.with_langchain import load_embeddings

SIZE, OVERLAP = 1_200, 200  # characters of a chunk
Search: TypeAlias = Callable[[str], list[Document]]
"""Takes a question and returns passages."""


class Question(NamedTuple):
    """A question, and the name of the document that holds its answer."""

    text: str
    document: str


class Asked(NamedTuple):
    """The documents behind the passages of a question, best first, and the right one."""

    ranked: list[str]
    right: str


class Kept(Embeddings):
    """Embeddings that are kept in a file, so that documents are embedded once."""

    def __init__(self, path: Path | None) -> None:
        """Load what was kept."""
        self._path, self._model = path, load_embeddings()
        self._vectors: dict[str, list[float]] = {}
        if path and path.exists():
            with np.load(path) as kept:
                self._vectors = dict(zip(kept["texts"].tolist(), kept["vectors"].tolist(), strict=True))

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts."""
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            self._vectors |= zip(new, self._model.embed_documents(new), strict=True)
            if self._path:
                np.savez(
                    self._path, texts=np.array(list(self._vectors)), vectors=np.array(list(self._vectors.values()))
                )
        return [self._vectors[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Embed a question."""
        return self._model.embed_query(text)


def load(data: Path) -> tuple[dict[str, str], list[Question]]:
    """Return the documents by name, and the questions that have an answer."""
    if (data / "questions.jsonl").exists():
        rows = [row for row in _lines(data / "questions.jsonl") if row.get("answerable", True)]
        documents = {path.name: path.read_text("utf-8") for path in sorted((data / "documents").iterdir())}
        return documents, [Question(row["question"], row["document"]) for row in rows]
    rows = [row for path in sorted(data.glob("*.jsonl")) for row in _lines(path) if "context" in row]
    documents = {row["doc_id"]: row["context"] for row in rows}
    return documents, [Question(row["question"], row["doc_id"]) for row in rows if not row["is_impossible"]]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def words(text: str) -> list[str]:
    """Return the words of a text, in lower case."""
    return re.findall(r"\w+", text.lower())


def joined(*found: list[Document]) -> list[Document]:
    """Join passages of several searches by the sum of their reciprocal ranks."""
    passages = {_key(passage): passage for ranking in found for passage in ranking}
    scores = dict.fromkeys(passages, 0.0)
    for ranking in found:
        for rank, passage in enumerate(ranking, 61):
            scores[_key(passage)] += 1 / rank
    return [passages[key] for key in sorted(scores, key=scores.__getitem__, reverse=True)]


def _key(passage: Document) -> tuple[Any, str]:
    return passage.metadata["source"], passage.page_content  # two documents may hold the same text


def searches_over(documents: dict[str, str], embeddings: Embeddings) -> dict[str, Search]:
    """Put documents into one store, and return the searches of it by what they are called in the table."""
    splitter = RecursiveCharacterTextSplitter(chunk_size=SIZE, chunk_overlap=OVERLAP, add_start_index=True)
    wholes = [Document(text, metadata={"source": name}) for name, text in documents.items()]
    chunks = splitter.split_documents(wholes)
    store = InMemoryVectorStore.from_documents(chunks, embeddings)
    index = bm25s.BM25()
    index.index([words(chunk.page_content) for chunk in chunks], show_progress=False)

    def nearest(k: int) -> Search:
        return store.as_retriever(search_kwargs={"k": k}).invoke

    def bm25(k: int) -> Search:
        def search(question: str) -> list[Document]:
            (numbers,), _ = index.retrieve([words(question)], k=min(k, len(chunks)), show_progress=False)
            return [chunks[number] for number in numbers]

        return search

    def hybrid(k: int) -> Search:
        return lambda question: joined(nearest(k)(question), bm25(k)(question))

    return {
        "5 nearest": nearest(5),
        "5 by BM25": bm25(5),
        "hybrid, 5 + 5": hybrid(5),
        "20 nearest": nearest(20),
        "20 by BM25": bm25(20),
        "hybrid, 10 + 10": hybrid(10),
    }


def ask(search: Search, documents: dict[str, str], questions: Sequence[Question]) -> list[Asked]:
    """Search for all questions, and put the documents behind its passages in order as a chain does."""
    asked = []
    for question in questions:
        passages = search(question.text)
        behind = list(dict.fromkeys(passage.metadata["source"] for passage in passages))
        texts = [documents[name] for name in behind]
        ranking = ranked(question.text, texts, [passage.page_content for passage in passages])
        asked.append(Asked([behind[number] for number in ranking.documents], question.document))
    return asked


def figures(asked: Sequence[Asked]) -> dict[str, float]:
    """Return the shares of questions, and the mean number of documents."""
    return {
        "behind": mean(one.right in one.ranked for one in asked),
        "documents": mean(len(one.ranked) for one in asked),
        "first": mean(one.right in one.ranked[:1] for one in asked),
        "two": mean(one.right in one.ranked[:2] for one in asked),
    }


def table(found: dict[str, dict[str, float]]) -> Iterator[str]:
    """Format the figures."""
    yield f"{'':18}{'behind':>10}{'documents':>12}{'first':>10}{'two':>10}"
    for name, one in found.items():
        shares = "".join(f"{one[key]:10.1%}" for key in ("first", "two"))
        yield f"{name:18}{one['behind']:10.1%}{one['documents']:12.1f}{shares}"


def main() -> int:
    """Print the figures; the exit code is 1 if there is no question in the folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder with the documents and questions")
    parser.add_argument("--embeddings", type=Path, help="a file (.npz) that keeps the vectors from one run to the next")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    options = parser.parse_args()
    documents, questions = load(options.data)
    if not questions:
        print(f"{options.data} has no question that has an answer", file=sys.stderr)
        return 1
    searches = searches_over(documents, Kept(options.embeddings))
    found = {name: figures(ask(one, documents, questions)) for name, one in searches.items()}
    if options.json:
        print(json.dumps(found, indent=2))
        return 0
    print(f"{len(questions)} questions, {len(documents)} documents in one store\n")
    print("\n".join(table(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
