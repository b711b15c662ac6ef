"""Writes questions as JSONL that `selfroute evaluate` reads, and a page to look through them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from selfroute.errors import InputError
from selfroute_workbench.evaluation.pages.places import Piece, around
from selfroute_workbench.evaluation.pages.rendering import render
from selfroute_workbench.evaluation.questions import load_questions
from selfroute_workbench.evaluation.writing.written import Written
from selfroute_workbench.kept import rows
from selfroute_workbench.private import write

_MADE_HERE = "<title>Questions to review: "


def save(written: Sequence[Written], path: Path) -> None:
    """Write questions, so that nobody ever reads half of the file; documents are named relative to it."""
    lines = [
        {
            "id": str(number),
            "question": each.question,
            "answers": [each.answer] if each.answer else [],
            "kind": each.kind,
            "quotes": [asdict(quote) for quote in each.quotes],
            "document_file": _relative(Path(each.source.name), path.parent),
        }
        for number, each in enumerate(written, 1)
    ]
    temporary = path.with_suffix(f".{os.getpid()}")
    text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
    write(temporary, text, errors="backslashreplace")
    temporary.replace(path)


def _relative(path: Path, folder: Path) -> str:
    try:
        return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
    except ValueError:  # on another drive
        return path.resolve().as_posix()


def review(path: Path) -> str:
    """Make a page that shows questions with their quotes, and gives back those that were not struck out.

    The page needs no network and runs only its own script. All text is escaped.

    Args:
        path: The JSONL; any that `selfroute evaluate` reads will do.

    Returns:
        The page, to be saved as UTF-8.

    Raises:
        InputError: The file cannot be read.
    """
    from markupsafe import Markup  # noqa: PLC0415

    questions = load_questions(path)
    with path.open("rb") as lines:
        given = [row for _, row in rows(lines, str(path))]
    shown = [
        (question, str(row.get("document_file") or ""), list(_excerpts(row.get("quotes"), question.document or "")))
        for row, question in zip(given, questions, strict=True)
    ]
    data = json.dumps([json.dumps(row, ensure_ascii=False) for row in given])
    return render(
        "review.html.jinja",
        script="review.js",
        name=path.name,
        download=f"{path.stem}.reviewed.jsonl",
        questions=shown,
        kinds=[kind for kind in dict.fromkeys(question.kind for question in questions) if kind],
        data=Markup(data.replace("<", "\\u003c")),  # noqa: S704 - JSON in which no tag can end
    )


def save_review(path: Path) -> Path:
    """Write the page beside the file, and return where."""
    page = path.with_suffix(".html")
    try:
        if page.exists() and _MADE_HERE not in page.read_text(encoding="utf-8", errors="replace"):
            msg = f"{page} is there already, and is not a page of --review: move it away, or rename {path.name}"
            raise InputError(msg)
        write(page, review(path))
    except OSError as error:
        msg = f"{page} cannot be written: {error.strerror}"
        raise InputError(msg) from error
    return page


def _excerpts(quotes: Any, text: str) -> Iterator[list[Piece]]:
    """Yield each quote with what stands around it; one that does not stand where the file says is not marked."""
    for quote in quotes if isinstance(quotes, list) else []:
        if not isinstance(quote, dict) or not isinstance(said := quote.get("text"), str):
            continue
        start, end = quote.get("start"), quote.get("end")
        if isinstance(start, int) and isinstance(end, int) and 0 <= start < end and text[start:end] == said:
            before, after = around(text, start, end)
            yield [(before, False), (said, True), (after, False)]
        else:
            yield [(said, False)]
