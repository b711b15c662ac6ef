"""Say what is seen of providers' wires and of both frameworks' clients for them, as a table in Markdown.

    python benchmarks/providers_table.py [--only WORDS] [--write | --check]

Each row asks a chain or an engine over a real client, whose server is on loopback and speaks the provider's wire; the
rows are those of `tests/support/providers.py`. What it shows is what was seen, in all four modes.

`--write` puts the rows that can be run here into docs/providers.md, with the versions of their packages, and leaves the
others as they stand; `--check` exits with 1 if other words stand there. The tests' packages have most of the clients.
The rest is no dependency of the project: `pip install langchain-aws langchain-litellm langchain-mistralai
langchain-ollama langchain-xai llama-index-llms-azure-openai llama-index-llms-bedrock-converse
llama-index-llms-mistralai llama-index-llms-ollama`, in an environment of their own.
"""

from __future__ import annotations

import argparse
import logging
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from hosts_parts import MODES, STREAMS
from providers import CELLS, ROWS, Row, seen

PAGE = Path(__file__).parents[1] / "docs" / "providers.md"
BEGIN, END = "<!-- python benchmarks/providers_table.py --write -->\n", "<!-- end of the table -->\n"
HEAD = (f"| wire | client | {' | '.join(CELLS)} |", f"|{' --- |' * (len(CELLS) + 2)}")
NAMES = {
    "whole": "sync whole replies",
    "awhole": "async whole replies",
    "stream": "sync streams",
    "astream": "async streams",
}
TOGETHER = {STREAMS: "streams", ("whole", "awhole"): "whole replies"}
_VERSION = re.compile(r" \d+(?:\.\d+)+\w*(?= \|)")

Told = Callable[[Row, str, str], str]


def words(seen_in: dict[str, str]) -> str:
    """Say in a cell what is seen in each mode: what most have in common first."""
    first, *others = sorted(set(seen_in.values()), key=lambda one: (-[*seen_in.values()].count(one), one))
    said = [first]
    for one in others:
        modes = tuple(mode for mode in seen_in if seen_in[mode] == one)
        where = TOGETHER.get(modes) or " and ".join(NAMES[mode] for mode in modes)
        said.append(f"in {where} {one}")
    return "; ".join(said)


def line(row: Row, told: Told = seen) -> str:
    """Return the line of the table for a row: what is seen in each cell, by mode where modes differ."""
    modes = {cell: STREAMS if cell == "hang-up" else MODES for cell in CELLS}
    cells = [words({mode: told(row, cell, mode) for mode in modes[cell]}) for cell in CELLS]
    return f"| {row.wire.name} | {row.client} | {' | '.join(cells)} |"


def _key(text: str) -> str:
    """Return what names a row: its wire and its client, without a version."""
    return "|".join(_VERSION.sub("", text).split("|")[:3])


def _held(page: str) -> list[str]:
    return [one for one in page.partition(BEGIN)[2].partition(END)[0].splitlines() if one.startswith("| ")]


def put(lines: Sequence[str], page: str) -> str:
    """Put lines into the table on a page, and keep those of rows that are not among them."""
    (before, _, _), (_, _, after) = page.partition(BEGIN), page.partition(END)
    held = {_key(one): one for one in [*_held(page), *lines]}
    keys = dict.fromkeys(_key(f"| {row.wire.name} | {row.client} |") for row in ROWS)
    table = [held[key] for key in keys if key in held]
    return "".join([before, BEGIN, "\n", *(f"{one}\n" for one in [*HEAD, *table]), "\n", END, after])


def stale(lines: Sequence[str], page: str) -> list[str]:
    """Return the lines that do not stand on a page, with any versions."""
    held = {_VERSION.sub("", one) for one in _held(page)}
    return [one for one in lines if _VERSION.sub("", one) not in held]


def main() -> int:
    """Print the table, write it, or look whether it still holds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", default="", help="only rows whose wire, host and client hold these words")
    parser.add_argument("--write", action="store_true", help=f"put the rows into {PAGE.name}")
    parser.add_argument("--check", action="store_true", help=f"compare them with those in {PAGE.name}")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable()
    made = []
    for row in ROWS:
        if args.only in row.name:
            if row.lacks:
                print(f"{row.name} needs {row.lacks}")
            else:
                made.append(line(row))
                print(made[-1], flush=True)
    page = PAGE.read_text("utf-8")
    if args.write:
        PAGE.write_text(put(made, page), "utf-8")
    if args.check and (old := stale(made, page)):
        print(f"\n{PAGE.name} does not say so. Run `python benchmarks/providers_table.py --write`:", *old, sep="\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
