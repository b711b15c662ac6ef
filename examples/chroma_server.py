r"""LlamaIndex over a Chroma server: index once, ask from any process.

    pip install "selfroute[llamaindex]" "selfroute-workbench[embeddings]" \
        langchain-openai llama-index-vector-stores-chroma
    chroma run --path chroma-data                            # in a separate terminal
    python examples/chroma_server.py index                   # or: index FILE ... for your own texts
    python examples/chroma_server.py ask "Who retrieved the fog bell from the water?"

`index` replaces what was indexed before. `ask` indexes nothing: passages and whole documents come from the server. It
shows the route in brackets, the answer as it arrives, the documents it was read from and the tokens it took. Ask a
model with `--model openai:gpt-5-mini`; without it the built-in extractive reader answers, which is not an LLM.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from contextlib import suppress
from pathlib import Path
from typing import Any

import chromadb
from chromadb.api import ClientAPI
from chromadb.errors import NotFoundError
from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM
from llama_index.core.node_parser import TokenTextSplitter
from llama_index.llms.openai_like import OpenAILike
from llama_index.vector_stores.chroma import ChromaVectorStore

from llamaindex_selfroute import SelfRouteQueryEngine
from selfroute.error_text import one_line
from selfroute_workbench.demo import with_llamaindex
from selfroute_workbench.demo.corpus import load_documents

COLLECTION, UNFINISHED = "selfroute-example", "selfroute-unfinished"


def index(client: ClientAPI, texts: dict[str, str], *, embeddings: BaseEmbedding) -> int:
    """Replace the index with these texts, by name, and return how many passages they have."""
    with suppress(NotFoundError):
        client.delete_collection(UNFINISHED)
    collection = client.create_collection(UNFINISHED, configuration={"hnsw": {"space": "cosine"}})
    VectorStoreIndex.from_documents(
        [Document(text=text, doc_id=name, metadata={"source": name}) for name, text in texts.items()],
        storage_context=StorageContext.from_defaults(vector_store=ChromaVectorStore(chroma_collection=collection)),
        transformations=[
            TokenTextSplitter(chunk_size=300, chunk_overlap=50, separator="\n\n", backup_separators=[". ", "\n", " "])
        ],
        embed_model=embeddings,
    )
    with suppress(NotFoundError):
        client.delete_collection(COLLECTION)
    collection.modify(name=COLLECTION)  # last, so that no answer comes from an unfinished index
    return collection.count()


def load_llm(name: str) -> LLM:
    """Make a model of OpenAI, or of another server with its protocol at OPENAI_BASE_URL."""
    return OpenAILike(
        model=name.removeprefix("openai:"),
        api_key=os.environ["OPENAI_API_KEY"],
        api_base=os.environ.get("OPENAI_BASE_URL"),
        is_chat_model=True,
        additional_kwargs={"stream_options": {"include_usage": True}},
    )


def open_engine(client: ClientAPI, llm: LLM, *, embeddings: BaseEmbedding) -> SelfRouteQueryEngine:
    """Build an engine on the server's index."""
    store = ChromaVectorStore(chroma_collection=client.get_collection(COLLECTION))
    stored = VectorStoreIndex.from_vector_store(store, embed_model=embeddings)
    return SelfRouteQueryEngine.from_index(stored, similarity_top_k=5, llm=llm, streaming=True)


def ask(engine: SelfRouteQueryEngine, question: str) -> None:
    """Show an answer as it arrives."""
    response: Any = engine.query(question)
    print(f"[{response.metadata['route']}] ", end="")
    for text in response.response_gen:
        print(text, end="", flush=True)
    sources = dict.fromkeys(found.node.metadata.get("source", "?") for found in response.source_nodes)
    print(f"\n  read: {', '.join(sources)}; {response.metadata['usage']['total_tokens']:,} tokens")


def main() -> None:
    """Index or ask."""
    parser = ArgumentParser(description="LlamaIndex over a Chroma server.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--model", metavar="openai:NAME", help="such as openai:gpt-5-mini")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("index").add_argument("files", type=Path, nargs="*", help="UTF-8 texts")
    commands.add_parser("ask").add_argument("question")
    options = parser.parse_args()
    try:
        llm = load_llm(options.model) if options.model else None
    except KeyError as error:
        parser.error(f"set the environment variable {error.args[0]}")
    try:
        client = chromadb.HttpClient(options.host, options.port)
    except ValueError as error:
        sys.exit(f"there is no Chroma server on {options.host}:{options.port}; start one with `chroma run`: {error}")
    embeddings = with_llamaindex.load_embeddings()
    try:
        if options.command == "index":
            texts = {path.name: path.read_text("utf-8") for path in options.files} or load_documents()
            print(f"{index(client, texts, embeddings=embeddings)} passages of {', '.join(texts)} are indexed")
        else:
            llm = llm or with_llamaindex.ExtractiveReader()
            ask(open_engine(client, llm, embeddings=embeddings), options.question)
    except NotFoundError:
        sys.exit("nothing is indexed yet; run: python examples/chroma_server.py index")
    except Exception as error:  # noqa: BLE001 - each provider's client has its own errors
        sys.exit(one_line(error))


if __name__ == "__main__":
    main()
