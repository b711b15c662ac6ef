"""The laws of `benchmarks/policies.py`: how recordings become questions, and what its JSON holds."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy")
BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"
sys.path.append(str(BENCHMARKS))
SPEC = importlib.util.spec_from_file_location("benchmarks_policies", BENCHMARKS / "policies.py")
assert SPEC
assert SPEC.loader
policies = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(policies)
LONG = "\n\n".join(f"On day {day} the crew saw {day} green lamps. " * 25 for day in range(60))
DOCUMENTS = {"(50, 50)": 0, "(70, 50)": 1, "(70, 60)": 1, "(70, 70)": 2}


def recorded(folder: Path, **files: list[dict[str, Any]]) -> Path:
    (folder / "documents").mkdir()
    (folder / "replies").mkdir()
    for name in ("a", "b"):
        (folder / "documents" / f"{name}.txt").write_text("word " * 800, encoding="utf-8")
    questions = [
        {"id": "1", "document": "a", "question": "?", "answers": ["red cat", "blue"], "answerable": True},
        {"id": "2", "document": "b", "question": "?", "reference": "green", "answerable": True},
        {"id": "3", "document": "b", "question": "?", "reference": "", "answerable": False},
    ]
    for question in questions:
        question["document"] += ".txt"
    replies = [
        {"id": "1", "rag": "Blue.", "long_context": "a red dog"},
        {"id": "2", "rag": "unanswerable", "long_context": "green"},
        {"id": "3", "rag": "unanswerable", "long_context": "yellow"},
    ]
    found = {"questions": questions, "replies/m": replies, **files}
    for name, rows in found.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def test_without_grades_quality_is_f1_and_a_right_decline(tmp_path: Path) -> None:
    rows = policies.rows_of(recorded(tmp_path), "m")
    assert [row.rag.quality for row in rows] == [1, 0, 1]
    assert [row.long_context.quality for row in rows] == [0.5, 1, 0]
    assert [row.rag.declined for row in rows] == [False, True, True]
    assert {row.long_context.tokens for row in rows} == {1000}


def test_grades_of_this_model_decide_where_there_are_any(tmp_path: Path) -> None:
    grades = [
        {"id": "1", "model": "m", "rag": 0, "long_context": 1},
        {"id": "1", "model": "other", "rag": 1, "long_context": 0},
        {"id": "2", "model": "m", "rag": 0, "long_context": 0.5},
    ]
    rows = policies.rows_of(recorded(tmp_path, grades_sample=grades), "m")
    assert [(row.rag.quality, row.long_context.quality) for row in rows] == [(0, 1), (0, 0.5)]


def test_recorded_passages_and_prompts_are_counted(tmp_path: Path) -> None:
    folder = recorded(
        tmp_path,
        passages=[{"id": "2", "passages": ["x" * 40, "y" * 60]}],
        graded=[{"id": "2", "prospect": 80, "confidence": None, "reply": "unanswerable"}],
        sections=[{"id": "2", "confidence": 40, "reply": "green", "prompt_characters": 200}],
    )
    first, second, third = policies.rows_of(folder, "m")
    assert (first.graded, first.graded_sections, third.graded_sections) == (None, None, None)
    assert second.rag.tokens == 25
    assert second.graded is not None
    assert (second.graded.declined, second.graded.prospect) == (True, 80)
    assert second.graded_sections is not None
    assert (second.graded_sections.tokens, second.graded_sections.confidence) == (50, 40)


def test_a_reply_over_sections_has_its_grade_in_its_own_row(tmp_path: Path) -> None:
    grades = [{"id": key, "rag": 0, "long_context": 1} for key in "123"]
    sections = [{"id": "1", "confidence": 40, "reply": "blue", "grade": 0.5}, {"id": "2", "reply": "green"}]
    rows = policies.rows_of(recorded(tmp_path, grades=grades, sections=sections), "m")
    qualities = [row.graded_sections and row.graded_sections.quality for row in rows]
    assert qualities == [0.5, None, None], "where there are grades, a reply without one does not count"


def test_json_names_every_strategy_and_the_recommended_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = recorded(tmp_path)
    monkeypatch.setattr(sys, "argv", ["policies.py", str(folder), str(tmp_path / "missing"), "--json"])
    assert policies.main() == 0
    out, err = capsys.readouterr()
    found = json.loads(out)[str(folder)]["m"]
    assert set(found) == {"rag", "self_route", "calibrated", "long_context", "recommended"}
    assert found["recommended"] in found
    assert set(found["rag"]) == {"quality", "low", "high", "token_share", "dollars"}
    assert found["rag"]["quality"] == pytest.approx(66.6667)
    assert "Skipped" in err


def test_what_the_chain_makes_of_sections_stands_beside_the_recorded_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    graded = [
        {"id": "1", "prospect": 90, "confidence": 90, "reply": "blue"},
        {"id": "2", "prospect": 90, "confidence": None, "reply": "unanswerable"},
        {"id": "3", "prospect": 90, "confidence": 60, "reply": "yellow"},
    ]
    sections = [
        {"id": "2", "confidence": 65, "reply": "green", "prompt_characters": 200},
        {"id": "3", "confidence": None, "reply": "unanswerable", "prompt_characters": 200},
    ]
    passages = [{"id": key, "passages": [LONG[:1_000]]} for key in "123"]
    folder = recorded(tmp_path, graded=graded, sections=sections, passages=passages)
    (folder / "documents" / "b.txt").write_text(LONG, encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["policies.py", str(folder), "--json"])
    assert policies.main() == 0
    found = json.loads(capsys.readouterr().out)[str(folder)]["m"]["replayed_sections"]
    assert (found["recorded"], set(found["by_tokens"])) == (2, {"3000", "4000"})
    for each in found["by_tokens"].values():
        assert each["skipped"] == []
        assert {bounds: row["chain"]["documents"] for bounds, row in each["bounds"].items()} == DOCUMENTS
        assert not any(row["otherwise"] for row in each["bounds"].values())
        for row in each["bounds"].values():
            assert row["chain"]["quality"] == row["recorded"]["quality"]
            assert 0 < row["chain"]["token_share"] < 1 + row["recorded"]["token_share"]
    (folder / "documents" / "b.txt").write_text(LONG[:15_000], encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["policies.py", str(folder)])
    assert policies.main() == 0
    assert "Skipped, since the document is short, for 2: 2, 3." in capsys.readouterr().out


def test_replies_that_name_no_model_are_of_the_only_one(tmp_path: Path) -> None:
    folder = recorded(tmp_path, graded=[{"id": "1", "prospect": 80, "confidence": 90, "reply": "blue"}])
    assert policies.rows_of(folder, "m")[0].graded is not None
    (folder / "replies" / "other.jsonl").write_text("", encoding="utf-8")
    assert policies.rows_of(folder, "m")[0].graded is None
    assert policies.rows_of(folder, "other") == []
