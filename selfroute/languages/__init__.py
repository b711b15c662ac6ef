"""How models decline in words of their own, in the languages that they write."""

from __future__ import annotations

from selfroute.languages.chinese import CHINESE
from selfroute.languages.english import ENGLISH
from selfroute.languages.french import FRENCH
from selfroute.languages.german import GERMAN
from selfroute.languages.japanese import JAPANESE
from selfroute.languages.language import Language
from selfroute.languages.spanish import SPANISH

__all__ = ["LANGUAGES", "Language"]

LANGUAGES = [ENGLISH, GERMAN, FRENCH, SPANISH, CHINESE, JAPANESE]
