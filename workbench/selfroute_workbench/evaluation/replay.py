"""Lead questions through the flow by what the model replied: which steps does a strategy pay for, and which is shown?

Nothing is asked. The flow is the product's own (`selfroute.flow`), so a strategy replayed ends where a chain with its
options ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from selfroute.answerability import Verdict
from selfroute.calls.drivers import advance
from selfroute.calls.settings import DOUBT_BELOW, STOP_BELOW
from selfroute.effects import Answer, Decide, Decided, Generate, ReadDocuments, Reply, Retrieve, Route
from selfroute.flow import self_route
from selfroute_workbench.evaluation.looks import ROUTES, Look, Step, Strategy

GRADED: tuple[Strategy, ...] = ("graded", "graded_sections")
WITH_SECTIONS: tuple[Strategy, ...] = ("sections", "graded_sections")
Signal = Literal["answered", "doubt", "declined", "hopeless"]
"""What a reply says of itself; a hopeless one declines, and says that the whole text would not help."""
_VERDICTS: Mapping[Signal, Verdict] = {
    "answered": Verdict(declined=False, signal="answered"),
    "doubt": Verdict(declined=False, signal="doubt"),
    "declined": Verdict(declined=True, signal="sentinel"),
    "hopeless": Verdict(declined=True, signal="sentinel", ruling={"go": False, "by": "prospect"}),
}


@dataclass(frozen=True, slots=True)
class Rule:
    """A strategy with its bounds.

    Attributes:
        strategy: `"rag"` never goes on; `"self_route"` reads the documents after a decline; `"sections"` reads sections
            of them in between; `"graded"` and `"graded_sections"` are the same with the model's numbers;
            `"long_context"` reads the whole documents at once.
        doubt_below: The confidence below which a draft is in doubt, and then one for each reading of sections; the last
            one holds for those that come after. Graded strategies only.
        stop_below: A draft that declines with a lower prospect ends there. Graded strategies only.
    """

    strategy: Strategy
    doubt_below: tuple[int, ...] = (0,)
    stop_below: int = 0

    @classmethod
    def default(cls, strategy: Strategy) -> Rule:
        """Return a strategy with the bounds that chains and engines have by default."""
        return cls(strategy, (DOUBT_BELOW,), STOP_BELOW) if strategy in GRADED else cls(strategy)

    def steps(self, rungs: int = 1) -> tuple[Step, ...]:
        """Return the steps of this rule, the cheapest first."""
        if self.strategy == "long_context":
            return ("long_context",)
        draft: Step = "graded" if self.strategy in GRADED else "rag"
        if self.strategy == "rag":
            return (draft,)
        sections: Step = "graded_sections" if self.strategy in GRADED else "sections"
        return (draft, *[sections] * (rungs if self.strategy in WITH_SECTIONS else 0), "long_context")

    def follow(self, looks: Mapping[Step, Sequence[Look]]) -> tuple[Look, ...] | None:
        """Return the looks that this rule pays for, in order; the last one is shown.

        Sections that were not asked for are passed over, as where they would save little.
        """
        sections = looks.get("graded_sections" if self.strategy in GRADED else "sections", ())
        steps = self.steps(max(1, len(sections)))
        found = [_look_at(looks, step, steps[:at].count(step)) for at, step in enumerate(steps)]
        signals = tuple(self._signal(look, at) for at, look in enumerate(found))
        asked = climb(tuple(ROUTES[step] for step in steps), signals)
        if asked is None:
            return None
        return tuple(look for at in asked if (look := found[at]) is not None)

    def _signal(self, look: Any, at: int) -> Signal | None:
        if look is None:
            return None
        if self.strategy not in GRADED:
            return signal_of(look)
        return signal_of(look, self.doubt_below[: at + 1][-1], self.stop_below if at == 0 else 0)


def signal_of(look: Any, doubt_below: int = 0, stop_below: int = 0) -> Signal:
    """Return what a look says of itself."""
    if look.declined:
        return "hopeless" if look.prospect is not None and look.prospect < stop_below else "declined"
    return "doubt" if look.confidence is not None and look.confidence < doubt_below else "answered"


def _look_at(looks: Mapping[Step, Sequence[Look]], step: Step, rung: int) -> Look | None:
    return next(iter(looks.get(step, ())[rung : rung + 1]), None)


@cache
def climb(ladder: tuple[Route, ...], signals: tuple[Signal | None, ...]) -> tuple[int, ...] | None:
    """Return which steps the flow asks, by their places; the last one is shown. None if one of them has no reply."""
    flow = self_route("", ladder)
    asked: list[int] = []
    result: Any = None
    while not isinstance(effect := advance(flow.send, result), Answer):
        if isinstance(effect, Retrieve):
            result = (0,)
        elif isinstance(effect, ReadDocuments):
            at = ladder.index(effect.step) + effect.rung
            result = () if signals[at] is None else (at,)
        elif isinstance(effect, Decide):
            result = Decided(effect.route, effect.decision)
        elif isinstance(effect, Generate):
            at = effect.context[0]
            signal = signals[at]
            if signal is None:
                return None
            if not effect.resumed:
                asked.append(at)
            result = Reply("an answer", _VERDICTS["answered" if effect.resumed else signal])
    return tuple(asked) if effect.context else None
