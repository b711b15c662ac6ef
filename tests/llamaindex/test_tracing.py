"""What the host's handlers see: the events, spans and callbacks of a `RetrieverQueryEngine`, and the decision."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections import Counter
from contextlib import aclosing, closing
from functools import singledispatchmethod
from types import SimpleNamespace
from typing import Any

import pytest
from llama_index.core import Settings
from llama_index.core.callbacks import CallbackManager, TokenCountingHandler
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
    model_of,
    name_of,
    pieces_of,
    recorded,
)
from llamaindex_selfroute import SelfRouteDecisionEvent, SelfRouteQueryEngine, SelfRouteQueryEvent
from scenarios import DECLINED, NOTHING_RETRIEVED, PLAIN, QUESTION, Scenario

every_mode = pytest.mark.parametrize("mode", MODES)
every_stream = pytest.mark.parametrize("mode", STREAMS)
every_kind = pytest.mark.parametrize("is_chat", [True, False], ids=["chat", "completion"])
every_route = pytest.mark.parametrize("scenario", [PLAIN, DECLINED, NOTHING_RETRIEVED], ids=str)
ANSWER = ("Mr", " Lin", " took", " the", " chair", ".")
# The host's own helpers for a model's reply, which return text alone, are not gone through.
HELPERS = ("GetResponse", "LLMPredict", "StreamChat")
CORE = ("Query", "Retrieval", "Synthesize")


def events_of(recording: Recording) -> list[str]:
    """The names of the events, without those of the host's helpers and our own."""
    return [name for name in recording.events.names if not name.startswith((*HELPERS, "SelfRoute"))]


def core_of(recording: Recording) -> list[str]:
    """The events that tell of query, retrieval and synthesis."""
    return [name for name in recording.events.names if name.startswith(CORE)]


def check_pairs(recording: Recording) -> None:
    """Check that every callback event that began has ended, but for the host's exceptions, which only begin."""
    started = Counter(event for what, event in recording.callbacks.log if what == "start" and event != "exception")
    assert started == Counter(event for what, event in recording.callbacks.log if what == "end")


async def both(mode: str, is_chat: bool = True) -> tuple[Recording, Recording]:
    """What an engine and the host's own tell of the same question, answered from the passages."""
    seen = []
    for build in (_own, _reference):
        with recorded() as recording:
            await ask(build(mode, is_chat, recording.manager), QUESTION, mode)
        seen.append(recording)
    return seen[0], seen[1]


def _own(mode: str, is_chat: bool, manager: CallbackManager) -> SelfRouteQueryEngine:
    return an_engine(
        ANSWER,
        retriever=ListRetriever(callback_manager=manager),
        callback_manager=manager,
        streaming=mode in STREAMS,
        is_chat=is_chat,
    )


def _reference(mode: str, is_chat: bool, manager: CallbackManager) -> RetrieverQueryEngine:
    llm = ScriptedLLM(draft=ANSWER, is_chat=is_chat)
    synthesizer = CompactAndRefine(llm=llm, streaming=mode in STREAMS, callback_manager=manager)
    return RetrieverQueryEngine(ListRetriever(callback_manager=manager), synthesizer, callback_manager=manager)


@every_kind
@every_mode
async def test_the_core_s_events_come_in_the_order_of_the_reference(mode: str, is_chat: bool) -> None:
    mine, reference = await both(mode, is_chat)
    assert core_of(mine) == core_of(reference)
    assert core_of(mine) == [
        "QueryStartEvent",
        "RetrievalStartEvent",
        "RetrievalEndEvent",
        "SynthesizeStartEvent",
        "SynthesizeEndEvent",
        "QueryEndEvent",
    ]
    # A stream asks its model earlier or later than the reference does; the events are the same.
    assert Counter(events_of(mine)) == Counter(events_of(reference))
    if mode not in STREAMS:
        assert events_of(mine) == events_of(reference)


@every_mode
@every_route
async def test_the_core_s_events_come_in_this_order_on_every_route(scenario: Scenario, mode: str) -> None:
    with recorded() as recording:
        await ask(engine_for(scenario, mode), QUESTION, mode)
    _, reference = await both(mode)
    assert core_of(recording) == core_of(reference)
    calls = (scenario.draft is not None) + (scenario.final is not None)
    for name in ("LLMChatStartEvent", "LLMChatEndEvent"):
        assert recording.events.names.count(name) == calls


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


@every_kind
@every_mode
@every_route
async def test_every_span_is_closed_and_there_is_one_root(scenario: Scenario, mode: str, is_chat: bool) -> None:
    with recorded() as recording:
        await ask(engine_for(scenario, mode, is_chat=is_chat), QUESTION, mode)
    spans = recording.spans
    assert (spans.open_spans, spans.dropped_spans) == ({}, [])
    entry = "aquery" if mode in AWAITED else "query"
    model = [name_of(span) for span in spans.all if name_of(span).startswith("ScriptedLLM.")]
    assert len(model) == (scenario.draft is not None) + (scenario.final is not None)
    # An awaited stream asks its models when it is read: after its query, as the reference pours what it says then.
    roots = model if mode == "astream" else []
    assert spans.roots == sorted([f"SelfRouteQueryEngine.{entry}", *roots])
    edges = dict.fromkeys(spans.edges)
    a = "a" if mode in AWAITED else ""
    assert (f"SelfRouteQueryEngine.{entry}", f"SelfRouteQueryEngine._{a}query") in edges
    assert (f"SelfRouteQueryEngine._{a}query", f"ListRetriever.{a}retrieve") in edges
    assert (f"SelfRouteQueryEngine._{a}query", f"SelfRouteSynthesizer.{a}synthesize") in edges
    if mode != "astream":
        assert all((f"SelfRouteSynthesizer.{a}synthesize", name) in edges for name in model)


CALLBACKS = {"query", "retrieve", "synthesize", "llm"}


@every_kind
@every_mode
async def test_the_callbacks_are_those_of_the_reference(mode: str, is_chat: bool) -> None:
    mine, reference = await both(mode, is_chat)
    logs = [[entry for entry in log.callbacks.log if entry[1] in CALLBACKS] for log in (mine, reference)]
    assert Counter(logs[0]) == Counter(logs[1])
    assert Counter(logs[0]) == Counter((what, event) for what in ("start", "end") for event in CALLBACKS)
    keys = [
        sorted(
            (what, event, sorted(map(str, payload)))
            for what, event, payload in log.callbacks.payloads
            if event in CALLBACKS
        )
        for log in (mine, reference)
    ]
    assert keys[0] == keys[1]
    assert mine.callbacks.traces.count(("start", "query")) == 1
    if mode not in STREAMS:  # whose models may be asked within the query or after it
        assert Counter(mine.callbacks.traces) == Counter(reference.callbacks.traces)


@every_mode
@every_route
async def test_both_models_tell_the_callbacks_once_for_each_call(scenario: Scenario, mode: str) -> None:
    with recorded() as recording:
        first, second = ScriptedLLM(draft=scenario.draft), ScriptedLLM(final=scenario.final)
        engine = engine_for(scenario, mode, llm=first, long_context_llm=second, callback_manager=recording.manager)
        await ask(engine, QUESTION, mode)
    calls = len(first.calls) + len(second.calls)
    assert calls == (scenario.draft is not None) + (scenario.final is not None)
    for what in ("start", "end"):
        assert recording.callbacks.log.count((what, "llm")) == calls
        for event in ("query", "synthesize"):
            assert recording.callbacks.log.count((what, event)) == 1


@every_mode
async def test_the_callback_manager_of_the_settings_is_the_default(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = Recording()
    monkeypatch.setattr(Settings, "_callback_manager", recording.manager)
    await ask(an_engine(streaming=mode in STREAMS), QUESTION, mode)
    for event in ("query", "synthesize"):
        assert recording.callbacks.log.count(("start", event)) == recording.callbacks.log.count(("end", event)) == 1


@every_mode
async def test_a_token_counting_handler_counts_what_the_engine_reports(mode: str) -> None:
    handler = TokenCountingHandler(tokenizer=str.split)
    engine = engine_for(DECLINED, mode, usage=True, callback_manager=CallbackManager([handler]))
    asked = await ask(engine, QUESTION, mode)
    assert handler.total_llm_token_count == asked.usage["total_tokens"] > 0


@every_kind
@every_mode
@every_route
async def test_the_decision_is_announced_once_and_before_anything_is_read(
    scenario: Scenario, mode: str, is_chat: bool
) -> None:
    seen: list[int] = []

    with recorded() as recording:

        def documents(*_: Any) -> list[Document]:
            seen.append(len(recording.events.of(SelfRouteDecisionEvent)))
            return DOCUMENTS

        engine = engine_for(scenario, mode, documents=documents, is_chat=is_chat)
        asked = await ask(engine, QUESTION, mode)
    (event,) = recording.events.of(SelfRouteDecisionEvent)
    assert (event.route, event.decision) == (asked.route, asked.decision)
    assert seen == [1] * scenario.declined
    assert isinstance(event, BaseEvent)
    assert event.class_name() == "SelfRouteDecisionEvent"
    assert json.loads(event.model_dump_json())["decision"] == asked.decision
    assert event.span_id in {
        span.id_ for span in recording.spans.all if name_of(span).startswith("SelfRouteSynthesizer.")
    }
    names = recording.events.names
    at, begins = (
        names.index("SelfRouteDecisionEvent"),
        [n for n, name in enumerate(names) if name.endswith(("ChatStartEvent", "CompletionStartEvent"))],
    )
    if scenario.draft is not None:
        assert begins[0] < at
    if scenario.final is not None:
        assert at < begins[-1]
    event.decision.clear()
    assert asked.decision["signal"] == scenario.signal


@every_stream
async def test_the_decision_is_announced_before_the_first_text(mode: str) -> None:
    with recorded() as recording:
        engine = an_engine(ANSWER, streaming=True)
        response = engine.query(QUESTION) if mode == "stream" else await engine.aquery(QUESTION)
        assert len(recording.events.of(SelfRouteDecisionEvent)) == (mode == "stream")
        async with aclosing(pieces_of(response, mode)) as pieces:
            await anext(pieces)
            assert len(recording.events.of(SelfRouteDecisionEvent)) == 1


@pytest.mark.parametrize("mode", ["query", "aquery", "stream"])
async def test_the_decision_bears_the_tags_of_its_caller(mode: str) -> None:
    with recorded() as recording, instrument_tags({"tenant": 7}):
        await ask(engine_for(DECLINED, mode), QUESTION, mode)
    (event,) = recording.events.of(SelfRouteDecisionEvent)
    assert event.tags == {"tenant": 7}


def _inside(kind: str) -> Any:
    def load(*_: Any) -> list[Document]:
        return DOCUMENTS if ListRetriever().retrieve("which documents?") else []

    async def aload(*_: Any) -> list[Document]:
        return DOCUMENTS if await ListRetriever().aretrieve("which documents?") else []

    return {"function": load, "coroutine": aload, "returns a coroutine": lambda *_: aload()}[kind]


@pytest.mark.parametrize("kind", ["function", "coroutine", "returns a coroutine"])
@pytest.mark.parametrize("mode", ["query", "aquery", "stream"])
async def test_what_the_documents_run_is_below_the_synthesis(kind: str, mode: str) -> None:
    with recorded() as recording:
        await ask(engine_for(DECLINED, mode, documents=_inside(kind)), QUESTION, mode)
    a = "a" if mode in AWAITED else ""
    below = [child for parent, child in recording.spans.edges if parent == f"SelfRouteSynthesizer.{a}synthesize"]
    assert [name for name in below if name.startswith("ListRetriever.")] == [
        "ListRetriever.retrieve" if kind == "function" else "ListRetriever.aretrieve"
    ]
    assert recording.spans.roots == [f"SelfRouteQueryEngine.{a}query"]


FAILING: dict[str, Any] = {
    "the retriever": {"retriever": ListRetriever(failures=[OSError("down")] * 9)},
    "the draft": {"failures": {"rag": [OSError("down")]}},
    "reading": {"documents": lambda *_: open("/nowhere/at/all")},  # noqa: SIM115, PTH123 - it fails
    "the final": {"failures": {"long_context": [OSError("down")]}},
}


@every_kind
@every_mode
@pytest.mark.parametrize("name", FAILING)
async def test_an_error_leaves_no_span_and_no_callback_open(name: str, mode: str, is_chat: bool) -> None:
    fields = dict(FAILING[name])
    with recorded() as recording:
        engine = engine_for(DECLINED, mode, callback_manager=recording.manager, is_chat=is_chat, **fields)
        with pytest.raises(OSError, match=r"down|nowhere"):
            await ask(engine, QUESTION, mode)
    assert recording.spans.open_spans == {}
    if mode != "astream" or name == "the retriever":  # which fails while it is read, after its query
        assert {f"SelfRouteQueryEngine.{'a' if mode in AWAITED else ''}query"} <= set(
            map(name_of, recording.spans.errors)
        )
    check_pairs(recording)
    assert len(recording.events.of(SelfRouteDecisionEvent)) == (name in {"reading", "the final"})


@every_stream
async def test_a_decline_that_ends_by_itself_is_no_error(mode: str) -> None:
    with recorded() as recording:
        await ask(an_engine(("un", "answerable", "."), streaming=True), QUESTION, mode)
    assert "ExceptionEvent" not in recording.events.names
    assert recording.spans.dropped_spans == []
    assert recording.events.names.count("LLMChatEndEvent") == 2


@every_kind
@pytest.mark.parametrize("step", ["rag", "long_context"])
@every_stream
async def test_nothing_is_left_open_when_the_reader_leaves(step: str, mode: str, is_chat: bool) -> None:
    reply = (*ANSWER, *(f" word{n}" for n in range(50)))
    drafted = {"draft": reply} if step == "rag" else {"final": reply}
    with recorded() as recording:
        engine = an_engine(**drafted, streaming=True, callback_manager=recording.manager, is_chat=is_chat)
        if mode == "stream":
            with closing(engine.query(QUESTION).response_gen) as pieces:
                next(pieces)
        else:
            async with aclosing((await engine.aquery(QUESTION)).async_response_gen()) as pieces:
                await anext(pieces)
    assert recording.spans.open_spans == {}
    if mode == "astream":  # in sync, an event that is kept holds on to the stream, by the traceback of its exception
        assert model_of(engine).endings[-1] == "closed"
    check_pairs(recording)


async def test_questions_asked_at_once_keep_their_own_trees() -> None:
    with recorded() as recording:
        await asyncio.gather(*(ask(an_engine(delay=0.001), f"Number {n}?", "aquery") for n in range(8)))
    assert recording.spans.open_spans == {}
    assert recording.spans.roots == ["SelfRouteQueryEngine.aquery"] * 8
    assert recording.spans.edges.count(("SelfRouteSynthesizer.asynthesize", "ScriptedLLM.achat")) == 16
    assert len(recording.events.of(SelfRouteDecisionEvent)) == 8
    assert len({event.span_id for event in recording.events.of(SelfRouteDecisionEvent)}) == 8


class OpenInferencesSpan:
    """Treats events as OpenInference's span does: by their types, with a warning about each that it does not know."""

    @singledispatchmethod
    def _process_event(self, event: BaseEvent) -> None:
        logging.getLogger("openinference").warning("Unhandled event of type %s", type(event).__name__)

    @_process_event.register
    def _(self, event: QueryStartEvent) -> None: ...


@pytest.mark.parametrize("mode", MODES)
async def test_openinference_passes_over_our_events(
    mode: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    name = "openinference.instrumentation.llama_index._handler"
    monkeypatch.setitem(sys.modules, name, SimpleNamespace(_Span=OpenInferencesSpan))
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
    monkeypatch.setitem(sys.modules, "openinference.instrumentation.llama_index._handler", changed)
    with recorded() as recording:
        an_engine().query(QUESTION)
    assert len(recording.events.of(SelfRouteQueryEvent)) == 1
