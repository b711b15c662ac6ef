"""The options that steer which questions read more than their passages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from selfroute.errors import ConfigurationError
from selfroute.flow import Start
from selfroute.policies import Budget, Never
from selfroute.policies.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Steering:
    """The options of the command that steer what a question reads.

    Attributes:
        graded: Whether the draft begins with two numbers.
        doubt_below: The bound of its confidence; None for the default.
        stop_below: The bound of its prospect; None for the default.
        widen: The number of passages of a wider look; None for no wider look.
        budget_tokens: The most tokens that a question may take; None for no limit.
        budget_usd: The most dollars that a question may take; None for no limit.
        alone: The only step to take, to compare with; None for Self-Route.
    """

    graded: bool = False
    doubt_below: int | None = None
    stop_below: int | None = None
    widen: int | None = None
    budget_tokens: int | None = None
    budget_usd: float | None = None
    alone: Start | None = None

    def check(self, *, k: int, model: str | None) -> None:
        """Check that the options go together.

        Args:
            k: How many passages the draft is given.
            model: The model that answers; None for the extractive reader.

        Raises:
            ConfigurationError: An option would have no effect.
        """
        for option, value in (("--doubt-below", self.doubt_below), ("--stop-below", self.stop_below)):
            if value is not None and not self.graded:
                msg = f"{option} needs --graded too, which asks the model for the numbers that it bounds"
                raise ConfigurationError(msg)
        if self.widen is not None and self.widen <= k:
            msg = f"--widen {self.widen} must be more than the {k} passages of the first look (--k)"
            raise ConfigurationError(msg)
        if self.budget_usd is not None and model is None:
            msg = "--budget-usd needs --model too, since the extractive reader costs nothing; or use --budget-tokens"
            raise ConfigurationError(msg)

    def options(self) -> dict[str, Any]:
        """Return the options of the chain or engine."""
        return {
            "answerability": "graded" if self.graded else "text",
            "doubt_below": self.doubt_below,
            "stop_below": self.stop_below,
            "widen": self.widen,
            "escalation": self._policy(),
            "start": self.alone or "rag",
        }

    def _policy(self) -> Policy | None:
        if self.alone == "rag":
            return Never()
        usd, tokens = self.budget_usd, self.budget_tokens
        return None if usd is tokens is None else Budget(usd=usd, tokens=tokens)
