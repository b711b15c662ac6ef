"""The events that announce the route of a query, and its end; and the ledger that adds them up."""

from __future__ import annotations

import threading
from copy import deepcopy
from typing import Any

from llama_index.core.instrumentation.dispatcher import Dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.event_handlers import BaseEventHandler, NullEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from pydantic import ConfigDict, PrivateAttr, field_serializer
from typing_extensions import Self, override

from llamaindex_selfroute.internals import pass_over
from selfroute.usage.entry import Entry
from selfroute.usage.ledger import Ledger

_SILENT = frozenset([NullEventHandler])


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


class SelfRouteLedger(Ledger, BaseEventHandler):
    """An event handler that adds up the tokens, costs and times of queries, and what Self-Route saved.

    Add it to LlamaIndex's root dispatcher to count the queries of all engines and synthesizers. Each query is counted
    once, when it ends. The ledger ignores all other events.

    Example:
        ```python
        from llama_index.core import Document, MockEmbedding, VectorStoreIndex
        from llama_index.core.instrumentation import get_dispatcher
        from llama_index.core.llms import MockLLM
        from llamaindex_selfroute import SelfRouteLedger, SelfRouteQueryEngine

        ledger = SelfRouteLedger()
        get_dispatcher().add_event_handler(ledger)
        minutes = Document(text="Ms Okafor chaired the meeting. ...")
        index = VectorStoreIndex.from_documents([minutes], embed_model=MockEmbedding(embed_dim=8))
        engine = SelfRouteQueryEngine.from_index(index, llm=MockLLM(max_tokens=3))
        engine.query("Who chaired the meeting?")
        print(ledger)
        assert ledger.to_dict()["routes"] == {"rag": 1, "sections": 0, "long_context": 0}
        ```
    """

    _last: threading.local = PrivateAttr(default_factory=threading.local)

    def __init__(self) -> None:
        BaseEventHandler.__init__(self)
        Ledger.__init__(self)

    @override
    def __setstate__(self, state: dict[str, Any]) -> None:
        BaseEventHandler.__init__(self)
        Ledger.__setstate__(self, state)

    @override
    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        copy = type(self).__new__(type(self))
        copy.__setstate__(deepcopy(self.__getstate__(), memo))
        return copy

    @classmethod
    @override
    def class_name(cls) -> str:
        """Return the name by which dispatchers know the handler."""
        return "SelfRouteLedger"

    @override
    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        """Add a query that is over; only once if the ledger was added twice, as by running a notebook's cell again."""
        if isinstance(event, SelfRouteQueryEvent) and event.id_ != getattr(self._last, "id", None):
            self._last.id = event.id_  # a dispatcher calls its handlers one after the other, in one thread
            self.add(event.entry)


def has_listener(dispatcher: Dispatcher) -> bool:
    """Return whether anybody handles the events of a dispatcher."""
    current: Dispatcher | None = dispatcher
    while current:
        if not _SILENT.issuperset(map(type, current.event_handlers)):
            return True
        current = current.parent if current.propagate else None
    return False


def send(dispatcher: Dispatcher, event: type[BaseEvent], **fields: Any) -> None:
    """Send an event; it is created only if anybody handles it."""
    if has_listener(dispatcher):
        pass_over(event)
        dispatcher.event(event(**fields))
