"""Self-Route as middleware of LangChain's agents: the model call that answers a user's question is routed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ExtendedModelResponse
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.base import RunnableBinding
from langchain_core.vectorstores import VectorStore
from langgraph.constants import TAG_NOSTREAM
from langgraph.types import Command
from pydantic import Field
from typing_extensions import NotRequired, Self, TypedDict, override

from langchain_selfroute.chain import SelfRouteChain
from langchain_selfroute.convert import Source
from langchain_selfroute.runs import recorded
from langchain_selfroute.schema import brief_of
from selfroute.errors import ConfigurationError

_Answered = ExtendedModelResponse[Any] | ModelResponse[Any] | AIMessage
_Handler = Callable[[ModelRequest[Any]], ModelResponse[Any]]
_AsyncHandler = Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]


class SelfRouteReport(TypedDict):
    """What is said of the latest routed answer in the agent's state; the keys are those of `SelfRouteOutput`."""

    route: str
    answerable: bool
    decision: Mapping[str, Any]
    usage: Mapping[str, Any]
    sources: Sequence[str]
    citations: NotRequired[Sequence[Mapping[str, Any]]]


class SelfRouteState(AgentState[Any]):
    """The state of an agent with this middleware."""

    selfroute: NotRequired[SelfRouteReport]


class SelfRouteMiddleware(AgentMiddleware[SelfRouteState, Any, Any]):
    """Answer a user's question from the passages; read sections and whole documents only if the model declines.

    The model call that follows a user's message is given the retrieved passages. If its reply declines, or is in doubt,
    it is asked again with sections and then with documents, as `SelfRouteChain` does. A reply that calls tools passes
    as it is, and so do all model calls after it. The state gets `selfroute`: the route, the decision, the usage, the
    sources and the citations. In `stream_mode="messages"` no draft is streamed: it is shown whole if it answers, and
    not at all if it declines; the reply to whole documents is streamed.

    Example:
        ```python
        from langchain.agents import create_agent
        from langchain_selfroute import SelfRouteMiddleware

        reading = SelfRouteMiddleware.from_vectorstore(vectorstore, answerability="graded", sections=4_000)
        agent = create_agent("openai:gpt-5-mini", tools=[...], middleware=[reading])
        ```
    """

    state_schema = SelfRouteState

    def __init__(self, *, retriever: Runnable[Any, Any], documents: Source | None = None, **options: Any) -> None:
        """Read through a retriever.

        Args:
            retriever: Finds the passages.
            documents: Where whole documents come from, as in `SelfRouteChain`.
            **options: Options of `SelfRouteChain`, but for its models and prompts of its own.

        Raises:
            ConfigurationError: The parts cannot work together, or a model is passed: the agent has it.
        """
        super().__init__()
        _refuse_options(options)
        self._chain = SelfRouteChain(retriever=retriever, llm=_NO_MODEL, documents=documents, **options)

    @classmethod
    def from_vectorstore(cls, vectorstore: VectorStore, **options: Any) -> Self:
        """Read a vector store, with the arguments of `SelfRouteChain.from_vectorstore` but for the model."""
        _refuse_options(options)
        made = cls.__new__(cls)
        AgentMiddleware.__init__(made)
        made._chain = SelfRouteChain.from_vectorstore(vectorstore, _NO_MODEL, **options)  # noqa: SLF001
        return made

    @override
    def wrap_model_call(self, request: ModelRequest[Any], handler: _Handler) -> _Answered:
        """Route the call that answers a user's question; leave others as they are."""
        question = _question_of(request)
        if question is None:
            return handler(request)
        asking = _Asking(request)

        def ask(prompt: PromptValue, *, shown: bool) -> BaseMessage:
            return asking.take(handler(asking.request_for(prompt, shown=shown)))

        chain = asking.chain_of(self._chain, ask=ask)
        try:
            result = chain.invoke(question)
        except Exception:
            if asking.acted is None:
                raise
            return asking.acted
        return asking.answer(result, self._chain.source_key)

    @override
    async def awrap_model_call(self, request: ModelRequest[Any], handler: _AsyncHandler) -> _Answered:
        """Do as `wrap_model_call` does, asynchronously."""
        question = _question_of(request)
        if question is None:
            return await handler(request)
        asking = _Asking(request)

        async def ask(prompt: PromptValue, *, shown: bool) -> BaseMessage:
            return asking.take(await handler(asking.request_for(prompt, shown=shown)))

        chain = asking.chain_of(self._chain, aask=ask)
        try:
            result = await chain.ainvoke(question)
        except Exception:
            if asking.acted is None:
                raise
            return asking.acted
        return asking.answer(result, self._chain.source_key)


def _refuse_options(options: Mapping[str, Any]) -> None:
    for name in ("llm", "long_context_llm"):
        if name in options:
            msg = f"{name} is the agent's model: leave it out"
            raise ConfigurationError(msg)
    if options.get("answerability") == "structured":
        msg = "the agent's model replies in text: set answerability to 'text' or 'graded', not 'structured'"
        raise ConfigurationError(msg)


class _Through(RunnableBinding[Any, Any]):  # type: ignore[no-redef]
    """An agent's model, which is asked through the agent; its name, window and price are the model's own."""

    ask: Any = Field(default=None, exclude=True)
    aask: Any = Field(default=None, exclude=True)
    shown: bool = False

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        return self.ask(input, shown=self.shown)

    @override
    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        return await self.aask(input, shown=self.shown)


class _Asking:
    """One routed model call of an agent.

    Attributes:
        acted: The response that called tools, which ends the routing; None if none was called.
    """

    def __init__(self, request: ModelRequest[Any]) -> None:
        self._request = request
        self._last: ModelResponse[Any] | None = None
        self.acted: ModelResponse[Any] | None = None

    def chain_of(self, chain: SelfRouteChain, **ask: Any) -> SelfRouteChain:
        """Return the chain with the agent's model."""
        models = [_Through(bound=self._request.model, shown=shown, **ask) for shown in (False, True)]
        return chain.model_copy(update={"llm": models[0], "long_context_llm": models[1]})

    def request_for(self, prompt: PromptValue, *, shown: bool) -> ModelRequest[Any]:
        """Return the request with a step's prompt in place of the user's text; images and files stay beside it."""
        model, (*before, question) = self._request.model, self._request.messages
        *others, last = cast("list[AnyMessage]", prompt.to_messages())
        content = question.content if isinstance(question.content, list) else []
        beside = [block for block in content if isinstance(block, dict) and block.get("type") != "text"]
        if beside:
            text = last.content if isinstance(last.content, list) else [{"type": "text", "text": last.content}]
            last = last.model_copy(update={"content": [*text, *beside]})
        messages = [*before, *others, last]
        return self._request.override(messages=messages, model=model if shown else _hidden(model))

    def take(self, response: ModelResponse[Any]) -> BaseMessage:
        """Keep a response, and return the message of the model.

        Raises:
            RuntimeError: It calls tools, so that it is the agent's turn.
        """
        self._last = response
        message = response.result[0]
        if getattr(message, "tool_calls", None):
            self.acted = response
            msg = "the model called a tool, so the question goes on in the agent"
            raise RuntimeError(msg)
        return message

    def answer(self, result: Mapping[str, Any], source_key: str) -> _Answered:
        """Return what the agent is given: the shown answer in the model's message, and the report for its state."""
        brief = brief_of(result, source_key)
        report = {key: value for key, value in brief.items() if key != "answer"}
        report |= {key: recorded(result)[key] for key in ("decision", "usage")}
        last = self._last
        message = last.result[0] if last else AIMessage("")
        shown = message.model_copy(update={"content": result["answer"]})
        response = ModelResponse(result=[shown], structured_response=last.structured_response if last else None)
        return ExtendedModelResponse(response, Command(update={"selfroute": report}))


def _question_of(request: ModelRequest[Any]) -> str | None:
    """Return the user's message that is to be answered; None if it is not the last one, or blank."""
    last = request.messages[-1] if request.messages else None
    text = last.text if isinstance(last, HumanMessage) else ""
    return text if text.strip() else None


def _hidden(model: Any) -> Any:
    """Return a model whose replies are kept out of the agent's streams."""
    if isinstance(model, BaseChatModel):
        return model.model_copy(update={"tags": [*(model.tags or []), TAG_NOSTREAM]})
    return model.with_config(tags=[TAG_NOSTREAM])  # one that the config of a call chooses


class _NoModel(Runnable[Any, Any]):
    """Stands where the agent's model will."""

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        msg = "the agent's model is asked"
        raise NotImplementedError(msg)


_NO_MODEL = cast("Runnable[Any, Any]", _NoModel())
