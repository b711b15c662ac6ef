"""Carry a retriever's access limits to `StoredDocuments` in a ContextVar, also if a subclass overrides reading."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

_CURRENT: ContextVar[tuple[Any, Any]] = ContextVar("selfroute_scope", default=(None, None))  # a reader, its scope


def scope_of(reader: Any) -> Any:
    """Return the scope within which a reader is called; None if it is called by itself."""
    called, scope = _CURRENT.get()
    return scope if called is reader else None


def call_within(scope: Any, reader: Callable[..., Any], *given: Any) -> Any:
    """Call a reader within a scope; if what it returns has to be awaited, that runs within the scope, too."""
    with _within(reader, scope):
        found = reader(*given)
    return _Awaited(found, reader, scope) if inspect.isawaitable(found) else found


@contextmanager
def _within(reader: Any, scope: Any) -> Iterator[None]:
    before = _CURRENT.get()
    _CURRENT.set((reader, scope))
    try:
        yield
    finally:
        _CURRENT.set(before)  # not `reset`, which a coroutine that is closed from elsewhere may not call


@dataclass(frozen=True, slots=True, eq=False)
class _Awaited:
    """What an async reader returned."""

    _found: Any
    _reader: Any
    _scope: Any

    def __await__(self) -> Generator[Any, Any, Any]:
        with _within(self._reader, self._scope):
            return (yield from self._found.__await__())

    def close(self) -> None:
        """Close it without awaiting it, as a coroutine is closed."""
        if hasattr(self._found, "close"):
            self._found.close()
