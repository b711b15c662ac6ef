"""Reads JSON that a person or a crash may have damaged: whatever is wrong is one error, which names the place."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from selfroute.errors import InputError


def parse(line: bytes, where: str, *, todo: str = "write one object a line") -> dict[str, Any]:
    """Return the JSON object of a line in UTF-8.

    Raises:
        InputError: It is no such object.
    """
    try:
        row = json.loads(line.decode("utf-8-sig"))
        problem = "" if isinstance(row, dict) else "is not a JSON object"
    except UnicodeDecodeError:
        problem = "is not UTF-8"
    except json.JSONDecodeError as error:
        problem = f"is not JSON ({error.msg}, column {error.colno})"
    except (RecursionError, ValueError) as error:  # nested too deeply, or a number of thousands of digits
        problem = f"cannot be read ({error})"
    if problem:
        msg = f"{where} {problem}; {todo}"
        raise InputError(msg)
    return dict(row)


def rows(lines: Iterable[bytes], name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read JSONL: yield the place of each object, as `file:line`, and the object. Blank lines are skipped.

    Raises:
        InputError: A line is not a JSON object in UTF-8.
    """
    for number, line in enumerate(lines, 1):
        if line.strip(b"\xef\xbb\xbf \t\r\n"):
            yield f"{name}:{number}", parse(line, f"{name}:{number}")
