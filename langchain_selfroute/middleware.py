"""Self-Route as middleware of LangChain's agents: the model calls that answer a user's question are routed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import Context
from inspect import iscoroutinefunction
from typing import Annotated, Any, cast

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ExtendedModelResponse, PrivateStateAttr
from langchain.agents.structured_output import StructuredOutputError
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.base import RunnableBinding
from langchain_core.runnables.config import ensure_config, set_config_context
from langchain_core.vectorstores import VectorStore
from langgraph.constants import TAG_NOSTREAM
from langgraph.types import Command
from pydantic import Field
from typing_extensions import NotRequired, Self, TypedDict, override

from langchain_selfroute.chain import SelfRouteChain
from langchain_selfroute.convert import Source
from langchain_selfroute.schema import brief_of
from langchain_selfroute.small_talk import is_question
from selfroute.arguments import Wanted, check_takes
from selfroute.documents.access import has_words
from selfroute.errors import ConfigurationError
from selfroute.hangup import cancelled_once
from selfroute.usage.rows import added

_Handler = Callable[[ModelRequest[Any]], ModelResponse[Any]]
_AsyncHandler = Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
_ROUTES = Wanted(
    "a function that takes the text of a message and returns whether it is a question",
    "pass a sync one, such as lambda text: '?' in text, or leave it out",
)
_HAS_CONFIG = sys.version_info >= (3, 11)  # LangGraph hands the config of a call to awaited nodes from then on
_NO_CONFIG = (
    "on Python 3.10 an awaited agent does not hand on the config of its call, so the filters and callbacks in it would "
    "be lost: call invoke or stream, or run it on Python 3.11 or later"
)
_CALLS_TOOLS = "The model calls a tool."
"""Stands in the chain for a reply that calls tools; it is judged as an answer, so that the chain ends there."""


class SelfRouteReport(TypedDict):
    """What is said of the latest routed answer in the agent's state; the keys are those of `SelfRouteOutput`."""

    route: str
    answerable: bool
    decision: Mapping[str, Any]
    usage: Mapping[str, Any]
    sources: Sequence[str]
    citations: NotRequired[Sequence[Mapping[str, Any]]]


class _Turn(TypedDict):
    """What is kept of a question while its tools are called: which message it is, the step that called, the usage."""

    question: Sequence[Any]
    step: str
    usage: Mapping[str, Any]


class SelfRouteState(AgentState[Any]):
    """The state of an agent with this middleware."""

    selfroute: NotRequired[SelfRouteReport | None]
    selfroute_turn: NotRequired[Annotated[_Turn | None, PrivateStateAttr]]


class SelfRouteMiddleware(AgentMiddleware[SelfRouteState, Any, Any]):
    """Answer a user's question from the passages; read sections and whole documents only if the model declines.

    The model call that follows a user's message is given the retrieved passages. If its reply declines, or is in doubt,
    it is asked again with sections and then with documents, as `SelfRouteChain` does. A reply that calls tools passes
    as it is and is counted; the calls after the tools are routed, too, until the question is answered. Small talk goes
    to the model as it is. The state gets `selfroute`: the route, the decision, the usage of the whole turn, the sources
    and the citations; it is None where nothing was routed. In `stream_mode="messages"` no draft is streamed: it is
    shown whole if it answers, and not at all if it declines; the reply to whole documents is streamed.

    Example:
        ```python
        from langchain.agents import create_agent
        from langchain_selfroute import SelfRouteMiddleware

        reading = SelfRouteMiddleware.from_vectorstore(vectorstore)
        agent = create_agent("openai:gpt-5-mini", tools=[...], middleware=[reading])
        ```
    """

    state_schema = SelfRouteState

    def __init__(
        self,
        *,
        retriever: Runnable[Any, Any],
        documents: Source | None = None,
        routes: Callable[[str], bool] | None = None,
        **options: Any,
    ) -> None:
        """Read through a retriever.

        Args:
            retriever: Finds the passages.
            documents: Where whole documents come from, as in `SelfRouteChain`.
            routes: Takes the text of a user's message and returns whether it is a question; None for all but small
                talk. It is not asked about a message without a letter or a digit, for which nothing can be found.
            **options: Options of `SelfRouteChain`, but for its models and prompts of its own.

        Raises:
            ConfigurationError: The parts cannot work together, or a model is passed: the agent has it.
        """
        _refuse_options(options)
        self._set_up(SelfRouteChain(retriever=retriever, llm=_NO_MODEL, documents=documents, **options), routes)

    @classmethod
    def from_vectorstore(
        cls, vectorstore: VectorStore, *, routes: Callable[[str], bool] | None = None, **options: Any
    ) -> Self:
        """Read a vector store: `routes`, and the arguments of `SelfRouteChain.from_vectorstore` but for the model."""
        _refuse_options(options)
        made = cls.__new__(cls)
        made._set_up(SelfRouteChain.from_vectorstore(vectorstore, _NO_MODEL, **options), routes)  # noqa: SLF001
        return made

    def _set_up(self, chain: SelfRouteChain, routes: Callable[[str], bool] | None) -> None:
        AgentMiddleware.__init__(self)
        if routes is not None:
            _ROUTES.check("routes", routes, fits=callable(routes) and not iscoroutinefunction(routes))
            check_takes("routes", routes, "text")
        self._chain, self._routes = chain, routes or is_question

    @override
    def before_agent(self, state: SelfRouteState, runtime: Any) -> dict[str, Any]:
        """Clear the report of the turn before, whatever answers this one."""
        return {"selfroute": None}

    @override
    def wrap_model_call(self, request: ModelRequest[Any], handler: _Handler) -> ExtendedModelResponse[Any]:
        """Route the calls that answer a user's question; leave others as they are."""
        asking = self._asking(request)
        if asking is None:
            return _untouched(handler(request))

        def ask(prompt: PromptValue, step: str) -> BaseMessage:
            with asking.hearing(), asking.context_of(step) as context:
                asking.response = context.run(handler, asking.request_for(prompt))
            return asking.reply()

        result = asking.chain_with(ask=ask).invoke(asking.question)
        if asking.starts_anew(result):
            result = asking.chain_with(ask=ask).invoke(asking.question)
        return asking.answer(result)

    @override
    async def awrap_model_call(self, request: ModelRequest[Any], handler: _AsyncHandler) -> ExtendedModelResponse[Any]:
        """The async twin of `wrap_model_call`.

        Raises:
            ConfigurationError: Python is older than 3.11, so that it is not known what the question may read.
        """
        asking = self._asking(request)
        if asking is None:
            return _untouched(await handler(request))
        if not _HAS_CONFIG:
            raise ConfigurationError(_NO_CONFIG)

        async def ask(prompt: PromptValue, step: str) -> BaseMessage:
            with asking.hearing(), asking.context_of(step) as context:
                replying = context.run(asyncio.ensure_future, handler(asking.request_for(prompt)))
                asking.response = await cancelled_once(replying)
            return asking.reply()

        result = await asking.chain_with(aask=ask).ainvoke(asking.question)
        if asking.starts_anew(result):
            result = await asking.chain_with(aask=ask).ainvoke(asking.question)
        return asking.answer(result)

    def _asking(self, request: ModelRequest[Any]) -> _Asking | None:
        """Return the question that a model call is to answer; None if it has no question."""
        messages = request.messages
        if not messages or not isinstance(messages[-1], HumanMessage | ToolMessage):
            return None
        at = next((at for at in reversed(range(len(messages))) if isinstance(messages[at], HumanMessage)), None)
        if at is None:
            return None
        if messages[at].additional_kwargs.get("lc_source") == "summarization":  # it stands for the question, too
            turn = cast("_Turn | None", (request.state or {}).get("selfroute_turn"))
            if turn is None:
                return None
            id_, question = turn["question"]
            at += 1
            request = request.override(messages=[*messages[:at], HumanMessage(question, id=str(id_)), *messages[at:]])
        text = str(request.messages[at].text)
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # no half characters
        return _Asking(self._chain, request, at, text) if has_words(text) and self._routes(text) else None


def _untouched(response: ModelResponse[Any]) -> ExtendedModelResponse[Any]:
    """Return a response that is not routed; no report of an earlier answer stays beside it."""
    return ExtendedModelResponse(response, Command(update={"selfroute": None, "selfroute_turn": None}))


def _refuse_options(options: Mapping[str, Any]) -> None:
    for name in ("llm", "long_context_llm"):
        if name in options:
            msg = f"{name} is the agent's model: leave it out"
            raise ConfigurationError(msg)
    if options.get("answerability") == "structured":
        msg = "the agent's model replies in text: set answerability to 'text' or 'graded', not 'structured'"
        raise ConfigurationError(msg)


class _Through(RunnableBinding[Any, Any]):  # type: ignore[no-redef]
    """An agent's model, which is asked through the agent; its name, window and price are the model's own.

    It is one object for all steps, since they are priced as one model. The name of a call's run says its step.
    """

    ask: Any = Field(default=None, exclude=True)
    aask: Any = Field(default=None, exclude=True)

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        return self.ask(input, (config or {}).get("run_name"))

    @override
    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        return await self.aask(input, (config or {}).get("run_name"))


class _Asking:
    """One routed model call of an agent.

    Attributes:
        question: The text of the question.
        response: The latest response of the agent's model; None if it could not be parsed.
    """

    def __init__(self, chain: SelfRouteChain, request: ModelRequest[Any], at: int, question: str) -> None:
        self.question = question
        self.response: ModelResponse[Any] | None = None
        self._error: StructuredOutputError | None = None
        self._chain, self._request = chain, request
        self._before, self._asked, self._since = request.messages[:at], request.messages[at], request.messages[at + 1 :]
        self._key = [self._asked.id or at, question]
        turn = cast("_Turn | None", (request.state or {}).get("selfroute_turn"))
        self._turn = turn if turn and self._since and list(turn["question"]) == self._key else None
        # The draft is not paid for again where the reply to the documents called a tool.
        self._start = "long_context" if self._turn and self._turn["step"] == "long_context" else chain.start

    def chain_with(self, **ask: Any) -> SelfRouteChain:
        """Return the chain with the agent's model."""
        model = _Through(bound=self._request.model, **ask)
        return self._chain.model_copy(update={"llm": model, "long_context_llm": None, "start": self._start})

    def starts_anew(self, result: Mapping[str, Any]) -> bool:
        """Return whether a policy forbids reading the documents after a tool once more; then a draft has to do."""
        ruling, start = result["decision"]["ruling"], self._start
        self._start = self._chain.start
        return start != self._start and bool(ruling) and not ruling["go"]

    @contextmanager
    def context_of(self, step: str) -> Iterator[Context]:
        """Yield the context in which a step asks the agent's model: only the last one is shown in the agent's streams.

        The model itself is not marked, since another middleware may ask another one.
        """
        config = ensure_config()
        hidden = [] if step == "long_context" else [TAG_NOSTREAM]
        with set_config_context({**config, "tags": [*config.get("tags", ()), *hidden]}) as context:
            yield context

    def request_for(self, prompt: PromptValue) -> ModelRequest[Any]:
        """Return the request with a step's prompt in place of the user's text; images and files stay beside it."""
        *others, last = cast("list[AnyMessage]", prompt.to_messages())
        content = self._asked.content if isinstance(self._asked.content, list) else []
        beside = [block for block in content if isinstance(block, dict) and block.get("type") != "text"]
        if beside:
            text = last.content if isinstance(last.content, list) else [{"type": "text", "text": last.content}]
            last = last.model_copy(update={"content": [*text, *beside]})
        if isinstance(last, HumanMessage):
            last = self._asked.model_copy(update={"content": last.content})  # with its name, its id and the like
        return self._request.override(messages=[*self._before, *others, last, *self._since])

    @contextmanager
    def hearing(self) -> Iterator[None]:
        """Keep the error about a reply that the agent cannot parse: it has come, and may be a decline."""
        self.response = self._error = None
        try:
            yield
        except StructuredOutputError as error:
            self._error = error

    @property
    def _message(self) -> BaseMessage:
        if self._error:
            return self._error.ai_message
        return self.response.result[0] if self.response and self.response.result else AIMessage("")

    @property
    def _calls_tools(self) -> bool:
        message = self._message
        return isinstance(message, AIMessage) and bool(message.tool_calls or message.invalid_tool_calls)

    def reply(self) -> BaseMessage:
        """Return the model's message as the chain counts and judges it: one that calls tools ends the chain."""
        message = self._message
        if not isinstance(message, AIMessage) or not self._calls_tools:
            return message
        self._chain._memory.ungraded.note(graded=True)  # nobody expects numbers before the call of a tool  # noqa: SLF001
        told = {name: value for name, value in message.response_metadata.items() if name.startswith("model_")}
        return AIMessage(_CALLS_TOOLS, usage_metadata=message.usage_metadata, response_metadata=told)

    def answer(self, result: Mapping[str, Any]) -> ExtendedModelResponse[Any]:
        """Return what the agent is given: the shown answer in the model's message, and what is kept in its state.

        Raises:
            StructuredOutputError: The answer cannot be parsed.
        """
        if self._error and (result["answerable"] or self._calls_tools):
            raise self._error
        structured = self.response.structured_response if self.response else None
        usage = added(self._turn["usage"], result["usage"]) if self._turn else result["usage"]
        if self.response and self._calls_tools and structured is None:
            turn = _Turn(question=self._key, step=result["route"], usage=usage)
            return ExtendedModelResponse(self.response, Command(update={"selfroute": None, "selfroute_turn": turn}))
        brief = brief_of(result, self._chain.source_key)
        report = {key: value for key, value in brief.items() if key != "answer"}
        report |= {"decision": result["decision"], "usage": usage}
        response = self.response
        if response and self._calls_tools:  # a structured response, in which nothing of the text can be cited
            report |= {"citations": []} if "citations" in report else {}
        else:
            shown = self._message
            if shown.text != result["answer"]:
                shown = shown.model_copy(update={"content": result["answer"]})
            response = ModelResponse(result=[shown], structured_response=structured)
        return ExtendedModelResponse(response, Command(update={"selfroute": report, "selfroute_turn": None}))


class _NoModel(Runnable[Any, Any]):
    """Stands where the agent's model will."""

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        msg = "the agent's model is asked"
        raise NotImplementedError(msg)


_NO_MODEL = cast("Runnable[Any, Any]", _NoModel())
