"""Policies: may a question that the passages did not settle read the documents?"""

from selfroute.policies.budget import Budget
from selfroute.policies.case import Case, Ruling
from selfroute.policies.policy import Never

__all__ = ["Budget", "Case", "Never", "Ruling"]
