"""The `selfroute` command: what it prints, where, and how it ends."""
# ruff: noqa: S603

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from langchain_core.embeddings import Embeddings

from command_parts import ANSWER, FERRY, QUESTION, Result, Run, model
from loopback import RATE_LIMITED, LoopbackServer, Reply
from selfroute import __version__
from selfroute.calls.settings import DEFAULTS
from selfroute.paper import PAPER
from selfroute_workbench import cli
from selfroute_workbench.command import asking
from selfroute_workbench.command.options import Options
from word_vectors import LangChainWords


def test_demo_reader(run: Run) -> None:
    result = run("demo", "--reader", "--limit", "4")
    assert result.code == 0
    assert "not a language model" in result.out.splitlines()[-1]
    assert "extractive reader" in result.out.split("answered by")[0]
    names = ("answered by RAG", "escalated", "declined again", "stopped", "tokens", "wall time")
    assert result.has(*(rf"^{name} +[\d.,]+" for name in names))
    assert "price" not in result.out
    assert "\x1b" not in result.out + result.err
    assert max(map(len, result.out.splitlines())) <= 110


def test_demo_json(run: Run) -> None:
    result = run("demo", "--reader", "--limit", "3", "--json")
    report = json.loads(result.out)
    rows, totals = report["questions"], report["totals"]
    assert (result.code, report["language_model"], len(rows), totals["questions"]) == (0, False, 3, 3)
    assert "not a language model" in result.err
    assert sum(totals[name] for name in ("answered_by_rag", "answered_by_sections", "escalated", "stopped")) == 3
    assert totals["tokens"] == sum(row["usage"]["total_tokens"] for row in rows)
    assert report["ledger"]["tokens"]["total_tokens"] == totals["tokens"]
    assert report["ledger"]["queries"] == 3
    assert {row["route"] for row in rows} <= {"rag", "sections", "long_context"}


def test_ask_reader(run: Run) -> None:
    result = run("ask", "ferry.md", "-q", QUESTION)
    assert result.code == 0
    place = r"^Where +ferry.md, line 3, character 9$"
    assert result.has(r"^Route +rag$", rf"^Answer +{ANSWER}$", place, r"^Why +the retrieved passages")
    assert result.has(r" 1  ferry.md at character 0$")
    assert "not a language model" in result.out


def test_check_asks_no_model(run: Run, server: LoopbackServer) -> None:
    result = run("check", "ferry.md", *model(server))
    assert (result.code, server.calls) == (0, []), result.err
    subjects = ("source", "wall", "document", "window", "prices", "prompt")
    assert result.has(*(rf"^(ok|\?) +{subject} " for subject in subjects))
    assert "'ferry.md' (" in result.out
    assert "Nothing has to be changed" in result.out
    report = run("check", "ferry.md", "-q", QUESTION, "--json").json
    assert report["ok"] is True
    assert [one["subject"] for one in report["findings"]][:2] == ["source", "wall"]


def test_ask_json(run: Run) -> None:
    moon = "What is the price of a ticket to the moon?"
    result = run("ask", "ferry.md", "-q", QUESTION, "-q", moon, "--json")
    first, second = map(json.loads, result.out.splitlines())
    assert list(first) == [
        "question",
        "answer",
        "route",
        "answerable",
        "decision",
        "usage",
        "sections",
        "citations",
        "passages",
    ]
    assert (first["question"], first["answer"], first["route"]) == (QUESTION, ANSWER, "rag")
    assert first["passages"] == [{"source": "ferry.md", "page": None, "start": 0, "text": FERRY.strip()}]
    assert (second["answer"], second["route"], second["answerable"]) == ("unanswerable", "rag", False)


# Around the sentence with the answer: nothing, white space that a splitter drops, and so much that it is a passage's
# middle.
AROUND = {
    "short": ("", ""),
    "white space": ("\n\n \n", "\n\n\n\n\n"),
    "long": ("The stove was lit. \n\n\n\n" * 200, " The mast was tarred.\n\n\n" * 200),
}


MORE_THAN_PASSAGES = "\n\nGulls sat on the rail of the pier all day." * 200


@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND)
@pytest.mark.parametrize("route", ["rag", "long_context"])
def test_ask_citation_place(run: Run, server: LoopbackServer, around: tuple[str, str], route: str) -> None:
    said = "The *ferry* of the northern line\nleaves Haldon pier at seven (if [bold]calm[/bold])."
    text = said.join(around) + (MORE_THAN_PASSAGES if route == "long_context" else "")
    Path("ferry.md").write_text(text)
    server.answer = lambda request: (
        "unanswerable" if route == "long_context" and request.prompt.startswith("Passages") else "At seven, if calm."
    )
    asked = ("ask", "ferry.md", "-q", QUESTION, *model(server))
    found = run(*asked, "--json").json
    first = found["citations"][0]
    start = text.index(said)
    assert found["route"] == route
    assert (first["source"], first["text"], first["start"]) == ("ferry.md", said, start)
    assert [text[one["start"] : one["end"]] for one in found["citations"]] == [
        one["text"] for one in found["citations"]
    ]
    assert first["line"] == 1 + text[:start].count("\n")
    shown = " ".join(run(*asked).out.split())
    place = f"Where ferry.md, line {first['line']:,}, character {start:,} {' '.join(said.split())} "
    assert shown.index("Answer ") < shown.index(place) < shown.index("Why ")


def test_ask_streams_whole_files(run: Run, server: LoopbackServer) -> None:
    planks = " ".join(f"Plank {number} of the boat is tarred." for number in range(300))
    Path("crew.txt").write_text(f"Captain Orla Venn sails it. The boat has two masts and a stove. {planks}")
    server.answer = lambda request: "unanswerable" if request.prompt.startswith("Passages") else "Two masts."
    files = ["ferry.md", "crew.txt"]
    result = run("ask", *files, "-q", "How many masts has the boat?", *model(server))
    assert result.code == 0, result.err
    assert result.has(r"^Answer +Two masts\.$")
    assert "read the whole of crew.txt, the whole of ferry.md" in result.words
    assert [entry.request.stream for entry in server.book] == [True, True]
    prompt = server.book[1].request.prompt
    assert Path("crew.txt").read_text().strip() in prompt
    assert "Document 1: crew.txt" in prompt
    assert str(Path.cwd()) not in prompt
    total = sum(entry.input_tokens + entry.output_tokens for entry in server.book)
    assert f"{total:,}" in result.out
    assert "estimated" not in result.out


def test_ask_kept_index(run: Run, words: LangChainWords) -> None:
    call = ["ask", "ferry.md", "-q", QUESTION, "--store", "kept", "--embeddings", "any", "--json"]

    def indexed() -> int:
        before = words.embedded
        assert run(*call).code == 0
        return words.embedded - before

    assert [indexed(), indexed()] == [1, 0]
    Path("ferry.md").write_text(FERRY.replace("seven", "nine"))
    assert indexed() == 1
    Path("other.md").write_text("The ferry to Orrin leaves Haldon pier at noon.")
    assert run("ask", "other.md", *call[2:]).code == 0  # into the same index, which hides it from the others
    passages = run(*call).json["passages"]
    assert [(one["source"], one["text"]) for one in passages] == [("ferry.md", FERRY.replace("seven", "nine").strip())]


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["ask", "none.md", "-q", "?"], 2, "none.md: there is no such file"),
        (["ask", "empty.md", "-q", "?"], 2, "empty.md: the file is empty"),
        (["ask", "binary.md", "-q", "?"], 2, "binary.md: this is not text"),
        (["ask", "latin.md", "-q", "?"], 2, "latin.md: this is not UTF-8 text"),
        (["ask", "*.pdf", "-q", "?"], 2, "*.pdf: no file fits this"),
        (["ask", "ferry.md", "-q", " "], 2, "a question is empty"),
        (["ask", "ferry.md", "-q", "Who \udcff?"], 2, "half of a character, '\\udcff', at position 4"),
        (["ask", "ferry.md"], 2, 'there is no question: write it last, selfroute ask FILE... "When does it end?"'),
        (["ask", "ferry.md", "missing.md"], 2, "there is no question: write it last"),
        (["ask", "When does it end?"], 2, "there is no question: write it last"),
        (
            ["ask", "ferry.md", "-q", "?", "--embeddings", "any", "--store", "ferry.md"],
            2,
            "--store ferry.md: the index cannot be kept there",
        ),
        (["demo", "--model", "gpt"], 2, "'gpt' is not a model: write provider:name"),
        (["demo", "--model", ":gpt"], 2, "':gpt' is not a model"),
        (["demo", "--model", "nobody:gpt"], 2, "there is no provider 'nobody'"),
        (["demo", "--model", "openai:gpt"], 2, "set the environment variable OPENAI_API_KEY"),
        (["demo", "--model", "google_genai:gemini"], 2, "set the environment variable GOOGLE_API_KEY"),
        (["demo", "--model", "openai:gpt", "--base-url", "localhost"], 2, "--base-url localhost is not an address"),
        (["demo", "--base-url", "http://localhost"], 2, "--base-url needs --model"),
        (["demo", "--long-context-model", "openai:gpt"], 2, "--long-context-model needs --model"),
        (["demo", "--reader", "--model", "openai:gpt", "--base-url", "http://localhost"], 2, "exclude each other"),
        (["demo", "--k", "7"], 2, "--k changes the prompts"),
        (["demo", "--sections", "4000"], 2, "--sections changes the prompts"),
        (["ask", "ferry.md", "-q", "?", "--paper", "--max-documents", "0"], 2, "--paper is a setting of its own"),
        (["ask", "ferry.md", "-q", "?", "--sections", "99"], 2, "it takes auto, a number of tokens"),
        (["demo", "--embeddings", "other"], 2, "--embeddings changes the prompts"),
        (["demo", "--framework", "llamaindex"], 2, "--framework"),
        (["demo", "--limit", "0"], 2, "--limit"),
        (["demo", "--bogus"], 2, "--bogus"),
        (["bogus"], 2, "bogus"),
    ],
)
def test_cli_usage_errors(run: Run, args: list[str], code: int, message: str) -> None:
    Path("empty.md").write_text(" \n")
    Path("binary.md").write_bytes(b"\x7fELF\0\0\1")
    Path("latin.md").write_bytes("Fähre".encode("latin-1"))
    result = run(*args)
    assert (result.code, result.out) == (code, "")
    line = result.err.splitlines()[-1]
    assert line.startswith("selfroute: ")
    assert message in line
    assert [other for other in result.err.splitlines()[:-1] if not other.endswith(" ...")] == []


def test_cli_missing_provider_package(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain_groq", None)
    says = "selfroute: groq:llama needs a package that is not installed: pip install langchain-groq\n"
    assert run("demo", "--model", "groq:llama") == Result(1, "", says)


KEY = "sk-secret-1234567890abc"
PROVIDER_ERRORS = {
    "The model `test` does not exist.": Reply(status=404, error={"message": "The model `test` does not exist."}),
    "Incorrect API key provided: ***.": Reply(status=401, error={"message": f"Incorrect API key provided: {KEY}."}),
    "Rate limit reached for requests.": RATE_LIMITED,
    "the rag step got no reply": Reply("", finish="length"),
}


@pytest.mark.parametrize("command", [["demo", "--limit", "1"], ["ask", "ferry.md", "-q", "?"]])
def test_cli_provider_error_without_key(
    run: Run, server: LoopbackServer, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for message, reply in PROVIDER_ERRORS.items():
        server.answer = lambda _request, reply=reply: reply  # type: ignore[misc]
        result = run(*command, *model(server))
        assert result.code == 1
        last = result.err.splitlines()[-1]
        assert last.startswith(f"selfroute: {message}")
        assert ("allow it more output tokens" in last) is ("no reply" in message)
        assert not re.search(r"Traceback|Retrying", result.err)
        assert "secret" not in result.out + result.err


def test_cli_unreachable_server(run: Run, server: LoopbackServer) -> None:
    server.stop()
    result = run("ask", "ferry.md", "-q", QUESTION, *model(server))
    assert result.code == 1
    assert f"{server.openai_url} does not answer: " in result.err.splitlines()[-1]
    assert "Connection refused" in result.err.splitlines()[-1]


def test_cli_interrupt(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_name: str | None) -> Embeddings:
        raise KeyboardInterrupt

    monkeypatch.setattr(asking, "load_embeddings", interrupted)
    result = run("ask", "ferry.md", "-q", QUESTION, "--embeddings", "any")
    assert (result.code, result.out) == (130, "")
    assert result.err.splitlines()[-1] == "selfroute: interrupted"


def test_cli_version_and_help(run: Run) -> None:
    assert run("--version") == Result(0, f"selfroute {__version__}\n", "")
    for command in ("demo", "ask", "check", "mcp", "evaluate", "questions"):
        shown = " ".join(re.sub(r"[│╭╮╰╯─]", " ", run(*command.split(), "--help").out).split())
        assert f"xample: selfroute {command} " in shown, command
    for panel in ("Model", "Passages", "Reading more"):
        assert f"╭─ {panel} ─" in run("ask", "--help").out


def test_cli_fourteen_options_at_most() -> None:
    for name, command in cli._parser().commands.items():
        options = [each for each in command.params if each.opts[0].startswith("-")]
        assert len(options) <= 14, name


def test_cli_one_setting() -> None:
    """What answers takes the same options of what is read, with the product's defaults."""
    for name in ("ask", "check", "mcp", "evaluate"):
        given = {each.name: each.default for each in cli._parser().commands[name].params}
        assert {each: given[each] for each in ("paper", "sections", "max_documents")} == {
            "paper": False,
            "sections": DEFAULTS.sections,
            "max_documents": DEFAULTS.max_documents,
        }
    assert Options().chain == {}
    assert Options(paper=True).chain == PAPER


def test_ask_last_argument(run: Run) -> None:
    assert run("ask", "ferry.md", QUESTION, "--json").json["question"] == QUESTION
    Path("What is this?").write_text(FERRY)
    asked = run("ask", "What is this?", QUESTION)
    assert (asked.code, "What is this? at character 0" in asked.out) == (0, True), "a file of that name is a file"


WITHOUT = (
    f"import sys; sys.modules[sys.argv.pop(1)] = None; from {cli.__name__} import main; sys.exit(main(sys.argv[1:]))"
)
# What each command needs at its end, or where an option is given.
NEEDED: dict[tuple[str, ...], tuple[str, ...]] = {
    ("demo",): ("typer", "rich", "langchain_chroma"),
    ("ask", "ferry.md", "When?"): ("rich", "langchain_text_splitters"),
    ("ask", "ferry.md", "When?", "--embeddings", "all-MiniLM-L6-v2"): ("langchain_chroma",),
    ("check", "ferry.md"): ("rich", "langchain_text_splitters"),
    ("mcp", "ferry.md"): ("mcp",),
    ("mcp", "ferry.md", "--http"): ("mcp", "uvicorn"),
    ("evaluate", "q.jsonl"): ("scipy", "numpy", "filelock"),
    ("evaluate", "q.jsonl", "--judge", "groq:llama"): ("langchain_groq",),
    ("evaluate", "q.jsonl", "--max-cost", "1"): ("genai_prices",),
    ("questions", "ferry.md"): ("filelock", "rich"),
    ("questions", "ferry.md", "--max-cost", "1"): ("genai_prices",),
}
FIRST = {("demo", "typer"), ("evaluate", "scipy"), ("questions", "filelock")}


@pytest.mark.parametrize(
    ("command", "package"),
    [
        pytest.param(command, package, id=f"{command[0]} {command[-1]} {package}", marks=marks)
        for command, packages in NEEDED.items()
        for package in packages
        for marks in [() if (command[0], package) in FIRST else pytest.mark.matrix]
    ],
)
def test_cli_missing_package(server: LoopbackServer, tmp_path: Path, command: tuple[str, ...], package: str) -> None:
    """What a command needs is looked for before anything is paid, also what it needs only at its end."""
    (tmp_path / "ferry.md").write_text(FERRY)
    row = {"question": QUESTION, "answers": ["seven"], "document_file": "ferry.md"}
    (tmp_path / "q.jsonl").write_text(json.dumps(row))
    call = [sys.executable, "-c", WITHOUT, package, *command, *(() if command[0] == "demo" else model(server))]
    done = subprocess.run(call, capture_output=True, text=True, check=False, env=os.environ, cwd=tmp_path, timeout=60)
    assert (done.returncode, server.book) in ((1, []), (2, [])), done
    last = done.stderr.splitlines()[-1]
    assert last.startswith("selfroute: ")
    assert package in last or package.replace("_", "-") in last or "price" in last, last


def test_cli_import_is_light() -> None:
    heavy = ("langchain_core", "llama_index", "chromadb", "numpy")
    code = f"import sys, selfroute_workbench.cli; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
