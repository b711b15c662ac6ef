"""The spans and metrics of one question; `telemetry` says what they are for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from selfroute.effects import Decided, Effect, Generate, ReadDocuments, Retrieve, Route
from selfroute.usage.counts import StepUsage
from selfroute.usage.prices import PricedModel

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span

    from selfroute.usage.entry import Entry
    from selfroute.usage.instruments import Api

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


class Trace:
    """The spans of a question and of the reply that is being read, and the metrics."""

    def __init__(self, api: Api, *, retrieves: bool, context: Context | None) -> None:
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
            return _CurrentStep(self._api, self._reply, self.end_reply) if self._reply else _NO_SPAN
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
        return _CurrentStep(self._api, span, partial(self._end, span), stays_open=False)

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


class _CurrentStep:
    """A context in which the span of a step is the current one."""

    __slots__ = ("_api", "_end", "_inside", "_outside", "_span", "_stays_open")

    def __init__(
        self, api: Api, span: Span, end: Callable[[BaseException | None], None], *, stays_open: bool = True
    ) -> None:
        self._api, self._span, self._end, self._stays_open = api, span, end, stays_open

    def __enter__(self) -> None:
        context = self._api.context
        self._outside = context.get_current()
        self._inside = self._api.trace.set_span_in_context(self._span, self._outside)
        context.attach(self._inside)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        context = self._api.context
        # A dropped stream is closed wherever the garbage collector runs. The context there is not ours to change.
        if context.get_current() is self._inside:
            context.attach(self._outside)  # `detach` would log an error in a context other than the token's
        if isinstance(error, Exception) or not self._stays_open:
            self._end(error)
