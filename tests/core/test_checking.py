"""`check()` tries the parts of a pipeline before any model is paid, and says what to do about each."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField, Runnable, RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import Document as Whole
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.prompts import PromptTemplate
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

import langchain_selfroute
import llamaindex_selfroute
from langchain_parts import ListRetriever as Listed
from langchain_parts import ScriptedModel, TreeTracer
from langchain_selfroute import SelfRouteChain, SelfRouteLedger
from langchain_stores import EMBEDDING, chunks_of, text_of
from llamaindex_parts import ListRetriever, ScriptedLLM
from llamaindex_parts import recorded as events_recorded
from llamaindex_selfroute import SelfRouteQueryEngine
from selfroute.checking import Finding, Findings
from selfroute.languages.grammars import grammar
from selfroute.languages.tokens import count_tokens
from selfroute.policies import Budget

SUBJECTS = ["source", "wall", "document", "window", "prices", "prompt"]
SECRET = "sk-" + "abcdefghijklmnopqrstuvwx"
QUESTION = "Who lifts?"
TEXT = text_of("Haldon")
CHUNKS = chunks_of(TEXT, source="crane.md")
SMALLER = "something smaller than a document"
WINDOW = {"max_input_tokens": 8_000}


def store_of(chunks: Sequence[Document]) -> InMemoryVectorStore:
    return InMemoryVectorStore.from_documents(list(chunks), EMBEDDING)


def without(*keys: str, **more: Any) -> list[Document]:
    """The chunks with less or with other metadata."""
    kept = [{key: value for key, value in chunk.metadata.items() if key not in keys} for chunk in CHUNKS]
    return [Document(chunk.page_content, metadata={**one, **more}) for chunk, one in zip(CHUNKS, kept, strict=True)]


def a_chain(chunks: Sequence[Document] = CHUNKS, *, k: int = 4, **fields: Any) -> SelfRouteChain:
    """A chain whose model fails the test if it is asked, over a store."""
    store = store_of(chunks)
    retriever = store.as_retriever(search_kwargs={"k": k})
    parts = {"retriever": retriever, "llm": ScriptedModel(label="gpt-4o-mini", profile=WINDOW)}
    parts |= {"documents": langchain_selfroute.StoredDocuments(store), "priced_as": "openai:gpt-4o-mini"}
    return SelfRouteChain(**{**parts, **fields})


def raising(error: BaseException) -> Callable[[Any], Any]:
    def fail(*_: Any) -> Any:
        raise error

    return fail


def finding(findings: Findings, subject: str) -> Finding:
    return next(one for one in findings if one.subject == subject)


def well_formed(findings: Findings) -> Findings:
    """All findings follow these, whatever was found."""
    assert [one.subject for one in findings] == SUBJECTS
    for one in findings:
        assert (one.message + one.advice).isprintable(), one
        assert one.message
        assert not one.advice or one.advice not in one.message
        assert one.as_dict().keys() == {"subject", "ok", "message", "advice"}
    assert findings.ok is all(one.ok is not False for one in findings)
    assert SECRET not in str(findings)
    return findings


def tenants() -> SelfRouteChain:
    """A store of two tenants with one source, whose retriever hides one of them in a way that nobody knows."""
    store = store_of([*without(tenant="north"), *without(tenant="south")])
    hidden = RunnableLambda(
        lambda _: store.similarity_search("", k=3, filter=lambda one: one.metadata["tenant"] == "north")
    )
    return a_chain(retriever=hidden, documents=langchain_selfroute.StoredDocuments(store))


def alike() -> SelfRouteChain:
    store = store_of(CHUNKS)
    documents = langchain_selfroute.StoredDocuments(store)
    return a_chain(retriever=RunnableLambda(lambda _: store.similarity_search("")), documents=documents)


def limited(**filters: Any) -> SelfRouteChain:
    store = store_of(CHUNKS)
    retriever = store.as_retriever(search_kwargs={"filter": lambda _: True})
    return a_chain(retriever=retriever, documents=langchain_selfroute.StoredDocuments(store, **filters))


def template(text: str) -> ChatPromptTemplate:
    return ChatPromptTemplate([("human", text)])


Case = tuple[Callable[[], Any], str, bool | None, str, str]
CHAINS: dict[str, Case] = {
    "another key": (
        lambda: a_chain(without("source", file_path="crane.md", page=3)),
        *("source", False, "no retrieved passage has metadata['source']", "source_key='file_path'"),
    ),
    "a key written otherwise": (
        lambda: a_chain(without("source", **{"File-Name": "crane.md"})),
        *("source", False, "'File-Name'", "source_key='File-Name'"),
    ),
    "some without a name": (
        lambda: a_chain([*CHUNKS[:2], *without("source", path="x")[2:4]]),
        *("source", False, "4 passages found, but only 2 of them name", "index the others"),
    ),
    "an empty store": (lambda: a_chain([]), "source", False, "found no passage for 'Who lifts?'", "index is empty"),
    "a retriever that fails": (
        lambda: a_chain(retriever=RunnableLambda(raising(ConnectionError(f"refused {SECRET}")))),
        *("source", False, "the retriever failed: refused *** (ConnectionError)", "by itself"),
    ),
    "what no retriever returns": (
        lambda: a_chain(retriever=RunnableLambda(lambda _: "text")),
        *("source", False, "retriever must return a list of Documents", ""),
    ),
    "a filter": (limited, "wall", True, "only chunks that the filter admits", ""),
    "hidden in an unknown way": (tenants, "wall", False, "differs from the retrieved passages in tenant", "filter={}"),
    "a document that may not be read": (tenants, "document", None, "it may not be read", ""),
    "an unknown retriever": (alike, "wall", True, "cannot see what the retriever hides", "StoredDocuments(filter=...)"),
    "another store": (
        lambda: a_chain(retriever=store_of(without(source="other")).as_retriever()),
        *("document", False, "the vector store has no chunk of 'other'", ""),
    ),
    "a list": (lambda: a_chain(documents=[Document(TEXT)]), "wall", None, "documents= is a list", ""),
    "a callable without documents": (lambda: a_chain(documents=lambda _: []), "document", False, "no text", ""),
    "a callable that fails": (
        lambda: a_chain(documents=raising(OSError(f"gone {SECRET}"))),
        *("document", False, "gone *** (OSError)", ""),
    ),
    "offsets": (a_chain, "document", True, f"'crane.md' ({len(TEXT)} characters, ", ""),
    "a missing chunk": (
        lambda: a_chain([*CHUNKS[:3], *CHUNKS[4:]]),
        *("document", False, "has 1 gap that no chunk fills", "index it again"),
    ),
    "no offsets": (lambda: a_chain(without("start_index")), "document", True, "by their order", "add_start_index=True"),
    "a name for each chunk": (
        lambda: a_chain([Document(one.page_content, metadata={"source": str(n)}) for n, one in enumerate(CHUNKS)]),
        *("document", True, "they are each a single chunk", SMALLER),
    ),
    "a single chunk": (lambda: a_chain(CHUNKS[:1]), "document", True, "is a single chunk, the passage itself", SMALLER),
    "a hostile name": (lambda: a_chain(without(source="a\x1b[2J\nb" * 99)), "document", True, "'a [2J b", ""),
    "a known window": (a_chain, "window", True, "there is room for 6,200", ""),
    "a small window": (
        lambda: a_chain(k=1, llm=ScriptedModel(profile={"max_input_tokens": 200})),
        *("window", False, "would be read, from around its passages", "long_context_llm with a larger window"),
    ),
    "a limit of the user's": (lambda: a_chain(max_context_tokens=40), "window", True, "would be read", "raise it"),
    "too many passages": (
        lambda: a_chain(
            [Document(f"{n} " + "word " * 400, metadata={"source": "s"}) for n in range(4)],
            llm=ScriptedModel(profile={"max_input_tokens": 1_500}),
        ),
        *("window", False, "the 4 passages do not fit", "retrieve fewer"),
    ),
    "an unknown window": (
        lambda: a_chain(llm=ScriptedModel()),
        *("window", None, "does not report its window", "set max_context_tokens"),
    ),
    "no price": (lambda: a_chain(priced_as="openai:unheard-of"), "prices", None, "knows no price of 'unheard-of'", ""),
    "numbers": (lambda: a_chain(answerability="graded"), "prompt", True, "two numbers", ""),
    "a prompt that asks for no refusal": (
        lambda: a_chain(rag_prompt=template("{context} {input}")),
        *("prompt", False, "rag_prompt does not ask for 'unanswerable'", "Write {refusal}"),
    ),
    "a prompt without the question": (
        lambda: a_chain(rag_prompt=template("{context} {refusal}")),
        *("prompt", False, "rag_prompt does not show the question", "{input}"),
    ),
    "a prompt with another input": (
        lambda: a_chain(rag_prompt=template("{style} {context} {input} {refusal}")),
        *("prompt", False, "rag_prompt cannot be filled in: ", "the inputs that the prompt needs"),
    ),
    "a prompt that is made in the call": (
        lambda: a_chain(rag_prompt=RunnableLambda(lambda words: words["input"])),
        *("prompt", None, "rag_prompt cannot be read before", ""),
    ),
}


def nodes_of() -> list[TextNode]:
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="crane.md")}
    starts = [(chunk.page_content, chunk.metadata["start_index"]) for chunk in CHUNKS]
    return [
        TextNode(text=text, start_char_idx=start, end_char_idx=start + len(text), relationships=source)
        for text, start in starts
    ]


def an_engine(nodes: Sequence[TextNode] | None = None, **fields: Any) -> SelfRouteQueryEngine:
    """An engine whose model fails the test if it is asked, over an index."""
    index = VectorStoreIndex(nodes_of() if nodes is None else nodes, embed_model=MockEmbedding(embed_dim=4))
    parts = {"retriever": index.as_retriever(similarity_top_k=3), "llm": ScriptedLLM(context_window=8_000)}
    parts |= {"documents": llamaindex_selfroute.StoredDocuments(index), "priced_as": "openai:gpt-4o-mini"}
    return SelfRouteQueryEngine(**{**parts, **fields})


def _custom(metadata: Callable[[int], dict[str, Any]]) -> SelfRouteQueryEngine:
    nodes = nodes_of()
    for n, node in enumerate(nodes):
        node.metadata = metadata(n)
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=4))
    retriever = ListRetriever(index.as_retriever(similarity_top_k=1).retrieve(QUESTION))
    return an_engine(retriever=retriever, documents=llamaindex_selfroute.StoredDocuments(index))


ENGINES: dict[str, Case] = {
    "some without names": (
        lambda: an_engine([*nodes_of()[:1], TextNode(text="two")]),
        *("source", False, "2 passages found, but only 1", ""),
    ),
    "no names": (
        lambda: an_engine([TextNode(text="one"), TextNode(text="two")]),
        *("source", False, "no retrieved node has a ref_doc_id", ""),
    ),
    "documents for nodes": (lambda: an_engine([Whole(text="one")]), "source", True, "each counts as a document", ""),
    "an unknown retriever": (lambda: _custom(lambda _: {}), "wall", True, "cannot see what", "filters=..."),
    "hidden in an unknown way": (
        lambda: _custom(lambda n: {"tenant": n}),
        *("wall", False, "differs from the retrieved passages in tenant", "MetadataFilters(filters=[])"),
    ),
    "a prompt that asks for no refusal": (
        lambda: an_engine(rag_prompt=PromptTemplate("{context_str} {query_str}")),
        *("prompt", False, "rag_prompt does not ask for 'unanswerable'", "Write {refusal}"),
    ),
}


CASES = {**{f"chain: {name}": case for name, case in CHAINS.items()}, **{f"engine: {n}": c for n, c in ENGINES.items()}}


@pytest.mark.parametrize("name", CASES)
async def test_check_finds_what_is_wrong(name: str) -> None:
    build, subject, ok, message, advice = CASES[name]
    pipeline = build()
    found = well_formed(pipeline.check(QUESTION))
    one = finding(found, subject)
    assert (one.ok, message in one.message, advice in one.advice) == (ok, True, True), one
    assert await pipeline.acheck(QUESTION) == found


@pytest.mark.parametrize(
    ("build", "options"),
    [
        (a_chain, {}),
        (a_chain, {"answerability": "graded", "sections": 4_000}),
        (an_engine, {}),
        (an_engine, {"answerability": "graded", "sections": 4_000}),
        (an_engine, {"answerability": "structured"}),
    ],
    ids=["chain", "graded chain", "engine", "graded engine", "structured engine"],
)
def test_check_of_a_sound_pipeline(build: Callable[..., Any], options: dict[str, Any]) -> None:
    found = well_formed(build(**options).check())
    assert [(one.subject, one.ok, one.advice) for one in found] == [(subject, True, "") for subject in SUBJECTS]


@pytest.mark.parametrize("build", [a_chain, an_engine])
def test_check_is_stopped_by_what_stops_the_program(build: Callable[..., Any]) -> None:
    with pytest.raises(KeyboardInterrupt):
        build(documents=raising(KeyboardInterrupt())).check()


async def test_check_is_no_question_in_a_ledger() -> None:
    ledger, tracer = SelfRouteLedger(), TreeTracer()
    chain: Runnable[Any, Any] = a_chain().with_config(callbacks=[ledger])
    found: Findings = chain.check(QUESTION, config={"callbacks": [tracer, ledger]})  # type: ignore[attr-defined]
    assert found.ok
    assert tracer.open_runs == []
    assert tracer.root.name == "check"
    assert [child.name for child in tracer.root.children] == ["retrieve", "read_documents"]
    assert tracer.root.outputs["ok"] is True
    with events_recorded() as recording:
        an_engine().check(QUESTION)
        await an_engine().acheck(QUESTION)
    assert ledger.to_dict()["queries"] == 0
    assert not [event for event in recording.events.events if "SelfRoute" in type(event).__name__]


def test_check_follows_the_config() -> None:
    store = store_of([*without(tenant="north"), *without(source="south.md", tenant="south")])
    retriever = store.as_retriever().configurable_fields(search_kwargs=ConfigurableField(id="search"))
    chain = a_chain(retriever=retriever, documents=langchain_selfroute.StoredDocuments(store))
    for source in ("crane.md", "south.md"):
        search = {"filter": lambda one, source=source: one.metadata["source"] == source}
        found = chain.check(config={"configurable": {"search": search}})
        assert repr(source) in finding(found, "document").message
        assert "the filter admits" in finding(found, "wall").message


def test_check_with_other_inputs() -> None:
    chain = a_chain(rag_prompt=template("{style} {context} {input} {refusal}"))
    assert chain.check({"input": QUESTION, "style": "Short."}).ok
    retriever = Listed(passages=CHUNKS)
    a_chain(retriever=retriever, documents=[Document(TEXT)]).check(QUESTION)
    assert retriever.queries == [QUESTION]


def test_findings_print_as_a_list() -> None:
    wrong, unknown = Finding("wall", False, "hidden", "pass filter="), Finding("window", None, "unknown")
    assert (Findings([wrong, unknown]).ok, Findings([unknown]).ok, Findings().ok) == (False, True, True)
    assert str(Findings([wrong, unknown])).split("\n") == [
        "PROBLEM  wall      hidden",
        "                   -> pass filter=",
        "?        window    unknown",
    ]
    assert repr(Findings([unknown])) == str(unknown)
    assert wrong.as_dict() == {"subject": "wall", "ok": False, "message": "hidden", "advice": "pass filter="}


# A store of many documents


LONG = [f"long-{n}.md" for n in range(4)]  # two of these have more than twice the tokens of sections
PRICED = {"priced_as": "openai:gpt-4o-mini"}


def many_in_langchain(names: Sequence[str] = LONG, **options: Any) -> SelfRouteChain:
    chunks = [chunk for name in names for chunk in chunks_of(text_of(name, 330), size=1_000, source=name)]
    model = ScriptedModel(label="gpt-4o-mini", profile={"max_input_tokens": 128_000})
    options = {"reach": 20, "sections": None, **PRICED, **options}
    return SelfRouteChain.from_vectorstore(store_of(chunks), model, **options)


def many_in_llamaindex(names: Sequence[str] = LONG, **options: Any) -> SelfRouteQueryEngine:
    nodes = [
        TextNode(
            text=chunk.page_content,
            id_=f"{chunk.metadata['start_index']:06} {name}",
            start_char_idx=(start := chunk.metadata["start_index"]),
            end_char_idx=start + len(chunk.page_content),
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=name)},
        )
        for name in names
        for chunk in chunks_of(text_of(name, 330), size=1_000)
    ]
    nodes.sort(key=lambda node: node.id_)  # the mock's vectors are all alike: those stored first are found
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=4))
    options = {"reach": 20, "sections": None, **PRICED, **options}
    return SelfRouteQueryEngine.from_index(index, llm=ScriptedLLM(context_window=128_000), **options)


@pytest.mark.parametrize("build", [many_in_langchain, many_in_llamaindex])
async def test_check_of_many_documents(build: Callable[..., Any]) -> None:
    text = text_of(LONG[0], 330)
    for options, reads, documents in (
        ({}, "the best 2", 2),
        ({"max_documents": 1}, "the best one", 1),
        ({"max_documents": None, "draft_passages": 20}, "all of them", 4),
        ({"sections": 4_000}, "the best 2", 2),
        ({"sections": 4_000, "max_documents": 0}, "only sections of them", 4),
        ({"max_documents": 0}, "none of them", 4),
    ):
        found = well_formed(build(**options).check(QUESTION))
        drafted = "" if "draft_passages" in options else " (the draft reads 5)"
        assert f"20 passages found{drafted}, of 4 documents" in finding(found, "source").message
        one = finding(found, "document")
        assert one.ok
        assert f"4 documents stand behind the passages; a question reads {reads}: " in one.message
        size = f"{documents * len(text):,} characters, about {documents * count_tokens(text):,} tokens"
        assert f"({size}); they are joined" in one.message
        assert one.message.endswith("by their offsets, without gaps")
        assert await build(**options).acheck(QUESTION) == found
    drafted = finding(build(max_documents=None, draft_passages=1).check(QUESTION), "document").message
    assert "4 documents stand behind the passages; a question reads those behind the draft's passages: " in drafted


DRAFT, LOOK, ONE, TWO = "a draft takes", "sections take", "reading the document takes", "reading the 2 documents takes"
SKIPPED = "more sections are skipped, since they would be more than half of the documents"
FIRST, SECOND = "sections take", "more sections take"
READINGS: list[tuple[dict[str, Any], list[str] | None, str]] = [  # options, what is priced, and the advice
    ({}, [DRAFT, TWO], "set sections='auto'"),
    ({"escalation": Budget(usd=1)}, [DRAFT, TWO], "set sections='auto'"),
    ({"start": "long_context"}, [TWO], "set sections='auto'"),
    ({"sections": 4_000}, [DRAFT, LOOK, TWO], ""),
    ({"sections": (2_500, 4_000), "max_documents": 1}, [DRAFT, FIRST, SKIPPED, ONE], ""),
    ({"sections": (2_500, 4_000)}, [DRAFT, FIRST, SECOND, TWO], ""),
    ({"sections": (4_000, 10_000), "max_documents": 0}, [DRAFT, FIRST, SECOND], ""),
    ({"sections": "auto"}, [DRAFT, FIRST, SKIPPED, TWO], ""),
    ({"max_documents": None}, None, "set sections='auto'"),
    ({"max_documents": None, "sections": 4_000}, None, "max_documents=2 reads only the best ones"),
    ({"max_documents": 1}, [DRAFT, ONE], ""),
    ({"names": LONG[:1]}, [DRAFT, ONE], ""),
    ({"max_context_tokens": 3_000}, None, ""),
]


@pytest.mark.parametrize("build", [many_in_langchain, many_in_llamaindex])
def test_check_prices_each_reading(build: Callable[..., Any]) -> None:
    for options, readings, advice in READINGS:
        prices = finding(build(**options).check(QUESTION), "prices")
        assert prices.advice.startswith(advice) if advice else prices.advice == "", options
        paid = [part.split(" about ") for part in prices.message.split("; ")]
        assert [what for what, *_ in paid] == readings or readings is None, prices
        taken = [price[0] for _, *price in paid if price]
        assert all(re.search(r"tokens, \$\d\.\d+ for 1,000 with gpt-4o-mini", price) for price in taken)
        tokens = [int(price.split()[0].replace(",", "")) for price in taken]
        assert tokens == sorted(tokens)
        if readings and DRAFT in readings:
            said = zip(taken[1:], tokens[1:], strict=True)
            assert all(f", {count / tokens[0]:.1f} times the draft" in price for price, count in said)
            shares = [int(share[1]) for price in taken if (share := re.search(r", (\d+)% of the \w+", price))]
            assert shares == sorted(shares)
            assert 0 < shares[0] < 100


@pytest.mark.parametrize("build", [many_in_langchain, many_in_llamaindex])
def test_check_of_a_window(build: Callable[..., Any]) -> None:
    assert "the 2 documents fit: " in finding(build().check(QUESTION), "window").message
    cut = finding(build(max_context_tokens=6_000).check(QUESTION), "window").message
    assert "of the 2 documents" in cut
    assert "would be read, from around their passages" in cut
    none = finding(build(sections=4_000, max_documents=0).check(QUESTION), "window")
    assert (none.ok, "no whole document is read" in none.message) == (True, True)


def test_check_finds_one_damaged_document() -> None:
    whole = [chunk for name in LONG for chunk in chunks_of(text_of(name, 20), size=300, source=name)]
    damaged = [one for one in whole if not (one.metadata["source"] == LONG[2] and one.metadata["start_index"] == 264)]
    assert len(damaged) == len(whole) - 1
    chain = SelfRouteChain.from_vectorstore(store_of(damaged), ScriptedModel(), reach=20)
    one = finding(chain.check(QUESTION), "document")
    assert (one.ok, repr(LONG[2]) in one.message, "1 gap" in one.message) == (False, True, True), one


@pytest.mark.parametrize("make", [a_chain, an_engine], ids=["langchain", "llamaindex"])
def test_warm_up_reads_the_rules_and_asks_nothing(make: Callable[[], Any]) -> None:
    grammar.cache_clear()
    pipeline = make()
    assert grammar.cache_info().currsize == 0
    pipeline.warm_up()
    assert grammar.cache_info().currsize == 1
    assert {"denials", "tells"} <= grammar().__dict__.keys(), "those of the last step, too"
    grammar.cache_clear()
    pipeline.check()
    assert grammar.cache_info().currsize == 1
