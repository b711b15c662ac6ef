"""One question over documents of some length, through either framework in any mode, in the words of neither."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from llama_index.core.schema import Document as LlamaDocument
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import MetadataFilters

import langchain_parts
import langchain_selfroute
import llamaindex_parts
import llamaindex_selfroute
from both_parts import LANGCHAIN
from langchain_stores import store_with
from llamaindex_stores_parts import simple
from scenarios import QUESTION
from steering import LONG_TEXTS, UNANSWERABLE, long_text

CHUNK = 300
MAY = LONG_TEXTS[0]
JUNE = f"{long_text('pier C', 9)}\n\nMr Lin chaired the meeting of June.\n\n{long_text('pier D', 9)}"
JULY = long_text("pier E", 18)
TEXTS: Mapping[str, str] = {"may": MAY, "june": JUNE, "july": JULY}
Passage = tuple[str, int, int]  # the name of a document, and the stretch of it
OPENING: Passage = ("may", 0, 120)
MIDDLE: Passage = ("may", 4_200, 4_400)
IN_JUNE: Passage = ("june", 2_000, 2_200)
BEFORE = "Answer the question from these passages only"  # where the context of a prompt ends
WHOLE = "Read the following text"  # how a prompt with whole documents begins
SOURCES = ("listed", "called", "stored")


@dataclass
class Read:
    """What a question came to.

    Attributes:
        result: The answer, with all that is said about it.
        context: The texts that it is from, with their metadata.
        names: The names of their documents.
        calls: The calls of the model.
    """

    result: Mapping[str, Any]
    context: list[tuple[str, Mapping[str, Any]]]
    names: list[Any]
    calls: list[Any]

    @property
    def steps(self) -> list[str]:
        return [call.step for call in self.calls]

    @property
    def sent(self) -> list[str]:
        """What each prompt held, without the instruction."""
        return [call.prompt.split("\n\n", 1)[1].split(f"\n\n{BEFORE}")[0] for call in self.calls]

    @property
    def runs(self) -> list[tuple[str, int, int]]:
        """Where each section stands, as its metadata say."""
        labels = [metadata["selfroute"] for _, metadata in self.context]
        return [(label["document"], label["start"], label["end"]) for label in labels]


def text_at(place: Passage, texts: Mapping[str, str] = TEXTS) -> str:
    """The text of a stretch of a document."""
    name, start, end = place
    return texts[name][start:end]


def places(text: str) -> list[tuple[int, int]]:
    """Where the chunks of a document stand."""
    return [(start, min(start + CHUNK, len(text))) for start in range(0, len(text), CHUNK)]


def _document(name: str, text: str) -> Document:
    return Document(text, metadata={"source": name})


def _chunk(place: Passage, texts: Mapping[str, str]) -> Document:
    return Document(text_at(place, texts), metadata={"source": place[0], "start_index": place[1]})


def _node(place: Passage, texts: Mapping[str, str]) -> TextNode:
    name, start, end = place
    return TextNode(
        text=text_at(place, texts),
        id_=f"{name}-{start}",
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=name)},
        start_char_idx=start,
        end_char_idx=end,
    )


def given(where: str, texts: Mapping[str, str], passages: Sequence[Passage], source: str) -> dict[str, Any]:
    """A retriever that finds the passages, and the documents from a kind of source."""
    chunks = [(name, *place) for name, text in texts.items() for place in places(text)]
    if where in LANGCHAIN:
        found = [_chunk(place, texts) for place in passages]
        whole: Any = [_document(*one) for one in texts.items()]
        if source == "stored":
            store = store_with("memory", [_chunk(place, texts) for place in chunks])
            whole = langchain_selfroute.StoredDocuments(store, filter={})
        retriever: Any = langchain_parts.ListRetriever(passages=found, k=99)
    else:
        nodes = [NodeWithScore(node=_node(place, texts), score=0.5) for place in passages]
        whole = [LlamaDocument(text=text, id_=name) for name, text in texts.items()]
        if source == "stored":
            index = simple([_node(place, texts) for place in chunks])
            whole = llamaindex_selfroute.StoredDocuments(index, filters=MetadataFilters(filters=[]))
        retriever = llamaindex_parts.ListRetriever(nodes, k=99)
    return {"retriever": retriever, "documents": (lambda *_: whole) if source == "called" else whole}


def asking(
    where: str,
    passages: Sequence[Passage],
    *,
    texts: Mapping[str, str] | None = None,
    source: str = "listed",
    **more: Any,
) -> tuple[Any, Any]:
    """A chain or an engine over the documents, and its scripted model."""
    mode = where.split()[1]
    parts = {
        "draft": UNANSWERABLE,
        "final": None,
        "marker": WHOLE,
        **given(where, texts or {"may": MAY}, passages, source),
    }
    parts |= more
    if where in LANGCHAIN:
        chain = langchain_parts.a_chain(**parts)
        return chain, chain.llm
    engine = llamaindex_parts.an_engine(**parts, streaming=mode in llamaindex_parts.STREAMS)
    return engine, llamaindex_parts.model_of(engine)


async def read(where: str, passages: Sequence[Passage] = (OPENING, MIDDLE), **more: Any) -> Read:
    """Ask the question."""
    return await read_by(where, *asking(where, passages, **more))


async def read_by(where: str, asked: Any, model: Any, question: str = QUESTION, **config: Any) -> Read:
    """Ask the question of a chain or an engine."""
    mode = where.split()[1]
    before = len(model.calls)
    if where in LANGCHAIN:
        result = await langchain_parts.ask(asked, question, mode, config or None)
        context = [(one.page_content, one.metadata) for one in result["context"]]
        names = [metadata.get("source") for _, metadata in context]
        return Read(result, context, names, model.calls[before:])
    told = await llamaindex_parts.ask(asked, question, mode)
    context = [(one.node.get_content(), one.node.metadata) for one in told.source_nodes]
    names = [one.node.ref_doc_id or one.node.node_id for one in told.source_nodes]
    return Read({"answer": told.text, **told.metadata}, context, names, model.calls[before:])


def saying(*replies: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
    """Replies one after the other."""
    turn = itertools.cycle(replies)
    return lambda _: next(turn)
