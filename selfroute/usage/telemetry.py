"""Trace questions with OpenTelemetry: spans and metrics, named by its semantic conventions for GenAI.

This does nothing unless `opentelemetry-api` 1.30 or newer is installed and a provider is set. `selfroute` in the
environment variable `OTEL_PYTHON_DISABLED_INSTRUMENTATIONS` turns it off, and so does `*`; within OpenTelemetry's
`suppress_instrumentation` it is off, too. No text is ever recorded: no
question, prompt, document, answer or error message.

To the conventions, a question is a workflow: a span `invoke_workflow selfroute` with a child span for each step that
ran, and the metric `gen_ai.workflow.duration`. The instrumentation of a model's client adds the `chat` span of a call
below ours, and counts its tokens in `gen_ai.client.*`. So that a dashboard does not count them twice, our spans are not
`chat` spans, although they have the step's `gen_ai.usage.*`, and our token metric is `selfroute.token.usage`. The
counter `selfroute.cost` adds up the US dollars that are known, whatever the outcome of the question.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

from selfroute.effects import Decided, Effect, Generate, ReadDocuments, Retrieve, Route
from selfroute.usage.counts import Entry, StepUsage
from selfroute.usage.prices import PricedModel

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import Counter, Histogram
    from opentelemetry.trace import Span, Tracer

_OPERATION = "gen_ai.operation.name"
_WORKFLOW = {"gen_ai.workflow.name": "selfroute"}
_ERROR = "error.type"

# The conventions' names for providers that the frameworks name differently.
_PROVIDERS = {
    "amazon_bedrock": "aws.bedrock",
    "bedrock": "aws.bedrock",
    "bedrock_converse": "aws.bedrock",
    "azure": "azure.ai.openai",
    "azure_openai": "azure.ai.openai",
    "google": "gcp.gen_ai",
    "google_genai": "gcp.gen_ai",
    "google_vertexai": "gcp.vertex_ai",
    "mistral": "mistral_ai",
    "mistralai": "mistral_ai",
    "xai": "x_ai",
}
_NO_SPAN = nullcontext()
# The bucket boundaries that the conventions recommend.
_SECONDS = (1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200)
_TOKENS = tuple(4**power for power in range(14))


@dataclass(frozen=True, slots=True)
class _Api:
    """The parts of OpenTelemetry that are used here; they use the user's provider once it is set."""

    context: ModuleType
    trace: ModuleType
    metrics: ModuleType
    tracer: Tracer
    seconds: Histogram
    tokens: Histogram
    cost: Counter
    placeholders: frozenset[Any]

    def records(self) -> bool:
        """Return whether the user has set a provider of traces or metrics, and has not turned us off."""
        own = self.placeholders
        if type(self.trace.get_tracer_provider()) in own and type(self.metrics.get_meter_provider()) in own:
            return False
        # This is how instrumentations know that they run within `suppress_instrumentation` or `suppress_tracing`.
        suppressed = getattr(self.context, "_SUPPRESS_INSTRUMENTATION_KEY", None)
        if suppressed and self.context.get_value(suppressed):
            return False
        disabled = os.environ.get("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "").split(",")
        return {"selfroute", "*"}.isdisjoint(map(str.strip, disabled))


@cache
def _load_api() -> _Api | None:
    """Return the parts of OpenTelemetry; None if it is not installed or too old."""
    try:
        from opentelemetry import context, metrics, trace  # noqa: PLC0415
    except ImportError:
        return None
    from selfroute.version import __version__  # noqa: PLC0415

    meter = metrics.get_meter("selfroute", __version__)
    try:
        seconds = meter.create_histogram(
            "gen_ai.workflow.duration", "s", "GenAI workflow duration.", explicit_bucket_boundaries_advisory=_SECONDS
        )
        tokens = meter.create_histogram(
            "selfroute.token.usage",
            "{token}",
            "Number of input and output tokens that a step used.",
            explicit_bucket_boundaries_advisory=_TOKENS,
        )
    except TypeError:  # older than 1.30: histograms take no bucket boundaries
        return None
    cost = meter.create_counter("selfroute.cost", "{USD}", "US dollars that questions cost, as far as they are known.")
    tracer = trace.get_tracer("selfroute", __version__)
    # The API's own providers, which record nothing, and are in place until the user sets others. One is private: if a
    # release renames it, questions are traced without a provider, which is slower but right.
    own = (
        *(getattr(trace, name, None) for name in ("ProxyTracerProvider", "NoOpTracerProvider")),
        getattr(metrics, "NoOpMeterProvider", None),
        getattr(getattr(metrics, "_internal", None), "_ProxyMeterProvider", None),
    )
    return _Api(context, trace, metrics, tracer, seconds, tokens, cost, frozenset(own))


def trace(*, retrieves: bool = True, parent: Callable[[], Any] | None = None) -> Trace | None:
    """Begin the trace of a question; return None if no provider would record it, or if it is turned off.

    Args:
        retrieves: Whether retrieval is part of the question, and gets a span.
        parent: Returns the span that the question's is a child of; by default, or if it returns something that is no
            span, the current one. It is called only if a provider records.
    """
    api = _load_api()
    if api is None or not api.records():
        return None
    span = parent() if parent else None
    known = isinstance(span, api.trace.Span) and span.get_span_context().is_valid
    return Trace(api, retrieves=retrieves, context=api.trace.set_span_in_context(span) if known else None)


class Trace:
    """The spans of a question and of the reply that is being read, and the metrics."""

    def __init__(self, api: _Api, *, retrieves: bool, context: Context | None) -> None:
        """Begin the trace; `retrieves` says whether the first retrieval is part of the question."""
        self._api, self._retrieves = api, retrieves
        self._reply: Span | None = None
        self._replying: Route | None = None  # the step of the reply
        self._counted = False  # its tokens, so it has come to its end
        span = api.tracer.start_span(
            "invoke_workflow selfroute", context, attributes={_OPERATION: "invoke_workflow", **_WORKFLOW}
        )
        # Without a tracer provider and outside of any other span, there is no context to pass on.
        self._question: Span | None = span if span.get_span_context().is_valid else None

    def step(self, effect: Effect) -> AbstractContextManager[object]:
        """Return a context in which to perform an effect.

        The span of a `Generate` stays open while the reply may still be streaming: until it is counted and the next
        effect begins, until the question goes to another step, or until it ends.
        """
        if self._question is None:
            return _NO_SPAN
        if isinstance(effect, Generate):
            if not effect.resumed or self._replying is None:
                self.end_reply()
                self._reply, self._replying, self._counted = self._start(effect.step), effect.step, False
            return _current(self._api, self._reply, self.end_reply) if self._reply else _NO_SPAN
        if self._counted:
            self._end_span()
        if isinstance(effect, Retrieve):
            if not self._retrieves:  # somebody else did
                return _NO_SPAN
            span = self._start("retrieve", {_OPERATION: "retrieval"})
        elif isinstance(effect, ReadDocuments) and effect.step != "rag":
            span = self._start("read_documents")
        else:  # nothing is read
            return _NO_SPAN
        return _current(self._api, span, partial(self._end, span), stays_open=False)

    def _start(self, name: str, attributes: dict[str, str] | None = None) -> Span:
        return self._api.tracer.start_span(
            name, self._api.trace.set_span_in_context(self._question), attributes=attributes
        )

    def decided(self, effect: Decided) -> None:
        """Record the route, and what a policy said."""
        if effect.route != self._replying:
            self.end_reply()
        if self._question is None:
            return
        decision, ruling = effect.decision, effect.decision.ruling or {}
        attributes = {
            "route": effect.route,
            "declined": decision.declined,
            "signal": decision.signal,
            "prospect": decision.prospect,
            "confidence": decision.confidence,
            "ruling.go": ruling.get("go"),
            "ruling.by": ruling.get("by"),  # not the reason, which may quote texts
        }
        self._set(attributes)

    def end_reply(self, error: BaseException | None = None) -> None:
        """End the reply, and its span if that is open."""
        self._end_span(error)
        self._replying = None

    def _end_span(self, error: BaseException | None = None) -> None:
        span, self._reply = self._reply, None
        if span is not None:
            self._end(span, error)

    def _set(self, attributes: Mapping[str, Any]) -> None:
        """Set the question's attributes, as far as they are known."""
        if self._question is not None:
            self._question.set_attributes(
                {f"selfroute.{name}": value for name, value in attributes.items() if value is not None}
            )

    def add_call(self, step: Route, counts: StepUsage, model: PricedModel) -> None:
        """Record the tokens of a call of a model."""
        attributes: dict[str, Any] = {"selfroute.estimated": counts.estimated}
        if model.provider:
            attributes["gen_ai.provider.name"] = _PROVIDERS.get(model.provider, model.provider)
        if model.name:
            attributes["gen_ai.response.model"] = model.name
        for kind, tokens in (("input", counts.input_tokens), ("output", counts.output_tokens)):
            self._api.tokens.record(tokens, {**attributes, "selfroute.step": step, "gen_ai.token.type": kind})
        self._counted = True
        if self._reply is not None:
            self._reply.set_attributes(
                {
                    **attributes,
                    "gen_ai.usage.input_tokens": counts.input_tokens,
                    "gen_ai.usage.output_tokens": counts.output_tokens,
                    "gen_ai.usage.cache_read.input_tokens": counts.cached_tokens,
                    "gen_ai.usage.cache_creation.input_tokens": counts.cache_write_tokens,
                }
            )

    def end(self, entry: Entry, error: BaseException | None) -> None:
        """End the trace."""
        # An error before any text was shown is another step's: that of a reply has ended its span.
        self.end_reply(None if entry.seconds_to_first_text is None else error)
        result = {"selfroute.outcome": entry.outcome, "selfroute.route": entry.route}
        known = {name: value for name, value in result.items() if value is not None}
        failed = {_ERROR: entry.error} if entry.error else {}
        self._api.seconds.record(entry.seconds or 0.0, {**_WORKFLOW, **known, **failed})
        usage, dollars = entry.usage, entry.usage.cost.dollars
        counted = entry.new_usage.steps.values()
        for step in counted:
            if step.cost.dollars is not None:
                self._api.cost.add(float(step.cost.dollars), known)
        if self._question is None:
            return
        if not counted and entry.outcome != "answered":
            dollars = None  # a call whose tokens were not counted may have cost something
        attributes = {
            "outcome": entry.outcome,
            "answerable": entry.answerable,
            "doubted": entry.doubted or None,
            "stopped": entry.stopped or None,
            "estimated": usage.estimated,
            "long_context_only": usage.long_context_only,
            "token_ratio": usage.token_ratio,
            "cost": None if dollars is None else float(dollars),
        }
        self._set(attributes)
        self._end(self._question, error)

    def _end(self, span: Span, error: BaseException | None = None) -> None:
        if isinstance(error, Exception):  # others mean that the reader left: GeneratorExit, CancelledError
            span.set_attribute(_ERROR, type(error).__name__)  # not its message, which may quote texts
            span.set_status(self._api.trace.StatusCode.ERROR)
        span.end()


@contextmanager
def _current(
    api: _Api, span: Span, end: Callable[[BaseException | None], None], *, stays_open: bool = True
) -> Iterator[None]:
    """Make the span of a step the current one within this context."""
    outside = api.context.get_current()
    inside = api.trace.set_span_in_context(span, outside)
    api.context.attach(inside)
    failed: BaseException | None = None
    try:
        yield
    except BaseException as error:
        failed = error
        raise
    finally:
        # A dropped stream is closed wherever the garbage collector runs. The context there is not ours to change.
        if api.context.get_current() is inside:
            api.context.attach(outside)  # `detach` would log an error in a context other than the token's
        if isinstance(failed, Exception) or not stays_open:
            end(failed)
