"""Print what every strategy brings, from the recorded numbers and grades of a present-day model.

    python benchmarks/frontier.py [--json] [--svg]

Each question is led through the flow of the package, which is given recorded replies (`benchmarks/recordings`, whose
README says what they are). Quality is the mean grade by meaning, of 100. Tokens are a share of what always reading the
documents takes. The last column is the paired difference in quality to that, with its 95 % interval: documents are
resampled, each with all its questions; where there are fewer than ten, their questions are. A strategy that asks for a
reply that was not recorded has no figures; it is named below the table. `--json` prints the same as JSON, `--svg` draws
the picture of README and home page anew.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from frontier_rows import (
    CAREFUL,
    EVEN,
    FEW,
    GRADED,
    NEAREST,
    NEVER,
    PAPER,
    RAG,
    RUNGS,
    SECTIONS,
    SURER,
    WHOLE,
    Json,
    Strategy,
    replay,
)

RECORDINGS = Path(__file__).resolve().parent / "recordings"
PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
CHARACTERS = 4  # of a token


@dataclass(frozen=True, slots=True)
class Collection:
    """Questions that are counted together, and what is tried on them."""

    name: str
    file: str
    parts: tuple[str, ...]
    strategies: tuple[Strategy, ...]


COLLECTIONS = {
    "long": Collection(
        "Long documents",
        "rows.jsonl",
        ("long documents",),
        (RAG, PAPER, SECTIONS, GRADED, EVEN, CAREFUL, NEAREST, RUNGS, SURER, WHOLE),
    ),
    "both": Collection(
        "Documents of ordinary length",
        "rows.jsonl",
        ("first half", "second half"),
        (RAG, PAPER, SECTIONS, GRADED, EVEN, CAREFUL, RUNGS, WHOLE),
    ),
    "one_store": Collection(
        "One store of 82 documents",
        "one_store.jsonl",
        ("one store of 82 documents",),
        (RAG, PAPER, SECTIONS, GRADED, EVEN, CAREFUL, RUNGS, NEVER, WHOLE, *FEW),
    ),
}


def rows_of(collection: Collection, folder: Path = RECORDINGS) -> list[Json]:
    """Return the questions of a collection."""
    lines = (folder / collection.file).read_text("utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["part"] in collection.parts]


def figures(rows: Sequence[Json], strategy: Strategy) -> Json:
    """Return the quality of a strategy, its tokens, and how many questions read documents.

    If replies were not recorded, only their number is returned.
    """
    found = [replay(row, strategy) for row in rows]
    outcomes = [each for each in found if each is not None]
    if len(outcomes) < len(found):
        return {"not_recorded": len(found) - len(outcomes)}
    characters = sum(each.characters for each in outcomes)
    shares = {"tokens": "document_characters", "of_the_right_document": "right_document_characters"}
    return {
        "quality": 100 * sum(each.grade for each in outcomes) / len(rows),
        **{
            name: 100 * characters / sum(row[whole] for row in rows)
            for name, whole in shares.items()
            if whole in rows[0]
        },
        "read": sum(each.read for each in outcomes),
        "less": [100 * (each.grade - row["long_context"]["grade"]) for each, row in zip(outcomes, rows, strict=True)],
    }


def counts(rows: Sequence[Json]) -> Json:
    """Return how many questions and documents there are, and how long a document is, in tokens."""
    documents: dict[str, int] = {}
    for row in rows:
        documents[row["document"]] = int(row.get("right_document_characters") or row["document_characters"])
    return {
        "questions": len(rows),
        "documents": len(documents),
        "tokens_a_document": sum(documents.values()) / len(documents) / CHARACTERS,
    }


def with_interval(found: Json, rows: Sequence[Json]) -> Json:
    """Replace the differences to the long context by their mean and its 95 % interval."""
    from selfroute_workbench.evaluation.statistics import Units  # noqa: PLC0415 - the pictures need no numpy

    if "less" not in found:
        return found
    less = found["less"]
    interval = Units([row["document"] for row in rows]).interval(less)
    return {**found, "less": sum(less) / len(less), "interval": interval}


def table_of(collection: Collection, folder: Path = RECORDINGS) -> Json:
    """Return the figures of a collection by strategy, and of what they are."""
    rows = rows_of(collection, folder)
    named = {each.name: with_interval(figures(rows, each), rows) for each in collection.strategies}
    return {"name": collection.name, **counts(rows), "strategies": named}


def heading(about: Json) -> str:
    """Say in a line what was counted."""
    length = round(about["tokens_a_document"], -3 if about["tokens_a_document"] > 20_000 else -2)
    return f"{about['questions']} questions about {about['documents']} documents of {length:,.0f} tokens"


def share(percent: float) -> str:
    """Return a share as it is printed."""
    return f"{percent:.1f} %" if percent < 9.95 else f"{percent:.0f} %"


def lines_of(table: Json) -> Iterator[str]:
    """Print a table as Markdown."""
    yield f"{table['name']}: {heading(table)}"
    yield ""
    right = "of_the_right_document" in table["strategies"]["RAG"]
    names = ["quality", "tokens", *(["of the right document's"] if right else []), "read documents"]
    yield f"| | {' | '.join(names)} | less the long context, 95 % |"
    yield "| --- " * (len(names) + 2) + "|"
    for name, found in table["strategies"].items():
        if "quality" in found:
            shares = [share(found[key]) for key in ("tokens", "of_the_right_document") if key in found]
            cells = [name, f"{found['quality']:.1f}", *shares, str(found["read"]), difference(found)]
            yield f"| {' | '.join(cells)} |"
    missing = {name: found["not_recorded"] for name, found in table["strategies"].items() if "not_recorded" in found}
    if missing:
        yield ""
        yield "Replies that were not recorded: " + "; ".join(f"{name} {count}" for name, count in missing.items())


def difference(found: Json) -> str:
    """Return the difference to the long context with its interval, if there is one."""
    if found["interval"] is None:
        return ""
    low, high = found["interval"]
    return f"{found['less']:+.1f} [{low:.1f}, {high:.1f}]"


def draw_pictures() -> None:
    """Draw the picture of README and home page anew."""
    sys.path.append(str(PICTURES))
    import draw  # noqa: PLC0415 - it imports this module

    for name, content in draw.drawn_of(draw.frontier).items():
        (PICTURES / name).write_text(content, "utf-8")
        print(PICTURES / name)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables, or JSON; or draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON only")
    parser.add_argument("--svg", action="store_true", help="draw the picture of README and home page anew")
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
