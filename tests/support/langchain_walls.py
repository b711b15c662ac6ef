"""Two tenants who call their documents alike, in one store; and what a chain over it may do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.vectorstores import VectorStoreRetriever

from langchain_parts import QUESTION, ask
from langchain_stores import chunks_of, holding, prompts_of, read_by, text_of
from selfroute.errors import ConfigurationError

MINE, OTHER = "Ash", "Birch"


def chunks_about(owner: str, source: str = "handbook", **metadata: Any) -> list[Document]:
    return chunks_of(text_of(owner), source=source, **{"tenant": owner, **metadata})


def two_tenants() -> list[Document]:
    """Two tenants with a handbook each, their chunks in turn, so that both are near."""
    return [chunk for both in zip(chunks_about(MINE), chunks_about(OTHER), strict=True) for chunk in both]


@dataclass
class House:
    """A store where two tenants live."""

    kind: str
    store: Any

    def of(self, tenant: str = MINE) -> Any:
        """The filter that lets one tenant through."""
        return holding(self.kind, tenant=tenant)

    def retriever(self, tenant: str = MINE, **search: Any) -> VectorStoreRetriever:
        """A retriever that sees one tenant only."""
        found: VectorStoreRetriever = self.store.as_retriever(search_kwargs={"filter": self.of(tenant), **search})
        return found

    def hidden(self, tenant: str = MINE) -> Runnable[Any, Any]:
        """The same, so that it cannot be seen."""
        return RunnableLambda(lambda given: self.retriever(tenant).invoke(given["input"]))


@contextmanager
def no_leak(chain: Any, hidden: str = OTHER) -> Iterator[None]:
    """Whatever happens, no prompt holds the text of the other tenant."""
    model = chain.llm
    model.calls.clear()
    try:
        yield
    finally:
        assert f"Paragraph 0 of {hidden}" not in prompts_of(model)
        assert hidden not in prompts_of(model)


async def reads_its_own(
    chain: Any, mode: str, config: Any = None, *, asked: Runnable[Any, Any] | None = None, tenant: str = MINE
) -> None:
    """The chain reads the one document of the tenant, whole."""
    with no_leak(chain, OTHER if tenant == MINE else MINE):
        (document,) = await read_by(asked or chain, mode, config)
    assert document.page_content == text_of(tenant)
    assert document.metadata["tenant"] == tenant


async def refuses(chain: Any, mode: str, match: str = "filter=") -> None:
    """The chain says that it cannot know."""
    with no_leak(chain), pytest.raises(ConfigurationError, match=match):
        await ask(chain, QUESTION, mode)
    assert chain.llm.steps == ["rag"]
