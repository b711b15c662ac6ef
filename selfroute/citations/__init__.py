"""Where a text says what an answer says; found by words alone, without asking a model.

`locate` finds it in one text, `cite` in all that a model answered from: first what the model quoted, if that stands
there, else as `locate` does.
"""

from selfroute.citations.citing import NOTHING_CITED, Citation, Cited, Stretch, cite, locate

__all__ = ["NOTHING_CITED", "Citation", "Cited", "Stretch", "cite", "locate"]
