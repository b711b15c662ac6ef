"""`selfroute view`: where it writes the page, what it says, and how it refuses."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import pytest

from command_parts import Run
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


def test_the_page_of_an_evaluation_is_in_its_folder_and_opened(run: Run, tmp_path: Path, opened: list[str]) -> None:
    an_evaluation_to_view().save(tmp_path)
    page = tmp_path / "view.html"
    assert (run("view", tmp_path).out, opened) == (f"{page}\n", [page.as_uri()])
    assert "What is lost?" in page.read_text(encoding="utf-8")


def test_the_page_of_rows_is_where_one_likes_and_not_opened_if_one_does_not_like(
    run: Run, tmp_path: Path, opened: list[str]
) -> None:
    rows, few = write_rows(tmp_path / "answers.jsonl", some_rows()), tmp_path / "few.html"
    assert run("view", rows, "--no-open").out == f"{rows.with_suffix('.html')}: open it in a browser\n"
    assert run("view", tmp_path, "--no-open", "--most", "2", "--out", few).code == 0
    assert few.read_text(encoding="utf-8").count("<article") == 2
    assert opened == []


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["nowhere"], "there is no nowhere: give the folder"),
        (["empty"], "has no results: give the folder that `selfroute evaluate --out` wrote"),
        (["broken"], "evaluate again into that folder"),
        (["answers.jsonl", "--out", "none/page.html"], "cannot be written (No such file or directory): name another"),
    ],
)
def test_what_cannot_be_shown_or_written_is_one_line_that_says_what_to_do(run: Run, args: list[str], said: str) -> None:
    for name in ("empty", "broken"):
        Path(name).mkdir()
    Path("broken/results.json").write_text("{}")
    write_rows(Path("answers.jsonl"), some_rows())
    result = run("view", *args, "--no-open")
    assert (result.code, said in result.err, result.err.count("\n")) == (2, True, 1), result.err
