"""Chunks and retrievers: real weights, and tiny ones next to transformers itself."""

from __future__ import annotations

import os
import shutil
import string
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paper.chunks import chunks
from paper.found import Found, Retriever, mark_of
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
DRAGON = ("facebook/dragon-plus-query-encoder", "facebook/dragon-plus-context-encoder")

texts = st.text(st.sampled_from("abc,. \n\t\u00a0漢かé"), max_size=300)
sentences = st.lists(st.sampled_from(("red", "green", "comet", "harbour", "bread", "the")), max_size=6).map(" ".join)
documents = st.lists(sentences, max_size=12)


@given(texts, st.integers(1, 7))
def test_chunks_keep_everything_but_the_white_space_between_them(text: str, words: int) -> None:
    pieces = chunks(text, words)
    assert "".join("".join(pieces).split()) == "".join(text.split())
    where = 0
    for piece in pieces:
        where = text.index(piece, where) + len(piece)


def test_a_chunk_is_as_it_stands_in_the_text() -> None:
    assert chunks(" one\n\ntwo  three\tfour five ", 2) == ["one\n\ntwo", "three\tfour", "five"]
    assert len(chunks("word " * 901)) == 4
    assert chunks(" \n") == []


@pytest.fixture(scope="module")
def minilm() -> Retriever:
    return load_retriever("all-MiniLM-L6-v2")


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of the model hub that holds tiny encoders under the names of the real ones."""
    root = tmp_path_factory.mktemp("hub")
    for seed, name in enumerate(("facebook/contriever", *DRAGON)):
        folder = root / f"models--{name.replace('/', '--')}"
        (folder / "refs").mkdir(parents=True)
        (folder / "refs" / "main").write_text(str(seed) * 40)
        _tiny(folder / "snapshots" / (str(seed) * 40), seed=seed)
    return root


@pytest.fixture
def offline(hub: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setenv("SENTENCE_TRANSFORMERS_HOME", str(hub))


@pytest.fixture
def tiny(hub: Path, tmp_path: Path) -> str:
    """A folder with tiny weights."""
    shutil.copytree(next(hub.glob("*contriever/snapshots/*")), tmp_path / "weights")
    return str(tmp_path / "weights")


def _tiny(folder: Path, *, seed: int) -> None:
    folder.mkdir(parents=True)
    letters = string.ascii_lowercase + string.punctuation
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    (folder / "vocab.txt").write_text("\n".join(words))
    import torch  # noqa: PLC0415 - as below: it takes seconds, in every process that collects tests
    from transformers import BertConfig, BertModel, BertTokenizer  # noqa: PLC0415

    torch.manual_seed(seed)
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
    config = BertConfig(vocab_size=len(words), initializer_range=0.5, **shape)
    BertModel(config).save_pretrained(folder)
    BertTokenizer.from_pretrained(folder).save_pretrained(folder)


def _vectors(hub: Path, name: str, texts: list[str], *, first_token: bool) -> Any:
    """What transformers itself makes of texts: normalised vectors."""
    import torch  # noqa: PLC0415
    from transformers import AutoModel, AutoTokenizer  # noqa: PLC0415

    folder = next((hub / f"models--{name.replace('/', '--')}").glob("snapshots/*"))
    tokens = AutoTokenizer.from_pretrained(folder)(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        states = AutoModel.from_pretrained(folder).eval()(**tokens).last_hidden_state
    mask = tokens["attention_mask"].unsqueeze(-1)
    pooled = states[:, 0] if first_token else (states * mask).sum(1) / mask.sum(1)
    return torch.nn.functional.normalize(pooled).numpy()


def _scores(found: list[Found]) -> list[float]:
    return [chunk.score for chunk in sorted(found, key=lambda chunk: chunk.index)]


def test_minilm_finds_what_answers_and_scores_it_by_the_cosine(minilm: Retriever) -> None:
    best, *others = minilm.search(CHUNKS, QUESTION, k=9, document_id="town")
    assert (best.index, best.text) == (2, CHUNKS[2])
    assert len(others) == 3
    assert all(-1 <= chunk.score <= best.score <= 1 for chunk in others)
    assert minilm.search(CHUNKS, CHUNKS[1], k=1, document_id="town")[0].score == pytest.approx(1, abs=1e-5)


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize(
    ("name", "of_questions", "of_passages", "first_token"),
    [("contriever", "facebook/contriever", "facebook/contriever", False), ("dragon", *DRAGON, True)],
)
def test_the_papers_retrievers_do_as_transformers_says(
    hub: Path, name: str, of_questions: str, of_passages: str, first_token: bool
) -> None:
    found = load_retriever(name).search(CHUNKS, QUESTION, k=4, document_id="town")
    question = _vectors(hub, of_questions, [QUESTION], first_token=first_token)[0]
    passages = _vectors(hub, of_passages, list(CHUNKS), first_token=first_token)
    assert _scores(found) == pytest.approx((passages @ question).tolist(), abs=1e-5)
    other = _vectors(hub, of_passages, list(CHUNKS), first_token=not first_token)
    assert _scores(found) != pytest.approx((other @ question).tolist(), abs=1e-3)


def test_bm25_finds_the_words_of_the_question() -> None:
    found = load_retriever("bm25").search(CHUNKS, "Which bread does the baker sell?", k=2, document_id="town")
    assert found[0].index == 1
    assert found[0].score > found[1].score == 0
    assert found[1].index == 0


@settings(max_examples=15)
@given(chunks=documents, question=sentences, k=st.integers(1, 15))
def test_vectors_give_the_k_best_whatever_is_asked_of_whatever(
    minilm: Retriever, chunks: list[str], question: str, k: int
) -> None:
    _check_best(minilm, chunks, question, k)


def _check_best(retriever: Retriever, chunks: list[str], question: str, k: int) -> list[Found]:
    found = retriever.search(chunks, question, k=len(chunks), document_id="|".join(chunks))
    assert sorted(chunk.index for chunk in found) == list(range(len(chunks)))
    assert found == sorted(found, key=lambda chunk: (-chunk.score, chunk.index))
    assert all(chunk.text == chunks[chunk.index] for chunk in found)
    assert retriever.search(chunks, question, k=k, document_id="|".join(chunks)) == found[:k]
    return found


def test_many_threads_get_what_one_gets_and_embed_it_once(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415

    asked = [(f"{QUESTION} {number % 4}", k) for number in range(16) for k in (1, 4)]
    alone = load_retriever(tiny)
    expected = [alone.search(CHUNKS, question, k=k, document_id="town") for question, k in asked]
    embedded = []
    for method in ("encode_query", "encode_document"):
        monkeypatch.setattr(SentenceTransformer, method, _noting(getattr(SentenceTransformer, method), embedded))
    shared = load_retriever(tiny)
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda ask: shared.search(CHUNKS, ask[0], k=ask[1], document_id="town"), asked)
    assert list(found) == expected
    assert sorted(map(str, embedded)) == sorted(map(str, [list(CHUNKS), *{question for question, _ in asked}]))


def _noting(method: Callable[..., Any], noted: list[Any]) -> Callable[..., Any]:
    def embed(self: Any, texts: Any, **options: Any) -> Any:
        noted.append(texts)
        return method(self, texts, **options)

    return embed


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("name", ["contriever", "dragon", "someone/something", "/no/such/folder"])
def test_weights_that_cannot_be_loaded_are_an_error_that_names_others(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SENTENCE_TRANSFORMERS_HOME", str(tmp_path))
    with pytest.raises(
        ConfigurationError, match=r"--retriever all-MiniLM-L6-v2, bm25 or a folder with the weights$"
    ) as caught:
        load_retriever(name)
    assert "\n" not in str(caught.value)


def test_a_passage_begins_with_the_number_of_its_chunk() -> None:
    assert mark_of(Found(0, "Once upon a time", 0.5)) == "[1] "


def test_nothing_heavy_is_imported_before_a_retriever_is_loaded() -> None:
    code = """
import sys
import paper.chunks, paper.retrieval
print(sorted({"torch", "transformers", "sentence_transformers", "bm25s", "chromadb"} & set(sys.modules)))
"""
    where = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "benchmarks")}
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=where)  # noqa: S603
    assert ran.stdout == "[]\n"
