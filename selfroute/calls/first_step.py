"""Keep the first step of a question for the second, in a row of plain JSON.

So a million drafts can be made in any order, and the declined questions grouped by document.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Generic, TypeVar

from selfroute.answerability.ending import Ending
from selfroute.effects import Start
from selfroute.errors import InputError
from selfroute.usage.account import EarlierTally, Tally
from selfroute.usage.counts import StepUsage, Usage
from selfroute.usage.prices import PricedModel
from selfroute.usage.rows import steps_row
from selfroute.usage.tokens import PromptSize

Document = TypeVar("Document")
KEY = "first_step"


@dataclass(frozen=True, slots=True)
class Draft:
    """The model's reply of the first step.

    Attributes:
        text: The reply, as it is judged.
        said: The reply in the model's own words, if that is something else, such as the JSON of a report.
        ending: How it ended.
        model: The name of the model that replied; None if the reply does not state it.
        provider: Its provider; None if the reply does not state it.
        quotes: What the model quoted in a report.
    """

    text: str
    said: str | None
    ending: Ending
    model: str | None
    provider: str | None
    quotes: Sequence[str]

    @classmethod
    def of(cls, tally: Tally) -> Draft:
        """Return the reply that a tally has collected."""
        said, stated = "".join(tally.text), tally.model(PricedModel())
        text = said if tally.report is None else tally.report
        different = said if said != text else None
        return cls(text, different, tally.ending(), stated.name, stated.provider, tally.quotes)

    def tally(self) -> Tally:
        """Return the tally of the reply."""
        said = self.text if self.said is None else self.said
        stated = PricedModel(self.model, self.provider)
        return EarlierTally(said, ended=self.ending, quotes=list(self.quotes), stated=stated)


@dataclass(frozen=True, slots=True)
class KeptStep(Generic[Document]):
    """The part of a first step that the second one needs.

    Attributes:
        start: The step that the question starts with.
        answerability: How the model reported whether it can answer.
        retrieved: The retrieved passages, best first.
        passages: Those that fit the window.
        context: What the model read in the end: fewer, if they were refused as too long.
        prompt: The size of the prompt.
        draft: The model's reply; None if it was not asked.
        usage: What the step used.
        models: What the calls of each model took, by its name.
        seconds: How long it took.
        result: The result in a row that is done; None if the question goes on, or was just asked.
    """

    start: Start
    answerability: str
    retrieved: Sequence[Document]
    passages: Sequence[Document]
    context: Sequence[Document]
    prompt: PromptSize
    draft: Draft | None
    usage: Usage
    models: Mapping[str, StepUsage]
    seconds: float
    result: Mapping[str, Any] | None = None

    def as_row(self, document_as_json: Callable[[Document], Any]) -> dict[str, Any]:
        """Return the step as part of a row.

        Args:
            document_as_json: Returns a passage as plain JSON.
        """
        numbers = {id(one): number for number, one in enumerate(self.retrieved)}

        def referred(some: Sequence[Document]) -> list[Any]:
            return [numbers[id(one)] if id(one) in numbers else document_as_json(one) for one in some]

        return {
            "usage": self.usage.as_dict(self.models),
            "retrieved": [document_as_json(one) for one in self.retrieved],
            KEY: {
                "start": self.start,
                "answerability": self.answerability,
                "passages": referred(self.passages),
                "context": referred(self.context),
                "prompt": asdict(self.prompt),
                "draft": asdict(self.draft) if self.draft else None,
                "steps": steps_row(self.usage),
                "seconds": self.seconds,
            },
        }


def plain(value: Any, *, levels: int = 20) -> Any:
    """Return a value as plain JSON, whatever it holds, because the draft has been paid for.

    Dates and the like become text, numpy's arrays and numbers plain ones, and NaN becomes None.

    Args:
        value: The value.
        levels: How deep to look into a value that is not JSON; anything deeper becomes text.
    """
    try:
        return json.loads(json.dumps(value, default=_plain), parse_constant=lambda _: None)
    except (TypeError, ValueError, RecursionError):  # keys that are no text, or a value within itself
        if levels and isinstance(value, dict):
            return {str(key): plain(one, levels=levels - 1) for key, one in value.items()}
        if levels and isinstance(value, list):
            return [plain(one, levels=levels - 1) for one in value]
        return str(value)


def check_json(name: str, value: Any) -> None:
    """Check that an input of a first step can be kept in its row.

    Raises:
        InputError: It is not JSON.
    """
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        msg = f"first_step returns rows of plain JSON, so all that it is given must be JSON; {name} is not"
        raise InputError(msg) from error


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)
