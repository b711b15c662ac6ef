"""Measure what routing saves on a model of this machine: llama.cpp's server with SmolLM2-135M on one core.

    python benchmarks/local_server.py [--tokens 2000 4000 7500] [--weights FILE.gguf --ctx 20000]

For documents of these lengths it asks a chain, in turn: whose draft answers from five passages; which reads the
document at once; and once more, with the document in the server's cache. A draft that declines takes the sum of the
first two. Then a refusal that goes on for `RAMBLING` tokens is asked for as a whole and as a stream, which is hung up
on. Replies are forced by grammars: what is measured is reading, not the answer.

Seconds are processor time of the server, which has one thread, so that they say little of what else the machine does.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))
from langchain_selfroute import SelfRouteChain
from real_parts import Served, serving
from selfroute_workbench.demo.corpus import load_documents

QUESTION, AGAIN = "Who chaired the meeting in April?", "When was the budget agreed on?"
ANSWER, DECLINE = 'root ::= "Ms Okafor."', 'root ::= "unanswerable. The passages" [a-z ]+'
PASSAGES, CHARACTERS, RAMBLING = 5, 1_200, 200
PER_TOKEN = 4  # characters, about


def text_of(tokens: int) -> str:
    """Return about so many tokens of the documents that come with the package, which begin unlike others."""
    return f"{tokens} tokens.\n" + "\n".join(load_documents().values())[: tokens * PER_TOKEN]


def chain_of(served: Served, text: str, *, grammar: str = ANSWER, tokens: int = 16, **options: Any) -> SelfRouteChain:
    """Return a chain whose model replies by a grammar."""

    def model(rule: str, **more: Any) -> ChatOpenAI:
        return ChatOpenAI(
            model="local", base_url=served.url, api_key="none", temperature=0, max_retries=0, timeout=3_600,
            stream_usage=True, extra_body={"grammar": rule}, **more,
        )  # fmt: skip

    passages = [
        Document(text[at : at + CHARACTERS], metadata={"source": "minutes"}) for at in range(0, len(text), CHARACTERS)
    ]
    streaming = {"streaming": True} if options.pop("streaming", False) else {}
    return SelfRouteChain(
        retriever=RunnableLambda(lambda _: passages[-PASSAGES:]),
        llm=model(grammar, max_tokens=tokens, **streaming),
        long_context_llm=model(ANSWER, max_tokens=tokens),
        documents=[Document(text, metadata={"source": "minutes"})],
        **options,
    )


def used() -> float:
    """Return the seconds of processor time that the server has used."""
    (server,) = psutil.Process().children()
    return float(sum(server.cpu_times()[:2]))


def timed(chain: SelfRouteChain, question: str = QUESTION) -> tuple[float, Any]:
    """Ask a question; return the seconds that the server worked on it, and the result."""
    began = used()
    result = chain.invoke(question)
    time.sleep(0.2)  # until it has noticed that nobody listens
    return used() - began, result


def main() -> None:
    """Print one line for each length, then what hanging up saves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, nargs="+", default=[2_000, 4_000, 7_500])
    parser.add_argument("--weights", help="another model, as GGUF")
    parser.add_argument("--ctx", default="8192", help="its window")
    options = parser.parse_args()
    weights = ["--weights", options.weights] if options.weights else []
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder), "--ctx", options.ctx, "--threads", "1", *weights) as served,
    ):
        print("tokens   passages   document   ratio   document again")
        for tokens in options.tokens:
            text = text_of(tokens)
            draft, _ = timed(chain_of(served, text))
            whole = chain_of(served, text, start="long_context")
            first, result = timed(whole)
            again, _ = timed(whole, AGAIN)
            read = result["usage"]["long_context"]["input_tokens"]
            print(f"{read:6,}   {draft:6.1f} s   {first:6.1f} s   {first / draft:5.1f}   {again:6.1f} s", flush=True)
        text = text_of(600)
        timed(chain_of(served, text))  # the draft's prompt is in the cache from here on
        for name, streaming in (("as a whole", False), ("hung up on", True)):
            chain = chain_of(served, text, grammar=DECLINE, tokens=RAMBLING, streaming=streaming, max_documents=0)
            seconds, result = timed(chain)
            written = result["usage"]["rag"]["output_tokens"]
            print(f"A refusal {name}: {seconds:.1f} s, {written} tokens written")


if __name__ == "__main__":
    main()
