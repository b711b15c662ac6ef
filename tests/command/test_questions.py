"""`selfroute questions`: what is kept, what is dropped and why, and how a run ends."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from command_parts import Result, Run
from loopback import LoopbackServer, Reply, Request
from selfroute.usage.tokens import count_tokens
from selfroute_workbench import cli
from selfroute_workbench.demo.corpus import load_documents
from selfroute_workbench.evaluation.metrics import set_f1
from selfroute_workbench.evaluation.questions import load_questions
from selfroute_workbench.evaluation.writing.files import review
from selfroute_workbench.evaluation.writing.writer import _both_ends
from selfroute_workbench.evaluation.writing.written import Source, Written, is_known, read
from writing_parts import GUESSED, KNOWN, ScriptedWriter, is_writing

pytestmark = pytest.mark.usefixtures("frozen")

MODEL = ["--model", "openai:gpt-4o-mini", "--priced-as", "openai:gpt-4o-mini"]


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


def test_forty_questions_are_written_about_the_shipped_documents_and_every_quote_stands_in_them(
    run: Run, files: list[Path]
) -> None:
    with LoopbackServer(ScriptedWriter(mistakes=True)) as server:
        result = run(*files, "--n", "40", server=server)
    assert result.code == 0, result.err
    rows = rows_of()
    assert Counter(row["kind"] for row in rows) == {"local": 17, "steps": 9, "whole": 6, "unanswerable": 8}
    assert len({row["document_file"] for row in rows}) == len(files)
    for row, question in zip(rows, load_questions("questions.jsonl"), strict=True):
        assert question.document == Path(row["document_file"]).read_text(encoding="utf-8")
        least = {"local": 1, "unanswerable": 0}.get(row["kind"], 2)
        assert len(row["quotes"]) >= least
        assert all(question.document[quote["start"] : quote["end"]] == quote["text"] for quote in row["quotes"])
        assert bool(question.answers) is (row["kind"] != "unanswerable")
        others = [each["question"] for each in rows if each != row and each["document_file"] == row["document_file"]]
        numbers = re.findall(r"\d+", row["question"])  # with other numbers in it, it is another question
        same = [each for each in others if set(re.findall(r"\d+", each)) == set(numbers)]
        assert not same or set_f1(row["question"], same) < 0.8
    assert not {KNOWN, GUESSED, "Who sank the Marigold?"} & {row["question"] for row in rows}
    for reason in (
        "asked before in nearly the same words",
        "its quotes do not stand in the document",
        "not in the form that was asked for",
        "the model answers it without the document",
        "the model answers it from the document",
    ):
        assert f", {reason}." in result.words


@pytest.mark.matrix
def test_what_was_written_can_be_evaluated(run: Run, files: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    with LoopbackServer(ScriptedWriter()) as server:
        assert run(*files, "--n", "4", "--unanswerable", "0.25", server=server).code == 0
        code = cli.main(["evaluate", "questions.jsonl", *MODEL, "--base-url", server.openai_url])
    assert (code, len(rows_of())) == (0, 4)
    assert "Cannot tell which strategy is best" in capsys.readouterr().out


@pytest.mark.matrix
def test_a_run_that_is_killed_goes_on_and_pays_nothing_twice(run: Run, files: list[Path], tmp_path: Path) -> None:
    with LoopbackServer(ScriptedWriter()) as server:
        assert run(*files, "--n", "8", "--out", "whole.jsonl", "--concurrency", "1", server=server).code == 0
        whole = len(server.book)
    writer = ScriptedWriter()
    seen: list[str] = []

    def until_killed(request: Request) -> str:
        seen.append(request.prompt)
        if len(seen) == 4:
            killed.kill()
        return writer(request)

    with LoopbackServer(until_killed) as server:
        command = ["questions", *map(str, files), "--n", "8", *MODEL, "--base-url", server.openai_url]
        program = "import sys; from selfroute_workbench.cli import main; sys.exit(main(sys.argv[1:]))"
        killed = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-c", program, *command, "--concurrency", "1"], cwd=tmp_path, stderr=subprocess.DEVNULL
        )
        assert killed.wait(120) == -signal.SIGKILL
        assert run(*files, "--n", "8", "--concurrency", "1", server=server).code == 0
    assert len(rows_of()) == 8
    twice = Counter(seen)
    assert sum(twice.values()) - len(twice) <= 1  # the one that was on its way
    assert len(seen) <= whole + 1


def test_a_dry_run_asks_nothing_the_cap_ends_a_run_and_the_next_one_goes_on(run: Run, files: list[Path]) -> None:
    asked = (*files, "--n", "8")
    with LoopbackServer(ScriptedWriter()) as server:
        dry = run(*asked, "--dry-run", server=server)
        assert (dry.code, server.book, "writing" in dry.out) == (0, [], True)
        assert not Path("questions.jsonl").exists()
        capped = run(*asked, "--max-cost", "0.001", server=server)
        assert capped.code == 1
        assert "It ended early: the next reply could pass the cap of $0.001" in capped.words
        assert run(*asked, "--max-cost", "1", server=server).code == 0
        written, paid = rows_of(), len(server.book)
        again = run(*asked, server=server)
    assert (len(written), len(server.book), rows_of()) == (8, paid, written)
    assert f"0 replies were asked for, {paid} were kept from earlier runs; $0.0" in again.err


@pytest.mark.matrix
def test_calls_that_fail_cost_their_questions_and_no_others(run: Run, files: list[Path]) -> None:
    writer = ScriptedWriter()

    def answer(request: Request) -> Reply | str:
        if "Each needs the whole" in request.prompt and "Harbour" not in request.prompt:
            return Reply(text="", finish="content_filter")
        if "Each needs two" in request.prompt:
            return "I would rather write a poem."
        return writer(request)

    with LoopbackServer(answer) as server:
        result = run(*files, "--n", "10", server=server)
    assert result.code == 1
    kinds = Counter(row["kind"] for row in rows_of())
    assert (kinds["local"], kinds["steps"], kinds["unanswerable"]) == (5, 0, 2)
    text = result.words
    assert "content_filter" in text
    assert "not in the form that was asked for" in text
    assert "Fewer than wanted came of four rounds" in text
    assert "Failed: " in text


def test_a_reply_with_far_too_many_questions_costs_no_more_checks(run: Run, files: list[Path]) -> None:
    writer = ScriptedWriter()

    def answer(request: Request) -> str:
        document = request.prompt.partition("<document>\n")[2].rpartition("\n</document>")[0]
        return writer.written(document, 60, writer.kind_in(request.prompt)) if document else "unanswerable"

    with LoopbackServer(answer) as server:
        assert run(files[0], "--n", "8", server=server).code == 0
    assert len(rows_of()) == 8
    assert len(server.book) < 3 * 8


def test_a_model_that_writes_nothing_usable_is_not_asked_again_and_again(run: Run, files: list[Path]) -> None:
    with LoopbackServer(lambda _: "I cannot help with that.") as server:
        result = run(files[0], "--n", "8", server=server)
    assert (result.code, len(server.book), Path("questions.jsonl").exists()) == (1, 4, False)
    assert "no question of the first round could be kept" in result.words


@pytest.mark.parametrize(
    ("reply", "answers"),
    [
        ('{"questions": [{"question": "Q?", "answer": "A", "quotes": ["The ferry sank."]}]}', ["A"]),
        ('[{"question": "Q?", "answer": 1987, "quotes": "The ferry sank."}]', ["1987"]),
        ('[{"question": "Q?", "answer": "A", "quotes": ["the  ferry sank"]}, {"question": "cut o', []),
        ('[{"question": "Q?", "answer": "A", "quotes": ["The\\nferry sank"]}, {"question": "cut o', ["A"]),
        ('[{"question": "{x} \\ud800", "answer": "{0}", "quotes": ["A {brace}"]}]', ["{0}"]),
        (f'[{{"answer": {"1" * 5_000}}}, {{"question": "Q?", "answer": "A", "quotes": ["The ferry sank."]}}]', ["A"]),
        ('[{"question": "Q?", "answer": "A", "quotes": ["ferry", "The", ""]}]', []),
        ('{"questions": "none"}', []),
        ('{"a":' * 2_000, []),
        ('[{"question": ["Q?"], "answer": true, "quotes": {"text": "The ferry sank."}}]', []),
    ],
)
def test_questions_are_read_from_whatever_form_models_give_them(reply: str, answers: list[str]) -> None:
    source = Source("doc.txt", "The ferry sank. A {brace}, and no more.")
    read_from = [each for each in read(reply, kind="local", source=source) if isinstance(each, Written)]
    assert [each.answer for each in read_from] == answers
    for each in read_from:
        each.question.encode()
        assert all(source.text[quote.start : quote.end] == quote.text for quote in each.quotes)


def test_a_document_longer_than_the_window_is_read_in_parts(run: Run, files: list[Path]) -> None:
    writer, prompts = ScriptedWriter(), list[str]()

    def answer(request: Request) -> str:
        prompts.append(request.prompt)
        return writer(request)

    with LoopbackServer(answer) as server:
        assert run(files[0], "--n", "8", "--window", "4000", server=server).code == 0
    text = files[0].read_text()
    asked = [prompt.partition("<document>\n")[2].rpartition("\n</document>")[0] for prompt in prompts]
    parts = {part for part in asked if part and part in text}
    assert len(parts) > 1
    assert all(len(part) < len(text) / 2 for part in parts)
    assert all(text[quote["start"] : quote["end"]] == quote["text"] for row in rows_of() for quote in row["quotes"])


def test_what_cannot_work_is_one_line_and_pays_for_little(run: Run, files: list[Path]) -> None:
    model = "a language model has to write the questions: name one, for example --model openai:gpt-4o-mini"
    with LoopbackServer(lambda _: Reply(status=401, error={"message": "Incorrect API key provided."})) as server:
        calls = {
            model: run(files[0]),
            "to write one about documents, add --model": run(files[0], "--review"),
            "Incorrect API key provided.": run(*files, "--n", "8", server=server),
        }
        assert len(server.book) <= 12
        Path("other.jsonl").write_text("mine")
        paid = len(server.book)
        calls["other.jsonl is there already"] = run(files[0], "--n", "2", "--out", "other.jsonl", server=server)
        assert (len(server.book), Path("other.jsonl").read_text()) == (paid, "mine")
    for message, result in calls.items():
        assert (result.code > 0, message in result.err.splitlines()[-1], "Traceback" in result.err) == (
            True,
            True,
            False,
        )


def test_what_was_kept_is_written_if_the_server_goes_down_later(run: Run, files: list[Path]) -> None:
    writer = ScriptedWriter()

    def answer(request: Request) -> Reply | str:
        if is_writing(request) and writer.asked >= 6:
            return Reply(status=400, error={"message": "down"})
        return "[]" if "Each needs two" in request.prompt else writer(request)

    with LoopbackServer(answer) as server:
        result = run(files[0], "--n", "6", "--unanswerable", "0", "--concurrency", "1", server=server)
    assert result.code == 1
    assert {row["kind"] for row in rows_of()} == {"local", "whole"}
    assert "down" in result.out


HOSTILE = 'He said </script><script>alert("{{ 7 * 7 }}")</script> & left <b>{braces}</b> \u2028behind.'


def test_the_page_takes_the_place_of_no_other_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('{"question": "A?", "answers": []}\n')
    assert run("q.jsonl", "--review").code == run("q.jsonl", "--review").code == 0
    (tmp_path / "q.html").write_text("<p>mine</p>")
    result = run("q.jsonl", "--review")
    assert (result.code, (tmp_path / "q.html").read_text()) == (2, "<p>mine</p>")
    assert "q.html is there already" in result.err


def test_the_page_shows_every_question_and_takes_no_text_for_markup(run: Run, tmp_path: Path) -> None:
    (tmp_path / "doc.txt").write_text(f"Before it. {HOSTILE} After it.")
    row = {
        "question": HOSTILE,
        "answers": [HOSTILE],
        "kind": "local",
        "document_file": "doc.txt",
        "quotes": [
            {"start": 11, "end": 11 + len(HOSTILE), "text": HOSTILE},
            {"text": "not there", "start": 0, "end": 9},
        ],
    }
    (tmp_path / "q.jsonl").write_text(json.dumps(row) + "\n" + json.dumps({"question": "B?", "answers": []}) + "\n")
    result = run("q.jsonl", "--review")
    assert (result.code, result.out) == (0, "Open q.html in a browser.\n")
    page = (tmp_path / "q.html").read_text(encoding="utf-8")
    assert page.count("<script") == 2
    assert "alert(&#34;{{ 7 * 7 }}&#34;)" in page
    assert "<mark>He said &lt;/script&gt;" in page
    assert "(not found in the document)" in page
    data = page.partition('id="rows">')[2].partition("</script>")[0]
    assert [json.loads(each) for each in json.loads(data)] == rows_of("q.jsonl")
    assert "http" not in page.replace("http-equiv", "")


@pytest.mark.skipif(not shutil.which("node"), reason="there is no node")
def test_the_page_saves_what_was_not_struck_out(tmp_path: Path) -> None:
    rows = [{"id": str(number), "question": f"<{number}>?", "answers": ["a"]} for number in range(3)]
    path = tmp_path / "q.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    page = review(path)
    script, data = page.rpartition("<script>")[2].partition("</script>")[0], page.partition('id="rows">')[2]
    (tmp_path / "page.js").write_text(
        f"""
const saved = [];
const boxes = [true, false, true].map((checked) => ({{ checked }}));
const text = {json.dumps(data.partition("</script>")[0])};
const parts = {{ rows: {{ textContent: text }}, kind: {{ value: "" }}, count: {{}},
  save: {{ dataset: {{ name: "q" }}, addEventListener: (_, heard) => {{ parts.press = heard; }} }} }};
globalThis.document = {{
  getElementById: (id) => parts[id],
  querySelectorAll: () => boxes.map((box) => ({{ querySelector: () => box, dataset: {{}} }})),
  createElement: () => ({{ click() {{}} }}),
  addEventListener: () => {{}},
}};
globalThis.Blob = class {{ constructor(texts) {{ saved.push(texts.join("")); }} }};
globalThis.URL = {{ createObjectURL: () => "", revokeObjectURL: () => {{}} }};
globalThis.setTimeout = () => {{}};
{script}
parts.press();
console.log(JSON.stringify([saved, parts.count.textContent]));
"""
    )
    done = subprocess.run(["node", tmp_path / "page.js"], capture_output=True, text=True, check=True)  # noqa: S603, S607
    (saved,), counted = json.loads(done.stdout)
    assert [json.loads(line) for line in saved.splitlines()] == [rows[0], rows[2]]
    assert counted == "2 of 3 kept"


@pytest.mark.parametrize(
    ("one", "same", "other"),
    [
        (
            "How many gulls were counted on the north pier in 1987?",
            "How many gulls were counted at the north pier in 1987?",
            "How many gulls were counted on the north pier in 1988?",
        ),
        ("会议的主席是谁？", "会议的主席是谁呢？", "渔船共有多少艘？"),
    ],
)
def test_questions_are_compared_by_their_words_and_numbers_in_any_script(one: str, same: str, other: str) -> None:
    source = Source("log.txt", "")
    first, again, another = (Written(question, "7", "local", (), source) for question in (one, same, other))
    assert is_known(again, [another, first])
    assert not is_known(another, [first])


def test_what_a_model_knows_is_dropped_in_scripts_without_spaces_too(run: Run, tmp_path: Path) -> None:
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


def test_a_document_that_does_not_fit_loses_its_middle() -> None:
    text = " ".join(f"word{number}" for number in range(2_000))
    cut = _both_ends(text, 400)
    assert cut.startswith("word0 ")
    assert cut.endswith(" word1999")
    assert 200 < count_tokens(cut) <= 400
    assert _both_ends(text, None) == _both_ends(text, 10**6) == text
