"""Measure how long each store takes to list the chunks of a document for us, compared with a dump of its own.

    python benchmarks/stores.py [--chunks 20000] [--documents 1] [--runs 5] [name ...]

The stores are those of the tests' laws (`tests/support/store_cases`), each with one document in chunks of 40 characters
and a filter. A dump reads the ids, texts and metadata of all rows by the store's own means, with no filter and without
looking at them, in LlamaIndex as nodes; `list` is what we read, a filter applied and each row looked at once more;
`read` is the document put together, from no cache. All three run in one process, in turn, after one round that is not
counted; times are medians, and the results are the ratios to the dump. The goal for `list` is 1.5, or five microseconds
a chunk where a dump does nothing but return references to what is in memory already. Qdrant's local mode applies
filters in Python, which a dump does not pay. Stores whose packages are not installed are left out.

With `--documents 10`, the same number of chunks belongs to ten documents, which are read one after the other. A ratio
no worse than that of one document says that one query for all ten would gain nothing.

Exit code 1 if a document did not come back word for word.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

warnings.filterwarnings("ignore", category=DeprecationWarning)
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from store_cases import CASES, Case, cut, missing, text_of  # noqa: E402

GOAL = 1.5
QUICK = 5e-6  # seconds a chunk


def main() -> int:
    """Measure each store that is there."""
    parser = argparse.ArgumentParser(description="Measure how long stores take to list a document.")
    parser.add_argument("names", nargs="*", help="only these stores; all by default")
    parser.add_argument("--chunks", type=int, default=20_000)
    parser.add_argument("--documents", type=int, default=1)
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    right = True
    print(f"{'store':<28}{'chunks':>8}{'dump':>10}{'list':>10}{'read':>10}{'list/dump':>11}{'read/dump':>11}")
    for kind in CASES:
        if (args.names and kind.name not in args.names) or missing(kind):
            continue
        with TemporaryDirectory() as folder:
            case = kind(Path(folder))
            try:
                right &= _measure(case, min(args.chunks, kind.many), args.documents, args.runs)
            finally:
                case.close()
    return 0 if right else 1


def _measure(case: Case, chunks: int, documents: int, runs: int) -> bool:
    text = "".join(f"{n:05d} fills a line to forty characters.\n" for n in range(chunks // documents))
    each = [cut(text, size=len(text) // (chunks // documents), source=f"document {n}") for n in range(documents)]
    pieces = [piece for of_one in each for piece in of_one]
    for at in range(0, len(pieces), 4_000):
        case.add(pieces[at : at + 4_000])
    reader = case.reader(within=next(iter(case.filters("north").values())))

    def read() -> list[str]:
        reader.forget()
        return [reader.read(of_one[0]).text for of_one in each]

    def listed() -> int:
        return sum(reader.listed(of_one[0]) for of_one in each)

    times: dict[str, list[float]] = {"dump": [], "list": [], "read": []}
    ways: dict[str, Callable[[], object]] = {
        "dump": case.dump,
        "list": listed,
        "read": read,
    }
    right = read() == list(map(text_of, each)) and case.dump() == listed() == len(pieces)
    for _ in range(runs):
        for name, way in ways.items():
            began = time.perf_counter()
            way()
            times[name].append(time.perf_counter() - began)
    dump, list_, whole = (statistics.median(times[name]) for name in ways)
    missed = "" if list_ <= max(GOAL * dump, QUICK * len(pieces)) else "  MISSED"
    print(
        f"{case.name:<28}{len(pieces):>8,}{dump:>9.3f}s{list_:>9.3f}s{whole:>9.3f}s"
        f"{list_ / dump:>10.2f}x{whole / dump:>10.2f}x{missed if right else '  WRONG TEXT'}",
        flush=True,
    )
    return right


if __name__ == "__main__":
    sys.exit(main())
