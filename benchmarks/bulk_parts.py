"""Measure what a question takes of the CPU in each part: its embedding, the store, the model's client, the chain.

    python benchmarks/bulk_parts.py [--questions 1000] [--at-once 64]

The same chain and server as in `benchmarks/bulk.py`, in one process, and the real all-MiniLM-L6-v2 beside it, which
embeds the questions one at a time and 64 at a time. Milliseconds are CPU time of this process, all of its threads,
divided by the number of questions; the server has a process of its own. Nothing leaves the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import time
from collections.abc import Callable

from langchain_core.embeddings import Embeddings
from langchain_core.runnables import RunnableConfig

import bulk_pipeline
from selfroute_workbench.demo.with_langchain import load_embeddings

BATCH = 64


def cpu(work: Callable[[], object], number: int) -> float:
    """Return the CPU milliseconds that a piece of work takes for each question."""
    began = time.process_time()
    work()
    return 1_000 * (time.process_time() - began) / number


def main() -> None:
    """Measure the parts, and print them."""
    parser = argparse.ArgumentParser(description="Measures what a question takes in each part.")
    parser.add_argument("--questions", type=int, default=1_000)
    parser.add_argument("--at-once", type=int, default=64)
    options = parser.parse_args()
    processes = multiprocessing.get_context("spawn")
    pipe, theirs = processes.Pipe()
    server = processes.Process(target=bulk_pipeline.serve, args=(theirs, 0.05), daemon=True)
    server.start()
    os.environ |= {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": pipe.recv(), "ANONYMIZED_TELEMETRY": "False"}
    for name, milliseconds in parts(options.questions, options.at_once).items():
        print(f"{name:<58}{milliseconds:>8.1f} ms")
    pipe.send(None)
    pipe.recv()
    server.join()


def parts(number: int, at_once: int) -> dict[str, float]:
    """Return the CPU milliseconds of each part for a question."""
    run = asyncio.new_event_loop().run_until_complete  # one loop, since the client keeps its connections
    questions = [bulk_pipeline.question(each) for each in range(number)]
    config = RunnableConfig(max_concurrency=at_once)
    chain, real = bulk_pipeline.make_chain(), load_embeddings()
    retriever, made_up = chain.retriever, bulk_pipeline.ByReport()
    store = retriever.vectorstore
    drafts = [f"Passages from a report\n{'word ' * 1_500}\nQuestion: {each}" for each in questions]
    run(chain.abatch(questions[:at_once], config))  # connections are opened, modules imported
    real.embed_query(questions[0])
    vectors = [made_up.embed_query(each) for each in questions]
    return {
        "embedding, all-MiniLM-L6-v2, one question at a time": cpu(lambda: one_by_one(real, questions), number),
        f"embedding, all-MiniLM-L6-v2, {BATCH} questions at a time": cpu(lambda: in_batches(real, questions), number),
        "the store's search, with a vector that is there": cpu(
            lambda: [store.similarity_search_by_vector(vector, k=4) for vector in vectors], number
        ),
        "the retriever as a runnable": cpu(lambda: run(retriever.abatch(questions, config)), number),
        "one call of the model through its client": cpu(lambda: run(chain.llm.abatch(drafts, config)), number),
        "the whole chain, with embeddings that take nothing": cpu(lambda: run(chain.abatch(questions, config)), number),
    }


def one_by_one(embeddings: Embeddings, questions: list[str]) -> None:
    """Embed questions as a chain does that is asked for each."""
    for question in questions:
        embeddings.embed_query(question)


def in_batches(embeddings: Embeddings, questions: list[str]) -> None:
    """Embed questions together."""
    for start in range(0, len(questions), BATCH):
        embeddings.embed_documents(questions[start : start + BATCH])


if __name__ == "__main__":
    main()
