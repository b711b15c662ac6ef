"""Count the bytecodes that one question executes, in both frameworks: `python benchmarks/opcodes.py`.

The count is exact on one version of Python and of the frameworks, and does not depend on how busy the machine is
(`sys.settrace`, in the asking thread). The questions are those of `walk.py`, without a store: documents are a list.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from langchain_core.documents import Document as LangChainDocument
from langchain_core.language_models import FakeListChatModel
from langchain_core.retrievers import BaseRetriever
from llama_index.core import Document
from llama_index.core.base.base_retriever import BaseRetriever as LlamaIndexRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from langchain_selfroute import SelfRouteChain
from llamaindex_selfroute import SelfRouteQueryEngine
from walk import MINUTES, QUESTION, REPLIES, Replies

WORDS = "The ferry leaves at seven and the harbour is closed. " * 30
PASSAGES, RUNS = 5, 30


class Found(BaseRetriever):
    """A retriever of LangChain that finds the same passages for each question."""

    found: list[LangChainDocument]

    def _get_relevant_documents(self, query: str, **_: Any) -> list[LangChainDocument]:  # noqa: ARG002
        return self.found


class FoundNodes(LlamaIndexRetriever):
    """The same of LlamaIndex."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:  # noqa: ARG002
        return [NodeWithScore(node=TextNode(text=f"{at} {WORDS}"), score=0.5) for at in range(PASSAGES)]


def langchain(replies: list[str]) -> Callable[[], Any]:
    """Return what asks a question of a chain."""
    found = [LangChainDocument(f"{at} {WORDS}", metadata={"source": "minutes"}) for at in range(PASSAGES)]
    chain = SelfRouteChain(
        retriever=Found(found=found),
        llm=FakeListChatModel(responses=replies),
        documents=[LangChainDocument(MINUTES, metadata={"source": "minutes"})],
    )
    return lambda: chain.invoke(QUESTION)


def llamaindex(replies: list[str]) -> Callable[[], Any]:
    """Return what asks a question of an engine."""
    llm = Replies(replies=replies)
    engine = SelfRouteQueryEngine(retriever=FoundNodes(), documents=[Document(text=MINUTES)], llm=llm)
    return lambda: engine.query(QUESTION)


def executed(ask: Callable[[], Any]) -> int:
    """Return the bytecodes that a question executes, the fewest of some that are warm."""

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    counts = []
    for run in range(RUNS):
        count = 0
        sys.settrace(trace if run >= RUNS - 3 else None)
        try:
            ask()
        finally:
            sys.settrace(None)
        counts.append(count)
    return min(counts[-3:])


def main() -> None:
    """Print the bytecodes of each kind of question."""
    print(f"Python {sys.version.split()[0]}")
    for name, make in (("LangChain", langchain), ("LlamaIndex", llamaindex)):
        for kind, replies in REPLIES.items():
            print(f"{f'{name}, {kind}':<28}{executed(make(replies)):>9,}")


if __name__ == "__main__":
    main()
