"""Both hosts, all modes: an answer is cited from the same places of the same texts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import current_thread
from typing import Any

import pytest

import llamaindex_parts
from both_parts import EVERYWHERE, LANGCHAIN, LLAMAINDEX, Outcome, Pipeline, Text, awaited, everywhere, pipeline
from llamaindex_selfroute import citation_nodes
from scenarios import QUESTION, WHOLE, Pieces
from selfroute.answerability import declines_anywhere
from selfroute.citations.citing import cite
from selfroute.policies import Never
from steering import RUNG, UNANSWERABLE, long_text
from structured_parts import Calling, Reporting

KEYS = {"document", "source", "start", "end", "text", "score"}
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
    Cited("a row of a table", UNANSWERABLE, ("104",), (0, "| Ice, a tonne | 104 |"), "What is the price of ice?"),
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
        "what is no text at all",
        UNANSWERABLE,
        ("Ms Okafor\x00 \ud800",),
        (0, "Ms \u202eOkafor\u202c chaired\x00 it\ud800."),
        documents=(("May", f"{WHOLE} of May. Ms \u202eOkafor\u202c chaired\x00 it\ud800. Nobody came."),),
    ),
]


def asking(where: str, case: Cited, **fields: Any) -> Pipeline:
    """A chain or an engine over a case."""
    parts = {
        "passages": [Text(text, source) for source, text in case.passages],
        "documents": [Text(text, source) for source, text in case.documents],
        "looks": case.looks,
        "citations": True,
        **case.options,
    }
    return pipeline(where, **{**parts, "draft": case.draft, "final": case.final, **fields})


async def asked(where: str, case: Cited, **fields: Any) -> Outcome:
    """What the question of a case came to."""
    return await asking(where, case, **fields).ask(case.question)


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_citations_are_alike_everywhere(case: Cited) -> None:
    outcomes = {where: await asked(where, case) for where in EVERYWHERE}
    for where, found in outcomes.items():
        citations = found.citations
        sources = [source for source, _ in (case.passages if found.route == "rag" else case.documents)]
        assert [(one["document"], one["text"]) for one in citations[:1]] == ([case.best] if case.best else []), where
        for one in citations:
            assert {*one} == KEYS
            assert found.read[one["document"]][one["start"] : one["end"]] == one["text"]
            assert one["source"] == sources[one["document"]]
        scores = [one["score"] for one in citations]
        assert scores == sorted(scores, reverse=True)
        assert all(0 < score <= 1 for score in scores)
        assert len(citations) <= 3
        assert citations == json.loads(json.dumps(outcomes[EVERYWHERE[0]].citations))


@everywhere
async def test_sections_are_cited(where: str) -> None:
    vote = "A vote was taken on the new crane."
    long = f"{MAY}\n\n{long_text('pier A', 12)}\n\n{vote}\n\n{long_text('pier B', 8)}"
    look = (("By a vote ", "on the crane."),)
    case = Cited("", UNANSWERABLE, None, None, "How was the crane decided on?", documents=(("May", long),), looks=look)
    found = await asked(where, case, sections=RUNG)
    best = found.citations[0]
    assert (found.route, best["source"], best["text"]) == ("sections", "May", vote)
    assert vote in found.read[best["document"]]


@awaited
async def test_citations_are_found_beside_the_event_loop(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[Any] = []

    def spy_on(place: str, does: Any) -> None:
        def spying(*args: Any, **options: Any) -> Any:
            threads.append(current_thread())
            return does(*args, **options)

        monkeypatch.setattr(place, spying)

    spy_on("selfroute.citations.citing.cite", cite)
    spy_on("selfroute.effects.declines_anywhere", declines_anywhere)
    for document, reply, beside in (
        ("", "", [False, False]),
        ("Nothing was said. " * 5_000, "", [False, True]),
        ("", " Tea was served." * 200, [True, True]),
    ):
        threads.clear()
        case = Cited("", UNANSWERABLE, ("Ms Okafor.", reply), CHAIRED, documents=(("May", MAY + document),))
        assert (await asked(where, case)).citations
        assert [thread is not current_thread() for thread in threads] == beside


@everywhere
async def test_without_the_option_nothing_is_cited(where: str) -> None:
    found = await asked(where, CASES[1], citations=False)
    assert "citations" not in found.told


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


@pytest.mark.parametrize("where", LANGCHAIN)
async def test_those_of_a_former_question_are_not_passed_on(where: str) -> None:
    one = asking(where, CASES[1])
    former = one.asked.invoke(QUESTION)
    assert (await one.ask(former)).citations == former["citations"]
    assert "citations" not in (await asking(where, CASES[1], citations=False).ask(former)).told
    tool = one.asked.as_tool(name="minutes", description="Asks.")
    assert tool.invoke({"input": QUESTION})["citations"] == former["citations"]


@pytest.mark.parametrize("where", LLAMAINDEX)
async def test_citations_are_nodes_too(where: str) -> None:
    one = asking(where, CASES[2])
    response = (await llamaindex_parts.ask(one.asked, CASES[2].question, one.mode)).response
    best, *_ = nodes = citation_nodes(response)
    assert [node.text for node in nodes] == [each["text"] for each in response.metadata["citations"]]
    whole = response.source_nodes[1].node.get_content()
    assert whole[best.node.start_char_idx : best.node.end_char_idx] == best.text
    assert (best.node.ref_doc_id, best.score) == ("June", response.metadata["citations"][0]["score"])
    for none in ({**response.metadata, "citations": []}, None):
        response.metadata = none
        assert citation_nodes(response) == []


@everywhere
async def test_citations_of_a_report_are_those_of_its_answer(where: str) -> None:
    draft, final = (
        json.dumps({"answerable": bool(text), "answer": text, "quotes": ["Tea was"]}) for text in ("", "Ms Okafor")
    )
    llm: Any = (Reporting if where in LANGCHAIN else Calling)(draft=(draft,), final=(final,))
    found = await asked(where, Cited("", None, None, None), answerability="structured", llm=llm)
    assert ({*found.citations[0]}, found.citations[0]["text"]) == (KEYS, CHAIRED[1])
    for call in found.calls:
        assert {*call.options["tools"][0]["function"]["parameters"]["properties"]} == {"answerable", "answer"}
