"""Chains and query engines that are evaluated: what they ask, pay and keep, over real clients, too."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI
from llama_index.core import Document
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.llms.google_genai import GoogleGenAI
from llama_index.llms.openai_like import OpenAILike

import both_parts
import llamaindex_parts
from both_parts import COMPLETION, HOSTS, Pipeline, each_host, is_langchain, pipeline_for
from evaluation_parts import by_strategy, kept
from langchain_selfroute import SelfRouteLedger
from llamaindex_parts import an_engine
from llamaindex_selfroute import SelfRouteQueryEngine, StoredDocuments
from llamaindex_stores_parts import declining, only, simple, split
from loopback import LoopbackServer, Reply, Request
from scenarios import DECLINED, FINAL, FOUND, NOTHING_RETRIEVED, PASSAGE_TEXTS, PLAIN, QUESTION, WHOLE, Scenario
from selfroute.errors import ConfigurationError
from selfroute_workbench.evaluation.evaluating import evaluate as evaluate_all
from selfroute_workbench.evaluation.replies_file import FILE
from selfroute_workbench.evaluation.results import Evaluation

pytestmark = pytest.mark.usefixtures("frozen")

KEY = "sk-proj-0123456789abcdefghijklmnop"
ONE = [{"question": QUESTION, "answers": ["Ms Okafor"]}]


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


def evaluate(pipeline: Any, questions: Any, **options: Any) -> Evaluation:
    """Evaluate a pipeline that follows the paper's rule: these documents are too short for sections."""
    return evaluate_all(pipeline.asked if isinstance(pipeline, Pipeline) else pipeline, questions, **options)


@everywhere
@pytest.mark.parametrize("scenario", [PLAIN, DECLINED, NOTHING_RETRIEVED], ids=str)
def test_evaluate_yours_is_the_pipeline(where: str, scenario: Scenario) -> None:
    one = by_strategy(evaluate(over(where, scenario), ONE))["yours"]
    given = ask(over(where, scenario))
    assert (one.answer, one.route, one.answerable) == (given["answer"], given["route"], given["answerable"])
    assert (not one.passages) == (given["retrieved"] == [])
    if not given["usage"]["estimated"]:  # as it is of streams
        assert one.input_tokens + one.output_tokens == given["usage"]["total_tokens"]


@pytest.mark.parametrize("usage", [True, False], ids=["counted", "estimated"])
@pytest.mark.parametrize("scenario", [PLAIN, DECLINED, NOTHING_RETRIEVED], ids=str)
def test_evaluate_frameworks_agree(scenario: Scenario, usage: bool) -> None:
    given = [by_strategy(evaluate(over(where, scenario, usage=usage), ONE)) for where in HOSTS]
    chain, engine = (
        {
            name: [replace(look, passages=[one.text for one in look.passages]) for look in result.paid]
            for name, result in by.items()
            if name != "rag_20"  # the retriever of nodes cannot be told how many
        }
        for by in given
    )
    assert chain == engine


def test_evaluate_postprocessors() -> None:
    engine = an_engine(node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=0.85)])
    one = by_strategy(evaluate(engine, ONE))["yours"]
    assert [(passage.text, passage.score) for passage in one.passages] == [(PASSAGE_TEXTS[0], 0.9)]


def test_evaluate_plain_engine() -> None:
    engine = an_engine(("unanswerable",), FINAL, usage=True)
    plain = RetrieverQueryEngine(engine.retriever, engine._response_synthesizer)
    assert evaluate(plain, ONE).looks == evaluate(engine, ONE).looks


@pytest.mark.parametrize("own", [True, False], ids=["both are filtered", "the retriever is filtered"])
def test_evaluate_filters(own: bool) -> None:
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
    by = by_strategy(evaluate(engine, ONE))
    assert by["long_context"].answer == FOUND
    assert "rag_20" in by, "the wider retriever is filtered, too"
    assert any(f"{WHOLE} of a" in call.prompt for call in llm.calls)
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
def test_evaluate_over_the_wire(where: str, client: Client, server: LoopbackServer, tmp_path: Path) -> None:
    def pipeline(**options: Any) -> Any:
        return both_parts.pipeline(where, llm=client(server, **options), priced_as=MINI)

    by = by_strategy(evaluate(pipeline(), ONE, folder=tmp_path))
    assert len(server.book) == 2
    given = ask(pipeline())
    assert by["yours"].cost == Decimal(given["usage"]["cost"]) > 0
    assert [row["cached_tokens"] for row in kept(tmp_path)] == [3, 3]
    assert KEY not in (tmp_path / FILE).read_text()
    asked = len(server.book)
    assert by_strategy(evaluate(pipeline(), ONE, folder=tmp_path)) == by
    assert by_strategy(evaluate(pipeline(api_key="another-key"), ONE, folder=tmp_path)) == by
    assert len(server.book) == asked


@every_client
def test_evaluate_structured(where: str, client: Client, server: LoopbackServer, tmp_path: Path) -> None:
    def fills_in(request: Request) -> Reply:
        knows = WHOLE in request.prompt
        return Reply(json.dumps({"answerable": knows, "answer": FOUND if knows else ""}))

    server.answer = fills_in
    pipeline = both_parts.pipeline(where, llm=client(server), priced_as=MINI, answerability="structured")
    done = evaluate(pipeline, ONE, folder=tmp_path)
    assert (list(done.failures), by_strategy(done)["yours"].answer) == ([], FOUND)
    asked = len(server.book)
    assert evaluate(pipeline, ONE, folder=tmp_path).looks == done.looks
    assert len(server.book) == asked, "kept reports are found again"


@each_host
def test_evaluate_server_error(where: str, server: LoopbackServer, tmp_path: Path) -> None:
    server.answer = lambda _: Reply(status=500, error={"message": f"no key {KEY} here", "type": "x", "code": None})
    done = evaluate(_over(where, server), ONE, folder=tmp_path)
    assert (done.results, {one.strategy for one in done.failures}) == ((), set(done.strategies))
    assert KEY not in repr(done.failures) + (tmp_path / FILE).read_text()
    assert not kept(tmp_path)


@each_host
def test_evaluate_too_long(where: str) -> None:
    error = ValueError(
        "This model's maximum context length is 40 tokens. However, your messages resulted in 60 tokens."
    )
    pipeline = over(where, DECLINED, failures={"long_context": [error]})
    given = ask(over(where, DECLINED, failures={"long_context": [error]}))
    one = by_strategy(evaluate(pipeline, ONE))["yours"]
    assert one.input_tokens + one.output_tokens == given["usage"]["total_tokens"]
    assert one.shown.cut


@pytest.mark.parametrize("given", [None, "chain", llamaindex_parts.ListRetriever()], ids=["none", "text", "retriever"])
def test_evaluate_no_pipeline(given: Any) -> None:
    with pytest.raises(ConfigurationError, match="SelfRouteChain or a SelfRouteQueryEngine"):
        evaluate(given, ONE)


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
def test_evaluate_bindings(wrap: Callable[[Any, Any], Any], stops: bool, tmp_path: Path) -> None:
    given, ledger = over(LANGCHAIN, DECLINED).asked, SelfRouteLedger()
    result = evaluate(wrap(given, ledger), ONE, folder=tmp_path)
    expected = evaluate(over(LANGCHAIN, DECLINED), ONE)
    assert [(one.answer, one.route, one.input_tokens) for one in result.results] == [
        (one.answer, one.route, one.input_tokens) for one in expected.results
    ]
    figures = ledger.to_dict()
    assert figures["queries"] == len(result.strategies)
    assert figures["tokens"]["total_tokens"] == sum(one.input_tokens + one.output_tokens for one in result.looks)
    if stops:
        assert [call.options["stop"] for call in given.llm.calls] == [["."], ["."]]
    assert given.llm.steps == ["rag", "long_context"]


ENDS = [("content_filter", "", False), ("length", "", False), (None, "I cannot help.", False), (None, "", True)]


@each_host
@pytest.mark.parametrize("ending", ENDS, ids=str)
@pytest.mark.parametrize("step", ["rag", "long_context"])
def test_evaluate_no_reply(where: str, step: str, ending: Any, tmp_path: Path) -> None:
    finish_reason, refusal, calls = ending
    script = {
        "ends": {step: finish_reason} if finish_reason else {},
        "refusals": {step: refusal},
        "tool_calls": {step} if calls else set(),
        step.replace("rag", "draft").replace("long_context", "final"): ("",),
    }
    pipeline = over(where, DECLINED, **script)
    done = evaluate(pipeline, ONE, folder=tmp_path)
    answered = {"rag": {"long_context"}, "long_context": {"rag", "rag_20"}}[step] & set(done.strategies)
    assert all("NoReplyError" in one.error and (refusal in one.error) for one in done.failures)
    assert {one.strategy for one in done.results} == answered
    assert {one.strategy for one in done.failures} == set(done.strategies) - answered
    model = pipeline.model
    assert model.steps.count(step) == 1  # no strategy pays for it again
    before = len(model.calls)
    evaluate(pipeline, ONE, folder=tmp_path)
    assert [call.step for call in model.calls[before:]] == [step]  # a later run asks again for it alone
