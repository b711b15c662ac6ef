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
from collections.abc import Callable
from types import ModuleType
from typing import Any

from selfroute.usage.instruments import load_api
from selfroute.usage.spans import Trace


def trace(*, retrieves: bool = True, parent: Callable[[], Any] | None = None) -> Trace | None:
    """Begin the trace of a question; return None if no provider would record it, or if it is turned off.

    Args:
        retrieves: Whether retrieval is part of the question, and gets a span.
        parent: Returns the span that the question's is a child of; by default, or if it returns something that is no
            span, the current one. It is called only if a provider records.
    """
    api = load_api()
    if api is None or not api.has_provider() or _turned_off(api.context):
        return None
    span = parent() if parent else None
    known = isinstance(span, api.trace.Span) and span.get_span_context().is_valid
    return Trace(api, retrieves=retrieves, context=api.trace.set_span_in_context(span) if known else None)


def _turned_off(context: ModuleType) -> bool:
    # This is how instrumentations know that they run within `suppress_instrumentation` or `suppress_tracing`.
    suppressed = getattr(context, "_SUPPRESS_INSTRUMENTATION_KEY", None)
    if suppressed and context.get_value(suppressed):
        return True
    disabled = os.environ.get("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "").split(",")
    return not {"selfroute", "*"}.isdisjoint(map(str.strip, disabled))
