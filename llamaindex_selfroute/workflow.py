"""Self-Route as a workflow of LlamaIndex, with typed events while it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.base.response.schema import RESPONSE_TYPE, AsyncStreamingResponse
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step

from llamaindex_selfroute.query_engine import SelfRouteQueryEngine
from selfroute.arguments import Expected
from selfroute.errors import InputError

_ENGINE = Expected(
    "a SelfRouteQueryEngine",
    "pass SelfRouteQueryEngine.from_index(index, llm=llm)",
    lambda value: isinstance(value, SelfRouteQueryEngine),
)
_NAMES = ("question", "query", "input", "user_msg")
"""What the question may be called when the workflow is run."""


class RouteEvent(Event):
    """The step that answers is known.

    Attributes:
        route: The step.
        decision: Why, as in `response.metadata["decision"]`.
    """

    route: str
    decision: Mapping[str, Any]


class SectionsEvent(Event):
    """The answer comes from sections of documents.

    Attributes:
        sources: The names of the documents.
    """

    sources: Sequence[str]


class DocumentsEvent(SectionsEvent):
    """The answer comes from whole documents."""


class TextEvent(Event):
    """The next piece of the answer, where the engine streams.

    Attributes:
        delta: The piece.
    """

    delta: str


class SelfRouteWorkflow(Workflow):
    """Answer a question as an engine does; `await workflow.run(question="...")` returns its response.

    No event shows a declined draft, but for the words by which it declined (`evidence`).

    Example:
        ```python
        import asyncio
        from llama_index.core import Document, MockEmbedding, VectorStoreIndex
        from llama_index.core.llms import MockLLM
        from llamaindex_selfroute import SelfRouteQueryEngine, SelfRouteWorkflow

        minutes = Document(text="Ms Okafor chaired the meeting. ...")
        index = VectorStoreIndex.from_documents([minutes], embed_model=MockEmbedding(embed_dim=8))
        workflow = SelfRouteWorkflow(SelfRouteQueryEngine.from_index(index, llm=MockLLM(max_tokens=3)))


        async def ask(question):
            handler = workflow.run(question=question)
            async for event in handler.stream_events():
                print(event)
            return await handler


        response = asyncio.run(ask("Who chaired the meeting?"))
        assert response.metadata["route"] == "rag"
        ```
    """

    def __init__(self, engine: SelfRouteQueryEngine, *, timeout: float | None = None, **options: Any) -> None:
        """Run an engine.

        Args:
            engine: The engine; with `streaming=True` the answer comes in `TextEvent`s.
            timeout: The most seconds that a run may take; None for no limit.
            **options: Other options of `Workflow`.

        Raises:
            ConfigurationError: It is no such engine.
        """
        super().__init__(timeout=timeout, **options)
        self._engine = _ENGINE.check("engine", engine)

    @step
    async def answer(self, ctx: Context, event: StartEvent) -> StopEvent:
        """Answer the question."""
        response = await self._engine.aquery(_question_in(event))
        if isinstance(response, AsyncStreamingResponse):
            is_sent = False
            async for piece in response.async_response_gen():
                if not is_sent:
                    _send_route(ctx, response)  # which knows it from its first text on
                    is_sent = True
                ctx.write_event_to_stream(TextEvent(delta=piece))
            return StopEvent(result=await response.get_response())
        _send_route(ctx, response)
        return StopEvent(result=response)


def _send_route(ctx: Context, response: RESPONSE_TYPE) -> None:
    """Send the route, and the names of what was read."""
    about: Mapping[str, Any] = response.metadata or {}
    ctx.write_event_to_stream(RouteEvent(route=about["route"], decision=about["decision"]))
    names = [one.node.ref_doc_id or one.node.node_id for one in response.source_nodes]
    kinds = {"sections": SectionsEvent, "long_context": DocumentsEvent}
    if kind := kinds.get(about["route"]):
        ctx.write_event_to_stream(kind(sources=list(dict.fromkeys(names))))


def _question_in(event: StartEvent) -> str:
    for name in _NAMES:
        value = event.get(name, None)
        if isinstance(value, str):
            return value
    msg = 'the workflow takes a question: run(question="...")'
    raise InputError(msg)
