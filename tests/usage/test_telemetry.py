"""OpenTelemetry: one span for each question, in both frameworks, with what its ledger entry says and no text."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import context, trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from both_parts import EVERYWHERE, STREAMS, ledger_of, listening, pipeline
from langchain_parts import a_chain, ask
from llamaindex_parts import an_engine
from scenarios import DOCUMENT_TEXTS, FINAL, FOUND, PASSAGE_TEXTS, QUESTION, WHOLE

NAME = "invoke_workflow selfroute"
MESSAGE = "what the provider said of the prompt"


@pytest.fixture(scope="session")  # a process can set a provider only once
def provided() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    yield exporter
    exporter.shutdown()


@pytest.fixture
def exporter(provided: InMemorySpanExporter) -> InMemorySpanExporter:
    provided.clear()
    return provided


def span_of(exporter: InMemorySpanExporter) -> ReadableSpan:
    (span,) = [span for span in exporter.get_finished_spans() if span.name == NAME]
    return span


PRICED = {"usage": True, "priced_as": "openai:gpt-4o-mini"}
ENDED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # options, and what the span says beside tokens and cost
    "answered": (
        {"draft": ("Mr Lin.",)},
        {"route": "rag", "declined": False, "answerable": True},
    ),
    "declined": (
        {},
        {"route": "long_context", "declined": True, "answerable": True},
    ),
    "neither": (
        {"final": ("unanswerable",)},
        {"route": "long_context", "declined": True, "answerable": False},
    ),
    "in doubt, and a policy says no": (
        {"draft": ("80 42\n", "Mr Lin."), "answerability": "graded", "escalation": lambda _: False},
        {"route": "rag", "declined": False, "answerable": True, "stopped": True},
    ),
}


async def test_telemetry_that_fails_costs_no_answer_and_no_entry(
    exporter: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ConnectionError

    monkeypatch.setattr(trace, "get_tracer", broken)
    one, ledger = pipeline("langchain invoke"), ledger_of("langchain invoke")
    with listening(ledger, one):
        assert (await one.ask()).answer == FOUND
    assert (ledger.to_dict()["queries"], exporter.get_finished_spans()) == (1, ())


@pytest.mark.parametrize("where", EVERYWHERE)
@pytest.mark.parametrize("name", ENDED)
async def test_telemetry_span_says_what_the_result_says(exporter: InMemorySpanExporter, name: str, where: str) -> None:
    fields, expected = ENDED[name]
    found = await pipeline(where, **{**PRICED, "ends": {"rag": "stop", "long_context": "stop"}, **fields}).ask()
    span, usage = span_of(exporter), found.usage
    steps = [usage[step] for step in ("rag", "long_context") if usage[step]]
    (model,) = span.attributes["selfroute.models"]
    ratio = {"selfroute.token_ratio": usage["token_ratio"], "selfroute.long_context_only": usage["long_context_only"]}
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": "selfroute",
        "gen_ai.usage.input_tokens": sum(step["input_tokens"] for step in steps),
        "gen_ai.usage.output_tokens": sum(step["output_tokens"] for step in steps),
        "gen_ai.response.finish_reasons": ("stop",),
        "selfroute.outcome": "answered",
        "selfroute.models": (model,),
        "selfroute.estimated": False,
        "selfroute.cost": float(usage["cost"]),
        **{f"selfroute.{key}": value for key, value in {"doubted": False, "stopped": False, **expected}.items()},
        **{key: value for key, value in ratio.items() if value is not None},
    }
    assert model == "openai:gpt-4o-mini"
    texts = (QUESTION, WHOLE, FOUND, *FINAL, *PASSAGE_TEXTS, *DOCUMENT_TEXTS, "Mr Lin", "unanswerable")
    assert not [text for text in texts if text in str(span.to_json()).replace("selfroute.answerable", "")]
    assert (span.kind, span.status.status_code, span.parent) == (SpanKind.INTERNAL, StatusCode.UNSET, None)


@pytest.mark.parametrize("where", EVERYWHERE)
async def test_telemetry_failed_question_has_the_name_of_its_error(exporter: InMemorySpanExporter, where: str) -> None:
    with pytest.raises(ConnectionError):
        await pipeline(where, failures={"rag": [ConnectionError(MESSAGE)]}, **PRICED).ask()
    span = span_of(exporter)
    assert (span.status.status_code, span.status.description, span.events) == (StatusCode.ERROR, None, ())
    assert (span.attributes["error.type"], span.attributes["selfroute.outcome"]) == ("ConnectionError", "failed")
    assert "selfroute.cost" not in span.attributes  # the call may have cost something
    assert MESSAGE not in str(span.to_json())


@pytest.mark.parametrize("where", STREAMS)
async def test_telemetry_reader_who_leaves_is_no_error(exporter: InMemorySpanExporter, where: str) -> None:
    pieces = pipeline(where).pieces()
    await anext(pieces)
    await pieces.aclose()
    span = span_of(exporter)
    assert (span.attributes["selfroute.outcome"], span.status.status_code) == ("left", StatusCode.UNSET)


async def test_telemetry_span_belongs_to_the_one_that_was_current(exporter: InMemorySpanExporter) -> None:
    tracer = trace.get_tracer("somebody else's")

    async def asks(number: int) -> int:
        with tracer.start_as_current_span(f"caller {number}") as caller:
            await ask(a_chain(delay=0.001), QUESTION, ("ainvoke", "astream")[number % 2])
        return caller.get_span_context().span_id

    callers = await asyncio.gather(*map(asks, range(20)))
    spans = [span for span in exporter.get_finished_spans() if span.name == NAME]
    assert sorted(span.parent.span_id for span in spans if span.parent) == sorted(callers)
    assert all((span.end_time or 0) - (span.start_time or 0) > 1_000_000 for span in spans)  # both steps waited


@pytest.mark.parametrize(
    ("names", "off"),
    [("selfroute", True), ("openai, selfroute ,httpx", True), ("*", True), ("", False), ("selfroute-other", False)],
)
def test_telemetry_environment_variable_turns_it_off(
    exporter: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch, names: str, *, off: bool
) -> None:
    monkeypatch.setenv("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", names)
    a_chain().invoke(QUESTION)
    an_engine().query(QUESTION)
    assert len(exporter.get_finished_spans()) == (0 if off else 2)


def test_telemetry_is_off_where_instrumentation_is_suppressed(exporter: InMemorySpanExporter) -> None:
    token = context.attach(context.set_value(context._SUPPRESS_INSTRUMENTATION_KEY, True))
    a_chain().invoke(QUESTION)
    context.detach(token)
    assert exporter.get_finished_spans() == ()


def _run(code: str) -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=100)  # noqa: S603


def test_telemetry_is_not_imported_with_the_core() -> None:
    _run(
        "import sys, selfroute.usage.account, selfroute.calls.drivers\n"
        "assert not any(name.partition('.')[0] == 'opentelemetry' for name in sys.modules)\n"
    )


@pytest.mark.matrix
@pytest.mark.parametrize("missing", [True, False], ids=["no package", "no provider"])
def test_telemetry_without_package_or_provider_records_nothing(*, missing: bool) -> None:
    _run(
        f"import sys\nif {missing}: sys.modules['opentelemetry'] = None\n"
        "sys.path.insert(0, 'tests/support')\n"
        "from selfroute.usage import telemetry\n"
        "from llamaindex_parts import QUESTION, an_engine\n"
        "assert an_engine().query(QUESTION).metadata['route'] == 'long_context'\n"
        "assert telemetry.parent() is None\n"
    )
