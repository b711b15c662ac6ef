"""Print what every strategy brings, from the recorded numbers and grades of a present-day model.

    python benchmarks/frontier.py [--json] [--svg]

Each question is led through the flow of the package, which is given recorded replies (`benchmarks/recordings`, whose
README says what they are). Quality is the mean grade by meaning, of 100. Tokens are a share of what always reading all
documents behind five passages takes, and a multiple of RAG's. Dollars are those of the prompts, without replies, at
0.25 dollars for a million tokens (gpt-5-mini). The last column is the paired difference in quality to reading all, with
its 95 % interval: documents are resampled, each with all its questions; where there are fewer than ten, their questions
are. A strategy that asks for a reply that was not recorded is named below the table. `--json` prints the same as JSON,
`--svg` draws the picture of README and home page again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frontier_rows import (
    DEFAULT,
    DRAFTS,
    EARLIER,
    NEVER,
    NO_STOP,
    PAPER,
    RAG,
    RAG_20,
    SURER,
    WHOLE,
    Json,
    Strategy,
    looks_in,
    replay,
)

RECORDINGS = Path(__file__).resolve().parent / "recordings"
PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
CHARACTERS = 4  # of a token
PRICE = 0.25  # dollars for a million tokens of a prompt, as OpenAI asks for gpt-5-mini
ALL = (RAG, RAG_20, DEFAULT, NEVER, PAPER, WHOLE, EARLIER, SURER, NO_STOP, DRAFTS)
"""What is tried on each collection; what was not recorded of it is left out."""


@dataclass(frozen=True, slots=True)
class Collection:
    """Questions that are counted together.

    Attributes:
        name: What they are asked of.
        file: The recording that holds them.
        field: The field of a row that selects them, if not all of the recording are counted.
        values: The values of that field.
    """

    name: str
    file: str
    field: str = "part"
    values: tuple[Any, ...] = ()


_STORE = "default_one_store.jsonl"
COLLECTIONS = {
    "one_store": Collection("One store of 81 documents of some 15,000 tokens", _STORE),
    "named": Collection("The questions among them that name their document", _STORE, "names_its_document", (True,)),
    "pages": Collection("One store of 330 pages of a handbook, of some 1,800 tokens", "handbook_store.jsonl"),
    "long": Collection(
        "Documents of 115,000 tokens, each in a store of its own", "rows.jsonl", values=("long documents",)
    ),
    "both": Collection(
        "Documents of 12,700 tokens, each in a store of its own", "rows.jsonl", values=("first half", "second half")
    ),
}


def rows_of(collection: Collection, folder: Path = RECORDINGS) -> list[Json]:
    """Return the questions of a collection."""
    rows = map(json.loads, (folder / collection.file).read_text("utf-8").splitlines())
    return [row for row in rows if not collection.values or row[collection.field] in collection.values]


def figures(rows: Sequence[Json], strategy: Strategy) -> Json:
    """Return the quality of a strategy, its tokens, its dollars, and how many questions read documents.

    If replies were not recorded, only their number is returned.
    """
    found = [replay(row, strategy) for row in rows]
    outcomes = [each for each in found if each is not None]
    if len(outcomes) < len(found):
        return {"not_recorded": len(found) - len(outcomes)}
    looks = [looks_in(row) for row in rows]
    characters = sum(each.characters for each in outcomes)
    return {
        "quality": 100 * sum(each.grade for each in outcomes) / len(rows),
        "tokens": 100 * characters / sum(look["all"].characters for look in looks),
        "times_rag": characters / sum(look["rag"].characters for look in looks),
        "dollars": characters / CHARACTERS / len(rows) * 1_000 * PRICE / 1_000_000,
        "read": sum(each.steps[-1] in ("documents", "all") for each in outcomes),
        "less": [100 * (each.grade - look["all"].grade) for each, look in zip(outcomes, looks, strict=True)],
    }


def with_interval(found: Json, rows: Sequence[Json]) -> Json:
    """Replace the differences to reading all documents by their mean and its 95 % interval."""
    from selfroute_workbench.evaluation.statistics import Units  # noqa: PLC0415 - the pictures need no numpy

    less = found["less"]
    interval = Units([str(row.get("document", row["id"])) for row in rows]).interval(less)
    return {**found, "less": sum(less) / len(less), "interval": interval}


def table_of(collection: Collection, folder: Path = RECORDINGS) -> Json:
    """Return the figures of a collection by strategy."""
    rows = rows_of(collection, folder)
    found = {each.name: figures(rows, each) for each in ALL}
    known = {name: with_interval(one, rows) for name, one in found.items() if "quality" in one}
    missing = {name: one["not_recorded"] for name, one in found.items() if "not_recorded" in one}
    return {"name": collection.name, "questions": len(rows), "strategies": known, "not_recorded": missing}


def share(percent: float) -> str:
    """Return a share as it is printed."""
    return f"{percent:.1f} %" if percent < 99.95 else f"{percent:.0f} %"


def lines_of(table: Json) -> Iterator[str]:
    """Print a table as Markdown."""
    yield f"{table['name']}, {table['questions']} questions"
    yield ""
    yield "| | quality | tokens of all | times RAG | $ for 1,000 | read documents | difference to all, 95 % |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for name, found in table["strategies"].items():
        counted = f"{found['quality']:.1f}", share(found["tokens"]), f"{found['times_rag']:.1f}"
        dollars = f"{found['dollars']:.2f}"
        yield f"| {' | '.join([name, *counted, dollars, str(found['read']), difference(found)])} |"
    if missing := table["not_recorded"]:
        yield ""
        yield "Replies that were not recorded: " + "; ".join(f"{name} {count}" for name, count in missing.items())


def difference(found: Json) -> str:
    """Return the difference to reading all documents with its interval, if there is one."""
    if found["interval"] is None:
        return ""
    low, high = found["interval"]
    return f"{found['less']:+.1f} [{low:.1f}, {high:.1f}]"


def draw_pictures() -> None:
    """Draw the picture of README and home page again."""
    sys.path.append(str(PICTURES))
    import draw  # noqa: PLC0415 - it imports this module

    for name, content in draw.drawn_of(draw.frontier).items():
        (PICTURES / name).write_text(content, "utf-8")
        print(PICTURES / name)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables, or JSON; or draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON only")
    parser.add_argument("--svg", action="store_true", help="draw the picture of README and home page again")
    options = parser.parse_args(arguments)
    if options.svg:
        draw_pictures()
        return
    tables = {key: table_of(collection) for key, collection in COLLECTIONS.items()}
    if options.json:
        print(json.dumps(tables, indent=2))
    else:
        print("\n\n".join("\n".join(lines_of(table)) for table in tables.values()))


if __name__ == "__main__":
    main()
