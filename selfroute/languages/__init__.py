"""The rules that recognise a decline in a model's own words, in six languages.

The English rules are measured on real replies (`benchmarks/declines.py`). The German, French, Spanish, Chinese and
Japanese rules are tested only on examples that we wrote ourselves, so treat them as a starting point. All of them are
applied to every reply. `add_language` adds another language, or replaces the rules of one of these.
"""

from selfroute.languages.grammar import LANGUAGES, Grammar, add_language, grammar
from selfroute.languages.language import Language

__all__ = ["LANGUAGES", "Grammar", "Language", "add_language", "grammar"]
