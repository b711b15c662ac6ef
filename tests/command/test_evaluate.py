"""`selfroute evaluate`: what it asks, prints and keeps, and how it ends."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from command_parts import Result, Run
from judge_parts import grade, is_judging
from loopback import RATE_LIMITED, LoopbackServer, Reply, Request

pytestmark = pytest.mark.usefixtures("frozen")

UNPRICED = ["--model", "openai:nobody-knows-me", "--base-url", "http://127.0.0.1:9/v1"]
HOURS = ["seven", "eight", "nine", "ten", "noon"]
PLACES = ["Haldon", "Brack", "Tarn", "Skerry", "Oban Head"]
EACH = 4  # replies a question: the draft with numbers, the document, the plain draft, and that of 20 passages


def document(number: int) -> str:
    """A text of some 900 words in which one sentence, far from all others, tells when the ferry leaves."""
    rare = [f"{chr(97 + n % 26)}{chr(97 + n // 26)}{chr(97 + n * 7 % 26)}{chr(97 + n * 11 % 26)}" for n in range(100)]
    filler, more = (
        " ".join(f"{bird} {n} of {PLACES[number]} sat on the {word} rail." for n, word in enumerate(rare))
        for bird in ("Gull", "Tern")
    )
    return f"{filler} The ferry from {PLACES[number]} pier leaves at {HOURS[number]}. {more}"


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
    def call(*args: str | Path, url: str | None = None, model: str = "openai:gpt-5-mini") -> Result:
        asked = ["--model", model, "--base-url", url] if url else []
        if model == "openai:gpt-5-mini" and url:
            asked += ["--priced-as", model]  # the server's address is no provider's
        return run("evaluate", *args, *asked)

    return call


def results(folder: str = "evaluation") -> dict[str, Any]:
    content: dict[str, Any] = json.loads((Path(folder) / "results.json").read_text())
    return content


def test_evaluate_asks_once_and_shows(evaluate: Run, questions: Path) -> None:
    with LoopbackServer(answer) as server:
        first = evaluate(questions, url=server.openai_url)
        again = evaluate(questions, url=server.openai_url)
        as_json = evaluate(questions, "--json", url=server.openai_url)
    asked = EACH * len(PLACES)
    assert (first.code, len(server.book)) == (0, asked), first.err
    assert again.out == first.out
    assert f"{asked} replies were asked for, 0 were kept" in first.err
    assert f"0 replies were asked for, {asked} were kept" in again.err
    assert {row["score"] for row in results()["looks"] if row["step"] == "long_context"} == {1.0}
    lines = [line for line in first.out.splitlines() if line.strip()]
    assert first.words.startswith("Cannot tell whether yours pays: 5 questions on 5 documents are too few; ask at")
    assert " times RAG's ($" in first.words
    names = ["yours", "RAG", "RAG, 20 passages", "the paper's rule", "long context"]
    assert [line.split("  ")[0] for line in lines[-6:-1]] == names
    assert lines[-1].startswith("evaluation/report.html: the report")
    assert as_json.json["verdict"]["certainty"] == "cannot tell"
    assert as_json.json["settings"]["model"] == "openai:gpt-5-mini"
    assert as_json.json["tables"][0]["name"] == "main"


def same_prompt(evaluated: str, live: str) -> bool:
    """Whether two prompts are the same but for which of many sentences that are nearly alike were found."""
    same = evaluated.partition("\n\n")[0] == live.partition("\n\n")[0]
    ends = [each.rpartition("\n\nPassages end.")[2] for each in (evaluated, live)]
    return same and ends[0][-200:] == ends[1][-200:] and abs(len(evaluated) - len(live)) < 200


def test_evaluate_prompts_are_those_of_ask(evaluate: Run, run: Run, questions: Path) -> None:
    with LoopbackServer(answer) as server:
        evaluate(questions, "--limit", "1", url=server.openai_url)
        asked = "When does the ferry from Haldon pier leave?"
        model = ["--model", "openai:gpt-5-mini", "--base-url", server.openai_url]
        before = len(server.book)
        run("ask", "0.txt", "-q", asked, *model)
    evaluated, live = (server.book[at].request.prompt.replace("0.txt", "document") for at in (0, before))
    assert same_prompt(evaluated, live)


SETTINGS: dict[tuple[str, ...], dict[str, Any]] = {
    (): {},
    ("--paper",): {"answerability": "text", "sections": None, "max_documents": None},
    ("--sections", "none"): {"sections": None},
    ("--sections", "1000,4000", "--max-documents", "0"): {"sections": [1_000, 4_000], "max_documents": 0},
}


@pytest.mark.parametrize("setting", SETTINGS, ids=" ".join)
@pytest.mark.parametrize("embeddings", [(), ("--embeddings", "any")], ids=["words", "vectors"])
def test_evaluate_one_store(
    evaluate: Run, run: Run, questions: Path, setting: tuple[str, ...], embeddings: tuple[str, ...]
) -> None:
    """All files in one store, as `ask` has them, and with its setting; neither questions nor results are documents."""
    folder = Path("company")
    folder.mkdir()
    for path in (questions, *Path().glob("?.txt")):
        path.rename(folder / path.name)
    given = (*embeddings, *setting)
    with LoopbackServer(answer) as server:
        done = evaluate(folder, folder / questions.name, *given, "--out", folder, url=server.openai_url)
        assert done.code == 0, done.err
        paid = len(server.book)
        evaluate(folder, folder / questions.name, *given, "--out", folder, url=server.openai_url)
        assert len(server.book) == paid, "results are no documents"
        Path("out").mkdir()
        for path in folder.iterdir():
            if path.suffix != ".txt":
                path.rename(Path("out", path.name))
        model = ["--model", "openai:gpt-5-mini", "--base-url", server.openai_url]
        live = run("ask", folder, "-q", "When does the ferry from Tarn pier leave?", *given, "--json", *model).json
    found = results("out")
    assert found["settings"]["options"]["yours"] == SETTINGS[setting]
    yours = [look for look in found["looks"] if look["strategy"] == "yours" and look["id"] == "3"]
    assert (yours[-1]["answer"], yours[-1]["step"]) == (live["answer"], live["route"])
    tokens = sum(look["input_tokens"] + look["output_tokens"] for look in yours)
    assert tokens == live["usage"]["total_tokens"]
    assert len({one["document"] for one in found["questions"]}) == len(PLACES)


def test_evaluate_one_store_without_documents(evaluate: Run, questions: Path) -> None:
    rows = [json.loads(line) for line in questions.read_text().splitlines()]
    questions.write_text("".join(json.dumps({**row, "document_file": None}) + "\n" for row in rows))
    with LoopbackServer(answer) as server:
        done = evaluate(*sorted(Path().glob("?.txt")), questions, url=server.openai_url)
        assert done.code == 0, done.err
    notes = results()["tables"][0]["notes"]
    assert any("5 questions do not say which document they are about, so each counts by itself" in one for one in notes)


def test_evaluate_says_first_what_f1_misses(evaluate: Run, questions: Path) -> None:
    warned = "F1 calls right answers in other words wrong"
    refused = evaluate(questions, "--max-cost", "1", *UNPRICED)
    assert "no price is known" in refused.err.splitlines()[-1]
    assert [line for line in refused.err.splitlines() if line.startswith(warned) and "--judge openai:" in line]
    with LoopbackServer(and_judges) as server:
        assert warned not in evaluate(questions, "--judge", url=server.openai_url).err


def test_evaluate_failures_are_retried(evaluate: Run, questions: Path) -> None:
    broken = True

    def sometimes(request: Request) -> Reply | str:
        return RATE_LIMITED if broken and "Tarn pier leave?" in request.prompt else answer(request)

    with LoopbackServer(sometimes) as server:
        result = evaluate(questions, url=server.openai_url)
        assert result.code == 1
        assert "5 failed and are not scored" in result.err
        failures = results()["failures"]
        assert {(row["id"], row["strategy"]) for row in failures} == {
            ("3", strategy) for strategy in ("yours", "rag", "rag_20", "paper", "long_context")
        }
        assert "RateLimitError" in failures[0]["error"]
        broken, before = False, len(server.book)
        assert evaluate(questions, url=server.openai_url).code == 0
        assert len(server.book) == before + EACH
    assert not results()["failures"]


def test_evaluate_cap(evaluate: Run, questions: Path) -> None:
    with LoopbackServer(lambda request: Reply(str(answer(request)), usage=True)) as server:
        result = evaluate(questions, "--max-cost", "0.0009", url=server.openai_url)
        assert result.code == 1
        assert "The run ended early: the next reply could pass the cap of $0.0009" in result.err
        asked, every = len(server.book), EACH * len(PLACES)
        assert 0 < asked < every
        assert evaluate(questions, url=server.openai_url).code == 0
        assert len(server.book) == every


def test_evaluate_writes_no_keys(evaluate: Run, questions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-indeed")
    with LoopbackServer(answer) as server:
        evaluate(questions, "--limit", "1", "--out", "here", url=server.openai_url)
        address = server.openai_url.replace("http://", "http://me:hunter22secret@")
        evaluate(questions, "--limit", "2", "--out", "here", url=address)
    assert server.book[0].request.headers["authorization"] == "Bearer sk-very-secret-indeed"
    assert results("here")["settings"]["base_url"] == server.openai_url
    files = [path for path in Path("here").rglob("*") if path.is_file()]
    assert {"looks.jsonl", "results.json", "results.csv", "report.html"} <= {path.name for path in files}
    assert not [path for path in files if re.search(rb"hunter22secret|very-secret", path.read_bytes())]


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
def test_evaluate_judge(evaluate: Run, questions: Path, judge: list[str]) -> None:
    given = [*judge, questions]  # after --judge a file is a file
    with LoopbackServer(and_judges) as server:
        result = evaluate(*given, url=server.openai_url)
        assert evaluate(*given, url=server.openai_url).out == result.out
    assert result.code == 0, result.err
    judging = [entry.request.model for entry in server.book if is_judging(entry.request.prompt)]
    assert judging == ["gpt-5-mini" if judge == ["--judge"] else "gpt-4o"] * len(PLACES)
    assert len(server.book) == (EACH + 1) * len(PLACES)
    assert result.has("Judged correctness, 5 questions")
    assert {row["judged"] for row in results()["looks"] if not row["declined"]} == {1.0}
    assert "The judge&#x27;s prompt" in Path("evaluation/report.html").read_text()


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["nobody"], "there are no questions: name a JSONL file of them"),
        (["nobody.jsonl"], "nobody.jsonl cannot be read"),
        (["nobody", "ferries.jsonl"], "nobody: there is no such file"),
        (["ferries.jsonl", "--paper", "--sections", "none"], "--paper is a setting of its own"),
        (["ferries.jsonl", "--sections", "some"], "it takes auto, a number of tokens"),
        (["ferries.jsonl", "other/ferries.jsonl"], "question '1' of 'ferries' is there twice"),
        (["ferries.jsonl", "--max-cost", "1", *UNPRICED], "no price is known"),
        (["ferries.jsonl", "--k", "0"], "Invalid value for '--k'"),
        (["ferries.jsonl", "--base-url", "http://127.0.0.1:9"], "needs --model"),
        (["ferries.jsonl", "--model", "openai:gpt-5-mini"], "OPENAI_API_KEY"),
        (["empty.jsonl"], "holds no question"),
        (["bare.jsonl"], "has no document"),
        (["path.jsonl"], "path.jsonl:1: document is the text itself, and '0.txt' is a file's name or one short line"),
        (["line.jsonl"], "write document_file for the path of a file"),
        (["ferries.jsonl", "--judge"], "the extractive reader cannot judge"),
        (["--judge", "ferries.jsonl"], "the extractive reader cannot judge"),
        (["ferries.jsonl", "--judge", "nobody:x"], "no provider 'nobody'"),
    ],
)
def test_evaluate_usage_errors(evaluate: Run, questions: Path, args: Sequence[str], says: str) -> None:
    Path("empty.jsonl").write_text("")
    Path("other").mkdir()
    long = "It is now. " * 20
    Path("other/ferries.jsonl").write_text(json.dumps({"question": "When?", "answers": ["now"], "document": long}))
    for name, text in (("bare", None), ("path", "0.txt"), ("line", "It leaves at noon.")):
        Path(f"{name}.jsonl").write_text(json.dumps({"question": "Who?", "answers": ["I"], "document": text}))
    result = evaluate(*args)
    assert (result.code, says in result.err) == (2, True), result.err
    assert result.err.strip().splitlines()[-1].startswith("selfroute: ")
