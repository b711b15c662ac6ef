"""What is evaluated is what runs: each strategy asks the real chain or engine, and bounds end as they do live."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

import both_parts
import judge_parts
import langchain_parts
import llamaindex_parts
from both_parts import HOSTS, Outcome, Pipeline, each_host
from evaluation_parts import by_strategy
from langchain_selfroute import SelfRouteChain
from llamaindex_selfroute import SelfRouteQueryEngine
from scenarios import FINAL, FOUND, QUESTION
from selfroute.errors import ConfigurationError
from selfroute.paper import PAPER
from selfroute.policies import Never
from selfroute_workbench.evaluation.evaluating import _pipeline_of, evaluate
from selfroute_workbench.evaluation.looking import look
from selfroute_workbench.evaluation.looks import TRIED, Result
from selfroute_workbench.evaluation.replies import Replies as Kept
from selfroute_workbench.evaluation.results import Evaluation

ONE = [{"question": QUESTION, "answers": ["Ms Okafor"]}]
TEXTS = [f"Passage {number} of the minutes." for number in range(30)]
END = "Nobody wrote down the rest."
LONG = f"Ms Okafor chaired it. {' '.join(TEXTS)} {'Tea was served to all who had come. ' * 1_200}{END}"
ASKS, LEFT_OUT, MANY_WORDS = "On the first line write", "[...]", 1_500
LANGCHAIN, LLAMAINDEX = HOSTS


class ByEnd:
    """Knows a whole document by its end, which is never among the best sections."""

    def _step(self, prompt: str) -> str:
        return "long_context" if END in prompt else "rag"


class Scripted(ByEnd, langchain_parts.ScriptedModel):
    """A model of LangChain."""


class ScriptedNodes(ByEnd, llamaindex_parts.ScriptedLLM):
    """The same for LlamaIndex."""


@dataclass(frozen=True)
class Replies:
    """What a model writes: as the plain draft, as the one with numbers, to few sections and to more, with numbers."""

    plain: str = "unanswerable"
    graded: str = "80 20\nMr Lin"
    sections: str = "30\nMr Tan"
    more: str = "60\nunanswerable"

    def __call__(self, prompt: str) -> tuple[str]:
        if judge_parts.is_judging(prompt):
            return (judge_parts.grade(prompt),)
        if LEFT_OUT in prompt:
            reply = self.more if len(prompt.split()) > MANY_WORDS else self.sections
            return (reply if ASKS in prompt else reply.partition("\n")[2],)
        return (self.graded if ASKS in prompt else self.plain,)


MODELS = {LANGCHAIN: Scripted, LLAMAINDEX: ScriptedNodes}
TWO_RUNGS: dict[str, Any] = {"answerability": "graded", "sections": (1_000, 3_000), "draft_passages": 5}


def make(where: str, replies: Any, *, passages: int = 30, **fields: Any) -> Pipeline:
    """A pipeline over one long document, whose model writes these replies."""
    llm = MODELS[where](draft=replies, final=FINAL, usage=True)
    return both_parts.pipeline(where, llm=llm, passages=TEXTS[:passages], documents=[LONG], **fields)


def tried(pipeline: Pipeline) -> Evaluation:
    """An evaluation of one question by which bounds can be replayed."""
    looks = look(_pipeline_of(pipeline.asked, Kept(), None), ("questions", "1"), QUESTION, TRIED)
    questions = evaluate(make(pipeline.where, Replies()).asked, ONE).questions
    return Evaluation(questions, looks)


def live(where: str, replies: Replies, **options: Any) -> Outcome:
    return asyncio.run(make(where, replies, **options).ask())


def assert_same(found: Result, told: Outcome) -> None:
    """A strategy ends where the chain or engine ends, for the same tokens, by the same steps."""
    tokens = found.input_tokens + found.output_tokens
    assert (found.route, found.answerable, tokens) == (told.route, told.answerable, told.usage["total_tokens"])
    assert Counter(one.step for one in found.paid if one.input_tokens) == Counter(
        "long_context" if END in call.prompt else "sections" if LEFT_OUT in call.prompt else "rag"
        for call in told.calls
    )
    if found.answerable:
        assert found.answer == told.answer


CASES = {
    "all go on": Replies(),
    "the sections answer": Replies(sections="60\nMs Ito"),
    "more sections answer": Replies(more="50\nMs Ito"),
    "more sections stop": Replies(more="30\nunanswerable"),
    "a draft that is sure": Replies(plain="Ms Ito", graded="99 95\nMs Ito"),
    "a draft that some bounds would doubt": Replies(plain="Ms Ito", graded="99 75\nMs Ito", sections="80\nMs Ito"),
    "a decline that ends there": Replies(graded="5 0\nunanswerable"),
    "a draft without numbers": Replies(plain="Ms Ito", graded="Ms Ito"),
}
SETTINGS: dict[str, dict[str, Any]] = {
    "two rungs": TWO_RUNGS,
    "never documents": {**TWO_RUNGS, "max_documents": 0},
    "bounds of its own": {**TWO_RUNGS, "doubt_below": (80, 65, 30), "stop_below": (4, 0)},
    "a policy": {**TWO_RUNGS, "escalation": Never()},
    "no draft": {**TWO_RUNGS, "start": "sections"},
    "plain": {"sections": 1_000, "draft_passages": 5},
    "paper": dict(PAPER),
}


@each_host
@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_looks_yours_is_what_runs(where: str, case: Replies, setting: dict[str, Any]) -> None:
    assert_same(by_strategy(evaluate(make(where, case, **setting).asked, ONE))["yours"], live(where, case, **setting))


LIVE: dict[str, dict[str, Any]] = {
    "rag": {"max_documents": 0, "draft_passages": 5},
    "rag_20": {"max_documents": 0, "draft_passages": 20},
    "paper": {**PAPER, "draft_passages": 5},
    "long_context": {**PAPER, "start": "long_context", "draft_passages": 5},
}
"""The options of a chain or an engine that follows a strategy."""


@each_host
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_looks_others_are_what_runs(where: str, case: Replies) -> None:
    pipeline = make(where, case, **TWO_RUNGS)
    done = evaluate(pipeline.asked, ONE)
    found = by_strategy(done)
    assert list(found) == ["yours", *(name for name in LIVE if name != "rag_20" or where == LANGCHAIN)]
    for name in found.keys() - {"yours"}:
        assert_same(found[name], live(where, case, **LIVE[name]))
    prompts = [call.prompt for call in pipeline.model.calls]
    assert len(prompts) == len(set(prompts)), "a reply that several share is paid once"
    assert found["long_context"].route == "long_context"


@each_host
@pytest.mark.parametrize("options", [{}, dict(PAPER)], ids=["wide already", "widened"])
def test_looks_20_passages(where: str, options: dict[str, Any]) -> None:
    """A retriever of a store is told to find 20, behind the same filter, and the user's is not changed."""
    texts = [both_parts.Text(f"Passage {n} of the minutes.", f"document {n}", 0) for n in range(30)]
    store, llm = both_parts.store_of(where, texts), MODELS[where](draft=Replies(), final=FINAL, usage=True)
    asked: Any = (
        SelfRouteChain.from_vectorstore(store, llm, k=2, **options)
        if where == LANGCHAIN
        else SelfRouteQueryEngine.from_index(store, similarity_top_k=2, llm=llm, **options)
    )
    found = by_strategy(evaluate(asked, ONE))
    assert {name: len(found[name].passages) for name in ("yours", "rag", "rag_20", "paper")} == {
        "yours": 2,
        "rag": 2,
        "rag_20": 20,
        "paper": 2,
    }
    own = asked.retriever.search_kwargs["k"] if where == LANGCHAIN else asked.retriever.similarity_top_k
    assert own == (2 if options else 20)


BOUNDS: dict[str, dict[str, Any]] = {
    "default bounds": {},
    "no bounds": {"doubt_below": 0, "stop_below": 0},
    "one bound": {"doubt_below": 31, "stop_below": 20},
    "bounds of each": {"doubt_below": (25, 65, 40), "stop_below": (4, 61)},
    "the highest bounds": {"doubt_below": 90, "stop_below": 81},
}


@each_host
@pytest.mark.parametrize("documents", [True, False], ids=["documents", "never documents"])
@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_looks_replay_is_what_runs(where: str, case: Replies, bounds: dict[str, Any], documents: bool) -> None:
    """Routing has one implementation: what bounds show and pay live is what is replayed."""
    (found,) = tried(make(where, case, **TWO_RUNGS)).replay(**bounds, documents=documents)
    least = {} if documents else {"max_documents": 0}
    assert_same(found, live(where, case, **TWO_RUNGS, **bounds, **least))


@each_host
def test_looks_replay_lacks_what_was_too_large(where: str) -> None:
    """Sections that are more than half of the documents are read only if no documents are to follow."""
    done = tried(make(where, Replies(), answerability="graded", sections=(1_000, 8_000), draft_passages=5))
    assert [one.step for one in done.looks] == ["rag", "sections", "long_context"]
    assert [one.route for one in done.replay()] == ["long_context"]
    assert done.replay(documents=True)
    with_two = Evaluation(done.questions, [*done.looks, *tried(make(where, Replies(), **TWO_RUNGS)).looks])
    assert with_two.replay(documents=False)


@each_host
def test_looks_content(where: str) -> None:
    replies = Replies(graded="99 60\nMr Lin", sections="60\nMs Okafor", more="80\nMs Okafor")
    looks = tried(make(where, replies, **TWO_RUNGS)).looks
    assert [(each.step, each.rung, each.answer, each.declined, each.prospect, each.confidence) for each in looks] == [
        ("rag", 0, "Mr Lin", False, 99, 60),
        ("sections", 0, "Ms Okafor", False, None, 60),
        ("sections", 1, "Ms Okafor", False, None, 80),
        ("long_context", 0, FOUND, False, None, None),
    ]
    assert [passage.text for passage in looks[0].passages] == TEXTS[:5]
    done = evaluate(make(where, replies, **TWO_RUNGS).asked, ONE, judge=True)
    judged = {(each.strategy, each.step): (each.judged, each.judged_by) for each in done.looks}
    assert judged["yours", "rag"] == (0.0, "model")
    assert judged["yours", "sections"] == (1.0, "model")
    assert judged["rag", "rag"] == (0.0, "rule")


@each_host
def test_looks_nothing_retrieved(where: str) -> None:
    done = evaluate(make(where, Replies(sections="60\nMs Ito"), passages=0, **TWO_RUNGS).asked, ONE)
    found = by_strategy(done)
    assert (found["rag"].answerable, found["rag"].input_tokens) == (False, 0)
    assert found["yours"].answer == "Ms Ito", "sections are found by words alone"
    assert [result.route for result in tried(make(where, Replies(), passages=0, **TWO_RUNGS)).replay()] == [
        "long_context"
    ]


@each_host
def test_looks_bounds_are_tried_on_many(where: str) -> None:
    many = [{**ONE[0], "id": str(number)} for number in range(50)]
    done = evaluate(make(where, CASES["a draft that some bounds would doubt"], **TWO_RUNGS).asked, many)
    by = {
        strategy: [one for one in done.looks if one.strategy == strategy and one.id == "7"]
        for strategy in (TRIED, "yours")
    }
    assert [one.step for one in by[TRIED]] == ["rag", "sections", "sections", "long_context"]
    assert done.settings["options"]["tried"] == {"sections": [1_000, 3_000]}
    few = evaluate(make(where, Replies(), **TWO_RUNGS).asked, many[:49])
    with pytest.raises(ConfigurationError, match="bounds are tried on 50 questions or more"):
        few.replay()


@each_host
def test_looks_own_prompt(where: str) -> None:
    """A prompt of one's own that asks for no numbers is asked as it is, and no bounds are tried."""
    own = both_parts.template(where, "Mine: {context} {question} or {refusal}")
    many = [{**ONE[0], "id": str(number)} for number in range(50)]
    pipeline = make(where, Replies(), answerability=None, rag_prompt=own)
    done = evaluate(pipeline.asked, many)
    assert not any(one.strategy == TRIED for one in done.looks)
    assert all(call.prompt.startswith("Mine") for call in pipeline.model.calls if call.step == "rag")
    assert done.settings["options"]["yours"]["answerability"] == "text"
