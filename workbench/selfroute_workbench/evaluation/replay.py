"""Lead questions through the flow by what the model replied: which steps do some bounds pay for, and which is shown?

Nothing is asked. The flow is the product's own (`selfroute.flow`), so bounds replayed end where a chain with them ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from selfroute.answerability import Verdict
from selfroute.calls.drivers import advance
from selfroute.calls.plan import DOUBT_BELOW, STOP_BELOW
from selfroute.effects import Answer, Decide, Decided, Generate, Judged, ReadDocuments, Retrieve, Route
from selfroute.flow import self_route
from selfroute_workbench.evaluation.looks import TRIED, Look, Strategy

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
    """A strategy as it ran, or other bounds, replayed.

    Attributes:
        strategy: The strategy; `"tried"` stands for the bounds below.
        doubt_below: The confidence below which a draft is in doubt, and then one for each reading of sections; the last
            one holds for those that come after.
        stop_below: A draft that declines with a lower prospect ends there; and so does a reading of sections.
        documents: Whether whole documents are read.
    """

    strategy: Strategy = TRIED
    doubt_below: tuple[int, ...] = DOUBT_BELOW
    stop_below: tuple[int, int] = STOP_BELOW
    documents: bool = True

    def follow(self, looks: Mapping[Strategy, Sequence[Look]], rungs: int) -> tuple[Look, ...] | None:
        """Return the looks that this rule pays for, in order; the last one is shown. None if one was not tried.

        Args:
            looks: Those at one question.
            rungs: How many readings of sections there are. Those that were passed over as too large would have been
                read if no documents were to follow.
        """
        found = looks.get(self.strategy, ())
        if self.strategy != TRIED or not found:
            return tuple(found) or None
        readings = sum(look.step == "sections" for look in found) and max(look.rung for look in found) + 1
        places: list[tuple[Route, int]] = [("rag", 0), *(("sections", rung) for rung in range(readings))]
        places += [("long_context", 0)] if self.documents else []
        at = {(look.step, look.rung): look for look in found}
        signals = tuple(self._signal(at[place]) if place in at else None for place in places)
        asked = climb(tuple(step for step, _ in places), signals)
        if not self.documents and len(asked) <= rungs and signals[asked[-1]] in ("doubt", "declined"):
            return None
        return tuple(at[places[each]] for each in asked)

    def _signal(self, look: Look) -> Signal:
        if look.step == "long_context":
            return signal_of(look)
        at = look.rung + 1 if look.step == "sections" else 0
        return signal_of(look, self.doubt_below[: at + 1][-1], self.stop_below[min(at, 1)])


def rungs_in(looks: Iterable[Look]) -> int:
    """Return how many readings of sections were tried."""
    return max((look.rung + 1 for look in looks if look.step == "sections"), default=0)


def signal_of(look: Any, doubt_below: int = 0, stop_below: int = 0) -> Signal:
    """Return what a look says of itself."""
    if look.declined:
        return "hopeless" if look.prospect is not None and look.prospect < stop_below else "declined"
    return "doubt" if look.confidence is not None and look.confidence < doubt_below else "answered"


@cache
def climb(ladder: tuple[Route, ...], signals: tuple[Signal | None, ...]) -> tuple[int, ...]:
    """Return which steps the flow asks, by their places; the last one is shown. None stands for what is passed over."""
    flow = self_route("", ladder)
    asked: list[int] = []
    result: Any = None
    while not isinstance(effect := advance(flow.send, result), Answer):
        if isinstance(effect, Retrieve):
            result = (0,)
        elif isinstance(effect, ReadDocuments):
            at = ladder.index(effect.step) + effect.rung
            result = (at,) if signals[at] else () if effect.step == "sections" else None
        elif isinstance(effect, Decide):
            result = Decided(effect.route, effect.decision)
        elif isinstance(effect, Generate):
            at = effect.context[0]
            if not effect.resumed:
                asked.append(at)
            result = Judged("an answer", _VERDICTS["answered" if effect.resumed else signals[at] or "declined"])
    return tuple(asked)
