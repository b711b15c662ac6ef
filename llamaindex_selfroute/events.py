"""The events that announce the route of a query, and its end."""

from __future__ import annotations

from typing import Any

from llama_index.core.instrumentation.dispatcher import Dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.event_handlers import NullEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from pydantic import ConfigDict, field_serializer

from llamaindex_selfroute.internals import pass_over
from selfroute.usage.counts import Entry


class SelfRouteDecisionEvent(BaseEvent):
    """The event that the route of a query is decided, sent before documents are read or text is shown.

    Example:
        ```python
        from llama_index.core.instrumentation import get_dispatcher
        from llama_index.core.instrumentation.event_handlers import BaseEventHandler
        from llamaindex_selfroute import SelfRouteDecisionEvent

        class Routes(BaseEventHandler):
            def handle(self, event, **kwargs):
                if isinstance(event, SelfRouteDecisionEvent):
                    print(event.route, event.decision["signal"])

        get_dispatcher().add_event_handler(Routes())
        ```

    Attributes:
        route: `"rag"`, `"sections"` or `"long_context"`. The last event of a query counts: after sections,
            documents may still be read.
        decision: Why this route, as in the response's metadata: `declined`, `signal`, `evidence`, `ruling`; `prospect`
            and `confidence` if the draft is graded.
    """

    model_config = ConfigDict(defer_build=True)

    route: str
    decision: dict[str, Any]

    @classmethod
    def class_name(cls) -> str:
        """Return the event's name for handlers."""
        return "SelfRouteDecisionEvent"


class SelfRouteQueryEvent(BaseEvent):
    """The event that a query has ended, with any outcome. `SelfRouteLedger` adds these events up.

    Example:
        ```python
        from llama_index.core.instrumentation import get_dispatcher
        from llama_index.core.instrumentation.event_handlers import BaseEventHandler
        from llamaindex_selfroute import SelfRouteQueryEvent

        class Costs(BaseEventHandler):
            def handle(self, event, **kwargs):
                if isinstance(event, SelfRouteQueryEvent):
                    print(event.entry.outcome, event.entry.usage.total_tokens, event.entry.seconds)

        get_dispatcher().add_event_handler(Costs())
        ```

    Attributes:
        entry: The record of the query, without any text: `outcome`, `usage`, `seconds`, `route`, `stopped` and
            more. When the event is dumped, it becomes plain JSON.
    """

    model_config = ConfigDict(defer_build=True)

    entry: Entry

    @field_serializer("entry")
    def _as_json(self, entry: Entry) -> dict[str, Any]:
        return entry.as_dict()

    @classmethod
    def class_name(cls) -> str:
        """Return the name by which handlers know the event."""
        return "SelfRouteQueryEvent"


def has_listener(dispatcher: Dispatcher) -> bool:
    """Return whether anybody handles the events of a dispatcher."""
    current: Dispatcher | None = dispatcher
    while current:
        if any(type(handler) is not NullEventHandler for handler in current.event_handlers):
            return True
        current = current.parent if current.propagate else None
    return False


def send(dispatcher: Dispatcher, event: type[BaseEvent], **fields: Any) -> None:
    """Send an event; it is created only if anybody handles it."""
    if has_listener(dispatcher):
        pass_over(event)
        dispatcher.event(event(**fields))
