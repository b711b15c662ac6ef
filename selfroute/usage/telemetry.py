"""One OpenTelemetry span for each question, with what its ledger entry says and no text.

Nothing is recorded unless `opentelemetry-api` is installed and a tracer provider is set. The environment variable
`OTEL_PYTHON_DISABLED_INSTRUMENTATIONS` turns it off if it lists `selfroute` or `*`, and so does OpenTelemetry's
`suppress_instrumentation`. The steps of a question are spans of the frameworks' own instrumentation.
"""

from __future__ import annotations

import os
import time
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from selfroute.usage.entry import Entry

if TYPE_CHECKING:
    from opentelemetry.context import Context

_NAME = "invoke_workflow selfroute"
_CONVENTIONS = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "selfroute"}


@cache
def _api() -> tuple[ModuleType, ModuleType] | None:
    """Return `opentelemetry.context` and `opentelemetry.trace`; None if they are not installed."""
    try:
        from opentelemetry import context, trace  # noqa: PLC0415
    except ImportError:
        return None
    return context, trace


def parent() -> Context | None:
    """Return the current context, which becomes the parent of a question's span; None if nothing records spans."""
    api = _api()
    if api is None:
        return None
    context, trace = api
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider | trace.NoOpTracerProvider):
        return None
    # Other instrumentations look at this private key, too, to know that they are suppressed.
    suppressed = getattr(context, "_SUPPRESS_INSTRUMENTATION_KEY", None)
    disabled = os.environ.get("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "").split(",")
    if (suppressed and context.get_value(suppressed)) or not {"selfroute", "*"}.isdisjoint(map(str.strip, disabled)):
        return None
    return context.get_current()  # type: ignore[no-any-return]


def record(entry: Entry, *, parent: Context, finish_reason: str | None) -> None:
    """Record the span of a question that has just ended.

    Args:
        entry: The record of the question.
        parent: The context in which it began.
        finish_reason: How the reply that is shown ended; None if that is not known.
    """
    from opentelemetry import trace  # noqa: PLC0415

    from selfroute.version import __version__  # noqa: PLC0415

    end = time.time_ns()
    span = trace.get_tracer("selfroute", __version__).start_span(
        _NAME, parent, attributes=_attributes(entry, finish_reason), start_time=end - int((entry.seconds or 0) * 1e9)
    )
    if entry.error:
        span.set_status(trace.StatusCode.ERROR)  # without a description: messages may quote texts
    span.end(end)


def _attributes(entry: Entry, finish_reason: str | None) -> dict[str, Any]:
    usage = entry.usage
    dollars = usage.cost.dollars
    if not usage.steps and entry.outcome != "answered":
        dollars = None  # a call that failed may have cost something
    found = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.total_tokens - usage.input_tokens,
        "gen_ai.response.finish_reasons": [finish_reason] if finish_reason else None,
        "error.type": entry.error,
        "selfroute.outcome": entry.outcome,
        "selfroute.route": entry.route,
        "selfroute.declined": entry.declined,
        "selfroute.doubted": entry.doubted,
        "selfroute.stopped": entry.stopped,
        "selfroute.answerable": entry.answerable,
        "selfroute.models": list(entry.models) or None,
        "selfroute.estimated": usage.estimated,
        "selfroute.long_context_only": usage.long_context_only,
        "selfroute.token_ratio": usage.token_ratio,
        "selfroute.cost": None if dollars is None else float(dollars),
    }
    return _CONVENTIONS | {name: value for name, value in found.items() if value is not None}
