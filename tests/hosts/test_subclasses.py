"""Both hosts: a subclass of `StoredDocuments` decides what is read, within the limits of the retriever."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import langchain_selfroute
import llamaindex_selfroute
from both_parts import (
    EVERYWHERE,
    LANGCHAIN,
    SYNC,
    Pipeline,
    Text,
    document,
    everywhere,
    is_langchain,
    pipeline,
    store_of,
)
from langchain_stores import KINDS, holding
from llamaindex_stores_parts import STORES, only
from selfroute.errors import ConfigurationError, ReplyError

HIDDEN = "crates"  # in every paragraph
LONG = "Read the following text"
ANSWER = ("It lifts ", "them.")


def _redacted(documents: list[Any]) -> list[Any]:
    made = []
    for one in documents:
        text = getattr(one, "page_content", None) or one.get_content()
        where = "langchain" if hasattr(one, "page_content") else "llamaindex"
        made.append(document(where, Text(text.replace(HIDDEN, "***"), "shared")))
    return made


def subclasses(where: str) -> dict[str, Any]:
    """Subclasses of the host's `StoredDocuments`."""
    package: Any = langchain_selfroute if is_langchain(where) else llamaindex_selfroute

    class Redacting(package.StoredDocuments):  # type: ignore[misc,name-defined]
        def __call__(self, *given: Any) -> Any:
            return _redacted(super().__call__(*given))

    class RedactingLater(package.StoredDocuments):  # type: ignore[misc,name-defined]
        async def __call__(self, *given: Any) -> Any:
            await asyncio.sleep(0)  # and then in a thread that knows no context
            return _redacted(await asyncio.get_running_loop().run_in_executor(None, super().__call__, *given))

    class Refusing(package.StoredDocuments):  # type: ignore[misc,name-defined]
        def __call__(self, *given: Any) -> Any:
            raise PermissionError("north")  # noqa: EM101

    return {"plain": package.StoredDocuments, "sync": Redacting, "async": RedactingLater, "refuses": Refusing}


def texts_of(owner: str) -> list[str]:
    return [f"Paragraph {n} of {owner}: the crane of {owner} lifts {n * n} crates." for n in range(9)]


def chunks_of(*owners: str) -> list[Text]:
    """What tenants have in one document."""
    return [Text(text, "shared", None, {"tenant": one, "year": 1}) for one in owners for text in texts_of(one)]


def over(where: str, kind: str, store: str = "", *, own: bool = False, **fields: Any) -> Pipeline:
    """A chain or an engine for the north, over a store in which two tenants share a document."""
    kept = store_of(where, chunks_of("north", "south"), store := store or "memory")
    if is_langchain(where):
        retriever = kept.as_retriever(search_kwargs={"filter": holding(store, tenant="north")})
        filters: Any = {"filter": holding(store, year=1)}
    else:
        retriever = kept.as_retriever(similarity_top_k=3, filters=only("tenant", "north"))
        filters = {"filters": only("year", 1)}
    stored = subclasses(where)[kind](kept, **(filters if own else {}))
    return pipeline(where, retriever=retriever, documents=stored, marker=LONG, **fields)


CASES = [
    (where, kind, store)
    for where in EVERYWHERE
    for kind in ("sync", "async")
    for store in (KINDS if is_langchain(where) else STORES)
    if kind == "sync" or not (is_langchain(where) and where in SYNC)
]


@pytest.mark.parametrize("own", [False, True], ids=["alone", "with own filters"])
@pytest.mark.parametrize(("where", "kind", "store"), CASES)
async def test_subclass_reads_within_the_filters(where: str, kind: str, store: str, own: bool) -> None:
    found = await over(where, kind, store, own=own).ask()
    (read,) = found.read
    assert all(text.replace(HIDDEN, "***") in read for text in texts_of("north"))
    assert (HIDDEN in read, "south" in read, found.route) == (False, False, "long_context")
    assert HIDDEN not in found.prompts[1].partition(LONG)[2]


@everywhere
async def test_what_a_subclass_raises_reaches_the_caller(where: str) -> None:
    with pytest.raises(PermissionError, match="north"):
        await over(where, "refuses").ask()


@pytest.mark.parametrize("kind", ["plain", "sync"])
@everywhere
async def test_nothing_is_counted_behind_the_back_of_a_subclass(where: str, kind: str) -> None:
    replies = [("unanswerable",), ANSWER]
    one = over(where, kind, "chroma", draft=lambda _: replies.pop(0))
    await one.ask()
    found = await one.ask()
    assert (found.route, found.usage["long_context_only"] is None) == ("rag", kind == "sync")


@pytest.mark.parametrize("where", [where for where in LANGCHAIN if where in SYNC])
async def test_an_async_subclass_says_so_where_nothing_can_be_awaited(where: str) -> None:
    with pytest.raises(ReplyError, match="ainvoke or astream"):
        await over(where, "async").ask()


def test_a_scope_ends_with_the_call_and_is_that_of_one_reader() -> None:
    store = store_of("langchain", chunks_of("north", "south"))
    retriever = store.as_retriever(search_kwargs={"filter": holding("memory", tenant="north")})
    other, seen = langchain_selfroute.StoredDocuments(store), list[Any]()

    class Nosy(langchain_selfroute.StoredDocuments):
        def __call__(self, inputs: Any) -> Any:
            with pytest.raises(ConfigurationError, match="cannot verify"):
                other(inputs)  # it is not known what the retriever hides from this one
            seen.append(inputs)
            return super().__call__(inputs)

    nosy = Nosy(store)
    chain = pipeline("langchain invoke", retriever=retriever, documents=nosy, marker=LONG).asked
    assert chain.invoke("crane")["route"] == "long_context"
    with pytest.raises(ConfigurationError, match="cannot verify"):
        nosy(seen[0])
