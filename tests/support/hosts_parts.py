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
