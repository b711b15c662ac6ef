"""Each benchmark that a page names runs on a tiny input; frontier, hybrid and opcodes have tests of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from examples_parts import ROOT

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(300)]

TEXT = "On Monday it rained all day. Ms Okafor chaired the meeting in April. Tea was served at noon."
CHAIRED = TEXT.index("Ms Okafor"), TEXT.index(" Tea")


def write_rows(path: Path, *rows: Any) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return str(path)


def citations(folder: Path) -> list[str]:
    about = {"doc_id": "May", "context": TEXT, "question": "Who chaired the meeting?", "answers": ["Ms Okafor"]}
    write_rows(folder / "data" / "one.jsonl", {**about, "is_impossible": False, "evidence_spans": [CHAIRED]})
    return [str(folder / "data")]


def declines(folder: Path) -> list[str]:
    said = {"unanswerable": "decline", "The passages do not mention a chair.": "decline", "Ms Okafor.": "answer"}
    rows = ({"reply": reply, "label": label, "model": "test", "step": "rag"} for reply, label in said.items())
    (folder / "replies").mkdir()
    return ["--labelled", write_rows(folder / "labelled.jsonl", *rows), "--replies", str(folder / "replies")]


def metrics(folder: Path) -> list[str]:
    case = {"prediction": "Ms Okafor", "ground_truths": ["Okafor"], "scores": {"squad_em": 0.0, "squad_f1": 2 / 3}}
    return [write_rows(folder / "cases.jsonl", case)]


def stores(_: Path) -> list[str]:
    return ["--chunks", "60", "--runs", "1", "langchain-memory", "langchain-chroma"]


def service(_: Path) -> list[str]:
    return ["--at-once", "2", "--rounds", "1", "--only", "declined"]


BENCHMARKS: dict[Callable[[Path], list[str]], str] = {
    citations: "one",
    declines: "1.000",
    metrics: "1 cases",
    stores: "langchain-memory",
    service: "2 at once",
}


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda one: one.__name__)
def test_benchmark_runs_on_a_tiny_input(benchmark: Callable[[Path], list[str]], tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / f"{benchmark.__name__}.py"), *benchmark(tmp_path)]
    done = subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert BENCHMARKS[benchmark] in done.stdout, done.stdout + done.stderr
