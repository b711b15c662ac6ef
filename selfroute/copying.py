"""Copy and pickle chains, engines and stored documents part by part, and name the part that cannot be."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from copy import deepcopy
from typing import Any, SupportsIndex, TypeVar

from selfroute.errors import CopyError

Whole = TypeVar("Whole")
_TRYING: ContextVar[bool] = ContextVar("selfroute_trying", default=False)


class CopiedAsParts:
    """A chain, an engine or stored documents, which can be copied and pickled if their parts can.

    If a part cannot be pickled, a `CopyError` names it, because the error that Python raises does not.
    """

    def __copy__(self: Whole) -> Whole:  # noqa: PYI019 - `Self` is not in the standard library of Python 3.10
        made = object.__new__(type(self))
        vars(made).update(vars(self))
        return made

    def __deepcopy__(self: Whole, memo: dict[int, Any]) -> Whole:  # noqa: PYI019
        made = memo[id(self)] = object.__new__(type(self))
        for name, part in vars(self).items():
            with _named(self, name, part):
                vars(made)[name] = deepcopy(part, memo)
        return made

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        if not _TRYING.get():  # a part may hold the whole
            trying = _TRYING.set(True)
            try:
                for name, part in vars(self).items():
                    if not isinstance(part, CopiedAsParts):  # which names its own part
                        with _named(self, name, part):
                            _try_to_pickle(part, protocol)
            finally:
                _TRYING.reset(trying)
        return super().__reduce_ex__(protocol)


def check_copies(whole: Any) -> None:
    """Raise a `CopyError` for the first part of an object that cannot be copied."""
    for name, part in vars(whole).items():
        with _named(whole, name, part):
            deepcopy(part)


def _try_to_pickle(part: Any, protocol: SupportsIndex) -> None:
    """Raise a `TypeError` if no pickler that is in use can pickle a part; other errors name what cannot be pickled."""
    try:
        pickle.dumps(part, int(protocol))
    except Exception as error:
        with suppress(pickle.PicklingError, AttributeError):
            if "cloudpickle" in sys.modules:
                sys.modules["cloudpickle"].dumps(part, protocol)
            elif isinstance(error, TypeError):
                raise


@contextmanager
def _named(whole: Any, name: str, part: Any) -> Iterator[None]:
    """Add the name of the part to an error about locks, connections and the like."""
    try:
        yield
    except CopyError:
        raise
    except TypeError as error:  # others, as of lambdas, say themselves what cannot be pickled
        kind, why = type(whole).__name__, " ".join(str(error).split())
        msg = (
            f"this {kind} cannot be copied or pickled, because its {name.strip('_')} ({type(part).__name__}) cannot: "
            f"{why}; make a new {kind}, such as one in each process"
        )
        raise CopyError(msg) from error
