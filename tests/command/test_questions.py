"""`selfroute questions`: what is kept, what is dropped and why, and how a run ends."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from command_parts import Result, Run
from loopback import LoopbackServer, Reply, Request
from selfroute_workbench import cli
from selfroute_workbench.demo.corpus import load_documents
from selfroute_workbench.evaluation.questions import load_questions
from selfroute_workbench.evaluation.writing import Written, places_of, read
from writing_parts import GUESSED, KNOWN, ScriptedWriter, is_writing

pytestmark = pytest.mark.usefixtures("frozen")

MODEL = ["--model", "openai:gpt-5-mini", "--priced-as", "openai:gpt-5-mini"]


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """The documents that come with selfroute, as files."""
    paths = []
    for name, text in load_documents().items():
        paths.append(tmp_path / f"{name}.txt")
        paths[-1].write_text(text)
    return paths


@pytest.fixture
def run(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("OPENAI_API_KEY", "none")

    def call(*args: str | Path, server: LoopbackServer | None = None) -> Result:
        return run("questions", *args, *([*MODEL, "--base-url", server.openai_url] if server else []))

    return call


def rows_of(path: str | Path = "questions.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def test_questions_keep_only_evidence(run: Run, files: list[Path]) -> None:
    with LoopbackServer(ScriptedWriter(mistakes=True)) as server:
        result = run(*files, "--n", "20", server=server)
    assert result.code == 0, result.err
    rows = rows_of()
    assert Counter(row["kind"] for row in rows) == {"local": 9, "steps": 4, "whole": 3, "unanswerable": 4}
    assert len({row["document_file"] for row in rows}) == len(files)
    for row, question in zip(rows, load_questions("questions.jsonl"), strict=True):
        assert len(row["evidence"]) >= {"local": 1, "unanswerable": 0}.get(row["kind"], 2)
        assert all(each in (question.document or "") for each in row["evidence"])
        assert bool(question.answers) is (row["kind"] != "unanswerable")
    assert not {KNOWN, GUESSED, "Who sank the Marigold?"} & {row["question"] for row in rows}
    for reason in (
        "asked before in nearly the same words",
        "its quotes do not stand in the document",
        "not in the form that was asked for",
        "the model answers it without the document",
        "the model answers it from the document",
    ):
        assert f", {reason}." in result.words


def test_questions_can_be_evaluated(run: Run, files: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    with LoopbackServer(ScriptedWriter()) as server:
        assert run(*files, "--n", "4", "--unanswerable", "0.25", server=server).code == 0
        code = cli.main(["evaluate", "questions.jsonl", *MODEL, "--base-url", server.openai_url])
    assert (code, len(rows_of())) == (0, 4)
    assert "Cannot tell whether yours pays" in capsys.readouterr().out


def test_questions_cap(run: Run, files: list[Path]) -> None:
    asked = (*files, "--n", "8")
    with LoopbackServer(ScriptedWriter()) as server:
        capped = run(*asked, "--max-cost", "0.001", server=server)
        assert capped.code == 1
        assert "It ended early: the next reply could pass the cap of $0.001" in capped.words
        assert run(*asked, "--max-cost", "1", server=server).code == 0
        written, paid = rows_of(), len(server.book)
        again = run(*asked, server=server)
    assert (len(written), len(server.book), rows_of()) == (8, paid, written)
    assert f"0 replies were asked for, {paid} were kept from earlier runs; $0." in again.err


def test_questions_failed_calls(run: Run, files: list[Path]) -> None:
    writer = ScriptedWriter()

    def answer(request: Request) -> Reply | str:
        if "Each needs the whole" in request.prompt:
            return Reply(text="", finish="content_filter")
        if "Each needs two" in request.prompt:
            return "I would rather write a poem."
        return writer(request)

    with LoopbackServer(answer) as server:
        result = run(*files, "--n", "10", server=server)
    assert result.code == 1
    assert Counter(row["kind"] for row in rows_of()) == {"local": 5, "unanswerable": 2}
    for said in ("content_filter", "not in the form that was asked for", "Fewer than wanted came of four rounds"):
        assert said in result.words


def test_questions_far_too_many(run: Run, files: list[Path]) -> None:
    writer = ScriptedWriter()

    def answer(request: Request) -> str:
        document = request.prompt.partition("<document>\n")[2].rpartition("\n</document>")[0]
        return writer.written(document, 60, writer.kind_in(request.prompt)) if document else "unanswerable"

    with LoopbackServer(answer) as server:
        assert run(files[0], "--n", "8", server=server).code == 0
    assert (len(rows_of()), len(server.book) < 3 * 8) == (8, True)


def test_questions_nothing_usable(run: Run, files: list[Path]) -> None:
    with LoopbackServer(lambda _: "I cannot help with that.") as server:
        result = run(files[0], "--n", "8", server=server)
    assert (result.code, len(server.book), Path("questions.jsonl").exists()) == (1, 4, False)
    assert "no question of the first round could be kept" in result.words


def test_questions_long_document(run: Run, files: list[Path]) -> None:
    writer, prompts = ScriptedWriter(), list[str]()

    def answer(request: Request) -> str:
        prompts.append(request.prompt)
        return writer(request)

    with LoopbackServer(answer) as server:
        assert run(files[0], "--n", "8", "--window", "4000", server=server).code == 0
    text = files[0].read_text()
    asked = {prompt.partition("<document>\n")[2].rpartition("\n</document>")[0] for prompt in prompts} - {""}
    assert len(asked) > 1
    assert all(part in text and len(part) < len(text) / 2 for part in asked)


def test_questions_usage_errors(run: Run, files: list[Path]) -> None:
    with LoopbackServer(lambda _: Reply(status=401, error={"message": "Incorrect API key provided."})) as server:
        calls = {
            "name one, for example --model openai:gpt-5-mini": run(files[0]),
            "save the standard input in a file": run("-", server=server),
            "needs a package that is not installed: pip install": run(files[0], "--model", "groq:llama"),
        }
        assert server.book == []
        calls["Incorrect API key provided."] = run(*files, "--n", "8", server=server)
        Path("other.jsonl").write_text("mine")
        paid = len(server.book)
        calls["other.jsonl is there already"] = run(files[0], "--n", "2", "--out", "other.jsonl", server=server)
        assert (len(server.book), Path("other.jsonl").read_text()) == (paid, "mine")
    for message, result in calls.items():
        assert result.code > 0
        assert message in result.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("reply", "answers"),
    [
        ('{"questions": [{"question": "Q?", "answer": "A", "quotes": ["The ferry sank."]}]}', ["A"]),
        ('```\n[{"question": "Q?", "answer": 1987, "quotes": ["the “ferry”  sank"]}]\n```', []),
        ('[{"question": "Q?", "answer": 1987, "quotes": ["The\\nferry sank"]}]', ["1987"]),
        ('[{"question": "Q?", "answer": "A", "quotes": ["ferry", "The", ""]}, {}]', []),
        ('[{"question": "\\ud800", "answer": "A", "quotes": ["The ferry sank."]}]', []),
        ('[{"question": ["Q?"], "answer": true, "quotes": {"text": "The ferry sank."}}, 1, null]', []),
        ('{"questions": "none"}', []),
        ("[" * 100_000 + "]", []),
    ],
)
def test_read_reply(reply: str, answers: list[str]) -> None:
    found = list(read(reply, "local", "doc.txt", "The ferry sank. A {brace}, and no more."))
    assert [each.answer for each in found if isinstance(each, Written)] == answers
    assert found


@pytest.mark.parametrize(
    ("quotes", "found"),
    [
        (["He said 'no' - twice."], ["He said “no” — twice"]),
        (["twice.\n\nThen he  left"], ["twice. Then he left"]),
        (["Then he left", "he left, alone"], ["Then he left"]),  # none over another
        (["left"], []),
        (["会议的主席是林女士。"], ["会议的主席是林女士。"]),
        (["nowhere to be found"], []),
    ],
)
def test_places_of_quotes(quotes: list[str], found: list[str]) -> None:
    text = "He said “no” — twice. Then he left, alone. 会议的主席是林女士。"
    assert [text[start:end] for start, end in places_of(quotes, text)] == found


def test_questions_known_in_unspaced_script(run: Run, tmp_path: Path) -> None:
    (tmp_path / "zh.txt").write_text("会议的主席是林女士。渔船共有四十二艘。")
    rows = [
        {"question": "会议的主席是谁？", "answer": "林女士", "quotes": ["会议的主席是林女士。"]},
        {"question": "渔船共有多少艘？", "answer": "四十二", "quotes": ["渔船共有四十二艘。"]},
    ]

    def answer(request: Request) -> str:
        if is_writing(request):
            return json.dumps(rows)
        return "是林女士。" if "主席" in request.prompt else "unanswerable"

    with LoopbackServer(answer) as server:
        run("zh.txt", "--n", "2", "--unanswerable", "0", server=server)
    assert [row["answers"] for row in rows_of()] == [["四十二"]]
