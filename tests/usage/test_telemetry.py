"""OpenTelemetry: one tree for each question, in both frameworks; nothing without it, and never a text."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import copy_context
from dataclasses import replace
from itertools import chain as chained
from typing import Any
from uuid import UUID

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.exceptions import ContextOverflowError
from opentelemetry import context, metrics, trace
from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer

import langchain_parts
import llamaindex_parts
from both_parts import STREAMS, everywhere, is_langchain, pipeline
from hosts_parts import HOSTS
from langchain_parts import ListRetriever, a_chain, ask
from scenarios import DOCUMENT_TEXTS, FINAL, FOUND, PASSAGE_TEXTS, QUESTION, WHOLE
from selfroute.answerability import NO_PASSAGES, Verdict
from selfroute.effects import Decided, Generate, ReadDocuments, Retrieve
from selfroute.usage import StepUsage, Usage, telemetry
from selfroute.usage.account import Account
from selfroute.usage.prices import PricedModel

every_mode = pytest.mark.parametrize("mode", langchain_parts.MODES)
every_stream = pytest.mark.parametrize("where", STREAMS)

NAME = "invoke_workflow selfroute"
MESSAGE = "what the provider said of the prompt"
BOTH = {NAME: ["retrieve", "rag", "read_documents", "long_context"]}


class Seen:
    """What reached the SDK."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.reader = InMemoryMetricReader(dict.fromkeys((Histogram, Counter), AggregationTemporality.DELTA))

    def clear(self) -> None:
        self.exporter.clear()
        self.reader.get_metrics_data()

    @property
    def spans(self) -> list[ReadableSpan]:
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.named(name)
        return span

    def below(self, parent: ReadableSpan | None) -> list[Any]:
        """The names below a span, each with those below it."""
        key = parent.context.span_id if parent else None
        found = [span for span in self.spans if (span.parent.span_id if span.parent else None) == key]
        return [{span.name: inner} if (inner := self.below(span)) else span.name for span in found]

    def points(self) -> dict[str, list[Any]]:
        """The points of each metric since the last look."""
        data = self.reader.get_metrics_data()
        scopes = chained.from_iterable(one.scope_metrics for one in data.resource_metrics) if data else ()
        ours = chained.from_iterable(scope.metrics for scope in scopes if scope.scope.name == "selfroute")
        return {metric.name: list(metric.data.data_points) for metric in ours}


@pytest.fixture(scope="session")  # workers come back to a module, and a process can set providers only once
def provided() -> Iterator[Seen]:
    seen = Seen()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(seen.exporter))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([seen.reader]))
    yield seen
    seen.exporter.shutdown()


@pytest.fixture
def seen(provided: Seen, caplog: pytest.LogCaptureFixture) -> Iterator[Seen]:
    provided.clear()
    yield provided
    assert [record for record in caplog.records if record.name.startswith("opentelemetry")] == []


@pytest.fixture
def tracer(seen: Seen) -> Tracer:
    return trace.get_tracer("somebody else's")


TREES: dict[str, tuple[dict[str, Any], Any]] = {
    "answered": ({"draft": ("Mr Lin.",)}, {NAME: ["retrieve", "rag"]}),
    "declined": ({}, BOTH),
    "neither": ({"final": ("unanswerable",)}, BOTH),
    "nothing to read": ({"documents": lambda *_: []}, {NAME: ["retrieve", "rag", "read_documents"]}),
    "too long": (
        {"failures": {"long_context": [ContextOverflowError("prompt is too long")]}},
        {NAME: ["retrieve", "rag", *["read_documents", "long_context"] * 2]},
    ),
}


def tree_in(where: str, tree: dict[str, list[str]] = BOTH) -> dict[str, list[str]]:
    """The tree of a host: the question of an engine is that of its synthesizer, which does not retrieve."""
    return {name: [step for step in steps if is_langchain(where) or step != "retrieve"] for name, steps in tree.items()}


@everywhere
@pytest.mark.parametrize(("fields", "tree"), TREES.values(), ids=TREES)
async def test_the_steps_that_ran_are_below_the_question(
    seen: Seen, fields: dict[str, Any], tree: Any, where: str
) -> None:
    await pipeline(where, **fields).ask()
    assert seen.below(None) == [tree_in(where, tree)]
    assert {span.kind for span in seen.spans} == {SpanKind.INTERNAL}
    assert seen.one(NAME).status.status_code is StatusCode.UNSET


class OpensSpans(BaseCallbackHandler):
    """Opens a span for each run of a chain, which it does not make the current one; as OpenInference's handler does."""

    run_inline = True

    def __init__(self, tracer: Tracer) -> None:
        self.tracer, self.spans = tracer, dict[UUID, Span]()

    def get_span(self, run_id: UUID) -> Span | None:
        return self.spans.get(run_id)

    def on_chain_start(self, *_: Any, run_id: UUID, parent_run_id: UUID | None = None, **about: Any) -> None:
        parent = self.spans.get(parent_run_id) if parent_run_id else None
        context = trace.set_span_in_context(parent) if parent else None
        self.spans[run_id] = self.tracer.start_span(about["name"], context)

    def on_chain_end(self, *_: Any, run_id: UUID, **__: Any) -> None:
        self.spans.pop(run_id).end()


@every_mode
async def test_a_question_is_below_the_span_that_a_handler_opened_for_its_chain(
    seen: Seen, tracer: Tracer, mode: str
) -> None:
    await ask(a_chain(), QUESTION, mode, {"callbacks": [OpensSpans(tracer)]})
    assert seen.below(None) == [{"SelfRouteChain": [BOTH, "read_documents"]}]


@pytest.mark.parametrize("found", [None, "no span", trace.INVALID_SPAN, ValueError()], ids=str)
def test_a_handler_without_a_span_for_it_changes_nothing(seen: Seen, found: Any) -> None:
    class Handler(BaseCallbackHandler):
        def get_span(self, _: UUID) -> Any:
            if isinstance(found, Exception):
                raise found
            return found

    a_chain().invoke(QUESTION, {"callbacks": [Handler()]})
    assert seen.below(None) == [BOTH]


@pytest.mark.parametrize(
    ("names", "are_off"),
    [
        ("selfroute", True),
        ("openai, selfroute ,httpx", True),
        ("*", True),
        ("", False),
        ("selfroute-other,openai", False),
    ],
)
def test_an_environment_variable_of_opentelemetry_turns_it_off(
    seen: Seen, monkeypatch: pytest.MonkeyPatch, names: str, *, are_off: bool
) -> None:
    monkeypatch.setenv("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", names)
    for ask_one in (a_chain().invoke, llamaindex_parts.an_engine().query):
        ask_one(QUESTION)
        assert (seen.spans == [], seen.points() == {}) == (are_off, are_off)
        seen.clear()


def test_it_is_off_where_instrumentation_is_suppressed(seen: Seen) -> None:
    token = context.attach(context.set_value(context._SUPPRESS_INSTRUMENTATION_KEY, True))
    try:
        a_chain().invoke(QUESTION)
    finally:
        context.detach(token)
    assert (seen.spans, seen.points()) == ([], {})


@every_mode
async def test_the_attributes_are_the_conventions_own(seen: Seen, mode: str) -> None:
    usage = (await ask(a_chain(usage=True), QUESTION, mode))["usage"]
    question = dict(seen.one(NAME).attributes)
    assert question.pop("selfroute.token_ratio") == usage["token_ratio"]
    assert question == {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": "selfroute",
        "selfroute.route": "long_context",
        "selfroute.declined": True,
        "selfroute.signal": "sentinel",
        "selfroute.outcome": "answered",
        "selfroute.answerable": True,
        "selfroute.estimated": usage["estimated"],
        "selfroute.long_context_only": usage["long_context_only"],
    }
    assert seen.one("retrieve").attributes == {"gen_ai.operation.name": "retrieval"}
    assert seen.one("read_documents").attributes == {}
    assert seen.one("long_context").attributes == {
        "gen_ai.provider.name": "scriptedmodel",
        "gen_ai.response.model": "scripted",
        "gen_ai.usage.input_tokens": usage["long_context"]["input_tokens"],
        "gen_ai.usage.output_tokens": usage["long_context"]["output_tokens"],
        "gen_ai.usage.cache_read.input_tokens": usage["long_context"]["cached_tokens"],
        "gen_ai.usage.cache_creation.input_tokens": 0,
        "selfroute.estimated": False,
    }
    assert seen.one("rag").attributes["gen_ai.usage.input_tokens"] == usage["rag"]["input_tokens"]


@every_mode
async def test_the_metrics_add_up_to_the_usage(seen: Seen, mode: str) -> None:
    usage = [(await ask(a_chain(usage=True), QUESTION, mode))["usage"] for _ in range(3)]
    points = seen.points()
    assert points.keys() == {"gen_ai.workflow.duration", "selfroute.token.usage"}
    (took,) = points["gen_ai.workflow.duration"]
    assert (took.count, took.explicit_bounds[:3]) == (3, (1, 5, 10))
    assert took.attributes == {
        "gen_ai.workflow.name": "selfroute",
        "selfroute.route": "long_context",
        "selfroute.outcome": "answered",
    }
    sums = {(point.attributes["selfroute.step"], point.attributes["gen_ai.token.type"]): point.sum
            for point in points["selfroute.token.usage"]}  # fmt: skip
    assert sums == {
        (step, kind): sum(one[step][f"{kind}_tokens"] for one in usage)
        for step in ("rag", "long_context")
        for kind in ("input", "output")
    }
    assert points["selfroute.token.usage"][0].explicit_bounds[:4] == (1, 4, 16, 64)


PRICED = {"usage": True, "priced_as": "openai:gpt-4o-mini"}


@every_mode
async def test_the_costs_of_all_questions_add_up(seen: Seen, mode: str) -> None:
    usage = [(await ask(a_chain(draft, **PRICED), QUESTION, mode))["usage"] for draft in [("Mr Lin.",)] * 2 + [()]]
    sums = {point.attributes["selfroute.route"]: point.value for point in seen.points()["selfroute.cost"]}
    costs = [float(one["cost"]) for one in usage]
    assert sums == {"rag": pytest.approx(sum(costs[:2])), "long_context": pytest.approx(costs[2])}
    assert 0 < seen.named(NAME)[0].attributes["selfroute.cost"] == costs[0] < 0.001, "dollars"


@every_mode
async def test_what_a_failed_question_paid_is_among_the_costs_and_one_that_paid_nothing_has_none(
    seen: Seen, mode: str
) -> None:
    for step, paid in (("long_context", True), ("rag", False)):
        seen.clear()
        with pytest.raises(ConnectionError):
            await ask(a_chain(failures={step: [ConnectionError(MESSAGE)]}, **PRICED), QUESTION, mode)
        assert ("selfroute.cost" in seen.one(NAME).attributes) is paid
        costs = seen.points().get("selfroute.cost", [])
        assert [(cost.value, cost.attributes["selfroute.outcome"]) for cost in costs] == (
            [(seen.one(NAME).attributes["selfroute.cost"], "failed")] if paid else []
        )


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("google_genai", "gcp.gen_ai"), ("azure_openai", "azure.ai.openai"), ("groq", "groq"), ("my_own", "my_own")],
)
def test_a_provider_is_called_as_in_the_conventions(seen: Seen, ours: str, theirs: str) -> None:
    a_chain(("Mr Lin.",), priced_as=f"{ours}:some-model").invoke(QUESTION)
    assert seen.one("rag").attributes["gen_ai.provider.name"] == theirs
    assert seen.one("rag").attributes["gen_ai.response.model"] == "some-model"


FAILURES = {
    "retrieve": {"retriever": lambda: ListRetriever(failures=[ConnectionError(MESSAGE)])},
    "rag": {"failures": lambda: {"rag": [ConnectionError(MESSAGE)]}},
    "long_context": {"failures": lambda: {"long_context": [ConnectionError(MESSAGE)]}},
    "read_documents": {"documents": lambda: _cannot_read},
}


def _cannot_read(_: Any) -> Any:
    raise ConnectionError(MESSAGE)


@every_mode
@pytest.mark.parametrize("step", FAILURES)
async def test_an_error_marks_its_step_and_the_question(seen: Seen, step: str, mode: str) -> None:
    with pytest.raises(ConnectionError):
        await ask(a_chain(**{name: make() for name, make in FAILURES[step].items()}), QUESTION, mode)
    failed = [span for span in seen.spans if span.status.status_code is StatusCode.ERROR]
    assert [span.name for span in failed] == [NAME, step]
    for span in failed:
        assert (span.attributes["error.type"], span.status.description) == ("ConnectionError", None)
    assert seen.one(NAME).attributes["selfroute.outcome"] == "failed"
    (took,) = seen.points()["gen_ai.workflow.duration"]
    assert took.attributes["error.type"] == "ConnectionError"
    assert _recorded(seen, MESSAGE) == []


@every_stream
async def test_a_line_that_goes_dead_while_the_answer_is_read_marks_its_step(seen: Seen, where: str) -> None:
    with pytest.raises(ConnectionError):
        await pipeline(where, ("Mr Lin took", " the", " chair."), breaks_after=2).ask()
    rag = seen.one("rag")
    assert rag.status.status_code is StatusCode.ERROR
    assert rag.attributes["selfroute.estimated"] is True
    assert seen.one(NAME).attributes["selfroute.outcome"] == "failed"


def test_a_prompt_that_was_too_long_is_the_steps_error_and_not_the_questions(seen: Seen) -> None:
    a_chain(failures={"long_context": [ContextOverflowError("too long")]}).invoke(QUESTION)
    first, second = seen.named("long_context")
    assert (first.status.status_code, second.status.status_code) == (StatusCode.ERROR, StatusCode.UNSET)
    assert first.attributes["error.type"] == "ContextOverflowError"
    assert seen.one(NAME).status.status_code is StatusCode.UNSET


@every_stream
async def test_a_reader_who_leaves_is_no_error(seen: Seen, where: str) -> None:
    pieces = pipeline(where).pieces()
    async for _ in pieces:
        break
    await pieces.aclose()
    question = seen.one(NAME)
    assert (question.attributes["selfroute.outcome"], question.attributes["selfroute.route"]) == (
        "left",
        "long_context",
    )
    assert {span.status.status_code for span in seen.spans} == {StatusCode.UNSET}
    assert seen.below(None) == [tree_in(where)]
    assert seen.one("long_context").attributes["selfroute.estimated"] is True
    (took,) = seen.points()["gen_ai.workflow.duration"]
    assert took.attributes["selfroute.outcome"] == "left"


async def test_an_awaited_stream_begins_when_it_is_read(seen: Seen, tracer: Tracer) -> None:
    engine = llamaindex_parts.an_engine(("Mr Lin.",), None, streaming=True)
    responses = [await engine.aquery(QUESTION) for _ in range(2)]
    await asyncio.sleep(0.05)
    with tracer.start_as_current_span("reader") as reader:
        began = time.time_ns()
        assert [piece async for piece in responses[0].async_response_gen()] == ["Mr Lin."]
    assert seen.named(NAME)[0].start_time >= began
    assert [span.parent.span_id for span in seen.named(NAME)] == [reader.get_span_context().span_id]
    assert seen.below(None) == [{"reader": [{NAME: ["rag"]}]}]  # and nothing of the unread one


async def test_a_call_that_is_cancelled_is_no_error(seen: Seen) -> None:
    chain = a_chain(delay=10)
    asked = asyncio.create_task(chain.ainvoke(QUESTION))
    while not chain.llm.calls:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert seen.below(None) == [{NAME: ["retrieve", "rag"]}]
    assert {span.status.status_code for span in seen.spans} == {StatusCode.UNSET}
    assert seen.one(NAME).attributes["selfroute.outcome"] == "left"


@every_stream
async def test_between_the_pieces_the_callers_span_is_current(seen: Seen, tracer: Tracer, where: str) -> None:
    with tracer.start_as_current_span("caller") as caller:
        async for _ in pipeline(where).pieces():
            assert trace.get_current_span() is caller
        assert trace.get_current_span() is caller
    assert seen.below(None) == [{"caller": [tree_in(where)]}]


@every_stream
async def test_the_steps_span_goes_on_until_its_reply_was_read(seen: Seen, where: str) -> None:
    ended = [bool(seen.named("rag")) async for _ in pipeline(where, ("Mr Lin took", " the", " chair.")).pieces()]
    assert not any(ended[:3])
    assert seen.named("rag") != []


@every_mode
async def test_what_others_trace_is_below_the_step(seen: Seen, tracer: Tracer, mode: str) -> None:
    def says(*pieces: str) -> Callable[[str], tuple[str, ...]]:
        def reply(_: str) -> tuple[str, ...]:
            with tracer.start_as_current_span("chat"):
                return pieces

        return reply

    def read(_: Any) -> Any:
        with tracer.start_as_current_span("query"):
            return langchain_parts.DOCUMENTS

    await ask(a_chain(says("unanswerable"), says(*FINAL), documents=read), QUESTION, mode)
    steps = ["retrieve", {"rag": ["chat"]}, {"read_documents": ["query"]}, {"long_context": ["chat"]}]
    assert seen.below(None) == [{NAME: steps}]


async def test_tasks_do_not_mix(seen: Seen, tracer: Tracer) -> None:
    async def asks(number: int) -> None:
        with tracer.start_as_current_span(f"caller {number}"):
            draft = ("unanswerable",) if number % 2 else ("Mr Lin", " did.")
            await ask(a_chain(draft, delay=0.001), QUESTION, ("ainvoke", "astream")[number // 2 % 2])

    await asyncio.gather(*map(asks, range(40)))
    short = {NAME: ["retrieve", "rag"]}
    trees = {name: below for tree in seen.below(None) for name, below in tree.items()}
    assert trees == {f"caller {number}": [BOTH if number % 2 else short] for number in range(40)}


def test_a_step_that_ends_in_another_context_leaves_that_alone(seen: Seen, tracer: Tracer) -> None:
    begun = telemetry.trace()
    assert begun is not None
    step = begun.step(Retrieve(QUESTION))
    copy_context().run(step.__enter__)
    with tracer.start_as_current_span("another") as another:
        step.__exit__(GeneratorExit, GeneratorExit(), None)
        assert trace.get_current_span() is another


@pytest.mark.parametrize("host", HOSTS)
async def test_a_stream_that_is_closed_elsewhere_is_no_trouble(seen: Seen, host: str) -> None:
    pieces = pipeline(f"{host} astream").pieces()
    await asyncio.create_task(anext(pieces))
    await asyncio.create_task(pieces.aclose())
    dropped = pipeline(f"{host} stream").pieces()
    await anext(dropped)
    del dropped
    gc.collect()
    await asyncio.sleep(0.01)
    assert [span.attributes["selfroute.outcome"] for span in seen.named(NAME)] == ["left", "left"]


def _recorded(seen: Seen, *texts: str) -> list[Any]:
    """What holds one of the texts, of all that was recorded."""
    spans = [value for span in seen.spans for value in (span.name, span.status.description, *span.attributes.values())]
    points = [value for found in seen.points().values() for point in found for value in point.attributes.values()]
    assert [event for span in seen.spans for event in span.events] == []
    return [value for value in (*spans, *points) if any(text in str(value) for text in texts)]


@every_mode
@pytest.mark.parametrize("draft", [("Mr Lin.",), ("unanswerable",), ("The text does not tell who chaired it.",)])
async def test_no_text_is_recorded(seen: Seen, draft: Any, mode: str) -> None:
    await ask(a_chain(draft, usage=True), QUESTION, mode)
    assert len(seen.spans) > 2
    assert _recorded(seen, QUESTION, WHOLE, FOUND, *FINAL, *PASSAGE_TEXTS, *DOCUMENT_TEXTS, *draft, "chair") == []


def _run(code: str) -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=100)  # noqa: S603


@pytest.mark.matrix
def test_without_the_package_nothing_happens() -> None:
    _run(
        "import sys; sys.modules['opentelemetry'] = None\n"
        "sys.path.insert(0, 'tests/support')\n"
        "from selfroute.usage import telemetry\n"
        "from llamaindex_parts import QUESTION, an_engine\n"
        "assert an_engine().query(QUESTION).metadata['route'] == 'long_context'\n"
        "assert telemetry.trace() is None\n"
    )


def test_importing_does_not_import_it() -> None:
    _run(
        "import sys, selfroute.usage.account, selfroute.calls.drivers\n"
        "assert not any(name.partition('.')[0] == 'opentelemetry' for name in sys.modules)\n"
    )


@pytest.mark.matrix
def test_a_provider_may_come_later() -> None:
    _run(
        "import sys; sys.path.insert(0, 'tests/support')\n"
        "from opentelemetry import trace\n"
        "from langchain_parts import QUESTION, a_chain\n"
        "a_chain().invoke(QUESTION)\n"
        "from opentelemetry.sdk.trace import TracerProvider\n"
        "from opentelemetry.sdk.trace.export import SimpleSpanProcessor\n"
        "from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter\n"
        "trace.set_tracer_provider(TracerProvider())\n"
        "exporter = InMemorySpanExporter()\n"
        "trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(exporter))\n"
        "a_chain().invoke(QUESTION)\n"
        "assert len(exporter.get_finished_spans()) == 5, exporter.get_finished_spans()\n"
    )


def a_verdict(**fields: Any) -> Verdict:
    return Verdict(**{"declined": True, "signal": "sentinel", "evidence": "unanswerable", **fields})


DOUBT = a_verdict(declined=False, signal="doubt", evidence="80 42", prospect=80, confidence=42)
NO = {"go": False, "by": "budget", "reason": f"{QUESTION} costs too much"}
SECTIONS = ReadDocuments([], step="sections")
SHORTER = ReadDocuments([], ContextOverflowError(MESSAGE), step="sections")
STEPWISE: dict[str, tuple[list[Any], list[str]]] = {
    "nothing retrieved": (
        [Retrieve(QUESTION), Decided("long_context", NO_PASSAGES), ReadDocuments([]), "long_context"],
        ["retrieve", "read_documents", "long_context"],
    ),
    "sections": (
        [Retrieve(QUESTION), "rag", "counted", SECTIONS, Decided("sections", a_verdict()), "sections", "counted"],
        ["retrieve", "rag", "read_documents", "sections"],
    ),
    "too long for sections": (
        ["rag", "counted", SECTIONS, Decided("sections", DOUBT), "sections", "refused", SHORTER, "sections"],
        ["rag", "read_documents", "sections", "sections", "read_documents", "sections"],
    ),
    "a doubted draft is the answer in the end": (
        ["rag", SECTIONS, Decided("rag", replace(DOUBT, ruling=NO)), "resumed", "counted"],
        ["rag", "read_documents"],
    ),
    "a doubted draft that had come to its end is": (
        ["rag", "counted", SECTIONS, Decided("rag", replace(DOUBT, ruling=NO)), "resumed"],
        ["rag", "read_documents"],
    ),
    "a doubted draft is counted where it is closed": (
        ["rag", SECTIONS, "counted", Decided("sections", DOUBT), "sections"],
        ["rag", "read_documents", "sections"],
    ),
    "all three": (
        [
            *["rag", SECTIONS, Decided("sections", DOUBT), "sections"],
            *[Decided("long_context", DOUBT), ReadDocuments([]), "long_context"],
        ],
        ["rag", "read_documents", "sections", "read_documents", "long_context"],
    ),
}


def take(account: Account, steps: list[Any]) -> None:
    """Do to an account as the drivers and the adapters do."""
    step: Any = None
    for one in steps:
        if isinstance(one, Decided):
            account.decided(one)
        elif one == "counted":
            account.add_call(step, StepUsage(100, 5), PricedModel("one"))
        elif one == "refused":
            with suppress(ContextOverflowError), account.performing(Generate(step, [])):
                raise ContextOverflowError(MESSAGE)
        elif one == "resumed":
            with account.performing(Generate(step, [], resumed=True)):
                pass
        else:
            step = one if isinstance(one, str) else step
            with account.performing(Generate(one, []) if isinstance(one, str) else one):
                pass


@pytest.mark.parametrize(("steps", "names"), STEPWISE.values(), ids=STEPWISE)
def test_every_reply_has_one_span_however_the_question_goes_on(seen: Seen, steps: list[Any], names: list[str]) -> None:
    with Account() as account:
        take(account, steps)
        assert seen.named(NAME) == []
    assert seen.below(None) == [{NAME: names}]
    counted = [span for span in seen.spans if "gen_ai.usage.input_tokens" in (span.attributes or {})]
    assert len(counted) == steps.count("counted")
    assert {span.name for span in counted} <= {"rag", "sections"}


RULED = {
    "stopped": (a_verdict(ruling=NO), "rag", {"ruling.go": False, "ruling.by": "budget", "stopped": True}),
    "allowed": (a_verdict(ruling={**NO, "go": True}), "sections", {"ruling.go": True, "ruling.by": "budget"}),
    "doubted": (DOUBT, "sections", {"signal": "doubt", "prospect": 80, "confidence": 42, "doubted": True}),
    "neither": (a_verdict(), "long_context", {"signal": "sentinel"}),
}


@pytest.mark.parametrize(("verdict", "route", "told"), RULED.values(), ids=RULED)
def test_a_question_says_who_ruled_but_not_why(seen: Seen, verdict: Verdict, route: Any, told: dict[str, Any]) -> None:
    with Account() as account:
        take(account, ["rag", "counted", Decided(route, verdict)])
    names = {"signal", "ruling.go", "ruling.by", "prospect", "confidence", "doubted", "stopped"}
    found = {name: seen.one(NAME).attributes.get(f"selfroute.{name}") for name in names}
    assert found == {**dict.fromkeys(names), "signal": "sentinel", **told}
    (took,) = seen.points()["gen_ai.workflow.duration"]
    assert took.attributes.keys() == {"gen_ai.workflow.name", "selfroute.route", "selfroute.outcome"}
    assert _recorded(seen, QUESTION) == []


def test_whatever_a_second_step_retrieves_belongs_to_it(seen: Seen) -> None:
    for effects, names in (([Retrieve(QUESTION)], ["retrieve"]), ([], [])):
        seen.clear()
        account = Account(retrieves=False)
        account.go_on(Usage(), {}, seconds=0.0)
        with account:
            take(account, [*effects, "rag", "counted", SECTIONS, Decided("sections", a_verdict()), "sections"])
        assert seen.below(None) == [{NAME: [*names, "rag", "read_documents", "sections"]}]


@pytest.mark.parametrize("effect", [Retrieve(QUESTION), ReadDocuments([])], ids=["retrieve", "read_documents"])
def test_an_error_of_another_step_is_not_that_of_a_reply_still_open(seen: Seen, effect: Any) -> None:
    with suppress(ConnectionError), Account() as account:
        take(account, ["rag"])
        with account.performing(effect):
            raise ConnectionError(MESSAGE)
    failed = {span.name for span in seen.spans if span.status.status_code is StatusCode.ERROR}
    assert failed == {NAME, "retrieve" if isinstance(effect, Retrieve) else "read_documents"}
