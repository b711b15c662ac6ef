"""What `ask` and its like read: every kind of file that people have, alone, in folders, by wildcards, from a pipe."""

from __future__ import annotations

import json
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from command_parts import FERRY, QUESTION, Run, model
from files_parts import READABLE, SENTENCES, UNKNOWN, UNREADABLE, docx, html, pdf
from loopback import LoopbackServer
from selfroute_workbench.files import NotTextError, UnreadableFileError, find, read_bytes

WHO, ORLA = "Who is the captain that sails the ferry?", "Captain Orla Venn sails it."
LONG_PAGES = ["The stove was lit again. " * 60, f"{'The mast was tarred. ' * 50}\n{ORLA}", "Nobody paid. " * 80]


@pytest.mark.parametrize("name", READABLE)
def test_read_bytes(name: str) -> None:
    read = read_bytes(READABLE[name], name)
    places = [read.text.index(sentence) for sentence in SENTENCES]
    assert places == sorted(places)
    assert [text for text in ("<", "unseen", "color", "\r", "\0", "\ufeff") if text in read.text] == []
    assert [read.text[start:].splitlines()[0] for start in read.pages] == (list(SENTENCES) if "pdf" in name else [])
    if "htm" in name:
        assert read.text.startswith("The timetable\n\n")


def test_read_bytes_tables() -> None:
    page = html(
        [
            "a <b>b</b>old\n word<br>next",
            "<table><tr><th>fare</th>\n<td><p>nine</p></td></tr><tr><td>tax<td>one</table>",
        ]
    )
    assert "a bold word\nnext\n\nfare | nine\ntax one" in read_bytes(page, "a.html").text
    assert "fare | nine\ntax | one" in read_bytes(docx([], table=[["fare", "nine"], ["tax", "one"]]), "a.docx").text


@pytest.mark.parametrize("name", [*UNREADABLE, *UNKNOWN])
def test_read_bytes_errors(name: str) -> None:
    data, said = (
        UNREADABLE[name]
        if name in UNREADABLE
        else (UNKNOWN[name], "tables are not read: export" if name == "table.xlsx" else "this is n")
    )
    with pytest.raises(UnreadableFileError) as caught:
        read_bytes(data, name)
    assert str(caught.value).startswith(f"{name}: {said}")
    assert isinstance(caught.value, NotTextError) == (name in UNKNOWN)


@pytest.mark.parametrize("route", ["rag", "long_context"])
def test_ask_pdf_page(run: Run, server: LoopbackServer, route: str) -> None:
    Path("report.pdf").write_bytes(pdf(LONG_PAGES))
    server.answer = lambda request: (
        "unanswerable" if route == "long_context" and request.prompt.startswith("Passages") else "Orla Venn."
    )
    asked = ("ask", "report.pdf", "-q", WHO, "--k", "2", *model(server))
    found = json.loads(run(*asked, "--json").out)
    first = found["citations"][0]
    assert (found["route"], first["source"], first["page"], first["text"]) == (route, "report.pdf", 2, ORLA)
    assert {passage["page"] for passage in found["passages"]} <= {1, 2, 3}
    shown = run(*asked).out
    assert "Where     report.pdf, page 2\n" in shown
    assert "report.pdf on page" in shown


def test_ask_folder(run: Run) -> None:
    for name in ("below/.git", "below/deep"):
        Path("texts", name).mkdir(parents=True)
    for name, data in READABLE.items():
        Path("texts/below/deep", name).write_bytes(data)
    for name, data in UNKNOWN.items():
        Path("texts", name).write_bytes(data)
    for name in (".hidden.md", "~$a.docx", "below/.git/config"):
        Path("texts", name).write_text("The hidden ferry leaves Haldon pier at nine.")
    for name, (data, _) in UNREADABLE.items():
        Path("texts", name).write_bytes(data)
    result = run("ask", "texts", "-q", QUESTION, "--json")
    assert result.code == 0, result.err
    report, told = json.loads(result.out), " ".join(result.err.split())
    assert report["answer"] == SENTENCES[0]
    assert report["citations"][0]["source"].startswith("texts/below/deep/")
    assert "Passed over in folders: 3 hidden, 3 not text" in told
    for name, (_, said) in UNREADABLE.items():
        assert f"Left out: texts/{name}: {said}" in told


def test_ask_wildcards_and_pipes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a/b").mkdir(parents=True)
    for name in ("a/one.md", "a/b/two.md", "a/b/three.txt"):
        Path(name).write_text(f"{FERRY} {name}")
    for given, sources in {
        ("a/**/*.md",): {"a/one.md", "a/b/two.md"},
        ("a", "a/*.md", "./a/one.md"): {"a/one.md", "a/b/two.md", "a/b/three.txt"},
        ("-", "a/one.md"): {"standard input", "a/one.md"},
    }.items():
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(READABLE["a.pdf"])))
        report = json.loads(run("ask", *given, "-q", QUESTION, "--json").out)
        assert {passage["source"] for passage in report["passages"]} == sources
        assert len(report["passages"]) == len(sources)


def test_find_links(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "folder", tmp_path / "elsewhere"
    for each in (folder / "below", elsewhere):
        each.mkdir(parents=True)
        (each / "a.txt").write_text(FERRY)
    for name in ("one", "two", "three"):  # a walk through them all would take as good as forever
        (folder / name).symlink_to(folder)
    (folder / "inside.txt").symlink_to(folder / "below/a.txt")
    (folder / "outside.txt").symlink_to(elsewhere / "a.txt")
    (folder / "other").symlink_to(elsewhere)
    for name in (folder, folder / "**/*.txt", folder / "**"):
        found = find([name])
        assert {path.resolve() for path in found.files} == {folder / "below/a.txt"}
        assert [problem.partition(":")[0] for problem in found.unreadable] == [str(folder / "outside.txt")]
    assert list(find([folder / "outside.txt"]).files) == [folder / "outside.txt"]


def test_cli_control_characters(run: Run) -> None:
    names = ["\x1b[31mred.md", "\x1b]0;odd\x07.pdf"]
    Path(names[0]).write_text(f"{FERRY}\x1b[2J")
    Path(names[1]).write_bytes(b"no PDF \x1b[2J")
    for call in (("ask", *names, "-q", QUESTION), ("ask", names[1], "-q", QUESTION), ("check", *names)):
        result = run(*call)
        assert [text for text in (result.out, result.err) if {"\x1b", "\x07"} & set(text)] == []
