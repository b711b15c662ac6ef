"""The `SelfRouteLedger`, which adds up the usage of engines."""

from __future__ import annotations

import threading
from copy import deepcopy
from typing import Any

from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from pydantic import PrivateAttr
from typing_extensions import Self, override

from llamaindex_selfroute.events import SelfRouteQueryEvent
from selfroute.usage.ledger import Ledger


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
