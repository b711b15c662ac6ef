"""The figures of README and pages are those that `benchmarks/frontier.py` counts."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("scipy")
ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "benchmarks"))

import frontier  # noqa: E402
import frontier_rows as tried  # noqa: E402

Json = dict[str, Any]
SMALL = frontier.Collection("Small", "rows.jsonl", values=("one", "two"))
LENGTHS = {"draft_characters": 100, "document_characters": 1000}


def answered(grade: float, confidence: int, **more: int) -> Json:
    return {"declined": False, "grade": grade, "confidence": confidence, **more}


def declined(grade: float, prospect: int | None = None, **more: int) -> Json:
    return {"declined": True, "grade": grade, **({} if prospect is None else {"prospect": prospect}), **more}


def row(number: int, rag: Json, graded: Json, long_context: float, **looks: Json) -> Json:
    about = {"part": ("one", "two")[number % 2], "id": str(number), "document": f"d{number}"}
    return {**about, **LENGTHS, "rag": rag, "graded": graded, "long_context": {"grade": long_context}, **looks}


def rows() -> list[Json]:
    """A sure answer, one in doubt, a hopeless question, and one that goes all the way."""
    return [
        row(1, answered(1, 100), answered(1, 90), 1),
        row(2, answered(0, 100), answered(0, 40), 0.5, sections=answered(1, 80, characters=300)),
        row(3, declined(1), declined(1, 5), 0),
        row(
            4,
            declined(0),
            declined(0, 90),
            1,
            sections=answered(0.5, 55, characters=300),
            more_sections=declined(0, 30, characters=450),
        ),
    ]


@pytest.mark.parametrize(
    ("strategy", "quality", "tokens", "read"),
    [
        (tried.RAG, 50, 10, 0),
        (tried.PAPER, 50, 60, 2),
        (tried.DRAFTS, 87.5, 60, 2),
        (tried.EARLIER, 87.5, 25, 0),
        (tried.DEFAULT, 75, 36.25, 0),  # the second rung's refusal is hopeless
        (tried.NO_STOP, 100, 61.25, 1),
        (tried.NEVER, 75, 36.25, 0),
        (tried.WHOLE, 62.5, 100, 4),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_figures_by_hand(strategy: tried.Strategy, quality: float, tokens: float, read: int) -> None:
    found = frontier.figures(rows(), strategy)
    assert (found["quality"], found["tokens"], found["read"]) == (quality, tokens, read)
    assert found["times_rag"] == pytest.approx(tokens / 10)
    assert found["dollars"] == pytest.approx(tokens / 100 * 1000 / 4 * 1000 * 0.25e-6)


def test_figures_where_sections_are_skipped() -> None:
    *_, last = rows()
    last["more_sections"]["characters"] = 501  # of the 1,000 that the last step reads
    assert frontier.figures([last], tried.DEFAULT)["tokens"] == 140
    assert frontier.figures([last], tried.NEVER)["tokens"] == 90.1, "without that step none are skipped"
    last["sections"]["characters"] = 501
    assert frontier.figures([last], tried.DEFAULT)["tokens"] == 110
    last["default"] = ["draft", "sections", "documents"]  # held against more documents than are recorded
    assert frontier.figures([last], tried.DEFAULT)["tokens"] == 160.1


@pytest.mark.parametrize(("strategy", "missing"), [(tried.RAG_20, 4), (tried.SURER, 0)])
def test_figures_not_recorded(strategy: tried.Strategy, missing: int) -> None:
    assert frontier.figures(rows(), strategy).get("not_recorded", 0) == missing
    without = [{key: value for key, value in each.items() if key != "sections"} for each in rows()]
    assert frontier.figures(without, tried.DEFAULT) == {"not_recorded": 2}


@pytest.mark.parametrize("key", ["one_store", "pages"])
def test_figures_of_the_default_are_the_recorded_paths(key: str) -> None:
    for each in frontier.rows_of(frontier.COLLECTIONS[key]):
        found = tried.replay(each, tried.DEFAULT)
        assert found
        assert list(found.steps) == each["default"]


def test_table_follows_from_the_rows(tmp_path: Path) -> None:
    def printed(rows: list[Json]) -> list[str]:
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows), "utf-8")
        return list(frontier.lines_of(frontier.table_of(SMALL, tmp_path)))

    before, changed = printed(rows()), rows()
    assert before[0] == "Small, 4 questions"
    assert any(line.startswith("| RAG | 50.0 | 10.0 % | 1.0 | 0.01 | 0 | -12.5 [") for line in before)
    assert before[-1] == f"Replies that were not recorded: {tried.RAG_20.name} 4"
    changed[1]["rag"]["grade"] = 1
    changed[1]["draft_characters"] = 300
    after = printed(changed)
    assert any(line.startswith("| RAG | 75.0 | 15.0 % | 1.0 | 0.01 | 0 | +12.5 [") for line in after)


@pytest.fixture(scope="module")
def printed() -> str:
    tables = map(frontier.table_of, frontier.COLLECTIONS.values())
    return "\n".join(line for table in tables for line in frontier.lines_of(table))


@pytest.mark.parametrize("page", ["README.md", "docs/policies.md"])
def test_page_states_the_figures(page: str, printed: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    rows = {line.split(" | ")[0]: line for line in text.splitlines() if line.startswith(("| RAG |", "| **the default"))}
    assert rows
    lines = [line for line in text.splitlines() if line.split(" | ")[0] in rows]  # all columns, or the first ones
    assert all(any(one.startswith(line) for one in printed.splitlines()) for line in lines)


def test_json_holds_what_is_printed(capsys: pytest.CaptureFixture[str], printed: str) -> None:
    frontier.main(["--json"])
    tables = json.loads(capsys.readouterr().out)
    assert "\n".join(line for table in tables.values() for line in frontier.lines_of(table)) == printed
