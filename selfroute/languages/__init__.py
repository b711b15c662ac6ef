"""The rules that recognise a decline in a model's own words, in six languages.

The English rules are measured on real replies (`benchmarks/declines.py`). The German, French, Spanish, Chinese and
Japanese rules are tested only on examples that we wrote ourselves, so treat them as a starting point. All of them are
applied to every reply, and so are short replies in more languages (`refusals.py`). `add_language` adds another
language, or replaces the rules of one of these.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from selfroute.languages.grammars import add_language
    from selfroute.languages.language import Language

__all__ = ["Language", "add_language"]


def __getattr__(name: str) -> Any:
    """Load the rules when they are first used: they take longer than all else that a chain imports."""
    if name not in __all__:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    module = "language" if name == "Language" else "grammars"
    return getattr(import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
