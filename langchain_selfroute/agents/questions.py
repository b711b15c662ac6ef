"""One question in an agent: its model as the chain's, and what the agent is given and keeps of the answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import Context
from typing import Annotated, Any, cast

from langchain.agents.middleware import AgentState, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ExtendedModelResponse, PrivateStateAttr
from langchain.agents.structured_output import StructuredOutputError
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.base import RunnableBinding
from langchain_core.runnables.config import ensure_config, set_config_context
from langgraph.constants import TAG_NOSTREAM
from langgraph.types import Command
from pydantic import Field
from typing_extensions import NotRequired, TypedDict, override

from langchain_selfroute.chain import SelfRouteChain
from langchain_selfroute.retrieving import source_key_of
from langchain_selfroute.schema import brief_of
from selfroute.usage.rows import added

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


class Turn(TypedDict):
    """What is kept of a question while its tools are called: which message it is, the step that called, the usage."""

    question: Sequence[Any]
    step: str
    usage: Mapping[str, Any]


class SelfRouteState(AgentState[Any]):
    """The state of an agent with this middleware."""

    selfroute: NotRequired[SelfRouteReport | None]
    selfroute_turn: NotRequired[Annotated[Turn | None, PrivateStateAttr]]


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


class AgentQuestion:
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
        turn = cast("Turn | None", (request.state or {}).get("selfroute_turn"))
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
        """Return the request with a step's prompt in place of the user's text; images and files stay."""
        *others, last = cast("list[AnyMessage]", prompt.to_messages())
        content = self._asked.content if isinstance(self._asked.content, list) else []
        files = [block for block in content if isinstance(block, dict) and block.get("type") != "text"]
        if files:
            text = last.content if isinstance(last.content, list) else [{"type": "text", "text": last.content}]
            last = last.model_copy(update={"content": [*text, *files]})
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
        about = {name: value for name, value in message.response_metadata.items() if name.startswith("model_")}
        return AIMessage(_CALLS_TOOLS, usage_metadata=message.usage_metadata, response_metadata=about)

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
            turn = Turn(question=self._key, step=result["route"], usage=usage)
            return ExtendedModelResponse(self.response, Command(update={"selfroute": None, "selfroute_turn": turn}))
        brief = brief_of(result, source_key_of(self._chain.documents))
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
