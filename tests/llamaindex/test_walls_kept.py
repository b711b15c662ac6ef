"""A question has one wall: that of its retriever when it was asked, however the retriever is changed meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import pytest
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.indices.query.query_transform.base import IdentityQueryTransform
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.retrievers import BaseRetriever, QueryFusionRetriever, TransformRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores import MetadataFilters

from llamaindex_parts import AWAITED, FAR_APART, MODES, STREAMS, ScriptedLLM, ask, pieces_of
from llamaindex_selfroute import SelfRouteQueryEngine, StoredDocuments
from llamaindex_stores_parts import STORES, Words, only, split
from scenarios import FINAL
from selfroute.errors import ConfigurationError
from selfroute.policies import Case

every_mode = pytest.mark.parametrize("mode", MODES)
both_modes = pytest.mark.parametrize("mode", FAR_APART)
ASK = "What does the handbook say on page seven of the desk?"
NOTHING_HIDDEN = MetadataFilters(filters=[])


def _handbook(tenant: str, tree: str) -> Document:
    lines = [f"Rule {n} of the handbook: the {tree} desk number {n} stands by the {tree}." for n in range(40)]
    return Document(id_="handbook", text="\n".join(lines), metadata={"tenant": tenant})


MINE, THEIRS = _handbook("a", "walnut"), _handbook("b", "birch")


class Shared(NamedTuple):
    """A retriever that others use, too."""

    index: VectorStoreIndex
    search: Any

    def replace(self) -> None:
        self.search._filters = only("tenant", "b")

    def change_in_place(self) -> None:
        self.search._filters.filters[0].value = "b"

    def open(self) -> None:
        self.search._filters = None


CHANGES: dict[str, Callable[[Shared], None]] = {
    "the filters are replaced": Shared.replace,
    "the filters are changed in place": Shared.change_in_place,
    "the filters are dropped": Shared.open,
}


def _fusion(shared: Shared, kind: Callable[[Any], Any] = list) -> BaseRetriever:
    asked = kind([shared.search, shared.search])
    return QueryFusionRetriever(asked, llm=MockLLM(), num_queries=1, use_async=False)


AROUND: dict[str, Callable[[Shared], BaseRetriever]] = {
    "itself": lambda shared: shared.search,
    "a fusion": _fusion,
    "a fusion of a tuple": lambda shared: _fusion(shared, tuple),
    "a fusion in a transform": lambda shared: TransformRetriever(_fusion(shared), IdentityQueryTransform()),
}


class Changing(Words):
    """Somebody else sets the shared retriever while the question is embedded."""

    change: Any = None

    def _get_query_embedding(self, query: str) -> list[float]:
        if self.change:
            self.change()
        return super()._get_query_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


def _shared(store: str, **fields: Any) -> Shared:
    index = STORES[store](split(MINE, THEIRS))
    return Shared(index, index.as_retriever(similarity_top_k=4, filters=only("tenant", "a"), **fields))


def _model(change: Callable[[], None]) -> ScriptedLLM:
    def draft(_: str) -> tuple[str, ...]:
        change()
        return ("unanswerable",)

    return ScriptedLLM(draft=draft, final=FINAL, marker="Read the following text")


def _engine(shared: Shared, retriever: BaseRetriever, mode: str, **fields: Any) -> SelfRouteQueryEngine:
    llm, documents = _model(fields.pop("change")), fields.pop("documents", None) or StoredDocuments(shared.index)
    return SelfRouteQueryEngine(retriever, documents=documents, llm=llm, streaming=mode in STREAMS, **fields)


def _calls(engine: SelfRouteQueryEngine) -> Any:
    return engine._response_synthesizer.llm.calls  # type: ignore[attr-defined]


def _sees_only_its_own(engine: SelfRouteQueryEngine) -> None:
    assert all("birch" not in call.prompt for call in _calls(engine))


@every_mode
@pytest.mark.parametrize("store", ["simple", "chroma"])
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("change", CHANGES)
async def test_a_retriever_that_is_changed_while_the_draft_runs_changes_nothing(
    change: str, around: str, store: str, mode: str
) -> None:
    shared = _shared(store)
    engine = _engine(shared, AROUND[around](shared), mode, change=lambda: CHANGES[change](shared))
    asked = await ask(engine, ASK, mode)
    _sees_only_its_own(engine)
    assert asked.sources == [MINE.text]
    _calls(engine).clear()
    await ask(engine, ASK, mode)  # the next question has the new wall
    assert "birch" in "".join(call.prompt for call in _calls(engine))


@every_mode
@pytest.mark.parametrize("change", [*CHANGES, "another retriever is set", "its postprocessors are changed"])
async def test_a_retriever_that_is_changed_while_it_searches_searches_as_it_was(change: str, mode: str) -> None:
    embedding = Changing()
    shared = _shared("simple", embed_model=embedding)
    engine = _engine(shared, shared.search, mode, change=lambda: None)

    def set_another() -> None:
        engine._retriever = shared.index.as_retriever(similarity_top_k=4, filters=only("tenant", "b"))

    others = {
        "another retriever is set": set_another,
        "its postprocessors are changed": lambda: engine._node_postprocessors.append(Dropping(words="walnut")),
    }
    embedding.change = others.get(change) or (lambda: CHANGES[change](shared))
    asked = await ask(engine, ASK, mode)
    _sees_only_its_own(engine)
    assert asked.sources == [MINE.text]


@both_modes
@pytest.mark.parametrize("change", CHANGES)
async def test_sections_and_a_policy_stay_behind_the_same_wall(change: str, mode: str) -> None:
    shared, seen = _shared("simple"), list[str]()

    def policy(case: Case) -> bool:
        seen.extend(item.node.get_content() for item in (case.documents() if mode == "query" else ()))
        return True

    fields: Any = {"sections": 900, "max_documents": 0, "escalation": policy}
    engine = _engine(shared, shared.search, mode, change=lambda: CHANGES[change](shared), **fields)
    asked = await ask(engine, ASK, mode)
    _sees_only_its_own(engine)
    assert "birch" not in "".join(seen)
    assert (asked.route, asked.sources, len(_calls(engine))) == ("sections", [MINE.text], 2)


@both_modes
async def test_declared_filters_that_are_changed_while_the_draft_runs_change_nothing(mode: str) -> None:
    shared = _shared("simple")
    documents = StoredDocuments(shared.index, filters=only("tenant", "a"))

    class Own(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            return shared.search.retrieve(query_bundle)  # type: ignore[no-any-return]

    def change() -> None:
        documents.filters.filters[0].value = "b"  # type: ignore[union-attr]
        documents.filters = only("tenant", "b")

    engine = _engine(shared, Own(), mode, change=change, documents=documents)
    asked = await ask(engine, ASK, mode)
    assert asked.sources == [MINE.text]


def test_the_second_half_has_the_wall_of_its_own_call() -> None:
    shared = _shared("simple")
    engine = _engine(shared, shared.search, "query", change=lambda: None)
    row = engine.first_step(ASK)
    shared.replace()
    response = engine.second_step(row)
    assert [item.node.metadata["tenant"] for item in response.source_nodes] == ["b"]


def test_an_engine_that_another_one_asks_searches_with_its_own_retriever() -> None:
    """Also if both share a synthesizer."""
    shared = _shared("simple")
    theirs = SelfRouteQueryEngine(
        shared.index.as_retriever(similarity_top_k=4, filters=only("tenant", "b")),
        documents=StoredDocuments(shared.index),
        llm=_model(lambda: None),
    )
    mine = SelfRouteQueryEngine(shared.search, response_synthesizer=theirs._response_synthesizer)  # type: ignore[arg-type]
    with mine._scoped():
        found = theirs.retrieve(QueryBundle(ASK))
    assert {item.node.metadata["tenant"] for item in found} == {"b"}


# Postprocessors that are known by what they are


class Dropping(BaseNodePostprocessor):
    """Drops nodes with a word, as `KeywordNodePostprocessor` does."""

    words: str = "number 5 "

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return [item for item in nodes if self.words not in item.node.get_content()]


class Masking(BaseNodePostprocessor):
    """Masks nodes in place, as `PIINodePostprocessor` does."""

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        for item in nodes:
            item.node.set_content(item.node.get_content().replace("walnut", "****"))  # type: ignore[attr-defined]
        return nodes


def _from(module: str, kind: type[BaseNodePostprocessor] = Dropping) -> BaseNodePostprocessor:
    made: BaseNodePostprocessor = type("Own", (kind,), {"__module__": module})()
    return made


HIDING: dict[str, Callable[[], list[BaseNodePostprocessor]]] = {
    "the user's own": lambda: [Dropping()],
    "an integration's": lambda: [_from("llama_index.postprocessor.acme.base")],
    "one in LlamaIndex's own package": lambda: [_from("llama_index.core.postprocessor.node")],
    "one between others": lambda: [
        SimilarityPostprocessor(similarity_cutoff=0.0),
        Dropping(),
        SimilarityPostprocessor(similarity_cutoff=0.0),
    ],
    "one that masks": lambda: [Masking()],
    "an integration's that masks": lambda: [_from("llama_index.postprocessor.presidio.base", Masking)],
}


@every_mode
@pytest.mark.parametrize("name", HIDING)
@pytest.mark.parametrize("store", ["simple", "chroma"])
async def test_a_document_with_a_node_that_an_unknown_postprocessor_hid_is_refused(
    store: str, name: str, mode: str
) -> None:
    """Even if its metadata are those of the others."""
    index = STORES[store](split(MINE))
    shared = Shared(index, index.as_retriever(similarity_top_k=100))
    engine = _engine(shared, shared.search, mode, change=lambda: None, node_postprocessors=HIDING[name]())
    with pytest.raises(ConfigurationError, match=r"found, and then dropped.*filters="):
        await ask(engine, ASK, mode)
    assert len(_calls(engine)) == 1
    findings = engine.check(ASK) if mode == "query" else await engine.acheck(ASK)
    (wall,) = (finding for finding in findings if finding.subject == "wall")
    assert wall.ok is False
    documents = StoredDocuments(index, filters=NOTHING_HIDDEN)
    fields: Any = {"documents": documents, "node_postprocessors": HIDING[name]()}
    declared = _engine(shared, shared.search, mode, change=lambda: None, **fields)
    assert (await ask(declared, ASK, mode)).sources == [MINE.text]


@every_mode
async def test_what_an_unknown_postprocessor_hid_is_hidden_from_the_second_half_too(mode: str) -> None:
    index = STORES["simple"](split(MINE))
    shared = Shared(index, index.as_retriever(similarity_top_k=100))
    engine = _engine(shared, shared.search, mode, change=lambda: None, node_postprocessors=[Dropping()])
    row = engine.first_step(ASK)

    async def go_on() -> str:
        response = (engine.asecond_step if mode in AWAITED else engine.second_step)(row)
        response = await response if isinstance(response, Awaitable) else response
        return "".join([piece async for piece in pieces_of(response, mode)])

    with pytest.raises(ConfigurationError, match="found, and then dropped"):
        await go_on()
    assert len(_calls(engine)) == 1


@both_modes
async def test_what_a_known_postprocessor_drops_hides_nothing(mode: str) -> None:
    index = STORES["simple"](split(MINE))
    shared = Shared(index, index.as_retriever(similarity_top_k=100))
    some = shared.search.retrieve(ASK)
    after: list[BaseNodePostprocessor] = [SimilarityPostprocessor(similarity_cutoff=some[3].score)]
    for postprocessors in (after, [*after, Dropping(words="nothing has this")]):
        engine = _engine(shared, shared.search, mode, change=lambda: None, node_postprocessors=postprocessors)
        assert (await ask(engine, ASK, mode)).sources == [MINE.text]


@both_modes
async def test_an_unknown_postprocessor_that_drops_nothing_of_a_document_leaves_it_readable(mode: str) -> None:
    other = Document(
        id_="other", text="\n".join(f"The oak desk number {n}." for n in range(20)), metadata={"tenant": "a"}
    )
    index = STORES["simple"](split(MINE, other))
    shared = Shared(index, index.as_retriever(similarity_top_k=100))
    fields: Any = {"node_postprocessors": [Dropping(words="oak")]}
    engine = _engine(shared, shared.search, mode, change=lambda: None, **fields)
    assert (await ask(engine, ASK, mode)).sources == [MINE.text]
