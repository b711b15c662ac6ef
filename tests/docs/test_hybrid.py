"""The recipe of a hybrid retriever finds by words what vectors miss, and its benchmark measures that."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from llama_index.core.schema import TextNode

import one_store
from langchain_selfroute import SelfRouteChain, StoredDocuments
from llamaindex_selfroute import SelfRouteQueryEngine
from llamaindex_selfroute import StoredDocuments as IndexDocuments
from one_store import BY_WORDS, TEXTS, Model, ask, found_in

pytestmark = pytest.mark.matrix
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/documents.md").read_text("utf-8")
RECIPES = [dedent(one) for one in re.findall(r"^ *```py\n(.*?)^ *```$", PAGE, re.MULTILINE | re.DOTALL)]


def langchain(model: Model) -> dict[str, Any]:
    pytest.importorskip("bm25s")
    store = one_store.store("weights")
    return {
        "chunks": one_store.chunks(),
        "vectorstore": store,
        "llm": one_store.runnable(model),
        "SelfRouteChain": SelfRouteChain,
        "StoredDocuments": StoredDocuments,
    }


def llamaindex(model: Model) -> dict[str, Any]:
    pytest.importorskip("llama_index.retrievers.bm25")
    index = one_store.index("weights")
    return {
        "nodes": [node for node in index.docstore.docs.values() if isinstance(node, TextNode)],
        "index": index,
        "llm": one_store.llm(model),
        "SelfRouteQueryEngine": SelfRouteQueryEngine,
        "IndexDocuments": IndexDocuments,
    }


@pytest.mark.parametrize("question", BY_WORDS)
@pytest.mark.parametrize(("recipe", "parts"), [*zip(RECIPES, (langchain, llamaindex), strict=True)], ids=["lc", "li"])
async def test_the_recipe_reads_the_right_document_behind_its_filters(recipe: str, parts: Any, question: str) -> None:
    model = Model()
    names = parts(model)
    exec(compile(recipe, "documents.md", "exec", dont_inherit=True), names)  # noqa: S102
    asked = await ask(names["hybrid"], question)
    assert len(set(found_in(asked))) > 2
    assert (asked.route, BY_WORDS[question] in asked.names) == ("sections", True)
    assert sum(chunk.page_content in model.prompts[0] for chunk in one_store.chunks()) == 5
    assert BY_WORDS[question] in found_in(asked)[:2], "words find it first"


def test_the_recipe_reads_nothing_that_its_three_filters_hide() -> None:
    model, hidden = Model(), "railway.md"
    names = langchain(model)
    names["admits"] = lambda document: document.metadata["source"] != hidden
    names["chunks"] = [chunk for chunk in names["chunks"] if names["admits"](chunk)]
    recipe = RECIPES[0].replace('{"k": 10}', '{"k": 10, "filter": admits}').replace("filter={}", "filter=admits")
    assert recipe.count("admits") == 2
    exec(compile(recipe, "documents.md", "exec", dont_inherit=True), names)  # noqa: S102
    names["hybrid"].invoke("Which place has form TN-4714?")
    assert len(model.prompts) > 1
    assert not any("The railway" in prompt or "the railway" in prompt for prompt in model.prompts)


def test_the_benchmark_tells_retrievers_apart_on_a_store_of_our_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("bm25s")
    spec = importlib.util.spec_from_file_location("benchmarks_hybrid", ROOT / "benchmarks/hybrid.py")
    assert spec
    assert spec.loader
    hybrid = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hybrid)
    monkeypatch.setattr(hybrid, "SIZE", 110)
    monkeypatch.setattr(hybrid, "OVERLAP", 0)
    (tmp_path / "documents").mkdir()
    for name, text in TEXTS.items():
        (tmp_path / "documents" / name).write_text(text, "utf-8")
    rows = [
        *({"question": question, "document": name} for question, name in BY_WORDS.items()),
        {"question": "Who is king?", "document": "bakery.md", "answerable": False},
    ]
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    of_each = [
        {"doc_id": name, "context": TEXTS[name], "question": question, "is_impossible": False}
        for question, name in BY_WORDS.items()
    ]
    vectors = str(tmp_path / "vectors.npz")
    monkeypatch.setattr(sys, "argv", ["hybrid.py", str(tmp_path), "--embeddings", vectors, "--json"])
    assert hybrid.main() == 0
    found = json.loads(capsys.readouterr().out)
    assert found["hybrid, 5 + 5"]["behind"] == found["20 nearest"]["behind"] == 1
    assert found["5 by BM25"]["first"] == 1
    assert found["20 nearest"]["documents"] > found["5 nearest"]["documents"]
    assert found["5 nearest"]["first"] < found["5 by BM25"]["first"]
    monkeypatch.setattr(sys, "argv", ["hybrid.py", str(tmp_path), "--embeddings", vectors])
    assert hybrid.main() == 0
    assert capsys.readouterr().out.startswith("2 questions, 8 documents in one store\n")
    other = tmp_path / "other"
    other.mkdir()
    (other / "rows.jsonl").write_text("\n".join(map(json.dumps, of_each)), "utf-8")
    documents, questions = hybrid.load(other)
    assert (len(documents), [question.document for question in questions]) == (2, list(BY_WORDS.values()))
    monkeypatch.setattr(sys, "argv", ["hybrid.py", str(tmp_path / "documents")])
    assert hybrid.main() == 1
