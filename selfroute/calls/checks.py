"""Check what users pass in a call, and what their own parts return."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from selfroute.errors import InputError, ReplyError

_UNASKED = "nothing was retrieved and no model was asked"


def check_question(question: Any) -> None:
    """Check that a question is a text with something to see, before anything is retrieved or asked for it.

    Raises:
        InputError: It is something else, there is nothing to see, or it has half of a character.
    """
    if not isinstance(question, str):
        msg = f"the question must be a string, not {type(question).__name__}: {_UNASKED}"
        raise InputError(msg)
    try:
        question.encode()
    except UnicodeEncodeError as error:
        msg = (
            f"the question has half of a character, {question[error.start]!a}, at position {error.start}: {_UNASKED}. "
            "Read the text as UTF-8, or pass question.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')"
        )
        raise InputError(msg) from None
    if not any(character.isprintable() and not character.isspace() for character in question):
        msg = f"the question is blank: {_UNASKED}"
        raise InputError(msg)


def items_of(found: Any, kinds: type[Any] | tuple[type[Any], ...], *, what: str) -> list[Any]:
    """Check what a component of the user's returned, and return it as a list.

    Args:
        found: What it returned.
        kinds: The accepted types.
        what: The beginning of the error message, such as "documents must return a list of Documents".

    Raises:
        ReplyError: It returned something else.
    """
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    if type(found) is list or (isinstance(found, Iterable) and not isinstance(found, (str, Mapping, *kinds))):
        items = list(found)
        others = [item for item in items if type(item) is not kinds[0] and not isinstance(item, kinds)]
        if not others:
            return items
        found = others[0]
    msg = f"{what}; got {type(found).__name__}"
    raise ReplyError(msg)
