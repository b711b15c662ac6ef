"""Measure how long it takes to import each package, beyond its framework.

    python benchmarks/imports.py [--runs 20] [--json]

Each import runs in a fresh interpreter, in shuffled rounds: first what the package imports from its framework, then the
package itself; the second time is the package's own. Times are medians of CPU time in milliseconds. The script only
measures: the exit code is always 0, and it names the targets that are missed.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import statistics
import subprocess
import sys
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

from measuring import Target, at_most, target_table

LIMIT = 30.0
HOSTS = {"selfroute": None, "langchain_selfroute": "langchain_core", "llamaindex_selfroute": "llama_index"}
PROGRAM = """
from time import process_time
began = process_time()
{imports}
between = process_time()
import {package}
print(between - began, process_time() - between)
"""


def imports_of(package: str, host: str | None) -> str:
    """Return the statements by which a package imports its framework; its users have imported most of that already."""
    spec = find_spec(package)
    folder = Path(spec.origin).parent if host and spec and spec.origin else None
    statements = {
        ast.unparse(node)
        for path in (folder.rglob("*.py") if folder else ())
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == host
    }
    return "\n".join(sorted(statements))


def measured(runs: int) -> dict[str, tuple[float, float]]:
    """Import each package in fresh interpreters; return the medians for its framework and for itself beyond that."""
    programs = {
        package: PROGRAM.format(imports=imports_of(package, host), package=package) for package, host in HOSTS.items()
    }
    taken: dict[str, list[tuple[float, float]]] = {package: [] for package in HOSTS}
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    order = random.Random(0)  # noqa: S311
    for number in range(runs + 1):
        for package in order.sample(list(HOSTS), len(HOSTS)):
            command = [sys.executable, "-c", programs[package]]
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
            host, own = map(float, done.stdout.split())
            if number:  # the first run compiles
                taken[package].append((host * 1e3, own * 1e3))
    return {
        package: (statistics.median(host for host, _ in times), statistics.median(own for _, own in times))
        for package, times in taken.items()
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure how long importing each package takes beyond its framework.")
    parser.add_argument("--runs", type=int, default=20, help="fresh interpreters per package")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    figures = measured(args.runs)
    targets: list[Target] = [
        at_most(f"import {package}, ms over its framework", own, LIMIT) for package, (_, own) in figures.items()
    ]
    if args.json:
        print(json.dumps({"milliseconds": figures, "targets": [asdict(target) for target in targets]}, indent=2))
        return
    print(f"{'ms, medians of fresh interpreters':<40}{'framework':>12}{'package':>12}{'ratio':>8}")
    for package, (host, own) in figures.items():
        share = f"{own / host:8.3f}" if HOSTS[package] else f"{'-':>8}"
        print(f"  {package:<38}{host:>12.1f}{own:>12.1f}{share}")
    print("\n".join(target_table(targets)))


if __name__ == "__main__":
    main()
