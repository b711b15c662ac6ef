"""Chunks and retrievers, with real weights."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import huggingface_hub.constants
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper.found import Found, Retriever, chunks
from paper.retrieval import load_retriever
from selfroute.errors import ConfigurationError

pytestmark = pytest.mark.matrix
CHUNKS = (
    "The harbour was dredged in spring, and ferries call there again.",
    "The baker sells rye bread on Mondays and keeps the recipe to himself.",
    "A comet was seen from the observatory on the hill; the astronomer named it after her sister.",
    "The council raised the dog tax. Nobody but the dogs was asked.",
)
QUESTION = "What did the astronomer discover?"

texts = st.text(st.sampled_from("abc,. \n\t\u00a0漢かé"), max_size=300)


@given(texts, st.integers(1, 7))
def test_chunks_keep_all(text: str, words: int) -> None:
    pieces = chunks(text, words)
    assert "".join("".join(pieces).split()) == "".join(text.split())
    where = 0
    for piece in pieces:
        where = text.index(piece, where) + len(piece)


def test_chunks() -> None:
    assert chunks(" one\n\ntwo  three\tfour five ", 2) == ["one\n\ntwo", "three\tfour", "five"]
    assert len(chunks("word " * 901)) == 4
    assert chunks(" \n") == []


@pytest.fixture(scope="module")
def minilm() -> Retriever:
    return load_retriever("all-MiniLM-L6-v2")


def test_minilm(minilm: Retriever) -> None:
    best, *others = minilm.search(CHUNKS, QUESTION, k=9, document_id="town")
    assert (best.index, best.text) == (2, CHUNKS[2])
    assert len(others) == 3
    assert all(-1 <= chunk.score <= best.score <= 1 for chunk in others)
    assert minilm.search(CHUNKS, CHUNKS[1], k=1, document_id="town")[0].score == pytest.approx(1, abs=1e-5)


def test_bm25() -> None:
    found = load_retriever("bm25").search(CHUNKS, "Which bread does the baker sell?", k=2, document_id="town")
    assert found[0].index == 1
    assert found[0].score > found[1].score == 0
    assert found[1].index == 0


@pytest.mark.parametrize("name", ["contriever", "dragon", "someone/something", "/no/such/folder"])
def test_retriever_missing_weights(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setenv("SENTENCE_TRANSFORMERS_HOME", str(tmp_path))
    with pytest.raises(
        ConfigurationError, match=r"--retriever all-MiniLM-L6-v2, bm25 or a folder with the weights$"
    ) as caught:
        load_retriever(name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["tree", "raptor"])
def test_retriever_without_model(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"the retriever {name} needs a model .*--model$"):
        load_retriever(name)


def test_found_mark() -> None:
    assert Found(0, "Once upon a time", 0.5).mark == "[1] "


def test_retrieval_import_is_light() -> None:
    code = """
import sys
import paper.retrieval
print(sorted({"torch", "transformers", "sentence_transformers", "bm25s", "chromadb"} & set(sys.modules)))
"""
    where = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "benchmarks")}
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=where)  # noqa: S603
    assert ran.stdout == "[]\n"
