"""Both hosts: who holds a row between its two steps can neither have more read nor lift a budget."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from itertools import islice, product
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.stores import InMemoryStore
from llama_index.core.schema import NodeWithScore
from llama_index.core.storage.docstore import SimpleDocumentStore

import llamaindex_parts
import llamaindex_selfroute
from both_parts import (
    FAR_APART,
    Pipeline,
    Text,
    document,
    each_host,
    everywhere,
    is_langchain,
    passage,
    pipeline,
    store_of,
    stored,
)
from llamaindex_selfroute import SelfRouteQueryEngine, citation_nodes
from scenarios import QUESTION
from selfroute.errors import ConfigurationError, InputError, SelfRouteError
from selfroute.policies import Budget, Case
from steering import long_text
from two_steps_parts import Row

# Two tenants in one store, each with a document of two chunks, and a retriever whose filter nobody can see.

NORTH, SOUTH = "north", "south"
SHOWN, HIDDEN = "North buys a barn.", "South sells its mill."


def texts_of(tenant: str) -> list[str]:
    return ["The meeting was long.", SHOWN if tenant == NORTH else HIDDEN]


def passages_of(tenant: str) -> list[Text]:
    return [Text(text, tenant, 30 * n, {"tenant": tenant}) for n, text in enumerate(texts_of(tenant))]


def kept_of(where: str, *tenants: str, **options: Any) -> Any:
    """The documents of tenants in one store."""
    return stored(where, store_of(where, [one for tenant in tenants for one in passages_of(tenant)]), **options)


def asking(where: str, *, wall: dict[str, Any] | None = None, **fields: Any) -> Pipeline:
    """A chain or an engine over both tenants' documents, for the north."""
    parts = {"marker": SHOWN, **fields}
    if "retriever" not in parts:
        parts["passages"] = passages_of(NORTH)[:1]
    if "documents" not in parts:
        parts["documents"] = kept_of(where, NORTH, SOUTH, **wall or {})
    return pipeline(where, **parts)


async def row_of(one: Pipeline) -> Row:
    return json.loads(json.dumps(await one.first_step()))  # type: ignore[no-any-return]


def passage_of_south(where: str, text: str, *, with_id: bool) -> Any:
    if is_langchain(where):
        metadata = {"source": SOUTH, "tenant": SOUTH}
        return {"id": "forged" if with_id else None, "metadata": metadata, "page_content": text}
    node = passage(where, passages_of(SOUTH)[0]).node
    node.text, node.node_id = text, node.node_id if with_id else "forged"
    return llamaindex_selfroute.convert.node_as_json(NodeWithScore(node=node, score=0.9))


FORGED: dict[str, tuple[str, bool]] = {  # a text, and whether it has an id
    "its first words": (texts_of(SOUTH)[0], False),
    "a letter": ("e", False),
    "with an id": ("The", True),
    "after the true one": ("e", False),
}


def forged(where: str, row: Row, name: str = "a letter", *, as_copies: bool = False) -> Row:
    """A row that pretends to have retrieved a passage of the south."""
    text, with_id = FORGED[name]
    true = row["retrieved"] if name == "after the true one" else []
    passages = [*true, passage_of_south(where, text, with_id=with_id)]
    kept = passages if as_copies else [*range(len(passages))]
    step = {**row["first_step"], "passages": kept, "context": kept}
    return {**row, "retrieved": passages, "sources": [SOUTH], "first_step": step}


@everywhere
@pytest.mark.parametrize("name", FORGED)
async def test_passages_of_a_row_open_nothing_where_only_passages_are_the_wall(where: str, name: str) -> None:
    row = await row_of(asking(where))
    for as_copies in (False, True):
        one = asking(where)
        found = await one.second_step(forged(where, row, name, as_copies=as_copies))
        sent = "".join(found.prompts)
        assert (HIDDEN in sent, SHOWN in sent) == (False, True)
        assert (found.steps, len(one.queries)) == (["long_context"], 1)  # the draft comes from the row


@pytest.mark.parametrize("where", FAR_APART)
async def test_a_policy_that_reads_early_reads_behind_the_same_wall(where: str) -> None:
    seen: list[str] = []

    def policy(case: Case) -> bool:
        seen.extend([*map(repr, case.documents()), *map(repr, case.passages)])
        return False

    async def awaited(case: Case) -> bool:
        seen.extend([*map(repr, await case.adocuments()), *map(repr, case.passages)])
        return False

    row = forged(where, await row_of(asking(where)))
    one = asking(where, escalation=awaited if where.endswith("astream") else policy)
    found = await one.second_step(row)
    assert (SHOWN in "".join(seen), HIDDEN in "".join(seen)) == (True, False)
    assert (found.calls, found.retrieved, found.read) == ([], 1, texts_of(NORTH)[:1])


@everywhere
async def test_a_row_goes_on_with_what_is_retrieved_anew_and_its_own_draft(where: str) -> None:
    """In doubt, the draft stays the answer; it stands in the passages of this process."""
    graded = {"answerability": "graded", "citations": True, "escalation": lambda case: False}
    row = await row_of(asking(where, draft=("80 20\nThe meeting was long.",), **graded))
    found = await asking(where, draft=None, **graded).second_step(forged(where, row))
    assert (found.answer, found.route, found.citations[0]["source"]) == ("The meeting was long.", "rag", NORTH)


KNOWN: dict[str, Callable[[str], dict[str, Any]]] = {
    "declared": lambda _: {"wall": {"open_to_all": True}},
    "a list": lambda where: {"documents": [Text(text) for text in texts_of(NORTH)]},
    "a callable": lambda where: {"documents": lambda *_: [document(where, text) for text in texts_of(NORTH)]},
}


@everywhere
@pytest.mark.parametrize("name", KNOWN)
async def test_nothing_is_retrieved_twice_where_the_wall_is_known(where: str, name: str) -> None:
    row = await row_of(asking(where, **KNOWN[name](where)))
    one = asking(where, **KNOWN[name](where))
    assert ((await one.second_step(row)).steps, one.queries) == (["long_context"], [])


@everywhere
async def test_a_row_that_is_done_retrieves_nothing(where: str) -> None:
    row, one = await row_of(asking(where, draft=("The meeting was long.",))), asking(where, draft=None)
    assert ((await one.second_step(row)).calls, one.queries, row["done"]) == ([], [], True)


@each_host
async def test_nothing_found_any_more_is_nothing_to_read(where: str) -> None:
    row, one = await row_of(asking(where)), asking(where)
    one.asked.retriever.passages = []
    found = await one.second_step(row)
    assert (found.decision["signal"], found.answerable, found.calls) == ("no_passages", False, [])


async def test_a_synthesizer_by_itself_cannot_retrieve_again() -> None:
    one = asking("llamaindex query")
    row = await row_of(one)
    refused = partial(pytest.raises, ConfigurationError, match=r"of the engine, or pass StoredDocuments\(filters=")
    with refused():
        one.holder.second_step(row)
    with refused():
        await one.holder.asecond_step(row)
    assert one.model.steps == ["rag"]


def a_store_of_the_north(where: str) -> dict[str, Any]:
    """A separate store with a plain retriever, and originals that both tenants share."""
    store = store_of(where, passages_of(NORTH))
    originals = {one: document(where, Text(" ".join(texts_of(one)), one)) for one in (NORTH, SOUTH)}
    docstore: Any = InMemoryStore() if is_langchain(where) else SimpleDocumentStore()
    if is_langchain(where):
        docstore.mset([*originals.items()])
        retriever = store.as_retriever(search_kwargs={"k": 1})
    else:
        docstore.add_documents([*originals.values()])
        retriever = store.as_retriever(similarity_top_k=1)
    return {"retriever": retriever, "documents": stored(where, store, docstore=docstore)}


@everywhere
async def test_an_original_is_opened_only_if_the_store_holds_its_document(where: str) -> None:
    one = asking(where, marker=" ".join(texts_of(NORTH)), **a_store_of_the_north(where))
    row = await row_of(one)
    with pytest.raises(SelfRouteError):
        await one.second_step(json.loads(json.dumps(row).replace(f'"{NORTH}"', f'"{SOUTH}"')))
    assert HIDDEN not in "".join(call.prompt for call in one.model.calls)
    assert SHOWN in (await one.second_step(row)).prompts[0]


class ForOneTenant(SelfRouteQueryEngine):
    """An engine that selects nodes itself."""

    def retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        return [one for one in super().retrieve(query_bundle) if one.node.metadata["tenant"] == NORTH]


def test_an_engine_that_selects_nodes_itself_selects_them_again() -> None:
    where = "llamaindex query"
    one = asking(where)
    nodes = [passage(where, text) for text in (passages_of(NORTH)[0], *passages_of(SOUTH))]
    engine = ForOneTenant(llamaindex_parts.ListRetriever(nodes), documents=one.holder.documents, llm=one.model)
    engine.second_step(forged(where, engine.first_step(QUESTION)))
    assert one.model.steps == ["rag", "long_context"]
    assert HIDDEN not in "".join(call.prompt for call in one.model.calls)


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


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def damaged(row: Row, every: int) -> Iterator[tuple[str, Row]]:
    """A row with each of its values replaced by each odd one, or left out; one in so many of these."""
    for path, odd in islice(product(places_in(row), [*ODD, places_in]), 0, None, every):
        bad = deepcopy(row)
        inner = at(bad, path[:-1])
        if odd is places_in:
            del inner[path[-1]]
        else:
            inner[path[-1]] = odd
        yield f"{path}: {odd!r}", bad


some_or_all = pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.matrix)])
ROWS: dict[str, dict[str, Any]] = {
    "declined": {},
    "answered": {"draft": ("The meeting was long.",), "citations": True},
    "in doubt": {"draft": ("80 20\nThe meeting was long.",), "answerability": "graded"},
    "without a draft": {"start": "long_context"},
}


@each_host
@pytest.mark.parametrize("name", ROWS)
@some_or_all
async def test_a_damaged_row_is_refused_or_comes_to_a_result(where: str, name: str, every: int) -> None:
    options = {**PRICED, **ROWS[name]}
    row = await row_of(asking(where, **options))
    if is_langchain(where):
        row["inputs"] = (await asking(where).first_step({"input": QUESTION, "said": [HumanMessage("Hm.")]}))["inputs"]
    one = asking(where, **options)
    for what, bad in damaged(row, every):
        try:
            found = await one.second_step(bad)
        except SelfRouteError:
            continue
        except Exception as error:  # noqa: BLE001 - no other error may come
            pytest.fail(f"{what}: {type(error).__name__}: {error}")
        assert isinstance(found.answer, str), what
        assert found.route in {"rag", "sections", "long_context"}, what
        assert isinstance(found.answerable, bool), what
        numbers = [
            number for path in places_in(found.usage) if isinstance(number := at(found.usage, path), int | float)
        ]
        assert all(0 <= number <= 2 * 10**15 for number in numbers), what
        assert float(found.usage["cost"] or 0) >= 0, what
        if not is_langchain(where):
            citation_nodes(found.response)


@each_host
@pytest.mark.parametrize("limit", [{"tokens": 2_000}, {"usd": "0.0003"}], ids=["tokens", "dollars"])
@pytest.mark.parametrize("policy", [True, False], ids=["a policy", "no policy"])
@some_or_all
async def test_no_number_of_a_row_lifts_a_budget(
    where: str, limit: dict[str, Any], every: int, *, policy: bool
) -> None:
    """Nor does a row of a chain that has no policy, and so has not measured its prompt."""
    long = "All of this was said at the meeting, and more. " * 400  # some 4,700 tokens
    steered = {"escalation": Budget(**limit)} if policy else {"measure_savings": False}
    row = await row_of(asking(where, documents=[long], marker=long, **PRICED, **steered))
    one = asking(where, documents=[long], marker=long, escalation=Budget(**limit), **PRICED)
    for what, bad in damaged(row, every):
        try:
            await one.second_step(bad)
        except InputError:
            continue
        assert "long_context" not in one.model.steps, what
    assert (await one.second_step(row)).decision["ruling"]["by"] == "budget"


@each_host
@pytest.mark.parametrize("prompt", [{"characters": 0, "context": 0}, {"characters": 300, "context": 0}], ids=str)
async def test_no_size_of_a_row_makes_sections_free(where: str, prompt: Row) -> None:
    options = {"documents": [long_text("pier C", 60)], "sections": 3_000, "escalation": Budget(tokens=2_000), **PRICED}
    row = await row_of(asking(where, **options))
    row["first_step"]["prompt"] = prompt
    found = await asking(where, **options).second_step(row)
    assert (found.calls, "do not fit" in found.decision["ruling"]["reason"]) == ([], True)
