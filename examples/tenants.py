"""Two tenants in one store, each with a document of the same name: every tenant sees only their own.

    pip install "selfroute-workbench[embeddings]" langchain-openai
    python examples/tenants.py                               # or: --model openai:gpt-5-mini

It asks one question for both tenants through one chain, and shows what each answer was read from: the filter that is
given with the call applies to the passages and to the whole document. Then a custom retriever hides the other tenant in
a way that the chain cannot see: the chain refuses to read the document until you pass the filter. Without `--model` the
built-in extractive reader answers, which is not an LLM.

In LlamaIndex, pass the filter as the retriever's `filters`: `SelfRouteQueryEngine.from_index(index, filters=...)`.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from langchain.chat_models import init_chat_model
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import ConfigurableField, Runnable, RunnableConfig, RunnableLambda
from langchain_text_splitters import RecursiveCharacterTextSplitter

from langchain_selfroute import SelfRouteChain, StoredDocuments
from selfroute.error_text import one_line
from selfroute.errors import ConfigurationError
from selfroute_workbench.demo.corpus import load_documents
from selfroute_workbench.demo.with_langchain import ExtractiveReader, load_embeddings

DIVERS = {"north": "Osric Pellan", "south": "Una Marsh"}
QUESTION = "Who retrieved Saltmarket harbour's fog bell from the water after the gale, and for how much?"


def make_store(embeddings: Embeddings) -> Chroma:
    """Index the same minutes for both tenants, with one name changed so that their answers differ."""
    minutes = load_documents()["harbour-minutes.md"]
    documents = [
        Document(minutes.replace(DIVERS["north"], diver), metadata={"source": "minutes.md", "tenant": tenant})
        for tenant, diver in DIVERS.items()
    ]
    splitter = RecursiveCharacterTextSplitter(chunk_size=1200, chunk_overlap=200, add_start_index=True)
    return Chroma.from_documents(splitter.split_documents(documents), embeddings)


def one_chain_for_all(store: Chroma, llm: Runnable[Any, Any]) -> SelfRouteChain:
    """Build a chain that gets its filter with each call; a call that names no tenant finds nothing."""
    retriever = store.as_retriever(search_kwargs={"filter": {"tenant": ""}})
    search = ConfigurableField(id="search_kwargs")
    return SelfRouteChain(
        retriever=retriever.configurable_fields(search_kwargs=search), llm=llm, documents=StoredDocuments(store)
    )


def as_tenant(tenant: str) -> RunnableConfig:
    """Return the config of a call for one tenant."""
    return {"configurable": {"search_kwargs": {"k": 5, "filter": {"tenant": tenant}}}}


def custom_retriever(store: Chroma, tenant: str) -> Runnable[Any, list[Document]]:
    """Build a custom retriever; the chain cannot see what it filters out."""
    return RunnableLambda(lambda inputs: store.similarity_search(inputs["input"], k=5, filter={"tenant": tenant}))


def show(who: str, result: Mapping[str, Any]) -> None:
    """Print an answer and what it was read from."""
    read = {(document.metadata["tenant"], document.metadata["source"]) for document in result["context"]}
    print(f"{who}: [{result['route']}] {result['answer']}")
    print(f"  read: {', '.join(f'{source} of {tenant}' for tenant, source in sorted(read)) or 'nothing'}")


def main() -> None:
    """Ask for both tenants, for nobody, and with a custom retriever."""
    parser = ArgumentParser(description="Two tenants in one store.")
    parser.add_argument("--model", metavar="PROVIDER:NAME", help="such as openai:gpt-5-mini")
    options = parser.parse_args()
    try:
        llm = init_chat_model(options.model) if options.model else None
    except Exception as error:  # noqa: BLE001 - each provider's client has its own errors
        parser.error(f"--model {options.model}: {one_line(error)}")
    embeddings = load_embeddings()
    store, llm = make_store(embeddings), llm or ExtractiveReader()

    print(QUESTION)
    chain = one_chain_for_all(store, llm)
    for tenant in DIVERS:
        show(tenant, chain.invoke(QUESTION, as_tenant(tenant)))
    show("nobody", chain.invoke(QUESTION))

    hiding = custom_retriever(store, "north")
    unfiltered = SelfRouteChain(retriever=hiding, llm=llm, documents=StoredDocuments(store))
    try:
        show("custom retriever", unfiltered.invoke(QUESTION))
    except ConfigurationError as error:
        print(f"custom retriever, no filter given: {error}")
    documents = StoredDocuments(store, filter={"tenant": "north"})
    filtered = SelfRouteChain(retriever=hiding, llm=llm, documents=documents)
    show("custom retriever, filter given", filtered.invoke(QUESTION))


if __name__ == "__main__":
    main()
