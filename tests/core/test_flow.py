"""The flow, the two loops over it and the usage, on plain steps of no framework; and what the packages import."""

from __future__ import annotations

import ast
import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import selfroute
from lanes import examples
from scenarios import DECLINED, FINAL, FOUND, PLAIN, SCENARIOS, Scenario, cut, text_of
from selfroute.answerability import ANSWERED, NO_PASSAGES, STARTED, Verdict
from selfroute.answerability.ending import Ending
from selfroute.answerability.final import FinalGate
from selfroute.answerability.gate import Gate
from selfroute.calls.drivers import advance, arun, astream, run, stream
from selfroute.effects import Answer, Compare, Decide, Decided, Generate, ReadDocuments, Reply, Retrieve, Route
from selfroute.errors import NoReplyError
from selfroute.flow import MOST_RETRIES, self_route
from selfroute.usage import Cost, StepUsage, Usage, count_tokens
from selfroute.usage.account import Account
from selfroute.usage.counts import Entry

SENTINEL = Verdict(declined=True, signal="sentinel", evidence="unanswerable")
TOO_LONG = ValueError("too long")
ONCE = ["unanswerable"]


class PlainSteps:
    """Performs the effects from a script, in both worlds, and keeps what it was asked."""

    def __init__(  # noqa: PLR0913
        self,
        draft: Any = None,
        finals: Any = (),
        *,
        drafts: Any = (),
        documents: Any = (["whole"], ["less"], ["least"]),
        refusal: str = "unanswerable",
        ends: Any = None,
    ) -> None:
        self.ends = ends or {}
        self.passages = [] if draft is None else ["passage", "another"]
        self.replies: dict[str, list[Any]] = {"rag": [draft, *drafts], "long_context": list(finals)}
        self.documents = list(documents)
        self.refusal = refusal
        self.log: list[Any] = []
        self.opened = self.closed = 0
        self.kept: list[Any] = []  # a reply that is only forgotten is not closed
        self.booked: list[Entry] = []
        self.account = Account(self.booked.append)

    @property
    def ending(self) -> Ending:
        step = next(effect.step for effect in reversed(self.log) if isinstance(effect, Generate))
        return Ending(self.ends.get(step))

    def complete_usage(self, answer: Answer) -> None:
        assert not self.booked

    def cite(self, answer: Answer) -> Answer:
        return answer

    async def acite(self, answer: Answer) -> Answer:
        return answer

    def is_too_long(self, error: Exception) -> bool:
        return error is TOO_LONG

    def retrieve(self, effect: Retrieve) -> Sequence[str]:
        self.log.append(effect)
        return self.passages

    async def aretrieve(self, effect: Retrieve) -> Sequence[str]:
        return self.retrieve(effect)

    def read_documents(self, effect: ReadDocuments) -> Sequence[str]:
        self.log.append(effect)
        if effect.step == "rag":
            return effect.passages[: len(effect.passages) - len(self.refused("rag"))]
        found = self.documents.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    async def aread_documents(self, effect: ReadDocuments) -> Sequence[str]:
        return self.read_documents(effect)

    def refused(self, step: str) -> list[ReadDocuments]:
        return [
            effect
            for effect in self.log
            if isinstance(effect, ReadDocuments) and effect.step == step and effect.too_long
        ]

    may_resume = False

    def gate(self, step: Route) -> Gate | FinalGate:
        return FinalGate(self.refusal) if step == "long_context" else Gate(self.refusal)

    def decide(self, effect: Decide) -> Decided:
        self.log.append(effect)
        return Decided(effect.route, effect.decision)

    async def adecide(self, effect: Decide) -> Decided:
        return self.decide(effect)

    def _pieces(self, effect: Generate) -> Sequence[Any]:
        self.log.append(effect)
        return self.replies[effect.step].pop(0)

    def generate(self, effect: Generate) -> Generator[str, None, None]:
        self.kept.append(self._say(effect))
        return self.kept[-1]

    def _say(self, effect: Generate) -> Generator[str, None, None]:
        pieces = self._pieces(effect)
        self.opened += 1
        try:
            for piece in pieces:
                if isinstance(piece, BaseException):
                    raise piece
                yield piece or ""
        finally:
            self.closed += 1

    def agenerate(self, effect: Generate) -> AsyncGenerator[str, None]:
        self.kept.append(self._asay(effect))
        return self.kept[-1]

    async def _asay(self, effect: Generate) -> AsyncGenerator[str, None]:
        inner = self._say(effect)
        try:
            for piece in inner:
                await asyncio.sleep(0)
                yield piece
        finally:
            inner.close()


def flow(steps: PlainSteps) -> Any:
    return self_route("Who?", refusal=steps.refusal)


def both(make: Any) -> list[tuple[PlainSteps, list[Any]]]:
    """What the two loops yield, each over steps of its own."""

    async def items(steps: PlainSteps) -> list[Any]:
        return [item async for item in astream(flow(steps), steps)]

    first, second = make(), make()
    return [(first, list(stream(flow(first), first))), (second, asyncio.run(items(second)))]


def raised(make: Any) -> list[tuple[PlainSteps, BaseException]]:
    """The errors of both loops."""
    found = []
    for steps, loop in ((make(), run), (make(), lambda flow, steps: asyncio.run(arun(flow, steps)))):
        with pytest.raises(Exception) as error:  # noqa: PT011
            loop(flow(steps), steps)
        found.append((steps, error.value))
    return found


def test_the_flow_asks_for_its_effects_in_order() -> None:
    asked = self_route("Who?", refusal="pass")
    assert asked.send(None) == Retrieve("Who?")
    assert asked.send(["p"]) == Generate("rag", ["p"])
    assert asked.send(Reply("", SENTINEL)) == Decide("long_context", SENTINEL, SENTINEL)
    assert asked.send(Decided("long_context", SENTINEL)) == ReadDocuments(["p"])
    assert asked.send(["d"]) == Generate("long_context", ["d"])
    with pytest.raises(StopIteration) as end:
        asked.send(Reply("", SENTINEL))
    assert end.value.value == Answer("pass", "long_context", False, SENTINEL, ["p"], ["d"])


def test_a_draft_that_answers_ends_the_flow() -> None:
    asked = self_route("Who?")
    asked.send(None)
    asked.send(["p"])
    assert asked.send(Reply("Ms", ANSWERED)) == Decide("rag", ANSWERED, ANSWERED, final=True)
    with pytest.raises(StopIteration) as end:
        asked.send(None)
    assert end.value.value == Answer("Ms", "rag", True, ANSWERED, ["p"], ["p"])


def test_no_passages_skip_the_first_step() -> None:
    asked = self_route("Who?")
    asked.send(None)
    assert asked.send([]) == Decide("long_context", NO_PASSAGES, NO_PASSAGES)
    assert asked.send(Decided("long_context", NO_PASSAGES)) == ReadDocuments([])


@pytest.mark.parametrize("ladder", [("rag", "long_context"), ("rag", "sections", "long_context"), ("long_context",)])
def test_where_nothing_leads_to_a_document_a_question_ends_where_it_began(ladder: Any) -> None:
    begins = ladder[0]
    asked, verdict = self_route("Who?", ladder=ladder), NO_PASSAGES if begins == "rag" else STARTED
    asked.send(None)
    assert asked.send(None) == Decide(begins, verdict, verdict, since="rag", final=begins == "rag")
    if begins == "rag":
        with pytest.raises(StopIteration) as end:
            asked.send(Decided("rag", verdict))
        assert (end.value.value.route, end.value.value.text) == ("rag", "unanswerable")


def played(asked: Any, *results: Any) -> tuple[list[Any], Answer]:
    """The effects of a flow that is sent these results, and its answer."""
    effects = [asked.send(result) for result in (None, *results[:-1])]
    with pytest.raises(StopIteration) as end:
        asked.send(results[-1])
    return effects, end.value.value


UNSURE = Verdict(declined=False, signal="doubt", evidence="80 42", prospect=80, confidence=42)
STOPPED = replace(SENTINEL, ruling={"go": False, "by": "prospect", "reason": "10 < 20"})
P, S, T, D = ["p"], ["s"], ["s", "t"], ["d"]  # passages, sections, more of them, documents
CLIMB: tuple[Route, ...] = ("rag", "sections", "sections", "long_context")


def test_each_step_is_read_and_proposed_before_it_is_asked() -> None:
    draft, first, second = Reply("", SENTINEL), Reply("", UNSURE), Reply("", SENTINEL)
    more, whole = Decided("sections", SENTINEL), Decided("long_context", SENTINEL)
    effects, answer = played(
        self_route("Who?", CLIMB), P, draft, S, more, first, T, more, second, whole, D, Reply("Ms", ANSWERED)
    )
    assert effects == [
        Retrieve("Who?"),
        Generate("rag", P),
        ReadDocuments(P, step="sections"),
        Decide("sections", SENTINEL, SENTINEL, context=S),
        Generate("sections", S),
        ReadDocuments(P, step="sections", rung=1),
        Decide("sections", SENTINEL, UNSURE, since="sections", context=T),
        Generate("sections", T),
        Decide("long_context", SENTINEL, SENTINEL, since="sections"),
        ReadDocuments(P),
        Generate("long_context", D),
    ]
    assert answer == Answer("Ms", "long_context", True, SENTINEL, P, D)


ENDS: dict[str, tuple[tuple[Route, ...], tuple[Any, ...], list[Any], Answer]] = {
    "there is nowhere to go to": (
        ("rag",),
        (P, Reply("", SENTINEL), None),
        [Decide("rag", SENTINEL, SENTINEL, final=True)],
        Answer("unanswerable", "rag", False, SENTINEL, P, P),
    ),
    "a doubt has nowhere to go to": (
        ("rag",),
        (P, Reply("", UNSURE), None, Reply("Ms", ANSWERED)),
        [Decide("rag", UNSURE, UNSURE, final=True), Generate("rag", P, resumed=True)],
        Answer("Ms", "rag", True, UNSURE, P, P),
    ),
    "a doubt is left as the sections are skipped": (
        ("rag", "sections"),
        (P, Reply("", UNSURE), (), None, Reply("Ms", ANSWERED)),
        [
            ReadDocuments(P, step="sections"),
            Decide("rag", UNSURE, UNSURE, final=True),
            Generate("rag", P, resumed=True),
        ],
        Answer("Ms", "rag", True, UNSURE, P, P),
    ),
    "a doubt about sections is the last word": (
        ("rag", "sections", "sections"),
        (P, Reply("", SENTINEL), S, Decided("sections", SENTINEL), Reply("", UNSURE), (), Reply("Ms", ANSWERED)),
        [Generate("sections", S), ReadDocuments(P, step="sections", rung=1), Generate("sections", S, resumed=True)],
        Answer("Ms", "sections", True, SENTINEL, P, S),
    ),
    "a doubt stays as sections are refused": (
        CLIMB,
        (P, Reply("", UNSURE), S, Decided("rag", UNSURE, granted=False), Reply("Ms", ANSWERED)),
        [Decide("sections", UNSURE, UNSURE, context=S), Generate("rag", P, resumed=True)],
        Answer("Ms", "rag", True, UNSURE, P, P),
    ),
    "a decline is stopped": (
        CLIMB,
        (P, Reply("", STOPPED), None),
        [Decide("rag", STOPPED, STOPPED, final=True)],
        Answer("unanswerable", "rag", False, STOPPED, P, P),
    ),
    "sections settle it": (
        CLIMB,
        (P, Reply("", UNSURE), S, Decided("sections", UNSURE), Reply("Ms", ANSWERED)),
        [Decide("sections", UNSURE, UNSURE, context=S), Generate("sections", S)],
        Answer("Ms", "sections", True, UNSURE, P, S),
    ),
    "there are no documents": (
        CLIMB,
        (P, Reply("", SENTINEL), (), (), Decided("long_context", SENTINEL), ()),
        [ReadDocuments(P, step="sections", rung=1), Decide("long_context", SENTINEL, SENTINEL), ReadDocuments(P)],
        Answer("unanswerable", "long_context", False, SENTINEL, P, ()),
    ),
}


@pytest.mark.parametrize("name", ENDS)
def test_the_flow_ends_where(name: str) -> None:
    ladder, results, last, expected = ENDS[name]
    effects, answer = played(self_route("Who?", ladder), *results)
    assert (effects[-len(last) :], answer) == (last, expected)


def test_the_documents_come_at_once_where_the_passages_are_most_of_them() -> None:
    for is_most, then in ((True, Decide("long_context", STARTED, STARTED)), (False, Generate("rag", P))):
        asked = self_route("Who?", CLIMB, compares=True)
        asked.send(None)
        assert asked.send(P) == Compare(P)
        assert asked.send(is_most) == then
    asked = self_route("Who?", CLIMB, compares=True)
    asked.send(None)
    assert asked.send([]) == ReadDocuments([], step="sections")  # there is nothing to compare


def test_the_first_step_ends_before_anything_is_read_for_another() -> None:
    for compares, expected in ((True, NO_PASSAGES), (False, SENTINEL)):
        first = (P, Reply("", SENTINEL)) if not compares else ([],)
        _, answer = played(self_route("Who?", CLIMB, first_only=True, compares=compares), *first)
        assert answer == Answer("", "rag", False, expected, first[0], first[0], is_open=True)


VERDICTS = [ANSWERED, SENTINEL, UNSURE, STOPPED, replace(SENTINEL, signal="empty")]
LADDERS: list[tuple[Route, ...]] = [
    ("rag",),
    ("long_context",),
    ("rag", "sections"),
    ("rag", "long_context"),
    ("rag", "sections", "long_context"),
    CLIMB,
]


def climbed(ladder: Sequence[Route], passages: list[str], data: st.DataObject) -> tuple[list[tuple[Any, Any]], Answer]:
    """Each effect of a flow, with whatever came of it; and the answer."""
    asked, done = self_route("Who?", ladder), list[tuple[Any, Any]]()
    result: Any = None
    while not isinstance(effect := advance(asked.send, result), Answer):
        if isinstance(effect, Retrieve):
            result = passages
        elif isinstance(effect, ReadDocuments):
            result = data.draw(st.sampled_from([[], [f"text {len(done)}"]]))
        elif isinstance(effect, Decide):
            granted = effect.final or data.draw(st.booleans())
            result = Decided(effect.route if granted else effect.since, effect.decision, granted=granted)
        else:
            assert isinstance(effect, Generate)
            result = Reply("x", ANSWERED if effect.resumed else data.draw(st.sampled_from(VERDICTS)))
        done.append((effect, result))
    return done, effect


@examples(200)
@given(ladder=st.sampled_from(LADDERS), passages=st.sampled_from([[], P]), data=st.data())
def test_whatever_comes_of_the_steps_the_rules_of_the_ladder_hold(
    ladder: tuple[Route, ...], passages: list[str], data: st.DataObject
) -> None:
    done, answer = climbed(ladder, passages, data)
    asked = [(one, reply) for one, reply in done if isinstance(one, Generate) and not one.resumed]
    rulings = [(one, ruling) for one, ruling in done if isinstance(one, Decide)]
    # The steps are those of the ladder, in its order, and each but the last one left the question open.
    rest = iter(ladder)
    assert all(one.step in rest for one, _ in asked)
    assert all(reply.verdict.escalates for _, reply in asked[:-1])
    # Each step after the draft was granted, and nothing is proposed after a refusal.
    granted = [one.route for one, ruling in rulings if ruling.granted and not one.final]
    paid = [one.step for one, _ in asked if one.step != "rag"]
    assert granted[: len(paid)] == paid
    assert len(granted) - len(paid) == (answer.context == [] and answer.route == "long_context" and bool(granted))
    assert all(ruling.granted for _, ruling in rulings[:-1])
    # That a question ends where it began is said, once, if no step was proposed.
    proposed = [one for one, _ in rulings if not one.final]
    assert len(rulings) - len(proposed) == (not proposed)
    # A reply in doubt is continued, as the last thing, if nothing better came; nothing else is.
    unsure = bool(asked) and asked[-1][1].verdict.signal == "doubt" and answer.context == asked[-1][0].context
    resumed = [at for at, (one, _) in enumerate(done, 1) if isinstance(one, Generate) and one.resumed]
    assert resumed == [len(done)] * unsure
    # The answer is that of the last reply, from what it read, unless there are no documents.
    if asked and answer.context:
        assert (answer.route, answer.context) == (asked[-1][0].step, asked[-1][0].context)
        assert answer.answerable is (unsure or asked[-1][1].verdict.signal == "answered")
    else:
        assert (answer.text, answer.answerable) == ("unanswerable", False)
    drafted = [reply.verdict for one, reply in asked if one.step == "rag"]
    assert answer.decision == (drafted[0] if drafted else NO_PASSAGES if "rag" in ladder else STARTED)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_both_loops_play_every_scenario_alike(scenario: Scenario) -> None:
    finals = [] if scenario.final is None else [scenario.final]
    for steps, items in both(lambda: PlainSteps(scenario.draft, finals, refusal=scenario.refusal, ends=scenario.ends)):
        decided, *pieces, answer = items
        assert (decided.route, decided.decision.signal) == (scenario.route, scenario.signal)
        assert all(type(piece) is str and piece for piece in pieces)
        assert "".join(pieces) == answer.text == scenario.answer
        assert (answer.route, answer.answerable) == (scenario.route, scenario.answerable)
        assert answer.finish_reason == scenario.finish_reason
        assert answer.decision == decided.decision
        (entry,) = steps.booked
        assert (entry.outcome, entry.route, entry.error) == ("answered", scenario.route, None)
        assert (entry.declined, entry.answerable) == (scenario.declined, scenario.answerable)
        assert 0 < entry.seconds_to_first_text <= entry.seconds
        assert (answer.passages, answer.context) == (steps.passages, ["whole"] if scenario.declined else steps.passages)
        assert steps.opened == steps.closed


@examples(200)
@given(scenario=st.sampled_from(SCENARIOS), draft=st.lists(st.integers(0, 60)), final=st.lists(st.integers(0, 40)))
def test_the_outcome_does_not_depend_on_the_pieces(scenario: Scenario, draft: list[int], final: list[int]) -> None:
    def steps() -> PlainSteps:
        pieces = None if scenario.draft is None else cut(text_of(scenario.draft), draft)
        finals = [] if scenario.final is None else [cut(text_of(scenario.final), final)]
        return PlainSteps(pieces, finals, refusal=scenario.refusal, ends=scenario.ends)

    answers = [items[-1] for _, items in both(steps)]
    assert answers[0] == answers[1]
    assert (answers[0].text, answers[0].decision.signal) == (scenario.answer, scenario.signal)
    whole = PlainSteps(scenario.draft, [scenario.final], refusal=scenario.refusal, ends=scenario.ends)
    assert run(flow(whole), whole) == answers[0]


def test_a_final_that_was_too_long_is_asked_for_again_with_less() -> None:
    for steps, items in both(lambda: PlainSteps(("unanswerable",), [[TOO_LONG], FINAL])):
        assert (items[-1].text, items[-1].context) == (FOUND, ["less"])
        assert [type(effect) for effect in steps.log] == [
            Retrieve,
            Generate,
            Decide,
            ReadDocuments,
            Generate,
            ReadDocuments,
            Generate,
        ]
        assert steps.log[-2] == ReadDocuments(steps.passages, TOO_LONG)
        assert (steps.opened, steps.closed) == (3, 3)


def test_a_draft_that_was_too_long_is_asked_for_again_with_fewer_passages() -> None:
    for steps, items in both(lambda: PlainSteps([TOO_LONG], drafts=[FINAL])):
        assert (items[-1].text, items[-1].route) == (FOUND, "rag")
        assert (items[-1].passages, items[-1].context) == (["passage", "another"], ["passage"])
        assert steps.log[-3] == ReadDocuments(steps.passages, TOO_LONG, "rag")


def test_a_draft_that_is_too_long_without_passages_is_raised() -> None:
    for steps, error in raised(lambda: PlainSteps([TOO_LONG], drafts=[[TOO_LONG]])):
        assert error is TOO_LONG
        assert (len(steps.refused("rag")), steps.opened, steps.closed) == (2, 2, 2)


def test_less_is_sent_until_it_fits_but_not_for_ever() -> None:
    less = [[f"part {number}"] for number in range(20)]
    for tries in range(1, MOST_RETRIES + 1):
        for _, items in both(lambda: PlainSteps(ONCE, [*[[TOO_LONG]] * tries, FINAL], documents=less)):  # noqa: B023
            assert (items[-1].text, items[-1].context) == (FOUND, less[tries])
    for steps, error in raised(lambda: PlainSteps(ONCE, [[TOO_LONG]] * 20, documents=less)):
        assert error is TOO_LONG
        assert len(steps.refused("long_context")) == MOST_RETRIES


FAILURES: dict[str, tuple[Any, list[Any], Any]] = {
    "another error of the final after two that were too long": (
        ONCE,
        [[TOO_LONG], [TOO_LONG], [OSError("down")]],
        OSError,
    ),
    "too long after text was shown": (ONCE, [["Ms Okafor took the chair. ", "x" * 300, TOO_LONG]], TOO_LONG),
    "another error of the final": (ONCE, [[OSError("down")]], OSError),
    "an error of the draft": ([OSError("down")], [], OSError),
    "an error while a draft is held back": (["un", OSError("down")], [], OSError),
    "another error the second time": (ONCE, [[TOO_LONG], [OSError("down")]], OSError),
}


@pytest.mark.parametrize("name", FAILURES)
def test_every_other_error_is_raised_and_everything_closed(name: str) -> None:
    draft, finals, expected = FAILURES[name]
    for steps, error in raised(lambda: PlainSteps(draft, finals)):
        assert error is expected or type(error) is expected
        assert steps.opened == steps.closed
        assert steps.replies["long_context"] == []


@pytest.mark.parametrize("ends", ["length", "model_context_window_exceeded"])
def test_a_final_without_a_reply_is_raised_and_never_paid_twice(ends: str) -> None:
    for finals in ([[""]], [[TOO_LONG], [""]]):
        for steps, error in raised(lambda finals=finals: PlainSteps(ONCE, list(finals), ends={"long_context": ends})):
            assert type(error) is NoReplyError
            assert (error.step, error.finish_reason) == ("long_context", ends)
            assert steps.replies["long_context"] == []
            assert steps.opened == steps.closed == 1 + len(finals)
            assert [entry.error for entry in steps.booked] == ["NoReplyError"]


def test_nothing_left_to_read_raises_what_the_model_said() -> None:
    for steps, error in raised(lambda: PlainSteps(ONCE, [[TOO_LONG]], documents=(["whole"], []))):
        assert error is TOO_LONG
        assert len(steps.documents) == 0


def test_an_error_while_reading_less_is_raised() -> None:
    for _, error in raised(lambda: PlainSteps(ONCE, [[TOO_LONG]], documents=(["whole"], KeyError("gone")))):
        assert type(error) is KeyError


@pytest.mark.parametrize(
    "stop", [StopIteration("mine"), StopAsyncIteration("mine")], ids=lambda stop: type(stop).__name__
)
@pytest.mark.parametrize("where", ["draft", "final", "documents"])
def test_a_stop_out_of_a_step_does_not_end_the_flow(where: str, stop: Exception) -> None:
    made = {
        "draft": lambda: PlainSteps([stop]),
        "final": lambda: PlainSteps(ONCE, [[stop]]),
        "documents": lambda: PlainSteps(ONCE, documents=[stop]),
    }
    for _, error in raised(made[where]):
        assert type(error) in {RuntimeError, type(stop)}


def test_leaving_early_closes_the_reply() -> None:
    steps = PlainSteps(("Ms Okafor took the chair. ", "a", "b", "c", "d"))
    items = stream(flow(steps), steps)
    assert type(next(items)) is Decided
    assert next(items)
    assert steps.closed == 0
    items.close()
    assert (steps.opened, steps.closed) == (1, 1)


async def test_leaving_early_closes_the_reply_in_async_too() -> None:
    steps = PlainSteps(("Ms Okafor took the chair. ", "a", "b", "c", "d"))
    items = astream(flow(steps), steps)
    assert type(await anext(items)) is Decided
    assert await anext(items)
    assert steps.closed == 0
    await items.aclose()
    assert (steps.opened, steps.closed) == (1, 1)


def test_a_declined_draft_is_closed_before_anything_is_read() -> None:
    steps = PlainSteps(("unanswerable: ", "the text ", "is silent"), [FINAL])
    items = stream(flow(steps), steps)
    next(items)
    assert (steps.opened, steps.closed) == (1, 1)
    assert type(steps.log[-1]) is Decide
    items.close()


@pytest.mark.parametrize("scenario", [PLAIN, DECLINED], ids=str)
def test_run_returns_the_last_of_the_stream(scenario: Scenario) -> None:
    steps = [PlainSteps(scenario.draft, [scenario.final]) for _ in range(3)]
    answers = [
        run(flow(steps[0]), steps[0]),
        asyncio.run(arun(flow(steps[1]), steps[1])),
        list(stream(flow(steps[2]), steps[2]))[-1],
    ]
    assert answers[0] == answers[1] == answers[2]


dollars = st.decimals(0, 10, places=6, allow_nan=False).map(Cost)
costs = dollars | st.sampled_from(["no such model", "no prices"]).map(lambda reason: Cost(None, reason))
counts = st.builds(StepUsage, *[st.integers(0, 10**6)] * 3, st.booleans(), st.integers(0, 10**6), costs)
usages = st.builds(Usage, *[st.none() | counts] * 3, st.none() | st.integers(0, 10**6), costs)


@given(usages, usages, usages)
def test_usage_adds_up(one: Usage, two: Usage, three: Usage) -> None:
    assert (one + two) + three == one + (two + three)
    assert one + two == two + one
    assert one + Usage() == one
    assert (one + two).total_tokens == one.total_tokens + two.total_tokens
    assert (one + two).estimated == (one.estimated or two.estimated)
    assert (one + two).as_dict()["total_tokens"] == (one + two).total_tokens
    assert (one + two).input_tokens == sum(step.input_tokens for of in (one, two) for step in of.steps.values())
    assert (one + two).steps.keys() == one.steps.keys() | two.steps.keys()
    assert json.loads(json.dumps(one.as_dict())) == one.as_dict()


def test_usage_as_a_dict_has_the_keys_of_the_contract() -> None:
    usage = Usage.of("rag", StepUsage(10, 2, 4))
    assert usage.as_dict() == {
        "rag": {"input_tokens": 10, "output_tokens": 2, "cached_tokens": 4},
        "sections": None,
        "long_context": None,
        "total_tokens": 12,
        "estimated": False,
        "long_context_only": None,
        "token_ratio": None,
        "cost": None,
        "cost_long_context_only": None,
        "cost_unknown": "it was not asked for",
        "ledger": {},
    }


@given(st.text(), counts)
def test_a_reply_that_was_cut_short_is_filled_in_and_marked(text: str, known: StepUsage) -> None:
    filled = known.with_estimates(prompt="word " * 8, reply=text, count=count_tokens)
    assert filled.estimated
    assert filled.input_tokens == (known.input_tokens or 10)
    assert filled.output_tokens >= max(known.output_tokens, count_tokens(text))


def imported(*statements: str) -> list[set[str]]:
    """Return the top-level modules that a fresh interpreter holds after each of some statements."""
    show = "\nprint(*{name.split('.')[0] for name in sys.modules})\n"
    code = "import sys\n" + show.join([*statements, ""])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=100)  # noqa: S603
    return [set(line.split()) for line in done.stdout.splitlines()]


ROOT = Path(selfroute.__file__).parent
BEYOND = {"cli.py", "command", "demo", "evaluation", "files"}  # the core
CORE = sorted(path for path in ROOT.rglob("*.py") if path.relative_to(ROOT).parts[0] not in BEYOND)


def test_the_core_imports_nothing_but_the_standard_library() -> None:
    names = [".".join(path.relative_to(ROOT.parent).with_suffix("").parts) for path in CORE]
    bare, fresh = imported("", "".join(f"import {name.removesuffix('.__init__')}\n" for name in names))
    assert {name for name in fresh - bare if name not in sys.stdlib_module_names} == {"selfroute"}


OPTIONAL = {"genai_prices", "opentelemetry", "pandas"}  # asked for where they are needed, and done without


@pytest.mark.parametrize("path", CORE, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_module_of_the_core_names_a_package_that_it_cannot_do_without(path: Path) -> None:
    module = ast.parse(path.read_text())
    for part in ast.walk(module):
        modules = [alias.name for alias in part.names] if isinstance(part, ast.Import) else []
        modules += [part.module or ""] if isinstance(part, ast.ImportFrom) else []
        allowed = {*sys.stdlib_module_names, "selfroute"} | (set() if part in module.body else OPTIONAL)
        assert all(module.split(".")[0] in allowed for module in modules)


HEAVY = {
    *("langchain", "langchain_openai", "langchain_google_genai", "langchain_chroma", "langchain_huggingface"),
    *("langchain_classic", "langchain_text_splitters", "langgraph", "openai", "google", "chromadb", "torch"),
    *("transformers", "sentence_transformers", "typer", "rich"),
}


def test_the_langchain_package_imports_no_provider_and_nothing_heavy() -> None:
    (fresh,) = imported("import langchain_selfroute")
    assert "langchain_core" in fresh
    assert not fresh & {*HEAVY, "numpy", "llama_index", "llamaindex_selfroute"}


def test_the_llamaindex_package_imports_no_provider_and_nothing_beside_its_framework() -> None:
    framework, fresh = imported("import llama_index.core", "import llamaindex_selfroute")
    assert not fresh & {*HEAVY, "langchain_core", "langchain_selfroute"}
    more = fresh - framework - sys.stdlib_module_names
    assert more == {"selfroute", "llamaindex_selfroute"}


@pytest.mark.parametrize(
    ("package", "framework", "name", "extra"),
    [
        ("langchain_selfroute", "langchain_core", "langchain-core", "langchain"),
        ("llamaindex_selfroute", "llama_index", "llama-index-core", "llamaindex"),
    ],
)
def test_a_missing_framework_is_named_with_what_to_install(package: str, framework: str, name: str, extra: str) -> None:
    code = f"import sys\nsys.modules[{framework!r}] = None\nimport {package}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=100)  # noqa: S603
    assert f'ImportError: {package} needs {name}: pip install "selfroute[{extra}]"' in done.stderr
