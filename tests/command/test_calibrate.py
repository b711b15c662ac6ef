"""`selfroute calibrate`: what it writes, what it says, and how it refuses."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from calibrating_parts import evaluated, made_up
from command_parts import Run
from selfroute.evaluation.results import Evaluation
from selfroute.policies import Calibrated


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an evaluation with every strategy and a judge."""
    folder = tmp_path_factory.mktemp("rich")
    evaluated(made_up(120, 20), model="openai:any").save(folder)
    return folder


@pytest.fixture
def run(run: Run) -> Run:
    return partial(run, "calibrate")


def rewritten(folder: Path, to: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Copy a folder and change its results.json: writing a report takes a second."""
    shutil.copytree(folder, to)
    saved = json.loads((to / "results.json").read_text())
    change(saved)
    (to / "results.json").write_text(json.dumps(saved))
    return to


def without_judge(saved: dict[str, Any]) -> None:
    for one in (*saved["results"], *saved["looks"]):
        one |= {"judged": None, "judged_by": None}


def without_graded(saved: dict[str, Any]) -> None:
    saved["looks"] = [one for one in saved["looks"] if "graded" not in one["step"]]


def with_nine_documents(saved: dict[str, Any]) -> None:
    kept = set(sorted({one["document"] for one in saved["questions"]})[:9])
    saved["questions"] = [one for one in saved["questions"] if one["document"] in kept]


def rag_alone(saved: dict[str, Any]) -> None:
    saved["results"] = [one for one in saved["results"] if one["strategy"] == "rag"]


def test_it_writes_a_policy_and_says_what_it_brings_and_what_to_paste(run: Run, rich: Path) -> None:
    ran = run(rich, "--out", "my policy.json")
    assert (ran.code, ran.err) == (0, "")
    policy = Calibrated.load("my policy.json")
    assert policy == Evaluation.load(rich).calibrate()
    for said in (
        "an answer with a confidence below 50",
        "read 4,000 tokens of sections",
        "Quality on documents that did not take part in the choice: 100.0 for 20 % of the tokens",
        "120 questions on 20 documents",
        "from selfroute.policies import Calibrated",
        'escalation=Calibrated.load("my policy.json"),',
        'answerability="graded", doubt_below=50, stop_below=20, sections=4000,',
    ):
        assert said in ran.words
    gains = {line.split()[0]: line.split()[1:] for line in ran.out.splitlines() if line[:1].isalpha() and line.split()}
    for name, gain in policy.calibration.gains.items():
        assert gains[name][0] == f"{100 * gain.gain:+.1f}"


def test_as_json_it_prints_the_file_and_nothing_else(run: Run, rich: Path) -> None:
    ran = run(rich, "--json")
    assert ran.out == Path("policy.json").read_text()
    assert json.loads(ran.out)["model"] == "openai:any"


def test_the_budget_and_the_price_of_wrong_answers_are_passed_on(run: Run, rich: Path) -> None:
    ran = run(rich, "--token-share", "0.15", "--price-of-wrong", "3")
    kept = Calibrated.load("policy.json").calibration
    assert (kept.token_share, kept.price_of_wrong) == (0.15, 3)
    assert "wrong answers at a price of 3" in ran.words
    assert "No rule stays within 5 %" in run(rich, "--token-share", "0.05").words


@pytest.mark.parametrize(
    ("lacking", "said"),
    [
        (without_judge, ["No judge graded", "--judge", "incomplete answer"]),
        (without_graded, ["Graded answerability was not tried", "the strategy graded"]),
        (with_nine_documents, ["Fewer than 10 documents", "says nothing about others"]),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_it_says_what_the_evaluation_cannot_show_and_goes_on(
    run: Run, rich: Path, tmp_path: Path, lacking: Callable[[dict[str, Any]], None], said: list[str]
) -> None:
    ran = run(rewritten(rich, tmp_path / "copy", lacking))
    assert ran.code == 0
    for each in said:
        assert each in ran.words


def broken(folder: Path, text: str | None, *, replies: bool = False) -> Path:
    """Make a folder with such results, or none."""
    folder.mkdir()
    if text is not None:
        (folder / "results.json").write_text(text)
    if replies:
        (folder / "replies.jsonl").write_text("{}\n")
    return folder


def test_a_folder_that_it_cannot_calibrate_by_is_refused_in_a_line_that_says_what_to_do(
    run: Run, rich: Path, tmp_path: Path
) -> None:
    calls: dict[str, tuple[list[str | Path], str]] = {
        "no folder": ([tmp_path / "nowhere"], "selfroute evaluate --out"),
        "an empty folder": ([broken(tmp_path / "empty", None)], "holds no evaluation"),
        "an unfinished run": ([broken(tmp_path / "begun", None, replies=True)], "run it again to go on"),
        "no JSON": ([broken(tmp_path / "text", "{")], "evaluate again"),
        "other JSON": ([broken(tmp_path / "list", "[1]")], "evaluate again"),
        "other keys": ([broken(tmp_path / "keys", '{"results": []}')], "evaluate again"),
        "one strategy": ([rewritten(rich, tmp_path / "alone", rag_alone)], "both rag and long_context"),
        "a share above 1": ([rich, "--token-share", "30"], "token_share"),
        "a negative price": ([rich, "--price-of-wrong", "-1"], "price_of_wrong"),
        "a file that cannot be": ([rich, "--out", tmp_path / "no" / "where.json"], "a folder that exists"),
    }
    for name, (args, said) in calls.items():
        ran = run(*args)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), name
        assert said in ran.err, name
