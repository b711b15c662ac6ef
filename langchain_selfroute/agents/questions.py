"""One question in an agent: its model as the chain's, and what the agent is given and keeps of the answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context
from typing import Any, cast

from langchain.agents.middleware import AgentState, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ExtendedModelResponse
from langchain.agents.structured_output import StructuredOutputError
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langchain_core.runnables.config import ensure_config, set_config_context
from langgraph.constants import TAG_NOSTREAM
from langgraph.types import Command

from langchain_selfroute.agents.model import AgentModel, Step, mentioning_tools
from langchain_selfroute.agents.response_format import DECLINING, ResponseFormat
from langchain_selfroute.agents.state import AGENT, IS_ROUTED, OVER, SPENT, Reading, RoutedResponse, Turn, turn_in
from langchain_selfroute.chain import SelfRouteChain
from langchain_selfroute.retrieving import source_key_of
from langchain_selfroute.schema import brief_of
from selfroute.usage.rows import added

_CALLS_TOOLS = "The model calls a tool."
"""Stands in the chain for a reply that calls tools; it is judged as an answer, so that the chain ends there."""


class AgentQuestion:
    """One routed model call of an agent.

    Attributes:
        question: The text of the question.
        response: The latest response of the agent's model; None if it could not be parsed.
        is_handed_back: Whether the documents held nothing, so that the agent answers.
    """

    def __init__(self, reading: Reading, request: ModelRequest[Any], at: int, question: str) -> None:
        self.question = question
        self.response: ModelResponse[Any] | None = None
        self._error: StructuredOutputError | None = None
        self._declined = False
        self._reading, self._request = reading, request
        self._format = ResponseFormat.of(request, reading.chain.refusal)
        self._before, self._asked, self._since = request.messages[:at], request.messages[at], request.messages[at + 1 :]
        self._key = [self._asked.id or at, question]
        turn = turn_in(request.state, reading.name)
        self._turn = turn if turn and self._since and list(turn["question"]) == self._key else None
        self.is_handed_back = bool(self._turn and self._turn["step"] == AGENT)
        # The draft is not paid for again where the reply to the documents called a tool.
        is_read = self._turn and self._turn["step"] == "long_context"
        self._start = "long_context" if is_read else reading.chain.start

    def chain_with(self, **ask: Any) -> SelfRouteChain:
        """Return the chain with the agent's model."""
        model = AgentModel(bound=self._request.model, **ask)
        update: dict[str, Any] = {"llm": model, "long_context_llm": None, "start": self._start}
        if self._format and self._format.by_provider:
            update["answerability"] = "structured"
        elif self._format:  # the call of a tool has no numbers
            update |= {"answerability": "text", "doubt_below": None, "stop_below": None}
        return self._reading.chain.model_copy(update=update)

    def needs_a_draft(self, result: Mapping[str, Any]) -> bool:
        """Return whether a draft has to do, since a policy forbids reading the documents once more after a tool."""
        ruling, start = result["decision"]["ruling"], self._start
        self._start = self._reading.chain.start
        return start != self._start and bool(ruling) and not ruling["go"]

    @contextmanager
    def context_of(self, step: str) -> Iterator[Context]:
        """Yield the context in which a step asks the agent's model, with the step's tag.

        Only a last step that is shown as it comes is shown in the agent's streams. The model itself is not marked,
        since another middleware may ask another one.
        """
        config = ensure_config()
        is_shown = step == "long_context" and not self._format and not self._reading.hands_back
        tags = [f"selfroute:{step}", *([] if is_shown else [TAG_NOSTREAM])]
        with set_config_context({**config, "tags": [*config.get("tags", ()), *tags]}) as context:
            yield context

    def request_for(self, step: Step) -> ModelRequest[Any]:
        """Return the request with a step's prompt in place of the user's text; images and files stay.

        Where the agent has tools, our own prompts mention them.
        """
        *others, last = cast("list[AnyMessage]", step.prompt.to_messages())
        if self._request.tools and not self._reading.has_own_prompts:
            last = last.model_copy(update={"content": mentioning_tools(last.content)})
        content = self._asked.content if isinstance(self._asked.content, list) else []
        files = [block for block in content if isinstance(block, dict) and block.get("type") != "text"]
        if files:
            text = last.content if isinstance(last.content, list) else [{"type": "text", "text": last.content}]
            last = last.model_copy(update={"content": [*text, *files]})
        if isinstance(last, HumanMessage):
            last = self._asked.model_copy(update={"content": last.content})  # with its name, its id and the like
        formatted = self._format.overrides(self._request, step.report) if self._format else {}
        state = cast("AgentState[Any]", {**self._request.state, IS_ROUTED: True})
        messages = [*self._before, *others, last, *self._since]
        return self._request.override(messages=messages, state=state, **formatted)

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
        calls = isinstance(message, AIMessage) and bool(message.tool_calls or message.invalid_tool_calls)
        return calls and not self._declined

    def reply(self) -> BaseMessage:
        """Return the model's message as the chain counts and judges it: one that calls tools ends the chain."""
        message, self._declined = self._message, False
        if not isinstance(message, AIMessage):
            return message
        if self._calls_tools:
            self._declined = self._declines_by_call(message)
            if not self._declined:
                self._memory.ungraded.note(graded=True)  # nobody expects numbers before the call of a tool
            return self._said(message, self._reading.chain.refusal if self._declined else _CALLS_TOOLS)
        report = self._format.report_in(message.text) if self._format and self._format.by_provider else None
        return message if report is None else self._said(message, json.dumps(report, ensure_ascii=False))

    @property
    def _memory(self) -> Any:
        return self._reading.chain._memory  # noqa: SLF001

    def _declines_by_call(self, message: AIMessage) -> bool:
        """Return whether a reply calls the tool that declines, or declines in a field of its answer."""
        if self._format is None or self._format.by_provider:
            return False
        if any(call["name"] == DECLINING for call in message.tool_calls):
            return True
        is_answer = self.response is not None and self.response.structured_response is not None
        return is_answer and any(self._format.declines(call["args"]) for call in message.tool_calls)

    @staticmethod
    def _said(message: AIMessage, text: str) -> AIMessage:
        """Return a message with the same counts and another text."""
        about = {name: value for name, value in message.response_metadata.items() if name.startswith("model_")}
        return AIMessage(text, usage_metadata=message.usage_metadata, response_metadata=about)

    def answer(self, result: Mapping[str, Any]) -> ExtendedModelResponse[Any] | None:
        """Return what the agent is given: the shown answer in the model's message, and what is kept in its state.

        Returns:
            None if the question is handed back to the agent.

        Raises:
            StructuredOutputError: The answer cannot be parsed.
        """
        if self._error and self._calls_tools:
            raise self._error
        spent: Any = self._turn["usage"] if self._turn else self._request.state.get(SPENT)
        usage = added(spent, result["usage"]) if spent else result["usage"]
        structured = self.response.structured_response if self.response else None
        if self.response and self._calls_tools and structured is None:
            turn = Turn(question=self._key, step=result["route"], usage=usage)
            return ExtendedModelResponse(
                self.response, Command(update={"selfroute": None, **self._reading.updates(turn)})
            )
        if self._reading.hands_back and not result["answerable"]:
            self._turn, self.is_handed_back = Turn(question=self._key, step=AGENT, usage=usage), True
            return None
        brief = brief_of(result, source_key_of(self._reading.chain.documents))
        report = {key: value for key, value in brief.items() if key != "answer"}
        report |= {"decision": result["decision"], "usage": usage}
        response = self.response
        if response and self._calls_tools:  # a structured response, in which nothing of the text can be cited
            report |= {"citations": []} if "citations" in report else {}
            response = RoutedResponse(response.result, structured)
        else:
            response = self._response_with(result["answer"], answerable=result["answerable"])
        # The agent would ask again for a structured response, which does not exist: `after_model` ends its turn.
        is_over = self._format and response.structured_response is None
        ended = Turn(question=self._key, step=OVER, usage=usage) if is_over else None
        kept = {"selfroute": report, **self._reading.updates(ended)}
        return ExtendedModelResponse(response, Command(update=kept))

    def _response_with(self, answer: str, *, answerable: bool) -> ModelResponse[Any]:
        """Return the response that shows an answer."""
        shown, structured = self._message, None
        if self._declined:
            shown = self._said(cast("AIMessage", shown), answer).model_copy(update={"id": shown.id})
        elif shown.text != answer:
            shown = shown.model_copy(update={"content": answer})
        if self._format and self._format.by_provider and answerable:
            structured = self._format.parsed(answer, cast("AIMessage", shown))
        return RoutedResponse(result=[shown], structured_response=structured)

    def request_of_the_agent(self) -> ModelRequest[Any]:
        """Return the request of a question that is handed back, which tells the next middleware what was spent."""
        spent = self._turn["usage"] if self._turn else None
        return self._request.override(state=cast("AgentState[Any]", {**self._request.state, SPENT: spent}))

    def handed_back(self, response: ModelResponse[Any]) -> ExtendedModelResponse[Any]:
        """Return the agent's own response; the rest of this turn is the agent's, too."""
        return ExtendedModelResponse(response, Command(update=self._reading.updates(self._turn)))
