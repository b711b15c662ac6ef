"""Whole documents are found behind the nodes that a CitationQueryEngine numbers, and limited as ever."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.query_engine import CitationQueryEngine

from llamaindex_parts import MODES, STREAMS, ScriptedLLM, ask
from llamaindex_selfroute import SelfRouteSynthesizer, StoredDocuments
from llamaindex_stores_parts import SPLIT, Words, split
from scenarios import FINAL, FOUND, WHOLE
from selfroute.errors import ConfigurationError

every_mode = pytest.mark.parametrize("mode", MODES)
LINES = [f"{WHOLE} line {n}: nothing much.\n" for n in range(90)]
LINES[60] = "The crane was repaired in May by Ms Duarte.\n"
MINUTES = Document(text="".join(LINES), id_="minutes", metadata={"team": "north"})


def a_citing_engine(mode: str, nodes: Any = None, **fields: Any) -> CitationQueryEngine:
    """An engine whose model declines to sources that are numbered."""
    index = VectorStoreIndex(split(MINUTES) if nodes is None else nodes, embed_model=Words())
    llm = ScriptedLLM()
    llm.draft = llm.final = lambda prompt: ("unanswerable",) if "Source 1:" in prompt else FINAL
    documents = StoredDocuments(index)
    synthesizer = SelfRouteSynthesizer(documents=documents, llm=llm, streaming=mode in STREAMS, **fields)
    retriever = index.as_retriever(similarity_top_k=1)
    return CitationQueryEngine(retriever, llm=llm, response_synthesizer=synthesizer, text_splitter=SPLIT)


@every_mode
async def test_a_decline_is_answered_from_the_whole_document(mode: str) -> None:
    asked = await ask(a_citing_engine(mode), "Who repaired the crane in May?", mode)
    assert (asked.text, asked.route, asked.decision["declined"]) == (FOUND, "long_context", True)
    assert [text.split() for text in asked.sources] == [MINUTES.text.split()]


@every_mode
async def test_citation_of_hidden_parts_is_refused(mode: str) -> None:
    nodes = split(MINUTES)
    nodes[0].metadata = {"team": "south"}
    with pytest.raises(ConfigurationError, match="team"):
        await ask(a_citing_engine(mode, nodes), "Who repaired the crane in May?", mode)
