"""Answer a large file of questions with Ray Data, on one machine or many; run it again, and it continues.

    pip install "selfroute-workbench[embeddings]" langchain-openai "ray[data]"
    python examples/bulk_ray.py                              # the 30 questions that come with selfroute
    python examples/bulk_ray.py questions.jsonl --out bulk --model openai:gpt-4o-mini --actors 2 --at-once 32
    python examples/bulk_ray.py questions.parquet --out bulk --chain my_module:make_chain

Questions are the lines of a text file, or the rows of a .jsonl or .parquet with the key `question`; other keys are
copied to the answer. First all drafts are written, in any order. Then the questions whose draft declined are grouped by
the documents that they need: the first of a group goes ahead, and the others find these in the provider's prompt cache.
In the end `answers.jsonl` in the folder `--out` has the answers, and the ledger says what they cost.

`--chain` names a function that returns your `SelfRouteChain`, with your store and your model; each actor calls it once.
Without it each actor indexes the documents that come with selfroute, and without `--model` the built-in extractive
reader answers, which is not an LLM.

If an actor dies, Ray starts another. If this program dies, the same command continues, and asks again only what was in
progress: blocks of `--block` questions. A question that failed has an `error` in place of its answer, and the next run
asks it again, from its draft if there is one.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import json
import math
import os
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
from langchain.chat_models import init_chat_model
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from langchain_text_splitters import RecursiveCharacterTextSplitter

from langchain_selfroute import SelfRouteChain, SelfRouteLedger
from selfroute.error_text import one_line
from selfroute_workbench.demo.corpus import load_documents, load_questions
from selfroute_workbench.demo.with_langchain import ExtractiveReader, load_embeddings

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_DATA_DEFAULT_ASYNC_ROW_UDF_MAX_CONCURRENCY"] = "1000"  # an actor itself limits what it asks at once
import ray
from ray.data.checkpoint import CheckpointConfig
from ray.data.expressions import col

Row = dict[str, Any]
# A question on its way: its number, the row of the file, and what is known of its answer, which are JSON, since what
# rows hold differs, and the columns of parquet files must not.
SCHEMA = pa.schema([("id", pa.int64()), ("question", pa.string()), ("result", pa.string())])
ACTOR_CPUS = 0.25  # an actor waits for the network most of the time
OTHER_CPUS = 3  # what Ray reads, filters and writes with; without them a job waits for ever
PIECE = 64  # questions that read the same documents, and go to one actor together


def read_questions(path: Path | None) -> Iterator[Row]:
    """Read the questions of a file, or without one those that come with selfroute."""
    if path is None:
        yield from ({"id": question.id, "question": question.question} for question in load_questions())
    elif path.suffix == ".parquet":
        for batch in pq.ParquetFile(path).iter_batches():
            yield from batch.to_pylist()
    else:
        with path.open(encoding="utf-8-sig") as file:
            for line in map(str.strip, file):
                if line:
                    yield json.loads(line) if path.suffix == ".jsonl" else {"question": line}


def numbered(rows: Iterator[Row]) -> Iterator[Row]:
    """Yield questions as they are sent through the steps."""
    for number, row in enumerate(rows):
        if not isinstance(row, dict) or not isinstance(row.get("question"), str):
            msg = f"there is no question in {json.dumps(row, default=str)[:80]}"
            raise ValueError(msg)  # noqa: TRY004 - the file is at fault, not the caller
        row.pop("error", None)  # of an earlier run
        yield {"id": number, "question": json.dumps(row, default=str), "result": ""}


def open_round(out: Path, questions: Path | None) -> Path | None:
    """Return the folder of the round that is to be run, with its questions in parquet; None if nothing is left to do.

    The first round has the questions of the file, and each later one those that failed in the one before.

    Raises:
        ValueError: The folder has the answers to other questions.
    """
    rounds, digest = rounds_in(out), digest_of(questions)
    if rounds and pq.read_schema(rounds[0] / "questions.parquet").metadata[b"digest"] != digest:
        msg = f"{out} has the answers to other questions: take another folder for --out"
        raise ValueError(msg)
    if rounds and not (rounds[-1] / "finished").exists():
        return rounds[-1]
    left = again(rounds[-1]) if rounds else numbered(read_questions(questions))
    folder = out / f"round-{len(rounds) + 1:03}"
    folder.mkdir(0o700, parents=True, exist_ok=True)  # questions and answers are for nobody else
    with pq.ParquetWriter(folder / "part", SCHEMA.with_metadata({"digest": digest})) as writer:
        count = 0
        for rows in iter(lambda: list(islice(left, 10_000)), []):
            writer.write_table(pa.Table.from_pylist(rows, SCHEMA))
            count += len(rows)
    if count:
        return (folder / "part").rename(folder / "questions.parquet").parent
    (folder / "part").unlink()
    folder.rmdir()
    return None


def rounds_in(out: Path) -> list[Path]:
    """Return the folders of the rounds that have begun."""
    return sorted(path.parent for path in out.glob("round-*/questions.parquet"))


def digest_of(path: Path | None) -> bytes:
    """Return what tells a file from another."""
    digest = hashlib.sha256()
    if path:
        with path.open("rb") as file:
            while data := file.read(1 << 20):
                digest.update(data)
    return digest.hexdigest().encode()


def again(folder: Path) -> Iterator[Row]:
    """Yield the questions of a round that failed: with the result of the first step, if that is not what failed."""
    for row, result in results(folder):
        if result.pop("error", None):
            yield {**row, "result": json.dumps(result) if result else ""}


class Drafts:
    """Write drafts; one for each actor, which makes the chain there, since no client can be sent to another process."""

    def __init__(self, make_chain: Callable[[], SelfRouteChain], at_once: int) -> None:
        self.chain = make_chain()
        self.free = asyncio.Semaphore(at_once)

    async def __call__(self, row: Row) -> Row:
        """Add the result of the first step, and the documents that the second one reads; `""` if it is over."""
        result = json.loads(row["result"] or "{}")
        if not result:
            result = await self.ask(self.chain.first_step, json.loads(row["question"])["question"])
        if result.get("done", True):
            return {**row, "documents": "", "result": json.dumps(brief(result))}
        return {**row, "documents": json.dumps(sorted(result["sources"], key=str)), "result": json.dumps(result)}

    async def ask(self, step: Runnable[Any, Any], given: Any) -> Row:
        """Take a step; an error is a result."""
        async with self.free:
            try:
                return dict(await step.ainvoke(given))
            except Exception as error:  # noqa: BLE001 - each provider's client has its own errors
                name = type(error).__name__
                return {"error": f"{name}: {one_line(error).removesuffix(f' ({name})')}"}


class Answers(Drafts):
    """Answer the questions on one document, or on the same few, from their drafts."""

    async def __call__(self, row: Row) -> Row:
        """Ask the first, and then the others at once: till then they would wait for the prompt cache in any case."""
        first, *others = json.loads(row["rows"])
        answered = [await self.answered(first), *await asyncio.gather(*map(self.answered, others))]
        return {"id": row["id"], "rows": json.dumps(answered)}

    async def answered(self, row: Row) -> Row:
        """Take the second step of a question; if it fails, keep the draft."""
        draft = json.loads(row["result"])
        result = await self.ask(self.chain.second_step, draft)
        return {**row, "result": json.dumps({**draft, **result} if "error" in result else brief(result))}


def brief(result: Row) -> Row:
    """Return what is kept of a result in the end."""
    keys = ("usage", "error") if "error" in result else ("answer", "route", "answerable", "decision", "usage")
    return {key: result[key] for key in keys if key in result}


def pieces(group: pa.Table) -> pa.Table:
    """Cut the questions on the same documents into rows of at most PIECE; their ids are those of their first ones."""
    rows = group.select(SCHEMA.names).to_pylist()
    cut = [rows[start : start + PIECE] for start in range(0, len(rows), PIECE)]
    return pa.table({"id": [some[0]["id"] for some in cut], "rows": [json.dumps(some) for some in cut]})


def run_round(folder: Path, make_chain: Callable[[], SelfRouteChain], *, actors: int, at_once: int, block: int) -> None:
    """Write the drafts, group what declined, and answer it; what was done before is not done again."""

    def ask(step: type[Drafts], source: str, to: str, rows: int) -> None:
        """Send the rows of a parquet file or folder through a step, and keep which of them are done."""
        context = ray.data.DataContext.get_current()
        context.checkpoint_config = CheckpointConfig(
            "id", str(folder / f"{to}.checkpoint"), delete_checkpoint_on_success=False
        )
        pool = ray.data.ActorPoolStrategy(
            size=actors, max_tasks_in_flight_per_actor=3, max_concurrent_calls_per_actor=2
        )
        ray.data.read_parquet(str(folder / source)).repartition(target_num_rows_per_block=rows).map(
            step, fn_constructor_args=(make_chain, at_once), compute=pool, num_cpus=ACTOR_CPUS
        ).write_parquet(str(folder / to))
        context.checkpoint_config = None

    groups = folder / "groups"
    if not groups.exists():
        ask(Drafts, "questions.parquet", "drafts", block)
        left = drafts_in(folder).count_rows(filter=pads.field("documents") != "")
        if left:
            drafts = ray.data.read_parquet(str(folder / "drafts")).filter(expr=col("documents") != "")
            grouped = drafts.groupby("documents", num_partitions=actors + left // 50_000)
            part = folder / "groups.part"
            grouped.map_groups(pieces, batch_format="pyarrow").write_parquet(str(part), mode="overwrite")
            part.rename(groups)
    if groups.exists():
        left = drafts_in(folder).count_rows(filter=pads.field("documents") != "")
        number = pads.dataset(groups, format="parquet").count_rows()
        ask(Answers, "groups", "answers", max(1, block * number // left))
    (folder / "finished").touch()


def drafts_in(folder: Path) -> pads.Dataset:
    """Return the drafts of a round."""
    return pads.dataset(folder / "drafts", format="parquet")


def results(folder: Path) -> Iterator[tuple[Row, Row]]:
    """Yield the questions of a round, each with its result: an answer, or what failed."""
    answers = folder / "answers"
    for batch in drafts_in(folder).to_batches(filter=pads.field("documents") == ""):
        yield from ((row, json.loads(row.pop("result"))) for row in batch.select(SCHEMA.names).to_pylist())
    for batch in pads.dataset(answers, format="parquet").to_batches(batch_size=100) if answers.exists() else ():
        for rows in batch["rows"].to_pylist():
            yield from ((row, json.loads(row.pop("result"))) for row in json.loads(rows))


def write_answers(out: Path) -> Iterator[Row]:
    """Write `answers.jsonl`, and yield each result: the answers of all rounds, and what failed in the last one."""
    rounds, part = rounds_in(out), out / "answers.part"
    part.touch(0o600)
    with part.open("w", encoding="utf-8") as file:
        for folder in rounds:
            for row, result in results(folder):
                if "error" not in result or folder == rounds[-1]:
                    file.write(json.dumps({**json.loads(row["question"]), **brief(result)}) + "\n")
                    yield result
    part.rename(out / "answers.jsonl")


def make_chain(model: str | None) -> SelfRouteChain:
    """Make the chain of an actor: index the documents that come with selfroute. Open your own store here."""
    llm = init_chat_model(model) if model else None
    embeddings = load_embeddings()
    documents = [Document(text, metadata={"source": name}) for name, text in load_documents().items()]
    splitter = RecursiveCharacterTextSplitter(chunk_size=1200, chunk_overlap=200, add_start_index=True)
    store = Chroma.from_documents(splitter.split_documents(documents), embeddings)
    return SelfRouteChain.from_vectorstore(store, llm or ExtractiveReader())


def load(place: str) -> Callable[[], SelfRouteChain]:
    """Import what makes a chain, from where it is installed or from this folder."""
    module, _, name = place.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    function: Callable[[], SelfRouteChain] = getattr(importlib.import_module(module), name)
    return function


def start_ray(actors: int) -> None:
    """Start Ray here, or join the cluster at RAY_ADDRESS.

    Raises:
        ValueError: The cluster is too small.
    """
    needed = actors * ACTOR_CPUS + OTHER_CPUS
    address = os.environ.get("RAY_ADDRESS", "local")
    cpus = max(os.cpu_count() or 1, math.ceil(needed)) if address == "local" else None
    ray.init(address, num_cpus=cpus, include_dashboard=False, logging_level="warning")
    if (found := ray.cluster_resources().get("CPU", 0)) < needed:
        msg = f"{actors} actors need a cluster of {needed:g} CPUs, not {found:g}: take fewer --actors"
        raise ValueError(msg)


def main() -> None:
    """Answer a file."""
    parser = ArgumentParser(description="Answers a large file of questions with Ray Data.")
    parser.add_argument("questions", type=Path, nargs="?", help="a text file, a .jsonl or a .parquet")
    parser.add_argument("--out", type=Path, default=Path("bulk"), help="a folder that all machines see")
    parser.add_argument("--chain", metavar="MODULE:FUNCTION", help="a function that returns a SelfRouteChain")
    parser.add_argument("--model", metavar="PROVIDER:NAME", help="such as openai:gpt-4o-mini")
    parser.add_argument("--actors", type=int, default=2, help="processes that ask")
    parser.add_argument("--at-once", type=int, default=16, help="how many questions each of them asks at a time")
    parser.add_argument("--block", type=int, default=256, help="how many questions are handed out and kept together")
    options = parser.parse_args()
    if options.chain and options.model:
        parser.error("--model is for the documents that come with selfroute: set the model in your --chain")
    try:
        make = load(options.chain) if options.chain else partial(make_chain, options.model)
        make()  # an actor's error would be lost among Ray's
        out = options.out.resolve()
        folder = open_round(out, options.questions)
        if folder:
            start_ray(options.actors)
    except Exception as error:  # noqa: BLE001 - each provider's client has its own errors
        parser.error(one_line(error))
    try:
        if folder:
            run_round(folder, make, actors=options.actors, at_once=options.at_once, block=options.block)
    except KeyboardInterrupt:
        sys.exit("interrupted: run the same command to continue")
    ledger = SelfRouteLedger.read(write_answers(out))
    print(ledger)
    if failures := ledger.to_dict()["failed"]:
        sys.exit(f"{failures} failed, see {out / 'answers.jsonl'}: run the same command to ask them again")


if __name__ == "__main__":
    main()
