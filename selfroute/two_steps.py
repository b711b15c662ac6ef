"""Ask for the two steps of a question apart: the second goes on from what the first one kept.

The second step runs the same flow. What the first one did is not done again: its passages and its reply are at hand.
Only where nothing but the passages says what may be read, it retrieves again: a row may have been changed on its way.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, Generator, Sequence
from typing import Any, Generic, TypeVar, cast

from selfroute.caching.prompts import CachedPrompts
from selfroute.drivers import Flow
from selfroute.effects import Answer, Generate, Start
from selfroute.errors import InputError
from selfroute.first_step import Draft, FirstStep, plain
from selfroute.flow import self_route
from selfroute.settings import Settings, start_of
from selfroute.usage.account import Account
from selfroute.usage.savings import PromptSize
from selfroute.usage.tally import Tally

Document = TypeVar("Document")


class TwoSteps(CachedPrompts, Generic[Document]):
    """Asks for one question's steps: both, only the first one, or only the second.

    Attributes:
        refusal: The word that declines.
        account: What the question takes.
        passages: The retrieved passages, best first.
        context: What the latest prompt held.
        first_only: Whether only the first step is asked for.
    """

    refusal: str
    account: Account
    passages: Sequence[Document] = ()
    context: Sequence[Document] = ()
    first_only = False
    _first: FirstStep[Document] | None = None  # what was done before
    _start: Start = "rag"
    _prompt_size = PromptSize(0, 0)  # of the latest prompt
    _tally: Tally | None = None  # of the latest reply

    @property
    @abstractmethod
    def question(self) -> str:
        """The question."""

    @property
    def start(self) -> Any:
        """The first step, or what says which it is, unless it has said so before."""
        return self._first.start if self._first else self.settings.start

    def flow_from(self, start: Any = "rag") -> Flow:
        """Return a fresh flow for the question, from a first step on.

        Raises:
            ConfigurationError: There is no such first step.
        """
        self._start, first = start_of(start), self._first
        ladder = self.settings.ladder(self._start)
        return self_route(
            self.question,
            ladder,
            refusal=self.refusal,
            passages=first.passages if first and not self._must_retrieve() else None,
            first_only=self.first_only,
            compares=self._start == "auto" and "long_context" in ladder and self.settings.escalation is None,
        )

    def _must_retrieve(self) -> bool:
        """Return whether nothing but the passages says what may be read, so that those of a row do not count."""
        raise NotImplementedError

    def go_on(self, first: FirstStep[Document]) -> None:
        """Go on from what the first step has kept.

        Raises:
            InputError: The model was asked to report in another way whether it can answer.
        """
        if first.answerability != self.settings.answerability:
            msg = (
                f"the first step of this row was asked for with answerability={first.answerability!r}: "
                f"ask for the second one with the same, not with {self.settings.answerability!r}"
            )
            raise InputError(msg)
        self._first, self.passages, self.context = first, first.retrieved, first.context
        self._prompt_size = first.prompt
        self._tally = first.draft.tally() if first.draft else None
        self.account.go_on(first.usage, first.models, seconds=first.seconds)

    def first_step(self, answer: Answer) -> FirstStep[Document]:
        """Return what the second step needs of the first one, which is over."""
        return FirstStep(
            self._start,
            self.settings.answerability,
            self.passages,
            answer.passages,
            answer.context,
            self._prompt_size,
            Draft.of(self._tally) if self._tally else None,
            self.account.usage,
            self.account.models,
            self.account.seconds,
        )

    def row(self, answer: Answer) -> dict[str, Any]:
        """Return the row of a question whose first step is over: plain JSON, with what is known by now."""
        done, names = not answer.is_open, [plain(self._source_name(passage)) for passage in self.passages]
        kept = self.first_step(answer).as_row(self._document_as_json)
        row = {
            **self._inputs_as_json(),
            "done": done,
            "sources": [name for at, name in enumerate(names) if name is not None and name not in names[:at]],
            "route": answer.route if done else None,
            "answer": answer.text,
            "answerable": answer.answerable if done else None,
            "finish_reason": answer.finish_reason if done else None,
            "decision": answer.decision.as_dict(),
            **kept,
            **(cited_in(answer, self.settings) if done else {}),
        }
        return cast("dict[str, Any]", plain(row))

    def _source_name(self, document: Document) -> Any:
        """Return the name of the document that a passage is from."""
        raise NotImplementedError

    def _inputs_as_json(self) -> dict[str, Any]:
        """Return the question as `input`, and other inputs as `inputs`."""
        return {"input": self.question}

    def _document_as_json(self, document: Document) -> Any:
        """Return a passage as plain JSON."""
        raise NotImplementedError

    def generate(self, effect: Generate) -> Generator[str, None, None]:
        """Ask the step's model, if it has not replied before; closing the generator stops it."""
        draft = self._draft_for(effect)
        return super().generate(effect) if draft is None else _in_one(draft.text)

    def agenerate(self, effect: Generate) -> AsyncGenerator[str, None]:
        """Do as `generate` does, asynchronously."""
        draft = self._draft_for(effect)
        return super().agenerate(effect) if draft is None else _ain_one(draft.text)

    def _draft_for(self, effect: Generate) -> Draft | None:
        return self._first.draft if self._first and effect.step == "rag" else None


def cited_in(answer: Answer, settings: Settings) -> dict[str, Any]:
    """Return where an answer stands, as chains and engines report it; nothing if that was not asked for."""
    if answer.cited is None:
        return {}
    quotes = {"unverified_quotes": answer.cited.unverified_quotes} if settings.structured else {}
    return {"citations": answer.cited.citations, **quotes}


def _in_one(text: str) -> Generator[str, None, None]:
    yield text


async def _ain_one(text: str) -> AsyncGenerator[str, None]:
    yield text
