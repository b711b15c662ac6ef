"""Each benchmark that a page names runs on a tiny input; frontier, hybrid and opcodes have tests of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import loaders as loaders_table
from examples_parts import ROOT
from mutants import mutants

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


def loaders(_: Path) -> list[str]:
    return ["--only", "TextLoader, .txt RecursiveCharacterTextSplitter"]


def providers_table(_: Path) -> list[str]:
    return ["--only", "xAI llamaindex", "--check"]


BENCHMARKS: dict[Callable[[Path], list[str]], str] = {
    citations: "one",
    declines: "1.000",
    metrics: "1 cases",
    stores: "langchain-memory",
    service: "2 at once",
    providers_table: "| xAI | `OpenAILike` of",
    loaders: "add_start_index | exact | exact | ok |",
}


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda one: one.__name__)
def test_benchmark_runs_on_a_tiny_input(benchmark: Callable[[Path], list[str]], tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / f"{benchmark.__name__}.py"), *benchmark(tmp_path)]
    done = subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert BENCHMARKS[benchmark] in done.stdout, done.stdout + done.stderr


def test_benchmark_of_loaders_says_which_rows_of_the_page_do_not_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "documents.md"
    page.write_text(f"{loaders_table.BEGIN}{loaders_table.END}", "utf-8")
    monkeypatch.setattr(loaders_table, "PAGE", page)
    for name, value in loaders_table.QUIET.items():
        monkeypatch.setenv(name, value)
    command = ["loaders.py", "--only", "CSVLoader none"]
    monkeypatch.setattr(sys, "argv", [*command, "--check"])
    assert loaders_table.main() == 1
    row = capsys.readouterr().out.splitlines()[-1]
    assert "| CSVLoader | none | exact | exact |" in row
    page.write_text(loaders_table.put([*loaders_table.HEAD, row], page.read_text("utf-8")), "utf-8")
    assert loaders_table.main() == 0
    monkeypatch.setattr(sys, "argv", [*command, "--write"])
    with pytest.raises(SystemExit):
        loaders_table.main()
    assert "leave --only away" in capsys.readouterr().err


def test_mutants_of_what_is_pinned_and_what_is_not(tmp_path: Path) -> None:
    """The test sees what `one` returns, and not what `two` does; the folder itself stays as it is."""
    sums, test = tmp_path / "sums.py", tmp_path / "tests" / "test_sums.py"
    test.parent.mkdir()
    sums.write_text("def one():\n    return 1\n\n\ndef two():\n    return one() < 2\n", "utf-8")
    test.write_text("from sums import one, two\n\n\ndef test_sums():\n    assert one() == 1\n    two()\n", "utf-8")
    before = sums.read_text("utf-8")
    command = [sys.executable, str(ROOT / "benchmarks" / "mutants.py"), "sums.py", "--seed", "1", "--number", "2"]
    done = subprocess.run(  # noqa: S603
        command, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == [
        "caught    sums.py:2  1 -> 2 in: return 1",
        "SURVIVED  sums.py:6  one() < 2 -> one() <= 2 in: return one() < 2",
        "1 of 2 caught",
    ]
    assert sums.read_text("utf-8") == before
    assert mutants(sums, seed=1, number=99) == mutants(sums, seed=2, number=99)
