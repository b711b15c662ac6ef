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


@every_mode
@pytest.mark.parametrize("documents", [DOCUMENTS, lambda *_: DOCUMENTS], ids=["a list", "a callable"])
async def test_what_a_reader_does_to_a_document_is_done_to_a_copy(documents: Any, mode: str) -> None:
    before, engine = deepcopy(DOCUMENTS), an_engine(documents=documents, streaming=mode in STREAMS)
    for _ in range(2):
        asked = await ask(engine, QUESTION, mode)
        assert asked.sources == [document.text for document in before]
        for item in asked.source_nodes:
            item.node.metadata["mine"] = True
            item.node.metadata.pop("source")
            item.node.excluded_llm_metadata_keys.clear()
            item.node.set_content("changed")  # type: ignore[attr-defined]
        assert before == DOCUMENTS


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
async def test_a_callable_is_given_the_nodes_that_were_kept_and_the_query(is_async: bool, mode: str) -> None:
    given: list[Any] = []

    def documents(nodes: list[NodeWithScore], query_bundle: QueryBundle) -> list[Document]:
        given.append((list(nodes), query_bundle))
        nodes.clear()
        return DOCUMENTS

    async def adocuments(nodes: list[NodeWithScore], query_bundle: QueryBundle) -> list[Document]:
        return documents(nodes, query_bundle)

    engine = an_engine(
        documents=adocuments if is_async else documents, node_postprocessors=[Best()], streaming=mode in STREAMS
    )
    query = QueryBundle(QUESTION, custom_embedding_strs=["a guess"])
    asked = await ask(engine, query, mode)
    assert given == [(PASSAGES[:1], query)]
    assert asked.retrieved == ["passage-1"]
    assert all("a guess" not in call.prompt for call in model_of(engine).calls)
    assert engine.retriever.queries == [query]


@every_mode
async def test_a_callable_may_return_nodes_with_scores_and_they_are_kept(mode: str) -> None:
    found = [NodeWithScore(node=document, score=score) for document, score in zip(DOCUMENTS, (0.7, 0.3), strict=True)]
    asked = await ask(an_engine(documents=lambda *_: found, streaming=mode in STREAMS), QUESTION, mode)
    assert [item.score for item in asked.source_nodes] == [0.7, 0.3]
    assert asked.sources == [document.text for document in DOCUMENTS]


NODE: dict[str, Any] = {
    "metadata": {"file": "minutes.txt", "secret": "for the index only", "shelf": 7},
    "excluded_llm_metadata_keys": ["secret"],
    "metadata_template": "<{key}> {value}",
    "text_template": "[{metadata_str}]\n{content}",
}


@every_mode
async def test_a_model_sees_of_a_node_what_the_host_shows_it(mode: str) -> None:
    passage = NodeWithScore(node=TextNode(text="Tea was served.", **NODE))
    document = Document(text=f"{WHOLE} of May.", **NODE)
    engine = an_engine(retriever=ListRetriever([passage]), documents=[document], streaming=mode in STREAMS)
    await ask(engine, QUESTION, mode)
    reference = ScriptedLLM(draft=("Mr Lin.",))
    RetrieverQueryEngine(ListRetriever([passage]), CompactAndRefine(llm=reference)).query(QUESTION)
    shown = "[<file> minutes.txt\n<shelf> 7]\nTea was served."
    for call in (model_of(engine).calls[0], reference.calls[0]):
        assert shown in call.prompt
    assert f"[<file> minutes.txt\n<shelf> 7]\n{WHOLE} of May." in model_of(engine).calls[1].prompt


@every_mode
async def test_a_document_prompt_may_show_the_metadata_that_are_for_the_model(mode: str) -> None:
    engine = an_engine(
        retriever=ListRetriever([NodeWithScore(node=TextNode(text="Tea was served.", **NODE))]),
        documents=[Document(text=f"{WHOLE} of May.", **NODE)],
        document_prompt=PromptTemplate("{file} | {metadata_str} | {content} | {secret}"),
        streaming=mode in STREAMS,
    )
    await ask(engine, QUESTION, mode)
    for call, text in zip(model_of(engine).calls, ("Tea was served.", f"{WHOLE} of May."), strict=True):
        assert f"minutes.txt | <file> minutes.txt\n<shelf> 7 | {text}" in call.prompt
        assert "for the index only" not in call.prompt


@every_mode
async def test_a_copy_of_a_document_is_otherwise_the_document(mode: str) -> None:
    document = Document(
        text=f"{WHOLE} of May.",
        id_="May",
        embedding=[0.5, 0.5],
        relationships={NodeRelationship.NEXT: RelatedNodeInfo(node_id="June")},
        excluded_embed_metadata_keys=["shelf"],
        **NODE,
    )
    (item,) = (await ask(an_engine(documents=[document], streaming=mode in STREAMS), QUESTION, mode)).source_nodes
    copy = item.node
    assert type(copy) is Document
    assert copy is not document
    assert item.text == item.get_text() == item.get_content() == document.text
    for name in ("node_id", "text", "embedding", "relationships", "text_template", "metadata_template"):
        assert getattr(copy, name) == getattr(document, name)
    assert {key: value for key, value in copy.metadata.items() if key != "selfroute"} == document.metadata
    for metadata_mode in (MetadataMode.LLM, MetadataMode.EMBED, MetadataMode.NONE):
        assert copy.get_content(metadata_mode) == document.get_content(metadata_mode)


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


async def test_retrieve_and_aretrieve_apply_the_postprocessors() -> None:
    engine = an_engine(node_postprocessors=[Best()])
    assert engine.retrieve(BUNDLE) == await engine.aretrieve(BUNDLE) == PASSAGES[:1]
    assert model_of(engine).calls == []
    assert isinstance(engine.retriever, ListRetriever)


MORE = [NodeWithScore(node=TextNode(text="Read elsewhere.", id_="more"), score=0.1)]


@every_mode
@pytest.mark.parametrize("more", [None, MORE, tuple(MORE)], ids=["none", "list", "tuple"])
@pytest.mark.parametrize(("draft", "nodes"), [("unanswerable", PASSAGES), ("Mr Lin.", PASSAGES), (None, [])])
async def test_nodes_can_be_synthesized_and_more_sources_named(
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


@every_mode
async def test_more_words_for_the_prompts_can_be_given_to_the_synthesizer(mode: str) -> None:
    prompt = PromptTemplate("{style} {context_str} {query_str}")
    engine = an_engine(rag_prompt=prompt, long_context_prompt=prompt, streaming=mode in STREAMS)
    synthesizer = engine._response_synthesizer
    if mode in AWAITED:
        response = await synthesizer.asynthesize(QUESTION, PASSAGES, style="In verse.")
    else:
        response = synthesizer.synthesize(QUESTION, PASSAGES, style="In verse.")
    assert "".join([piece async for piece in pieces_of(response, mode)]) == FOUND
    assert [call.prompt[:9] for call in model_of(engine).calls] == ["In verse."] * 2


async def test_the_host_s_lower_entry_answers_from_bare_texts() -> None:
    texts = [item.node.get_content() for item in PASSAGES]
    synthesizer = an_engine()._response_synthesizer
    assert synthesizer.get_response(QUESTION, texts) == FOUND
    assert await synthesizer.aget_response(QUESTION, texts) == FOUND
    streaming = an_engine(streaming=True)._response_synthesizer
    assert "".join(streaming.get_response(QUESTION, texts)) == FOUND
    assert "".join([piece async for piece in await streaming.aget_response(QUESTION, texts)]) == FOUND


class MinutesEngine(SelfRouteQueryEngine):
    """Somebody's own engine."""


def test_with_retriever_keeps_all_but_the_retriever() -> None:
    for kind in (SelfRouteQueryEngine, MinutesEngine):
        best, manager = Best(), CallbackManager([])
        engine = kind(
            ListRetriever(),
            documents=DOCUMENTS,
            llm=ScriptedLLM(draft=("unanswerable",), final=FINAL),
            node_postprocessors=[best],
            callback_manager=manager,
            refusal="unanswerable",
        )
        other = engine.with_retriever(retriever := ListRetriever(PASSAGES[1:]))
        assert type(other) is kind
        assert (other.retriever, other._response_synthesizer) == (retriever, engine._response_synthesizer)
        assert (other._node_postprocessors, other.callback_manager) == ([best], manager)
        assert other.query(QUESTION).metadata["retrieved"] == ["passage-2"]
        assert engine.query(QUESTION).metadata["retrieved"] == ["passage-1"]


@every_mode
async def test_from_args_does_as_the_constructor_does_and_keeps_the_class(mode: str) -> None:
    for kind in (SelfRouteQueryEngine, MinutesEngine):
        llm = ScriptedLLM(draft=("PASS",), final=FINAL)
        synthesizer = SelfRouteSynthesizer(documents=DOCUMENTS, llm=llm, refusal="PASS", streaming=mode in STREAMS)
        for engine in (
            kind.from_args(
                ListRetriever(),
                llm=llm,
                documents=DOCUMENTS,
                refusal="PASS",
                node_postprocessors=[Best()],
                streaming=mode in STREAMS,
            ),
            kind.from_args(ListRetriever(), response_synthesizer=synthesizer, node_postprocessors=[Best()]),
            kind(ListRetriever(), synthesizer, node_postprocessors=[Best()]),
        ):
            assert type(engine) is kind
            asked = await ask(engine, QUESTION, mode)
            assert (asked.text, asked.retrieved) == (FOUND, ["passage-1"])
