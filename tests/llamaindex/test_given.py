"""What documents and nodes may be, what they are given, and the engine's other entries, held against the host's own."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from llama_index.core.callbacks import CallbackManager
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import CompactAndRefine
from llama_index.core.schema import (
    Document,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)

from llamaindex_parts import (
    AWAITED,
    DOCUMENTS,
    MODES,
    PASSAGES,
    STREAMS,
    WHOLE,
    ListRetriever,
    ScriptedLLM,
    an_engine,
    ask,
    model_of,
    pieces_of,
)
from llamaindex_selfroute import SelfRouteQueryEngine, SelfRouteSynthesizer
from scenarios import FINAL, FOUND, QUESTION

every_mode = pytest.mark.parametrize("mode", MODES)
BUNDLE = QueryBundle(QUESTION)


class Best(BaseNodePostprocessor):
    """Keeps the best nodes, and what it was asked with."""

    k: int = 1
    asked: list[Any] = []  # noqa: RUF012 - pydantic copies it

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        self.asked.append(query_bundle)
        return nodes[: self.k]


@every_mode
@pytest.mark.parametrize("is_async", [False, True])
async def test_callable_is_given_kept_nodes_and_query(is_async: bool, mode: str) -> None:
    """The scores of the nodes that it returns are kept."""
    given: list[Any] = []
    found = [NodeWithScore(node=document, score=score) for document, score in zip(DOCUMENTS, (0.7, 0.3), strict=True)]

    def documents(nodes: list[NodeWithScore], query_bundle: QueryBundle) -> list[NodeWithScore]:
        given.append((list(nodes), query_bundle))
        nodes.clear()
        return found

    async def adocuments(nodes: list[NodeWithScore], query_bundle: QueryBundle) -> list[NodeWithScore]:
        return documents(nodes, query_bundle)

    engine = an_engine(
        documents=adocuments if is_async else documents, node_postprocessors=[Best()], streaming=mode in STREAMS
    )
    query = QueryBundle(QUESTION, custom_embedding_strs=["a guess"])
    asked = await ask(engine, query, mode)
    assert given == [(PASSAGES[:1], query)]
    assert asked.retrieved == ["passage-1"]
    assert [item.score for item in asked.source_nodes] == [0.7, 0.3]
    assert all("a guess" not in call.prompt for call in model_of(engine).calls)
    assert engine.retriever.queries == [query]


NODE: dict[str, Any] = {
    "metadata": {"file": "minutes.txt", "secret": "for the index only", "shelf": 7},
    "excluded_llm_metadata_keys": ["secret"],
    "metadata_template": "<{key}> {value}",
    "text_template": "[{metadata_str}]\n{content}",
}
SHOWN = "<file> minutes.txt\n<shelf> 7"


@every_mode
async def test_prompt_shows_of_a_node_what_the_host_shows(mode: str) -> None:
    passage = NodeWithScore(node=TextNode(text="Tea was served.", **NODE))
    document = Document(text=f"{WHOLE} of May.", **NODE)
    parts: dict[str, Any] = {"documents": [document], "streaming": mode in STREAMS}
    plain = an_engine(retriever=ListRetriever([passage]), **parts)
    await ask(plain, QUESTION, mode)
    reference = ScriptedLLM(draft=("Mr Lin.",))
    RetrieverQueryEngine(ListRetriever([passage]), CompactAndRefine(llm=reference)).query(QUESTION)
    by = PromptTemplate("{file} | {metadata_str} | {content} | {secret}")
    formatted = an_engine(retriever=ListRetriever([passage]), document_prompt=by, **parts)
    await ask(formatted, QUESTION, mode)
    for text, call, own in zip(
        ("Tea was served.", document.text), model_of(plain).calls, model_of(formatted).calls, strict=True
    ):
        assert f"[{SHOWN}]\n{text}" in call.prompt
        assert f"minutes.txt | {SHOWN} | {text}" in own.prompt
        assert "for the index only" not in call.prompt + own.prompt
    assert f"[{SHOWN}]\nTea was served." in reference.calls[0].prompt


@every_mode
@pytest.mark.parametrize("listed", [True, False], ids=["a list", "a callable"])
async def test_sources_are_copies_that_are_otherwise_the_documents(listed: bool, mode: str) -> None:
    document = Document(
        text=f"{WHOLE} of May.",
        id_="May",
        embedding=[0.5, 0.5],
        relationships={NodeRelationship.NEXT: RelatedNodeInfo(node_id="June")},
        excluded_embed_metadata_keys=["shelf"],
        **NODE,
    )
    before = deepcopy(document)
    engine = an_engine(documents=[document] if listed else lambda *_: [document], streaming=mode in STREAMS)
    for _ in range(2):
        (item,) = (await ask(engine, QUESTION, mode)).source_nodes
        copy: Any = item.node
        assert type(copy) is Document
        assert item.text == item.get_text() == item.get_content() == document.text
        for name in ("node_id", "text", "embedding", "relationships", "text_template", "metadata_template"):
            assert getattr(copy, name) == getattr(document, name)
        assert {key: value for key, value in copy.metadata.items() if key != "selfroute"} == document.metadata
        for metadata_mode in (MetadataMode.LLM, MetadataMode.EMBED, MetadataMode.NONE):
            assert copy.get_content(metadata_mode) == document.get_content(metadata_mode)
        copy.metadata["mine"] = True
        copy.metadata.pop("file")
        copy.excluded_llm_metadata_keys.clear()
        copy.set_content("changed")
        assert document == before


@every_mode
async def test_postprocessors_are_applied_as_in_the_host(mode: str) -> None:
    manager = CallbackManager([])
    for k, route in ((2, "rag"), (1, "rag"), (0, "long_context")):
        best = Best(k=k, asked=[])
        engine = an_engine(
            ("Mr Lin.",), node_postprocessors=[best], callback_manager=manager, streaming=mode in STREAMS
        )
        asked = await ask(engine, QUESTION, mode)
        assert (asked.route, asked.retrieved) == (route, ["passage-1", "passage-2"][:k])
        assert best.asked == [BUNDLE]
        assert best.callback_manager is manager
        assert engine.retrieve(BUNDLE) == await engine.aretrieve(BUNDLE) == PASSAGES[:k]


MORE = [NodeWithScore(node=TextNode(text="Read elsewhere.", id_="more"), score=0.1)]


@every_mode
@pytest.mark.parametrize("more", [None, MORE, tuple(MORE)], ids=["none", "list", "tuple"])
@pytest.mark.parametrize(("draft", "nodes"), [("unanswerable", PASSAGES), ("Mr Lin.", PASSAGES), (None, [])])
async def test_synthesize_names_more_sources(
    draft: str | None, nodes: list[NodeWithScore], more: Any, mode: str
) -> None:
    engine = an_engine(draft and (draft,), streaming=mode in STREAMS)
    synthesizer = engine._response_synthesizer
    whole: list[Any] = []
    if mode in AWAITED:
        whole += [await engine.asynthesize(BUNDLE, nodes, more), await synthesizer.asynthesize(QUESTION, nodes, more)]
    else:
        whole += [engine.synthesize(BUNDLE, nodes, more), synthesizer.synthesize(QUESTION, nodes, more)]
    for response in whole:
        text = "".join([piece async for piece in pieces_of(response, mode)])
        read = [item.node.get_content() for item in response.source_nodes]
        if draft == "Mr Lin.":
            assert (text, response.source_nodes) == (draft, [*PASSAGES, *(more or [])])
        else:
            assert text == FOUND
            assert read == [
                *(document.text for document in DOCUMENTS),
                *(item.node.get_content() for item in more or []),
            ]
        assert response.metadata["retrieved"] == [item.node.node_id for item in nodes]
        assert all("Read elsewhere." not in call.prompt for call in model_of(engine).calls)
    assert engine.retriever.queries == []
    assert nodes == PASSAGES[: len(nodes)]


async def test_get_response_answers_from_bare_texts() -> None:
    texts = [item.node.get_content() for item in PASSAGES]
    synthesizer = an_engine()._response_synthesizer
    assert synthesizer.get_response(QUESTION, texts) == FOUND
    assert await synthesizer.aget_response(QUESTION, texts) == FOUND
    streaming = an_engine(streaming=True)._response_synthesizer
    assert "".join(streaming.get_response(QUESTION, texts)) == FOUND
    assert "".join([piece async for piece in await streaming.aget_response(QUESTION, texts)]) == FOUND


class MinutesEngine(SelfRouteQueryEngine):
    """Somebody's own engine."""


@every_mode
@pytest.mark.parametrize("kind", [SelfRouteQueryEngine, MinutesEngine])
async def test_engine_is_made_alike_in_all_ways_and_keeps_its_class(kind: Any, mode: str) -> None:
    best, manager, streaming = Best(), CallbackManager([]), mode in STREAMS
    llm = ScriptedLLM(draft=("PASS",), final=FINAL)
    parts: Any = {"documents": DOCUMENTS, "llm": llm, "refusal": "PASS", "streaming": streaming}
    more: Any = {"node_postprocessors": [best], "callback_manager": manager}
    made = SelfRouteSynthesizer(**parts, callback_manager=manager)
    for engine in (
        kind(ListRetriever(), **parts, **more),
        kind.from_args(ListRetriever(), **parts, **more),
        kind.from_args(ListRetriever(), response_synthesizer=made, **more),
        kind(ListRetriever(), made, **more),
    ):
        other = engine.with_retriever(retriever := ListRetriever(PASSAGES[1:]))
        assert (type(engine), type(other)) == (kind, kind)
        assert (other.retriever, other._response_synthesizer) == (retriever, engine._response_synthesizer)
        assert (other._node_postprocessors, other.callback_manager) == ([best], manager)
        for one, found in ((engine, "passage-1"), (other, "passage-2"), (engine, "passage-1")):
            asked = await ask(one, QUESTION, mode)
            assert (asked.text, asked.retrieved) == (FOUND, [found])
