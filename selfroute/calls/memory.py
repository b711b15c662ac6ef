"""Keep what a chain or engine needs again for its next question."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from operator import is_
from typing import Any

from selfroute.answerability.graded import Ungraded
from selfroute.calls.settings import SETTINGS, Settings
from selfroute.usage.prices import ModelNames, PricedModel
from selfroute.usage.tokens import LongContextEstimate


def _unnamed(_: Any) -> PricedModel:
    return PricedModel()


class Said:
    """What a chain or engine has said in the log, so that it says nothing twice; safe to use from threads."""

    def __init__(self) -> None:
        self._said: dict[tuple[Any, ...], object] = {}

    def warn(self, logger: logging.Logger, message: str, *args: Any) -> None:
        """Log a warning, unless it has been logged before with the same arguments."""
        this = object()
        if self._said.setdefault((message, *args), this) is this:
            logger.warning(message, *args)


class Memory:
    """What a chain or engine keeps from one question to the next.

    A shallow copy shares it, whatever is then changed on the copy. So each thing in it is kept with what it was made
    of, and is used for nothing else. A deep copy, also in another process, starts with an empty memory.

    Attributes:
        names: The names by which the models are priced.
        estimate: What was learned about the cost of reading documents.
        said: What was said in the log.
        ungraded: Counts the graded drafts that lack their numbers.
    """

    def __init__(
        self,
        look_up: Callable[[Any], PricedModel] = _unnamed,
        *,
        estimate: LongContextEstimate | None = None,
        said: Said | None = None,
    ) -> None:
        """Remember nothing.

        Args:
            look_up: Returns the name of a framework's model, for `names`.
            estimate: What was learned before; nothing if None.
            said: What was said before; nothing if None.
        """
        self._look_up = look_up
        self.names, self.estimate, self.said = ModelNames(look_up), estimate or LongContextEstimate(), said or Said()
        self.ungraded = Ungraded()
        self._latest: tuple[Sequence[Any], Settings] | None = None

    def __reduce__(self) -> tuple[type[Memory], tuple[Any]]:
        return Memory, (self._look_up,)

    def settings(self, values: Sequence[Any]) -> Settings:
        """Return the settings with these values, in the order of `SETTINGS`: checking them anew takes longer."""
        latest = self._latest  # read once, since another thread may set it
        if latest is None or not all(map(is_, values, latest[0])):
            latest = self._latest = values, Settings(**dict(zip(SETTINGS, values, strict=True)))
        return latest[1]
