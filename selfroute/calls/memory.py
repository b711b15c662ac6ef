"""Keep what a chain or engine needs again for its next question."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from operator import is_, itemgetter
from typing import Any

from selfroute.answerability.graded import Ungraded
from selfroute.calls.plan import Plan
from selfroute.calls.settings import Settings
from selfroute.errors import ConfigurationError
from selfroute.prompts import NO_NUMBERS
from selfroute.usage.prices import ModelNames, PricedModel
from selfroute.usage.tokens import LongContextEstimate

_logger = logging.getLogger(__name__)
_values_of: Callable[[Mapping[str, Any]], tuple[Any, ...]] = itemgetter(*Settings.model_fields)


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

    A shallow copy shares it, even if the copy is changed later. So each thing in it is kept with what it was made
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
        self._latest: tuple[tuple[Any, ...], Plan] | None = None

    def __reduce__(self) -> tuple[type[Memory], tuple[Any]]:
        return Memory, (self._look_up,)

    def plan(self, options: Mapping[str, Any], asks_for_numbers: Callable[[], bool]) -> Plan:
        """Return the plan for these settings. They are checked when they are new; that takes long.

        Args:
            options: The value of each option, by name, and anything else.
            asks_for_numbers: Returns whether the prompt of the draft asks for the numbers of graded answerability; it
                is called if the user has left that open, and may say no by a `ConfigurationError`. A no is logged once.

        Raises:
            ConfigurationError: The settings are not valid.
        """
        values = _values_of(options)
        latest = self._latest  # read once, since another thread may set it
        if latest is None or not all(map(is_, values, latest[0])):
            latest = self._latest = values, Plan(**dict(zip(Settings.model_fields, values, strict=True)))
        plan = latest[1]
        if plan.answerability is not None:
            return plan
        try:
            graded = asks_for_numbers()
        except ConfigurationError:
            graded = False
        if graded:
            return plan.as_graded
        degraded = plan.as_text
        self.said.warn(_logger, NO_NUMBERS)
        return degraded
