"""`answerability="structured"` over langchain-openai and langchain-google-genai, and over all that LangChain wraps."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import openai
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import BaseChatModel, FakeListChatModel, FakeListLLM
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import ConfigurableField, Runnable, RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI

import loopback
from langchain_parts import (
    DOCUMENTS,
    MODES,
    QUESTION,
    STREAMS,
    WHOLE,
    ListRetriever,
    ScriptedModel,
    TreeTracer,
    ask,
    chunks,
    outline,
)
from langchain_selfroute import SelfRouteChain
from loopback import LoopbackServer, Reply, Request
from selfroute.errors import ConfigurationError, NoReplyError

KEY = "sk-loop-5f1c9e7a2b4d"
ANSWER = "Ms Okafor chaired it."
CLIENTS = ("openai", "openai tools", "gemini")

every_mode = pytest.mark.parametrize("mode", MODES)
every_client = pytest.mark.parametrize("client", CLIENTS)


pytestmark = pytest.mark.usefixtures("one_certificate", "frozen")


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(fills_in) as started:
        yield started
    gc.collect()


def fills_in(request: Request) -> Reply:
    """Answer from whole documents only."""
    whole = WHOLE in request.prompt
    return loopback.report(request, answerable=whole, answer=ANSWER if whole else "")


class ByTools(ChatOpenAI):
    """A model whose package knows no other way to structure than to call a tool."""

    def with_structured_output(self, schema: Any = None, **options: Any) -> Any:
        return super().with_structured_output(schema, method="function_calling", **options)


def model(server: LoopbackServer, client: str = "openai", **options: Any) -> BaseChatModel:
    if client == "gemini":
        url = server.gemini_url
        return ChatGoogleGenerativeAI(base_url=url, google_api_key=KEY, model="m", max_retries=1, **options)
    kind = ByTools if client == "openai tools" else ChatOpenAI
    return kind(base_url=server.openai_url, api_key=KEY, model="m", max_retries=0, **options)


def chain_over(llm: Runnable[Any, Any], **fields: Any) -> SelfRouteChain:
    return SelfRouteChain(
        **{
            "retriever": ListRetriever(),
            "llm": llm,
            "documents": DOCUMENTS,
            "answerability": "structured",
            **fields,
        }
    )


def schema_in(request: Request) -> dict[str, Any]:
    """The schema that went over the wire."""
    body = request.body
    if request.protocol == "gemini":
        config = body["generationConfig"]
        assert config["responseMimeType"] == "application/json"
        return config.get("responseJsonSchema") or config["responseSchema"]
    if "tools" in body:
        (tool,) = body["tools"]
        assert body["tool_choice"] == {"type": "function", "function": {"name": tool["function"]["name"]}}
        return tool["function"]["parameters"]
    assert body["response_format"]["type"] == "json_schema"
    assert body["response_format"]["json_schema"]["strict"] is True
    assert body["response_format"]["json_schema"]["schema"]["additionalProperties"] is False
    return body["response_format"]["json_schema"]["schema"]


def check_asked(server: LoopbackServer, *, times: int = 2) -> None:
    """The model was asked for a report as often as this, and each time with the whole schema."""
    server.settle()
    assert len(server.book) == times
    for entry in server.book:
        schema = schema_in(entry.request)
        assert schema["required"] == ["answerable", "answer"]
        assert all(schema["properties"][name]["description"] for name in schema["required"])


def check_answer(server: LoopbackServer, result: Any) -> None:
    """The first step declined and the second answered, at the server's own price."""
    assert (result["answer"], result["route"], result["answerable"]) == (ANSWER, "long_context", True)
    assert result["decision"] == {"declined": True, "signal": "sentinel", "evidence": "unanswerable", "ruling": None}
    check_price(server, result)


def check_price(server: LoopbackServer, result: Any) -> None:
    server.settle()
    assert result["usage"]["estimated"] is False
    for step, entry in zip(("rag", "long_context"), server.book[-2:], strict=True):
        counts = result["usage"][step]
        assert counts["input_tokens"] == entry.input_tokens
        assert counts["output_tokens"] == entry.output_tokens > 0


@every_mode
@every_client
async def test_the_schema_goes_over_the_wire_and_a_report_comes_back(
    server: LoopbackServer, client: str, mode: str
) -> None:
    result = await ask(chain_over(model(server, client)), QUESTION, mode, stop=["\n\n\n"])
    check_answer(server, result)
    check_asked(server)
    for entry in server.book:
        body = entry.request.body
        assert (body["generationConfig"]["stopSequences"] if client == "gemini" else body["stop"]) == ["\n\n\n"]
        assert not entry.request.stream


@pytest.mark.parametrize("mode", STREAMS)
async def test_a_structured_reply_is_one_piece_of_a_stream(server: LoopbackServer, mode: str) -> None:
    first, last = await chunks(chain_over(model(server)), QUESTION, mode)
    assert first["answer"] == ANSWER
    assert first["route"] == "long_context"
    assert last.keys() == {"answerable", "finish_reason", "decision", "usage"}


WRAPPED: dict[str, Callable[[Any], Any]] = {
    "bind": lambda llm: llm.bind(seed=7),
    "config": lambda llm: llm.bind(seed=7).with_config(tags=["mine"]),
    "retry": lambda llm: llm.bind(seed=7).with_retry(stop_after_attempt=2),
    "retry outside in": lambda llm: llm.with_retry(stop_after_attempt=2).bind(seed=7),
    "fallbacks": lambda llm: llm.bind(seed=7).with_fallbacks([llm.bind(seed=8)]),
    "a fallback": lambda llm: model_that_fails().with_fallbacks([llm.bind(seed=7)]),
    "a fallback outside in": lambda llm: model_that_fails().bind(seed=6).with_fallbacks([llm]).bind(seed=7),
    "configurable": lambda llm: llm.configurable_fields(seed=ConfigurableField("the_seed")),
    "configurable inside": lambda llm: llm.configurable_fields(seed=ConfigurableField("the_seed")).with_retry(),
    "alternatives": lambda llm: model_that_fails().configurable_alternatives(
        ConfigurableField("which"), other=llm.bind(seed=7)
    ),
    "all of them": lambda llm: (
        model_that_fails()
        .with_retry(stop_after_attempt=1)
        .with_fallbacks([llm.bind(seed=7).with_config(tags=["mine"]).with_retry()])
        .with_config(metadata={"tenant": 7})
    ),
}
CONFIGURED: Any = {"configurable": {"the_seed": 7, "which": "other"}}


def model_that_fails() -> BaseChatModel:
    class Failing(ScriptedModel):
        def bind_tools(self, tools: Any, **options: Any) -> Any:
            return self.bind(tools=tools, **options)

    errors: list[Exception] = [OSError("the line is dead")] * 2
    return Failing(failures={"rag": errors, "long_context": errors})


@every_mode
@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)
async def test_what_is_wrapped_around_a_model_stays_around_it(server: LoopbackServer, wrap: Any, mode: str) -> None:
    tracer = TreeTracer()
    config = {**CONFIGURED, "callbacks": [tracer]}
    check_answer(server, await ask(chain_over(wrap(model(server))), QUESTION, mode, config))
    check_asked(server)
    assert [entry.request.body["seed"] for entry in server.book] == [7, 7]
    assert not tracer.open_runs


@every_mode
@pytest.mark.parametrize("wrap", [*WRAPPED.values(), lambda llm: llm], ids=[*WRAPPED, "plain"])
async def test_the_runs_of_structured_steps_are_those_of_text(server: LoopbackServer, wrap: Any, mode: str) -> None:
    def seen(run: Any) -> list[Any]:
        below = [each for child in run.children for each in seen(child)]
        return [(run.name, run.kind, sorted(run.tags)), *below]  # flat: fallbacks nest bindings and models differently

    tracers = [TreeTracer(), TreeTracer()]
    await ask(chain_over(wrap(model(server))), QUESTION, mode, {**CONFIGURED, "callbacks": [tracers[0]]})
    server.answer = lambda request: ANSWER if WHOLE in request.prompt else "unanswerable"
    text = chain_over(wrap(model(server)), answerability="text")
    mode = mode.replace("stream", "invoke")  # wrappers name a streamed run in a way of their own
    await ask(text, QUESTION, mode, {**CONFIGURED, "callbacks": [tracers[1]]})
    assert seen(tracers[0].root) == seen(tracers[1].root)


async def test_a_rate_limit_moves_on_to_a_fallback_that_is_asked_for_a_report_too(server: LoopbackServer) -> None:
    with LoopbackServer(lambda _: loopback.RATE_LIMITED) as busy:
        chain = chain_over(model(busy).with_fallbacks([model(server, "gemini")]))
        check_answer(server, await chain.ainvoke(QUESTION))
        check_asked(server)
        check_asked(busy)


UNMINDFUL = pytest.mark.parametrize(
    ("text", "answer", "signal"),
    [
        ("Mr Lin.", "Mr Lin.", "answered"),
        ("unanswerable", ANSWER, "sentinel"),
        ("The passages do not mention who chaired the meeting.", ANSWER, "phrase"),
        ("", ANSWER, "empty"),
        ('{"answerable": false}', ANSWER, "sentinel"),
        ('```json\n{"answerable": true, "answer": "Mr Lin."}\n```', "Mr Lin.", "answered"),
        ('{"answerable": "perhaps", "answer": [1]}', '{"answerable": "perhaps", "answer": [1]}', "answered"),
    ],
    ids=["answer", "refusal", "phrase", "empty", "half a report", "fenced", "no report"],
)


@UNMINDFUL
@every_client
async def test_a_server_that_does_not_mind_the_schema_is_judged_by_what_it_writes(
    server: LoopbackServer, client: str, text: str, answer: str, signal: str
) -> None:
    server.answer = lambda request: fills_in(request) if WHOLE in request.prompt else text
    for mode in MODES:
        result = await ask(chain_over(model(server, client)), QUESTION, mode)
        assert (result["answer"], result["decision"]["signal"]) == (answer, signal), mode
        assert result["usage"]["estimated"] is False


@UNMINDFUL
@every_client
async def test_so_is_one_whose_package_streams_inside(
    server: LoopbackServer, client: str, text: str, answer: str, signal: str
) -> None:
    server.answer = lambda request: fills_in(request) if WHOLE in request.prompt else text
    options = {"stream_usage": True} if "openai" in client else {}
    for mode in ("invoke", "ainvoke"):
        result = await ask(chain_over(model(server, client, streaming=True, **options)), QUESTION, mode)
        assert (result["answer"], result["decision"]["signal"]) == (answer, signal), mode
        assert result["usage"]["estimated"] is False


@every_mode
async def test_a_provider_s_errors_pass_untouched(server: LoopbackServer, mode: str) -> None:
    server.answer = lambda _: loopback.RATE_LIMITED
    with pytest.raises(openai.RateLimitError):
        await ask(chain_over(model(server)), QUESTION, mode)
    check_asked(server, times=1)


@every_mode
@pytest.mark.parametrize("client", ["openai", "gemini"])
async def test_a_context_too_long_is_tried_once_more_with_less(server: LoopbackServer, client: str, mode: str) -> None:
    too_long = loopback.too_long_typed if client == "openai" else loopback.gemini_too_long

    def narrow(request: Request) -> Reply:
        asked = len(server.book)
        if asked == 2:
            return too_long(30, 60)
        return loopback.report(request, answerable=asked > 2, answer=ANSWER)

    server.answer = narrow
    result = await ask(chain_over(model(server, client)), QUESTION, mode)
    assert (result["answer"], len(result["context"])) == (ANSWER, 1)
    check_asked(server, times=3)


class Own(ScriptedModel):
    """A model with a `with_structured_output` of its own making."""

    structure: Any = None

    def with_structured_output(self, schema: Any, **_: Any) -> Any:
        return self.structure(self, schema)


def asked_by(structure: Callable[[Any, Any], Any], **script: Any) -> SelfRouteChain:
    return chain_over(Own(structure=structure, **{"draft": ("no",), "final": ("yes",), **script}))


def _read(schema: Any, message: AIMessage) -> Any:
    return schema(answerable=message.text == "yes", answer=ANSWER)


def _fail(error: Exception) -> Any:
    def fail(_: Any) -> Any:
        raise error

    return RunnableLambda(fail)


MAKINGS: dict[str, Callable[[Any, Any], Any]] = {
    "a parser": lambda llm, schema: llm | (lambda message: _read(schema, message)),
    "two parsers": lambda llm, schema: llm | (lambda message: (schema, message)) | (lambda both: _read(*both)),
    "a parser that returns a dict": lambda llm, schema: llm | (lambda message: _read(schema, message).model_dump()),
    "no sequence": lambda llm, schema: RunnableLambda(lambda prompt: _read(schema, llm.invoke(prompt))),
    "something before the model": lambda llm, schema: (
        RunnableLambda(lambda prompt: prompt) | llm | (lambda message: _read(schema, message))
    ),
}


@every_mode
@pytest.mark.parametrize("structure", MAKINGS.values(), ids=MAKINGS)
async def test_a_model_may_read_its_replies_as_it_likes(structure: Any, mode: str) -> None:
    result = await ask(asked_by(structure, usage=True), QUESTION, mode)
    assert (result["answer"], result["route"]) == (ANSWER, "long_context")
    # Whoever hides the model's message hides its token counts.
    hidden = structure in (MAKINGS["no sequence"], MAKINGS["something before the model"])
    assert result["usage"]["estimated"] is hidden


@every_mode
@pytest.mark.parametrize("kind", ["report", "dict"])
async def test_a_model_may_return_the_report_alone(kind: str, mode: str) -> None:
    def structure(_: Any, schema: Any) -> Any:
        def fill(prompt: Any) -> Any:
            fields = {"answerable": WHOLE in prompt.to_string(), "answer": ANSWER}
            return schema(**fields) if kind == "report" else fields

        return RunnableLambda(fill)

    result = await ask(asked_by(structure), QUESTION, mode)
    assert (result["answer"], result["route"], result["usage"]["estimated"]) == (ANSWER, "long_context", True)
    assert result["usage"]["long_context"]["output_tokens"] > 0


@every_mode
@pytest.mark.parametrize(
    ("structure", "answer"),
    [
        (lambda llm, schema: llm | _fail(KeyError("answer")), "Mr Lin."),
        (lambda llm, schema: llm | (lambda _: None), "Mr Lin."),
        (lambda llm, schema: RunnableLambda(lambda _: "Mr Lin."), "Mr Lin."),
        (lambda llm, schema: RunnableLambda(lambda _: None), "unanswerable"),
    ],
)
async def test_what_cannot_be_read_as_a_report_is_read_as_text(structure: Any, answer: str, mode: str) -> None:
    result = await ask(asked_by(structure, draft=("Mr Lin.",), final=("Mr Lin.",)), QUESTION, mode)
    assert result["answer"] == answer


@every_mode
async def test_an_error_that_is_not_of_reading_passes(mode: str) -> None:
    with pytest.raises(OSError, match="dead"):
        await ask(asked_by(lambda *_: _fail(OSError("the line is dead"))), QUESTION, mode)


@pytest.mark.parametrize("mode", ["ainvoke", "astream"])
async def test_an_awaited_report_is_awaited(mode: str) -> None:
    class Awaited(ScriptedModel):
        def with_structured_output(self, schema: Any, **_: Any) -> Any:
            async def read(message: AIMessage) -> Any:
                return _read(schema, message)

            return self | RunnableLambda(read)

        def _generate(self, *_: Any, **__: Any) -> Any:
            raise AssertionError

    result = await ask(chain_over(Awaited(draft=("no",), final=("yes",))), QUESTION, mode)
    assert result["answer"] == ANSWER


@pytest.mark.parametrize("name", ["llm", "long_context_llm"])
@pytest.mark.parametrize(
    "unstructured",
    [
        lambda server: FakeListChatModel(responses=["no"]),
        lambda server: ScriptedModel(),
        lambda server: FakeListLLM(responses=["no"]),
        lambda server: RunnableLambda(lambda _: "no"),
        lambda server: model(server) | StrOutputParser(),
        lambda server: ScriptedModel().bind(stop=["x"]).with_retry(),
        lambda server: model(server).with_fallbacks([ScriptedModel()]),
        lambda server: ScriptedModel().configurable_fields(delay=ConfigurableField("delay")),
    ],
    ids=["fake", "scripted", "strings", "function", "parser", "wrapped", "fallback", "configurable"],
)
def test_a_model_that_can_not_be_asked_so_is_refused(server: LoopbackServer, name: str, unstructured: Any) -> None:
    models = {"llm": model(server), name: unstructured(server)}
    with pytest.raises(ConfigurationError, match=rf"^answerability='structured'.*; {name} is a .*answerability='text'"):
        chain_over(**models)
    assert chain_over(**models, answerability="text")


@pytest.mark.parametrize("wrong", ["Structured", "json", "", None, True])
def test_any_other_answerability_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="answerability must be 'text', 'graded' or 'structured'"):
        chain_over(ScriptedModel(), answerability=wrong)


def test_text_is_the_default() -> None:
    assert SelfRouteChain(retriever=ListRetriever(), llm=ScriptedModel(), documents=DOCUMENTS).answerability == "text"


async def test_a_chain_on_a_vector_store_takes_it(server: LoopbackServer) -> None:
    store = InMemoryVectorStore.from_documents(DOCUMENTS, DeterministicFakeEmbedding(size=8))
    chain = SelfRouteChain.from_vectorstore(store, model(server), answerability="structured")
    assert chain.invoke(QUESTION)["answer"] == ANSWER
    check_asked(server, times=1)


def test_a_chain_is_copied_bound_and_drawn_as_before(server: LoopbackServer) -> None:
    chain = chain_over(model(server).bind(seed=7))
    for other in (chain.model_copy(), copy.copy(chain), chain.bind(seed=7), chain.with_config(tags=["a"])):
        server.book.clear()
        check_answer(server, other.invoke(QUESTION))
        check_asked(server)
    assert "rag" in chain.get_graph().draw_mermaid()
    assert pickle.loads(pickle.dumps(asked_by(structure=_pickled))).answerability == "structured"  # noqa: S301


def _pickled(llm: Any, schema: Any) -> Any:
    return llm | RunnableLambda(_nothing)


def _nothing(_: Any) -> None:
    return None


@every_mode
async def test_a_model_that_is_chosen_in_the_call_is_asked_too(server: LoopbackServer, mode: str) -> None:
    chat_models = pytest.importorskip("langchain.chat_models")
    llm = chat_models.init_chat_model(
        configurable_fields=("model", "model_provider", "seed"),
        config_prefix="my",
        base_url=server.openai_url,
        api_key=KEY,
        max_retries=0,
    )
    config: Any = {"configurable": {"my_model": "gpt-4o", "my_model_provider": "openai", "my_seed": 7}}
    check_answer(server, await ask(chain_over(llm), QUESTION, mode, config))
    check_asked(server)
    assert [entry.request.body["seed"] for entry in server.book] == [7, 7]
    server.answer = lambda _: "Mr Lin."
    assert (await ask(chain_over(llm), QUESTION, mode, config))["answer"] == "Mr Lin."
    server.answer = lambda _: loopback.RATE_LIMITED
    with pytest.raises(openai.RateLimitError):
        await ask(chain_over(llm), QUESTION, mode, config)


async def test_events_of_a_chain_come_without_warnings(server: LoopbackServer) -> None:
    names = [
        event["name"]
        async for event in chain_over(model(server)).astream_events(QUESTION, version="v2")
        if event["event"] == "on_chat_model_end"
    ]
    assert names == ["rag", "long_context"]


@every_mode
async def test_a_parser_that_has_to_be_asked_is_a_run_beside_the_model(mode: str) -> None:
    tracer = TreeTracer()
    await ask(asked_by(lambda llm, schema: llm | StrOutputParser()), QUESTION, mode, {"callbacks": [tracer]})
    runs = ["retrieve", "rag", "StrOutputParser"]
    assert outline(tracer.root) == {"SelfRouteChain": runs}
    assert not tracer.open_runs


def test_the_outline_is_that_of_text(server: LoopbackServer) -> None:
    tracer = TreeTracer()
    chain_over(model(server)).invoke(QUESTION, {"callbacks": [tracer]})
    assert outline(tracer.root) == {"SelfRouteChain": ["retrieve", "rag", "read_documents", "long_context"]}


@every_mode
@pytest.mark.parametrize("around", ["bind", "with_retry", "with_fallbacks"])
async def test_a_config_that_is_bound_around_a_model_chooses_it(around: str, mode: str) -> None:
    wrong, right = (Own(structure=MAKINGS["a parser"], draft=(reply,)) for reply in ("no", "yes"))
    either = wrong.configurable_alternatives(ConfigurableField("which"), default_key="wrong", right=right)
    wrapped: Any = {
        "bind": either.bind,
        "with_retry": either.with_retry,
        "with_fallbacks": lambda: either.with_fallbacks([wrong]),
    }[around]()
    chain = chain_over(wrapped.with_config(configurable={"which": "right"}))
    assert (await ask(chain, QUESTION, mode))["route"] == "rag"


CUT_SHORT = {
    "filtered": (Reply("", finish="content_filter"), "content_filter", ""),
    "cut before the answer": (Reply('{"answerable": true, "answer": "', finish="length"), "length", ""),
    "refused": (Reply(refusal="I cannot help."), "stop", "I cannot help."),
}


@every_mode
@pytest.mark.parametrize("name", CUT_SHORT)
async def test_half_a_report_is_no_verdict(server: LoopbackServer, name: str, mode: str) -> None:
    reply, finish_reason, refusal = CUT_SHORT[name]
    server.answer = lambda _: reply
    with pytest.raises(NoReplyError) as raised:
        await ask(chain_over(model(server)), QUESTION, mode)
    assert (raised.value.finish_reason, raised.value.refusal) == (finish_reason, refusal)
    server.settle()
    assert len(server.book) == 1
