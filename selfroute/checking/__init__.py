"""Try the parts of a chain or engine on one question, before any model is paid: `check()` in every framework."""

from selfroute.checking.checking import acheck, check
from selfroute.checking.findings import Finding, Findings

__all__ = ["Finding", "Findings", "acheck", "check"]
