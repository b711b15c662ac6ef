"""The options that steer which questions read more than their passages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from selfroute.calls.settings import MAX_DOCUMENTS, Doubt, Sections
from selfroute.effects import Start
from selfroute.errors import ConfigurationError
from selfroute.policies import Budget
from selfroute.policies.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Steering:
    """The options of the command that steer what a question reads.

    Attributes:
        graded: Whether the model is asked how sure it is.
        doubt_below: The bound of its confidence, or those for the draft and for the sections; None for the default.
        stop_below: The bound of its prospect; None for the default.
        sections: The tokens of the documents' sections, as in `Settings`; None for no sections.
        max_documents: The most whole documents that a question may read; None for no limit.
        start: The first step.
        budget_tokens: The most tokens that a question may take; None for no limit.
        budget_usd: The most dollars that a question may take; None for no limit.
    """

    graded: bool = False
    doubt_below: Doubt = None
    stop_below: int | None = None
    sections: Sections = None
    max_documents: int | None = MAX_DOCUMENTS
    start: Start = "rag"
    budget_tokens: int | None = None
    budget_usd: float | None = None

    def check(self, *, model: str | None) -> None:
        """Check that the options go together.

        Args:
            model: The model that answers; None for the extractive reader.

        Raises:
            ConfigurationError: An option would have no effect.
        """
        for option, value in (("--doubt-below", self.doubt_below), ("--stop-below", self.stop_below)):
            if value is not None and not self.graded:
                msg = f"{option} needs --graded too, which asks the model for the numbers that it bounds"
                raise ConfigurationError(msg)
        if isinstance(self.doubt_below, tuple) and not self.sections:
            msg = "--doubt-below has a bound for sections: pass --sections 4000 too, or one number"
            raise ConfigurationError(msg)
        if self.start == "long_context" and self.max_documents == 0:
            msg = "--start long_context reads documents, and --max-documents 0 forbids it: leave out one of them"
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
            "sections": self.sections,
            "max_documents": self.max_documents,
            "escalation": self._policy(),
            "start": self.start,
        }

    def _policy(self) -> Policy | None:
        usd, tokens = self.budget_usd, self.budget_tokens
        return None if usd is tokens is None else Budget(usd=usd, tokens=tokens)
