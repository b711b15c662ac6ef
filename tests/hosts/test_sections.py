"""Both hosts, all modes: what sections are read, how they are sent, what they cost, and when they are skipped."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import pytest

from both_parts import (
    Outcome,
    Pipeline,
    Text,
    awaited,
    document,
    everywhere,
    far_apart,
    is_langchain,
    model,
    pipeline,
    store_of,
    stored,
    template,
)
from langchain_selfroute import SelfRouteChain
from langchain_stores import holding
from llamaindex_selfroute import SelfRouteQueryEngine
from llamaindex_stores_parts import only
from selfroute.documents.index import WORD_INDEXES
from selfroute.errors import ConfigurationError
from selfroute.languages.tokens import count_tokens
from selfroute.policies import Budget, Case, Ruling
from selfroute.policies.policy import Policy, Spent
from steering import GRADED, LARGER, LEFT_OUT, LONG_TEXTS, LOOKED, RUNG, SAID, UNANSWERABLE, VOTE, long_text

CHUNK = 300
MAY = LONG_TEXTS[0]
JUNE = f"{long_text('pier C', 9)}\n\nMr Lin chaired the meeting of June.\n\n{long_text('pier D', 9)}"
JULY = long_text("pier E", 18)
TEXTS: Mapping[str, str] = {"may": MAY, "june": JUNE, "july": JULY}
Place = tuple[str, int, int]  # the name of a document, and the stretch of it
OPENING: Place = ("may", 0, 120)
MIDDLE: Place = ("may", 4_200, 4_400)
IN_JUNE: Place = ("june", 2_000, 2_200)
BEFORE = "Answer the question from these passages only"  # where the context of a prompt ends
WHOLE = "Read the following text"  # how a prompt with whole documents begins
SOURCES = ("listed", "called", "stored")
every_source = pytest.mark.parametrize("source", SOURCES)
LOOKS: dict[str, Any] = {"looks": (LOOKED,), "sections": RUNG}
TOO_LONG = ValueError("prompt is too long: 1640 tokens > 1100 maximum")


def passages_of(places: Sequence[Place], texts: Mapping[str, str]) -> list[Text]:
    return [Text(texts[name][start:end], name, start) for name, start, end in places]


def chunks_of(texts: Mapping[str, str]) -> list[Text]:
    """The chunks of whole documents, as a store holds them."""
    places = [(name, start, start + CHUNK) for name, text in texts.items() for start in range(0, len(text), CHUNK)]
    return passages_of(places, texts)


def asking(
    where: str,
    places: Sequence[Place],
    *,
    texts: Mapping[str, str] | None = None,
    source: str = "listed",
    **more: Any,
) -> Pipeline:
    """A chain or an engine over documents from a kind of source."""
    texts = texts or {"may": MAY}
    whole: Any = [Text(text, name) for name, text in texts.items()]
    if source == "stored":
        whole = stored(where, store_of(where, chunks_of(texts)), open_to_all=True)
    fields = {"final": None, "marker": WHOLE, "documents": whole, "passages": passages_of(places, texts), **more}
    one = pipeline(where, **fields)
    if source == "called":
        listed = one.holder.documents
        one = pipeline(where, **{**fields, "documents": lambda *_: listed})
    return one


async def read(where: str, places: Sequence[Place] = (OPENING, MIDDLE), **more: Any) -> Outcome:
    """Ask the question."""
    return await asking(where, places, **more).ask()


def sent(found: Outcome) -> list[str]:
    """What each prompt held, without the instruction."""
    return [prompt.split("\n\n", 1)[1].split(f"\n\n{BEFORE}")[0] for prompt in found.prompts]


def runs(found: Outcome) -> list[Place]:
    """Where each section stands, as its metadata say."""
    labels = [metadata["selfroute"] for _, metadata in found.context]
    return [(label["document"], label["start"], label["end"]) for label in labels]


def check_places(found: Outcome, *places: Place) -> None:
    """Hold sections against the documents: each stands where it says, in order and apart, and they hold passages."""
    assert (found.route, found.answer, found.answerable) == ("sections", SAID, True)
    for (text, metadata), name, (of, start, end) in zip(found.context, found.names, runs(found), strict=True):
        assert set(metadata["selfroute"]) == {"method", "start", "end", "document"}
        assert (metadata["selfroute"]["method"], name, text) == ("sections", of, TEXTS[name][start:end])
    for (name, _, end), (other, start, _) in zip(runs(found), runs(found)[1:], strict=False):
        assert name != other or TEXTS[name][end:start].strip()
    for place in places:
        check_within(found, place)


def check_within(found: Outcome, place: Place) -> None:
    """Check that a passage is within a section of the document that it is from."""
    name, start, end = place
    assert any(run[0] == name and run[1] <= start and end <= run[2] for run in runs(found))


def expected_text(found: Outcome, texts: Mapping[str, str]) -> str:
    """The context of a prompt as the contract has it."""
    parts = []
    for name, group in groupby(runs(found), key=lambda run: run[0]):
        some = list(group)
        text = f"\n{LEFT_OUT}\n".join(texts[name][start:end] for _, start, end in some)
        text = f"{LEFT_OUT}\n{text}" if texts[name][: some[0][1]].strip() else text
        parts.append((name, f"{text}\n{LEFT_OUT}" if texts[name][some[-1][2] :].strip() else text))
    if len(parts) == 1:
        return parts[0][1]
    return "\n\n".join(f"Document {n}: {name}\n{text}" for n, (name, text) in enumerate(parts, 1))


@everywhere
@every_source
async def test_sections_say_where_they_stand_and_are_sent_as_one_text(source: str, where: str) -> None:
    """Those of several documents stand under headings, in their order."""
    found = await read(where, source=source, **LOOKS)
    check_places(found, OPENING, MIDDLE)
    assert found.steps == ["rag", "sections"]
    assert any(VOTE in text for text in found.read)
    assert sent(found)[1] == expected_text(found, {"may": MAY})
    assert sum(map(count_tokens, found.read)) <= RUNG
    usage = found.usage
    assert usage["sections"]["input_tokens"] > usage["rag"]["input_tokens"] > 0
    assert usage["long_context"] is None
    passages, texts = [IN_JUNE, OPENING], {"may": MAY, "june": JUNE}
    found = await read(where, passages, texts=texts, source=source, **LOOKS | {"sections": LARGER})
    check_places(found, *passages)
    assert [name for name, _ in groupby(found.names)] == (["june", "may"] if source == "stored" else ["may", "june"])
    assert sent(found)[1] == expected_text(found, texts)
    for fact in (VOTE, "Mr Lin chaired the meeting of June."):
        assert any(fact in text for text in found.read)


@everywhere
async def test_the_two_rungs_hold_one_another(where: str) -> None:
    found = await read(where, sections=(RUNG, LARGER), looks=(UNANSWERABLE, LOOKED))
    check_places(found, OPENING, MIDDLE)
    first, second = (sent(found)[at].split(LEFT_OUT) for at in (1, 2))
    assert len(sent(found)[1]) < len(sent(found)[2])
    assert all(any(part.strip() in other for other in second) for part in first)


@everywhere
async def test_prompts_of_the_user_are_those_of_the_sections_too(where: str) -> None:
    form = "<{source}|{text}>" if is_langchain(where) else "<{text}>"
    found = await read(where, document_prompt=template(where, form), **LOOKS)
    assert sent(found)[1] == form.format(source="may", text=expected_text(found, {"may": MAY}))
    own = "Two numbers to 100.\n\n{context}\n\nAnswer the question from these passages only: {question} or {refusal}."
    options = {**GRADED, "rag_prompt": template(where, own), "draft": ("80 42\nHm.",), "looks": (("80 70\n", *LOOKED),)}
    found = await read(where, **{**LOOKS, **options})
    check_places(found)
    assert all(call.prompt.startswith("Two numbers to 100.") for call in found.calls)


@everywhere
@pytest.mark.parametrize("times", [1, 2])
async def test_sections_that_are_too_long_are_sent_again_with_less(times: int, where: str) -> None:
    found = await read(where, failures={"sections": [TOO_LONG] * times}, **LOOKS | {"sections": 2_600}, max_documents=0)
    assert found.steps == ["rag", *["sections"] * (times + 1)]
    assert (found.route, found.answer) == ("sections", SAID)
    lengths = [len(text) for text in sent(found)[1:]]
    assert lengths == sorted(lengths, reverse=True)
    assert len(set(lengths)) == times + 1
    assert all(text == MAY[start:end] for (text, _), (_, start, end) in zip(found.context, runs(found), strict=True))


@everywhere
async def test_sections_fit_a_window_that_is_smaller_than_their_budget(where: str) -> None:
    found = await read(where, **LOOKS | {"sections": 1_400}, max_context_tokens=9_000, window=1_200)
    check_places(found, OPENING, MIDDLE)
    assert count_tokens(found.calls[1].prompt) < 1_200 - 200  # with room for the reply


@far_apart
@pytest.mark.parametrize("end", [2_000, 2_400])
async def test_sections_that_are_no_more_than_the_passages_are_skipped(end: int, where: str) -> None:
    """Also if the passages touch, so that the white space between them is all that sections would add."""
    text = MAY[:end].rsplit(". ", 1)[0] + "."
    passages = [
        ("may", 0, 1_000),
        ("may", 1_000, MAY.index(" ", 1_030)),
        ("may", MAY.index(" ", 1_030) + 1, len(text)),
    ]
    budget = count_tokens(text) + 1
    found = await read(where, passages, looks=(), final=LOOKED, sections=budget)
    assert found.steps == ["rag", "long_context"]


@everywhere
async def test_sections_with_draft_passages(where: str) -> None:
    texts = {"may": MAY, "june": JUNE}
    passages = [MIDDLE, IN_JUNE, OPENING]
    found = await read(where, passages, texts=texts, source="stored", draft_passages=1, **LOOKS | {"sections": LARGER})
    assert sent(found)[0] == passages_of([MIDDLE], TEXTS)[0].text
    check_places(found, MIDDLE)
    assert {*found.names} == {"may", "june"}
    assert found.retrieved == 3


STARTS: dict[str, tuple[list[Place], list[str]]] = {
    "most": ([("may", 0, len(MAY) * 2 // 3)], ["long_context"]),
    "some": ([("may", 0, len(MAY) // 2)], ["rag", "long_context"]),
    "none": ([], ["long_context"]),
}


@everywhere
@pytest.mark.parametrize(
    ("name", "source"),
    [(name, source) for name in STARTS for source in SOURCES if (name, source) != ("none", "stored")],
)
async def test_start_auto_reads_documents_at_once(name: str, source: str, where: str) -> None:
    passages, steps = STARTS[name]
    found = await read(where, passages, source=source, start="auto", final=LOOKED)
    assert (found.steps, found.route) == (steps, "long_context")
    signal = {"most": "start", "some": "sentinel", "none": "no_passages"}[name]
    assert found.decision["signal"] == signal
    assert found.read == [MAY]


@far_apart
async def test_sections_that_are_always_too_long(where: str) -> None:
    refused = {"sections": [TOO_LONG] * 9}
    found = await read(where, **LOOKS, failures=refused, final=LOOKED)
    assert (found.route, found.answer) == ("long_context", SAID)
    assert found.steps[-1] == "long_context"
    with pytest.raises(ValueError, match="too long"):
        await read(where, **LOOKS, failures=refused, max_documents=0)


@far_apart
async def test_no_rung_is_paid_for_what_the_one_before_has_read(where: str) -> None:
    refused = {"sections": [None, TOO_LONG]}  # the second rung
    found = await read(
        where, looks=(UNANSWERABLE,) * 3, sections=(RUNG, RUNG + 40), failures=refused, final=LOOKED, max_documents=None
    )
    between = sent(found)[1:-1]
    assert len(set(between)) == len(between)
    assert found.steps == ["rag", "sections", "sections", "long_context"], "what was refused is not sent with less"
    refused = {"sections": [TOO_LONG]}  # the first rung, whose room then holds for the second
    found = await read(where, looks=(UNANSWERABLE,) * 3, sections=(RUNG, LARGER), failures=refused, final=LOOKED)
    assert found.steps == ["rag", "sections", "sections", "long_context"]


@everywhere
async def test_start_auto_makes_a_draft(where: str) -> None:
    passages: list[Place] = [(name, 0, len(text)) for name, text in TEXTS.items()]
    asked = {"texts": TEXTS, "source": "stored", "start": "auto", "draft": LOOKED, "final": UNANSWERABLE}
    found = await read(where, passages, **asked)
    assert (found.steps, found.answer) == (["rag"], SAID)
    found = await read(where, passages, **asked, max_documents=None)
    assert found.steps == ["long_context"]
    found = await read(where, passages, **asked, max_documents=None, escalation=Budget(tokens=1))
    assert (found.steps, found.answer) == (["rag"], SAID)


@everywhere
async def test_start_reads_no_forbidden_document(where: str) -> None:
    with pytest.raises(ConfigurationError, match="max_documents=0 forbids it"):
        await read(where, max_documents=0, start=lambda _: "long_context", final=LOOKED)


@awaited
@pytest.mark.parametrize("options", [{}, {"sections": RUNG, "looks": (LOOKED,)}, {"start": "auto"}], ids=str)
async def test_ranking_leaves_the_loop_alone(
    options: dict[str, Any], where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []
    index_of = WORD_INDEXES.of
    monkeypatch.setattr(WORD_INDEXES, "of", lambda text: threads.append(threading.current_thread()) or index_of(text))
    passages: list[Place] = [(name, 0, 300) for name in TEXTS]
    await read(where, passages, texts=TEXTS, source="stored", final=LOOKED, **options)
    assert threads
    assert threading.main_thread() not in threads


class Keeping(Policy):
    """Grants everything, and keeps what it was asked and told."""

    name = "keeping"

    def __init__(self) -> None:
        self.cases: list[Case] = []
        self.estimates: list[int] = []
        self.told: list[tuple[Case, Spent]] = []

    def __call__(self, case: Case) -> Ruling:
        self.cases.append(case)
        self.estimates.append(case.tokens)
        return Ruling(go=True, by=self.name, reason="so it is")

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
    usage_of = found.usage
    assert first + second == sum(usage_of["sections"][key] for key in ("input_tokens", "output_tokens"))
    assert last == sum(usage_of["long_context"][key] for key in ("input_tokens", "output_tokens"))
    assert 0 < first < second < last
    for estimate, took in zip(policy.estimates, (first, second, last), strict=True):
        assert abs(estimate - took) <= 0.3 * took + 110  # with a reply of a hundred tokens


OWN = "The passages do not say. They cover May."
LAST: dict[str, tuple[list[str], str]] = {
    "its own words": ([OWN], OWN),
    "after the refusal": ([f"Unanswerable. {OWN}"], OWN),
    "the refusal alone": (["Unanswerable."], "unanswerable"),
    "after both rungs": (["Unanswerable. They cover April.", OWN], OWN),
}


@everywhere
@pytest.mark.parametrize("name", LAST)
@pytest.mark.parametrize("graded", [{}, GRADED], ids=["text", "graded"])
async def test_last_sections_answer_in_their_own_words(name: str, graded: dict[str, Any], where: str) -> None:
    """After a policy's no the refusal is the answer."""
    looks, answer = LAST[name]
    found = await read(where, sections=(RUNG, LARGER)[: len(looks)], looks=looks, max_documents=0, **graded)
    assert found.steps == ["rag", *["sections"] * len(looks)]
    assert (found.route, found.answer, found.answerable) == ("sections", answer, False)
    asked: list[Case] = []
    options: dict[str, Any] = {"escalation": lambda case: asked.append(case) or len(asked) == 1, "max_documents": 0}
    found = await read(where, sections=(RUNG, LARGER), looks=[f"Unanswerable. {OWN}"], **options)
    assert found.steps == ["rag", "sections"]
    assert (found.route, found.answer, found.answerable) == ("sections", "unanswerable", False)


@everywhere
async def test_documents_are_read_once_for_all_steps(where: str) -> None:
    readings: list[Any] = []
    whole = document(where, Text(MAY, "may"))
    script: dict[str, Any] = {"looks": (UNANSWERABLE,) * 2, "final": LOOKED, "start": "auto"}
    found = await read(
        where, [OPENING], sections=(RUNG, LARGER), documents=lambda *given: readings.append(given) or [whole], **script
    )
    assert found.steps == ["rag", "sections", "sections", "long_context"]
    assert len(readings) == 1


OWNERS = ("ours", "theirs")


@everywhere
@pytest.mark.parametrize("most", [0, 2], ids=["no documents", "documents"])
async def test_the_filter_is_a_wall_for_every_step(most: int, where: str) -> None:
    """In a real store where two tenants have a document of the same name, each chunk naming its owner."""
    named = [
        Text(f"{owner}: {JULY[start : start + 300]}", "july", metadata={"tenant": owner})
        for start in range(0, len(JULY), 300)
        for owner in OWNERS
    ]
    store = store_of(where, named)
    llm = model(where, draft=UNANSWERABLE, looks=(UNANSWERABLE,) * 2, final=LOOKED, marker=WHOLE)
    options: dict[str, Any] = {"sections": (800, 1_200), "max_documents": most, "reach": 7}
    if is_langchain(where):
        wall = holding("memory", tenant="ours")
        asked: Any = SelfRouteChain.from_vectorstore(store, llm, k=2, filter=wall, **options)
    else:
        options |= {"llm": llm, "streaming": where.endswith("stream"), "filters": only("tenant", "ours")}
        asked = SelfRouteQueryEngine.from_index(store, similarity_top_k=2, **options)
    found = await Pipeline(where, asked, llm).ask()
    assert found.steps == ["rag", "sections", "sections", *["long_context"] * bool(most)]
    assert [text.count("ours:") for text in sent(found)[:1]] == [2]  # of the seven that were retrieved
    assert all("theirs" not in prompt for prompt in found.prompts)
    assert sent(found)[1].count("ours:") >= 7  # the sections hold more than the draft


@everywhere
async def test_doubted_draft_is_asked_again_where_sections_are_too_long(where: str) -> None:
    refused = {"sections": [TOO_LONG] * 9}

    def look_only(case: Case) -> bool:
        return case.step == "sections"

    options = {**GRADED, "draft": ("80 42\n", *LOOKED), "failures": refused, "escalation": look_only}
    found = await read(where, **{**LOOKS, **options})
    assert (found.route, found.answer) == ("rag", SAID)
    assert (found.steps[0], found.steps[-1]) == ("rag", "rag")
