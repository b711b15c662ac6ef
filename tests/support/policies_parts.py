"""A case for policies, without a chain around it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from selfroute.policies import Case
from selfroute.policies.case import Estimate


def case_of(estimate: Estimate | None = None, **fields: Any) -> Case:
    """Return a case whose documents are known, unless the fields say otherwise."""
    given: dict[str, Any] = {
        "question": "Who?",
        "inputs": {"input": "Who?", "tier": "gold"},
        "decision": {"declined": True, "signal": "sentinel", "evidence": "unanswerable"},
        "draft": "unanswerable",
        "passages": ["a passage"],
        "usage": {"total_tokens": 10, "cost": "0.01"},
        "step": "long_context",
        "estimated": lambda: estimate or Estimate(100, Decimal("0.1")),
        "read": lambda: ["a document"],
    }
    return Case(**{**given, **fields})
