"""Steps of no framework on the shared half of the adapters: plain strings, scripted replies, both worlds."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from typing import Any

from scenarios import QUESTION, Pieces
from selfroute.drivers import Flow
from selfroute.effects import Decided, Generate, ReadDocuments, Retrieve, Route
from selfroute.memory import Memory
from selfroute.performing import BaseSteps, check_question
from selfroute.settings import Settings
from selfroute.usage.entry import Entry
from selfroute.usage.tally import Tally
from steering import LONG_TEXTS, Steered


class PlainAdapter(BaseSteps[str]):
    """Performs the effects of a scenario and keeps what came of it."""

    def __init__(self, scenario: Steered, *, whole: bool = False, question: str = QUESTION) -> None:
        settings = Settings(refusal=scenario.refusal, **scenario.options)
        self.booked: list[Entry] = []
        super().__init__(settings, memory=Memory(), record=self.booked.append)
        self.scenario, self.whole = scenario, whole
        said = scenario.draft, *scenario.looks, scenario.final
        self.said: list[Pieces] = [pieces for pieces in said if pieces is not None]
        self.asked = question
        self.steps: list[Route] = []
        self.announced: list[Route] = []
        self.closed: dict[Route, int] = {}  # how many pieces a reply had given when it was closed early
        self.readings = self.speaking = 0

    def flow(self) -> Flow:
        check_question(self.asked)
        start = self.settings.start
        return self.flow_from(start(self.inputs) if callable(start) else start)

    @property
    def inputs(self) -> Mapping[str, Any]:
        return {"input": self.asked}

    _inputs = inputs
    _one_model = True  # type: ignore[assignment]

    @property
    def question(self) -> str:
        return self.asked

    def _source(self) -> Any:
        return list(LONG_TEXTS)

    def _text_of(self, document: str) -> str:
        return document

    def _trimmed(self, document: str, text: str, /, **_: Any) -> str:
        return text

    def _documents(self) -> Sequence[str]:
        self.readings += 1
        return list(LONG_TEXTS)

    async def _adocuments(self) -> Sequence[str]:
        return self._documents()

    def _announce(self, decided: Decided) -> None:
        self.announced.append(decided.route)

    def retrieve(self, effect: Retrieve) -> Sequence[str]:
        return self._fit(self._found_passages(self.scenario.found))

    async def aretrieve(self, effect: Retrieve) -> Sequence[str]:
        return self.retrieve(effect)

    def read_documents(self, effect: ReadDocuments) -> Sequence[str]:
        if effect.anew:
            self._read_once()
        return self._fit(effect)

    async def aread_documents(self, effect: ReadDocuments) -> Sequence[str]:
        if effect.anew:
            await self._aread_once()
        return self._fit(effect)

    def generate(self, effect: Generate) -> Generator[str, None, None]:
        tally, pieces = self._ask(effect)
        with self._counted(effect.step, tally, lambda: self._text_with(effect.step, effect.context)):
            self.speaking += 1
            try:
                for number, piece in enumerate(pieces, 1):
                    tally.text.append(piece)
                    try:
                        yield piece
                    except GeneratorExit:
                        self.closed[effect.step] = number
                        raise
            finally:
                self.speaking -= 1

    async def agenerate(self, effect: Generate) -> AsyncGenerator[str, None]:
        inner = self.generate(effect)
        try:
            for piece in inner:
                yield piece
        finally:
            inner.close()

    def _ask(self, effect: Generate) -> tuple[Tally, Sequence[str]]:
        assert len(self.steps) < len(self.said), f"the {effect.step} step must not be asked"
        assert not self.speaking, "the reply before must have ended, or been closed"
        said = self.said[len(self.steps)]
        self.steps.append(effect.step)
        self.context = effect.context
        length = len(self._text_with(effect.step, effect.context))
        self._note_prompt(lambda: length, context=length)
        pieces = [piece or "" for piece in said]
        return Tally(whole=False), ["".join(pieces)] if self.whole else pieces
