"""A policy from an evaluation: both bounds, the sections, and whether to escalate at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from selfroute.errors import ConfigurationError
from selfroute.policies.calibration import Calibration
from selfroute.policies.case import Case, Ruling
from selfroute.policies.policy import Policy


class Calibrated(Policy):
    """Escalates in the way that was best on the questions of an evaluation.

    It sets the chain's or engine's bounds and its sections. As a policy it only says whether to escalate at all. That
    costs nothing: it asks no model.

    Example:
        ```python
        from selfroute.evaluation import Evaluation
        from selfroute.policies import Budget, Calibrated

        Evaluation.load("evaluation").calibrate().save("policy.json")  # or: selfroute calibrate evaluation
        escalation = Calibrated.load("policy.json") & Budget(usd=5, per="day")
        ```

    Attributes:
        calibration: The constants, and the figures behind them.
        options: The options of the chain or engine that it sets: `answerability`, `doubt_below`, `stop_below` and
            `sections`.
    """

    name = "calibrated"

    def __init__(self, calibration: Calibration) -> None:
        """Make a policy of a calibration.

        Raises:
            ConfigurationError: It is something else, such as a path.
        """
        if not isinstance(calibration, Calibration):
            msg = f"Calibrated takes a calibration, not {calibration!r}: Calibrated.load(path) reads one from a file"
            raise ConfigurationError(msg)
        self.calibration = calibration
        self.options: Mapping[str, Any] = calibration.options

    @classmethod
    def load(cls, path: str | Path) -> Calibrated:
        """Read what `save`, or `selfroute calibrate`, wrote.

        Raises:
            ConfigurationError: The file cannot be read, or is not a calibration of this version.
        """
        from selfroute.policies.stored import load  # noqa: PLC0415 - chains without a calibration import this, too

        return cls(load(path))

    def save(self, path: str | Path) -> None:
        """Write it to a file, as JSON.

        Raises:
            ConfigurationError: The file cannot be written.
        """
        from selfroute.policies.stored import save  # noqa: PLC0415

        save(self.calibration, path)

    def __call__(self, case: Case) -> Ruling:  # noqa: ARG002
        """Say no if never escalating was best."""
        if self.calibration.escalate != "never":
            return Ruling(go=True, by=self.name)
        return Ruling(go=False, by=self.name, reason=f"escalating did not pay on {self.calibration.counts.basis}")

    def check_prompts(self, *prompts: str) -> None:
        """Refuse prompts that it was not made for.

        Args:
            prompts: The draft's prompt and that of the long context, as templates.

        Raises:
            ConfigurationError: It was made for other prompts.
        """
        self.calibration.check_prompts(*prompts)

    def __eq__(self, other: object) -> bool:
        """Return whether another policy has the same calibration."""
        return isinstance(other, Calibrated) and self.calibration == other.calibration

    def __hash__(self) -> int:
        """Return the hash of its calibration."""
        return hash(self.calibration)

    def __repr__(self) -> str:
        """Return the constants, and the number of questions and documents behind them."""
        options = {key: value for key, value in self.options.items() if key != "answerability"}
        constants = ", ".join([f"escalate={self.calibration.escalate!r}", *(f"{k}={v!r}" for k, v in options.items())])
        return f"<{type(self).__name__}({constants}) from {self.calibration.counts.basis}>"
