"""What always reading the documents would have taken: known for lists, and for what was read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore

import llamaindex_parts
from both_parts import everywhere, pipeline
from hosts_documents import MINE, MODES, house, of
from langchain_parts import DOCUMENTS, PASSAGES, QUESTION, a_chain
from langchain_selfroute import SelfRouteChain, StoredDocuments
from langchain_stores import EMBEDDING, LONG, Shelf, a_model, chunks_of, holding, store_with, text_of
from selfroute.documents.cache import MOST, Recent, Size
from selfroute.usage import FREE, StepUsage, Usage
from selfroute.usage.account import Account
from selfroute.usage.prices import PricedModel, cost_of
from selfroute.usage.tokens import LongContextEstimate, PromptSize, with_bounds

TOKENS = st.integers(1, 10**6)
LENGTHS = st.lists(st.integers(1, 10**5), min_size=1, max_size=5)

FIRST = PromptSize(400, 300)  # 100 of 400 characters are around the passages
SECOND = PromptSize(20_100, 20_000)
ONE = PricedModel("one")


def sizes_of(lengths: list[int]) -> list[Size]:
    return [Size(key, length) for key, length in enumerate(lengths)]


def answered(baseline: LongContextEstimate, sizes: Any, *, room: int | None = None, model: PricedModel = ONE) -> Usage:
    """The usage of a question that was answered from passages: 100 input tokens, so one to four characters."""
    account = Account()
    account.usage = Usage(rag=StepUsage(100, 5))
    lengths = sizes if callable(sizes) or sizes is None else lambda: sizes
    draft = account.usage.rag
    baseline.answered(account, lengths, latest=draft, prompt=FIRST, room=room, model=model, priced=model)
    return account.usage


@given(LENGTHS, TOKENS, TOKENS)
def test_documents_that_were_read_count_as_the_provider_counted(lengths: list[int], read: int, first: int) -> None:
    baseline, second = LongContextEstimate(), PromptSize(sum(lengths) + 100, sum(lengths))
    paid = baseline.read(
        Usage(StepUsage(first, 1), long_context=StepUsage(read, 9)), sizes_of(lengths), prompt=second, model=ONE
    )
    assert paid.long_context_only == read
    assert paid.token_ratio == (first + read) / read
    again = answered(baseline, sizes_of(lengths))
    assert again.long_context_only == read
    assert again.token_ratio == 100 / read


def test_what_was_around_a_document_when_it_was_read_is_not_taken_for_the_document() -> None:
    baseline = LongContextEstimate()
    for key in range(5):  # each alone, in 100 characters of instructions
        usage = Usage(long_context=StepUsage(50, 1))
        baseline.read(usage, [Size(key, 100)], prompt=PromptSize(200, 100), model=ONE)
    assert answered(baseline, [Size(key, 100) for key in range(5)]).long_context_only == 150  # and not 250
    baseline.read(Usage(long_context=StepUsage(26, 1)), [Size("stub", 4)], prompt=PromptSize(104, 4), model=ONE)
    assert answered(baseline, [Size("stub", 100_000)]).long_context_only == 25_025  # though it has grown since


@given(LENGTHS)
def test_documents_that_were_not_read_count_by_their_length(lengths: list[int]) -> None:
    assert answered(LongContextEstimate(), sizes_of(lengths)).long_context_only == round((sum(lengths) + 100) / 4)


@given(LENGTHS, st.integers(1, 10**5))
def test_no_more_is_counted_than_the_second_step_would_be_given(lengths: list[int], budget: int) -> None:
    only = answered(LongContextEstimate(), sizes_of(lengths), room=budget).long_context_only
    assert only == round((min(sum(lengths), 4 * budget) + 100) / 4)


def test_what_was_estimated_or_trimmed_teaches_nothing() -> None:
    for usage, sizes in (
        (Usage(StepUsage(9, 1), long_context=StepUsage(5000, 9, estimated=True)), sizes_of([20_000])),
        (Usage(StepUsage(9, 1), long_context=StepUsage(9000, 9)), None),
    ):
        baseline = LongContextEstimate()
        assert baseline.read(usage, sizes, prompt=SECOND, model=ONE).long_context_only in {5000, 9000}
        assert answered(baseline, sizes_of([20_000])).long_context_only == 5025


def test_what_one_model_counted_says_nothing_of_another() -> None:
    baseline = LongContextEstimate()
    baseline.read(Usage(long_context=StepUsage(20_100, 9)), sizes_of([20_000]), prompt=SECOND, model=ONE)
    found = [
        answered(baseline, sizes_of([20_000]), model=model).long_context_only for model in (ONE, PricedModel("other"))
    ]
    assert found == [20_100, 5025]


def test_what_is_not_known_is_none_and_not_a_guess() -> None:
    usage = answered(LongContextEstimate(), None)
    assert (usage.long_context_only, usage.token_ratio) == (None, None)
    assert usage.as_dict()["cost_long_context_only"] is None


# A latest prompt of 400 characters counts 100 tokens, 25 of them around its passages; without one, nothing is around.
STOPPED: dict[str, tuple[Usage, PromptSize, int]] = {
    "after the draft": (Usage(StepUsage(100, 5)), FIRST, 125),
    "after sections": (Usage(StepUsage(40, 1), StepUsage(100, 5)), FIRST, 125),
    "without a draft": (Usage(), PromptSize(0, 0), 100),
}


@pytest.mark.parametrize("known", ["at once", "later", "never"])
@pytest.mark.parametrize(("used", "prompt", "only"), STOPPED.values(), ids=STOPPED)
def test_what_was_used_stays_whatever_reading_would_have_taken(
    used: Usage, prompt: PromptSize, only: int, known: str
) -> None:
    account, lengths = Account(), {"at once": sizes_of([400])}
    account.usage = used
    source = None if known == "never" else lambda: lengths.get("at once" if known == "at once" else "now")
    latest = used.sections or used.rag
    LongContextEstimate().answered(account, source, latest=latest, prompt=prompt, room=None, model=ONE, priced=ONE)
    assert account.usage.steps == used.steps
    assert account.usage.long_context_only == (only if known == "at once" else None)
    assert (account.complete_later is not None) is (known == "later")
    if account.complete_later:
        assert account.usage.as_dict()["cost_unknown"]
        assert account.complete_later() is None
        lengths["now"] = sizes_of([400])
        later = account.complete_later()
        assert later is not None
        assert (later.steps, later.long_context_only) == (used.steps, only)


@pytest.mark.parametrize(("used", "prompt"), [(Usage(), PromptSize(0, 0)), (Usage(StepUsage(0, 0)), PromptSize(0, 0))])
def test_where_nothing_would_have_been_read_that_is_free(used: Usage, prompt: PromptSize) -> None:
    account = Account()
    account.usage = used
    latest = account.usage.rag
    LongContextEstimate().answered(account, list, latest=latest, prompt=prompt, room=None, model=ONE, priced=ONE)
    assert (account.usage.long_context_only, account.usage.cost_long_context_only) == (0, FREE)


def test_what_reading_would_have_cost_lies_between_a_cold_and_a_warm_cache() -> None:
    model = PricedModel("claude-3-5-haiku-latest", "anthropic")
    for counts in (
        StepUsage(10_000, 100),
        StepUsage(10_000, 100, 4_000),
    ):
        usage = with_bounds(Usage(), counts, model=model)
        assert usage.cost_warm.dollars < cost_of(model, counts).dollars <= usage.cost_cold.dollars
    assert usage.cost_cold == cost_of(model, StepUsage(10_000, 100))
    assert usage.cost_warm == cost_of(model, StepUsage(10_000, 100, 10_000))
    assert with_bounds(Usage(), counts, model=PricedModel("?", "?")).cost_cold.dollars is None


def test_nothing_to_read_costs_nothing() -> None:
    usage = LongContextEstimate().read(Usage(rag=StepUsage(100, 1)), None, prompt=FIRST, model=ONE)
    assert (usage.long_context_only, usage.token_ratio) == (0, None)
    assert usage.as_dict()["cost_long_context_only"] == "0"


# In the frameworks: a document of about 700 characters in chunks, of which two are retrieved.

TEXT = text_of("North", 12)


def chain_over(store: Any, stored: Any, draft: Any = ("The crane lifts 4 crates.",), **fields: Any) -> SelfRouteChain:
    retriever = store.as_retriever(search_kwargs={"k": 2})
    return SelfRouteChain(retriever=retriever, llm=a_model(draft=draft, usage=True), documents=stored, **fields)


def decline_or_answer(prompt: str) -> tuple[str, ...]:
    return ("unanswerable",) if "Unknown?" in prompt else ("It lifts 4 crates.",)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["langchain memory", "langchain chroma", "llamaindex memory"])
async def test_a_document_that_was_read_is_known_nearly_to_the_token(kind: str, mode: str) -> None:
    home = house(kind, of(MINE))
    documents, told = home.documents(), {"draft": decline_or_answer, "usage": True}
    asked, switched_off = (home.pipeline(None, documents, model=told, measure_savings=on) for on in (True, False))
    assert (await asked.ask(mode, "Known?")).usage["long_context_only"] is None
    read = (await asked.ask(mode, "Unknown?")).usage
    usage = (await asked.ask(mode, "Known?")).usage
    assert read["long_context_only"] == read["long_context"]["input_tokens"]
    assert read["token_ratio"] == 1 + read["rag"]["input_tokens"] / read["long_context_only"]
    assert usage["long_context"] is None
    assert usage["long_context_only"] == pytest.approx(read["long_context_only"], rel=0.05)
    assert (await switched_off.ask(mode, "Known?")).usage["long_context_only"] is None
    documents.forget()
    assert (await asked.ask(mode, "Known?")).usage["long_context_only"] is None


@everywhere
async def test_a_list_is_known_from_the_beginning(where: str) -> None:
    usage = (await pipeline(where, ("Mr Lin.",), None, usage=True).ask()).usage
    asked_for_all = (await pipeline(where, usage=True).ask()).usage["long_context"]["input_tokens"]
    assert usage["long_context_only"] == pytest.approx(asked_for_all, rel=0.15)


@everywhere
async def test_a_callable_is_not_called_for_it(where: str) -> None:
    documents = lambda *_: pytest.fail("it was called")  # noqa: E731
    usage = (await pipeline(where, ("Mr Lin.",), None, documents=documents, usage=True).ask()).usage
    assert (usage["long_context_only"], usage["token_ratio"]) == (None, None)


@everywhere
@pytest.mark.parametrize("draft", [("Mr Lin.",), ("unanswerable",)], ids=["answered", "declined"])
async def test_it_can_be_switched_off(draft: Any, where: str) -> None:
    usage = (await pipeline(where, draft, measure_savings=False).ask()).usage
    assert (usage["long_context_only"], usage["token_ratio"], usage["cost_long_context_only"]) == (None, None, None)


@pytest.mark.parametrize("kind", ["memory", "chroma"])
def test_what_a_filter_hides_is_not_counted(kind: str) -> None:
    chunks = [
        *chunks_of(TEXT, source="report", tenant="north"),
        *chunks_of(text_of("South", 90), source="report", tenant="south"),
    ]
    store = store_with(kind, chunks)
    stored = StoredDocuments(store, filter=holding(kind, tenant="north"))
    chain = chain_over(store, stored, decline_or_answer)
    chain.invoke("Unknown?")
    only = chain.invoke("Known?")["usage"]["long_context_only"]
    # A callable may hide other things for each caller: what one saw is not told to the next.
    assert only is None if kind == "memory" else only < 300


class Opaque:
    """A filter that does not show what it lets through, as those of many stores."""

    def __init__(self, tenant: str) -> None:
        self.tenant = tenant

    def __repr__(self) -> str:
        return "Opaque()"


def test_what_one_tenant_read_is_not_told_to_another_behind_a_filter_that_says_nothing_of_itself() -> None:
    shelf = Shelf(
        [
            *chunks_of(text_of("North", 90), source="plan", tenant="north"),
            Document("South", metadata={"source": "plan"}),
        ]
    )

    def fetch(_: str, source: str, condition: Any) -> list[Document]:
        return [one for one in shelf.chunks if one.metadata.get("tenant", "south") == condition.tenant]

    for tenant in ("north", "south"):
        stored = StoredDocuments(shelf, filter=Opaque(tenant), fetch=fetch)
        stored._lengths_known = SHARED  # as if one store knew both
        chain = chain_over(shelf, stored, decline_or_answer)
        chain.invoke("Unknown?")
        assert chain.invoke("Known?")["usage"]["long_context_only"] is None


SHARED: Recent[int] = Recent(MOST)


def test_documents_beyond_the_window_count_as_far_as_they_fit() -> None:
    long = [Document("word " * 5_000, metadata={"source": "long"})]
    chain = a_chain(("Mr Lin.",), None, documents=long, max_context_tokens=500, marker=LONG)
    assert chain.invoke(QUESTION)["usage"]["long_context_only"] == pytest.approx(500, rel=0.2)
    unbounded = a_chain(("Mr Lin.",), None, documents=long, marker=LONG)
    assert unbounded.invoke(QUESTION)["usage"]["long_context_only"] == pytest.approx(6_250, rel=0.05)


def test_a_chain_and_an_engine_find_the_same_for_the_same_documents() -> None:
    chain = a_chain(("Mr Lin.",), None, usage=True)
    engine = llamaindex_parts.an_engine(("Mr Lin.",), None, usage=True)
    assert engine.query(QUESTION).metadata["usage"] == chain.invoke(QUESTION)["usage"]


def test_passages_without_a_source_are_no_trouble() -> None:
    store = InMemoryVectorStore.from_documents([*DOCUMENTS, *PASSAGES], EMBEDDING)
    chain = chain_over(store, StoredDocuments(store), decline_or_answer)
    chain.retriever.search_kwargs["k"] = 4
    chain.invoke("Unknown?")
    assert chain.invoke("Known?")["usage"]["long_context_only"] > 0
