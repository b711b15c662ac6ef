"""OpenTelemetry's spans and metrics of a question, with the names of its GenAI semantic conventions.

Nothing is done unless `opentelemetry-api` (1.30 or newer) is installed, and no text is ever recorded: no question,
prompt, document, answer or message of an error.

A question is a workflow to the conventions: a span `invoke_workflow selfroute` and the metric
`gen_ai.workflow.duration`, with a child span for each step that ran. Clients' own instrumentation makes the `chat` span
of a call, below ours, and counts it in `gen_ai.client.*`. So that a dashboard counts no call twice, ours are no
`chat` spans, though they hold the step's `gen_ai.usage.*`, and our metric of tokens is `selfroute.token.usage`. The
counter `selfroute.cost` adds up US dollars as far as they are known, whatever became of the question.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from selfroute.flow import Decided, Effect, Generate, Retrieve, Route
from selfroute.usage.counts import StepUsage
from selfroute.usage.prices import PricedModel

if TYPE_CHECKING:
    from opentelemetry.metrics import Counter, Histogram
    from opentelemetry.trace import Span, Tracer

    from selfroute.usage.entry import Entry

_OPERATION = "gen_ai.operation.name"
_WORKFLOW = {"gen_ai.workflow.name": "selfroute"}
_ERROR = "error.type"
_UNSET = ("opentelemetry.trace", "opentelemetry.metrics")

# The bounds that the conventions advise.
_SECONDS = (1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200)
_TOKENS = tuple(4**power for power in range(14))

# What the frameworks call providers that have another name in the conventions.
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


class Trace(Protocol):
    """The trace of one question."""

    def step(self, effect: Effect) -> AbstractContextManager[object]:
        """The time in which an effect is performed; of a `Generate` it goes on until the next, or the end."""

    def add_call(self, step: Route, counts: StepUsage, model: PricedModel) -> None:
        """Note a call of a model."""

    def end(self, entry: Entry, error: BaseException | None) -> None:
        """End it."""


def trace(*, retrieves: bool = True) -> Trace | None:
    """Begin the trace of a question, below the span that is current; None where nobody would hear of it.

    Args:
        retrieves: Whether retrieval is part of it.
    """
    api = _api()
    return _Trace(api, retrieves=retrieves) if api and api.is_heard() else None


@dataclass(frozen=True, slots=True)
class _Api:
    """What is used of OpenTelemetry; all of it turns to the user's provider whenever that is set."""

    context: ModuleType
    trace: ModuleType
    metrics: ModuleType
    tracer: Tracer
    seconds: Histogram
    tokens: Histogram
    cost: Counter

    def is_heard(self) -> bool:
        """Whether a provider is set; until then there are the API's own, which do nothing."""
        providers = (self.trace.get_tracer_provider(), self.metrics.get_meter_provider())
        return any(not type(one).__module__.startswith(_UNSET) for one in providers)


@cache
def _api() -> _Api | None:
    try:
        from opentelemetry import context, metrics, trace  # noqa: PLC0415
    except ImportError:
        return None
    from selfroute import __version__  # noqa: PLC0415

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
    except TypeError:  # before 1.30, where bounds can not be advised
        return None
    cost = meter.create_counter("selfroute.cost", "{USD}", "US dollars that questions cost, as far as they are known.")
    tracer = trace.get_tracer("selfroute", __version__)
    return _Api(context, trace, metrics, tracer, seconds, tokens, cost)


_NOTHING = nullcontext()


class _Trace:
    """A span for the question and one for the step that runs, if there is any; and the metrics."""

    def __init__(self, api: _Api, *, retrieves: bool) -> None:
        self._api, self._retrieves = api, retrieves
        self._step: Span | None = None
        span = api.tracer.start_span(
            "invoke_workflow selfroute", attributes={_OPERATION: "invoke_workflow", **_WORKFLOW}
        )
        # Without a provider, and not below anybody's span, there is nothing to hand down.
        self._question: Span | None = span if span.get_span_context().is_valid else None

    def step(self, effect: Effect) -> AbstractContextManager[object]:
        if self._question is None or (isinstance(effect, Retrieve) and not self._retrieves):
            return _NOTHING
        if isinstance(effect, Decided):
            decision = effect.decision
            about = {"route": effect.route, "declined": decision.declined, "signal": decision.signal}
            self._question.set_attributes({f"selfroute.{name}": value for name, value in about.items()})
            if decision:
                self.step_ends()
            return _NOTHING
        self.step_ends()
        goes_on, retrieves = isinstance(effect, Generate), isinstance(effect, Retrieve)
        self._step = self._api.tracer.start_span(
            effect.step if isinstance(effect, Generate) else "retrieve" if retrieves else "read_documents",
            self._api.trace.set_span_in_context(self._question),
            attributes={_OPERATION: "retrieval"} if retrieves else None,
        )
        return _Performing(self, self._api, self._step, goes_on=goes_on)

    def step_ends(self, error: BaseException | None = None) -> None:
        """End the step's span, if one is open."""
        span, self._step = self._step, None
        if span is not None:
            self._end(span, error)

    def add_call(self, step: Route, counts: StepUsage, model: PricedModel) -> None:
        about: dict[str, Any] = {"selfroute.estimated": counts.estimated}
        if model.provider:
            about["gen_ai.provider.name"] = _PROVIDERS.get(model.provider, model.provider)
        if model.name:
            about["gen_ai.response.model"] = model.name
        for kind, tokens in (("input", counts.input_tokens), ("output", counts.output_tokens)):
            self._api.tokens.record(tokens, {**about, "selfroute.step": step, "gen_ai.token.type": kind})
        if self._step is not None:
            self._step.set_attributes(
                {
                    **about,
                    "gen_ai.usage.input_tokens": counts.input_tokens,
                    "gen_ai.usage.output_tokens": counts.output_tokens,
                    "gen_ai.usage.cache_read.input_tokens": counts.cached_tokens,
                    "gen_ai.usage.cache_creation.input_tokens": counts.cache_write_tokens,
                }
            )

    def end(self, entry: Entry, error: BaseException | None) -> None:
        self.step_ends(error)
        ended = {"selfroute.outcome": entry.outcome, "selfroute.route": entry.route}
        known = {name: value for name, value in ended.items() if value is not None}
        failed = {_ERROR: entry.error} if entry.error else {}
        self._api.seconds.record(entry.seconds, {**_WORKFLOW, **known, **failed})
        usage, dollars = entry.usage, entry.usage.cost.dollars
        paid = [step for step in (usage.rag, usage.long_context) if step]
        for step in paid:
            if step.cost.dollars is not None:
                self._api.cost.add(float(step.cost.dollars), known)
        if self._question is None:
            return
        if not paid and entry.outcome != "answered":
            dollars = None  # a call that nobody counted may have cost something
        about = {
            "outcome": entry.outcome,
            "answerable": entry.answerable,
            "estimated": usage.estimated,
            "long_context_only": usage.long_context_only,
            "token_ratio": usage.token_ratio,
            "cost": None if dollars is None else float(dollars),
        }
        self._question.set_attributes(
            {f"selfroute.{name}": value for name, value in about.items() if value is not None}
        )
        self._end(self._question, error)

    def _end(self, span: Span, error: BaseException | None) -> None:
        if isinstance(error, Exception):  # what is none is a reader who left
            span.set_attribute(_ERROR, type(error).__name__)  # its message may hold texts
            span.set_status(self._api.trace.StatusCode.ERROR)
        span.end()


class _Performing:
    """The time in which a step's span is the current one."""

    __slots__ = ("_api", "_before", "_goes_on", "_span", "_trace", "_within")

    def __init__(self, trace: _Trace, api: _Api, span: Span, *, goes_on: bool) -> None:
        self._trace, self._api, self._span, self._goes_on = trace, api, span, goes_on

    def __enter__(self) -> None:
        context = self._api.context
        self._before = context.get_current()
        self._within = self._api.trace.set_span_in_context(self._span, self._before)
        context.attach(self._within)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        context = self._api.context
        # A task that is thrown away is ended wherever the garbage is collected: that has a context of its own.
        if context.get_current() is self._within:
            context.attach(self._before)  # unlike `detach` it can not fail
        if isinstance(error, Exception) or not self._goes_on:
            self._trace.step_ends(error)
