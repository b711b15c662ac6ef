"""Bigger nodes behind small ones, and words that are searched in copies; `tests/hosts` has the other wrappers."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores.utils import node_to_metadata_dict

from hosts_documents import ITS_OWN, MINE, NOTHING_HIDDEN, OTHER, QUESTION, Holds, InLlamaIndex, reads, refuses
from langchain_stores import text_of
from llamaindex_selfroute import StoredDocuments
from llamaindex_stores_parts import a_chroma, over, split
from llamaindex_wrappers import (
    Nodes,
    Parts,
    Words,
    document,
    fusion,
    levels,
    lines,
    made,
    merging,
    pointers,
    questions,
    recursive,
)
from selfroute.errors import ConfigurationError

kinds = pytest.mark.parametrize("kind", ["memory", "chroma"])
TEXT = text_of(MINE)


def _read(documents: StoredDocuments, retriever: Any, found: Any) -> Any:
    (read,) = documents.limited_to(retriever)(found, QueryBundle(QUESTION))
    return read


def _on(kind: str, nodes: Any) -> Any:
    return made(kind, lambda _: Nodes(nodes), document(MINE)).home


@kinds
async def test_all_retrievers_have_to_search_the_store_that_is_read(kind: str) -> None:
    here, there = (made(kind, lines, document(MINE), varied=True) for _ in range(2))
    for retriever in (fusion(here.leaf, there.leaf), fusion(there.leaf, here.leaf)):
        await refuses(here.home.pipeline(retriever))
        with pytest.raises(ConfigurationError, match="is not known to search one index"):
            here.home.alone(retriever)
        await reads(here.home.pipeline(retriever, here.home.documents(NOTHING_HIDDEN)))


@kinds
@pytest.mark.parametrize("original", [False, True])
def test_words_are_those_of_the_store(kind: str, original: bool) -> None:
    nodes: Any = split(document(MINE))
    home, weighted, other = _on(kind, nodes), Words(nodes), Words(nodes)
    if original:
        home.index.docstore.add_documents([document(MINE)])
    weighted.corpus_weight_mask = [int(n != 3) for n in range(len(nodes))]
    other.corpus[3] |= node_to_metadata_dict(nodes[4])
    documents = home.documents()
    seen = _read(documents, Words(nodes), [NodeWithScore(node=nodes[0])])  # the others get nothing that was read for it
    assert seen.get_content() == TEXT
    for retriever in (weighted, other, Words([*nodes[:3], *nodes[4:]])):
        read = _read(documents, retriever, [NodeWithScore(node=nodes[0])])
        left = [*nodes[:3], *nodes[4:]]
        assert read.get_content().split() == [word for node in left for word in node.get_content().split()]


@kinds
def test_a_bigger_node_of_which_a_part_is_hidden_is_not_read(kind: str) -> None:
    nodes = pointers(document(MINE))
    secret = next(node for node in nodes.indexed if "Paragraph 4" in node.get_content())
    around = next(node for node in nodes.bigger if node.node_id == secret.index_id)
    for node in (secret, around):
        node.set_content(node.get_content().replace("crane", "safe"))
    for node in [*nodes.indexed, *nodes.bigger]:
        node.metadata["level"] = "secret" if node is secret else "open"
    home = _on(kind, nodes.indexed)
    for condition in (Holds("level", "open"), Holds("level", "secret", "!=")):
        parts = Parts(home, nodes, condition)
        read = _read(home.documents(), recursive(parts), home.found(parts.leaf))
        assert "safe" not in read.get_content()
        assert all(f"Paragraph {n}" in read.get_content() for n in (0, 8))
        assert read.metadata["selfroute"]["gaps"]


@kinds
@pytest.mark.parametrize("other", [{"tenant": OTHER}, {}], ids=["of the other tenant", "of no tenant"])
async def test_bigger_node_that_the_filters_hide(other: dict[str, str], kind: str) -> None:
    parts = made(kind, pointers, document(MINE))._replace(condition=ITS_OWN)
    retriever = recursive(parts)
    for one in parts.nodes.bigger:
        one.metadata = other
        one.set_content("secret")
    read = _read(parts.home.documents(), retriever, parts.home.found(parts.leaf))
    assert read.get_content().split() == TEXT.split()


@pytest.mark.parametrize("known", ["the index", "the retriever"])
async def test_leaves_keep_their_places(known: str) -> None:
    nodes, store = levels(document(MINE)), a_chroma()
    index = over(store, [*nodes.indexed[1::2], *nodes.indexed[::2]])
    index.docstore.add_documents([*nodes.bigger, *nodes.indexed])
    context = index.storage_context
    if known == "the retriever":
        index = VectorStoreIndex.from_vector_store(store, embed_model=index._embed_model)
    home = InLlamaIndex.on("chroma", index)
    (read,) = (await home.pipeline(merging(Parts(home, nodes), context)).ask()).documents
    assert (read.text.split(), read.label["method"], read.label["gaps"]) == (TEXT.split(), "offsets", [])


def test_bigger_nodes_have_a_cache_of_their_own() -> None:
    """And the other way round: the questions stand in the place of the text where nothing else is known."""
    parts = made("chroma", questions, document(MINE))
    documents, found, links = parts.home.documents(), parts.home.found(parts.leaf), recursive(parts)
    for _ in range(2):
        for retriever, texts in ((parts.leaf, parts.nodes.indexed), (links, parts.nodes.bigger)):
            read = _read(documents, retriever, found)
            assert read.get_content().split() == [word for node in texts for word in node.get_content().split()]


@pytest.mark.parametrize("kept_in", ["the index", "the document store", "nothing"])
@pytest.mark.parametrize("condition", [Holds("level", "open"), Holds("level", "secret", "!=")], ids=["open", "not"])
async def test_what_was_put_together_from_hidden_parts_is_not_read(condition: Holds, kept_in: str) -> None:
    nodes = levels(document(MINE))
    secret: Any = nodes.indexed[2]
    parent = next(node for node in nodes.bigger if node.node_id == secret.parent_node.node_id)
    for node in (secret, parent):
        node.set_content(node.get_content().replace(MINE, OTHER))
    for node in nodes.indexed:
        node.metadata["level"] = "secret" if node is secret else "open"
    if kept_in == "the index":
        parent.metadata["level"] = "secret"
    everything = [*nodes.bigger, *nodes.indexed]
    home = _on("memory", everything if kept_in == "the index" else nodes.indexed)
    if kept_in == "the document store":
        home.index.docstore.add_documents(everything)
    documents, seen = home.documents(condition), home.search(condition)
    for pipeline in (
        home.pipeline(seen),
        home.pipeline(seen, documents),
        home.pipeline(home.hidden(seen), documents),
    ):
        (text,) = (await pipeline.ask()).read
        assert "Paragraph 8 of Ash" in text
        assert OTHER not in pipeline.prompts
    await refuses(home.pipeline(home.hidden(seen)))
