"""Measure how long it takes to rebuild a whole document from a store, compared with the store's own `get`.

    python benchmarks/documents.py [--quick] [--runs 5] [--json]

The documents are generated prose in chunks of 1,000 characters: documents of 1,000,000 tokens, with and without
overlap, a document of 100,000 chunks, and a small one in the same store. The stores are Chroma (embedded, and over HTTP
on loopback, from one folder), LangChain's InMemoryVectorStore and, in LlamaIndex, Chroma and the document store. The
store's own get returns the same chunks; if Chroma refuses so many rows at once, it is asked in pages of 32,000, which
are the fastest. InMemoryVectorStore has no such get: a scan turns the chunks into Documents.

All reads run in one process, in shuffled order; times are medians, and the result is the ratio to the own get. The
second read may take the document from the cache, after asking the store for the ids of its chunks. Memory is measured
separately: the most that Python held during a read (by tracemalloc, which does not see what Chroma holds outside
Python), divided by the size of the text. Over HTTP, Chroma's client reserves twelve times each reply to parse it, and
leaves most of that unused. The lag is the longest delay of a task in the event loop, once with a read in the loop
itself and once with an async chain that reads, over a model without latency. Each store is judged by its worst
document, except for reads of less than a millisecond, and for memory of documents below 100,000 characters. Exit code 1
if a document did not come back word for word; the script names the targets that are missed.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import platform
import random
import socket
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import chromadb
import langchain_core
import llama_index.core
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.data_structs import IndexDict
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.storage.docstore.utils import doc_to_json
from llama_index.core.storage.kvstore import SimpleKVStore
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters, SimpleVectorStore
from llama_index.core.vector_stores.utils import metadata_dict_to_node
from llama_index.vector_stores.chroma import ChromaVectorStore

import langchain_selfroute
import llamaindex_selfroute
from measuring import Target, at_most, blocks, target_table

SIZE, OVERLAP, DIMENSION, BATCH = 1_000, 200, 4, 5_000
PAGE = 32_000  # the fastest for a hundred thousand chunks, embedded and over HTTP; 32,766 is the most
QUESTION, REFUSAL = "Where was it found?", "unanswerable"
OWN, FIRST, SECOND = "own get", "first read", "second read"
TIME, MEMORY, LAG = 1.3, 3, 0.5
LEAST_TIME, LEAST_TEXT = 1, 100_000  # in ms and characters; less is not judged

Json = dict[str, Any]


@dataclass(frozen=True)
class Book:
    """A document, and the overlap of its chunks."""

    name: str
    text: str
    overlap: int = 0

    def chunks(self) -> list[tuple[int, str]]:
        """Cut it into chunks with the offsets where they begin."""
        starts = range(0, len(self.text) - self.overlap, SIZE - self.overlap)
        return [(start, self.text[start : start + SIZE]) for start in starts]

    def hits(self) -> list[str]:
        """Return five chunks, spread over the document."""
        chunks = [text for _, text in self.chunks()]
        return chunks[:: -(-len(chunks) // 5)]


@dataclass(frozen=True)
class Case:
    """A document in a store.

    Attributes:
        store: The store.
        book: The document.
        own: Gets its chunks with the store's own method.
        read: Rebuilds it, and returns its text and the record of how it was rebuilt.
        forget: Empties the cache.
        answer: Lets an async chain read it.
    """

    store: str
    book: Book
    own: Callable[[], Any]
    read: Callable[[], tuple[str, Any]]
    forget: Callable[[], None]
    answer: Callable[[], Awaitable[Any]]

    def call(self, what: str) -> Callable[[], Any]:
        """Return what to call, and empty the cache before a first read."""
        if what == FIRST:
            self.forget()
        return self.own if what == OWN else self.read

    def is_right(self) -> bool:
        """Read it twice, and return whether text and record were right each time."""
        label = {"method": "offsets", "chunks": len(self.book.chunks()), "gaps": [], "trimmed": False}
        return all(self.read() == (self.book.text, label) for _ in range(2))


def prose(size: int, seed: int) -> str:
    """Generate this many characters of text, in sentences and paragraphs."""
    order = random.Random(seed)  # noqa: S311
    words = ["".join(order.choices("aabcdeeefghiilmnoorsttu", k=order.randint(2, 9))) for _ in range(4_000)]
    pieces, length = [], 0
    while length < size:
        sentence = " ".join(order.choices(words, k=order.randint(5, 20))).capitalize()
        pieces.append(sentence + order.choice((". ", ". ", ". ", "? ", ".\n\n")))
        length += len(pieces[-1])
    return "".join(pieces)[:size]


def shelves(tokens: int, chunks: int) -> list[list[Book]]:
    """Make the documents of each store, at 4.5 characters per token."""
    size = tokens * 9 // 2
    long = [Book(f"{tokens:,} tokens", prose(size, 1)), Book("as many, with overlap", prose(size, 2), OVERLAP)]
    many = [Book(f"{chunks:,} chunks", prose(chunks * SIZE, 3)), Book(f"10 chunks beside {chunks:,}", prose(9_500, 4))]
    return [long, many]


def paged(get: Callable[..., Any], where: Json) -> list[Json]:
    """Get all rows from Chroma, page by page."""
    found: list[Json] = []
    while not found or len(found[-1]["ids"]) == PAGE:
        include = ["documents", "metadatas"]
        found.append(get(where=where, limit=PAGE, offset=PAGE * len(found), include=include))
    return found


def batches(items: Sequence[Any]) -> Iterator[list[Any]]:
    """Split items into batches that Chroma accepts."""
    return (list(items[start : start + BATCH]) for start in range(0, len(items), BATCH))


def put(books: Sequence[Book], *stores: VectorStore) -> None:
    """Put documents into LangChain's vector stores."""
    for book in books:
        pieces = [Document(text, metadata={"source": book.name, "start_index": start}) for start, text in book.chunks()]
        for store in stores:
            for batch in batches(pieces):
                store.add_documents(batch)


def in_langchain(name: str, store: VectorStore, book: Book, own: Callable[[], Any]) -> Case:
    """Make a case that reads with LangChain."""
    stored = langchain_selfroute.StoredDocuments(store, filter={})
    hits = [Document(text, metadata={"source": book.name}) for text in book.hits()]
    chain = langchain_selfroute.SelfRouteChain(
        retriever=RunnableLambda(lambda _: hits), llm=FakeListChatModel(responses=[REFUSAL]), documents=stored
    )

    def read() -> tuple[str, Any]:
        (document,) = stored({"input": QUESTION, "retrieved": hits})
        return document.page_content, document.metadata["selfroute"]

    return Case(name, book, own, read, stored.forget, lambda: chain.ainvoke(QUESTION))


def chroma_cases(name: str, store: Chroma, books: Sequence[Book]) -> Iterator[Case]:
    """Make the cases that read from Chroma."""
    for book in books:
        yield in_langchain(name, store, book, partial(paged, store.get, {"source": book.name}))


def memory_cases(name: str, store: InMemoryVectorStore, books: Sequence[Book]) -> Iterator[Case]:
    """Make the cases that read from InMemoryVectorStore."""

    def scan(source: str) -> list[Document]:
        return [
            Document(id=entry["id"], page_content=entry["text"], metadata=entry["metadata"])
            for entry in store.store.values()
            if entry["metadata"].get("source") == source
        ]

    for book in books:
        yield in_langchain(name, store, book, partial(scan, book.name))


class Declining(CustomLLM):
    """A model that declines and reports no window."""

    @property
    def metadata(self) -> LLMMetadata:
        """The host's default metadata."""
        return LLMMetadata()

    def complete(self, *_: Any, **__: Any) -> CompletionResponse:
        """Reply."""
        return CompletionResponse(text=REFUSAL)

    def stream_complete(self, *_: Any, **__: Any) -> Iterator[CompletionResponse]:
        """Reply in one piece."""
        yield CompletionResponse(text=REFUSAL, delta=REFUSAL)


def nodes_of(book: Book) -> list[TextNode]:
    """Make nodes in the way a node parser does."""
    order, source = random.Random(0), RelatedNodeInfo(node_id=book.name)  # noqa: S311
    nodes = [
        TextNode(
            text=text,
            start_char_idx=start,
            end_char_idx=start + len(text),
            metadata={"file_name": book.name},
            relationships={NodeRelationship.SOURCE: source},
            embedding=[order.random() for _ in range(DIMENSION)],
        )
        for start, text in book.chunks()
    ]
    for left, right in pairwise(nodes):
        left.relationships[NodeRelationship.NEXT] = RelatedNodeInfo(node_id=right.node_id)
        right.relationships[NodeRelationship.PREVIOUS] = RelatedNodeInfo(node_id=left.node_id)
    return nodes


def in_llamaindex(name: str, index: VectorStoreIndex, book: Book, own: Callable[[], Any]) -> Case:
    """Make a case that reads with LlamaIndex."""
    stored = llamaindex_selfroute.StoredDocuments(index, filters=MetadataFilters(filters=[]))
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=book.name)}
    hits = [NodeWithScore(node=TextNode(text=text, relationships=source)) for text in book.hits()]
    chain = llamaindex_selfroute.SelfRouteSynthesizer(documents=stored, llm=Declining())

    def read() -> tuple[str, Any]:
        (document,) = stored(hits, QueryBundle(QUESTION))
        return document.get_content(), document.metadata["selfroute"]

    return Case(name, book, own, read, stored.forget, lambda: chain.asynthesize(QUESTION, hits))


def nodes_cases(name: str, store: ChromaVectorStore, books: Sequence[Book]) -> Iterator[Case]:
    """Put documents into Chroma, and make the cases that read them back."""

    def get(source: str) -> list[Any]:
        own: Any = MetadataFilters(filters=[MetadataFilter(key="ref_doc_id", value=source)])
        return store.get_nodes(None, own)

    def get_paged(source: str) -> list[Any]:
        return [
            metadata_dict_to_node(metadata, text=text)
            for found in paged(store.client.get, {"ref_doc_id": source})
            for text, metadata in zip(found["documents"], found["metadatas"], strict=True)
        ]

    index = VectorStoreIndex.from_vector_store(store, embed_model=MockEmbedding(DIMENSION))
    for book in books:
        nodes = nodes_of(book)
        for batch in batches(nodes):
            store.add(batch)
        yield in_llamaindex(name, index, book, partial(get if len(nodes) <= PAGE else get_paged, book.name))


def docstore_cases(name: str, books: Sequence[Book]) -> Iterator[Case]:
    """Put documents into an index with a document store, and make the cases that read them back."""
    nodes = {book.name: nodes_of(book) for book in books}
    every = [node for found in nodes.values() for node in found]
    texts = {node.node_id: doc_to_json(node) for node in every}
    known = {source: {"node_ids": [node.node_id for node in found]} for source, found in nodes.items()}
    # Made as if loaded from disk: adding nodes one by one takes quadratic time.
    store = SimpleDocumentStore(SimpleKVStore({"docstore/data": texts, "docstore/ref_doc_info": known}))
    vectors = SimpleVectorStore()
    vectors.add(every)
    index = VectorStoreIndex(
        index_struct=IndexDict(nodes_dict={node.node_id: node.node_id for node in every}),
        storage_context=StorageContext.from_defaults(store, vector_store=vectors),
        embed_model=MockEmbedding(DIMENSION),
    )

    def get(source: str) -> list[Any]:
        info = store.get_ref_doc_info(source)
        return store.get_nodes(info.node_ids if info else [])

    for book in books:
        yield in_llamaindex(name, index, book, partial(get, book.name))


@contextmanager
def cases_of(books: Sequence[Book]) -> Iterator[list[Case]]:
    """Put documents into all stores, and yield the cases."""
    settings, embeddings = chromadb.Settings(anonymized_telemetry=False), DeterministicFakeEmbedding(size=DIMENSION)
    with TemporaryDirectory() as folder:
        client = chromadb.PersistentClient(folder, settings=settings)
        embedded, memory = Chroma("chunks", embeddings, client=client), InMemoryVectorStore(embeddings)
        nodes = ChromaVectorStore(chroma_collection=client.create_collection("nodes"))
        put(books, embedded, memory)
        cases = [
            *chroma_cases("Chroma", embedded, books),
            *memory_cases("InMemoryVectorStore", memory, books),
            *nodes_cases("LlamaIndex, Chroma", nodes, books),
            *docstore_cases("LlamaIndex, document store", books),
        ]
        with served(folder) as port:
            remote = Chroma("chunks", embeddings, client=chromadb.HttpClient("127.0.0.1", port, settings=settings))
            yield [*chroma_cases("Chroma, HTTP", remote, books), *cases]


@contextmanager
def served(folder: str) -> Iterator[int]:
    """Run a Chroma server over a folder, and yield its port."""
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    call = [str(Path(sys.executable).with_name("chroma")), "run", "--path", folder, "--host", "127.0.0.1"]
    server = subprocess.Popen([*call, "--port", str(port)], stdout=subprocess.DEVNULL)
    try:
        while server.poll() is None:
            with closing(socket.socket()) as probe:
                if not probe.connect_ex(("127.0.0.1", port)):
                    break
            time.sleep(0.1)
        yield port
    finally:
        server.terminate()
        server.wait(timeout=10)


def speed(cases: Sequence[Case], runs: int) -> dict[Case, Json]:
    """Measure how long each read takes, in milliseconds."""
    known = {f"{case.store}: {case.book.name}": case for case in cases}
    times: dict[tuple[str, str], list[float]] = {(what, name): [] for name in known for what in (OWN, FIRST, SECOND)}
    for (what, name), counts in blocks(list(times), runs, 1):
        if counts:  # no warm-up here, which would take an hour: all were read before
            call = known[name].call(what)
            gc.collect()
            started = time.perf_counter()
            found = call()
            times[what, name].append((time.perf_counter() - started) * 1e3)
            del found
    return {
        case: {what: statistics.median(times[what, name]) for what in (OWN, FIRST, SECOND)}
        for name, case in known.items()
    }


def peak(call: Callable[[], Any]) -> int:
    """Measure the most that Python holds during a call, in bytes."""
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept = call()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    del kept
    return most - before


async def lag(call: Callable[[], Awaitable[Any]]) -> float:
    """Measure the longest delay, in milliseconds, of a task that wants to run every millisecond."""
    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        while True:
            started = time.perf_counter()
            await asyncio.sleep(0.001)
            longest = max(longest, time.perf_counter() - started - 0.001)

    gc.collect()
    task = asyncio.create_task(tick())
    await asyncio.sleep(0.01)
    await call()
    await asyncio.sleep(0.01)
    task.cancel()
    return longest * 1e3


async def lags(case: Case, runs: int) -> Json:
    """Measure the lag of a read in the loop itself, and of an async chain."""

    async def read() -> None:
        case.read()

    found: dict[str, list[float]] = {"lag of a read": [], "lag of a chain": []}
    for _ in range(runs):
        for times, call in zip(found.values(), (read, case.answer), strict=True):
            case.forget()
            times.append(await lag(call))
    return {what: statistics.median(times) for what, times in found.items()}


def measured(books: Sequence[Book], runs: int) -> Iterator[Json]:
    """Measure all reads of some documents."""
    with cases_of(books) as cases:
        gc.collect()
        gc.freeze()  # what the stores hold in memory does not count towards a read
        right = {case: case.is_right() for case in cases}
        for case, times in speed(cases, runs).items():
            size = len(case.book.text.encode())
            memory = {f"memory of the {what}": peak(case.call(what)) / size for what in (OWN, FIRST)}
            about = {"store": case.store, "document": case.book.name, "characters": size, "right": right[case]}
            yield {**about, **times, **memory, **asyncio.run(lags(case, runs))}
        gc.unfreeze()


def targets(rows: Sequence[Json]) -> list[Target]:
    """Judge each store by its worst document."""
    found = []
    for store in dict.fromkeys(row["store"] for row in rows):
        own = [row for row in rows if row["store"] == store]
        first, second = (
            max((row[what] / row[OWN] for row in own if row[what] >= LEAST_TIME), default=0) for what in (FIRST, SECOND)
        )
        memory = max((row["memory of the first read"] for row in own if row["characters"] >= LEAST_TEXT), default=0)
        slowest = max(own, key=lambda row: row["lag of a read"])
        found += [
            at_most(f"{store}, first read: times the own get", first, TIME),
            at_most(f"{store}, second read: times the own get", second, TIME),
            at_most(f"{store}, memory: times the text", memory, MEMORY),
            at_most(f"{store}, lag: times that of a read", slowest["lag of a chain"] / slowest["lag of a read"], LAG),
        ]
    return found


def table(rows: Sequence[Json]) -> list[str]:
    """Format the figures as a table."""
    heads = ("own get, ms", "first, x", "second, x", "memory: own", "read", "lag, ms: read", "chain")
    lines = []
    for document in dict.fromkeys(row["document"] for row in rows):
        lines += ["", f"{document:<28}" + "".join(f"{head:>14}" for head in heads)]
        for row in (row for row in rows if row["document"] == document):
            figures = [row[OWN], row[FIRST] / row[OWN], row[SECOND] / row[OWN]]
            figures += [row[f"memory of the {what}"] for what in (OWN, FIRST)]
            figures += [row["lag of a read"], row["lag of a chain"]]
            line = f"  {row['store']:<26}" + "".join(f"{figure:>14.2f}" for figure in figures)
            lines.append(line + ("" if row["right"] else "  WRONG"))
    return lines


def main() -> int:
    """Measure and print; the exit code is 1 unless all documents came back word for word."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="runs of each read")
    parser.add_argument("--quick", action="store_true", help="a twentieth of the data, to try it out")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    less = 20 if options.quick else 1
    rows = [row for books in shelves(1_000_000 // less, 100_000 // less) for row in measured(books, options.runs)]
    found = targets(rows)
    versions = {"python": platform.python_version(), "chromadb": chromadb.__version__}
    versions |= {"langchain-core": langchain_core.__version__, "llama-index-core": llama_index.core.__version__}
    about = {**versions, "runs": options.runs}
    if options.json:
        print(json.dumps({"about": about, "reads": rows, "targets": [asdict(target) for target in found]}, indent=2))
    else:
        print(", ".join(f"{key} {value}" for key, value in about.items()) + f", {os.cpu_count()} cores")
        print("\n".join([*table(rows), *target_table(found)]))
    wrong = [f"{row['document']} from {row['store']}" for row in rows if not row["right"]]
    right = f"{len(rows) - len(wrong)} of {len(rows)} documents came back word for word"
    print("; not: ".join([right, *wrong]) + ".", file=sys.stderr if options.json else sys.stdout)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
