"""Measure how often citations point at the evidence that people marked, and how long finding them takes.

    python benchmarks/citations.py DATA [--recorded FOLDER] [--json]

DATA holds `*.jsonl` with `context`, `question`, `answers`, `is_impossible` and `evidence_spans` (offsets into the
context). Each question that has evidence is asked of its whole document, first with its first reference answer as the
reply, then with a model's recorded reply, where FOLDER has one (`questions.jsonl` with `id`, `task` and `question`,
`replies/*.jsonl` with `id`, `rag` and `long_context`, `passages.jsonl` with the passages that were retrieved, best
first). FOLDER is `recorded_claude` next to DATA by default.

A citation is right if it overlaps a marked span. "first" is how often the first one is, "three" how often one of the
first three is. "ms" is the time for 100,000 tokens of a text that was read before, "first ms" of one that was not: the
best of some runs. The prototype is the one of 40 lines that the project set out to beat. With `--json`, there is an
object for each file, by its name.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

from measuring import at_least, at_most, target_table
from selfroute.answerability import declines
from selfroute.citations import locate
from selfroute.documents.index import WORD_INDEXES
from selfroute.languages.tokens import count_tokens

Span = tuple[int, int]
RUNS = 5
PROTOTYPE = {
    "squad2_article": (1.00, 1.00),
    "hotpotqa_pool": (0.83, 0.98),
    "qmsum": (0.48, 0.79),
    "passkey": (1.00, 1.00),
}
TARGETS = {
    "squad2_article": (1.00, 1.00),
    "hotpotqa_pool": (0.88, 1.00),
    "qmsum": (0.60, 0.85),
    "passkey": (1.00, 1.00),
}
KEPT_MS, FIRST_MS = 20, 60


@dataclass
class Found:
    """What was found for some questions: for each, whether each of the places is right, the best first."""

    hits: list[list[bool]]
    lengths: list[int]

    def as_dict(self) -> dict[str, float]:
        """Return the shares of questions whose first place is right, and one of whose first three."""
        of = len(self.hits) or 1
        return {
            "n": len(self.hits),
            "first": sum(hit[:1] == [True] for hit in self.hits) / of,
            "three": sum(any(hit[:3]) for hit in self.hits) / of,
            "characters": median(self.lengths or [0]),
        }


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """Read a file of JSON lines."""
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def overlaps(span: Span, evidence: Iterable[Sequence[int]]) -> bool:
    """Return whether a span has a character of the evidence."""
    return any(span[0] < end and start < span[1] for start, end in evidence)


def cited(questions: Iterable[tuple[dict[str, Any], str]]) -> Found:
    """Cite each answer from the document of its question."""
    found = Found([], [])
    for row, answer in questions:
        spans = [(one["start"], one["end"]) for one in locate(row["question"], answer, row["context"])]
        found.hits.append([overlaps(span, row["evidence_spans"]) for span in spans])
        found.lengths += [end - start for start, end in spans[:1]]
    return found


def retrieved(questions: Iterable[tuple[dict[str, Any], Sequence[str]]]) -> Found:
    """Take the retrieved passages for citations."""
    found = Found([], [])
    for row, passages in questions:
        places = [(row["context"].find(passage), len(passage)) for passage in passages]
        found.hits.append([at >= 0 and overlaps((at, at + size), row["evidence_spans"]) for at, size in places])
        found.lengths += [size for _, size in places[:1]]
    return found


def milliseconds(row: dict[str, Any]) -> tuple[float, float]:
    """Return the time of a citation for 100,000 tokens, from a text that was read before and from one that was not."""
    kept: list[float] = []
    first: list[float] = []
    per_100k = 1e3 * 1e5 / count_tokens(row["context"])
    for _ in range(RUNS):
        WORD_INDEXES.clear()
        for times in (first, kept):
            started = time.perf_counter()
            locate(row["question"], row["answers"][0], row["context"])
            times.append((time.perf_counter() - started) * per_100k)
    return min(kept), min(first)


class Recorded:
    """Recorded replies and passages."""

    def __init__(self, folder: Path) -> None:
        """Read them; there may be none."""
        self.ids: dict[tuple[str, str], str] = {}
        self.replies: dict[str, dict[str, str]] = {}
        self.passages: dict[str, list[str]] = {}
        if not (folder / "questions.jsonl").exists():
            return
        self.ids = {(row["task"], row["question"]): row["id"] for row in rows(folder / "questions.jsonl")}
        for path in sorted((folder / "replies").glob("*.jsonl")):
            self.replies |= {row["id"]: row for row in rows(path)}
        if (folder / "passages.jsonl").exists():
            self.passages = {row["id"]: row["passages"] for row in rows(folder / "passages.jsonl")}

    def of(self, task: str, questions: Sequence[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str, Sequence[str]]]:
        """Yield the questions that a model answered, each with its reply and its passages.

        The reply is the draft, or that to the whole document if the draft declined.
        """
        for row in questions:
            name = self.ids.get((task, row["question"]), "")
            reply = self.replies.get(name, {})
            answers = [reply[step] for step in ("rag", "long_context") if reply and not declines(reply[step])]
            if answers:
                yield row, answers[0], self.passages.get(name, [])


def measure(path: Path, recorded: Recorded) -> dict[str, Any] | None:
    """Measure one file; None if no evidence is marked in it."""
    has_evidence = ("context", "evidence_spans", "answers")
    asked = [row for row in rows(path) if all(row.get(key) for key in has_evidence) and not row.get("is_impossible")]
    if not asked:
        return None
    times = [milliseconds(row) for row in asked]
    replies = list(recorded.of(path.stem, asked))
    result: dict[str, Any] = {
        **cited((row, row["answers"][0]) for row in asked).as_dict(),
        "ms_per_100k_tokens": mean(kept for kept, _ in times),
        "first_ms_per_100k_tokens": mean(first for _, first in times),
    }
    if replies:
        result["recorded"] = cited((row, answer) for row, answer, _ in replies).as_dict()
        result["passages"] = retrieved((row, passages) for row, _, passages in replies).as_dict()
    return result


def table(results: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Format the results."""
    columns = f"{'n':>4}{'prototype':>15}{'reference':>15}{'n':>6}{'recorded':>15}{'passages':>15}"
    yield f"{'first right / one of three':30}{columns}"
    for name, found in results.items():
        recorded, passages = found.get("recorded"), found.get("passages")
        yield (
            f"{name:30}{found['n']:4}{_pair(PROTOTYPE.get(name))}{_pair(found)}"
            f"{recorded['n'] if recorded else 0:6}{_pair(recorded)}{_pair(passages)}"
        )
    yield f"\n{'':30}{'ms':>8}{'first ms':>10}{'characters':>12}{'of a passage':>14}"
    for name, found in results.items():
        size = found.get("passages", {}).get("characters", 0)
        times = f"{found['ms_per_100k_tokens']:8.1f}{found['first_ms_per_100k_tokens']:10.1f}"
        yield f"{name:30}{times}{found['characters']:12.0f}{size:14.0f}"


def _pair(found: Any) -> str:
    if found is None:
        return " " * 15
    first, three = found if isinstance(found, tuple) else (found["first"], found["three"])
    return f"{first:>8.2f} /{three:5.2f}"


def main() -> int:
    """Print the figures; the exit code is 1 if there is no evidence in the folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder with the questions and their evidence")
    parser.add_argument("--recorded", type=Path, help="recorded replies (default: recorded_claude next to it)")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    options = parser.parse_args()
    recorded = Recorded(options.recorded or options.data.resolve().parent / "recorded_claude")
    found = {path.stem: measure(path, recorded) for path in sorted(options.data.glob("*.jsonl"))}
    results = {name: figures for name, figures in found.items() if figures}
    if not results:
        print(f"{options.data} has no question with evidence_spans", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(results, indent=2))
        return 0
    print("\n".join(table(results)))
    targets = []
    for name, figures in results.items():
        for what, target in zip(("first", "three"), TARGETS.get(name, ()), strict=False):
            targets.append(at_least(f"{name}: {what}", figures[what], target))
        targets.append(at_most(f"{name}: ms", figures["ms_per_100k_tokens"], KEPT_MS))
        targets.append(at_most(f"{name}: first ms", figures["first_ms_per_100k_tokens"], FIRST_MS))
    print("\n".join(target_table(targets)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
