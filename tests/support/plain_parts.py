"""A host of no framework: plain strings, scripted replies, both worlds."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Sequence
from typing import Any

from scenarios import QUESTION, Pieces
from selfroute.calls.call import Call
from selfroute.calls.host import Host, Prompt
from selfroute.calls.memory import Memory
from selfroute.calls.settings import Settings
from selfroute.effects import Decided, Route
from selfroute.usage.account import Tally
from selfroute.usage.counts import Entry
from steering import LONG_TEXTS, Steered


class PlainHost(Host[str]):
    """Answers the question of a scenario as it says, and keeps what came of it."""

    def __init__(self, scenario: Steered, *, whole: bool = False, question: str = QUESTION) -> None:
        self.scenario, self.question, self.streaming = scenario, question, not whole
        self.source = list(LONG_TEXTS)
        said = scenario.draft, *scenario.looks, scenario.final
        self.said: list[Pieces] = [pieces for pieces in said if pieces is not None]
        self.steps: list[Route] = []
        self.announced: list[Route] = []
        self.closed: dict[Route, int] = {}  # how many pieces a reply had given when it was closed early
        self.readings = self.speaking = 0

    def text_of(self, document: str) -> str:
        return document

    def with_text(self, document: str, text: str, /, **_: Any) -> str:
        return text

    def retrieve(self) -> Sequence[str]:
        return self.scenario.found

    def read(self, passages: Sequence[str]) -> Sequence[str]:
        self.readings += 1
        return list(LONG_TEXTS)

    def announce(self, decided: Decided) -> None:
        self.announced.append(decided.route)

    def prompt(self, step: Route, context: Sequence[str]) -> Prompt:
        text = "\n\n".join(context)
        return Prompt(text, text)

    def ask(self, step: Route, prompt: Prompt, tally: Tally, cache: Any) -> Generator[str, None, None]:
        assert len(self.steps) < len(self.said), f"the {step} step must not be asked"
        assert not self.speaking, "the reply before must have ended, or been closed"
        said = [piece or "" for piece in self.said[len(self.steps)]]
        self.steps.append(step)
        self.speaking += 1
        try:
            for number, piece in enumerate(said if self.streaming else ["".join(said)], 1):
                tally.text.append(piece)
                try:
                    yield piece
                except GeneratorExit:
                    self.closed[step] = number
                    raise
        finally:
            self.speaking -= 1

    async def aask(self, step: Route, prompt: Prompt, tally: Tally, cache: Any) -> AsyncGenerator[str, None]:
        inner = self.ask(step, prompt, tally, cache)
        try:
            for piece in inner:
                yield piece
        finally:
            inner.close()


class PlainCall(Call[str]):
    """The question of a scenario; `booked` has its entry when it is over."""

    host: PlainHost

    def __init__(self, scenario: Steered, *, whole: bool = False, question: str = QUESTION) -> None:
        self.booked: list[Entry] = []
        settings = Settings(refusal=scenario.refusal, **scenario.options)
        host = PlainHost(scenario, whole=whole, question=question)
        super().__init__(host, settings, memory=Memory(), record=self.booked.append)
