"""An engine as it was when it was asked a question, which the query bundle carries to its retriever and synthesizer."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

from llama_index.core.schema import QueryBundle

_KEY = "_selfroute_asked"


@dataclass(frozen=True, slots=True, eq=False)
class AskedEngine:
    """An engine as it was when it was asked.

    It stays in this process: a deep copy of the bundle carries the same one, a pickled bundle none.

    Attributes:
        engine: The engine.
        as_asked: A copy of it that later changes do not reach.
        synthesizer: Its synthesizer.
        documents: Where its documents come from, limited to the view of its retriever.
    """

    engine: Any
    as_asked: Any
    synthesizer: Any
    documents: Any

    def __deepcopy__(self, memo: dict[int, Any]) -> AskedEngine:
        return self

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return type(None), ()


def asked_in(query: Any) -> AskedEngine | None:
    """Return the engine that was asked with a query bundle; None if none was."""
    return getattr(query, _KEY, None)


def carrying(query: QueryBundle, asked: AskedEngine) -> QueryBundle:
    """Return a copy of a query bundle that carries the engine that is asked."""
    found = copy(query)
    setattr(found, _KEY, asked)
    return found
