"""`answerability="structured"` over all that LangChain wraps around a model, and over models of other makings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import openai
import pytest
from langchain_core.language_models import BaseChatModel, FakeListChatModel, FakeListLLM
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_core.runnables.base import RunnableBindingBase

import loopback
from hosts_wires import KEY, chat_model
from langchain_parts import DOCUMENTS, MODES, QUESTION, WHOLE, ListRetriever, ScriptedModel, TreeTracer, ask, outline
from langchain_selfroute import SelfRouteChain
from loopback import LoopbackServer, Reply, Request
from selfroute.errors import ConfigurationError

pytestmark = pytest.mark.usefixtures("frozen")

ANSWER = "Ms Okafor chaired it."
every_mode = pytest.mark.parametrize("mode", MODES)


def fills_in(request: Request) -> Reply:
    """Answer from whole documents only."""
    whole = WHOLE in request.prompt
    return loopback.report(request, answerable=whole, answer=ANSWER if whole else "")


def model(server: LoopbackServer, protocol: str = "openai") -> BaseChatModel:
    server.answer = fills_in
    return chat_model(server, protocol)


def chain_over(llm: Any, **fields: Any) -> SelfRouteChain:
    parts = {"retriever": ListRetriever(), "llm": llm, "documents": DOCUMENTS, "answerability": "structured"}
    return SelfRouteChain(**{**parts, **fields})


def check(server: LoopbackServer, result: Any, *, times: int = 2, **asked: Any) -> None:
    """The first step declined and the second answered, at the server's price; both were asked for a report, and so."""
    assert (result["answer"], result["route"], result["answerable"]) == (ANSWER, "long_context", True)
    assert result["decision"]["evidence"] == "unanswerable"
    server.settle()
    assert len(server.book) == times
    for step, entry in zip(("rag", "long_context"), server.book[-2:], strict=True):
        assert result["usage"][step]["input_tokens"] == entry.input_tokens
        assert result["usage"][step]["output_tokens"] == entry.output_tokens > 0
    for entry in server.book:
        body = entry.request.body
        assert "response_format" in body or body["generationConfig"]["responseMimeType"] == "application/json"
        assert {name: body[name] for name in asked} == asked


def model_that_fails() -> BaseChatModel:
    class Failing(ScriptedModel):
        def bind_tools(self, tools: Any, **options: Any) -> Any:
            return self.bind(tools=tools, **options)

    errors: list[Exception] = [OSError("the line is dead")] * 2
    return Failing(failures={"rag": errors, "long_context": errors})


WRAPPED: dict[str, Callable[[Any], Any]] = {
    "bind": lambda llm: llm.bind(seed=7),
    "config": lambda llm: llm.bind(seed=7).with_config(tags=["mine"]),
    "retry": lambda llm: llm.bind(seed=7).with_retry(stop_after_attempt=2),
    "a fallback": lambda llm: model_that_fails().with_fallbacks([llm.bind(seed=7)]),
    "configurable": lambda llm: llm.configurable_fields(seed=ConfigurableField("the_seed")),
    "alternatives": lambda llm: model_that_fails().configurable_alternatives(
        ConfigurableField("which"), other=llm.bind(seed=7)
    ),
    "all of them": lambda llm: (
        model_that_fails()
        .with_retry(stop_after_attempt=1)
        .with_fallbacks([llm.bind(seed=7).with_config(tags=["mine"]).with_retry()])
        .with_config(metadata={"tenant": 7})
    ),
    "nothing, but an option of the call": lambda llm: llm,
}
CONFIGURED: Any = {"configurable": {"the_seed": 7, "which": "other"}}


def seen(run: Any) -> list[Any]:
    """Return the runs in one line: fallbacks nest bindings and models differently."""
    return [(run.name, run.kind, sorted(run.tags)), *(each for child in run.children for each in seen(child))]


@every_mode
@pytest.mark.parametrize("name", WRAPPED)
async def test_report_through_wrapped_models(server: LoopbackServer, name: str, mode: str) -> None:
    tracers = [TreeTracer(), TreeTracer()]
    options = {"seed": 7} if name.startswith("nothing") else {}
    wrapped = chain_over(WRAPPED[name](model(server)))
    check(server, await ask(wrapped, QUESTION, mode, {**CONFIGURED, "callbacks": [tracers[0]]}, **options), seed=7)
    assert not tracers[0].open_runs
    server.answer = lambda request: ANSWER if WHOLE in request.prompt else "unanswerable"
    text = wrapped.model_copy(update={"answerability": "text"})
    mode = mode.replace("stream", "invoke")  # wrappers name a streamed run in a way of their own
    await ask(text, QUESTION, mode, {**CONFIGURED, "callbacks": [tracers[1]]}, **options)
    assert seen(tracers[0].root) == seen(tracers[1].root)


class Own(ScriptedModel):
    """A model with a `with_structured_output` of another making."""

    structure: Any = None

    def with_structured_output(self, schema: Any, **_: Any) -> Any:
        return self.structure(self, schema)


def asked_by(structure: Callable[[Any, Any], Any], **script: Any) -> SelfRouteChain:
    return chain_over(Own(structure=structure, usage=True, **{"draft": ("no",), "final": ("yes",), **script}))


def _read(schema: Any, message: AIMessage) -> Any:
    return schema(answerable=message.text == "yes", answer=ANSWER)


def _raising(error: Exception) -> Any:
    def fail(_: Any) -> Any:
        raise error

    return RunnableLambda(fail)


def _filled(schema: Any, prompt: Any) -> Any:
    return schema(answerable=WHOLE in prompt.to_string(), answer=ANSWER)


# Whether the message is seen, and with it the token counts.
MAKINGS: dict[str, tuple[Callable[[Any, Any], Any], bool]] = {
    "a parser": (lambda llm, schema: llm | (lambda message: _read(schema, message)), True),
    "a parser that returns a dict": (
        lambda llm, schema: llm | (lambda message: _read(schema, message).model_dump()),
        True,
    ),
    "no sequence": (lambda llm, schema: RunnableLambda(lambda prompt: _read(schema, llm.invoke(prompt))), False),
    "something before the model": (
        lambda llm, schema: RunnableLambda(lambda prompt: prompt) | llm | (lambda message: _read(schema, message)),
        False,
    ),
    "the report alone": (lambda _, schema: RunnableLambda(lambda prompt: _filled(schema, prompt)), False),
}


@every_mode
@pytest.mark.parametrize("name", MAKINGS)
async def test_a_model_may_read_its_replies_as_it_likes(name: str, mode: str) -> None:
    structure, is_seen = MAKINGS[name]
    result = await ask(asked_by(structure), QUESTION, mode)
    assert (result["answer"], result["route"]) == (ANSWER, "long_context")
    assert result["usage"]["estimated"] is not is_seen
    assert result["usage"]["long_context"]["output_tokens"] > 0


UNREADABLE: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "a parser that fails": (lambda llm, _: llm | _raising(KeyError("answer")), "Mr Lin."),
    "a parser that finds nothing": (lambda llm, _: llm | (lambda _: None), "Mr Lin."),
    "a parser of text": (lambda llm, _: llm | StrOutputParser(), "Mr Lin."),
    "a text": (lambda *_: RunnableLambda(lambda _: "Mr Lin."), "Mr Lin."),
}


@every_mode
@pytest.mark.parametrize("name", UNREADABLE)
async def test_what_cannot_be_read_as_a_report_is_read_as_text(name: str, mode: str) -> None:
    structure, answer = UNREADABLE[name]
    tracer = TreeTracer()
    chain = asked_by(structure, draft=("Mr Lin.",), final=("Mr Lin.",))
    result = await ask(chain, QUESTION, mode, {"callbacks": [tracer]})
    assert (result["answer"], tracer.open_runs) == (answer, [])
    if name == "a parser of text":  # is a run beside the model
        assert outline(tracer.root) == {"SelfRouteChain": ["retrieve", "rag", "StrOutputParser"]}


@pytest.mark.parametrize("mode", ["ainvoke", "astream"])
async def test_report_is_awaited_and_errors_pass(mode: str) -> None:
    class Awaited(Own):
        def _generate(self, *_: Any, **__: Any) -> Any:
            raise AssertionError

    def structure(llm: Any, schema: Any) -> Any:
        async def read(message: AIMessage) -> Any:
            return _read(schema, message)

        return llm | RunnableLambda(read)

    chain = chain_over(Awaited(structure=structure, draft=("no",), final=("yes",)))
    assert (await ask(chain, QUESTION, mode))["answer"] == ANSWER
    for any_mode in (mode, mode[1:]):
        with pytest.raises(OSError, match="dead"):
            await ask(asked_by(lambda *_: _raising(OSError("the line is dead"))), QUESTION, any_mode)


@pytest.mark.parametrize("name", ["llm", "long_context_llm"])
@pytest.mark.parametrize(
    "unstructured",
    [
        lambda _: FakeListChatModel(responses=["no"]),
        lambda _: ScriptedModel(),
        lambda _: FakeListLLM(responses=["no"]),
        lambda _: RunnableLambda(lambda _: "no"),
        lambda llm: llm | StrOutputParser(),
        lambda _: ScriptedModel().bind(stop=["x"]).with_retry(),
        lambda llm: llm.with_fallbacks([ScriptedModel()]),
        lambda _: ScriptedModel().configurable_fields(delay=ConfigurableField("delay")),
    ],
    ids=["fake", "scripted", "strings", "function", "parser", "wrapped", "fallback", "configurable"],
)
def test_a_model_that_cannot_be_asked_so_is_refused(server: LoopbackServer, name: str, unstructured: Any) -> None:
    models = {"llm": model(server), name: unstructured(model(server))}
    with pytest.raises(ConfigurationError, match=rf"^answerability='structured'.*; {name} is a .*answerability='text'"):
        chain_over(**models)
    assert chain_over(**models, answerability="text")


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
    try:
        is_binding = isinstance(llm, RunnableBindingBase)
    except TypeError:
        pytest.skip("that version of pydantic asks the model for an attribute, and langchain's cannot answer")
    assert not is_binding
    config: Any = {"configurable": {"my_model": "gpt-4o", "my_model_provider": "openai", "my_seed": 7}}
    server.answer = fills_in
    check(server, await ask(chain_over(llm), QUESTION, mode, config), seed=7)
    server.answer = lambda _: "Mr Lin."
    assert (await ask(chain_over(llm), QUESTION, mode, config))["answer"] == "Mr Lin."
    server.answer = lambda _: loopback.RATE_LIMITED
    with pytest.raises(openai.RateLimitError):
        await ask(chain_over(llm), QUESTION, mode, config)


@every_mode
@pytest.mark.parametrize("around", ["bind", "with_retry", "with_fallbacks"])
async def test_a_config_that_is_bound_around_a_model_chooses_it(around: str, mode: str) -> None:
    wrong, right = (Own(structure=MAKINGS["a parser"][0], draft=(reply,)) for reply in ("no", "yes"))
    either: Any = wrong.configurable_alternatives(ConfigurableField("which"), default_key="wrong", right=right)
    wrapped = getattr(either, around)(*([[wrong]] if around == "with_fallbacks" else []))
    chain = chain_over(wrapped.with_config(configurable={"which": "right"}))
    assert (await ask(chain, QUESTION, mode))["route"] == "rag"
