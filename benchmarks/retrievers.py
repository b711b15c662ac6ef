"""Compare the retrievers of the paper's sequel on questions of one's own, with the extractive reader.

    python benchmarks/retrievers.py QUESTIONS OUT [--limit 20] [--retriever bm25,window,tree]

QUESTIONS is a folder of JSONL files as `selfroute evaluate` reads them (`shared_questions.py` writes some). Prints
RAG's row with each retriever beside the long context, as in Table 5 of Li et al. (2025).
The reader is no language model, so the rows show what was found, not how well a model would answer. OUT keeps vectors
and results.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from rich.console import Console

from selfroute.evaluation.reporting.show import show_tables
from selfroute.evaluation.results import Evaluation

NAMES = ("squad2_article", "hotpotqa_pool", "qmsum")
RETRIEVERS = "all-MiniLM-L6-v2,bm25,window,tree"


def main() -> None:
    """Evaluate, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--limit", type=int, default=20, help="questions of each data set")
    parser.add_argument("--names", default=",".join(NAMES), help="data sets of the folder")
    parser.add_argument("--retriever", default=RETRIEVERS)
    options = parser.parse_args()
    files = [str(options.questions / f"{name}.jsonl") for name in options.names.split(",")]
    command = [sys.executable, "-m", "selfroute.cli", "evaluate", *files, "--strategies", "rag,long_context"]
    command += ["--limit", str(options.limit), "--retriever", options.retriever, "--out", str(options.out)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own command
    tables = Evaluation.load(options.out).tables()
    show_tables(Console(width=100), [table for table in tables if table.name == "retrievers"])


if __name__ == "__main__":
    main()
