"""A judge in an evaluation: whom it asks and how often, what is kept and paid, and what its grades do."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import both_parts
from both_parts import COMPLETION, HOSTS
from evaluation_parts import kept
from judge_parts import grade, is_judging, read
from look_parts import a_look, a_question
from scenarios import WHOLE
from selfroute.answerability.ending import Ending
from selfroute.errors import ConfigurationError, NoReplyError
from selfroute.usage.account import Tally
from selfroute.usage.counts import StepUsage
from selfroute.usage.prices import PricedModel
from selfroute_workbench.evaluation.asker import Asker
from selfroute_workbench.evaluation.evaluating import evaluate
from selfroute_workbench.evaluation.judge import ModelJudge
from selfroute_workbench.evaluation.replies import Replies
from selfroute_workbench.evaluation.results import Evaluation

CHAIR, TEA, UNASKED = "Who chaired the meeting?", "What was served?", "Who left early?"
QUESTIONS = [
    {"question": CHAIR, "answers": ["Ms Okafor"]},
    {"question": TEA, "answers": ["tea and cake"]},
    {"question": UNASKED, "answers": []},
]
DRAFTS = {CHAIR: "unanswerable", TEA: "Tea", UNASKED: "unanswerable"}
FINALS = {CHAIR: "Ms Okafor did.", TEA: "tea and cake", UNASKED: "Mr Lin"}
JUDGED = {
    ("1", "rag"): (0.0, "rule"),
    ("1", "long_context"): (1.0, "model"),
    ("1", "yours"): (1.0, "model"),
    ("2", "rag"): (0.5, "model"),
    ("2", "long_context"): (1.0, "model"),
    ("2", "yours"): (0.5, "model"),
    ("3", "rag"): (1.0, "rule"),
    ("3", "long_context"): (0.0, "rule"),
    ("3", "yours"): (0.0, "rule"),
}


def answer(prompt: str) -> tuple[str, ...]:
    """Answers and judges."""
    if is_judging(prompt):
        return (grade(prompt),)
    by = FINALS if WHOLE in prompt else DRAFTS
    return (next(text for question, text in by.items() if question in prompt),)


LANGCHAIN, LLAMAINDEX, COMPLETING = (*HOSTS, COMPLETION[0])
both = pytest.mark.parametrize("where", [LANGCHAIN, LLAMAINDEX, COMPLETING])


def pipeline(where: str = LANGCHAIN, **script: Any) -> tuple[Any, Any]:
    """A pipeline whose model answers and judges, and that model."""
    made = both_parts.pipeline(where, **{"draft": answer, "final": answer, **script})
    return made.asked, made.model


def judged(done: Evaluation) -> dict[tuple[str, str], Any]:
    names = ("rag", "yours", "long_context")
    results = (one for one in done.results if one.strategy in names)
    return {(one.key[1], one.strategy): (one.judged, one.shown.judged_by) for one in results}


def judging(model: Any) -> list[str]:
    return [call.prompt for call in model.calls if is_judging(call.prompt)]


@both
def test_judge_one_call_a_question(where: str) -> None:
    asked, model = pipeline(where)
    done = evaluate(asked, QUESTIONS, judge=True)
    assert judged(done) == JUDGED
    assert not done.failures
    shown = {read(prompt).question: sorted(read(prompt).answers.values()) for prompt in judging(model)}
    assert shown == {CHAIR: ["Ms Okafor did."], TEA: ["Tea", "tea and cake"]}
    assert len(judging(model)) == 2


def test_judge_usage(tmp_path: Path) -> None:
    asked, _ = pipeline(usage=True)
    run = {"judge": True, "judge_priced_as": "openai:gpt-4", "folder": tmp_path}
    about = evaluate(asked, QUESTIONS, **run).settings["judge"]
    assert about["calls"] == 2
    assert float(about["cost"]) > 0 < about["input_tokens"]
    assert evaluate(asked, QUESTIONS, **run).settings["judge"] == about


# --- kept and paid once ------------------------------------------------------------------------------------------


def test_judge_waits_for_all_answers(tmp_path: Path) -> None:
    """Its answers would be judged again, and paid again, when the missing one is there."""
    failing = pipeline(failures={"long_context": [TimeoutError("too slow")]})
    done = evaluate(failing[0], QUESTIONS, judge=True, folder=tmp_path, concurrency=1)
    assert "yours" in {one.strategy for one in done.failures}
    ungraded = {name: graded for (number, name), graded in judged(done).items() if number == "1"}
    assert set(ungraded.values()) == {(None, None)}
    assert "rag" in ungraded
    assert {key: each for key, each in judged(done).items() if key[0] != "1"} == {
        key: JUDGED[key] for key in JUDGED if key[0] != "1"
    }
    asked, model = pipeline()
    assert judged(evaluate(asked, QUESTIONS, judge=True, folder=tmp_path)) == JUDGED
    assert [read(prompt).question for prompt in judging(model)] == [CHAIR]


# --- what cannot be read -----------------------------------------------------------------------------------------


class Replying:
    """A judge whose replies are scripted; after the last it grades."""

    def __init__(self, replies: Sequence[str]) -> None:
        self.replies, self.lock, self.prompts = list(replies), threading.Lock(), list[str]()

    def __call__(self, prompt: str) -> tuple[str, ...]:
        if not is_judging(prompt):
            return answer(prompt)
        with self.lock:
            self.prompts.append(prompt)
            return (self.replies.pop(0) if self.replies else grade(prompt),)


@pytest.mark.parametrize("odd", ["", "I would say that all are right.", "1: 0.7", "1: 1\n1: 0", "2: 1"])
def test_judge_unreadable_reply(odd: str, tmp_path: Path) -> None:
    one, judge = QUESTIONS[:1], Replying([odd, odd, odd])
    run = {"questions": one, "judge": True, "folder": tmp_path}
    for asked in (2, 4):
        done = evaluate(pipeline(draft=judge)[0], **run)
        assert len(judge.prompts) == (2 if asked == 2 else 4)
        if asked == 2:
            assert [(each.strategy, each.id) for each in done.failures] == [("judge", "1")]
            assert "not one grade for each answer" in done.failures[0].error
            assert {each.judged for each in done.results} == {None}
            assert {each.score for each in done.results} > {0.0}
    assert {key: judged(done)[key] for key in judged(done)} == {key: JUDGED[key] for key in JUDGED if key[0] == "1"}
    assert "could not be read" in judge.prompts[1]
    assert "could not be read" not in judge.prompts[0]
    assert [row["step"] for row in kept(tmp_path)].count("judge") == 4  # what was paid for counts, whatever it says


@pytest.mark.parametrize("finish_reason", ["length", "content_filter"])
def test_judge_no_reply(finish_reason: str) -> None:
    asked: list[str] = []

    def silent(prompt: str) -> Tally:
        asked.append(prompt)
        tally = Tally(whole=True)
        tally.counts, tally.ended = StepUsage(9, 0), Ending(finish_reason)
        return tally

    broken = ModelJudge(Asker(silent, Replies(), model=PricedModel("gpt-4o", "openai")))
    with pytest.raises(NoReplyError, match=f"the judge step got no reply .* {finish_reason}"):
        broken.grade(a_question(answers=("seven",)), [a_look(answer="eight")])
    assert len(asked) == 1


def test_judge_errors() -> None:
    def broken(prompt: str) -> tuple[str, ...]:
        if is_judging(prompt):
            raise TimeoutError
        return answer(prompt)

    many = [{**QUESTIONS[0], "id": str(number)} for number in range(300)]
    many[0] = {**QUESTIONS[2], "id": "0"}  # graded by rule, which is no sample of the rest
    asked, model = pipeline(draft=broken)
    done = evaluate(asked, many, judge=True, concurrency=2)
    assert done.stopped == "the judge failed on the first 5 questions, so the rest were not asked"
    assert {(each.strategy, each.error) for each in done.failures} == {("judge", "TimeoutError")}
    assert len(judging(model)) < 150


# --- what it costs -----------------------------------------------------------------------------------------------


def test_judge_cap(tmp_path: Path) -> None:
    chain, _ = pipeline(usage=True, priced_as="openai:gpt-4o-mini")
    dear = {"judge": True, "judge_priced_as": "openai:gpt-4", "folder": tmp_path, "concurrency": 1}
    done = evaluate(chain, QUESTIONS, max_cost=0.001, **dear)
    assert done.stopped
    assert "cap of $0.001" in done.stopped
    assert {one.judged for one in done.results} == {None}
    done = evaluate(chain, QUESTIONS, max_cost=10, **dear)
    assert judged(done) == JUDGED
    price = {row["step"]: float(row["cost"]) / row["input_tokens"] for row in kept(tmp_path)}
    assert price["judge"] > 50 * price["rag"] > 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"judge": "openai:gpt-4o"}, "judge takes True, a model of LangChain or an LLM of LlamaIndex, not a str"),
        ({"judge_priced_as": "openai:gpt-4o"}, "judge_priced_as needs a judge"),
        ({"judge": True, "judge_priced_as": "gpt-4o"}, "judge_priced_as must be 'provider:name'"),
    ],
)
def test_judge_options(options: dict[str, Any], says: str) -> None:
    asked, model = pipeline()
    with pytest.raises(ConfigurationError, match=says):
        evaluate(asked, QUESTIONS, **options)
    assert model.calls == []
