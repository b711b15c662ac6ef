"""Count the bytecodes that one question executes, in both frameworks and in what they offer themselves.

A chain or an engine that is made for each user or request costs its making, too: that is counted separately.

    python benchmarks/opcodes.py [--check]

`--check` exits with 1 if a count is more than a tenth above `RECORDED`; on another Python than there it says so.
The count is exact on one version of Python and of the frameworks, and does not depend on how busy the machine is
(`sys.settrace`, in all threads that the question starts). The questions are those of `walk.py`,
without a store: documents are a list. They are asked by default, where a question that is escalated reads sections, and
by the paper's rule (`selfroute.PAPER`), where it reads the document.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

from langchain_core.documents import Document as LangChainDocument
from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from llama_index.core import Document
from llama_index.core.base.base_retriever import BaseRetriever as LlamaIndexRetriever
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from langchain_selfroute import SelfRouteChain
from llamaindex_selfroute import SelfRouteQueryEngine
from selfroute import PAPER
from walk import MINUTES, QUESTION, REPLIES, Replies

WORDS = "The ferry leaves at seven and the harbour is closed. " * 30
LONG = MINUTES + "\n\nThe ferry leaves at seven, and the harbour is closed until then." * 800
PASSAGES, RUNS = 5, 30
PLAIN = {"answered": ["Ms Okafor."], "escalated": ["unanswerable", "Ms Okafor."]}
PYTHON = "3.11"
RECORDED = {
    "LangChain, made": 4_430,
    "LlamaIndex, made": 3_190,
    "LangChain, answered": 21_400,
    "LangChain, escalated": 51_530,
    "LlamaIndex, answered": 26_980,
    "LlamaIndex, escalated": 55_060,
    "LangChain, PAPER, answered": 18_640,
    "LangChain, PAPER, escalated": 34_550,
    "LlamaIndex, PAPER, answered": 24_580,
    "LlamaIndex, PAPER, escalated": 36_720,
}
"""The counts with the versions of constraints.txt; lower them when something got cheaper."""


class Found(BaseRetriever):
    """A retriever of LangChain that finds the same passages for each question."""

    found: list[LangChainDocument]

    def _get_relevant_documents(self, query: str, **_: Any) -> list[LangChainDocument]:  # noqa: ARG002
        return self.found


class FoundNodes(LlamaIndexRetriever):
    """The same of LlamaIndex."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:  # noqa: ARG002
        return [NodeWithScore(node=TextNode(text=f"{at} {WORDS}"), score=0.5) for at in range(PASSAGES)]


def langchain(replies: list[str], **options: Any) -> Callable[[], Any]:
    """Return what asks a question of a chain."""
    found = [LangChainDocument(f"{at} {WORDS}", metadata={"source": "minutes"}) for at in range(PASSAGES)]
    chain = SelfRouteChain(
        retriever=Found(found=found),
        llm=FakeListChatModel(responses=replies),
        documents=[LangChainDocument(LONG, metadata={"source": "minutes"})],
        **options,
    )
    return lambda: chain.invoke(QUESTION)


def llamaindex(replies: list[str], **options: Any) -> Callable[[], Any]:
    """Return what asks a question of an engine."""
    llm = Replies(replies=replies)
    engine = SelfRouteQueryEngine(retriever=FoundNodes(), documents=[Document(text=LONG)], llm=llm, **options)
    return lambda: engine.query(QUESTION)


def executed(ask: Callable[[], Any]) -> int:
    """Return the bytecodes that a question executes, the fewest of some that are warm."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    counts = []
    for run in range(RUNS):
        count = 0
        tracing = trace if run >= RUNS - 3 else None
        threading.settrace(tracing)
        sys.settrace(tracing)
        try:
            ask()
        finally:
            sys.settrace(None)
            threading.settrace(None)
        counts.append(count)
    return min(counts[-3:])


def chain_of_langchain() -> Callable[[], Any]:
    """Return what asks LangChain's own create_retrieval_chain, which has no second step."""
    from langchain_classic.chains import create_retrieval_chain  # noqa: PLC0415 - the slow import of a peer
    from langchain_classic.chains.combine_documents import create_stuff_documents_chain  # noqa: PLC0415

    found = [LangChainDocument(f"{at} {WORDS}") for at in range(PASSAGES)]
    prompt = ChatPromptTemplate.from_template("{context}\n\nQuestion: {input}")
    answering = create_stuff_documents_chain(FakeListChatModel(responses=["Ms Okafor."]), prompt)
    chain = create_retrieval_chain(Found(found=found), answering)
    return lambda: chain.invoke({"input": QUESTION})


def agent_of_langchain(*, routed: bool) -> Callable[[], Any]:
    """Return what asks an agent of LangChain without tools, bare or with our middleware, whose draft answers."""
    from langchain.agents import create_agent  # noqa: PLC0415 - the slow import of a peer

    from langchain_selfroute import SelfRouteMiddleware  # noqa: PLC0415

    found = [LangChainDocument(f"{at} {WORDS}", metadata={"source": "minutes"}) for at in range(PASSAGES)]
    documents = [LangChainDocument(MINUTES, metadata={"source": "minutes"})]
    reading = SelfRouteMiddleware(retriever=Found(found=found), documents=documents)
    agent: Any = create_agent(FakeListChatModel(responses=["Ms Okafor."]), middleware=[reading] if routed else [])
    return lambda: agent.invoke({"messages": [("user", QUESTION)]})


def engine_of_llamaindex() -> Callable[[], Any]:
    """Return what asks LlamaIndex's own RetrieverQueryEngine, which has no second step."""
    engine = RetrieverQueryEngine.from_args(FoundNodes(), llm=Replies(replies=["Ms Okafor."]))
    return lambda: engine.query(QUESTION)


def main() -> int:
    """Print the bytecodes of each kind of question; return 1 if one is to be checked and takes too many."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    print(f"Python {sys.version.split()[0]}")
    hosts: dict[str, Callable[..., Callable[[], Any]]] = {"LangChain": langchain, "LlamaIndex": llamaindex}
    counts = {f"{name}, made": executed(partial(make, REPLIES["answered"])) for name, make in hosts.items()}
    counts |= {
        f"{name}, {kind}": executed(make(replies)) for name, make in hosts.items() for kind, replies in REPLIES.items()
    }
    counts |= {
        f"{name}, PAPER, {kind}": executed(make(replies, **PAPER))
        for name, make in hosts.items()
        for kind, replies in PLAIN.items()
    }
    peers: dict[str, Callable[[], Callable[[], Any]]] = {
        "create_retrieval_chain": chain_of_langchain,
        "RetrieverQueryEngine": engine_of_llamaindex,
        "create_agent": lambda: agent_of_langchain(routed=False),
        "create_agent, routed": lambda: agent_of_langchain(routed=True),
    }
    for name, count in {
        **counts,
        **({} if check else {name: executed(make()) for name, make in peers.items()}),
    }.items():
        print(f"{name:<28}{count:>9,}")
    if not check:
        return 0
    if not sys.version.startswith(f"{PYTHON}."):
        print(f"Nothing is checked: the counts were recorded on Python {PYTHON}.")
        return 0
    above = [name for name, count in counts.items() if count > 1.1 * RECORDED[name]]
    for name in above:
        print(f"{name}: {counts[name]:,} bytecodes, and {RECORDED[name]:,} were recorded", file=sys.stderr)
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
