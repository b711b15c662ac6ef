"""Where a text says what an answer says; `locate` finds it by words alone, without asking a model."""

from selfroute.citations.citing import Citation, locate

__all__ = ["Citation", "locate"]
