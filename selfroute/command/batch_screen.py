"""Shows what `selfroute batch` has written and read, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

_WHAT_NEXT = {
    "openai": "upload each file with the purpose batch, and create a batch of it for its endpoint",
    "anthropic": "create a message batch of the lines of each file",
    "google_genai": "upload each file, and create a batch job of it with its model",
}


def show_files(
    console: Console, files: Sequence[Mapping[str, Any]], counts: Mapping[str, int], *, folder: Path
) -> None:
    """Say which files were written."""
    for one in files:
        console.print(f"{one['file']}: {_number(one['requests'], 'request')} to {one['model']} ({one['endpoint']})")
    _show_counts(console, counts, folder)
    if files:
        for provider in dict.fromkeys(one["model"].partition(":")[0] for one in files):
            console.print(f"Next, with {provider}: {_WHAT_NEXT[provider]}.")
        console.print(f"When the results are there: selfroute batch import RESULTS.jsonl --job {folder}")
    elif counts["waiting"]:
        console.print(
            "Nothing is written: the results of the earlier files are still to be imported; if they will never come, "
            f"ask again: selfroute batch export --again --job {folder}"
        )
    elif not counts["failed"]:
        console.print("Nothing is written: all questions are answered.")


def show_results(console: Console, told: Mapping[str, Any], *, folder: Path) -> None:
    """Say what was read."""
    found = told["results"]
    console.print(
        f"Results: {_number(found['replies'], 'reply', 'replies')}, {_number(found['errors'], 'error')}, "
        f"{found['known']} imported before"
    )
    if found["other_jobs"]:
        console.print(f"Left out: {_number(found['other_jobs'], 'result')} of other requests than this job's")
    for path, lines in told["unreadable_lines"].items():
        console.print(f"Left out: {_number(len(lines), 'line')} of {path} that cannot be read, first line {lines[0]}")
    for path in told["cut_off"]:
        console.print(f"{path} is cut off in its last line: download it again, and import it again")
    if told["changed"]:
        console.print(
            f"{_number(told['changed'], 'question')} would be asked in other words than were exported, as selfroute or "
            "another package has changed since; the next export asks again"
        )
    _show_counts(console, told, folder)
    if told["next"] or told["failed"]:
        console.print(f"Next: selfroute batch export --job {folder}")


def _show_counts(console: Console, counts: Mapping[str, int], folder: Path) -> None:
    names = {"answered": "answered", "failed": "failed", "waiting": "waiting for results", "next": "to be asked next"}
    some = (f"{counts[name]} {words}" for name, words in names.items() if counts[name])
    console.print(f"Questions: {', '.join(some)}")
    if counts["answered"] or counts["failed"]:
        console.print(f"Answers{' and errors' if counts['failed'] else ''}: {folder / 'answers.jsonl'}")


def _number(count: int, one: str, more: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else more or f'{one}s'}"
