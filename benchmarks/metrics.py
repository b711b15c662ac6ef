"""Compare our metrics with scores from the data sets' own programs.

    python benchmarks/metrics.py [FILE]

The cases are JSON lines with `prediction`, `ground_truths` (a list of strings) and `scores`, which maps a program's
function to its score from 0 to 1: `lb_qa_f1` and `lb_rouge_l` (LongBench), `ib_qa_f1`, `ib_choice` and `ib_passkey`
(InfiniteBench), `squad_f1` and `squad_em` (SQuAD 2.0). A case needs only the scores that fit it.

The cases are not part of this project: if they are missing, the script says so and ends. Exit code 1 if any score
differs by more than 1e-9.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path

import paper.metrics  # noqa: F401 - which adds the metrics of the data sets
from selfroute_workbench.evaluation.metrics import METRICS

CASES = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "metric_cases.jsonl"
TOLERANCE = 1e-9
OURS = {
    "lb_qa_f1": "f1",
    "lb_rouge_l": "rouge_l",
    "ib_qa_f1": "en_qa_f1",
    "ib_choice": "choice",
    "ib_passkey": "passkey",
    "squad_f1": "squad_f1",
    "squad_em": "squad_em",
}


def main() -> int:
    """Print how many cases agree; the exit code is 1 if any does not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?", default=CASES, help="the cases (default: %(default)s)")
    file = parser.parse_args().file
    if not file.exists():
        print(f"Skipped: no cases at {file}; say where with an argument.")
        return 0

    cases = [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line]
    differences: dict[str, list[float]] = defaultdict(list)
    for case in cases:
        for theirs, score in case["scores"].items():
            difference = abs(METRICS[OURS[theirs]](case["prediction"], case["ground_truths"]) - score)
            differences[theirs].append(difference)
            if difference > TOLERANCE:
                print(
                    f"{theirs}: off by {difference:.3g} for {case['prediction'][:60]!r}, {case['ground_truths']!r:.60}"
                )

    print(f"{len(cases)} cases\n\n{'':24}scores   agree  largest difference")
    for theirs, found in sorted(differences.items()):
        agree = sum(difference <= TOLERANCE for difference in found)
        print(f"{theirs:12}{OURS[theirs]:12}{len(found):6}{agree:8}{max(found):20.3g}")
    return int(any(difference > TOLERANCE for found in differences.values() for difference in found))


if __name__ == "__main__":
    sys.exit(main())
