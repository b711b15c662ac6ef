"""The laws of `benchmarks/sections.py`: which files count, and what share of the evidence is held."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy")
pytest.importorskip("bm25s")
pytest.importorskip("langchain_text_splitters")
BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))
SPEC = importlib.util.spec_from_file_location("benchmarks_sections", BENCHMARKS / "sections.py")
assert SPEC
assert SPEC.loader
sections = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(sections)

DAY = "On day {} it rained, and nobody came to the quay. " + "Tea was served. " * 60
TEXT = "\n\n".join(map(DAY.format, range(60)))


def evidence(*sentences: str) -> list[list[int]]:
    return [[TEXT.index(sentence), TEXT.index(sentence) + len(sentence)] for sentence in sentences]


def measured(folder: Path, **files: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    for name, rows in files.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    nearest = sections.Nearest(sections.load_retriever("bm25"))
    found: dict[str, dict[str, float]] = json.loads(sections.as_json(sections.measured(folder, nearest)))
    return found


def test_only_questions_with_evidence_count_and_their_shares_are_averaged(tmp_path: Path) -> None:
    asked = {"question": "What happened on day 42?", "context": TEXT}
    found = measured(
        tmp_path,
        marked=[
            {**asked, "evidence_spans": evidence("On day 42 it rained")},
            {**asked, "evidence_spans": [[0, len(TEXT)]]},
            {**asked, "evidence_spans": None},
            {**asked, "evidence_spans": [[0, 9]], "is_impossible": True},
        ],
        unmarked=[asked],
        other=[{"prediction": "Tea"}],
    )
    assert list(found) == ["marked"]
    assert list(found["marked"]) == ["n", "covered", "nearest", "ms_per_100k_tokens"]
    assert found["marked"]["n"] == 2
    held = 16_000 / len(TEXT)  # characters that the budget holds
    assert found["marked"]["covered"] == pytest.approx((1 + held) / 2, rel=0.1)
    assert found["marked"]["nearest"] == pytest.approx((1 + held) / 2, rel=0.1)
    assert found["marked"]["ms_per_100k_tokens"] > 0


def test_evidence_that_is_marked_twice_or_held_in_part_counts_by_its_characters() -> None:
    assert sections.share_held([[0, 10], [5, 20]], [(0, 5), (3, 10), (30, 40)]) == 0.5
    assert sections.share_held([[0, 10]], []) == 0


def test_where_no_evidence_is_marked_there_are_no_results(tmp_path: Path) -> None:
    assert measured(tmp_path, empty=[]) == {}
