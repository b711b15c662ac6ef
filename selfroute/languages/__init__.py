"""How models decline in words of their own, in the languages that they write."""

from selfroute.languages.grammar import LANGUAGES, Grammar, add_language, grammar
from selfroute.languages.language import Language

__all__ = ["LANGUAGES", "Grammar", "Language", "add_language", "grammar"]
