"""See which nodes postprocessors that we do not know drop."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import Field
from typing_extensions import override

from llamaindex_selfroute.stored.filters import is_trusted
from selfroute.documents.stored import ScopedDocuments


class Watching(BaseNodePostprocessor):
    """Passes the nodes to a function, and returns them unchanged."""

    see: Callable[[list[NodeWithScore]], None] = Field(exclude=True, repr=False)

    @override
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        self.see(nodes)
        return nodes


def watched(postprocessors: Sequence[BaseNodePostprocessor], source: Any) -> Sequence[BaseNodePostprocessor]:
    """Return postprocessors, with others between them that note what those drop that we do not know.

    Args:
        postprocessors: The postprocessors of an engine.
        source: Where its documents come from; only stored ones have to know.
    """
    doubted = [at for at, one in enumerate(postprocessors) if not is_trusted(one)]
    if not doubted or not isinstance(source, ScopedDocuments):
        return postprocessors
    first, last = doubted[0], doubted[-1] + 1
    found = set[tuple[Hashable | None, str]]()
    before = Watching(see=lambda nodes: found.update(source.noted(nodes)))
    after = Watching(see=lambda nodes: source.note_dropped(found, nodes))
    return [*postprocessors[:first], before, *postprocessors[first:last], after, *postprocessors[last:]]
