"""Measure how much of the evidence that people marked stands in the sections that are chosen, and how long that takes.

    python benchmarks/sections.py DATA [--vectors FOLDER] [--json]

DATA holds `*.jsonl` with `context`, `question`, `is_impossible` and `evidence_spans` (offsets into the context). Files
and questions without evidence are left out, and questions that cannot be answered. Each document is split into passages
of 1,200 characters that overlap by 200, and ranked by real all-MiniLM-L6-v2 vectors, which FOLDER keeps for the next
run.

"covered" is the share of the evidence's characters that 4,000 tokens of sections hold, the five nearest passages among
them; "nearest" is the share that as many tokens of nearest passages hold; both are means over the questions. "ms" is
the time for 100,000 tokens of a text that was read before, "first ms" of one that was not: the best of some runs. With
`--json`, there is an object for each file, by its name, with n, covered, nearest and ms_per_100k_tokens ("ms").
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from measuring import at_least, at_most, target_table
from paper.found import Retriever
from paper.retrieval import load_retriever
from selfroute.documents.index import KEPT
from selfroute.documents.sections import ranked
from selfroute.usage.tokens import count_tokens
from selfroute_workbench.command.texts import Text, split
from shared_questions import lines_of

Span = tuple[int, int]
BUDGET, PASSAGES, RUNS = 4_000, 5, 5
TARGETS = {"squad2_article": 0.99, "hotpotqa_pool": 1.00, "qmsum": 0.68}
KEPT_MS, FIRST_MS = 15, 60
FIGURES = ("n", "covered", "nearest", "ms_per_100k_tokens")


class Nearest:
    """Finds the passages of a document that are nearest to a question."""

    def __init__(self, retriever: Retriever) -> None:
        """Take what compares them."""
        self._retriever = retriever

    def spans(self, row: dict[str, Any]) -> list[Span]:
        """Return where all passages of a question's document stand, the nearest first."""
        text = Text("", row["context"])
        passages = split(text)
        chunks = [passage.page_content for passage in passages]
        found = self._retriever.search(chunks, row["question"], k=len(chunks), document_id=text.key)
        return [(at := passages[one.index].metadata["start_index"], at + len(one.text)) for one in found]


def share_held(evidence: Iterable[Sequence[int]], spans: Iterable[Span]) -> float:
    """Return the share of the evidence's characters that stand in the spans."""
    wanted = {at for start, end in evidence for at in range(start, end)}
    return len(wanted.intersection(at for span in spans for at in range(*span))) / len(wanted)


def as_many(spans: Iterable[Span], text: str) -> Iterator[Span]:
    """Yield the first passages, as many as the budget holds."""
    room = BUDGET
    for start, end in spans:
        room -= count_tokens(text[start:end])
        if room < 0:
            return
        yield start, end


def chosen(row: dict[str, Any], passages: Sequence[str]) -> list[Span]:
    """Choose sections, and return where they stand."""
    ranking = ranked(row["question"], [row["context"]], passages)
    return [(run.start, run.end) for run in ranking.fill(BUDGET, count_tokens, always=len(passages))]


def milliseconds(row: dict[str, Any], passages: Sequence[str]) -> tuple[float, float]:
    """Return the time for 100,000 tokens, of a text that was read before and of one that was not."""
    kept: list[float] = []
    first: list[float] = []
    per_100k = 1e3 * 1e5 / count_tokens(row["context"])
    for _ in range(RUNS):
        KEPT.clear()
        for times in (first, kept):
            started = time.perf_counter()
            chosen(row, passages)
            times.append((time.perf_counter() - started) * per_100k)
    return min(kept), min(first)


def measure(path: Path, nearest: Nearest) -> dict[str, float] | None:
    """Measure one file; None if no evidence is marked in it."""
    has_evidence = (row for row in lines_of(path) if row.get("context") and row.get("evidence_spans"))
    asked = [row for row in has_evidence if not row.get("is_impossible")]
    if not asked:
        return None
    covered, by_nearest, kept, first = [], [], [], []
    for row in asked:
        text, evidence, spans = row["context"], row["evidence_spans"], nearest.spans(row)
        passages = [text[slice(*span)] for span in spans[:PASSAGES]]
        covered.append(share_held(evidence, chosen(row, passages)))
        by_nearest.append(share_held(evidence, as_many(spans, text)))
        for times, taken in zip((kept, first), milliseconds(row, passages), strict=True):
            times.append(taken)
    return {
        "n": len(asked),
        "covered": mean(covered),
        "nearest": mean(by_nearest),
        "ms_per_100k_tokens": mean(kept),
        "first_ms_per_100k_tokens": mean(first),
    }


def measured(folder: Path, nearest: Nearest) -> dict[str, dict[str, float]]:
    """Measure the files of a folder in which evidence is marked; return the figures by the names of the files."""
    found = {path.stem: measure(path, nearest) for path in sorted(folder.glob("*.jsonl"))}
    return {name: figures for name, figures in found.items() if figures}


def as_json(results: dict[str, dict[str, float]]) -> str:
    """Format the results as JSON."""
    return json.dumps({name: {key: of[key] for key in FIGURES} for name, of in results.items()}, indent=2)


def table(results: dict[str, dict[str, float]]) -> Iterator[str]:
    """Format the results, and compare them with the targets."""
    yield f"{'':30}{'n':>4}{'covered':>10}{'nearest':>10}{'ms':>8}{'first ms':>10}"
    targets = []
    for name, found in results.items():
        ms, first_ms = found["ms_per_100k_tokens"], found["first_ms_per_100k_tokens"]
        yield f"{name:30}{found['n']:4}{found['covered']:10.3f}{found['nearest']:10.3f}{ms:8.1f}{first_ms:10.1f}"
        if name in TARGETS:
            targets.append(at_least(f"{name}: covered", found["covered"], TARGETS[name]))
        targets += [at_most(f"{name}: ms", ms, KEPT_MS), at_most(f"{name}: first ms", first_ms, FIRST_MS)]
    yield from target_table(targets)


def main() -> int:
    """Print the figures; the exit code is 1 if there is no evidence in the folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder with the questions and their evidence")
    parser.add_argument("--vectors", type=Path, help="a folder that keeps the vectors of the passages")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    options = parser.parse_args()
    results = measured(options.data, Nearest(load_retriever("all-MiniLM-L6-v2", folder=options.vectors)))
    if not results:
        print(f"{options.data} has no question with evidence_spans", file=sys.stderr)
        return 1
    if options.json:
        print(as_json(results))
    else:
        print("\n".join(table(results)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
