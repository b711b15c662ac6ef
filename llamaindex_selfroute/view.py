"""What the retriever of an engine may see, taken when a question is asked, and handed on with its query bundle."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

from llama_index.core.schema import QueryBundle

_KEY = "_selfroute_view"


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """What one question of an engine may see, as it is when the question is asked.

    It stays in this process: a deep copy of the bundle carries the same view, a pickled one none.

    Attributes:
        engine: The engine.
        as_asked: A copy of it that later changes do not reach.
        synthesizer: Its synthesizer.
        documents: The source of documents, limited to what the retriever may see.
    """

    engine: Any
    as_asked: Any
    synthesizer: Any
    documents: Any

    def __deepcopy__(self, memo: dict[int, Any]) -> View:
        return self

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return type(None), ()


def view_of(query: Any) -> View | None:
    """Return the view that a query bundle carries; None for one that no engine was asked."""
    return getattr(query, _KEY, None)


def with_view(query: QueryBundle, view: View) -> QueryBundle:
    """Return a query bundle that carries a view to the retriever and the synthesizer."""
    found = copy(query)
    setattr(found, _KEY, view)
    return found
