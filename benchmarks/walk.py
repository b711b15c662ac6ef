"""Count the files of this project that one question runs through, in both frameworks: `python benchmarks/walk.py`.

A file counts if a function of it is called while the question is answered (`sys.setprofile`, in all threads), once
everything is warm. The question is answered from the passages, or declined and answered from its rebuilt document.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from langchain_core.documents import Document as LangChainDocument
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import Document, MockEmbedding, VectorStoreIndex
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.node_parser import SentenceSplitter

from langchain_selfroute import SelfRouteChain
from llamaindex_selfroute import SelfRouteQueryEngine

ROOT = Path(__file__).parents[1]
PACKAGES = ("selfroute", "langchain_selfroute", "llamaindex_selfroute")
MINUTES = "The ferry leaves at seven. " * 40 + "Ms Okafor chaired the meeting."
QUESTION = "Who chaired the meeting?"
ROUTES = {"answered": "rag", "escalated": "long_context"}
REPLIES = {"answered": ["90 90\nMs Okafor."], "escalated": ["90 0\nunanswerable", "Ms Okafor."]}


class Replies(CustomLLM):
    """A model of LlamaIndex that gives these replies in turn."""

    replies: list[str]
    given: int = 0

    @property
    def metadata(self) -> LLMMetadata:
        """What the model says of itself."""
        return LLMMetadata()

    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:  # noqa: ARG002, FBT001, FBT002
        """Return the next reply."""
        self.given += 1
        return CompletionResponse(text=self.replies[(self.given - 1) % len(self.replies)])

    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:  # noqa: FBT001, FBT002
        """Yield the next reply as one piece."""
        yield self.complete(prompt, formatted)


def langchain(replies: list[str]) -> Callable[[], Any]:
    """Return what asks a question of a chain over an in-memory store."""
    chunks = [
        LangChainDocument(MINUTES[at : at + 300], metadata={"source": "minutes", "start_index": at})
        for at in range(0, len(MINUTES), 300)
    ]
    store = InMemoryVectorStore.from_documents(chunks, DeterministicFakeEmbedding(size=8))
    chain = SelfRouteChain.from_vectorstore(store, FakeListChatModel(responses=replies), k=2)
    return lambda: chain.invoke(QUESTION)


def llamaindex(replies: list[str]) -> Callable[[], Any]:
    """Return what asks a question of an engine over an index."""
    index = VectorStoreIndex.from_documents(
        [Document(text=MINUTES)],
        embed_model=MockEmbedding(embed_dim=8),
        transformations=[SentenceSplitter(chunk_size=75, chunk_overlap=0)],  # or the draft reads all that there is
    )
    engine = SelfRouteQueryEngine.from_index(index, similarity_top_k=2, llm=Replies(replies=replies))
    return lambda: engine.query(QUESTION)


def walk(ask: Callable[[], Any]) -> tuple[Counter[str], int]:
    """Return the calls within each file of the project while a question is answered, and how many functions ran."""
    calls, functions = Counter[str](), set[tuple[str, str]]()
    roots = tuple(f"{ROOT / package}/" for package in PACKAGES)

    def profile(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(roots):
            calls[code.co_filename.removeprefix(f"{ROOT}/")] += 1
            functions.add((code.co_filename, code.co_qualname if hasattr(code, "co_qualname") else code.co_name))

    for _ in range(3):
        ask()
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        ask()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return calls, len(functions)


def main() -> None:
    """Print how many files and functions each kind of question runs through."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--files", action="store_true", help="also list the files, with the calls in each")
    listed = parser.parse_args().files
    print(f"{'one question':<28}{'files':>6}{'functions':>11}{'lines in these files':>22}")
    for name, make in (("LangChain", langchain), ("LlamaIndex", llamaindex)):
        for kind, replies in REPLIES.items():
            ask = make(replies)
            result = ask()
            if (result.metadata if name == "LlamaIndex" else result)["route"] != ROUTES[kind]:
                sys.exit(f"{name}: this question is not {kind}")
            calls, functions = walk(ask)
            lines = sum(len((ROOT / path).read_text().splitlines()) for path in calls)
            print(f"{f'{name}, {kind}':<28}{len(calls):>6}{functions:>11}{lines:>22,}")
            for path, count in sorted(calls.items()) if listed else ():
                print(f"{count:>10}  {path}")


if __name__ == "__main__":
    main()
