"""Copy and pickle chains and engines as their parts do; name the part that cannot be copied."""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from typing import Any, SupportsIndex, TypeVar

from selfroute.errors import CopyError

Whole = TypeVar("Whole")
_CHECKING: ContextVar[bool] = ContextVar("selfroute_checking", default=False)


class Remade:
    """A cache or the like: a copy of what holds it gets an empty one."""

    def __reduce__(self) -> tuple[type[Any], tuple[()]]:
        return type(self), ()


class CopiedAsParts:
    """A chain, an engine or the like, which can be copied and pickled if its parts can.

    If one of them cannot, a `CopyError` names it, since the error of a part deep within does not.
    """

    def __copy__(self: Whole) -> Whole:  # noqa: PYI019 - `Self` is not in the standard library of Python 3.10
        of_host: Callable[[], Whole] | None = getattr(super(), "__copy__", None)
        return of_host() if of_host else _filled(self, vars(self))

    def __deepcopy__(self: Whole, memo: dict[int, Any] | None = None) -> Whole:  # noqa: PYI019
        memo = {} if memo is None else memo
        of_host: Callable[[Any], Whole] | None = getattr(super(), "__deepcopy__", None)
        try:
            return of_host(memo) if of_host else _filled(self, {}, memo)
        except CopyError:
            raise
        except Exception as error:
            raise _refusal(self, "deep-copied", deepcopy, error) from error

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        if not _CHECKING.get():
            _check(self, protocol)
        return super().__reduce_ex__(protocol)


def _filled(whole: Whole, shared: dict[str, Any], memo: dict[int, Any] | None = None) -> Whole:
    """Return a new object with these attributes, or with deep copies of its own if there is a memo."""
    made = object.__new__(type(whole))
    if memo is not None:
        memo[id(whole)] = made  # before the parts, which may refer to it
        shared = deepcopy(vars(whole), memo)
    vars(made).update(shared)
    return made


def _check(whole: Any, protocol: SupportsIndex) -> None:
    """Raise if no pickler can pickle an object; a pickler's own error comes too late to say more."""
    error: Exception | None = None
    for pickler in _picklers():

        def pickled(part: Any, pickler: Any = pickler) -> None:
            with _checking():
                pickler(_Nowhere(), protocol).dump(part)

        try:
            pickled(whole)
        except TypeError as cannot:  # such as locks and connections
            error = _refusal(whole, "pickled", pickled, cannot)
        except Exception:  # noqa: BLE001 - such as lambdas: a richer pickler can, and others say which one it is
            error = None
        else:
            return
    if error:
        raise error


def _picklers() -> Iterator[Callable[..., Any]]:
    yield pickle.Pickler
    if richer := sys.modules.get("cloudpickle"):
        yield richer.Pickler


@contextmanager
def _checking() -> Iterator[None]:
    _CHECKING.set(True)
    try:
        yield
    finally:
        _CHECKING.set(False)


class _Nowhere(io.RawIOBase):
    """A file that keeps nothing."""

    def write(self, data: Any) -> int:
        return len(data)


def _refusal(whole: Any, how: str, copied: Callable[[Any], Any], error: Exception) -> CopyError:
    """Return the error that names the part that cannot be copied, as deep within as the parts are ours."""
    failures = ((name, part, _error_of(copied, part)) for name, part in vars(whole).items())
    name, part, cannot = next((failure for failure in failures if failure[2]), ("", None, error))
    if isinstance(part, CopiedAsParts):
        return _refusal(part, how, copied, error)
    which = f"its {name.strip('_')} ({type(part).__name__}) cannot: " if name else ""
    kind = type(whole).__name__
    why = f"{which}{' '.join(str(cannot).split())}"
    return CopyError(f"this {kind} cannot be {how}, because {why}; make a new {kind}, such as one in each process")


def _error_of(copied: Callable[[Any], Any], part: Any) -> Exception | None:
    try:
        copied(part)
    except Exception as error:  # noqa: BLE001 - parts raise whatever they like
        return error
    return None
