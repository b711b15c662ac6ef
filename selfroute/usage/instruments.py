"""The parts of OpenTelemetry that questions are traced with, as far as it is installed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentelemetry.metrics import Counter, Histogram
    from opentelemetry.trace import Tracer

# The bucket boundaries that the conventions recommend.
_SECONDS = (1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200)
_TOKENS = tuple(4**power for power in range(14))


@dataclass(frozen=True, slots=True)
class Api:
    """The parts of OpenTelemetry that are used here; they use the user's provider once it is set."""

    context: ModuleType
    trace: ModuleType
    metrics: ModuleType
    tracer: Tracer
    seconds: Histogram
    tokens: Histogram
    cost: Counter
    placeholders: frozenset[Any]

    def has_provider(self) -> bool:
        """Return whether the user has set a provider of traces or metrics."""
        providers = (self.trace.get_tracer_provider(), self.metrics.get_meter_provider())
        return any(type(provider) not in self.placeholders for provider in providers)


@cache
def load_api() -> Api | None:
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
    return Api(context, trace, metrics, tracer, seconds, tokens, cost, _placeholders(trace, metrics))


def _placeholders(trace: ModuleType, metrics: ModuleType) -> frozenset[Any]:
    """Return the types of the API's own providers, which record nothing and are in place until the user sets others.

    One of them is private. If a release renames it, questions are traced without a provider, which is slower but right.
    """
    return frozenset(
        [
            getattr(trace, "ProxyTracerProvider", None),
            getattr(trace, "NoOpTracerProvider", None),
            getattr(metrics, "NoOpMeterProvider", None),
            getattr(getattr(metrics, "_internal", None), "_ProxyMeterProvider", None),
        ]
    )
