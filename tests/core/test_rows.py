"""Both frameworks: who holds a row between its two steps can neither have more read nor lift a budget."""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Iterator
from copy import deepcopy
from functools import partial
from itertools import islice, product
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import HumanMessage
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.schema import Document as LlamaDocument
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import MetadataFilters

import langchain_parts
import langchain_selfroute
import llamaindex_parts
import llamaindex_selfroute
from langchain_parts import a_chain
from llamaindex_parts import AWAITED, STREAMS, an_engine, model_of, pieces_of
from llamaindex_selfroute import SelfRouteQueryEngine, citation_nodes
from scenarios import QUESTION
from selfroute.errors import ConfigurationError, InputError, SelfRouteError
from selfroute.policies import Budget, Case
from steering import long_text

Row = dict[str, Any]
MODES = {"langchain": langchain_parts.MODES, "llamaindex": llamaindex_parts.MODES}
FAR_APART = {"langchain": langchain_parts.FAR_APART, "llamaindex": llamaindex_parts.FAR_APART}
EVERYWHERE = [(framework, mode) for framework, modes in MODES.items() for mode in modes]
both = pytest.mark.parametrize("framework", MODES)
everywhere = pytest.mark.parametrize(("framework", "mode"), EVERYWHERE)

# Two tenants in one store, each with a document of two chunks, and a retriever whose filter nobody can see.

NORTH, SOUTH = "north", "south"
SHOWN, HIDDEN = "North buys a barn.", "South sells its mill."


def texts_of(tenant: str) -> list[str]:
    return ["The meeting was long.", SHOWN if tenant == NORTH else HIDDEN]


def documents_of(tenant: str) -> list[Document]:
    return [
        Document(text, metadata={"source": tenant, "tenant": tenant, "chunk_index": n})
        for n, text in enumerate(texts_of(tenant))
    ]


def nodes_of(tenant: str) -> list[TextNode]:
    from_it = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=tenant)}
    return [
        TextNode(
            id_=f"{tenant}-{n}", text=text, metadata={"tenant": tenant}, start_char_idx=30 * n, relationships=from_it
        )
        for n, text in enumerate(texts_of(tenant))
    ]


class Asked:
    """A chain or an engine over both tenants' documents, for the north, and what was asked of its parts."""

    def __init__(self, framework: str, mode: str = "", *, wall: dict[str, Any] | None = None, **fields: Any) -> None:
        self.framework, self.mode = framework, mode
        fields = {"marker": SHOWN, **fields}
        if framework == "langchain":
            store = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
            store.add_documents(documents_of(NORTH) + documents_of(SOUTH))
            self.retriever: Any = langchain_parts.ListRetriever(passages=documents_of(NORTH)[:1])
            stored: Any = langchain_selfroute.StoredDocuments(store, **wall or {})
            self.whole: Any = a_chain(**{"retriever": self.retriever, "documents": stored, **fields})
            self.llm = self.whole.llm
        else:
            nodes = [*nodes_of(NORTH), *nodes_of(SOUTH)]
            index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=4))
            self.retriever = llamaindex_parts.ListRetriever([NodeWithScore(node=nodes[0], score=0.5)])
            stored = llamaindex_selfroute.StoredDocuments(index, **wall or {})
            parts = {"retriever": self.retriever, "documents": stored, "streaming": mode in STREAMS}
            self.whole = an_engine(**{**parts, **fields})
            self.llm = model_of(self.whole)

    @property
    def prompts(self) -> str:
        return "\n".join(call.prompt for call in self.llm.calls)

    def first_step(self) -> Row:
        step = self.whole.first_step
        row = step.invoke(QUESTION) if self.framework == "langchain" else step(QUESTION)
        return json.loads(json.dumps(row))  # type: ignore[no-any-return]

    async def second_step(self, row: Row) -> Any:
        """The result, or the response once all of it was read."""
        if self.framework == "langchain":
            return await langchain_parts.ask(self.whole.second_step, row, self.mode)
        response = (self.whole.asecond_step if self.mode in AWAITED else self.whole.second_step)(row)
        response = await response if isinstance(response, Awaitable) else response
        response.answer = "".join([piece async for piece in pieces_of(response, self.mode)])
        return response


def passage_of_south(framework: str, text: str, *, with_id: bool) -> Any:
    if framework == "langchain":
        metadata = {"source": SOUTH, "tenant": SOUTH}
        return {"id": "forged" if with_id else None, "metadata": metadata, "page_content": text}
    node = nodes_of(SOUTH)[0]
    node.text, node.node_id = text, node.node_id if with_id else "forged"
    return llamaindex_selfroute.convert.node_as_json(NodeWithScore(node=node, score=0.9))


FORGED: dict[str, Callable[[str], list[Any]]] = {
    "its first words": lambda framework: [passage_of_south(framework, texts_of(SOUTH)[0], with_id=False)],
    "a letter": lambda framework: [passage_of_south(framework, "e", with_id=False)],
    "with an id": lambda framework: [passage_of_south(framework, "The", with_id=True)],
    "after the true one": lambda framework: [
        *Asked(framework).first_step()["retrieved"],
        passage_of_south(framework, "e", with_id=False),
    ],
}


def forged(row: Row, passages: list[Any], *, as_copies: bool = False) -> Row:
    kept = passages if as_copies else [*range(len(passages))]
    step = {**row["first_step"], "passages": kept, "context": kept}
    return {**row, "retrieved": passages, "sources": [SOUTH], "first_step": step}


@everywhere
@pytest.mark.parametrize("name", FORGED)
async def test_passages_of_a_row_open_nothing_where_only_passages_are_the_wall(
    framework: str, mode: str, name: str
) -> None:
    row = Asked(framework).first_step()
    for bad in (forged(row, FORGED[name](framework)), forged(row, FORGED[name](framework), as_copies=True)):
        asked = Asked(framework, mode)
        await asked.second_step(bad)
        assert HIDDEN not in asked.prompts
        assert SHOWN in asked.prompts
        assert [call.step for call in asked.llm.calls] == ["long_context"]  # the draft comes from the row
        assert len(asked.retriever.queries) == 1


@both
async def test_a_policy_that_reads_early_reads_behind_the_same_wall(framework: str) -> None:
    seen: list[str] = []

    def policy(case: Case) -> bool:
        seen.extend([*map(repr, case.documents()), *map(repr, case.passages)])
        return False

    async def awaited(case: Case) -> bool:
        seen.extend([*map(repr, await case.adocuments()), *map(repr, case.passages)])
        return False

    row = forged(Asked(framework).first_step(), FORGED["a letter"](framework))
    for mode, escalation in zip(FAR_APART[framework], (policy, awaited), strict=True):
        asked = Asked(framework, mode, escalation=escalation)
        result = await asked.second_step(row)
        assert SHOWN in "".join(seen)
        assert HIDDEN not in "".join(seen)
        assert asked.llm.calls == []
        retrieved = result["retrieved"] if framework == "langchain" else result.metadata["retrieved"]
        assert retrieved == (documents_of(NORTH)[:1] if framework == "langchain" else ["north-0"])


@everywhere
async def test_a_row_goes_on_with_what_is_retrieved_anew_and_its_own_draft(framework: str, mode: str) -> None:
    """In doubt, the draft is the answer after all; it stands in the passages of this process."""
    graded = {"answerability": "graded", "citations": True, "escalation": lambda case: False}
    row = Asked(framework, draft=("80 20\nThe meeting was long.",), **graded).first_step()
    asked = Asked(framework, mode, draft=None, **graded)
    result = await asked.second_step(forged(row, FORGED["a letter"](framework)))
    told = result if framework == "langchain" else {"answer": result.answer, **result.metadata}
    assert (told["answer"], told["route"], told["citations"][0]["source"]) == ("The meeting was long.", "rag", NORTH)


KNOWN: dict[str, Callable[[str], dict[str, Any]]] = {
    "declared": lambda framework: {
        "wall": {"filter": {}} if framework == "langchain" else {"filters": MetadataFilters(filters=[])}
    },
    "a list": lambda framework: {"documents": documents_of(NORTH) if framework == "langchain" else nodes_of(NORTH)},
    "a callable": lambda framework: {
        "documents": lambda *_: documents_of(NORTH) if framework == "langchain" else nodes_of(NORTH)
    },
}


@everywhere
@pytest.mark.parametrize("name", KNOWN)
async def test_nothing_is_retrieved_twice_where_the_wall_is_known(framework: str, mode: str, name: str) -> None:
    row = Asked(framework, **KNOWN[name](framework)).first_step()
    asked = Asked(framework, mode, **KNOWN[name](framework))
    await asked.second_step(row)
    assert asked.retriever.queries == []
    assert [call.step for call in asked.llm.calls] == ["long_context"]


@everywhere
async def test_a_row_that_is_done_retrieves_nothing(framework: str, mode: str) -> None:
    row = Asked(framework, draft=("The meeting was long.",)).first_step()
    asked = Asked(framework, mode, draft=None)
    await asked.second_step(row)
    assert row["done"] is True
    assert asked.retriever.queries == asked.llm.calls == []


@both
async def test_nothing_found_any_more_is_nothing_to_read(framework: str) -> None:
    row = Asked(framework).first_step()
    asked = Asked(framework, MODES[framework][0])
    asked.retriever.passages = []
    result = await asked.second_step(row)
    told = result if framework == "langchain" else result.metadata
    assert (told["decision"]["signal"], told["answerable"]) == ("no_passages", False)
    assert asked.llm.calls == []


async def test_a_synthesizer_by_itself_cannot_retrieve_again() -> None:
    row, asked = Asked("llamaindex").first_step(), Asked("llamaindex")
    synthesizer = asked.whole._response_synthesizer
    refused = partial(pytest.raises, ConfigurationError, match=r"of the engine, or pass StoredDocuments\(filters=")
    with refused():
        synthesizer.second_step(row)
    with refused():
        await synthesizer.asecond_step(row)
    assert asked.llm.calls == []


def a_store_of_the_north(framework: str) -> dict[str, Any]:
    """A store of its own, with a plain retriever, and originals that both tenants share."""
    if framework == "langchain":
        store, originals = InMemoryVectorStore(DeterministicFakeEmbedding(size=4)), InMemoryStore()
        store.add_documents(documents_of(NORTH))
        for tenant in (NORTH, SOUTH):
            originals.mset([(tenant, Document(" ".join(texts_of(tenant)), metadata={"source": tenant}))])
        documents: Any = langchain_selfroute.StoredDocuments(store, docstore=originals)
        return {"retriever": store.as_retriever(search_kwargs={"k": 1}), "documents": documents}
    index = VectorStoreIndex(nodes_of(NORTH), embed_model=MockEmbedding(embed_dim=4))
    held = SimpleDocumentStore()
    held.add_documents([LlamaDocument(id_=tenant, text=" ".join(texts_of(tenant))) for tenant in (NORTH, SOUTH)])
    documents = llamaindex_selfroute.StoredDocuments(index, docstore=held)
    return {"retriever": index.as_retriever(similarity_top_k=1), "documents": documents}


@everywhere
async def test_an_original_is_opened_only_if_the_store_holds_its_document(framework: str, mode: str) -> None:
    asked = Asked(framework, mode, marker=" ".join(texts_of(NORTH)), **a_store_of_the_north(framework))
    row = asked.first_step()
    bad = json.loads(json.dumps(row).replace(f'"{NORTH}"', f'"{SOUTH}"'))
    with pytest.raises(SelfRouteError):
        await asked.second_step(bad)
    assert HIDDEN not in asked.prompts
    await asked.second_step(row)
    assert SHOWN in asked.prompts


class ForOneTenant(SelfRouteQueryEngine):
    """An engine that selects nodes in a way of its own."""

    def retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        return [one for one in super().retrieve(query_bundle) if one.node.metadata["tenant"] == NORTH]


async def test_an_engine_that_selects_nodes_itself_selects_them_again() -> None:
    parts = Asked("llamaindex")
    everything = [NodeWithScore(node=one, score=0.5) for one in (nodes_of(NORTH)[0], *nodes_of(SOUTH))]
    engine = ForOneTenant(
        llamaindex_parts.ListRetriever(everything), documents=parts.whole._response_synthesizer.documents, llm=parts.llm
    )
    engine.second_step(forged(engine.first_step(QUESTION), FORGED["a letter"]("llamaindex")))
    assert [call.step for call in parts.llm.calls] == ["rag", "long_context"]
    assert HIDDEN not in parts.prompts


# Damage: every value of a row, one after another

NUMBERS = (0, -1, -0.5, 1.5, 10**9, 10**40, math.nan, math.inf)
TEXTS = ("", "x", "NaN", "-1", "1e999999999", "1e-999999", "{x}")
ODD = (None, True, *NUMBERS, *TEXTS, [], [1], {}, {"x": 1})
PRICED = {"usage": True, "priced_as": "openai:gpt-4o-mini"}


def places_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to each value within a value."""
    if isinstance(value, dict | list):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*path, key)
            yield from places_in(one, (*path, key))


def damaged(row: Row, every: int) -> Iterator[tuple[str, Row]]:
    """A row with each of its values replaced by each odd one, or left out; one in so many of these."""
    for path, odd in islice(product(places_in(row), [*ODD, places_in]), 0, None, every):
        bad = deepcopy(row)
        inner: Any = bad
        for key in path[:-1]:
            inner = inner[key]
        if odd is places_in:
            del inner[path[-1]]
        else:
            inner[path[-1]] = odd
        yield f"{path}: {odd!r}", bad


some_or_all = pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.matrix)])


def numbers_in(value: Any) -> Iterator[float]:
    for path in places_in(value):
        inner = value
        for key in path:
            inner = inner[key]
        if isinstance(inner, int | float):
            yield inner


ROWS: dict[str, dict[str, Any]] = {
    "declined": {},
    "answered": {"draft": ("The meeting was long.",), "citations": True},
    "in doubt": {"draft": ("80 20\nThe meeting was long.",), "answerability": "graded"},
    "without a draft": {"start": "long_context"},
}


@both
@pytest.mark.parametrize("name", ROWS)
@some_or_all
async def test_a_damaged_row_is_refused_or_comes_to_a_result(framework: str, name: str, every: int) -> None:
    options = {**PRICED, **ROWS[name]}
    row = Asked(framework, **options).first_step()
    if framework == "langchain":
        row["inputs"] = Asked(framework).whole.first_step.invoke({"input": QUESTION, "said": [HumanMessage("Hm.")]})[
            "inputs"
        ]
    asked = Asked(framework, MODES[framework][0], **options)
    for what, bad in damaged(row, every):
        try:
            result = await asked.second_step(bad)
        except SelfRouteError:
            continue
        except Exception as error:  # noqa: BLE001 - the law is that there is none
            pytest.fail(f"{what}: {type(error).__name__}: {error}")
        told = result if framework == "langchain" else {"answer": result.answer, **result.metadata}
        assert isinstance(told["answer"], str), what
        assert told["route"] in {"rag", "sections", "long_context"}, what
        assert isinstance(told["answerable"], bool), what
        assert all(0 <= number <= 2 * 10**15 for number in numbers_in(told["usage"])), what
        assert float(told["usage"]["cost"] or 0) >= 0, what
        if framework == "llamaindex":
            citation_nodes(result)


@both
@pytest.mark.parametrize("limit", [{"tokens": 2_000}, {"usd": "0.0003"}], ids=["tokens", "dollars"])
@pytest.mark.parametrize("policy", [True, False], ids=["a policy", "no policy"])
@some_or_all
async def test_no_number_of_a_row_lifts_a_budget(
    framework: str, limit: dict[str, Any], every: int, *, policy: bool
) -> None:
    """Nor does a row of a chain that has no policy, and so has not measured its prompt."""
    long = "All of this was said at the meeting, and more. " * 400  # some 4,700 tokens
    documents = [Document(long)] if framework == "langchain" else [llamaindex_parts.Document(text=long)]
    steered = {"escalation": Budget(**limit)} if policy else {"measure_savings": False}
    row = Asked(framework, documents=documents, marker=long, **PRICED, **steered).first_step()
    budget = {"escalation": Budget(**limit), "marker": long}
    asked = Asked(framework, MODES[framework][0], documents=documents, **budget, **PRICED)
    for what, bad in damaged(row, every):
        try:
            await asked.second_step(bad)
        except InputError:
            continue
        assert "long_context" not in [call.step for call in asked.llm.calls], what
    result = await asked.second_step(row)
    assert (result if framework == "langchain" else result.metadata)["decision"]["ruling"]["by"] == "budget"


@both
@pytest.mark.parametrize("prompt", [{"characters": 0, "context": 0}, {"characters": 300, "context": 0}], ids=str)
async def test_no_size_of_a_row_makes_sections_free(framework: str, prompt: Row) -> None:
    long = long_text("pier C", 60)
    documents = [Document(long)] if framework == "langchain" else [llamaindex_parts.Document(text=long)]
    options = {"documents": documents, "sections": 3_000, "escalation": Budget(tokens=2_000)}
    row = Asked(framework, **PRICED, **options).first_step()
    row["first_step"]["prompt"] = prompt
    asked = Asked(framework, MODES[framework][0], **PRICED, **options)
    result = await asked.second_step(row)
    assert asked.llm.calls == []
    assert "do not fit" in (result if framework == "langchain" else result.metadata)["decision"]["ruling"]["reason"]
