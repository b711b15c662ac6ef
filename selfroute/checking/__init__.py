"""Try the parts of a chain or engine on one question, before any model is paid: `check()` in every framework."""

from selfroute.checking.checking import Checking, acheck, check
from selfroute.checking.findings import Finding, Findings

__all__ = ["Checking", "Finding", "Findings", "acheck", "check"]
