"""Where a text says what an answer says; found by words alone, without asking a model.

`locate` finds it in one text, `cite` in all that a model answered from.
"""

from selfroute.citations.citing import Citation, Stretch, cite, locate

__all__ = ["Citation", "Stretch", "cite", "locate"]
