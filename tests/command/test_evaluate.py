"""`selfroute evaluate` and `calibrate`: what they ask, print and keep, and how they end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from choosing_parts import evaluated, made_up
from command_parts import Result, Run
from judge_parts import grade, is_judging
from loopback import RATE_LIMITED, LoopbackServer, Reply, Request
from selfroute_workbench.evaluation import Evaluation

pytestmark = pytest.mark.usefixtures("frozen")

HOUSE_JUDGE = ["--judge", "openai:house", "--judge-base-url", "http://127.0.0.1:9/v1"]
UNPRICED = ["--model", "openai:nobody-knows-me", "--base-url", "http://127.0.0.1:9/v1"]
HOURS = ["seven", "eight", "nine", "ten", "noon"]
PLACES = ["Haldon", "Brack", "Tarn", "Skerry", "Oban Head"]
PLAIN = ("--strategies", "rag,self_route,long_context")


def document(number: int) -> str:
    """A text of some 900 words in which one sentence, far from all others, tells when the ferry leaves."""
    rare = [f"{chr(97 + n % 26)}{chr(97 + n // 26)}{chr(97 + n * 7 % 26)}{chr(97 + n * 11 % 26)}" for n in range(100)]
    filler = " ".join(f"Gull {n} of {PLACES[number]} sat on the {word} rail." for n, word in enumerate(rare))
    return f"{filler} The ferry from {PLACES[number]} pier leaves at {HOURS[number]}. {filler}"


def answer(request: Request) -> Reply | str:
    """Answers where the sentence is in the prompt, and declines where it is not."""
    place = re.search(r"from (\w+(?: Head)?) pier leave", request.prompt.rpartition("Question:")[2])
    found = place and re.search(rf"from {place[1]} pier leaves at (\w+)", request.prompt)
    return found[1] if found else "unanswerable"


def and_judges(request: Request) -> Reply | str:
    return grade(request.prompt) if is_judging(request.prompt) else answer(request)


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """Five questions, each on a document of its own."""
    rows = []
    for number, place in enumerate(PLACES):
        (tmp_path / f"{number}.txt").write_text(document(number))
        asked = f"When does the ferry from {place} pier leave?"
        rows.append({"question": asked, "answers": [HOURS[number]], "document_file": f"{number}.txt"})
    path = tmp_path / "ferries.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def evaluate(run: Run) -> Run:
    def call(*args: str | Path, url: str | None = None, model: str = "openai:gpt-4o-mini") -> Result:
        asked = ["--model", model, "--base-url", url] if url else []
        if model == "openai:gpt-4o-mini" and url:
            asked += ["--priced-as", model]  # the server's address is no provider's
        return run("evaluate", *args, *asked)

    return call


def results(folder: str = "evaluation") -> dict[str, Any]:
    content: dict[str, Any] = json.loads((Path(folder) / "results.json").read_text())
    return content


def test_each_look_is_asked_for_once_and_the_same_command_again_asks_for_nothing(
    evaluate: Run, questions: Path
) -> None:
    with LoopbackServer(answer) as server:
        first = evaluate(questions, *PLAIN, url=server.openai_url)
        again = evaluate(questions, *PLAIN, url=server.openai_url)
    assert (first.code, len(server.book)) == (0, 2 * len(PLACES)), first.err
    assert again.out == first.out
    assert "10 replies were asked for, 0 were kept" in first.err
    assert "0 replies were asked for, 10 were kept" in again.err
    assert {(row["step"], row["score"]) for row in results()["looks"] if row["step"] == "long_context"} == {
        ("long_context", 1.0)
    }


def test_the_terminal_has_the_verdict_the_table_and_the_page_and_all_tables_if_asked(
    evaluate: Run, questions: Path
) -> None:
    with LoopbackServer(answer) as server:
        shown = evaluate(questions, *PLAIN, url=server.openai_url)
        more = evaluate(questions, *PLAIN, "--tables", url=server.openai_url)
        as_json = evaluate(questions, *PLAIN, "--json", url=server.openai_url)
    lines = [line for line in shown.out.splitlines() if line.strip()]
    assert shown.words.startswith("Cannot tell which strategy is best: 5 questions on 5 documents are too few; ask at")
    assert [line.split("  ")[0] for line in lines[-4:-1]] == ["RAG", "Self-Route", "long context"]
    assert lines[-1].startswith("evaluation/report.html: the report")
    assert len(lines) <= 2 + 2 + 3 + 1
    assert more.has("Answers and abstentions", "Tokens, cost and time", "Quality is times 100")
    assert as_json.json["verdict"]["certainty"] == "cannot tell"
    assert as_json.json["settings"]["model"] == "openai:gpt-4o-mini"
    assert as_json.json["tables"][0]["name"] == "main"


def test_what_is_evaluated_is_what_ask_uses(evaluate: Run, run: Run, questions: Path) -> None:
    with LoopbackServer(answer) as server:
        evaluate(questions, *PLAIN, "--limit", "1", url=server.openai_url)
        asked = "When does the ferry from Haldon pier leave?"
        model = ["--model", "openai:gpt-4o-mini", "--base-url", server.openai_url]
        run("ask", "0.txt", "-q", asked, *model)
    evaluated, live = (entry.request.prompt.replace("0.txt", "document") for entry in (server.book[0], server.book[2]))
    # Which of many sentences that are nearly alike are found depends on how the index came to be built.
    assert evaluated.partition("\n\n")[0] == live.partition("\n\n")[0]
    assert evaluated.rpartition("\n\nAnswer")[2] == live.rpartition("\n\nAnswer")[2]
    assert abs(len(evaluated) - len(live)) < 200


def test_what_failed_is_listed_and_asked_again_by_the_next_run(evaluate: Run, questions: Path) -> None:
    broken = True

    def sometimes(request: Request) -> Reply | str:
        return RATE_LIMITED if broken and "Tarn pier leave?" in request.prompt else answer(request)

    with LoopbackServer(sometimes) as server:
        result = evaluate(questions, *PLAIN, "--concurrency", "2", url=server.openai_url)
        assert result.code == 1
        assert "2 steps failed and are not scored" in result.err
        failures = results()["failures"]
        assert [(row["id"], row["step"]) for row in failures] == [("3", "rag"), ("3", "long_context")]
        assert "RateLimitError" in failures[0]["error"]
        broken, before = False, len(server.book)
        assert evaluate(questions, *PLAIN, url=server.openai_url).code == 0
        assert len(server.book) == before + 2
    assert not results()["failures"]


KILLED = """
import sys
from pathlib import Path
from selfroute_workbench import cli
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(signal.SIGKILL, id="killed"),
        pytest.param(signal.SIGINT, id="interrupted", marks=pytest.mark.matrix),
    ],
)
def test_a_run_that_was_ended_goes_on_with_the_rest(
    evaluate: Run, questions: Path, end: signal.Signals, tmp_path: Path
) -> None:
    started: list[int] = []
    whole = ("--strategies", "long_context")

    def ending(request: Request) -> Reply | str:
        if len(server.book) == 3 and started:
            os.kill(started.pop(), end)
        return answer(request)

    with LoopbackServer(ending) as server:
        model = ["--model", "openai:gpt-4o-mini", "--base-url", server.openai_url, "--priced-as", "openai:gpt-4o-mini"]
        args = ["evaluate", str(questions), *whole, *model, "--concurrency", "1"]
        process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-c", f"import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n{KILLED}",
             *args],
            stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        )  # fmt: skip
        started.append(process.pid)
        _, said = process.communicate(timeout=60)
        assert process.returncode == (-signal.SIGKILL if end == signal.SIGKILL else 130)
        if end == signal.SIGINT:
            assert "are kept in evaluation: run the same command again to go on" in said
        before = len(server.book)
        result = evaluate(questions, *whole, url=server.openai_url)
        assert (result.code, len(server.book) - before) == (0, len(PLACES) - before + (end == signal.SIGKILL))
    assert ("on their way when a run was killed" in " ".join(result.err.split())) is (end == signal.SIGKILL)


def test_a_dry_run_estimates_tokens_and_asks_nothing(evaluate: Run, questions: Path) -> None:
    with LoopbackServer(answer) as server:
        dry = evaluate(questions, *PLAIN, "--dry-run", url=server.openai_url)
        assert (dry.code, len(server.book)) == (0, 0)
        evaluate(questions, *PLAIN, url=server.openai_url)
    calls, tokens, dollars = dry.out.partition("all ")[2].split("\n")[0].split()
    sent = sum(len(entry.request.prompt) for entry in server.book) // 4
    assert (calls, float(dollars) > 0) == ("10", True)
    assert abs(int(tokens.replace(",", "")) - sent) < 0.2 * sent


LONG = " ".join(f"Gull {n} of Haldon sat on the rail." for n in range(3_000))


def steered(request: Request) -> Reply | str:
    """Is never sure where it reads passages, and answers from whole documents."""
    if len(request.prompt) > len(LONG):
        return "seven"
    return "80 30\neight" if "two numbers" in request.prompt else "unanswerable"


def test_all_strategies_share_what_they_read(evaluate: Run, tmp_path: Path) -> None:
    text = f"{LONG} The ferry from Haldon pier leaves at seven. {LONG}"
    row = {"question": "When does the ferry from Haldon pier leave?", "answers": ["seven"], "document": text}
    (tmp_path / "long.jsonl").write_text(json.dumps(row) + "\n")
    with LoopbackServer(steered) as server:
        asked = ("long.jsonl", "--strategies", "all")
        dry = evaluate(*asked, "--dry-run", url=server.openai_url)
        result = evaluate(*asked, url=server.openai_url)
        paid = len(server.book)
        assert evaluate(*asked, url=server.openai_url).code == 0
    assert (result.code, paid, len(server.book)) == (0, 5, 5), result.err
    calls, tokens, _ = dry.out.partition("all ")[2].split("\n")[0].split()
    sent = sum(len(entry.request.prompt) for entry in server.book) // 4
    assert calls == "5"
    assert abs(int(tokens.replace(",", "")) - sent) < 0.2 * sent
    assert [(look["step"], look["confidence"]) for look in results()["looks"]] == [
        ("rag", None),
        ("sections", None),
        ("graded", 30),
        ("graded_sections", None),  # it declines there
        ("long_context", None),
    ]
    assert {row[-1] for row in results()["tables"][0]["rows"][1:]} == {"100.0"}


def test_the_cap_ends_the_run_and_the_next_one_goes_on(evaluate: Run, questions: Path) -> None:
    with LoopbackServer(lambda request: Reply(str(answer(request)), usage=True)) as server:
        result = evaluate(questions, *PLAIN, "--max-cost", "0.0009", "--concurrency", "1", url=server.openai_url)
        assert result.code == 1
        assert "The run ended early: the next reply could pass the cap of $0.0009" in result.err
        asked = len(server.book)
        assert 0 < asked < 10
        assert evaluate(questions, *PLAIN, url=server.openai_url).code == 0
        assert len(server.book) == 10


def test_another_temperature_is_another_model(evaluate: Run, questions: Path) -> None:
    with LoopbackServer(answer) as server:
        for temperature in ("0", "0.7", "0"):
            result = evaluate(questions, *PLAIN, "--temperature", temperature, url=server.openai_url)
            assert result.code == 0
    assert [entry.request.body["temperature"] for entry in server.book] == [0] * 10 + [0.7] * 10


def test_a_model_with_a_name_of_its_own_is_priced_as_what_it_is_said_to_be(evaluate: Run, questions: Path) -> None:
    priced = ["--priced-as", "openai:gpt-4o-mini", "--max-cost", "1"]
    with LoopbackServer(answer) as server:
        result = evaluate(questions, *PLAIN, *priced, url=server.openai_url, model="openai:house-model")
    assert result.code == 0, result.err
    costs = next(table for table in results()["tables"] if table["name"] == "costs")
    assert all(float(row[3]) > 0 for row in costs["rows"])


def test_credentials_and_keys_are_written_nowhere(
    evaluate: Run, questions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-indeed")
    with LoopbackServer(answer) as server:
        evaluate(questions, *PLAIN, "--limit", "1", "--out", "here", url=server.openai_url)
        address = server.openai_url.replace("http://", "http://me:hunter22secret@")
        evaluate(questions, *PLAIN, "--limit", "2", "--out", "here", url=address)
    assert server.book[0].request.headers["authorization"] == "Bearer sk-very-secret-indeed"
    assert results("here")["settings"]["base_url"] == server.openai_url
    files = [path for path in Path("here").rglob("*") if path.is_file()]
    assert {"looks.jsonl", "results.json", "results.csv", "report.html", "main.csv"} <= {path.name for path in files}
    assert not [path for path in files if re.search(rb"hunter22secret|very-secret", path.read_bytes())]


def test_a_capped_run_finishes_questions_of_all_data_sets(evaluate: Run, questions: Path) -> None:
    rows = [json.loads(line) for line in questions.read_text().splitlines()]
    for name in ("north", "south"):
        (questions.parent / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with LoopbackServer(answer) as server:
        capped = ["--max-cost", "0.0025", "--concurrency", "1"]
        evaluate("north.jsonl", "south.jsonl", *PLAIN, *capped, url=server.openai_url)
    done = {(row["dataset"], row["id"], row["step"]) for row in results()["looks"]}
    whole = {key[:2] for key in done if len([other for other in done if other[:2] == key[:2]]) == 2}
    assert {dataset for dataset, _ in whole} == {"north", "south"}
    assert len({key[:2] for key in done} - whole) <= 1


def test_a_wrong_key_ends_the_run_soon(evaluate: Run, questions: Path) -> None:
    rows = questions.read_text().splitlines()
    questions.write_text("".join(f"{row}\n" for row in rows * 8))
    with LoopbackServer(lambda _request: Reply("", status=401)) as server:
        result = evaluate(questions, "--concurrency", "2", url=server.openai_url)
    assert result.code == 1
    assert "the first 5 questions all failed" in result.err
    assert len(server.book) < 80


# --- a judge -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "judge",
    [
        ["--judge"],
        pytest.param(["--judge", "openai:gpt-4o"], marks=pytest.mark.matrix),
        pytest.param(["--judge=openai:gpt-4o"], marks=pytest.mark.matrix),
    ],
    ids=str,
)
def test_a_judge_is_asked_once_for_each_question_and_shown(evaluate: Run, questions: Path, judge: list[str]) -> None:
    Path("grades.jsonl").write_text('{"id": "1", "rag": 1, "long_context": 0.5}\n')
    # after --judge a file is a file, and an option an option
    given = [*judge, questions, *PLAIN] if len(judge) == 2 else [*PLAIN, *judge, questions]
    with LoopbackServer(and_judges) as server:
        result = evaluate(*given, "--grades", "grades.jsonl", "--tables", url=server.openai_url)
        assert evaluate(*given, "--grades", "grades.jsonl", "--tables", url=server.openai_url).out == result.out
    assert result.code == 0, result.err
    judging = [entry.request.model for entry in server.book if is_judging(entry.request.prompt)]
    assert judging == ["gpt-4o-mini" if judge == ["--judge"] else "gpt-4o"] * len(PLACES)
    assert len(server.book) == 3 * len(PLACES)
    assert result.has("Judged correctness, 5 questions", "The judge and the other grades")
    assert {row["judged"] for row in results()["looks"] if not row["declined"]} == {1.0}
    assert "How answers were judged" in Path("evaluation/report.html").read_text()


def test_a_judge_is_estimated_paid_for_and_capped(evaluate: Run, questions: Path) -> None:
    judge = ["--judge", "openai:house-judge", "--judge-priced-as", "openai:gpt-4"]
    with LoopbackServer(and_judges) as server:
        plain = evaluate(questions, *PLAIN, "--dry-run", url=server.openai_url)
        dry = evaluate(questions, *PLAIN, "--dry-run", *judge, url=server.openai_url)
        assert not server.book
        cost, dearer = (float(each.out.partition("all ")[2].split("\n")[0].split()[-1]) for each in (plain, dry))
        assert dearer > 2 * cost
        capped = evaluate(questions, *PLAIN, *judge, "--max-cost", "0.03", "--concurrency", "1", url=server.openai_url)
        assert capped.code == 1
        assert "could pass the cap of $0.03" in capped.err
        assert sum(is_judging(entry.request.prompt) for entry in server.book) < len(PLACES)
        assert evaluate(questions, *PLAIN, *judge, url=server.openai_url).code == 0
    assert len(server.book) == 3 * len(PLACES)


def test_a_judge_on_a_server_of_its_own(evaluate: Run, questions: Path) -> None:
    with LoopbackServer(answer) as server, LoopbackServer(and_judges) as other:
        judge = ["--judge", "openai:local", "--judge-base-url", other.openai_url]
        assert evaluate(questions, *PLAIN, *judge, url=server.openai_url).code == 0
    assert (len(server.book), len(other.book)) == (2 * len(PLACES), len(PLACES))
    assert all(is_judging(entry.request.prompt) for entry in other.book)


def test_what_the_judge_could_not_grade_is_a_failure_and_tried_again(evaluate: Run, questions: Path) -> None:
    broken = True

    def sometimes(request: Request) -> Reply | str:
        if not (is_judging(request.prompt) and broken):
            return and_judges(request)
        return "I am sure." if "Tarn" in request.prompt else RATE_LIMITED if "Brack" in request.prompt else "1: 1"

    with LoopbackServer(sometimes) as server:
        result = evaluate(questions, *PLAIN, "--judge", "--concurrency", "1", url=server.openai_url)
        assert result.code == 1
        assert {(row["step"], row["id"]) for row in results()["failures"]} == {("judge", "2"), ("judge", "3")}
        assert {row["id"] for row in results()["looks"] if row["judged"] is None} == {"2", "3"}
        broken, before = False, len(server.book)
        assert evaluate(questions, *PLAIN, "--judge", url=server.openai_url).code == 0
    assert len(server.book) == before + 2
    assert not results()["failures"]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["nobody"], "nobody cannot be read"),
        (["ferries.jsonl", "other/ferries.jsonl"], "question '1' of 'ferries' is there twice"),
        (["ferries.jsonl", "--max-cost", "1", *UNPRICED], "no price is known"),
        (["ferries.jsonl", "--k", "0"], "Invalid value for '--k'"),
        (["ferries.jsonl", "--strategies", "rag,magic"], "'magic'"),
        (["ferries.jsonl", "--base-url", "http://127.0.0.1:9"], "needs --model"),
        (["ferries.jsonl", "--model", "openai:gpt-4o-mini"], "OPENAI_API_KEY"),
        (["empty.jsonl"], "holds no question"),
        (["bare.jsonl"], "has no document"),
        (["path.jsonl"], "path.jsonl:1: document is the text itself, and '0.txt' is a file's name or one short line"),
        (["line.jsonl"], "write document_file for the path of a file"),
        (["ferries.jsonl", "--judge"], "the extractive reader cannot judge"),
        (["--judge", "ferries.jsonl"], "the extractive reader cannot judge"),
        (["ferries.jsonl", "--judge", "nobody:x"], "no provider 'nobody'"),
        (["ferries.jsonl", "--judge-priced-as", "openai:gpt-4o"], "--judge-priced-as needs --judge"),
        (["ferries.jsonl", "--grades", "grades.jsonl"], "--grades needs --judge"),
        (["ferries.jsonl", *HOUSE_JUDGE, "--grades", "none.jsonl"], "none.jsonl cannot be read"),
    ],
)
def test_what_cannot_work_is_one_line_and_exit_code_2(
    evaluate: Run, questions: Path, args: Sequence[str], says: str
) -> None:
    Path("grades.jsonl").write_text('{"id": "1", "rag": 1}\n')
    Path("empty.jsonl").write_text("")
    Path("other").mkdir()
    long = "It is now. " * 20
    Path("other/ferries.jsonl").write_text(json.dumps({"question": "When?", "answers": ["now"], "document": long}))
    for name, text in (("bare", None), ("path", "0.txt"), ("line", "It leaves at noon.")):
        Path(f"{name}.jsonl").write_text(json.dumps({"question": "Who?", "answers": ["I"], "document": text}))
    result = evaluate(*args)
    assert (result.code, says in result.err) == (2, True), result.err
    assert result.err.strip().splitlines()[-1].startswith("selfroute: ")


# --- calibrate -----------------------------------------------------------------------------------------------------


@pytest.fixture
def rich(tmp_path: Path) -> Path:
    """A folder with an evaluation of a world in which sections pay."""
    evaluated(made_up(120, 20)).save(tmp_path / "rich")
    return tmp_path / "rich"


def test_calibrate_writes_options_and_says_what_they_bring_and_what_to_paste(run: Run, rich: Path) -> None:
    ran = run("calibrate", rich, "--out", "my options.json")
    assert (ran.code, ran.err) == (0, "")
    options = json.loads(Path("my options.json").read_text())
    assert options == Evaluation.load(rich).options()
    assert options == {"answerability": "graded", "doubt_below": 50, "stop_below": 20, "sections": 4000}
    for said in (
        "Graded Self-Route with sections: {",
        "On 120 questions on 20 documents, each tested without its document: quality 100.0 for 20",
        "over RAG",
        "over the long context, no difference shown",
        "**json.load(open('my options.json')))",
    ):
        assert said in ran.words


def test_the_budget_and_the_price_of_wrong_answers_are_passed_on(run: Run, rich: Path) -> None:
    ran = run("calibrate", rich, "--token-share", "0.15", "--price-of-wrong", "3", "--json")
    assert ran.json == Evaluation.load(rich).options(0.15, 3) == json.loads(Path("options.json").read_text())
    assert "wrong answers at a price of 3" in run("calibrate", rich, "--price-of-wrong", "3").words
    assert "No rule stays within 5 %" in run("calibrate", rich, "--token-share", "0.05").words


def test_what_cannot_be_calibrated_by_is_refused_in_a_line_that_says_what_to_do(
    run: Run, rich: Path, tmp_path: Path
) -> None:
    def folder(name: str, text: str | None, *, replies: bool = False) -> Path:
        (tmp_path / name).mkdir()
        if text is not None:
            (tmp_path / name / "results.json").write_text(text)
        if replies:
            (tmp_path / name / "looks.jsonl").write_text("{}\n")
        return tmp_path / name

    saved = json.loads((rich / "results.json").read_text())
    saved["looks"] = [look for look in saved["looks"] if look["step"] == "rag"]
    calls: dict[str, tuple[list[str | Path], str]] = {
        "no folder": ([tmp_path / "nowhere"], "selfroute evaluate --out"),
        "an empty folder": ([folder("empty", None)], "holds no evaluation"),
        "an unfinished run": ([folder("begun", None, replies=True)], "run it again to go on"),
        "no JSON": ([folder("text", "{")], "evaluate again"),
        "other JSON": ([folder("list", "[1]")], "evaluate again"),
        "other keys": ([folder("keys", '{"results": []}')], "evaluate again"),
        "one strategy": ([folder("alone", json.dumps(saved))], "evaluate rag, self_route and long_context"),
        "a share above 1": ([rich, "--token-share", "30"], "token_share"),
        "a negative price": ([rich, "--price-of-wrong", "-1"], "price_of_wrong"),
        "a file that cannot be": ([rich, "--out", tmp_path / "no" / "where.json"], "a folder that exists"),
    }
    for name, (args, said) in calls.items():
        ran = run("calibrate", *args)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), name
        assert said in ran.err, name
