"""Reads rows of results, as chains, engines and the examples write them, so that they can be looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from selfroute.errors import InputError
from selfroute.usage.counts import STEPS
from selfroute.usage.rows import entry_of
from selfroute_workbench.evaluation.looks import Excerpt, Failure, Passage
from selfroute_workbench.evaluation.pages.browsing import Asked
from selfroute_workbench.evaluation.pages.places import Places, Shown, around
from selfroute_workbench.evaluation.questions import Question
from selfroute_workbench.kept import rows
from selfroute_workbench.values import MOST

_BEGINNING = 300  # characters of a document without citations
_LONGEST = 4000  # characters of a passage that are kept
_QUESTION = ("question", "input", "query")
_NO_QUESTION = "(the row has no question)"
_NO_RESULT = "decision and usage must be as a chain or an engine returns them"
_TEXT = ("page_content", "text", "content")


def read_rows(path: Path) -> tuple[list[Asked], list[str]]:
    """Read a .jsonl file of results, or all of a folder.

    A row is what a chain returns, the metadata of an engine's response with the question and the answer beside it, or
    what the commands and the examples write. Of documents only the places of citations are kept, or the beginning.

    Returns:
        The questions with their answers, and the names of files that hold no results.

    Raises:
        InputError: There are no results, or a file that was named has something else in it.
    """
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    found, skipped = list[Asked](), list[str]()
    for file in files:
        seen: set[str] = set()
        try:
            for number, row in _results_of(file):
                name = str(row.get("id", number))
                name = name if name not in seen else f"{name}, line {number}"
                seen.add(name)
                question = Question(file.stem, name, _question(row), ())
                if row.get("error"):
                    found.append(Asked(question, (), [Failure(file.stem, name, "rag", str(row["error"]))]))
                else:
                    answer = _answer(row)
                    places = Places(list(_excerpts(row, question)), [[(one.text, False)] for one in answer.passages])
                    found.append(Asked(question, [answer], places=places))
        except InputError:
            if not path.is_dir() or seen:
                raise
            skipped.append(file.name)
    if not found:
        msg = (
            f"{path} has no results: give the folder that `selfroute evaluate --out` wrote, or .jsonl files whose rows "
            "have the keys question, answer and usage, as a chain returns them"
        )
        raise InputError(msg)
    return found, skipped


def _results_of(file: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        with file.open("rb") as lines:
            for where, row in rows(lines, str(file)):
                if not isinstance(row.get("usage"), Mapping) and not (row.get("error") and _has_question(row)):
                    keys = ", ".join(sorted(row)[:12])
                    msg = f"{where} is no result, which has the key usage, or question and error; its keys are {keys}"
                    raise InputError(msg)
                if _is_over(row, where):
                    yield int(where.rpartition(":")[2]), row
    except OSError as error:
        msg = f"{file} cannot be read: {error.strerror}"
        raise InputError(msg) from error


def _is_over(row: Mapping[str, Any], where: str) -> bool:
    """Return whether a row is a question's last: one whose second step is to come is left out, as in a ledger."""
    usage = row.get("usage") or {}
    whole = [usage.get(key) for key in ("total_tokens", "long_context_only")]
    if any(not isinstance(number, int | None) or abs(number or 0) > MOST for number in whole):
        msg = f"{where}: {_NO_RESULT}"
        raise InputError(msg)
    try:
        entry = entry_of(row)
    except (AttributeError, InputError, TypeError) as error:
        msg = f"{where}: {error if isinstance(error, InputError) else _NO_RESULT}"
        raise InputError(msg) from error
    return entry is not None and row.get("done") is not False


def _has_question(row: Mapping[str, Any]) -> bool:
    return any(isinstance(row.get(key), str) for key in _QUESTION)


def _question(row: Mapping[str, Any]) -> str:
    return next((row[key] for key in _QUESTION if isinstance(row.get(key), str)), _NO_QUESTION)


def _answer(row: Mapping[str, Any]) -> Shown:
    route, decision = row.get("route"), row.get("decision")
    draft, seconds = row.get("draft"), row.get("seconds")
    return Shown(
        "self_route",
        str(row.get("answer") or row.get("response") or ""),
        route if route in STEPS else None,
        row.get("answerable") is not False,
        decision if isinstance(decision, Mapping) else {},
        row["usage"],
        draft if isinstance(draft, str) else None,
        _passages(row),
        seconds=float(seconds) if isinstance(seconds, int | float) else None,
    )


def _passages(row: Mapping[str, Any]) -> list[Passage]:
    """Return the passages that were retrieved; an engine's metadata has their ids only."""
    given = row.get("passages") or row.get("retrieved")
    return [Passage(text[:_LONGEST]) for one in given if (text := _text(one))] if isinstance(given, list) else []


def _excerpts(row: Mapping[str, Any], question: Question) -> Iterator[Excerpt]:
    """Yield where the answer stands; without citations, the beginning of each document that was read."""
    context, citations = row.get("context"), row.get("citations")
    documents = context if isinstance(context, list) else []
    if isinstance(citations, list) and citations:
        for one in citations:
            if isinstance(one, Mapping) and isinstance(one.get("text"), str):
                yield _cited(one, documents, question)
    elif row.get("route") == "long_context":
        for one in documents:
            if text := _text(one):
                _, after = around(text, 0, _BEGINNING)
                beginning = text[:_BEGINNING] + after
                yield Excerpt(*question.key, ("self_route",), 0, None, beginning, "", "", _source(one))


def _cited(one: Mapping[str, Any], documents: Sequence[Any], question: Question) -> Excerpt:
    number, start, end = (_whole_number(one.get(key)) for key in ("document", "start", "end"))
    cited = documents[number] if number is not None and number < len(documents) else None
    document = _text(cited)
    if start is not None and end is not None:
        shift = _begins(_metadata(cited).get("selfroute"))
        start, end = start - shift, end - shift
    known = start is not None and end is not None and document[start:end] == one["text"]
    before, after = around(document, start or 0, end or 0) if known else ("", "")
    score, source, page = one.get("score"), one.get("source"), one.get("page")
    named = [str(part) for part in (source, None if page is None else f"p. {page}") if part is not None]
    return Excerpt(
        *question.key,
        ("self_route",),
        start or 0,
        float(score) if isinstance(score, int | float) and abs(score) <= MOST else None,
        before,
        one["text"],
        after,
        ", ".join(named) or None,
    )


def _begins(label: Any) -> int:
    """Return where a section begins in its document, as its label in a row says: what cites it counts from there."""
    is_section = isinstance(label, Mapping) and label.get("method") == "sections"
    return (_whole_number(label.get("start")) or 0) if is_section else 0


def _whole_number(value: Any) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None


def _text(document: Any) -> str:
    """Return the text of a document or a node, as its framework or a person wrote it to JSON."""
    if isinstance(document, str):
        return document
    written = _inside(document)
    return next((written[key] for key in _TEXT if isinstance(written.get(key), str)), "")


def _metadata(document: Any) -> Mapping[str, Any]:
    """Return the metadata of a document or a node."""
    metadata = _inside(document).get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}


def _source(document: Any) -> str | None:
    source = _metadata(document).get("source", _inside(document).get("source"))
    return None if source is None else str(source)


def _inside(document: Any) -> Mapping[str, Any]:
    """Return the fields of a document or a node, from within what frameworks wrap them in."""
    if not isinstance(document, Mapping):
        return {}
    for inner in ("kwargs", "node"):  # LangChain's dumpd, LlamaIndex's NodeWithScore
        if isinstance(document.get(inner), Mapping):
            return _inside(document[inner])
    return document
