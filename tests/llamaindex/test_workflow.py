"""The workflow: its events, its response, a run that is resumed, and an agent that has it as a tool."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import pytest

pytest.importorskip("workflows")

from llama_index.core import Document, MockEmbedding, VectorStoreIndex
from llama_index.core.node_parser import TokenTextSplitter
from llama_index.core.workflow import Event, WorkflowRuntimeError

from llamaindex_parts import ScriptedLLM
from llamaindex_selfroute import SelfRouteQueryEngine, SelfRouteWorkflow
from llamaindex_selfroute.workflow import DocumentsEvent, RouteEvent, TextEvent
from selfroute.errors import ConfigurationError, InputError

QUESTION = "What does the crane lift?"
ANSWERED, DECLINED = ("It lifts ", "nets."), ("The passages do not ", "mention that.")
WHOLE = ("Nets ", "and ", "barrels.")


def engine_of(**fields: Any) -> tuple[SelfRouteQueryEngine, ScriptedLLM]:
    llm = ScriptedLLM(
        **{
            "draft": DECLINED,
            "final": WHOLE,
            "marker": "Read the following",
            **{k: v for k, v in fields.items() if k != "streaming"},
        }
    )
    text = " ".join(f"The crane lifts {n} nets and barrels." for n in range(120))
    index = VectorStoreIndex.from_documents(
        [Document(text=text, id_="crane")],
        embed_model=MockEmbedding(8),
        transformations=[TokenTextSplitter(chunk_size=100, chunk_overlap=0)],  # which needs no nltk
    )
    return SelfRouteQueryEngine.from_index(index, llm=llm, streaming=fields.get("streaming", False)), llm


async def run(engine: SelfRouteQueryEngine, **given: Any) -> tuple[list[Event], Any]:
    handler = SelfRouteWorkflow(engine).run(**(given or {"question": QUESTION}))
    events = [event async for event in handler.stream_events()]
    return events, await handler


def kinds(events: list[Event]) -> list[str]:
    return [type(event).__name__ for event in events if type(event).__name__ != "StopEvent"]


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "stream"])
async def test_a_draft_that_answers_ends_the_run(streaming: bool) -> None:
    engine, llm = engine_of(draft=ANSWERED, final=None, streaming=streaming)
    events, response = await run(engine)
    assert (str(response), response.metadata["route"]) == ("It lifts nets.", "rag")
    assert [kind for kind in kinds(events) if kind != "TextEvent"] == ["RouteEvent"]
    assert len(llm.calls) == 1


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "stream"])
async def test_workflow_reads_documents_after_a_decline(streaming: bool) -> None:
    engine, llm = engine_of(streaming=streaming)
    events, response = await run(engine)
    assert (str(response), response.metadata["route"]) == ("Nets and barrels.", "long_context")
    assert kinds(events) == ["RouteEvent", "DocumentsEvent", *["TextEvent"] * (len(WHOLE) if streaming else 0)]
    (decided,) = (event for event in events if isinstance(event, RouteEvent))
    assert (decided.route, decided.decision["declined"]) == ("long_context", True)
    (documents,) = (event for event in events if isinstance(event, DocumentsEvent))
    assert list(documents.sources) == ["crane"]
    text = "".join(event.delta for event in events if isinstance(event, TextEvent))
    assert text == ("Nets and barrels." if streaming else "")
    assert len(llm.calls) == 2


async def test_workflow_that_is_cancelled_stops_its_model() -> None:
    engine, llm = engine_of(final=tuple(f"word {number} " for number in range(500)), streaming=True, delay=0.01)

    async def read() -> None:
        handler = SelfRouteWorkflow(engine).run(question=QUESTION)
        try:
            async for event in handler.stream_events():
                if isinstance(event, TextEvent):
                    requests.cancel_scope.cancel()  # as FastAPI drops a request
        finally:
            with anyio.CancelScope(shield=True):
                await handler.cancel_run()

    async with anyio.create_task_group() as requests:
        requests.start_soon(read)
    for _ in range(100):  # an older cancel_run does not wait for the end
        await asyncio.sleep(0 if llm.calls[-1].ended == "closed" else 0.01)
    assert (llm.calls[-1].ended, llm.calls[-1].emitted < 30) == ("closed", True)


@pytest.mark.parametrize("name", ["question", "query", "input", "user_msg"])
async def test_the_question_may_be_called_as_in_other_workflows(name: str) -> None:
    engine, _ = engine_of(draft=ANSWERED, final=None)
    _, response = await run(engine, **{name: QUESTION})
    assert str(response) == "It lifts nets."


async def test_without_a_question_it_says_what_it_takes() -> None:
    with pytest.raises((InputError, WorkflowRuntimeError), match="takes a question"):  # older workflows wrap errors
        await run(engine_of()[0], topic=QUESTION)


@pytest.mark.parametrize(
    "other", ["engine", SelfRouteQueryEngine, Document(text="x")], ids=lambda one: type(one).__name__
)
def test_what_is_no_engine_is_refused_at_once(other: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^engine must be a SelfRouteQueryEngine, not .*: pass"):
        SelfRouteWorkflow(other)
