"""The figures of README and home page are those that `benchmarks/frontier.py` counts; other benchmarks fit the code."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

pytest.importorskip("scipy")
ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "benchmarks"))

import frontier  # noqa: E402
import frontier_rows as tried  # noqa: E402

Json = dict[str, Any]
SMALL = frontier.Collection("Small", "rows.jsonl", ("one", "two"), (tried.RAG, tried.EVEN, tried.NEAREST, tried.WHOLE))
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
            more_sections=declined(0, characters=600),
        ),
    ]


def written(folder: Path, rows: list[Json]) -> Path:
    (folder / "rows.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows), "utf-8")
    return folder


@pytest.mark.parametrize(
    ("strategy", "quality", "tokens", "read"),
    [
        (tried.RAG, 50, 10, 0),
        (tried.PAPER, 50, 60, 2),
        (tried.GRADED, 87.5, 60, 2),
        (tried.EVEN, 87.5, 25, 0),
        (tried.CAREFUL, 100, 50, 1),
        (tried.RUNGS, 100, 65, 1),
        (tried.NEVER, 75, 40, 0),
        (tried.WHOLE, 62.5, 100, 4),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_figures_counted_by_hand(strategy: tried.Strategy, quality: float, tokens: float, read: int) -> None:
    found = frontier.figures(rows(), strategy)
    assert (found["quality"], found["tokens"], found["read"]) == (quality, tokens, read)


def test_figures_of_odd_rows() -> None:
    *others, last = rows()  # without documents the last answer stands, however unsure it is
    last["more_sections"] = answered(0.5, 10, characters=600)
    found = frontier.figures([*others, last], tried.NEVER)
    assert (found["quality"], found["tokens"]) == (87.5, 40)
    doubted = rows()[1]  # in one store the graded draft stands for the plain one
    del doubted["rag"]
    assert [frontier.figures([doubted], one)["read"] for one in (tried.PAPER, tried.GRADED)] == [0, 1]
    known = [{**each, "right_document_characters": 500} for each in rows()]
    found = frontier.figures(known, tried.WHOLE)
    assert (found["tokens"], found["of_the_right_document"]) == (100, 200)


@pytest.mark.parametrize(
    ("strategy", "missing"), [(tried.SECTIONS, 1), (tried.NEAREST, 2), (tried.FEW[0], 1), (tried.FEW[1], 2)]
)
def test_figures_not_recorded(strategy: tried.Strategy, missing: int) -> None:
    behind = [{**each, "documents_behind": count} for each, count in zip(rows(), (1, 1, 2, 3), strict=True)]
    assert frontier.figures(behind, strategy) == {"not_recorded": missing}


def test_table_follows_from_the_rows(tmp_path: Path) -> None:
    def printed(rows: list[Json]) -> list[str]:
        return list(frontier.lines_of(frontier.table_of(SMALL, written(tmp_path, rows))))

    before, changed = printed(rows()), rows()
    assert before[0] == "Small: 4 questions about 4 documents of 200 tokens"
    assert any(line.startswith("| RAG | 50.0 | 10 % | 0 | -12.5 [") for line in before)
    assert before[-1] == f"Replies that were not recorded: {tried.NEAREST.name} 2"
    changed[1]["rag"]["grade"] = 1
    changed[1]["draft_characters"] = 300
    after = printed(changed)
    assert any(line.startswith("| RAG | 75.0 | 15 % | 0 | +12.5 [") for line in after)
    assert [line for line in after if line.startswith("| long")] == [
        line for line in before if line.startswith("| long")
    ]


@pytest.fixture(scope="module")
def printed() -> str:
    tables = map(frontier.table_of, frontier.COLLECTIONS.values())
    return "\n".join(line for table in tables for line in frontier.lines_of(table))


def test_readme_prints_the_tables(printed: str) -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    tables = readme.partition("</picture>\n\n66 questions")[2].partition("`python benchmarks")[0]
    lines = [line for line in tables.splitlines() if line.startswith("| ")]
    assert len(lines) > 12
    assert set(lines) <= set(printed.splitlines())


def test_readme_opening_states_the_figures(printed: str) -> None:
    opening = " ".join((ROOT / "README.md").read_text("utf-8").split("```")[0].split())
    assert "66 questions about documents of 115,000 tokens" in opening
    found = {
        name: numbers
        for name, *numbers in re.findall(r"^\| ([^|]+) \| ([\d.]+) \| ([\d.]+ %)", printed, re.MULTILINE)[:9]
    }
    assert f"reading all of it scores {found['long context'][0]} of 100" in opening
    quality, tokens = found["RAG"]
    assert f"RAG scores {quality} for {tokens} of those tokens" in opening
    quality, tokens = found["graded + two rungs 70/70/50"]
    assert f"Self-Route with sections {quality} for {tokens}" in opening


def test_picture_and_home_page_state_the_figures(printed: str) -> None:
    pictures = ROOT / "docs" / "pictures"
    home = (ROOT / "docs" / "index.md").read_text("utf-8")
    for theme in ("light", "dark"):
        found = ET.fromstring((pictures / f"frontier-{theme}.svg").read_text("utf-8"))  # noqa: S314 - our own file
        title = found.findtext("{http://www.w3.org/2000/svg}title") or ""
        assert f"![{title}](pictures/frontier-{theme}.svg#only-{theme})" in home
        stated = re.findall(r"(?:: |; )(.+?) (\d+\.\d) for ([\d.]+ %)", title)
        assert len(stated) == 13
        assert all(f"| {' | '.join(each)} |" in printed for each in stated)


def test_json_holds_what_is_printed(capsys: pytest.CaptureFixture[str], printed: str) -> None:
    frontier.main(["--json"])
    tables = json.loads(capsys.readouterr().out)
    assert "\n".join(line for table in tables.values() for line in frontier.lines_of(table)) == printed
