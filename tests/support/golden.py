"""Golden results: what the functions of `selfroute/documents` return for small inputs, as a file states it.

In `tests/documents/golden.json`, `is` holds the result of a case. Where the design wants another one, `should` says in
a few words what is to come out: the result is what comes out today, and changes with the code.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

PATH = Path(__file__).parents[1] / "documents" / "golden.json"
GOLDEN: dict[str, Any] = json.loads(PATH.read_text("utf-8"))


def golden(kind: str) -> pytest.MarkDecorator:
    """Run a test on each case of a kind."""
    return pytest.mark.parametrize("case", GOLDEN[kind].values(), ids=GOLDEN[kind])


def text_of(parts: str | Sequence[Any]) -> str:
    """Return a text that is written as it is, or as pieces, some of them with how often they come."""
    return (
        parts if isinstance(parts, str) else "".join(one if isinstance(one, str) else one[0] * one[1] for one in parts)
    )
