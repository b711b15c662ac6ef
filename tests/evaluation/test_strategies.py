"""The strategies that steer what goes on: the real chain and engine, what they pay, and the looks that they leave."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
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
from scenarios import FINAL, FOUND, QUESTION
from selfroute.errors import ConfigurationError
from selfroute.evaluation.asking.found import Found, Retriever
from selfroute.evaluation.asking.from_documents import DocumentsPipeline
from selfroute.evaluation.asking.replies import FILE
from selfroute.evaluation.asking.replies import Replies as KeptReplies
from selfroute.evaluation.asking.runner import Task
from selfroute.evaluation.calibrating.from_results import material_of
from selfroute.evaluation.calibrating.rows import Rule
from selfroute.evaluation.evaluating import evaluate
from selfroute.evaluation.questions import Question
from selfroute.evaluation.records import ALL_STRATEGIES, Look
from selfroute.evaluation.results import Evaluation
from selfroute.usage.tokens import count_tokens
from structured_parts import Calling, Reporting

ONE = [{"question": QUESTION, "answers": ["Ms Okafor"]}]
TEXTS = [f"Passage {number} of the minutes." for number in range(20)]
END = "Nobody wrote down the rest."
LONG = f"Ms Okafor chaired it. {' '.join(TEXTS)} {'Tea was served to all who had come. ' * 1_200}{END}"
GRADED_ASKS, ASKS = "On the first line write two numbers", "On the first line write"
LEFT_OUT = "[...]"
K = 5


class ByEnd:
    """Knows a whole document by its end, which is never among the best sections."""

    def _step(self, prompt: str) -> str:
        return "long_context" if END in prompt else "rag"


class Scripted(ByEnd, langchain_parts.ScriptedModel):
    """A model that is the same whatever its script says."""

    draft: Any = None
    final: Any = None
    calls: Any = None

    def model_post_init(self, _: Any) -> None:
        self.calls = []


class ScriptedNodes(ByEnd, llamaindex_parts.ScriptedLLM):
    """The same for LlamaIndex."""


class Reports(ByEnd, Reporting):
    """Fills in forms."""


class Calls(ByEnd, Calling):
    """The same for LlamaIndex."""


@dataclass(frozen=True)
class Replies:
    """What a model writes: as the plain draft, as the graded one, and to sections after each."""

    plain: str = "unanswerable"
    graded: str = "80 20\nMr Lin"
    sections: str = "unanswerable"
    graded_sections: str = "30\nMr Tan"

    def __call__(self, prompt: str) -> tuple[str]:
        if judge_parts.is_judging(prompt):
            return (judge_parts.grade(prompt),)
        cut = LEFT_OUT in prompt
        if ASKS in prompt:
            return (self.graded_sections if cut else self.graded,)
        return (self.sections if cut else self.plain,)


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


def _engine(replies: Replies, *, model: Any = ScriptedNodes, passages: int = 20, **fields: Any) -> Any:
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
        Reports,
    ),
    "llamaindex": Framework(
        _engine,
        llamaindex_parts.model_of,
        lambda text: PromptTemplate(text + "{context_str} {query_str}"),
        Calls,
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
        graded, cut = ASKS in call.prompt, LEFT_OUT in call.prompt
        named = ("graded_" if graded and cut else "graded" if graded else "") + ("sections" if cut else "")
        found.append(call.step if call.step == "long_context" else named or "rag")
    return sorted(found)


EVERY = ["graded", "graded_sections", "long_context", "rag", "sections"]
CASES: dict[str, tuple[Replies, dict[str, tuple[str, str]], list[str]]] = {
    "all go on": (
        Replies(),
        {
            "rag": ("rag", "unanswerable"),
            "self_route": ("long_context", FOUND),
            "sections": ("long_context", FOUND),
            "graded": ("long_context", FOUND),
            "graded_sections": ("long_context", FOUND),
        },
        EVERY,
    ),
    "the sections answer": (
        Replies(sections="Ms Ito", graded_sections="60\nMs Ito"),
        {
            "self_route": ("long_context", FOUND),
            "sections": ("sections", "Ms Ito"),
            "graded_sections": ("sections", "Ms Ito"),
        },
        EVERY,
    ),
    "a draft that is sure": (
        Replies(plain="Ms Ito", graded="99 95\nMs Ito"),
        dict.fromkeys(("rag", "self_route", "sections", "graded", "graded_sections"), ("rag", "Ms Ito")),
        ["graded", "long_context", "rag"],
    ),
    "a draft that other bounds would doubt": (
        Replies(plain="Ms Ito", graded="99 60\nMs Ito"),
        {"graded": ("rag", "Ms Ito"), "graded_sections": ("rag", "Ms Ito")},
        ["graded", "graded_sections", "long_context", "rag"],
    ),
    "a decline that ends there": (
        Replies(graded="5 0\nunanswerable"),
        {
            "self_route": ("long_context", FOUND),
            "graded": ("rag", "unanswerable"),
            "graded_sections": ("rag", "unanswerable"),
        },
        EVERY,
    ),
    "a draft without numbers": (
        Replies(plain="Ms Ito", graded="Ms Ito"),
        {"graded": ("rag", "Ms Ito"), "graded_sections": ("rag", "Ms Ito")},
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
    done = _all(framework.make(Replies(graded="99 60\nMr Lin", graded_sections="70\nMs Okafor")), judge=True)
    looks = {each.step: each for each in done.looks}
    assert {step: (each.answer, each.declined, each.prospect, each.confidence) for step, each in looks.items()} == {
        "rag": ("unanswerable", True, None, None),
        "sections": ("unanswerable", True, None, None),
        "graded": ("Mr Lin", False, 99, 60),
        "graded_sections": ("Ms Okafor", False, None, 70),
        "long_context": (FOUND, False, None, None),
    }
    assert {step: (each.judged, each.judged_by) for step, each in looks.items()} == {
        "rag": (0.0, "rule"),
        "sections": (0.0, "rule"),
        "graded": (0.0, "model"),
        "graded_sections": (1.0, "model"),
        "long_context": (1.0, "model"),
    }
    assert looks["graded_sections"].score == 1.0
    assert "Ms Okafor" not in {each.answer for each in done.results if each.strategy == "graded_sections"}


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
        "sections": looks["rag"] + looks["sections"] + looks["long_context"],
        "graded": looks["graded"] + looks["long_context"],
        "graded_sections": looks["graded"] + looks["graded_sections"] + looks["long_context"],
    }
    assert all(each.input_tokens + each.output_tokens == took[each.strategy] for each in done.results)


@both
@pytest.mark.parametrize("bounds", [(0, 0), (31, 20), (90, 81)], ids=str)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_rule_leads_a_question_over_its_looks_as_the_flow_leads_it(
    framework: Framework, case: Any, bounds: tuple[int, int]
) -> None:
    replies, *_ = case
    (row,) = material_of(_all(framework.make(replies))).rows
    own = {"answerability": "graded", "doubt_below": bounds[0], "stop_below": bounds[1]}
    flow = _all(framework.make(replies, **own), strategies=["sections", "graded", "graded_sections"])
    assert {each.strategy: each.input_tokens for each in flow.results} == {
        "sections": Rule("sections").follow(row).tokens,
        "graded": Rule("graded", *bounds).follow(row).tokens,
        "graded_sections": Rule("graded_sections", *bounds).follow(row).tokens,
    }


@both
def test_nothing_retrieved_is_a_look_that_declined_and_cost_nothing(framework: Framework) -> None:
    done = _all(framework.make(Replies(sections="Ms Ito"), passages=0))
    looks = {each.step: (each.declined, each.input_tokens) for each in done.looks}
    assert (looks["rag"], looks["graded"]) == ((True, 0), (True, 0))
    assert {each.step: each.answer for each in done.looks}["sections"] == "Ms Ito", "sections are found by words alone"
    assert {each.strategy: each.draft for each in done.results} == dict.fromkeys(ALL_STRATEGIES)


@both
def test_where_sections_would_save_little_the_documents_follow_and_there_is_no_look(framework: Framework) -> None:
    done = _all(framework.make(Replies(sections="asked", graded_sections="asked"), sections=40_000))
    assert _routes(done)["sections"] == _routes(done)["graded_sections"] == ("long_context", FOUND)
    assert {each.step for each in done.looks} == {"rag", "graded", "long_context"}


@both
def test_sections_that_are_read_twice_are_one_look_with_the_last_answer(framework: Framework) -> None:
    given = iter(["unanswerable", "Ms Ito"])
    replies = Replies(plain="unanswerable")

    def write(prompt: str) -> tuple[str]:
        return (next(given),) if LEFT_OUT in prompt else replies(prompt)

    pipeline = framework.make(write, sections=(1_000, 3_000))
    (result,) = (done := _all(pipeline, strategies=["sections"])).results
    assert (result.route, result.answer, result.draft) == ("sections", "Ms Ito", "unanswerable")
    draft, *asked = [len(call.prompt.split()) for call in framework.model(pipeline).calls]
    assert {look.step: look.input_tokens for look in done.looks} == {"rag": draft, "sections": sum(asked)}
    assert len(asked) == 2
    assert done.settings["sections"] == (1_000, 3_000)


@both
def test_a_second_run_pays_nothing_and_finds_the_same(framework: Framework, tmp_path: Path) -> None:
    first = _all(framework.make(Replies()), folder=tmp_path)
    again = framework.make(Replies(plain="asked", graded="asked", sections="asked", graded_sections="asked"))
    second = _all(again, folder=tmp_path)
    assert framework.model(again).calls == []
    assert (first.results, first.looks) == (second.results, second.looks)
    assert len((tmp_path / FILE).read_text().splitlines()) == 5


OWN = {
    "text": {},
    "graded": {"answerability": "graded", "doubt_below": 10, "stop_below": 90},
    "sections": {"sections": 1_000},
    "sections only": {"sections": 1_000, "max_documents": 0},
    "a policy": {"escalation": lambda _: False},
    "documents first": {"start": "long_context"},
}


@both
@pytest.mark.parametrize("own", OWN.values(), ids=OWN)
def test_plain_strategies_are_the_published_ones_whatever_the_pipeline_does(framework: Framework, own: Any) -> None:
    routes = _routes(_all(framework.make(Replies(), **own), strategies=["rag", "self_route"]))
    assert routes == {"rag": ("rag", "unanswerable"), "self_route": ("long_context", FOUND)}


@both
def test_bounds_and_sections_are_the_pipelines_own(framework: Framework) -> None:
    own = {"answerability": "graded", "doubt_below": (30, 70), "stop_below": 90, "sections": 1_000}
    pipeline = framework.make(Replies(graded="80 20\nMr Lin", graded_sections="69\nMr Tan"), **own)
    done = _all(pipeline)
    assert _routes(done)["graded_sections"] == ("long_context", FOUND), "69 is in doubt after sections"
    cut = [call.prompt for call in framework.model(pipeline).calls if LEFT_OUT in call.prompt]
    assert cut
    assert all(600 < count_tokens(prompt) < 1_200 for prompt in cut)
    assert done.settings["model"].endswith("scripted")
    assert {name: done.settings[name] for name in ("doubt_below", "stop_below", "sections", "sections_below")} == {
        "doubt_below": 30,
        "stop_below": 90,
        "sections": 1_000,
        "sections_below": "70",
    }
    sure = framework.make(Replies(graded="80 30\nMr Lin"), **own)
    assert _routes(_all(sure))["graded_sections"] == ("rag", "Mr Lin"), "30 is not in doubt in a draft"


@both
def test_a_prompt_of_ones_own_has_to_ask_for_numbers(framework: Framework) -> None:
    pipeline = framework.make(Replies(), rag_prompt=framework.prompt("Answer. "))
    with pytest.raises(ConfigurationError, match="two numbers"):
        _all(pipeline)
    assert framework.model(pipeline).calls == []
    assert _routes(_all(pipeline, strategies=["sections"]))["sections"] == ("long_context", FOUND)


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


def test_a_retriever_without_a_number_is_refused_before_anything_is_paid() -> None:
    engine = llamaindex_parts.an_engine(draft=None, final=None, retriever=Numberless())
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
    assert set(_kinds(framework.model(pipeline).calls)) == set(EVERY)
    assert _kinds(framework.model(pipeline).calls).count("long_context") == 1
    assert {(each.step, each.k) for each in done.looks} == {
        ("long_context", None),
        *((step, k) for step in ("rag", "sections", "graded", "graded_sections") for k in (1, 3)),
    }
    main = next(table for table in done.tables() if table.name == "main")
    assert {row[1] for row in main.rows if row[0] == "graded"} == {1, 3}


@both
def test_a_sweep_varies_what_the_draft_reads_and_lets_all_passages_point_to_documents(framework: Framework) -> None:
    pipeline = framework.make(Replies(), sections=1_000, draft_passages=K)
    done = evaluate(pipeline, ONE, sweep={"k": [3, 1]}, strategies=["rag", "sections"])
    assert {each.k: [one.text for one in each.passages] for each in done.results if each.strategy == "rag"} == {
        3: TEXTS[:3],
        1: TEXTS[:1],
    }
    drafts = [call.prompt for call in framework.model(pipeline).calls if LEFT_OUT not in call.prompt]
    assert {sum(text in prompt for text in TEXTS) for prompt in drafts if END not in prompt} == {1, 3}


@both
def test_only_what_the_draft_reads_is_kept_as_its_passages(framework: Framework) -> None:
    done = _all(framework.make(Replies(), draft_passages=2), strategies=["rag"])
    assert [one.text for one in done.results[0].passages] == TEXTS[:2]


@pytest.mark.parametrize("sweep", [{}, {"k": []}, {"k": [0]}, {"k": ["5"]}, {"width": [1]}, {"k": [True]}], ids=str)
def test_a_sweep_that_cannot_be_meant_is_refused(sweep: Any) -> None:
    with pytest.raises(ConfigurationError, match="sweep takes"):
        evaluate(_chain(Replies()), ONE, sweep=sweep)


def _report(**fields: Any) -> str:
    return json.dumps({"answerable": True, **fields})


def test_the_replies_of_an_earlier_attempt_are_in_no_look() -> None:
    chain = _chain(Replies(), sections=(1_000, 3_000))
    once = _all(chain, strategies=["sections"])
    chain.llm.failures = {"long_context": [None, ConnectionError("the line went dead")]}
    twice = _all(chain.with_retry(stop_after_attempt=2, wait_exponential_jitter=False), strategies=["sections"])
    assert (twice.looks, twice.results) == (once.looks, once.results)


class Chunks(Retriever):
    """Finds one chunk, which says nothing of what is asked for."""

    def search(self, chunks: Sequence[str], question: str, *, k: int, document_id: str) -> list[Found]:
        return [Found(3, chunks[3], 0.5)]


def test_a_question_with_its_own_document_reads_sections_with_the_passage_of_its_draft() -> None:
    words = " ".join(f"word{number}" for number in range(6_000))
    model = Scripted(draft=Replies(), final=FINAL, usage=True)
    question = Question("d", "1", QUESTION, ("Ms Okafor",), document=f"{words} Ms Okafor chaired it. {words} {END}")
    with KeptReplies(None) as replies:
        pipeline = DocumentsPipeline(model, replies=replies, retriever=Chunks())
        outcome = pipeline.ask(Task(question, "sections", 1))
    draft, sections, whole = (call.prompt for call in model.calls)
    (passage,) = outcome.passages
    assert passage.text.startswith("[4] word900 ")
    assert passage.text in draft
    assert "[4]" not in sections + whole
    assert passage.text.removeprefix("[4] ") in sections
    assert "Ms Okafor chaired it." in sections


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


@both
def test_structured_sections_report_their_confidence_alone(framework: Framework, tmp_path: Path) -> None:
    script = [_report(answer="Mr Tan", prospect=80, confidence=20), _report(answer="Ms Ito", confidence=60)]

    def look(replies: list[str]) -> Evaluation:
        left = iter(replies)
        pipeline = framework.make(lambda _: (next(left),), model=framework.reporting, answerability="structured")
        return _all(pipeline, strategies=["graded_sections"], folder=tmp_path, name="structured")

    done = look(script)
    assert _routes(done) == {"graded_sections": ("sections", "Ms Ito")}
    assert {each.step: (each.prospect, each.confidence) for each in done.looks} == {
        "graded": (80, 20),
        "graded_sections": (None, 60),
    }
    assert look([]).looks == done.looks


def test_both_frameworks_come_to_the_same() -> None:
    given = [_all(framework.make(Replies())) for framework in FRAMEWORKS.values()]

    def plain(done: Evaluation) -> tuple[Any, ...]:
        results = [(each.strategy, each.answer, each.route, each.decision) for each in done.results]
        return results, [replace(each, input_tokens=0, output_tokens=0, cost=None) for each in done.looks]

    assert plain(given[0]) == plain(given[1])
    assert all(isinstance(each, Look) for each in given[0].looks)
