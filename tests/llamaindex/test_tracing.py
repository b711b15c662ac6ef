"""What the host's handlers see: the events, spans and callbacks of a `RetrieverQueryEngine`, and the decision."""

from __future__ import annotations

import json
import logging
import sys
from collections import Counter
from functools import singledispatchmethod
from types import SimpleNamespace
from typing import Any

import pytest
from llama_index.core.instrumentation.dispatcher import instrument_tags
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.query import QueryStartEvent
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import CompactAndRefine
from llama_index.core.schema import Document

from llamaindex_parts import (
    AWAITED,
    DOCUMENTS,
    MODES,
    PASSAGES,
    STREAMS,
    ListRetriever,
    Recording,
    ScriptedLLM,
    an_engine,
    ask,
    engine_for,
    name_of,
    recorded,
)
from llamaindex_selfroute import SelfRouteDecisionEvent, SelfRouteQueryEngine, SelfRouteQueryEvent
from scenarios import DECLINED, NOTHING_RETRIEVED, PLAIN, QUESTION, Scenario

every_mode = pytest.mark.parametrize("mode", MODES)
every_kind = pytest.mark.parametrize("is_chat", [True, False], ids=["chat", "completion"])
every_route = pytest.mark.parametrize("scenario", [PLAIN, DECLINED, NOTHING_RETRIEVED], ids=str)
ANSWER = ("Mr", " Lin", " took", " the", " chair", ".")
HELPERS = ("GetResponse", "LLMPredict", "StreamChat")  # for a reply's text alone; they are not gone through
CORE = "QueryStart RetrievalStart RetrievalEnd SynthesizeStart SynthesizeEnd QueryEnd"
CALLBACKS = {"query", "retrieve", "synthesize", "llm"}


def events_of(recording: Recording) -> list[str]:
    """The names of the events, without those of the host's helpers and our own."""
    return [name for name in recording.events.names if not name.startswith((*HELPERS, "SelfRoute"))]


def core_of(recording: Recording) -> str:
    """The events that tell of query, retrieval and synthesis."""
    names = (name.removesuffix("Event") for name in recording.events.names)
    return " ".join(name for name in names if name.startswith(("Query", "Retrieval", "Synthesize")))


def calls_of(scenario: Scenario) -> int:
    """How often a model is asked."""
    return (scenario.draft is not None) + (scenario.final is not None)


async def both(mode: str, is_chat: bool) -> list[Recording]:
    """What an engine and the host's own tell of the same question, answered from the passages."""
    told = []
    for kind in (SelfRouteQueryEngine, RetrieverQueryEngine):
        with recorded() as recording:
            manager, llm = recording.manager, ScriptedLLM(draft=ANSWER, is_chat=is_chat)
            parts: dict[str, Any] = {"documents": DOCUMENTS, "llm": llm, "streaming": mode in STREAMS}
            if kind is RetrieverQueryEngine:
                streaming = parts.pop("streaming")
                own = CompactAndRefine(llm=llm, streaming=streaming, callback_manager=manager)
                parts = {"response_synthesizer": own}
            engine = kind(ListRetriever(callback_manager=manager), callback_manager=manager, **parts)
            await ask(engine, QUESTION, mode)
        told.append(recording)
    return told


@every_kind
@every_mode
async def test_events_and_callbacks_are_those_of_the_reference(mode: str, is_chat: bool) -> None:
    mine, reference = await both(mode, is_chat)
    assert core_of(mine) == core_of(reference) == CORE
    assert Counter(events_of(mine)) == Counter(events_of(reference))
    if mode not in STREAMS:  # whose models may be asked earlier or later, within the query or after it
        assert events_of(mine) == events_of(reference)
        assert Counter(mine.callbacks.traces) == Counter(reference.callbacks.traces)
    assert mine.callbacks.traces.count(("start", "query")) == 1
    told = [
        Counter((*one[:2], *sorted(map(str, one[2]))) for one in log.callbacks.payloads if one[1] in CALLBACKS)
        for log in (mine, reference)
    ]
    assert told[0] == told[1]
    assert Counter(one[:2] for one in told[0].elements()) == Counter(
        (what, event) for what in ("start", "end") for event in CALLBACKS
    )


@every_kind
@every_mode
@every_route
async def test_events_and_spans_come_once(scenario: Scenario, mode: str, is_chat: bool) -> None:
    with recorded() as recording:
        first, second = (ScriptedLLM(draft=one.draft, final=one.final, is_chat=is_chat) for one in (scenario, scenario))
        manager = recording.manager
        engine = engine_for(scenario, mode, llm=first, long_context_llm=second, callback_manager=manager)
        asked = await ask(engine, QUESTION, mode)
    calls, a, spans = calls_of(scenario), "a" if mode in AWAITED else "", recording.spans
    assert (core_of(recording), len(first.calls) + len(second.calls)) == (CORE, calls)
    kind = "Chat" if is_chat else "Completion"
    assert [recording.events.names.count(f"LLM{kind}{when}Event") for when in ("Start", "End")] == [calls, calls]
    assert "ExceptionEvent" not in recording.events.names
    for what in ("start", "end"):
        times = {"llm": calls, "query": 1, "synthesize": 1}
        assert {event: recording.callbacks.log.count((what, event)) for event in times} == times
    assert (spans.open_spans, spans.dropped_spans) == ({}, [])
    model = [name_of(span) for span in spans.all if name_of(span).startswith("ScriptedLLM.")]
    assert len(model) == calls
    # An awaited stream asks its models when it is read: after its query, as the reference pours what it says then.
    late = model if mode == "astream" else []
    assert spans.roots == sorted([f"SelfRouteQueryEngine.{a}query", *late])
    below = [f"SelfRouteQueryEngine.{a}query", f"SelfRouteQueryEngine._{a}query", f"SelfRouteSynthesizer.{a}synthesize"]
    edges = {(below[0], below[1]), (below[1], f"ListRetriever.{a}retrieve"), (below[1], below[2])}
    assert edges | {(below[2], name) for name in model if not late} <= set(spans.edges)
    assert sorted(name_of(span) for span in spans.all if name_of(span) in below) == sorted(below)
    (event,) = recording.events.of(SelfRouteDecisionEvent)
    assert event.span_id in {span.id_ for span in spans.all if name_of(span) == below[2]}
    assert json.loads(event.model_dump_json())["decision"] == asked.decision


@every_mode
async def test_the_events_hold_the_query_the_nodes_and_the_response(mode: str) -> None:
    with recorded() as recording:
        asked = await ask(engine_for(DECLINED, mode), QUESTION, mode)
    events = {event.class_name(): event for event in recording.events.events}
    for name in ("SynthesizeEndEvent", "QueryEndEvent"):
        assert events[name].response.metadata == asked.metadata
        assert events[name].response.source_nodes == asked.source_nodes
    assert events["RetrievalEndEvent"].nodes == PASSAGES
    for name in ("QueryStartEvent", "SynthesizeStartEvent", "SynthesizeEndEvent", "QueryEndEvent"):
        query = events[name].query
        assert QUESTION in (query, getattr(query, "query_str", None))


def _load(*_: Any) -> list[Document]:
    return DOCUMENTS if ListRetriever().retrieve("which documents?") else []


async def _aload(*_: Any) -> list[Document]:
    return DOCUMENTS if await ListRetriever().aretrieve("which documents?") else []


@pytest.mark.parametrize("load", [_load, _aload, lambda *_: _aload()], ids=["function", "coroutine", "returns one"])
@pytest.mark.parametrize("mode", ["query", "aquery", "stream"])
async def test_spans_of_documents_are_below_synthesis(load: Any, mode: str) -> None:
    with recorded() as recording, instrument_tags({"tenant": 7}):
        await ask(engine_for(DECLINED, mode, documents=load), QUESTION, mode)
    a = "a" if mode in AWAITED else ""
    below = [child for parent, child in recording.spans.edges if parent == f"SelfRouteSynthesizer.{a}synthesize"]
    assert [name for name in below if name.startswith("ListRetriever.")] == [
        "ListRetriever.retrieve" if load is _load else "ListRetriever.aretrieve"
    ]
    (event,) = recording.events.of(SelfRouteDecisionEvent)
    assert (recording.spans.roots, event.tags) == ([f"SelfRouteQueryEngine.{a}query"], {"tenant": 7})


class OpenInferencesSpan:
    """Treats events as OpenInference's span does: by their types, with a warning about each that it does not know."""

    @singledispatchmethod
    def _process_event(self, event: BaseEvent) -> None:
        logging.getLogger("openinference").warning("Unhandled event of type %s", type(event).__name__)

    @_process_event.register
    def _(self, event: QueryStartEvent) -> None: ...


OPENINFERENCE = "openinference.instrumentation.llama_index._handler"


@every_mode
async def test_openinference_ignores_our_events(
    mode: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, OPENINFERENCE, SimpleNamespace(_Span=OpenInferencesSpan))
    with recorded() as recording:
        await ask(an_engine(streaming=mode in STREAMS), QUESTION, mode)
    span = OpenInferencesSpan()
    ours = [*recording.events.of(SelfRouteDecisionEvent), *recording.events.of(SelfRouteQueryEvent)]
    for event in ours:
        span._process_event(event)
    assert (len(ours), caplog.messages) == (2, [])
    span._process_event(BaseEvent())
    assert caplog.messages == ["Unhandled event of type BaseEvent"]


@pytest.mark.parametrize("changed", [SimpleNamespace(), SimpleNamespace(_Span=SimpleNamespace(_process_event=print))])
def test_another_openinference_costs_no_answer(monkeypatch: pytest.MonkeyPatch, changed: Any) -> None:
    monkeypatch.setitem(sys.modules, OPENINFERENCE, changed)
    with recorded() as recording:
        an_engine().query(QUESTION)
    assert len(recording.events.of(SelfRouteQueryEvent)) == 1
