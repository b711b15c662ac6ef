"""All languages together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from selfroute.languages.automaton import State
from selfroute.languages.chinese import CHINESE
from selfroute.languages.english import ENGLISH
from selfroute.languages.french import FRENCH
from selfroute.languages.german import GERMAN
from selfroute.languages.japanese import JAPANESE
from selfroute.languages.language import Language
from selfroute.languages.notation import Rules, compiled
from selfroute.languages.spanish import SPANISH

LANGUAGES = [ENGLISH, GERMAN, FRENCH, SPANISH, CHINESE, JAPANESE]


@dataclass(frozen=True, slots=True)
class Grammar:
    """The first states of the automata that read a reply, one for each kind of rules of a `Language`."""

    declines: State
    answers: State
    labels: State
    explains: State

    @classmethod
    def of(cls, languages: Sequence[Language]) -> Grammar:
        """Make the automata for some languages.

        Raises:
            ConfigurationError: A rule can not be read.
        """

        def start(kind: str, *, opened: bool) -> State:
            return compiled(
                Rules(
                    rules=getattr(language, kind),
                    start=f"(({') | ('.join(language.labels)}))? {language.start}" if opened else "",
                    words=language.words,
                    parts=language.parts,
                )
                for language in languages
            )

        return cls(
            declines=start("declines", opened=True),
            answers=start("answers", opened=True),
            labels=start("labels", opened=False),
            explains=start("explains", opened=False),
        )


@lru_cache(maxsize=1)
def grammar() -> Grammar:
    """Return the grammar of all languages."""
    return Grammar.of(LANGUAGES)


def add_language(language: Language) -> None:
    """Teach this process one more language, or new rules for one of the same name.

    Args:
        language: Its rules.

    Raises:
        ConfigurationError: A rule can not be read.
    """
    Grammar.of([language])
    LANGUAGES[:] = [*(one for one in LANGUAGES if one.name != language.name), language]
    grammar.cache_clear()
