"""What the scripted models of both frameworks share: what they are asked, what they say then, and how a call ended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from scenarios import Pieces
from selfroute.effects import Route
from steering import LEFT_OUT


@dataclass
class Call:
    """One call of a model: what it got, how much it said, how it ended."""

    step: Route
    prompt: str
    messages: Any  # None: asked to complete a text
    options: dict[str, Any]
    emitted: int = 0
    ended: str = "open"


class Scripted:
    """Writes `draft` where the prompt holds passages, `final` where it holds whole documents.

    The fields are those of the models: `draft`, `looks`, `final`, `failures`, `breaks_after`, `calls` and others.
    """

    @property
    def steps(self: Any) -> list[Route]:
        """The steps that it was asked for."""
        return [call.step for call in self.calls]

    @property
    def endings(self: Any) -> list[str]:
        """How its calls ended."""
        return [call.ended for call in self.calls]

    def _called(self: Any, prompt: str, messages: Any, options: dict[str, Any]) -> tuple[Call, Pieces]:
        """Return the call, and what is said in it."""
        step = self._step(prompt)
        call = Call(step, prompt, messages, options)
        self.calls.append(call)
        failures, times = self.failures.get(step, []), self.steps.count(step)
        if times <= len(failures) and failures[times - 1]:
            call.ended = "failed"
            raise failures[times - 1]
        if self.limit and self.tokens(prompt) > self.limit:
            call.ended = "failed"
            raise self.refuses(int(self.tokens(prompt)))
        script = {"rag": self.draft, "sections": self._look(), "long_context": self.final}[step]
        assert script is not None, f"the {step} step must not be asked"
        return call, script(prompt) if callable(script) else script

    def _read(self: Any, prompt: str) -> tuple[int, int]:
        """Return how many tokens a prompt has, and how many of them come from a cache."""
        words = len(prompt.split())
        return (words, words // 2) if self.tokens is None else (int(self.tokens(prompt)), 0)

    def _step(self: Any, prompt: str) -> Route:
        return "sections" if LEFT_OUT in prompt else "long_context" if self.marker in prompt else "rag"

    def _look(self: Any) -> Any:
        number = sum(call.step == "sections" and call.ended != "failed" for call in self.calls) - 1
        return self.looks[number % len(self.looks)] if self.looks else None

    def _say(self: Any, call: Call) -> None:
        """Count a piece, or break off."""
        if call.emitted == self.breaks_after and len(self.calls) <= self.breaks_calls:
            call.ended = "failed"
            raise self.breaks_with
        call.emitted += 1


@contextmanager
def ending(call: Call) -> Iterator[None]:
    """Note how a call ended."""
    try:
        yield
    except (GeneratorExit, asyncio.CancelledError):
        call.ended = "closed"
        raise
    else:
        call.ended = "exhausted"
