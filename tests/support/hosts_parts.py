"""Hosts and modes in one string, such as "langchain stream": each host twice for the fast lane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

MODES = ("whole", "awhole", "stream", "astream")
STREAMS = ("stream", "astream")
AWAITED = ("awhole", "astream")
HOSTS = ("langchain", "llamaindex")
QUESTION = "Who chaired the meeting?"


def cases(of: Sequence[str] = HOSTS, modes: Sequence[str] = MODES) -> list[Any]:
    """Return each host once sync and once async for the fast lane, and in all modes for the matrix.

    Args:
        of: Hosts, or hosts and more, such as "langchain gemini".
        modes: The modes.
    """
    found = []
    for number, host in enumerate(of):
        kept = modes if len(modes) <= 2 else (("whole", "astream"), ("stream", "awhole"))[number % 2]
        marks = {mode: () if mode in kept else pytest.mark.matrix for mode in modes}
        found += [pytest.param(f"{host} {mode}", marks=marks[mode]) for mode in modes]
    return found


def wheres(of: Sequence[str] = HOSTS, modes: Sequence[str] = MODES) -> Any:
    """Parametrize `where` by these cases."""
    return pytest.mark.parametrize("where", cases(of, modes))


def drawn(names: Sequence[str], wheres: Sequence[str], step: int = len(MODES)) -> Any:
    """Parametrize `where` and `name`: the first name with all, each other one with one in so many, by turns.

    Args:
        names: The names.
        wheres: The hosts, each in so many modes.
        step: That number.
    """
    found = []
    for n, name in enumerate(names):
        for at, where in enumerate(wheres):
            its_turn = (at + n) % step == 0
            if its_turn or n == 0:
                fast = its_turn and (at // step + n // 2) % 2 == 0
                found.append(pytest.param(where, name, marks=() if fast else pytest.mark.matrix))
    return pytest.mark.parametrize(("where", "name"), found)
