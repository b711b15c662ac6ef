"""Files through real loaders, splitters and stores: what is read is the text that was loaded, or it is said not to be.

The scenarios are the rows of `benchmarks/loaders.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document

from langchain_stores import a_model
from loader_rows import (
    FLAT,
    HEAD,
    LOADERS,
    MARKDOWN,
    OVERLAP,
    PRESERVING,
    RECURSIVE,
    ROWS,
    SPLITTERS,
    SYNTAX,
    TOPICS,
    WEB,
    WITH,
    YEARS,
    Row,
    paragraph,
    write,
)
from loaders import ORDERED, QDRANT, QUESTION, QUIET, STORES, UNORDERED, compare, outcome, pipeline, put, read, stale

pytestmark = [
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant:UserWarning"),
    pytest.mark.filterwarnings("ignore:`langchain-experimental` is being sunset:DeprecationWarning"),
]
EXACT = {"exact", "exact but white space"}
MARKS = "exact but white space and marks"
REFUSED = "refused, with advice"
SLIDES, ELEMENTS = "UnstructuredPowerPointLoader, elements", "UnstructuredPDFLoader, elements (made by hand)"
PDF, WHOLE_PDF = "SimpleDirectoryReader, .pdf", "PDFReader, return_full_document"
TXT, LEAVES = "SimpleDirectoryReader, .txt", "HierarchicalNodeParser, leaves"
MOVED = {MARKDOWN, f"{MARKDOWN}, then {WITH}", SYNTAX}  # headings, into metadata
LOST = {PRESERVING}  # of the headings of a chunk it keeps only the lowest: nobody can write the others again
FAST = {
    ORDERED: {
        *[("TextLoader, .txt", WITH), ("TextLoader, .txt", RECURSIVE), ("TextLoader, .py", 'from_language("python")')],
        *[("TextLoader, .md", MARKDOWN), ("TextLoader, .md", f"{MARKDOWN}, then {WITH}"), ("TextLoader, .html", WEB)],
        *[
            ("PyPDFLoader", WITH),
            ("PyPDFLoader", RECURSIVE),
            (ELEMENTS, WITH),
            (ELEMENTS, "none"),
            ("CSVLoader", "none"),
        ],
        *[("TextLoader, .txt", f"{WITH}, {OVERLAP}"), (TXT, f"SentenceSplitter, {OVERLAP}")],
        *[(TXT, "SentenceSplitter"), (TXT, LEAVES), (FLAT, "MarkdownNodeParser"), (PDF, "SentenceSplitter")],
        *[(WHOLE_PDF, "SentenceSplitter"), ("SimpleDirectoryReader, .html", "HTMLNodeParser")],
    },
    UNORDERED: {
        *[("TextLoader, .txt", RECURSIVE), ("PyPDFLoader", WITH), (ELEMENTS, WITH)],
        *[(TXT, "SentenceSplitter"), (PDF, "SentenceSplitter")],
    },
}


def wanted(row: Row, store: str) -> set[str]:
    """What the design wants to come out."""
    has_no_order = row.host == "LangChain" and (
        row.loader in {SLIDES, ELEMENTS}
        or row.splitter not in {WITH, f"{WITH}, {OVERLAP}", "none"}  # elements of a page have none, either
    )
    if store == UNORDERED and (has_no_order or row.splitter == LEAVES):
        return {REFUSED}
    return EXACT


def cases() -> list[Any]:
    """Each row in each store; the most are slow."""
    made = []
    for store in STORES:
        for row in ROWS:
            marks = [pytest.mark.matrix] if (row.loader, row.splitter) not in FAST[store] else []
            if row.splitter not in LOST:
                made.append(pytest.param(row, store, marks=marks, id=f"{row.name}, {store}"))
    return made


def ready(row: Row, store: str = ORDERED) -> Row:
    """Skip where a package is missing."""
    if package := row.missing or (store == UNORDERED and row.lacks(QDRANT[row.host])):
        pytest.skip(f"needs {package}")
    return row


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is downloaded."""
    for name, value in QUIET.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(("row", "store"), cases())
def test_loaders_text_comes_back_or_is_refused(row: Row, store: str, tmp_path: Path) -> None:
    got = outcome(ready(row, store), store, tmp_path)
    assert str(got) in wanted(row, store)
    assert got.check.startswith("problem" if str(got) == REFUSED else "ok")


def texts_of(row: Row, chunks: Sequence[Any], store: str = ORDERED) -> list[str]:
    """What the last step reads of these chunks."""
    with pipeline(row, store, chunks) as run:
        return [text for text, _ in read(row, run)]


IN_BOTH = [Row("LangChain", "TextLoader, .txt", WITH), Row("LlamaIndex", TXT, "SentenceSplitter")]
BY_PAGES = [Row("LangChain", "PyPDFLoader", WITH), Row("LlamaIndex", PDF, "SentenceSplitter")]
in_both = pytest.mark.parametrize("row", IN_BOTH, ids=lambda row: row.host)
by_pages = pytest.mark.parametrize("row", BY_PAGES, ids=lambda row: row.host)


def folders(above: Path) -> tuple[Path, Path]:
    """Two folders, since files in them have the same name."""
    one, other = above / "one", above / "other"
    one.mkdir()
    other.mkdir()
    return one, other


@by_pages
def test_loaders_pages_are_named(row: Row, tmp_path: Path) -> None:
    _, chunks = ready(row).made(tmp_path)
    with pipeline(row, ORDERED, chunks) as run:
        ((text, metadata),) = read(row, run)
    label = metadata["selfroute"]
    assert (label["method"], label["gaps"], label.get("doubtful", False)) == ("offsets", [], False)
    first = 0 if row.host == "LangChain" else 1
    assert [int(page) for _, page in label["pages"]] == list(range(first, first + len(YEARS)))
    assert all(text.startswith(HEAD, start) for start, _ in label["pages"])


@by_pages
def test_loaders_two_pdfs_of_one_name_are_two_documents(row: Row, tmp_path: Path) -> None:
    """Their folders tell them apart."""
    made = [ready(row).made(folder) for folder in folders(tmp_path)]
    (loaded, _), chunks = made[0], [chunk for _, each in made for chunk in each]
    assert [compare(loaded, text) in EXACT for text in texts_of(row, chunks)] in ([True], [True, True])


@in_both
def test_loaders_text_indexed_twice_is_read_once(row: Row, tmp_path: Path) -> None:
    (loaded, once), (_, again) = ready(row).made(tmp_path), row.made(tmp_path)
    (text,) = texts_of(row, [*once, *again])
    assert compare(loaded, text) in EXACT


@in_both
def test_loaders_text_indexed_again_after_a_change_is_not_mixed(row: Row, tmp_path: Path) -> None:
    _, load = LOADERS[ready(row).loader]
    path = write(tmp_path, "txt")
    old, new = path.read_text("utf-8"), path.read_text("utf-8").replace("crates", "big crates")
    chunks = SPLITTERS[row.splitter](load(path))
    path.write_text(new, "utf-8")
    with pipeline(row, ORDERED, [*chunks, *SPLITTERS[row.splitter](load(path))]) as run:
        found = read(row, run)
    for text, metadata in found:
        is_one = "exact" in compare([old], text) or "exact" in compare([new], text)
        assert is_one or metadata["selfroute"].get("doubtful")


@pytest.mark.parametrize("splitter", [MARKDOWN, f"{MARKDOWN}, then {WITH}"])
def test_loaders_headings_stand_in_the_draft(splitter: str, tmp_path: Path) -> None:
    """No text says its year but the headings."""
    row = ready(Row("LangChain", "TextLoader, .md", splitter))
    with pipeline(row, ORDERED, row.made(tmp_path)[1], start="rag") as run:
        model = a_model(draft=("Thirty crates.",), final=None)
        run.model_copy(update={"llm": model}).invoke(QUESTION)
    (prompt,) = (call.prompt for call in model.calls)
    drafted = {year for year in YEARS for topic in TOPICS if paragraph(year, topic)[:200] in prompt}
    assert drafted
    assert all(f"{year}" in prompt for year in drafted)


@pytest.mark.parametrize(
    "splitter",
    [MARKDOWN, f"{MARKDOWN}, then {WITH}", f"{MARKDOWN}, strip_headers=False"],
)
def test_loaders_sections_with_the_same_text_all_stand(splitter: str) -> None:
    """Where nothing was to report, the report says so, under one heading after the other."""
    text = "# Report\n\n" + "\n\n".join(f"## {year}\n\nNo crates of rope." for year in YEARS)
    row = Row("LangChain", "TextLoader, .md", splitter)
    (found,) = texts_of(row, SPLITTERS[splitter]([Document(text, metadata={"source": "report.md"})]))
    assert compare([text], found) in EXACT | {MARKS}


# The comparison itself


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("# One\n\nA b. C d.\nE f. G h.", "exact"),
        ("# One A b.\nC d. E f. G h.", "exact but white space"),
        ("One\n\nA b. C d.\n\nE f. G h.", MARKS),
        ("A b. C d. E f. G h.", "12 % lacking"),
        ("# One A b. C d. C d. E f. G h.", "23 % twice"),
        ("# One A b. E f. C d. G h.", "out of order"),
        ("# One A b. E f. E f. C d.", "23 % lacking, 23 % twice, out of order"),
    ],
)
def test_loaders_compare(text: str, verdict: str) -> None:
    assert compare(["# One\n\nA b. C d.", "E f. G h."], text) == verdict


def test_loaders_table_is_put_between_its_marks_and_found_stale() -> None:
    page = put(
        ["| a |", "| needs b | | |"],
        "Before.\n<!-- python benchmarks/loaders.py --write -->\n<!-- end of the table -->\nAfter.",
    )
    assert page.startswith("Before.")
    assert page.endswith("After.")
    assert put(["| a |", "| needs b | | |"], page) == page
    assert stale(["| a |", "| c |", "| needs d | | |"], page) == ["| c |"]
