"""The engine as a workflow of LlamaIndex: typed events on the way, and the response in the end.

    pip install "selfroute[llamaindex]" "selfroute-workbench[embeddings]" langchain-openai
    python examples/workflow.py [--model openai:gpt-5-mini]

Prints the events of one question about the document that comes with selfroute, and the answer. Without `--model`
recorded replies of a language model answer.
"""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.node_parser import TokenTextSplitter

from llamaindex_selfroute import SelfRouteQueryEngine, SelfRouteWorkflow
from selfroute.error_text import one_line
from selfroute_workbench.demo import with_llamaindex
from selfroute_workbench.demo.corpus import load_documents, question_of

QUESTION = question_of("minutes-03")


def make_engine(llm: Any) -> SelfRouteQueryEngine:
    """Return an engine over the document that comes with selfroute."""
    index = VectorStoreIndex.from_documents(
        [Document(text=text, id_=name) for name, text in load_documents().items()],
        embed_model=with_llamaindex.load_embeddings(),
        transformations=[TokenTextSplitter(chunk_size=256, chunk_overlap=32)],
    )
    return SelfRouteQueryEngine.from_index(index, llm=llm)


async def ask(engine: SelfRouteQueryEngine, question: str) -> None:
    """Run the workflow, and print what happens."""
    handler = SelfRouteWorkflow(engine).run(question=question)
    async for event in handler.stream_events():
        print(f"{type(event).__name__}: {getattr(event, 'route', '')}")
    print(await handler)


def main() -> None:
    """Ask one question."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="openai:name")
    options = parser.parse_args()
    try:
        llm = _openai(options.model) if options.model else with_llamaindex.RecordedModel()
    except Exception as error:  # noqa: BLE001 - each provider's client has its own errors
        parser.error(f"--model {options.model}: {one_line(error)}")
    asyncio.run(ask(make_engine(llm), QUESTION))


def _openai(name: str) -> Any:
    from llama_index.llms.openai import OpenAI  # noqa: PLC0415 - it may not be installed

    llm = OpenAI(model=name.removeprefix("openai:"))
    llm._get_client()  # noqa: SLF001 - which says if there is no key
    return llm


if __name__ == "__main__":
    main()
