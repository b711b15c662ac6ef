"""Look once more at what a store lists, before it is read."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, TypeVar

Row = TypeVar("Row")


def checked_rows(
    rows: Iterable[Row], *, belongs: Callable[[Row], bool], id_of: Callable[[Row], Hashable]
) -> Iterator[Row]:
    """Yield the rows that belong to what was asked for, each id once.

    Some stores ignore case, look into lists, split names at commas, or list a row again when they turn a page. So what
    a store was asked for decides only how much it has to send.

    Args:
        rows: What the store lists.
        belongs: Whether a row was asked for.
        id_of: The id of a row; falsy if it has none.
    """
    seen = set[Hashable]()
    for row in rows:
        id_ = id_of(row)
        if id_ in seen or not belongs(row):
            continue
        if id_:
            seen.add(id_)
        yield row


def same_name(held: Any, name: Any) -> bool:
    """Return whether two names of documents are the same: `7`, `7.0`, `"7"` and True name four documents."""
    return type(held) is type(name) and held == name
