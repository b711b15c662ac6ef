"""A web service that streams answers, with the route that they took, as server-sent events.

    pip install "selfroute-workbench[embeddings]" langchain-openai fastapi uvicorn
    python examples/service.py                               # or: --model openai:gpt-5-mini
    curl -N --json '{"question": "Who retrieved the harbour fog bell after the gale, and for how much?"}' \
        http://127.0.0.1:8000/ask
    curl http://127.0.0.1:8000/ledger

An answer is one event `route`, one `sources`, any number of `text`, one `citations`, and one `end` with the usage. The
citations are the sentences in which the answer stands, with the names of their sources, best first. At any point an
event `error` may end it instead. When the client leaves, the model stops. Without `--model` the built-in extractive
reader answers, which is not an LLM.
"""

from __future__ import annotations

import gc
from argparse import ArgumentParser
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from typing import Annotated, Any

import uvicorn
from fastapi import Body, FastAPI
from fastapi.responses import RedirectResponse
from fastapi.sse import EventSourceResponse, ServerSentEvent
from langchain.chat_models import init_chat_model
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_text_splitters import RecursiveCharacterTextSplitter

from langchain_selfroute import SelfRouteChain, SelfRouteLedger
from selfroute.error_text import one_line
from selfroute_workbench.demo.corpus import load_documents
from selfroute_workbench.demo.with_langchain import ExtractiveReader, load_embeddings


def make_app(chain: SelfRouteChain) -> FastAPI:
    """Serve a chain over HTTP."""
    app, ledger = FastAPI(title="Self-Route"), SelfRouteLedger()

    @app.get("/", include_in_schema=False)
    def home() -> RedirectResponse:
        """Lead to FastAPI's own page, where questions can be asked."""
        return RedirectResponse("/docs")

    @app.post("/ask", response_class=EventSourceResponse)
    async def ask(question: Annotated[str, Body(embed=True, pattern=r"\S")]) -> AsyncIterator[ServerSentEvent]:
        """Answer a question as a stream of events."""
        try:
            # When the client leaves, this coroutine is cancelled; closing the stream is what stops the model.
            async with aclosing(chain.astream(question, {"callbacks": [ledger]})) as chunks:
                async for chunk in chunks:
                    for event in events_in(chunk):
                        yield event
        except Exception as error:  # noqa: BLE001 - the status line is already sent, so the error must be an event
            yield ServerSentEvent(event="error", data=one_line(error))

    @app.get("/ledger")
    def figures() -> dict[str, Any]:
        """Return what the day's questions have cost so far, and what was saved."""
        return ledger.to_dict()

    @app.post("/ledger/close")
    def close() -> dict[str, Any]:
        """End the day: return its figures and start again at zero. Let cron call this at midnight."""
        return ledger.reset()

    return app


def events_in(chunk: Mapping[str, Any]) -> Iterator[ServerSentEvent]:
    """Turn a chunk of the chain's stream into events."""
    if "route" in chunk:
        yield ServerSentEvent(event="route", data=chunk["route"])
        sources = dict.fromkeys(document.metadata.get("source", "?") for document in chunk["context"])
        yield ServerSentEvent(event="sources", data=list(sources))
    if chunk.get("answer"):
        yield ServerSentEvent(event="text", data=chunk["answer"])
    if "citations" in chunk:
        keys = ("source", "page", "text", "score")  # the offsets are those in a text that the client was not sent
        cited = [{key: one[key] for key in keys if key in one} for one in chunk["citations"]]
        yield ServerSentEvent(event="citations", data=cited)
    if "usage" in chunk:
        keys = ("answerable", "finish_reason", "decision", "usage")
        yield ServerSentEvent(event="end", data={key: chunk[key] for key in keys})


def make_store(embeddings: Embeddings) -> Chroma:
    """Index the document that comes with selfroute. Open your own store here."""
    documents = [Document(text, metadata={"source": name}) for name, text in load_documents().items()]
    splitter = RecursiveCharacterTextSplitter(chunk_size=1200, chunk_overlap=200, add_start_index=True)
    return Chroma.from_documents(splitter.split_documents(documents), embeddings)


def main() -> None:
    """Start the service."""
    parser = ArgumentParser(description="A service that streams answers with their route.")
    parser.add_argument("--model", metavar="PROVIDER:NAME", help="such as openai:gpt-5-mini")
    parser.add_argument("--port", type=int, default=8000, help="0 picks a free one")
    options = parser.parse_args()
    try:
        llm = init_chat_model(options.model) if options.model else None
    except Exception as error:  # noqa: BLE001 - each provider's client has its own errors
        parser.error(f"--model {options.model}: {one_line(error)}")
    embeddings = load_embeddings()
    reader = llm or ExtractiveReader()
    chain = SelfRouteChain.from_vectorstore(make_store(embeddings), reader, citations=True)
    chain.warm_up()  # else the first question would wait for it
    gc.collect()
    gc.freeze()  # else each full collection would look through all that is loaded by now, and hold up every stream
    uvicorn.run(make_app(chain), port=options.port, timeout_graceful_shutdown=5)


if __name__ == "__main__":
    main()
