"""Self-Route as middleware of LangChain's agents: the model calls that answer a user's question are routed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from inspect import iscoroutinefunction
from typing import Any, Literal, cast

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse, hook_config
from langchain.agents.middleware.types import ExtendedModelResponse
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.vectorstores import VectorStore
from langgraph.types import Command
from typing_extensions import Self, override

from langchain_selfroute.agents.model import Step
from langchain_selfroute.agents.questions import AgentQuestion
from langchain_selfroute.agents.small_talk import is_question
from langchain_selfroute.agents.state import OVER, Reading, RoutedResponse, SelfRouteState, is_routed, turn_in
from langchain_selfroute.chain import SelfRouteChain
from langchain_selfroute.convert import Source
from selfroute.arguments import Expected, check_takes
from selfroute.documents.access import has_words
from selfroute.errors import ConfigurationError
from selfroute.hangup import cancelled_once

_Handler = Callable[[ModelRequest[Any]], ModelResponse[Any]]
_AsyncHandler = Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
_Response = ModelResponse[Any] | ExtendedModelResponse[Any]
_ROUTES = Expected(
    "a function that takes the text of a message and returns whether it is a question",
    "pass a sync one, such as lambda text: '?' in text, or leave it out",
    lambda value: callable(value) and not iscoroutinefunction(value),
)
_OTHERWISE = Expected(
    "'agent' or None", "pass 'agent' to have the agent answer, or leave it out", lambda value: value in {None, "agent"}
)
_NAME = Expected(
    "a text",
    "pass a name that no other middleware of the agent has",
    lambda value: isinstance(value, str) and bool(value),
)
_HAS_CONFIG = sys.version_info >= (3, 11)  # LangGraph hands the config of a call to awaited nodes from then on
_NO_CONFIG = (
    "on Python 3.10 an awaited agent does not hand on the config of its call, so the filters and callbacks in it would "
    "be lost: call invoke or stream, or run it on Python 3.11 or later"
)


class SelfRouteMiddleware(AgentMiddleware[SelfRouteState, Any, Any]):
    r"""Answer a user's question from the passages; read sections and whole documents only if the model declines.

    The model call that follows a user's message is given the retrieved passages. If its reply declines, or is in doubt,
    it is asked again with sections and then with documents, as `SelfRouteChain` does. A reply that calls tools passes
    as it is and is counted; the calls after the tools are routed, too, until the question is answered. Small talk goes
    to the model as it is. The state gets `selfroute`: the route, the decision, the usage of the whole turn, the sources
    and the citations; it is None where nothing was routed. In `stream_mode="messages"` no draft is streamed: it is
    shown whole if it answers, and not at all if it declines. The reply to whole documents is streamed, except with
    `response_format` or `otherwise`.

    Example:
        ```python
        from langchain.agents import create_agent
        from langchain_core.embeddings import DeterministicFakeEmbedding
        from langchain_core.language_models import FakeListChatModel
        from langchain_core.vectorstores import InMemoryVectorStore
        from langchain_selfroute import SelfRouteMiddleware

        chunks = ["Tea was served at nine. ", "Ms Okafor chaired the meeting."]
        about = [{"source": "minutes", "chunk_index": number} for number in range(2)]
        store = InMemoryVectorStore.from_texts(chunks, DeterministicFakeEmbedding(size=8), about)
        llm = FakeListChatModel(responses=["90 0\nunanswerable", "Ms Okafor"])
        reading = SelfRouteMiddleware.from_vectorstore(store, k=1)
        agent = create_agent(llm, middleware=[reading])
        state = agent.invoke({"messages": [("user", "Who chaired the meeting?")]})
        assert (state["messages"][-1].content, state["selfroute"]["route"]) == ("Ms Okafor", "long_context")
        ```
    """

    state_schema = SelfRouteState

    def __init__(
        self,
        *,
        retriever: Runnable[Any, Any],
        documents: Source | None = None,
        routes: Callable[[str], bool] | None = None,
        otherwise: Literal["agent"] | None = None,
        name: str | None = None,
        **options: Any,
    ) -> None:
        """Read through a retriever.

        Args:
            retriever: Finds the passages.
            documents: Where whole documents come from, as in `SelfRouteChain`.
            routes: Takes the text of a user's message and returns whether it is a question; None for all but small
                talk. It is not asked about a message without a letter or a digit, for which nothing can be found.
            otherwise: With `"agent"`, the agent answers by itself where the documents hold nothing; None for the
                chain's refusal.
            name: Tells two in one agent apart; None for the name of the class.
            **options: Options of `SelfRouteChain`, but for its models.

        Raises:
            ConfigurationError: The parts cannot work together, or a model is passed: the agent has it.
        """
        _refuse_models(options)
        chain = SelfRouteChain(retriever=retriever, llm=_NO_MODEL, documents=documents, **options)
        self._set_up(chain, options, routes=routes, otherwise=otherwise, name=name)

    @classmethod
    def from_vectorstore(
        cls,
        vectorstore: VectorStore,
        *,
        routes: Callable[[str], bool] | None = None,
        otherwise: Literal["agent"] | None = None,
        name: str | None = None,
        **options: Any,
    ) -> Self:
        """Read a vector store.

        Args:
            vectorstore: The store that holds the chunks.
            routes: As in the constructor.
            otherwise: As in the constructor.
            name: As in the constructor.
            **options: The arguments of `SelfRouteChain.from_vectorstore`, but for the model.
        """
        _refuse_models(options)
        chain, made = SelfRouteChain.from_vectorstore(vectorstore, _NO_MODEL, **options), cls.__new__(cls)
        made._set_up(chain, options, routes=routes, otherwise=otherwise, name=name)  # noqa: SLF001
        return made

    def _set_up(
        self,
        chain: SelfRouteChain,
        options: Mapping[str, Any],
        *,
        routes: Callable[[str], bool] | None,
        otherwise: str | None,
        name: str | None,
    ) -> None:
        AgentMiddleware.__init__(self)
        if routes is not None:
            _ROUTES.check("routes", routes)
            check_takes("routes", routes, "text")
        _OTHERWISE.check("otherwise", otherwise)
        name = _NAME.check("name", type(self).__name__ if name is None else name)
        self._routes = routes or is_question
        has_own_prompts = bool(options.keys() & {"rag_prompt", "long_context_prompt"})
        self._reading = Reading(chain, name, hands_back=otherwise is not None, has_own_prompts=has_own_prompts)

    @property
    @override
    def name(self) -> str:
        """The name in the agent's graph."""
        return self._reading.name

    @override
    def before_agent(self, state: SelfRouteState, runtime: Any) -> dict[str, Any]:
        """Clear the report of the turn before."""
        turn = turn_in(state, self.name)
        return {"selfroute": None, **(self._reading.updates(None) if turn and turn["step"] == OVER else {})}

    @override
    @hook_config(can_jump_to=["end"])
    def after_model(self, state: SelfRouteState, runtime: Any) -> dict[str, Any] | None:
        """End the turn of an agent with a `response_format` where the documents hold no answer."""
        turn = turn_in(state, self.name)
        return {"jump_to": "end"} if turn and turn["step"] == OVER else None

    @override
    def wrap_model_call(self, request: ModelRequest[Any], handler: _Handler) -> _Response:
        """Route the calls that answer a user's question; leave others as they are."""
        asking = self._asking(request)
        if asking is None:
            return self._untouched(request, handler(request))

        def ask(step: Step) -> BaseMessage:
            with asking.hearing(), asking.context_of(step.name) as context:
                asking.response = context.run(handler, asking.request_for(step))
            return asking.reply()

        if not asking.is_handed_back:
            result = asking.chain_with(ask=ask).invoke(asking.question)
            if asking.needs_a_draft(result):
                result = asking.chain_with(ask=ask).invoke(asking.question)
            if (answer := asking.answer(result)) is not None:
                return answer
        return asking.handed_back(handler(asking.request_of_the_agent()))

    @override
    async def awrap_model_call(self, request: ModelRequest[Any], handler: _AsyncHandler) -> _Response:
        """The async twin of `wrap_model_call`.

        Raises:
            ConfigurationError: Python is older than 3.11, so that it is not known what the question may read.
        """
        asking = self._asking(request)
        if asking is None:
            return self._untouched(request, await handler(request))
        if not _HAS_CONFIG:
            raise ConfigurationError(_NO_CONFIG)

        async def ask(step: Step) -> BaseMessage:
            with asking.hearing(), asking.context_of(step.name) as context:
                replying = context.run(asyncio.ensure_future, handler(asking.request_for(step)))
                asking.response = await cancelled_once(replying)
            return asking.reply()

        if not asking.is_handed_back:
            result = await asking.chain_with(aask=ask).ainvoke(asking.question)
            if asking.needs_a_draft(result):
                result = await asking.chain_with(aask=ask).ainvoke(asking.question)
            if (answer := asking.answer(result)) is not None:
                return answer
        return asking.handed_back(await handler(asking.request_of_the_agent()))

    def _asking(self, request: ModelRequest[Any]) -> AgentQuestion | None:
        """Return the question that a model call is to answer; None if it has no question."""
        messages = request.messages
        if is_routed(request) or not messages or not isinstance(messages[-1], HumanMessage | ToolMessage):
            return None
        at = next((at for at in reversed(range(len(messages))) if isinstance(messages[at], HumanMessage)), None)
        if at is None:
            return None
        if messages[at].additional_kwargs.get("lc_source") == "summarization":  # it stands for the question, too
            turn = turn_in(request.state, self.name)
            if turn is None:
                return None
            id_, question = turn["question"]
            at += 1
            request = request.override(messages=[*messages[:at], HumanMessage(question, id=str(id_)), *messages[at:]])
        text = str(request.messages[at].text)
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # no half characters
        return AgentQuestion(self._reading, request, at, text) if has_words(text) and self._routes(text) else None

    def _untouched(self, request: ModelRequest[Any], response: ModelResponse[Any]) -> _Response:
        """Return a response that is not routed; no report of an earlier answer stays."""
        if is_routed(request):
            return response
        stays = isinstance(response, RoutedResponse) or not (request.state or {}).get("selfroute")
        clear: dict[str, Any] = {} if stays else {"selfroute": None}
        return ExtendedModelResponse(response, Command(update={**clear, **self._reading.updates(None)}))


def _refuse_models(options: Mapping[str, Any]) -> None:
    for name in ("llm", "long_context_llm"):
        if name in options:
            msg = f"{name} is the agent's model: leave it out"
            raise ConfigurationError(msg)
    if options.get("answerability") == "structured":
        msg = "the agent's response_format has its model fill in a report: leave answerability='structured' out"
        raise ConfigurationError(msg)


class _NoModel(Runnable[Any, Any]):
    """Stands where the agent's model will."""

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        msg = "the agent's model is asked"
        raise NotImplementedError(msg)


_NO_MODEL = cast("Runnable[Any, Any]", _NoModel())
