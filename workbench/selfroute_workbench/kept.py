"""Reads JSON that a person or a crash may have damaged: whatever is wrong is one error, which names the place."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from selfroute.errors import InputError
from selfroute_workbench.values import MOST

T = TypeVar("T")


def parse(text: bytes | str, where: str, *, todo: str | None = None) -> Any:
    """Parse JSON.

    Args:
        text: The JSON; bytes are UTF-8.
        where: The place of it, for error messages.
        todo: What to do if it cannot be parsed; by default what the author of a JSONL file would do.

    Raises:
        InputError: It cannot be parsed.
    """
    try:
        return json.loads(text if isinstance(text, str) else text.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        msg = f"{where} is not UTF-8; {todo or 'save the file in that encoding'}"
        raise InputError(msg) from error
    except json.JSONDecodeError as error:
        msg = f"{where} is not JSON ({error.msg}, column {error.colno}); {todo or 'write one object a line'}"
        raise InputError(msg) from error
    except RecursionError as error:
        msg = f"{where} cannot be read (it is nested too deeply); {todo or 'write one object a line'}"
        raise InputError(msg) from error
    except ValueError as error:  # such as a number of thousands of digits
        msg = f"{where} cannot be read ({error}); {todo or 'write one object a line'}"
        raise InputError(msg) from error


def rows(lines: Iterable[bytes], name: str, *, todo: str | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read JSONL: yield the place of each object, as `file:line`, and the object. Blank lines are skipped.

    Args:
        lines: The file's lines, read as they are needed.
        name: The file's name in error messages.
        todo: As in `parse`.

    Raises:
        InputError: A line is not a JSON object in UTF-8.
    """
    for number, line in enumerate(lines, 1):
        where = f"{name}:{number}"
        if line.strip(b"\xef\xbb\xbf \t\r\n"):
            row = parse(line, where, todo=todo)
            if not isinstance(row, dict):
                msg = f"{where} is not a JSON object; {todo or 'write one object a line'}"
                raise InputError(msg)
            yield where, row


def make(kind: type[T], row: Mapping[str, Any], where: str, *, todo: str) -> T:
    """Make an object of plain JSON, whose fields have the types that their annotations say; numbers are not negative.

    Args:
        kind: A dataclass or a named tuple.
        row: Its fields.
        where: The place of the JSON, for error messages.
        todo: What to do if it is damaged.

    Raises:
        InputError: A field has a wrong type or a wrong number.
        TypeError: There are fields too many or too few, as another version of the class may have them.
    """
    made = kind(**row)
    for name, annotation in _annotations(kind).items():
        if not _fits(getattr(made, name), annotation):
            msg = f"{where} is damaged, in {name!r}; {todo}"
            raise InputError(msg)
    return made


_annotations: Any = cache(get_type_hints)


def _fits(value: Any, annotation: Any) -> bool:
    origin, inner = get_origin(annotation), get_args(annotation)
    if annotation is Any or origin is Literal:
        return annotation is Any or value in inner
    if origin in {Union, UnionType}:
        return any(_fits(value, one) for one in inner)
    if origin in {dict, Mapping}:
        return isinstance(value, dict) and all(_fits(one, inner[0]) and _fits(value[one], inner[1]) for one in value)
    if origin in {list, tuple, Sequence}:
        kind = tuple if origin is tuple else list
        return isinstance(value, kind) and all(_fits(one, inner[0]) for one in value)
    if annotation in {int, float}:
        return type(value) in {int, annotation} and 0 <= value <= MOST  # which NaN is not
    return value is None if annotation is NoneType else type(value) is annotation
