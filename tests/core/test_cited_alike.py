"""Both frameworks, all modes: an answer is cited from the same places of the same texts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import current_thread
from typing import Any

import pytest
from langchain_core.documents import Document as LangChainDocument
from llama_index.core.schema import Document as LlamaIndexDocument
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode

import langchain_parts
import llamaindex_parts
from both_parts import AWAITED, EVERYWHERE, LANGCHAIN
from llamaindex_selfroute import citation_nodes
from scenarios import QUESTION, WHOLE, Pieces
from selfroute.citations import cite
from selfroute.policies import Never
from steering import RUNG, STEERED, UNANSWERABLE, Steered, long_text
from structured_parts import Calling, Reporting

KEYS = {"document", "source", "start", "end", "text", "score"}
everywhere = pytest.mark.parametrize("where", EVERYWHERE)

Texts = Sequence[tuple[str, str]]
"""The sources and the texts of passages or documents."""
MAY = (
    f"{WHOLE} of May.\n\nThe meeting began at ten. Ms Okafor chaired the meeting. Dr. Lin wrote the minutes.\n\n"
    "| Item | Price |\n| --- | --- |\n| Ice, a tonne | 104 |\n| Rope | 92 |\n\nTea was served."
)
JUNE = f"{WHOLE} of June. Mrs. Duarte chaired the meeting, since Ms Okafor was ill. Nothing was bought."
PASSAGES: Texts = (("May", "Tea was served."), ("June", "Nothing was bought. Ms Okafor was ill."))
DOCUMENTS: Texts = (("May", MAY), ("June", JUNE))


@dataclass(frozen=True)
class Cited:
    """What a model writes, and what is cited.

    Attributes:
        name: What happens.
        draft: The pieces of the first reply.
        final: Those of the second.
        best: The best citation: the number of the document, and the text; None for no citation at all.
        question: The question.
        passages: What is retrieved.
        documents: The whole documents.
        options: The options.
        looks: The pieces of each reply to sections.
    """

    name: str
    draft: Pieces | None
    final: Pieces | None
    best: tuple[int, str] | None
    question: str = QUESTION
    passages: Texts = PASSAGES
    documents: Texts = DOCUMENTS
    options: Mapping[str, Any] = field(default_factory=dict)
    looks: tuple[Pieces, ...] = ()

    def __str__(self) -> str:
        return self.name.replace(" ", "-")


CHAIRED = (0, "Ms Okafor chaired the meeting.")
CASES = [
    Cited("an answer from the passages", ("Ms ", "Okafor was."), None, (1, "Ms Okafor was ill."), "Who was ill?"),
    Cited("an answer from the documents", UNANSWERABLE, ("Ms Okafor ", "in May."), CHAIRED),
    Cited(
        "the second document",
        UNANSWERABLE,
        ("Mrs. Duarte.",),
        (1, "Mrs. Duarte chaired the meeting, since Ms Okafor was ill."),
        "Who chaired the meeting in June?",
    ),
    Cited("both steps decline", UNANSWERABLE, UNANSWERABLE, None),
    Cited("the last step declines in words", UNANSWERABLE, ("The minutes do not mention who chaired.",), None),
    Cited("nothing is retrieved", None, ("Ms Okafor.",), CHAIRED, passages=()),
    Cited("no draft is made", None, ("Ms Okafor.",), CHAIRED, options={"start": "long_context"}),
    Cited("a row of a table", UNANSWERABLE, ("104",), (0, "| Ice, a tonne | 104 |"), "What is the price of ice?"),
    Cited("an abbreviation", UNANSWERABLE, ("Dr. Lin",), (0, "Dr. Lin wrote the minutes."), "Who wrote the minutes?"),
    Cited("a reply that thinks first", UNANSWERABLE, ("<think>Rope? Tea? Dr. Lin?</think>", "Ms Okafor."), CHAIRED),
    Cited("an answer that stands nowhere", UNANSWERABLE, ("Zebras.",), None, "Why?"),
    Cited(
        "a policy keeps the question from the documents",
        ("80 42\n", "Ms Okafor was ill."),
        None,
        (1, "Ms Okafor was ill."),
        options={"answerability": "graded", "escalation": Never()},
    ),
    Cited(
        "Chinese",
        UNANSWERABLE,
        ("李明", "先生"),
        (0, "主席是李明先生。"),
        "谁是会议的主席?",
        documents=(("五月", f"{WHOLE}。会议于十点开始。主席是李明先生。「散会」,他说。"),),
    ),
    Cited(
        "Japanese",
        UNANSWERABLE,
        ("3500円です。",),
        (0, "費用は3500円でした。"),
        "費用はいくらですか。",
        documents=(("五月", f"{WHOLE}。会議は十時に始まった。費用は3500円でした。"),),
    ),
    Cited(
        "what is no text at all",
        UNANSWERABLE,
        ("Ms Okafor\x00 \ud800",),
        (0, "Ms \u202eOkafor\u202c chaired\x00 it\ud800."),
        documents=(("May", f"{WHOLE} of May. Ms \u202eOkafor\u202c chaired\x00 it\ud800. Nobody came."),),
    ),
]


def chain_of(case: Cited, **fields: Any) -> Any:
    given = {
        "retriever": langchain_parts.ListRetriever(passages=[as_document(*one) for one in case.passages]),
        "documents": [as_document(*one) for one in case.documents],
        "looks": case.looks,
        "citations": True,
    }
    return langchain_parts.a_chain(**{**given, "draft": case.draft, "final": case.final, **case.options, **fields})


def as_document(source: str, text: str) -> LangChainDocument:
    return LangChainDocument(text, metadata={"source": source})


def engine_of(case: Cited, mode: str, **fields: Any) -> Any:
    given = {
        "retriever": llamaindex_parts.ListRetriever([as_node(*one) for one in case.passages]),
        "documents": [whole(*one) for one in case.documents],
        "looks": case.looks,
        "citations": True,
        "streaming": mode in llamaindex_parts.STREAMS,
    }
    return llamaindex_parts.an_engine(**{**given, "draft": case.draft, "final": case.final, **case.options, **fields})


def whole(source: str, text: str) -> LlamaIndexDocument:
    return LlamaIndexDocument(text=text, id_=source)


def as_node(source: str, text: str) -> NodeWithScore:
    link = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=source)}
    return NodeWithScore(node=TextNode(text=text, relationships=link), score=0.5)


async def asked(where: str, case: Cited, **fields: Any) -> tuple[dict[str, Any], list[str]]:
    """Return what a question came to, and the texts that its answer is from."""
    framework, mode = where.split()
    if framework == "langchain":
        result = await langchain_parts.ask(chain_of(case, **fields), case.question, mode)
        return result, [document.page_content for document in result["context"]]
    response = await llamaindex_parts.ask(engine_of(case, mode, **fields), case.question, mode)
    return {**response.metadata, "answer": response.text}, response.sources


@everywhere
@pytest.mark.parametrize("case", CASES, ids=str)
async def test_an_answer_is_cited_from_where_it_stands(case: Cited, where: str) -> None:
    result, texts = await asked(where, case)
    citations = result["citations"]
    sources = [source for source, _ in (case.passages if result["route"] == "rag" else case.documents)]
    best = [(one["document"], one["text"]) for one in citations[:1]]
    assert best == ([case.best] if case.best else [])
    for one in citations:
        assert {*one} == KEYS
        assert texts[one["document"]][one["start"] : one["end"]] == one["text"]
        assert one["source"] == sources[one["document"]]
    scores = [one["score"] for one in citations]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)
    assert len(citations) <= 3
    json.dumps(citations)
    assert "unverified_quotes" not in result


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_both_frameworks_cite_the_same(case: Cited) -> None:
    first, *others = [(await asked(where, case))[0]["citations"] for where in EVERYWHERE]
    assert all(other == first for other in others)


@pytest.mark.parametrize("scenario", STEERED, ids=str)
async def test_whatever_steers_a_question_its_citations_are_from_its_context(scenario: Steered) -> None:
    found = []
    for where in EVERYWHERE:
        framework, mode = where.split()
        if framework == "langchain":
            chain = langchain_parts.steered_chain(scenario, citations=True)
            result = await langchain_parts.ask(chain, QUESTION, mode)
            context = [(document.page_content, document.metadata) for document in result["context"]]
        else:
            engine = llamaindex_parts.steered_engine(scenario, mode, citations=True)
            response = await llamaindex_parts.ask(engine, QUESTION, mode)
            result = response.metadata
            context = [(found.text, found.metadata) for found in response.response.source_nodes]
        citations = result["citations"]
        for one in citations:
            text, metadata = context[one["document"]]
            before = metadata["selfroute"]["start"] if result["route"] == "sections" else 0
            assert text[one["start"] - before : one["end"] - before] == one["text"]
        assert scenario.answerable or not citations
        found.append([(one["document"], one["text"], one["score"]) for one in citations])
    assert all(one == found[0] for one in found)


@everywhere
async def test_sections_are_cited(where: str) -> None:
    vote = "A vote was taken on the new crane."
    long = f"{MAY}\n\n{long_text('pier A', 12)}\n\n{vote}\n\n{long_text('pier B', 8)}"
    case = Cited(
        "sections",
        UNANSWERABLE,
        None,
        (1, vote),
        "How was the crane decided on?",
        documents=(("May", long),),
        options={"sections": RUNG},
        looks=(("By a vote ", "on the crane."),),
    )
    result, texts = await asked(where, case)
    assert result["route"] == "sections"
    best = result["citations"][0]
    assert (best["source"], best["text"], best["text"] in texts[best["document"]]) == ("May", vote, True)


@everywhere
async def test_of_a_document_that_was_cut_the_offsets_are_into_what_was_read(where: str) -> None:
    long = "Nothing was said about it. " * 300
    case = Cited(
        "cut",
        UNANSWERABLE,
        ("104",),
        None,
        "What is the price of ice?",
        passages=[("May", "Tea was served.")],
        documents=[("May", f"{long}{MAY}{long}")],
    )
    result, texts = await asked(where, case, max_context_tokens=200)
    best = result["citations"][0]
    assert best["text"] == "| Ice, a tonne | 104 |"
    assert texts[0][best["start"] : best["end"]] == best["text"]
    assert len(texts[0]) < len(long)


@pytest.mark.parametrize("where", AWAITED)
async def test_a_long_document_is_looked_through_beside_the_event_loop(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[Any] = []

    def spying(*args: Any, **options: Any) -> Any:
        threads.append(current_thread())
        return cite(*args, **options)

    monkeypatch.setattr("selfroute.citations.cite", spying)
    for more, beside in (("", False), ("Nothing was said. " * 5_000, True)):
        case = Cited("", UNANSWERABLE, ("Ms Okafor.",), CHAIRED, documents=(("May", MAY + more),))
        result, _ = await asked(where, case)
        assert result["citations"][0]["text"] == CHAIRED[1]
        assert (threads.pop() is not current_thread()) is beside


@everywhere
async def test_without_the_option_nothing_is_cited(where: str) -> None:
    result, _ = await asked(where, CASES[1], citations=False)
    assert not {"citations", "unverified_quotes"} & {*result}


def test_without_the_option_nothing_for_it_is_imported() -> None:
    code = """
import sys
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda
from langchain_selfroute import SelfRouteChain

document = Document("It did.")
model = FakeListChatModel(responses=["It did."])
SelfRouteChain(retriever=RunnableLambda(lambda _: [document]), llm=model, documents=[document]).invoke("Did it?")
print([name for name in sys.modules if name.startswith("selfroute.citations")])
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert ran.stdout.strip() == "[]"


@pytest.mark.parametrize("mode", langchain_parts.STREAMS)
async def test_in_a_stream_of_a_chain_they_come_in_the_last_chunk(mode: str) -> None:
    chunks = await langchain_parts.chunks(chain_of(CASES[1]), QUESTION, mode)
    assert [place for place, chunk in enumerate(chunks) if "citations" in chunk] == [len(chunks) - 1]
    whole = chain_of(CASES[1]).invoke(QUESTION)
    total = await langchain_parts.ask(chain_of(CASES[1]), QUESTION, mode)
    assert {**total, "usage": None} == {**whole, "usage": None}


@pytest.mark.parametrize("mode", langchain_parts.MODES)
async def test_those_of_a_former_question_are_not_passed_on(mode: str) -> None:
    former = chain_of(CASES[1]).invoke(QUESTION)
    again = await langchain_parts.ask(chain_of(CASES[1]), former, mode)
    assert again["citations"] == former["citations"]
    without = await langchain_parts.ask(chain_of(CASES[1], citations=False), former, mode)
    assert "citations" not in without


@pytest.mark.parametrize("mode", llamaindex_parts.MODES)
async def test_citations_are_nodes_too(mode: str) -> None:
    response = (await llamaindex_parts.ask(engine_of(CASES[2], mode), CASES[2].question, mode)).response
    nodes = citation_nodes(response)
    assert [node.text for node in nodes] == [one["text"] for one in response.metadata["citations"]]
    best = nodes[0]
    of = response.source_nodes[1].node
    assert of.get_content()[best.node.start_char_idx : best.node.end_char_idx] == best.text
    assert (best.node.ref_doc_id, best.score) == ("June", response.metadata["citations"][0]["score"])


def test_a_response_without_citations_has_no_such_nodes() -> None:
    response = engine_of(CASES[1], "query", citations=False).query(QUESTION)
    assert citation_nodes(response) == []
    response.metadata = None
    assert citation_nodes(response) == []


def test_an_agent_gets_them_from_the_chain_as_a_tool() -> None:
    told = chain_of(CASES[1]).as_tool(name="minutes", description="Asks.").invoke({"input": QUESTION})
    assert told["citations"][0]["text"] == CHAIRED[1]
    told = chain_of(CASES[1], citations=False).as_tool(name="minutes", description="Asks.").invoke({"input": QUESTION})
    assert "citations" not in told


def report(answer: str, *, answerable: bool = True, **more: Any) -> tuple[str]:
    return (json.dumps({"answerable": answerable, "answer": answer, **more}),)


async def filled_in(where: str, final: tuple[str], *, draft: Any = None, **options: Any) -> tuple[dict[str, Any], Any]:
    """Return what came of reports, and the model."""
    script = {"draft": draft or report("", answerable=False), "final": final}
    model: Any = (Reporting if where in LANGCHAIN else Calling)(**script)
    case = Cited("", None, None, None)
    result, _ = await asked(where, case, **{"answerability": "structured", "llm": model, **options})
    return result, model


@everywhere
async def test_what_the_model_quotes_is_looked_up_in_what_it_was_given(where: str) -> None:
    quotes = ["Nobody said so.", "the  meeting.\nDr. Lin \N{LEFT DOUBLE QUOTATION MARK}wrote"]
    result, model = await filled_in(where, report("Ms Okafor", quotes=quotes))
    (found,) = result["citations"]
    assert found == {
        "document": 0,
        "source": "May",
        "start": MAY.index("the meeting. Dr"),
        "end": MAY.index(" the minutes.\n"),
        "text": "the meeting. Dr. Lin wrote",
        "score": 1.0,
        "verified": True,
    }
    assert result["unverified_quotes"] == 1
    for call in model.calls:
        assert {*call.options["tools"][0]["function"]["parameters"]["properties"]} == {"answerable", "answer", "quotes"}


@everywhere
async def test_if_no_quote_stands_there_the_answer_is_cited_by_its_words(where: str) -> None:
    result, _ = await filled_in(where, report("Ms Okafor", quotes=["Nobody said so.", "..."]))
    assert (result["citations"][0]["text"], result["unverified_quotes"]) == (CHAIRED[1], 2)
    assert {*result["citations"][0]} == KEYS


@everywhere
async def test_what_declines_is_not_cited_whatever_it_quotes(where: str) -> None:
    result, _ = await filled_in(where, report("", answerable=False, quotes=["Tea was served."]))
    assert (result["citations"], result["unverified_quotes"], result["answerable"]) == ([], 0, False)


ODD_QUOTES: dict[str, Any] = {
    "null": None,
    "text": "Tea was served.",
    "a number": 5,
    "mixed": ["Tea was served.", None, 3, ["x"], {"a": 1}],
    "many": ["Tea was served."] * 500,
    "long": ["Tea " * 30_000],
    "empty": ["", " ", "\n"],
    "a pattern": ["(.*)+", "\\", "[", "{name}"],
    "no text at all": ["\ud800", "\x00"],
}


@pytest.mark.parametrize("name", ODD_QUOTES)
async def test_quotes_change_neither_the_verdict_nor_the_answer(name: str) -> None:
    for draft in (report("Tea.", quotes=ODD_QUOTES[name]), report("", answerable=False, quotes=ODD_QUOTES[name])):
        plain = json.dumps({key: value for key, value in json.loads(draft[0]).items() if key != "quotes"})
        for where in EVERYWHERE:
            found, _ = await filled_in(where, report("Ms Okafor"), draft=draft)
            same, _ = await filled_in(where, report("Ms Okafor"), draft=(plain,))
            for key in ("answer", "route", "answerable", "decision", "finish_reason"):
                assert found[key] == same[key], where


async def test_a_reply_that_was_cut_within_its_quotes_is_an_answer() -> None:
    cut = ('{"answerable": true, "answer": "Ms Okafor, of {May}", "quotes": ["Ms Okafor ch',)
    for where in EVERYWHERE:
        model: Any = (langchain_parts.ScriptedModel if where in LANGCHAIN else llamaindex_parts.ScriptedLLM)(
            draft=report("", answerable=False), final=cut, ends={"long_context": "length"}
        )
        if where in LANGCHAIN:
            model = Reporting(draft=model.draft, final=cut, ends=model.ends)
        result, _ = await asked(where, Cited("", None, None, None), answerability="structured", llm=model)
        assert (result["answer"], result["answerable"]) == ("Ms Okafor, of {May}", True), where
        assert result["citations"][0]["text"] == CHAIRED[1]
