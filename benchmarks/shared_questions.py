"""Convert collections of questions that are not part of this project to the JSONL that `selfroute evaluate` reads.

    python benchmarks/shared_questions.py SHARED OUT

SHARED holds `data/*.jsonl` (documents with questions, evidence and answers) and `recorded/` (questions on company
filings, with the recorded replies of models). OUT gets one file for each data set. If the filings do not answer a
question, its answer is "unanswerable", as in LongBench's Qasper.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Json = dict[str, Any]
COLLECTIONS = ("quality", "qmsum", "squad2_article", "natural_question", "hotpotqa_pool", "passkey")
METRICS = {"qa_f1": "f1", "rouge_l": "rouge_l", "mc_accuracy": "choice", "passkey": "passkey", "squad2": "squad_f1"}
PROMPTS = {"quality": "en.mc", "qmsum": "qmsum", "hotpotqa_pool": "hotpotqa", "passkey": "passkey"}
NAMES = {
    "passkey_reworded": "passkey-special-token",
    "passkey_compare": "passkey-larger",
    "qmsum": "qmsum_meetings",  # other meetings than the paper's
}


def lines_of(path: Path) -> list[Json]:
    """Read a file of JSON lines."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def of_collection(path: Path) -> Iterator[Json]:
    """Yield the questions of one collection."""
    for row in lines_of(path):
        larger = row["qtype"] == "passkey_compare"
        yield {
            "dataset": NAMES.get(row["qtype"], NAMES.get(path.stem, path.stem)),
            "id": row["id"],
            "question": row["question"],
            "answers": row["answers"],
            "choices": row["all_classes"],
            "metric": "first_or_second" if larger else METRICS[row["metric"]],
            "prompt": PROMPTS.get(path.stem, "multifieldqa"),
            "document": row["context"],
        }


def of_filings(folder: Path) -> Iterator[Json]:
    """Yield the questions about the filings."""
    for row in lines_of(folder / "questions.jsonl"):
        yield {
            "dataset": "filings",
            "id": row["id"],
            "question": row["question"],
            "answers": [row["reference"] if row["answerable"] else "unanswerable"],
            "document_file": str((folder / "documents" / row["document"]).resolve()),
        }


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shared", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    found = {name: of_collection(options.shared / "data" / f"{name}.jsonl") for name in COLLECTIONS}
    for name, rows in {**found, "filings": of_filings(options.shared / "recorded")}.items():
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (options.out / f"{name}.jsonl").write_text(text, encoding="utf-8")
        print(f"{name}: {text.count(chr(10))} questions")


if __name__ == "__main__":
    main()
