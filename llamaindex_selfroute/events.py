"""The events by which an engine tells its route and what a query took, and how events are sent."""

from __future__ import annotations

from typing import Any

from llama_index.core.instrumentation.dispatcher import Dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.event_handlers import NullEventHandler
from llama_index.core.instrumentation.events import BaseEvent

from selfroute.usage.entry import Entry


class SelfRouteDecisionEvent(BaseEvent):
    """The route of a query is decided; nothing of the documents is read yet, and no text shown.

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
        route: `"rag"` or `"long_context"`.
        decision: Why, as in the response's metadata: `declined`, `signal`, `evidence`.
    """

    route: str
    decision: dict[str, Any]

    @classmethod
    def class_name(cls) -> str:
        """The name by which handlers know the event."""
        return "SelfRouteDecisionEvent"


class SelfRouteQueryEvent(BaseEvent):
    """A query is over, however it ended; `SelfRouteLedger` adds these up.

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
        entry: What it took, and how it ended: `outcome`, `usage`, `seconds`, `route` and so on, and no text.
    """

    entry: Entry

    @classmethod
    def class_name(cls) -> str:
        """The name by which handlers know the event."""
        return "SelfRouteQueryEvent"


def is_heard(dispatcher: Dispatcher) -> bool:
    """Whether somebody listens."""
    at: Dispatcher | None = dispatcher
    while at:
        if any(type(handler) is not NullEventHandler for handler in at.event_handlers):
            return True
        at = at.parent if at.propagate else None
    return False


def send(dispatcher: Dispatcher, event: type[BaseEvent], **fields: Any) -> None:
    """Send an event, which is made only if somebody listens."""
    if is_heard(dispatcher):
        dispatcher.event(event(**fields))
