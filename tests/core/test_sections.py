"""Both frameworks, all modes: what sections are read, how they are sent, what they cost, and when they are skipped."""

from __future__ import annotations

import threading
from itertools import groupby
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.prompts import PromptTemplate
from llama_index.core import PromptTemplate as LlamaPrompt
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

import langchain_parts
import llamaindex_parts
from both_parts import EVERYWHERE, LANGCHAIN
from langchain_selfroute import SelfRouteChain
from langchain_stores import holding, store_with
from llamaindex_selfroute import SelfRouteQueryEngine
from llamaindex_stores_parts import only, simple
from sections_parts import (
    IN_JUNE,
    JULY,
    JUNE,
    MAY,
    MIDDLE,
    OPENING,
    SOURCES,
    TEXTS,
    WHOLE,
    Passage,
    Read,
    asking,
    read,
    read_by,
    text_at,
)
from selfroute.documents.index import KEPT
from selfroute.errors import ConfigurationError
from selfroute.policies import Budget, Case, Ruling
from selfroute.policies.policy import Policy, Spent
from selfroute.usage import count_tokens
from steering import GRADED, LARGER, LEFT_OUT, LOOKED, RUNG, SAID, UNANSWERABLE, VOTE

everywhere = pytest.mark.parametrize("where", EVERYWHERE)
FAR_APART = ("langchain invoke", "langchain astream", "llamaindex aquery", "llamaindex stream")
far_apart = pytest.mark.parametrize("where", FAR_APART)  # for what happens before a mode matters
LOOKS: dict[str, Any] = {"looks": (LOOKED,), "sections": RUNG}
TOO_LONG = ValueError("prompt is too long: 1640 tokens > 1100 maximum")


def check_places(found: Read, *passages: Passage) -> None:
    """Hold sections against the documents: each stands where it says, in order and apart, and they hold passages."""
    assert (found.result["route"], found.result["answer"], found.result["answerable"]) == ("sections", SAID, True)
    for (text, metadata), name, (document, start, end) in zip(found.context, found.names, found.runs, strict=True):
        assert set(metadata["selfroute"]) == {"method", "start", "end", "document"}
        assert (metadata["selfroute"]["method"], name) == ("sections", document)
        assert text == TEXTS[name][start:end]
    for (name, _, end), (other, start, _) in zip(found.runs, found.runs[1:], strict=False):
        assert name != other or TEXTS[name][end:start].strip()
    for name, start, end in passages:
        assert any(run[0] == name and run[1] <= start and end <= run[2] for run in found.runs)


def expected_text(found: Read, texts: dict[str, str]) -> str:
    """The context of a prompt as the contract has it."""
    parts = []
    for name, runs in groupby(found.runs, key=lambda run: run[0]):
        some = list(runs)
        text = f"\n{LEFT_OUT}\n".join(texts[name][start:end] for _, start, end in some)
        text = f"{LEFT_OUT}\n{text}" if texts[name][: some[0][1]].strip() else text
        parts.append((name, f"{text}\n{LEFT_OUT}" if texts[name][some[-1][2] :].strip() else text))
    if len(parts) == 1:
        return parts[0][1]
    return "\n\n".join(f"Document {n}: {name}\n{text}" for n, (name, text) in enumerate(parts, 1))


@everywhere
@pytest.mark.parametrize("source", SOURCES)
async def test_sections_say_where_they_stand_and_are_sent_as_one_text(source: str, where: str) -> None:
    found = await read(where, source=source, **LOOKS)
    check_places(found, OPENING, MIDDLE)
    assert found.steps == ["rag", "sections"]
    assert any(VOTE in text for text, _ in found.context)
    assert found.sent[1] == expected_text(found, {"may": MAY})
    assert sum(count_tokens(text) for text, _ in found.context) <= RUNG
    usage = found.result["usage"]
    assert usage["sections"]["input_tokens"] > usage["rag"]["input_tokens"] > 0
    assert usage["long_context"] is None


@everywhere
@pytest.mark.parametrize("source", SOURCES)
async def test_sections_of_several_documents_stand_under_headings_in_their_order(source: str, where: str) -> None:
    passages = [IN_JUNE, OPENING]
    texts = {"may": MAY, "june": JUNE}
    found = await read(where, passages, texts=texts, source=source, **LOOKS | {"sections": LARGER})
    check_places(found, *passages)
    assert [name for name, _ in groupby(found.names)] == (["june", "may"] if source == "stored" else ["may", "june"])
    assert found.sent[1] == expected_text(found, texts)
    for fact in (VOTE, "Mr Lin chaired the meeting of June."):
        assert any(fact in text for text, _ in found.context)


@everywhere
async def test_the_two_rungs_hold_one_another(where: str) -> None:
    found = await read(where, sections=(RUNG, LARGER), looks=(UNANSWERABLE, LOOKED))
    check_places(found, OPENING, MIDDLE)
    first, second = (found.sent[at].split(LEFT_OUT) for at in (1, 2))
    assert len(found.sent[1]) < len(found.sent[2])
    assert all(any(part.strip() in other for other in second) for part in first)


@everywhere
async def test_documents_are_formatted_by_the_prompt_for_documents(where: str) -> None:
    template: Any = PromptTemplate.from_template("<{source}|{page_content}>")
    if where not in LANGCHAIN:
        template = LlamaPrompt("<{content}>")
    found = await read(where, document_prompt=template, **LOOKS)
    text = expected_text(found, {"may": MAY})
    assert found.sent[1] == (f"<may|{text}>" if where in LANGCHAIN else f"<{text}>")


@everywhere
async def test_sections_are_asked_for_their_confidence_alone(where: str) -> None:
    found = await read(where, draft=("80 42\nHm.",), **GRADED, **LOOKS | {"looks": (("70\n", *LOOKED),)})
    check_places(found)
    draft, sections = (call.prompt for call in found.calls)
    assert "write two numbers from 0 to 100" in draft
    assert "write a number from 0 to 100" in sections
    assert "two numbers" not in sections


@everywhere
async def test_a_prompt_of_the_user_is_that_of_the_sections_too(where: str) -> None:
    own = "Two numbers to 100.\n\n{context}\n\nAnswer the question from these passages only: {input} or {refusal}."
    prompt: Any = PromptTemplate.from_template(own)
    if where not in LANGCHAIN:
        prompt = LlamaPrompt(own.replace("{context}", "{context_str}").replace("{input}", "{query_str}"))
    options = {**GRADED, "rag_prompt": prompt, "draft": ("80 42\nHm.",), "looks": (("80 70\n", *LOOKED),)}
    found = await read(where, **{**LOOKS, **options})
    check_places(found)
    assert all(call.prompt.startswith("Two numbers to 100.") for call in found.calls)


@everywhere
@pytest.mark.parametrize("times", [1, 2])
async def test_sections_that_are_too_long_are_sent_again_with_less(times: int, where: str) -> None:
    found = await read(where, failures={"sections": [TOO_LONG] * times}, **LOOKS | {"sections": 2_600}, max_documents=0)
    assert found.steps == ["rag", *["sections"] * (times + 1)]
    assert (found.result["route"], found.result["answer"]) == ("sections", SAID)
    lengths = [len(text) for text in found.sent[1:]]
    assert lengths == sorted(lengths, reverse=True)
    assert len(set(lengths)) == times + 1
    assert all(text == MAY[start:end] for (text, _), (_, start, end) in zip(found.context, found.runs, strict=True))


@everywhere
async def test_sections_fit_a_window_that_is_smaller_than_their_budget(where: str) -> None:
    window = {"profile": {"max_input_tokens": 1_200}} if where in LANGCHAIN else {"context_window": 1_200}
    found = await read(where, **LOOKS | {"sections": 1_400}, max_context_tokens=9_000, **window)
    check_places(found, OPENING, MIDDLE)
    assert count_tokens(found.calls[1].prompt) < 1_200 - 200  # with room for the reply


@everywhere
async def test_a_question_about_nothing_found_is_answered_from_what_its_words_are_in(where: str) -> None:
    found = await read(where, (), **LOOKS)
    check_places(found)
    assert (found.steps, found.result["decision"]["signal"]) == (["sections"], "no_passages")
    assert any(VOTE in text for text, _ in found.context)


@far_apart
@pytest.mark.parametrize("source", SOURCES)
async def test_a_passage_is_read_in_its_own_document_though_another_quotes_it(source: str, where: str) -> None:
    texts = {"april": f"{text_at(IN_JUNE)}\n\n{MAY}", "june": JUNE}
    found = await read(where, [IN_JUNE], texts=texts, source=source, **LOOKS)
    _, start, end = IN_JUNE
    assert any(run[0] == "june" and run[1] <= start and end <= run[2] for run in found.runs)


@far_apart
@pytest.mark.parametrize("end", [2_000, 2_400])
async def test_sections_that_are_no_more_than_the_passages_are_skipped(end: int, where: str) -> None:
    """Also if the passages touch, so that the white space between them is all that sections would add."""
    text = MAY[:end].rsplit(". ", 1)[0] + "."
    passages = [
        ("may", 0, 1_000),
        ("may", 1_000, 1_000 + MAY[1_000:].index(" ")),
        ("may", 1_001 + MAY[1_000:].index(" "), len(text)),
    ]
    budget = count_tokens(text) + 1
    found = await read(where, passages, looks=(), final=LOOKED, sections=budget)
    assert found.steps == ["rag", "long_context"]


@everywhere
async def test_only_the_first_passages_are_drafted_from_and_all_point_to_documents(where: str) -> None:
    texts = {"may": MAY, "june": JUNE}
    passages = [MIDDLE, IN_JUNE, OPENING]
    found = await read(where, passages, texts=texts, source="stored", draft_passages=1, **LOOKS | {"sections": LARGER})
    assert found.sent[0] == text_at(MIDDLE)
    check_places(found, MIDDLE)
    assert {*found.names} == {"may", "june"}
    assert len(found.result["retrieved"]) == 3


@everywhere
@pytest.mark.parametrize(("most", "names"), [(1, ["may"]), (2, ["june", "may"]), (None, ["july", "june", "may"])])
async def test_so_many_stored_documents_are_read_the_best_ones(most: int | None, names: list[str], where: str) -> None:
    passages = [("july", 0, 300), *[("june", *span) for span in ((0, 300), (600, 900))], ("may", 0, 300)]
    asked = {"texts": TEXTS, "looks": (), "final": LOOKED, "sections": None, "max_documents": most}
    found = await read(where, passages, source="stored", **asked)
    assert sorted(found.names) == sorted(names)
    found = await read(where, passages, source="listed", **asked)  # as the user gave them
    assert found.names == [*TEXTS]


STARTS: dict[str, tuple[list[Passage], list[str]]] = {
    "most": ([("may", 0, len(MAY) * 2 // 3)], ["long_context"]),
    "some": ([("may", 0, len(MAY) // 2)], ["rag", "long_context"]),
    "none": ([], ["long_context"]),
}


@everywhere
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", STARTS)
async def test_the_documents_are_read_at_once_if_the_passages_are_most_of_them(
    name: str, source: str, where: str
) -> None:
    passages, steps = STARTS[name]
    if source == "stored" and not passages:
        pytest.skip("no stored document is known without a passage")
    found = await read(where, passages, source=source, start="auto", final=LOOKED)
    assert (found.steps, found.result["route"]) == (steps, "long_context")
    signal = {"most": "start", "some": "sentinel", "none": "no_passages"}[name]
    assert found.result["decision"]["signal"] == signal
    assert [text for text, _ in found.context] == [MAY]


@far_apart
async def test_where_even_few_sections_are_too_long_the_documents_are_read(where: str) -> None:
    refused = {"sections": [TOO_LONG] * 9}
    found = await read(where, **LOOKS, failures=refused, final=LOOKED)
    assert (found.result["route"], found.result["answer"]) == ("long_context", SAID)
    assert found.steps[-1] == "long_context"
    with pytest.raises(ValueError, match="too long"):
        await read(where, **LOOKS, failures=refused, max_documents=0)


@far_apart
async def test_no_rung_is_paid_for_what_the_one_before_has_read(where: str) -> None:
    refused = {"sections": [None, TOO_LONG]}  # the second rung
    found = await read(
        where, looks=(UNANSWERABLE,) * 3, sections=(RUNG, RUNG + 40), failures=refused, final=LOOKED, max_documents=None
    )
    sent = found.sent[1:-1]
    assert len(set(sent)) == len(sent)
    assert found.steps == ["rag", "sections", "sections", "long_context"], "what was refused is not sent with less"
    refused = {"sections": [TOO_LONG]}  # the first rung, whose room then holds for the second
    found = await read(where, looks=(UNANSWERABLE,) * 3, sections=(RUNG, LARGER), failures=refused, final=LOOKED)
    assert found.steps == ["rag", "sections", "sections", "long_context"]


@everywhere
async def test_a_draft_is_made_where_the_documents_would_be_too_many_or_a_policy_decides(where: str) -> None:
    passages: list[Passage] = [(name, 0, len(text)) for name, text in TEXTS.items()]
    asked = {"texts": TEXTS, "source": "stored", "start": "auto", "draft": LOOKED, "final": UNANSWERABLE}
    found = await read(where, passages, **asked)
    assert (found.steps, found.result["answer"]) == (["rag"], SAID)
    found = await read(where, passages, **asked, max_documents=None)
    assert found.steps == ["long_context"]
    found = await read(where, passages, **asked, max_documents=None, escalation=Budget(tokens=1))
    assert (found.steps, found.result["answer"]) == (["rag"], SAID)


@everywhere
async def test_no_document_is_read_where_that_is_the_limit_whatever_says_where_to_start(where: str) -> None:
    with pytest.raises(ConfigurationError, match="max_documents=0 forbids it"):
        await read(where, max_documents=0, start=lambda _: "long_context", final=LOOKED)


@pytest.mark.parametrize("where", [where for where in EVERYWHERE if where.split()[1].startswith("a")])
@pytest.mark.parametrize("options", [{}, {"sections": RUNG, "looks": (LOOKED,)}, {"start": "auto"}], ids=str)
async def test_documents_are_ranked_beside_the_event_loop(
    options: dict[str, Any], where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []
    index_of = KEPT.of
    monkeypatch.setattr(KEPT, "of", lambda text: threads.append(threading.current_thread()) or index_of(text))
    passages: list[Passage] = [(name, 0, 300) for name in TEXTS]
    await read(where, passages, texts=TEXTS, source="stored", final=LOOKED, **options)
    assert threads
    assert threading.main_thread() not in threads


class Keeping(Policy):
    """Grants everything, and keeps what it was asked and told."""

    name = "keeping"

    def __init__(self, *refused: int) -> None:
        self.refused = refused
        self.cases: list[Case] = []
        self.estimates: list[int] = []
        self.told: list[tuple[Case, Spent]] = []

    def __call__(self, case: Case) -> Ruling:
        self.cases.append(case)
        self.estimates.append(case.tokens)
        return Ruling(go=len(self.cases) not in self.refused, by=self.name, reason="so it is")

    def settle(self, case: Case, spent: Spent) -> None:
        self.told.append((case, spent))


@everywhere
@pytest.mark.parametrize("usage", [True, False], ids=["counted", "estimated"])
async def test_a_policy_is_told_what_each_rung_took_by_itself(usage: bool, where: str) -> None:
    policy = Keeping()
    looks = (UNANSWERABLE, UNANSWERABLE)
    found = await read(where, sections=(RUNG, LARGER), looks=looks, final=LOOKED, escalation=policy, usage=usage)
    assert [case.step for case in policy.cases] == ["sections", "sections", "long_context"]
    spent = {id(case): one.tokens for case, one in policy.told}
    first, second, last = (spent[id(case)] for case in policy.cases)
    usage_of = found.result["usage"]
    assert first + second == sum(usage_of["sections"][key] for key in ("input_tokens", "output_tokens"))
    assert last == sum(usage_of["long_context"][key] for key in ("input_tokens", "output_tokens"))
    assert 0 < first < second < last
    for estimate, took in zip(policy.estimates, (first, second, last), strict=True):
        assert abs(estimate - took) <= 0.3 * took + 110  # with a reply of a hundred tokens


@everywhere
@pytest.mark.parametrize("refused", [1, 2, 3])
async def test_a_policy_may_refuse_each_step(refused: int, where: str) -> None:
    policy = Keeping(refused)
    found = await read(where, sections=(RUNG, LARGER), looks=(UNANSWERABLE,) * 2, final=LOOKED, escalation=policy)
    assert found.steps == ["rag", "sections", "sections", "long_context"][:refused]
    assert (found.result["route"], found.result["answerable"]) == (found.steps[-1], False)
    assert found.result["decision"]["ruling"] == {"go": False, "by": "keeping", "reason": "so it is"}
    assert len(policy.told) == refused - 1


@everywhere
async def test_a_budget_pays_for_sections_and_not_for_documents(where: str) -> None:
    budget = Budget(tokens=3_500)
    found = await read(where, looks=(UNANSWERABLE,), sections=RUNG, escalation=budget)
    assert found.steps == ["rag", "sections"]
    assert found.result["decision"]["ruling"]["by"] == "budget"


@everywhere
async def test_documents_are_read_once_for_all_steps(where: str) -> None:
    readings: list[Any] = []
    asked, model = asking(
        where,
        [OPENING],
        source="called",
        sections=(RUNG, LARGER),
        looks=(UNANSWERABLE,) * 2,
        final=LOOKED,
        start="auto",
    )
    found = await read_by(where, asked, model)
    assert found.steps == ["rag", "sections", "sections", "long_context"]
    documents = asked.documents if where in LANGCHAIN else asked._response_synthesizer.documents

    def counting(*given: Any) -> Any:
        readings.append(given)
        return documents(*given)

    if where in LANGCHAIN:
        asked = asked.model_copy(update={"documents": counting})
    else:
        asked._response_synthesizer.documents = counting
    await read_by(where, asked, model)
    assert len(readings) == 1


def chunks_of(framework: str) -> Any:
    """A real store where two tenants have a document of the same name, each chunk naming its owner."""
    places = [(owner, start) for start in range(0, len(JULY), 300) for owner in ("ours", "theirs")]
    if framework == "langchain":
        chunks = [
            Document(f"{owner}: {JULY[start : start + 300]}", metadata={"source": "july", "tenant": owner})
            for owner, start in places
        ]
        return store_with("memory", chunks)
    from_july = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="july")}
    return simple(
        [
            TextNode(
                text=f"{owner}: {JULY[start : start + 300]}",
                id_=f"{owner}-{start}",
                metadata={"tenant": owner},
                relationships=from_july,
            )
            for owner, start in places
        ]
    )


@everywhere
@pytest.mark.parametrize("most", [0, 2], ids=["no documents", "documents"])
async def test_the_filter_is_a_wall_for_every_step(most: int, where: str) -> None:
    framework, mode = where.split()
    model = {"draft": UNANSWERABLE, "looks": (UNANSWERABLE,) * 2, "final": LOOKED, "marker": WHOLE}
    options: dict[str, Any] = {"sections": (800, 1_200), "max_documents": most, "reach": 7}
    if framework == "langchain":
        llm: Any = langchain_parts.ScriptedModel(**model)
        wall = holding("memory", tenant="ours")
        asked: Any = SelfRouteChain.from_vectorstore(chunks_of(framework), llm, k=2, filter=wall, **options)
    else:
        llm = llamaindex_parts.ScriptedLLM(**model)
        options |= {"llm": llm, "streaming": mode in llamaindex_parts.STREAMS}
        wall = only("tenant", "ours")
        asked = SelfRouteQueryEngine.from_index(chunks_of(framework), similarity_top_k=2, filters=wall, **options)
    found = await read_by(where, asked, llm)
    assert found.steps == ["rag", "sections", "sections", *["long_context"] * bool(most)]
    assert [sent.count("ours:") for sent in found.sent[:1]] == [2]  # of the seven that were retrieved
    assert all("theirs" not in call.prompt for call in found.calls)
    assert found.sent[1].count("ours:") >= 7  # the sections hold more than the draft
