"""Say of which loaders and splitters the loaded text comes back, in both frameworks, as a table in Markdown.

    python benchmarks/loaders.py [--only WORDS] [--write | --check]

The loaders, splitters and stores are the frameworks' own; the files are small, and written here (`loader_rows.py`).
Each is loaded, split and indexed, in a store that lists in order and in Qdrant, which does not. Then a question is
asked that reads the document, which is compared with what the loader gave. Nothing is downloaded.

What Unstructured makes of a PDF is made by hand, with its metadata, since its PDF part needs torch. It reads slides
itself, but without the language model that tells titles from prose, which it would download.

`--write` puts the table into docs/documents.md; `--check` exits with 1 if another stands there, but for rows whose
packages are not here. The group `bench` has most of them. Some fit in no group, since they ask for older versions of
others: `pip install unstructured python-pptx`, and `pip install --no-deps llama-index-readers-file striprtf`. Without
that one, PDFs are read by `PdfPages`, which does the same.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from tempfile import TemporaryDirectory
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import llama_index.core
from langchain_core.language_models import FakeListChatModel
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import StorageContext, VectorStoreIndex

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import langchain_selfroute
import llamaindex_selfroute
from langchain_selfroute.stored.chunks import StoredChunks
from llamaindex_selfroute.stored.nodes import StoredNodes
from loader_rows import ROWS, Row
from selfroute.errors import SelfRouteError
from walk import Replies
from word_vectors import LangChainWords, LlamaIndexWords

PAGE = Path(__file__).parents[1] / "docs" / "documents.md"
BEGIN, END = "<!-- python benchmarks/loaders.py --write -->\n", "<!-- end of the table -->\n"
STORES = ORDERED, UNORDERED = "a store in order", "Qdrant"
QDRANT = {"LangChain": "langchain_qdrant", "LlamaIndex": "llama_index.vector_stores.qdrant"}
HEAD = ("| | loader | splitter | in order | Qdrant | `check()` |", "| --- | --- | --- | --- | --- | --- |")
QUIET = {
    "TIKTOKEN_CACHE_DIR": str(Path(llama_index.core.__file__).parent / "_static" / "tiktoken_cache"),
    "UNSTRUCTURED_DISABLE_NOTICE": "1",
    "SCARF_NO_ANALYTICS": "true",
}
"""What keeps them from the network, and from advertising."""
QUESTION = "How many crates of rope did the crane take?"
OPTIONS: Mapping[str, Any] = {"answerability": "text", "start": "long_context"}
REPLIES = ["Thirty crates."]
ADVICE = [
    getattr(store, name)
    for store in (StoredChunks, StoredNodes)
    for name in ("advice", "order_advice", "number_advice")
]


@dataclass(frozen=True)
class Outcome:
    """What came back of a file: how it compares, whether that is said, and what `check()` thinks of it."""

    verdict: str
    said: str = ""
    check: str = ""

    def __str__(self) -> str:
        """Read as in the table."""
        return f"{self.verdict}, {self.said}" if self.said else self.verdict


def compare(loaded: Sequence[str], text: str) -> str:
    """Say how a text compares with what was loaded, piece by piece."""
    if any(text == between.join(loaded) for between in ("\n", "\n\n")):
        return "exact"
    whole = "\n\n".join(loaded)
    if "".join(text.split()) == "".join(whole.split()):
        return "exact but white space"
    wanted, had = (re.findall(r"\w+", one) for one in (whole, text))
    if wanted == had:
        return "exact but white space and marks"
    lacking, more = (Counter(wanted) - Counter(had)).total(), (Counter(had) - Counter(wanted)).total()
    once = [part for part in re.split(r"(?<=[.:)])\s+", whole) if whole.count(part) == 1]
    places = [place for part in once if (place := " ".join(text.split()).find(" ".join(part.split()))) >= 0]
    wrong = [
        f"{-(-100 * count // len(wanted))} % {what}" for count, what in ((lacking, "lacking"), (more, "twice")) if count
    ]
    return ", ".join(wrong + ["out of order"] * (places != sorted(places) or not wrong))


@contextmanager
def pipeline(row: Row, store: str, chunks: Sequence[Any], **options: Any) -> Iterator[Any]:
    """Index chunks in a store, and make a chain or an engine over it."""
    client = resolve_name("qdrant_client:QdrantClient")(":memory:") if store == UNORDERED else None
    try:
        if row.host == "LangChain":
            yield _chain(client, chunks, {**OPTIONS, **options})
        else:
            yield _engine(client, chunks, {**OPTIONS, **options})
    finally:
        if client:
            client.close()


def _chain(client: Any, chunks: Sequence[Any], options: Mapping[str, Any]) -> Any:
    store: Any = InMemoryVectorStore(LangChainWords())
    if client:
        size = len(LangChainWords().embed_query(""))
        about = resolve_name("qdrant_client.models:VectorParams")(size=size, distance="Cosine")
        client.create_collection("chunks", vectors_config=about)
        store = resolve_name("langchain_qdrant:QdrantVectorStore")(client, "chunks", LangChainWords())
    store.add_documents(list(chunks), ids=[str(uuid5(NAMESPACE_OID, f"{number}")) for number in range(len(chunks))])
    return langchain_selfroute.SelfRouteChain.from_vectorstore(
        store, FakeListChatModel(responses=REPLIES), k=5, **options
    )


def _engine(client: Any, chunks: Sequence[Any], options: Mapping[str, Any]) -> Any:
    context = StorageContext.from_defaults()
    if client:
        kind = resolve_name("llama_index.vector_stores.qdrant:QdrantVectorStore")
        context = StorageContext.from_defaults(vector_store=kind("chunks", client=client))
    leaves = [node for node in chunks if not node.child_nodes]
    if len(leaves) < len(chunks):
        context.docstore.add_documents(chunks)
    index = VectorStoreIndex(leaves, storage_context=context, embed_model=LlamaIndexWords())
    return llamaindex_selfroute.SelfRouteQueryEngine.from_index(
        index, llm=Replies(replies=REPLIES), similarity_top_k=5, **options
    )


def outcome(row: Row, store: str, folder: Path) -> Outcome:
    """Load a file, split it, index it, ask, and compare."""
    (texts_folder := folder / "texts").mkdir(exist_ok=True)
    texts, chunks = row.made(texts_folder)
    with pipeline(row, store, chunks) as run:
        said = {finding.subject: finding for finding in run.check(QUESTION)}["document"]
        check = ("problem" if said.ok is False else "ok") + (", with advice" if said.advice else "")
        try:
            found = read(row, run)
        except SelfRouteError as error:
            advised = any(advice in str(error) for advice in ADVICE)
            return Outcome("refused", "with advice" if advised else "", check)
    labels = [metadata["selfroute"] for _, metadata in found]
    gaps = "said (gaps)" if any(label["gaps"] for label in labels) else ""
    doubts = "said (doubtful)" if any(label.get("doubtful") for label in labels) else gaps
    text = "\n\n".join(text for text, _ in found)
    return Outcome(compare(texts, text), doubts, check)


def read(row: Row, run: Any) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the documents that the last step read."""
    if row.host == "LangChain":
        return [(one.page_content, one.metadata) for one in run.invoke(QUESTION)["context"]]
    return [(one.node.get_content(), one.node.metadata) for one in run.query(QUESTION).source_nodes]


def lines(rows: Sequence[Row]) -> Iterator[str]:
    """Make these rows of the table."""
    for row in rows:
        about = f"| {row.host} | {row.loader} | {row.splitter} |"
        if package := row.missing or row.lacks(QDRANT[row.host]):
            yield f"{about} needs {package} | | |"
            continue
        with TemporaryDirectory() as folder:
            ordered, unordered = (outcome(row, store, Path(folder)) for store in (ORDERED, UNORDERED))
        yield f"{about} {ordered} | {unordered} | {ordered.check} |"


def put(table: Sequence[str], page: str) -> str:
    """Put a table between the marks on a page."""
    (before, _, _), (_, _, after) = page.partition(BEGIN), page.partition(END)
    return "".join([before, BEGIN, "\n", *(f"{line}\n" for line in table), "\n", END, after])


def stale(table: Sequence[str], page: str) -> list[str]:
    """Return the lines that do not stand between the marks on a page, but for those that could not be made here."""
    held = page.partition(BEGIN)[2].partition(END)[0].splitlines()
    return [line for line in table if line not in held and "| needs " not in line]


def main() -> int:
    """Print the table, write it, or look whether it still holds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", default="", help="only rows whose host, loader and splitter hold these words")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    parser.add_argument("--check", action="store_true", help=f"compare it with the one in {PAGE.name}")
    args = parser.parse_args()
    if args.write and args.only:
        parser.error("--write puts down all rows: leave --only away")
    warnings.simplefilter("ignore")
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    table = [*HEAD, *lines([row for row in ROWS if args.only in row.name])]
    print(*table, sep="\n")
    page = PAGE.read_text("utf-8")
    if args.write:
        PAGE.write_text(put(table, page), "utf-8")
    if args.check and (old := stale(table, page)):
        print(f"\n{PAGE.name} does not say so. Run `python benchmarks/loaders.py --write`:", *old, sep="\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
