"""Answer a large file of questions with Ray, on one machine or many; run it again, and it continues.

    pip install "selfroute-workbench[embeddings]" langchain-openai ray
    python examples/bulk_ray.py                              # the 30 questions that come with selfroute
    python examples/bulk_ray.py questions.jsonl --out bulk --chain my_module:make_chain --actors 4 --at-once 32

Questions are read as `examples/bulk.py` reads them. `--chain` names a function that returns your `SelfRouteChain`, with
your store and your model; each actor calls it once, since no client can be sent to another process. Without it each
actor indexes the document that comes with selfroute, and an extractive reader answers, which is not an LLM.

Each actor asks with `abatch_as_completed`, and appends each answer at once to a file of its own in the folder `--out`.
So whatever dies, an actor or this program, the same command asks only what has no answer: nothing is paid twice but the
calls that were in flight. A question that failed has an `error`, and the next run asks it again. `answers.jsonl` has
the answers of all actors, and the ledger says what they cost.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
import ray
from bulk import add_line, make_store, name_of, read_answers, read_rows
from langchain_core.runnables import RunnableConfig
from ray.util import ActorPool

from langchain_selfroute import SelfRouteChain, SelfRouteLedger
from selfroute.error_text import one_line
from selfroute_workbench.demo.with_langchain import ExtractiveReader, load_embeddings

Row = dict[str, Any]
KEPT = ("answer", "route", "answerable", "decision", "usage")
BLOCK = 256  # questions that are handed out together


@ray.remote(max_restarts=-1, max_task_retries=-1, num_cpus=0.25)  # it waits for the network most of the time
class Asker:
    """Asks blocks of questions, one after another; where it died, Ray starts it again with the block that it had."""

    def __init__(self, place: str | None, out: Path, at_once: int) -> None:
        self.chain = load(place)() if place else make_chain()
        self.out, self.at_once = out, at_once

    async def ask(self, rows: Sequence[Row]) -> None:
        """Append the answer to each question that has none; an error is an answer, too."""
        done = {name_of(row) for row in read_answers(self.out) if "error" not in row}
        left = [row for row in rows if name_of(row) not in done]
        config = RunnableConfig(max_concurrency=self.at_once)
        questions = [row["question"] for row in left]
        async for number, result in self.chain.abatch_as_completed(questions, config, return_exceptions=True):
            if isinstance(result, Exception):
                add_line(self.out, {**left[number], "error": f"{type(result).__name__}: {one_line(result)}"})
            else:
                add_line(self.out, {**left[number], **{key: result[key] for key in KEPT}})


def load(place: str) -> Callable[[], SelfRouteChain]:
    """Import the function that makes a chain, from where it is installed or from this folder."""
    module, _, name = place.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    function: Callable[[], SelfRouteChain] = getattr(importlib.import_module(module), name)
    return function


def make_chain() -> SelfRouteChain:
    """Make the chain of an actor over the document that comes with selfroute."""
    return SelfRouteChain.from_vectorstore(make_store(load_embeddings()), ExtractiveReader())


def blocks_of(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Cut the questions into blocks."""
    return (rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK))


def answers_in(out: Path) -> dict[str, Row]:
    """Return what the actors have written, by question; an answer beats an error."""
    found: dict[str, Row] = {}
    for path in sorted(out.glob("actor-*.jsonl")):
        for row in read_answers(path):
            if "error" in found.get(name_of(row), {"error": None}):
                found[name_of(row)] = row
    return found


def main() -> None:
    """Answer a file."""
    parser = ArgumentParser(description="Answers a large file of questions with Ray.")
    parser.add_argument("questions", type=Path, nargs="?", help="a text file, or a .jsonl")
    parser.add_argument("--out", type=Path, default=Path("bulk"), help="a folder that all machines see")
    parser.add_argument("--chain", metavar="MODULE:FUNCTION", help="a function that returns a SelfRouteChain")
    parser.add_argument("--actors", type=int, default=2, help="processes that ask")
    parser.add_argument("--at-once", type=int, default=16, help="how many questions each of them asks at a time")
    options = parser.parse_args()
    out = options.out.resolve()
    out.mkdir(0o700, parents=True, exist_ok=True)  # questions and answers are for nobody else
    try:
        rows = read_rows(options.questions)
        (load(options.chain) if options.chain else make_chain)()  # an actor's error would be lost among Ray's
    except Exception as error:  # noqa: BLE001 - each provider's client has its own errors
        parser.error(one_line(error))
    done = {name for name, row in answers_in(out).items() if "error" not in row}
    left = [row for row in rows if name_of(row) not in done]
    if left:
        ray.init(os.environ.get("RAY_ADDRESS", "local"), include_dashboard=False, logging_level="warning")
        names = [out / f"actor-{number}.jsonl" for number in range(options.actors)]
        pool = ActorPool([Asker.remote(options.chain, name, options.at_once) for name in names])
        for _ in pool.map_unordered(lambda asker, block: asker.ask.remote(block), list(blocks_of(left))):
            print(f"{len(answers_in(out))} of {len(rows)}", file=sys.stderr)
    found = answers_in(out)
    answers = [found[name_of(row)] for row in rows if name_of(row) in found]
    (out / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in answers), encoding="utf-8")
    print(SelfRouteLedger.read(answers))
    if failures := sum("error" in row for row in answers):
        sys.exit(f"{failures} failed, see {out / 'answers.jsonl'}: run the same command to ask them again")


if __name__ == "__main__":
    main()
