"""`selfroute view`: where it writes the page, what it says, and how it refuses."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path

import pytest

from selfroute import cli
from view_parts import an_evaluation_to_view, some_rows, write_rows


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that were opened, in a browser that is not there."""
    found: list[str] = []

    def open_(url: str) -> bool:
        found.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", open_)
    return found


def test_the_page_of_an_evaluation_is_in_its_folder_and_opened(
    tmp_path: Path, opened: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    an_evaluation_to_view().save(tmp_path)
    assert cli.main(["view", str(tmp_path)]) == 0
    page = tmp_path / "view.html"
    assert opened == [page.as_uri()]
    assert capsys.readouterr().out == f"{page}\n"
    assert "What is lost?" in page.read_text(encoding="utf-8")


def test_the_page_of_rows_is_where_one_likes_and_not_opened_if_one_does_not_like(
    tmp_path: Path, opened: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = write_rows(tmp_path / "answers.jsonl", some_rows())
    assert cli.main(["view", str(rows), "--no-open"]) == 0
    assert capsys.readouterr().out == f"{rows.with_suffix('.html')}: open it in a browser\n"
    assert cli.main(["view", str(tmp_path), "--no-open", "--most", "2", "--out", str(tmp_path / "few.html")]) == 0
    assert (tmp_path / "few.html").read_text(encoding="utf-8").count("<article") == 2
    assert opened == []


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("nowhere", "there is no nowhere: give the folder"),
        (".", "has no results: give the folder that `selfroute evaluate --out` wrote"),
        ("broken", "run the same `selfroute evaluate` again"),
    ],
)
def test_without_results_it_says_what_to_give(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    argument: str,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    if argument == "broken":
        (tmp_path / "broken").mkdir()
        (tmp_path / "broken" / "results.json").write_text("{}")
    assert cli.main(["view", argument, "--no-open"]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="no such file name")
def test_a_page_that_cannot_be_written_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = write_rows(tmp_path / "answers.jsonl", some_rows())
    assert cli.main(["view", str(rows), "--no-open", "--out", str(tmp_path / "none" / "page.html")]) == 2
    assert "cannot be written (No such file or directory): name another file with --out" in capsys.readouterr().err
