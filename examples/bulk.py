"""Answer a file of questions, a few at a time; after an interruption, run it again and it continues.

    pip install "selfroute-workbench[embeddings]" langchain-openai
    python examples/bulk.py                                  # the 30 questions that come with selfroute
    python examples/bulk.py questions.txt --out answers.jsonl --model openai:gpt-5-mini --at-once 8

Questions are the lines of a text file, or a JSONL with the key `question`; other keys are copied to the answer. Each
answer is written as soon as it arrives, and is not asked for again. Questions that failed are in answers.failed.jsonl,
and the next run asks them again. Questions that find the same document follow one another, so that the provider's
prompt cache still holds it. It shows a progress bar and, at the end, what this run cost. Without `--model`, recorded
replies of a language model answer the questions that come with selfroute, priced as Claude Sonnet 4.5's, and the
built-in extractive reader, which is not an LLM, answers those of a file.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain.chat_models import init_chat_model
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_text_splitters import RecursiveCharacterTextSplitter
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

from langchain_selfroute import SelfRouteChain, SelfRouteLedger
from selfroute.error_text import one_line
from selfroute_workbench.demo.corpus import load_documents, load_questions
from selfroute_workbench.demo.recorded import PRICED_AS
from selfroute_workbench.demo.with_langchain import ExtractiveReader, RecordedModel, load_embeddings

Row = dict[str, Any]
SLICE = 1_000  # questions that are put in order, and asked, together


def read_rows(path: Path | None) -> list[Row]:
    """Read the questions of a file, or without one those that come with selfroute."""
    if path is None:
        return [{"id": question.id, "question": question.question} for question in load_questions()]
    lines = [line.strip() for line in path.read_text("utf-8-sig").split("\n") if line.strip()]
    rows = [json.loads(line) if path.suffix == ".jsonl" else {"question": line} for line in lines]
    if wrong := [row for row in rows if not isinstance(row, dict) or not isinstance(row.get("question"), str)]:
        msg = f"{path}: there is no question in {json.dumps(wrong[0])[:80]}"
        raise ValueError(msg)
    for row in rows:
        row.pop("error", None)  # of an earlier run
    return [*{name_of(row): row for row in rows}.values()]


def read_answers(path: Path) -> list[Row]:
    """Read what earlier runs wrote, and remove a last line that was cut off when a run was killed."""
    data = path.read_bytes() if path.exists() else b""
    *lines, last = data.split(b"\n")
    if last:
        try:
            json.loads(last)
        except ValueError:
            os.truncate(path, len(data) - len(last))
        else:
            lines.append(last)
            with path.open("ab") as file:
                file.write(b"\n")
    return [json.loads(line) for line in lines if line.strip()]


def name_of(row: Mapping[str, Any]) -> str:
    """Return what identifies a question: the same words with the same `id` are asked once."""
    return json.dumps([row.get("id"), row["question"]])


class Pooled(Embeddings):
    """Embeds the questions of a slice in one call, which takes a local model a sixth of the time, and looks them up.

    This is for models that embed questions and passages alike, as all-MiniLM-L6-v2 does.
    """

    def __init__(self, inner: Embeddings) -> None:
        """Take the embeddings of the store."""
        self.inner, self.vectors = inner, dict[str, list[float]]()

    def prepare(self, questions: Sequence[str]) -> None:
        """Embed the questions that will be asked next; those of before are forgotten."""
        self.vectors = dict(zip(questions, self.inner.embed_documents(list(questions)), strict=True))

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed passages."""
        return self.inner.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a question."""
        return self.vectors.get(text) or self.inner.embed_query(text)


async def answer_all(
    chain: SelfRouteChain,
    rows: Sequence[Row],
    *,
    out: Path,
    config: RunnableConfig,
    prepare: Callable[[Sequence[str]], None] | None = None,
) -> int:
    """Ask the questions that are not answered yet, and return how many failed; `prepare` is given each slice first."""
    done = {name_of(row) for row in read_answers(out)}
    left = [row for row in rows if name_of(row) not in done]
    failures = 0
    failed_beside(out).unlink(missing_ok=True)
    with Progress(BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task("Answering", total=len(rows), completed=len(rows) - len(left))
        for start in range(0, len(left), SLICE):
            some = left[start : start + SLICE]
            if prepare:
                await asyncio.to_thread(prepare, [row["question"] for row in some])
            some = await by_document(chain.retriever, some, at_once=config.get("max_concurrency"))
            questions = [row["question"] for row in some]
            async for number, result in chain.abatch_as_completed(questions, config, return_exceptions=True):
                if isinstance(result, Exception):
                    failures += 1
                    add_line(failed_beside(out), {**some[number], "error": one_line(result)})
                else:
                    answer = {key: result[key] for key in ("answer", "route", "answerable", "decision", "usage")}
                    add_line(out, {**some[number], **answer})
                bar.advance(task)
    return failures


async def by_document(
    retriever: Runnable[str, list[Document]], rows: Sequence[Row], *, at_once: int | None
) -> list[Row]:
    """Put questions in an order in which those that find the same document first follow one another."""
    config = RunnableConfig(max_concurrency=at_once)
    found = await retriever.abatch([row["question"] for row in rows], config, return_exceptions=True)
    places: dict[str, list[Row]] = {}
    for row, passages in zip(rows, found, strict=True):  # what fails here will fail, and be told, where it is asked
        best = passages[0].metadata.get("source") if isinstance(passages, list) and passages else None
        places.setdefault(str(best), []).append(row)
    return [row for lane in places.values() for row in lane]


def add_line(path: Path, row: Row) -> None:
    """Append a line, and close the file, so that it is kept if the run is killed next."""
    path.touch(0o600)  # answers are for nobody else
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def failed_beside(out: Path) -> Path:
    """Return the path of the file for questions that failed."""
    return out.with_suffix(".failed.jsonl")


def make_store(embeddings: Embeddings) -> Chroma:
    """Index the document that comes with selfroute. Open your own store here."""
    documents = [Document(text, metadata={"source": name}) for name, text in load_documents().items()]
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=1200,
        chunk_overlap=200,
        separators=["\n\n", ". ", "\n", " ", ""],
        keep_separator="end",
        add_start_index=True,
    )
    return Chroma.from_documents(splitter.split_documents(documents), embeddings)


def main() -> None:
    """Answer a file."""
    parser = ArgumentParser(description="Answers a file of questions.")
    parser.add_argument("questions", type=Path, nargs="?", help="a text file, or a .jsonl")
    parser.add_argument("--out", type=Path, default=Path("answers.jsonl"))
    parser.add_argument("--at-once", type=int, default=4, help="how many questions to ask at a time")
    parser.add_argument("--model", metavar="PROVIDER:NAME", help="such as openai:gpt-5-mini")
    options = parser.parse_args()
    if not options.out.parent.is_dir():
        parser.error(f"--out: there is no folder {options.out.parent}")
    try:
        rows = read_rows(options.questions)
        llm = init_chat_model(options.model) if options.model else None
    except Exception as error:  # noqa: BLE001 - each provider's client has its own errors
        parser.error(one_line(error))
    embeddings, ledger = Pooled(load_embeddings()), SelfRouteLedger()
    is_recorded = options.questions is None and llm is None
    answering = RecordedModel() if is_recorded else llm or ExtractiveReader()
    priced_as = PRICED_AS if is_recorded else None
    chain = SelfRouteChain.from_vectorstore(make_store(embeddings), answering, k=5, priced_as=priced_as)
    config = RunnableConfig(max_concurrency=options.at_once, callbacks=[ledger])
    try:
        failures = asyncio.run(answer_all(chain, rows, out=options.out, config=config, prepare=embeddings.prepare))
    except KeyboardInterrupt:
        sys.exit("interrupted: run the same command to continue")
    finally:
        print(ledger)
    if failures:
        sys.exit(f"{failures} failed, see {failed_beside(options.out)}: run the same command to ask them again")


if __name__ == "__main__":
    main()
