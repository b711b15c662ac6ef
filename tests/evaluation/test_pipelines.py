"""Chains and query engines that are evaluated: what they ask, pay and keep, over real clients, too."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import ConfigurableField, RunnableLambda, RunnablePassthrough
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI
from llama_index.core import Document
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.llms.google_genai import GoogleGenAI
from llama_index.llms.openai_like import OpenAILike

import both_parts
import langchain_parts
import llamaindex_parts
from both_parts import COMPLETION, HOSTS, Pipeline, each_host, is_langchain, pipeline_for
from evaluation_parts import STRATEGIES, evaluate, kept
from langchain_selfroute import SelfRouteChain, SelfRouteLedger
from llamaindex_parts import ScriptedLLM, an_engine
from llamaindex_selfroute import SelfRouteQueryEngine, StoredDocuments
from llamaindex_stores_parts import declining, only, simple, split
from loopback import LoopbackServer, Reply, Request
from scenarios import DECLINED, FINAL, FOUND, NOTHING_RETRIEVED, PASSAGE_TEXTS, PLAIN, QUESTION, WHOLE, Scenario
from selfroute.errors import ConfigurationError
from selfroute_workbench.evaluation.replies_file import FILE
from selfroute_workbench.evaluation.results import Evaluation
from structured_parts import Calling, Reporting

pytestmark = pytest.mark.usefixtures("frozen")

KEY = "sk-proj-0123456789abcdefghijklmnop"
ONE = [{"question": QUESTION, "answers": ["Ms Okafor"]}]


REPORT = json.dumps({"answerable": True, "answer": "Ms Okafor."})
NO_REPORT = json.dumps({"answerable": False, "answer": ""})


Scripted = langchain_parts.ScriptedModel


def _chat_openai(server: LoopbackServer, **options: Any) -> ChatOpenAI:
    given = {"model": "gpt-4o-mini", "temperature": 0.0, "api_key": KEY, **options}
    return ChatOpenAI(base_url=server.openai_url, max_retries=0, **given)


def _openai_like(server: LoopbackServer, **options: Any) -> OpenAILike:
    given = {"model": "gpt-4o-mini", "temperature": 0.0, "api_key": KEY, "is_chat_model": True, **options}
    return OpenAILike(api_base=server.openai_url, max_retries=0, timeout=10, **given)


def _chat_gemini(server: LoopbackServer, **options: Any) -> ChatGoogleGenerativeAI:
    given = {"model": "gemini-2.0-flash", "temperature": 0.0, "api_key": KEY, **options}
    return ChatGoogleGenerativeAI(base_url=server.gemini_url, max_retries=1, **given)


def _google_genai(server: LoopbackServer, **options: Any) -> GoogleGenAI:
    given = {"model": "gemini-2.0-flash", "temperature": 0.0, "api_key": KEY, "max_tokens": 99, **options}
    address: Any = {"base_url": server.gemini_url}
    return GoogleGenAI(http_options=address, max_retries=0, context_window=1_000_000, **given)


LANGCHAIN, LLAMAINDEX = HOSTS
OPENAI = {LANGCHAIN: _chat_openai, LLAMAINDEX: _openai_like}
REPORTS = {LANGCHAIN: Reporting, LLAMAINDEX: Calling}
everywhere = pytest.mark.parametrize("where", [LANGCHAIN, LLAMAINDEX, COMPLETION[0], "llamaindex stream"])


def over(where: str, scenario: Scenario, **fields: Any) -> Pipeline:
    """The pipeline of a scenario, whose model reports its usage."""
    return pipeline_for(where, scenario, **{"final": FINAL, "usage": True, **fields})


def ask(made: Pipeline) -> dict[str, Any]:
    """What a pipeline answers, and all that it says about it."""
    if is_langchain(made.where):
        return made.asked.invoke(QUESTION)  # type: ignore[no-any-return]
    response = made.asked.query(QUESTION)
    return {"answer": str(response), **response.metadata}  # `str` reads a stream to its end


def _by_strategy(done: Evaluation) -> dict[str, Any]:
    assert not done.failures, done.failures
    return {one.strategy: one for one in done.results}


@everywhere
@pytest.mark.parametrize("scenario", [PLAIN, DECLINED, NOTHING_RETRIEVED], ids=str)
def test_self_route_is_the_pipeline_as_it_is(where: str, scenario: Scenario) -> None:
    one = _by_strategy(evaluate(over(where, scenario), ONE))["self_route"]
    given = ask(over(where, scenario))
    assert (one.answer, one.route, one.answerable) == (given["answer"], given["route"], given["answerable"])
    assert (not one.passages) == (given["retrieved"] == [])
    if not given["usage"]["estimated"]:  # as it is of streams
        assert one.input_tokens + one.output_tokens == given["usage"]["total_tokens"]


@pytest.mark.parametrize("usage", [True, False], ids=["counted", "estimated"])
@pytest.mark.parametrize("scenario", [PLAIN, DECLINED, NOTHING_RETRIEVED], ids=str)
def test_both_frameworks_come_to_the_same(scenario: Scenario, usage: bool) -> None:
    given = [_by_strategy(evaluate(over(where, scenario, usage=usage), ONE)) for where in HOSTS]
    chain, engine = (
        {
            name: [replace(look, passages=[one.text for one in look.passages]) for look in result.paid]
            for name, result in by.items()
        }
        for by in given
    )
    assert chain == engine


@everywhere
def test_an_interrupted_run_asks_for_the_rest(where: str, tmp_path: Path) -> None:
    failing = over(where, DECLINED, failures={"long_context": [TimeoutError("too slow")] * 2})
    broken = evaluate(failing, ONE, folder=tmp_path)
    assert [one.step for one in broken.failures] == ["long_context"]
    assert [one.strategy for one in broken.results] == ["rag"]
    assert "too slow" in broken.failures[0].error
    resumed = over(where, DECLINED, draft=None)
    by = _by_strategy(evaluate(resumed, ONE, folder=tmp_path))
    assert resumed.model.steps == ["long_context"]
    assert by["self_route"].answer == FOUND


DIFFERENT: dict[str, dict[str, Any]] = {
    "another model": {"label": "another"},
    "another refusal": {"refusal": "no idea"},
    "other passages": {"retriever": 1},
}


@each_host
@pytest.mark.parametrize("change", DIFFERENT.values(), ids=DIFFERENT)
def test_what_differs_is_asked_for_itself(where: str, change: dict[str, Any], tmp_path: Path) -> None:
    evaluate(over(where, PLAIN), ONE, folder=tmp_path, strategies=["rag"])
    if "retriever" in change:
        change = {"retriever": both_parts.retriever(where, PASSAGE_TEXTS[:1])}
    again = over(where, PLAIN, **change)
    evaluate(again, ONE, folder=tmp_path, strategies=["rag"])
    assert again.model.steps == ["rag"]


REPORTING = {
    "langchain": (LANGCHAIN, Reporting),
    "llamaindex": (LLAMAINDEX, Calling),
    "llamaindex in words": (LLAMAINDEX, ScriptedLLM),
}


@pytest.mark.parametrize(("where", "kind"), REPORTING.values(), ids=REPORTING)
@pytest.mark.parametrize("usage", [True, False], ids=["counted", "estimated"])
def test_structured_replies_are_kept_too(where: str, kind: type[Any], usage: bool, tmp_path: Path) -> None:
    script = {"draft": (NO_REPORT,), "final": (REPORT,), "usage": usage}

    def pipeline(**options: Any) -> Any:
        return both_parts.pipeline(where, llm=kind(**{**script, **options}), answerability="structured")

    first = pipeline()
    by = _by_strategy(evaluate(first, ONE, folder=tmp_path))
    assert [by[name].answer for name in STRATEGIES] == ["unanswerable", "Ms Okafor.", "Ms Okafor."]
    assert sorted(first.model.steps) == ["long_context", "rag"]
    given = ask(pipeline())
    if usage:
        assert by["self_route"].input_tokens + by["self_route"].output_tokens == given["usage"]["total_tokens"]
    second = pipeline(draft=None, final=None)
    assert _by_strategy(evaluate(second, ONE, folder=tmp_path)) == by
    other = pipeline(label="another")
    evaluate(other, ONE, folder=tmp_path, strategies=["rag"])
    assert other.model.steps == ["rag"]


def _retrying(model: Any) -> Any:
    return model.with_retry(stop_after_attempt=2, wait_exponential_jitter=False)


WRAPPED: dict[str, Callable[[Any], Any]] = {
    "bind": lambda model: model.bind(stop=["\n"]),
    "config": lambda model: model.with_config(tags=["mine"]),
    "retries": _retrying,
    "fallbacks": lambda model: Scripted(
        failures={"rag": [ValueError()] * 9, "long_context": [ValueError()] * 9}, draft=("x",), final=("x",)
    ).with_fallbacks([model]),
    "a sequence": lambda model: model | RunnablePassthrough(),
    "configurable": lambda model: model.configurable_fields(label=ConfigurableField("label")),
}


def test_a_function_is_kept_under_a_name(tmp_path: Path) -> None:
    calls = []

    def chain(reply: str) -> SelfRouteChain:
        return langchain_parts.a_chain(llm=RunnableLambda(lambda prompt: calls.append(prompt) or reply))

    with pytest.raises(ConfigurationError, match="give the pipeline a name"):
        evaluate(chain("Ms Okafor"), ONE, folder=tmp_path)
    assert not calls
    for name, answers in (("one", "Ms Okafor"), ("one", "Mr Lin"), ("another", "Mr Lin")):
        evaluate(chain(answers), ONE, folder=tmp_path, name=name, strategies=["rag"])
    assert len(calls) == 2
    assert _by_strategy(evaluate(chain("Ms Okafor"), ONE, strategies=["rag"]))["rag"].answer == "Ms Okafor"


@each_host
def test_two_models_are_two(where: str) -> None:
    second = both_parts.model(where, draft=None, final=FINAL, label="second")
    pipeline = both_parts.pipeline(where, draft=("unanswerable",), final=None, long_context_llm=second, label="first")
    by = _by_strategy(evaluate(pipeline, ONE))
    assert by["self_route"].answer == FOUND
    assert (pipeline.model.steps, second.steps) == (["rag"], ["long_context"])


def test_postprocessors_stay_and_passages_are_what_came_through() -> None:
    engine = an_engine(node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=0.85)])
    one = _by_strategy(evaluate(engine, ONE, strategies=["self_route"]))["self_route"]
    assert [(passage.text, passage.score) for passage in one.passages] == [(PASSAGE_TEXTS[0], 0.9)]


def test_an_engine_of_llamaindex_with_our_synthesizer_is_evaluated_alike() -> None:
    engine = an_engine(("unanswerable",), FINAL, usage=True)
    plain = RetrieverQueryEngine(engine.retriever, engine._response_synthesizer)
    assert evaluate(plain, ONE).looks == evaluate(engine, ONE).looks


@pytest.mark.parametrize("own", [True, False], ids=["both are filtered", "the retriever is filtered"])
def test_a_filter_is_a_wall_in_every_strategy(own: bool) -> None:
    documents = [
        Document(text=f"{WHOLE} of {tenant}. {'Tea was served. ' * 30}", id_="minutes", metadata={"tenant": tenant})
        for tenant in ("a", "b")
    ]
    index = simple(split(*documents))
    mine = only("tenant", "a")
    llm = declining()
    if own:
        engine = SelfRouteQueryEngine.from_index(index, llm=llm, filters=mine)
    else:
        engine = SelfRouteQueryEngine(index.as_retriever(filters=mine), documents=StoredDocuments(index), llm=llm)
    by = _by_strategy(evaluate(engine, ONE))
    assert by["self_route"].answer == FOUND
    assert len(llm.calls) == 2
    assert all(f"{WHOLE} of a" in call.prompt for call in llm.calls)
    assert not any(f"{WHOLE} of b" in call.prompt for call in llm.calls)


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    def answer(request: Request) -> Reply:
        text = "Ms Okafor" if WHOLE in request.prompt else "unanswerable"
        return Reply(text, cached_tokens=3, thinking_tokens=2)

    with LoopbackServer(answer) as running:
        yield running


CLIENTS = {
    "langchain openai": (LANGCHAIN, _chat_openai),
    "langchain gemini": (LANGCHAIN, _chat_gemini),
    "llamaindex openai": (LLAMAINDEX, _openai_like),
    "llamaindex gemini": (LLAMAINDEX, _google_genai),
}
every_client = pytest.mark.parametrize(("where", "client"), CLIENTS.values(), ids=CLIENTS)
Client = Callable[..., Any]
MINI = "openai:gpt-4o-mini"  # the server's address is no provider's


def _over(where: str, server: LoopbackServer, **options: Any) -> Any:
    return both_parts.pipeline(where, llm=OPENAI[where](server, **options), priced_as=MINI)


@every_client
def test_over_the_wire_each_prompt_is_asked_once(
    where: str, client: Client, server: LoopbackServer, tmp_path: Path
) -> None:
    def pipeline(**options: Any) -> Any:
        return both_parts.pipeline(where, llm=client(server, **options), priced_as=MINI)

    by = _by_strategy(evaluate(pipeline(), ONE, folder=tmp_path))
    assert len(server.book) == 2
    given = ask(pipeline())
    assert by["self_route"].cost == Decimal(given["usage"]["cost"]) > 0
    assert [row["cached_tokens"] for row in kept(tmp_path)] == [3, 3]
    assert KEY not in (tmp_path / FILE).read_text()
    asked = len(server.book)
    assert _by_strategy(evaluate(pipeline(), ONE, folder=tmp_path)) == by
    assert _by_strategy(evaluate(pipeline(api_key="another-key"), ONE, folder=tmp_path)) == by
    assert len(server.book) == asked


@each_host
def test_an_error_of_the_server_is_a_failure_and_nothing_is_kept(
    where: str, server: LoopbackServer, tmp_path: Path
) -> None:
    server.answer = lambda _: Reply(status=500, error={"message": f"no key {KEY} here", "type": "x", "code": None})
    done = evaluate(_over(where, server), ONE, folder=tmp_path)
    assert (done.results, [one.step for one in done.failures]) == ((), ["rag", "long_context"])
    assert KEY not in repr(done.failures) + (tmp_path / FILE).read_text()
    assert not kept(tmp_path)


@each_host
def test_a_prompt_that_is_too_long_is_asked_again_with_less(where: str) -> None:
    error = ValueError(
        "This model's maximum context length is 40 tokens. However, your messages resulted in 60 tokens."
    )
    pipeline = over(where, DECLINED, failures={"long_context": [error]})
    given = ask(over(where, DECLINED, failures={"long_context": [error]}))
    one = _by_strategy(evaluate(pipeline, ONE))["self_route"]
    assert one.input_tokens + one.output_tokens == given["usage"]["total_tokens"]
    assert one.shown.cut


@pytest.mark.parametrize("given", [None, "chain", llamaindex_parts.ListRetriever()], ids=["none", "text", "retriever"])
def test_what_is_not_a_pipeline_is_refused(given: Any) -> None:
    with pytest.raises(ConfigurationError, match="SelfRouteChain or a SelfRouteQueryEngine"):
        evaluate(given, ONE)


@each_host
def test_a_cap_holds(where: str, server: LoopbackServer, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no price is known"):
        evaluate(over(where, PLAIN), ONE, max_cost=1)
    done = evaluate(_over(where, server), ONE, folder=tmp_path, max_cost=0.000001)
    assert (done.results, done.stopped is None, server.book) == ((), False, [])
    assert not evaluate(_over(where, server), ONE, folder=tmp_path, max_cost=1).stopped


@pytest.mark.parametrize(
    ("wrap", "stops"),
    [
        (lambda chain, ledger: chain.with_config(callbacks=[ledger], tags=["x"]), False),
        (lambda chain, ledger: chain.with_retry(stop_after_attempt=3).with_config(callbacks=[ledger]), False),
        (lambda chain, ledger: chain.bind(stop=["."]).with_config(callbacks=[ledger]), True),
        (lambda chain, ledger: chain.with_config(callbacks=[ledger]).bind(stop=["."]).with_retry(), True),
        (lambda chain, ledger: chain.with_types().with_listeners().with_config(callbacks=[ledger]), False),
    ],
    ids=["config", "retry", "bind", "all", "others"],
)
def test_a_chain_is_evaluated_within_its_bindings(wrap: Callable[[Any, Any], Any], stops: bool, tmp_path: Path) -> None:
    given, ledger = over(LANGCHAIN, DECLINED).asked, SelfRouteLedger()
    result = evaluate(wrap(given, ledger), ONE, folder=tmp_path)
    expected = evaluate(over(LANGCHAIN, DECLINED), ONE)
    assert [(one.answer, one.route, one.input_tokens) for one in result.results] == [
        (one.answer, one.route, one.input_tokens) for one in expected.results
    ]
    figures = ledger.to_dict()
    assert figures["queries"] == 2  # the draft, and the documents
    assert figures["tokens"]["total_tokens"] == sum(one.input_tokens + one.output_tokens for one in result.looks)
    if stops:
        assert [call.options["stop"] for call in given.llm.calls] == [["."], ["."]]
    assert given.llm.steps == ["rag", "long_context"]


ENDS = [("content_filter", "", False), ("length", "", False), (None, "I cannot help.", False), (None, "", True)]


@each_host
@pytest.mark.parametrize("ending", ENDS, ids=str)
@pytest.mark.parametrize("step", ["rag", "long_context"])
def test_no_reply_is_a_failure_and_never_a_decline(where: str, step: str, ending: Any, tmp_path: Path) -> None:
    finish_reason, refusal, calls = ending
    script = {
        "ends": {step: finish_reason} if finish_reason else {},
        "refusals": {step: refusal},
        "tool_calls": {step} if calls else set(),
        step.replace("rag", "draft").replace("long_context", "final"): ("",),
    }
    pipeline = over(where, DECLINED, **script)
    done = evaluate(pipeline, ONE, folder=tmp_path)
    failed = {"rag": {"rag", "self_route"}, "long_context": {"self_route", "long_context"}}[step]
    assert [one.step for one in done.failures] == [step]
    assert all("NoReplyError" in one.error and (refusal in one.error) for one in done.failures)
    assert {one.strategy for one in done.results} == set(STRATEGIES) - failed
    model = pipeline.model
    assert model.steps.count(step) == 1  # no strategy pays for it again
    before = len(model.calls)
    evaluate(pipeline, ONE, folder=tmp_path)
    assert [call.step for call in model.calls[before:]] == [step]  # a later run asks again for it alone
