"""A subclass of `StoredDocuments` decides what is read, within the limits of the retriever, in every mode."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from llama_index.core.schema import BaseNode, Document
from llama_index.core.vector_stores import MetadataFilters

from llamaindex_parts import MODES, QUESTION, STREAMS, ask
from llamaindex_selfroute import SelfRouteQueryEngine, SelfRouteSynthesizer, StoredDocuments
from llamaindex_stores_parts import STORES, declining, only, split

HIDDEN = "crates"
TEXT = "\n".join(f"Paragraph {n}: the crane of the north lifts {n} crates." for n in range(9))


def _redacted(documents: list[BaseNode]) -> list[BaseNode]:
    return [Document(text=one.get_content().replace(HIDDEN, "***"), id_=one.node_id) for one in documents]


class Redacting(StoredDocuments):
    def __call__(self, nodes: Any, query: Any) -> list[BaseNode]:
        return _redacted(super().__call__(nodes, query))


class RedactingLater(StoredDocuments):
    async def __call__(self, nodes: Any, query: Any) -> list[BaseNode]:  # type: ignore[override]
        await asyncio.sleep(0)
        return _redacted(await asyncio.to_thread(super().__call__, nodes, query))


class RedactingEventually(StoredDocuments):
    """Not a coroutine function, but what it returns is to be awaited."""

    def __call__(self, nodes: Any, query: Any) -> Any:
        return self._later(nodes, query)

    async def _later(self, nodes: Any, query: Any) -> list[BaseNode]:
        await asyncio.sleep(0)
        return _redacted(super().__call__(nodes, query))


@pytest.mark.parametrize("own", [False, True], ids=["alone", "with filters of its own"])
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("kind", [Redacting, RedactingLater, RedactingEventually])
@pytest.mark.parametrize("mode", MODES)
async def test_what_a_subclass_makes_of_the_documents_is_read_within_the_filters_of_the_retriever(
    mode: str, kind: Any, store: str, own: bool
) -> None:
    documents = [
        Document(text=text, id_=id_, metadata={"tenant": tenant, "year": 1})
        for text, tenant, id_ in ((TEXT, "north", "a"), ("The crane of the south sings.", "south", "b"))
    ]
    nodes = split(*documents)
    of_north = [node for node in nodes if node.ref_doc_id == "a"]
    for node in of_north[2:]:
        node.metadata["tenant"] = "south"  # hidden, though in the same document
    seen, hidden = ([_redacted([node])[0].get_content() for node in part] for part in (of_north[:2], of_north[2:]))
    index = STORES[store](nodes)
    llm = declining()
    stored = kind(index, filters=only("year", 1) if own else None)
    retriever = index.as_retriever(similarity_top_k=3, filters=only("tenant", "north"))
    synthesizer = SelfRouteSynthesizer(documents=stored, llm=llm, streaming=mode in STREAMS)
    answer = await ask(SelfRouteQueryEngine(retriever, synthesizer), QUESTION, mode)
    assert answer.metadata["route"] == "long_context"
    (read,) = [source.node.get_content() for source in answer.source_nodes]
    assert all(text in read for text in seen)
    assert not any(text in read for text in [HIDDEN, "sings", *hidden])


def test_the_lengths_of_what_a_subclass_reads_are_not_known() -> None:
    index = STORES["simple"](split(Document(text=TEXT, id_="a")))
    retriever = index.as_retriever()
    nodes = retriever.retrieve("crane")
    assert Redacting(index).behind(retriever).lengths(nodes) is None
    assert StoredDocuments(index, filters=MetadataFilters(filters=[])).behind(retriever).lengths(nodes) is not None
