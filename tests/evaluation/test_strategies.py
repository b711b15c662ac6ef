"""The strategies that steer what goes on: the real chain and engine, what they pay, and the looks that they leave."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate
from llama_index.core import Document as Read
from llama_index.core.prompts import PromptTemplate
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

import judge_parts
import langchain_parts
import llamaindex_parts
from llamaindex_parts import ScriptedLLM
from scenarios import FINAL, FOUND, QUESTION, WHOLE
from selfroute.errors import ConfigurationError
from selfroute.evaluation.asking.replies import FILE
from selfroute.evaluation.evaluating import evaluate
from selfroute.evaluation.records import ALL_STRATEGIES, Look
from selfroute.evaluation.results import Evaluation
from structured_parts import Calling, Reporting

ONE = [{"question": QUESTION, "answers": ["Ms Okafor"]}]
TEXTS = [f"Passage {number} of the minutes." for number in range(20)]
LONG = f"{WHOLE} of May. " + "Tea was served to all who had come. " * 200 + "Ms Okafor chaired it."
GRADED_ASKS = "On the first line write two numbers"
K, WIDTH = 5, 16


class Scripted(langchain_parts.ScriptedModel):
    """A model that is the same whatever its script says."""

    draft: Any = None
    final: Any = None
    calls: Any = None

    def model_post_init(self, _: Any) -> None:
        self.calls = []


@dataclass(frozen=True)
class Replies:
    """What a model writes: to the plain draft, the graded one, and both wider looks."""

    plain: str = "unanswerable"
    graded: str = "80 20\nMr Lin"
    wider: str = "unanswerable"
    graded_wider: str = "80 30\nMr Tan"

    def __call__(self, prompt: str) -> tuple[str]:
        if judge_parts.is_judging(prompt):
            return (judge_parts.grade(prompt),)
        wide = TEXTS[K] in prompt
        if GRADED_ASKS in prompt:
            return (self.graded_wider if wide else self.graded,)
        return (self.wider if wide else self.plain,)


def _chain(replies: Replies, *, model: Any = Scripted, passages: int = 20, **fields: Any) -> Any:
    documents = [Document(text, metadata={"n": number}) for number, text in enumerate(TEXTS[:passages])]
    retriever = langchain_parts.ListRetriever(passages=documents)
    llm = model(draft=replies, final=FINAL, usage=True)
    return langchain_parts.a_chain(retriever=retriever, llm=llm, documents=[Document(LONG)], **fields)


class TopRetriever(llamaindex_parts.ListRetriever):
    """Takes a number of nodes."""

    @property
    def similarity_top_k(self) -> int:
        return self.k

    @similarity_top_k.setter
    def similarity_top_k(self, k: int) -> None:
        self.k = k


def _engine(replies: Replies, *, model: Any = ScriptedLLM, passages: int = 20, **fields: Any) -> Any:
    nodes = [NodeWithScore(node=TextNode(text=text, id_=text), score=0.5) for text in TEXTS[:passages]]
    llm = model(draft=replies, final=FINAL, usage=True)
    return llamaindex_parts.an_engine(retriever=TopRetriever(nodes), llm=llm, documents=[Read(text=LONG)], **fields)


@dataclass(frozen=True)
class Framework:
    """A framework: what makes a pipeline of it, and finds its model again."""

    make: Callable[..., Any]
    model: Callable[[Any], Any]
    prompt: Callable[[str], Any]
    reporting: type[Any]


FRAMEWORKS = {
    "langchain": Framework(
        _chain,
        lambda chain: chain.llm,
        lambda text: ChatPromptTemplate([("human", text + "{context} {input}")]),
        Reporting,
    ),
    "llamaindex": Framework(
        _engine,
        llamaindex_parts.model_of,
        lambda text: PromptTemplate(text + "{context_str} {query_str}"),
        Calling,
    ),
}
both = pytest.mark.parametrize("framework", FRAMEWORKS.values(), ids=FRAMEWORKS)


def _all(pipeline: Any, **options: Any) -> Evaluation:
    done = evaluate(pipeline, ONE, **{"strategies": ALL_STRATEGIES, **options})
    assert not done.failures, done.failures
    return done


def _routes(done: Evaluation) -> dict[str, Any]:
    return {each.strategy: (each.route, each.answer) for each in done.results}


def _kinds(calls: Any) -> list[str]:
    """Name each call of a model by its prompt."""
    found = []
    for call in calls:
        graded, wide = GRADED_ASKS in call.prompt, TEXTS[K] in call.prompt
        named = ("graded_" if graded and wide else "graded" if graded else "") + ("wider" if wide else "")
        found.append(call.step if call.step == "long_context" else named or "rag")
    return sorted(found)


EVERY = ["graded", "graded_wider", "long_context", "rag", "wider"]
CASES: dict[str, tuple[Replies, dict[str, tuple[str, str]], list[str]]] = {
    "all go on": (
        Replies(),
        {
            "rag": ("rag", "unanswerable"),
            "self_route": ("long_context", FOUND),
            "wider": ("long_context", FOUND),
            "graded": ("long_context", FOUND),
            "graded_wider": ("long_context", FOUND),
        },
        EVERY,
    ),
    "the wider looks answer": (
        Replies(wider="Ms Ito", graded_wider="90 60\nMs Ito"),
        {"self_route": ("long_context", FOUND), "wider": ("wider", "Ms Ito"), "graded_wider": ("wider", "Ms Ito")},
        EVERY,
    ),
    "a draft that is sure": (
        Replies(plain="Ms Ito", graded="99 95\nMs Ito"),
        dict.fromkeys(("rag", "self_route", "wider", "graded", "graded_wider"), ("rag", "Ms Ito")),
        ["graded", "long_context", "rag"],
    ),
    "a draft that other bounds would doubt": (
        Replies(plain="Ms Ito", graded="99 60\nMs Ito"),
        {"graded": ("rag", "Ms Ito"), "graded_wider": ("rag", "Ms Ito")},
        ["graded", "graded_wider", "long_context", "rag"],
    ),
    "a decline that ends there": (
        Replies(graded="5 0\nunanswerable"),
        {
            "self_route": ("long_context", FOUND),
            "graded": ("rag", "unanswerable"),
            "graded_wider": ("rag", "unanswerable"),
        },
        EVERY,
    ),
    "a draft without numbers": (
        Replies(plain="Ms Ito", graded="Ms Ito"),
        {"graded": ("rag", "Ms Ito"), "graded_wider": ("rag", "Ms Ito")},
        ["graded", "long_context", "rag"],
    ),
}


@both
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_each_prompt_is_paid_once_and_each_strategy_takes_its_route(framework: Framework, case: Any) -> None:
    replies, routes, paid = case
    pipeline = framework.make(replies)
    found = _routes(_all(pipeline))
    assert {name: found[name] for name in routes} == routes
    assert found["long_context"] == ("long_context", FOUND)
    assert _kinds(framework.model(pipeline).calls) == paid


@both
def test_looks_hold_what_no_strategy_showed(framework: Framework) -> None:
    done = _all(framework.make(Replies(graded="99 60\nMr Lin", graded_wider="99 70\nMs Okafor")), judge=True)
    looks = {each.step: each for each in done.looks}
    assert {step: (each.answer, each.declined, each.prospect, each.confidence) for step, each in looks.items()} == {
        "rag": ("unanswerable", True, None, None),
        "wider": ("unanswerable", True, None, None),
        "graded": ("Mr Lin", False, 99, 60),
        "graded_wider": ("Ms Okafor", False, 99, 70),
        "long_context": (FOUND, False, None, None),
    }
    assert {step: (each.judged, each.judged_by) for step, each in looks.items()} == {
        "rag": (0.0, "rule"),
        "wider": (0.0, "rule"),
        "graded": (0.0, "model"),
        "graded_wider": (1.0, "model"),
        "long_context": (1.0, "model"),
    }
    assert looks["graded_wider"].score == 1.0
    assert "Ms Okafor" not in {each.answer for each in done.results if each.strategy == "graded_wider"}


@both
def test_a_doubted_draft_is_read_to_its_end(framework: Framework) -> None:
    done = _all(framework.make(Replies(graded="80 3\nMr Lin, who had come by train")), strategies=["graded"])
    (look,) = done.looks
    assert (look.step, look.answer, look.confidence) == ("graded", "Mr Lin, who had come by train", 3)
    assert look.output_tokens == 9
    (result,) = done.results
    assert result.decision["signal"] == "doubt"
    assert result.draft == "80 3\nMr Lin, who had come by train"


@both
def test_the_steps_of_a_strategy_are_the_looks_that_it_took(framework: Framework) -> None:
    done = _all(framework.make(Replies()))
    looks = {each.step: each.input_tokens + each.output_tokens for each in done.looks}
    took = {each.strategy: each.usage["total_tokens"] for each in done.results}
    assert took == {
        "rag": looks["rag"],
        "long_context": looks["long_context"],
        "self_route": looks["rag"] + looks["long_context"],
        "wider": looks["rag"] + looks["wider"] + looks["long_context"],
        "graded": looks["graded"] + looks["long_context"],
        "graded_wider": looks["graded"] + looks["graded_wider"] + looks["long_context"],
    }
    assert all(each.input_tokens + each.output_tokens == took[each.strategy] for each in done.results)


@both
def test_nothing_retrieved_is_a_look_that_declined_and_cost_nothing(framework: Framework) -> None:
    done = _all(framework.make(Replies(), passages=0))
    looks = {each.step: (each.declined, each.input_tokens) for each in done.looks}
    assert (looks["rag"], looks["graded"]) == ((True, 0), (True, 0))
    assert set(looks) == {"rag", "graded", "long_context"}


@both
def test_a_second_run_pays_nothing_and_finds_the_same(framework: Framework, tmp_path: Path) -> None:
    first = _all(framework.make(Replies()), folder=tmp_path)
    again = framework.make(Replies(plain="asked", graded="asked", wider="asked", graded_wider="asked"))
    second = _all(again, folder=tmp_path)
    assert framework.model(again).calls == []
    assert (first.results, first.looks) == (second.results, second.looks)
    assert len((tmp_path / FILE).read_text().splitlines()) == 5


OWN = {
    "text": {},
    "graded": {"answerability": "graded", "doubt_below": 10, "stop_below": 90},
    "wider": {"widen": 8},
    "a policy": {"escalation": lambda _: False},
    "documents first": {"start": "long_context"},
}


@both
@pytest.mark.parametrize("own", OWN.values(), ids=OWN)
def test_plain_strategies_are_the_published_ones_whatever_the_pipeline_does(framework: Framework, own: Any) -> None:
    routes = _routes(_all(framework.make(Replies(), **own), strategies=["rag", "self_route"]))
    assert routes == {"rag": ("rag", "unanswerable"), "self_route": ("long_context", FOUND)}


@both
def test_bounds_and_width_are_the_pipelines_own(framework: Framework) -> None:
    own = {"answerability": "graded", "doubt_below": 10, "stop_below": 90, "widen": 8}
    pipeline = framework.make(Replies(graded="80 20\nMr Lin"), **own)
    done = _all(pipeline)
    assert _routes(done)["graded"] == ("rag", "Mr Lin")
    wide = [call.prompt for call in framework.model(pipeline).calls if TEXTS[K] in call.prompt]
    assert wide
    assert all(TEXTS[7] in prompt and TEXTS[8] not in prompt for prompt in wide)
    assert done.settings["model"].endswith("scripted")
    assert {name: done.settings[name] for name in ("doubt_below", "stop_below", "widen")} == {
        "doubt_below": 10,
        "stop_below": 90,
        "widen": 8,
    }


@both
def test_a_prompt_of_ones_own_has_to_ask_for_numbers(framework: Framework) -> None:
    pipeline = framework.make(Replies(), rag_prompt=framework.prompt("Answer. "))
    with pytest.raises(ConfigurationError, match="two numbers"):
        _all(pipeline)
    assert framework.model(pipeline).calls == []
    assert _routes(_all(pipeline, strategies=["wider"]))["wider"] == ("long_context", FOUND)


@both
def test_the_numbers_that_a_prompt_of_ones_own_asks_for_are_passed_over_without_bounds(framework: Framework) -> None:
    prompt = framework.prompt(f"{GRADED_ASKS} from 0 to 100. ")
    pipeline = framework.make(Replies(), rag_prompt=prompt, answerability="graded")
    routes = _routes(_all(pipeline))
    assert (routes["rag"], routes["self_route"]) == (("rag", "Mr Lin"), ("rag", "Mr Lin"))
    assert routes["graded"] == ("long_context", FOUND)


class Numberless(BaseRetriever):
    """Takes no number of nodes."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return []


@pytest.mark.parametrize("strategy", ["wider", "graded_wider"])
def test_a_retriever_without_a_number_is_refused_before_anything_is_paid(strategy: Any) -> None:
    engine = llamaindex_parts.an_engine(draft=None, final=None, retriever=Numberless())
    with pytest.raises(ConfigurationError, match="similarity_top_k"):
        evaluate(engine, ONE, strategies=[strategy])
    with pytest.raises(ConfigurationError, match="similarity_top_k"):
        evaluate(engine, ONE, strategies=["rag"], sweep={"k": [1]})


@both
def test_a_sweep_asks_with_each_number_and_reads_the_documents_once(framework: Framework) -> None:
    pytest.importorskip("scipy")
    pipeline = framework.make(Replies())
    done = evaluate(pipeline, ONE, sweep={"k": [3, 1]}, strategies=ALL_STRATEGIES)
    assert not done.failures
    assert done.settings["k"] == [3, 1]
    assert {(each.strategy, each.k): len(each.passages) for each in done.results if each.strategy == "rag"} == {
        ("rag", 3): 3,
        ("rag", 1): 1,
    }
    assert _kinds(framework.model(pipeline).calls) == sorted([*EVERY, "graded", "rag"])  # wider looks are the same
    assert {(each.step, each.k) for each in done.looks} == {
        ("long_context", None),
        *((step, k) for step in ("rag", "wider", "graded", "graded_wider") for k in (1, 3)),
    }
    main = next(table for table in done.tables() if table.name == "main")
    assert {row[1] for row in main.rows if row[0] == "graded"} == {1, 3}


@pytest.mark.parametrize("sweep", [{}, {"k": []}, {"k": [0]}, {"k": ["5"]}, {"width": [1]}, {"k": [True]}], ids=str)
def test_a_sweep_that_cannot_be_meant_is_refused(sweep: Any) -> None:
    with pytest.raises(ConfigurationError, match="sweep takes"):
        evaluate(_chain(Replies()), ONE, sweep=sweep)


def _report(**fields: Any) -> str:
    return json.dumps({"answerable": True, **fields})


@both
def test_structured_reports_are_kept_with_and_without_numbers(framework: Framework, tmp_path: Path) -> None:
    numbers = {"prospect": 80, "confidence": 20}
    replies = [_report(answer="Mr Lin"), _report(answer="Mr Tan", **numbers)]

    def pipeline(script: list[str]) -> Any:
        left = iter(script)
        fields = {"model": framework.reporting, "answerability": "structured"}
        made = framework.make(lambda _: (next(left),), **fields)
        framework.model(made).final = (_report(answer=FOUND),)
        return made

    first = pipeline(replies)
    name = "structured"
    done = _all(first, strategies=["rag", "graded"], folder=tmp_path, name=name)
    assert _routes(done) == {"rag": ("rag", "Mr Lin"), "graded": ("long_context", FOUND)}
    assert {each.step: (each.answer, each.confidence) for each in done.looks} == {
        "rag": ("Mr Lin", None),
        "graded": ("Mr Tan", 20),
    }
    assert _all(pipeline([]), strategies=["rag", "graded"], folder=tmp_path, name=name).results == done.results


def test_both_frameworks_come_to_the_same() -> None:
    given = [_all(framework.make(Replies())) for framework in FRAMEWORKS.values()]

    def plain(done: Evaluation) -> tuple[Any, ...]:
        results = [(each.strategy, each.answer, each.route, each.decision) for each in done.results]
        return results, [replace(each, input_tokens=0, output_tokens=0, cost=None) for each in done.looks]

    assert plain(given[0]) == plain(given[1])
    assert all(isinstance(each, Look) for each in given[0].looks)
