"""Both hosts: what documents may come from, what is handed to it, and what may not come of it."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from both_parts import AWAITED, EVERYWHERE, SYNC, document, everywhere, is_langchain, pipeline
from scenarios import DOCUMENT_TEXTS, FOUND, QUESTION
from selfroute.errors import ReplyError, SelfRouteError


class _Loader:
    """Returns documents in several ways, and keeps what it was given."""

    def __init__(self, where: str) -> None:
        self.documents = [document(where, text) for text in DOCUMENT_TEXTS]
        self.seen: list[Any] = []

    def load(self, *given: Any) -> list[Any]:
        self.seen.append(given)
        return self.documents

    async def aload(self, *given: Any) -> list[Any]:
        await asyncio.sleep(0)
        return self.load(*given)

    def later(self, *given: Any) -> Any:
        return self.aload(*given)


class _Object:
    def __init__(self, call: Any) -> None:
        self.call = call

    def __call__(self, *given: Any) -> Any:
        return self.call(*given)


class _AsyncObject(_Object):
    async def __call__(self, *given: Any) -> Any:
        return await self.call(*given)


Source = Callable[[_Loader], Any]
SOURCES: dict[str, Source] = {
    "a function": lambda loader: lambda *given: [*loader.load(*given)],
    "a method": lambda loader: loader.load,
    "an object": lambda loader: _Object(loader.load),
}
TO_AWAIT: dict[str, Source] = {
    "a coroutine function": lambda loader: loader.aload,
    "an async partial": lambda loader: functools.partial(_Loader.aload, loader),
    "an async object": lambda loader: _AsyncObject(loader.aload),
    "a method that returns a coroutine": lambda loader: loader.later,
}
OF_LANGCHAIN: dict[str, Source] = {
    "a runnable": lambda loader: RunnableLambda(loader.load),
    "a runnable with both": lambda loader: RunnableLambda(loader.load, afunc=loader.aload),
    "a sequence": lambda loader: RunnablePassthrough() | loader.load,
}
OF_LLAMAINDEX: dict[str, Source] = {
    "a function to a tuple": lambda loader: lambda *given: tuple(loader.load(*given)),
    "a generator": lambda loader: lambda *given: (one for one in loader.load(*given)),
}
ALL = {**SOURCES, **TO_AWAIT, **OF_LANGCHAIN, **OF_LLAMAINDEX}


def _cases() -> list[tuple[str, str]]:
    """Each source in each mode that it serves; a chain awaits nothing in its sync modes."""
    cases = []
    for where in EVERYWHERE:
        own = OF_LANGCHAIN if is_langchain(where) else OF_LLAMAINDEX
        awaiting = TO_AWAIT if where in AWAITED or not is_langchain(where) else {}
        cases += [(where, name) for name in (*SOURCES, *own, *awaiting)]
    return cases


def _question_and_passages(given: tuple[Any, ...]) -> tuple[str, int]:
    """The question, and how many passages were handed on."""
    if len(given) == 1:
        return given[0]["input"], len(given[0]["retrieved"])
    nodes, query = given
    return query.query_str, len(nodes)


@pytest.mark.parametrize(("where", "name"), _cases())
async def test_documents_are_given_question_and_passages(where: str, name: str) -> None:
    loader = _Loader(where)
    found = await pipeline(where, documents=ALL[name](loader)).ask()
    assert (found.answer, found.read) == (FOUND, [*DOCUMENT_TEXTS])
    assert [*map(_question_and_passages, loader.seen)] == [(QUESTION, 2)]


@pytest.mark.parametrize("where", SYNC)
@pytest.mark.parametrize("name", TO_AWAIT)
def test_documents_to_await_in_a_sync_call(name: str, where: str) -> None:
    """A chain says so; an engine, where no loop runs, awaits them."""
    one = pipeline(where, documents=TO_AWAIT[name](_Loader(where)))
    if is_langchain(where):
        with pytest.raises(ReplyError, match=r"ainvoke.*astream"):
            one.now()
    else:
        assert str(one.asked.query(QUESTION)) == FOUND


WRONG: dict[str, tuple[Callable[[str], Any], str]] = {
    "nothing": (lambda _: None, "NoneType"),
    "a text": (lambda _: "secret text", "str"),
    "texts": (lambda _: ["secret text"], "str"),
    "a document alone": (lambda where: document(where, "secret text"), "Document"),
    "nothing among documents": (lambda where: [document(where, "secret text"), None], "NoneType"),
}


@everywhere
@pytest.mark.parametrize("name", WRONG)
async def test_what_is_no_list_of_documents_is_refused_by_what_it_is(name: str, where: str) -> None:
    make, kind = WRONG[name]
    with pytest.raises(TypeError, match=f"documents must return a list of Documents; got .*{kind}") as refused:
        await pipeline(where, documents=lambda *_: make(where)).ask()
    assert isinstance(refused.value, SelfRouteError)
    assert "secret" not in str(refused.value)
