"""The rules of all languages, compiled together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from selfroute.languages.automaton import State
from selfroute.languages.chinese import CHINESE
from selfroute.languages.english import ENGLISH
from selfroute.languages.french import FRENCH
from selfroute.languages.german import GERMAN
from selfroute.languages.japanese import JAPANESE
from selfroute.languages.language import Language
from selfroute.languages.notation import Rules, compile_rules
from selfroute.languages.refusals import REFUSALS
from selfroute.languages.spanish import SPANISH

LANGUAGES = [ENGLISH, GERMAN, FRENCH, SPANISH, CHINESE, JAPANESE, REFUSALS]

# How a sentence that denied goes on if it still answers, from the denial to its end.
_TELLS = (
    "(-{pauses})* (, | :) ((-{listing})* | {only}) {amount} (-{aside})* .",
    "any (-{pauses})* , (-{aside})* {amount} (-{aside})* .",  # "any losses, only a profit of 4 million"
    "(-{pauses})* , (-{listing} (-{listing} (-{listing})?)?)? {speech} (-{aside})* .",
)
# A year is no amount, since denials often name one. In scripts without spaces no such answer is recognised.
_AMOUNT = "0* 1 2 10* 11* 12* 13* 14* 15* 16* 17* 21* 22* 23* 24* 25* 26* 27* 28* 29* 3* 4* 5* 6* 7* 8* 9*"
_ASIDE = "18* 19* 20* *"


@dataclass(frozen=True)
class Grammar:
    """The compiled rules of some languages: for each kind of rule of a `Language`, the first state of its automaton."""

    languages: tuple[Language, ...]
    declines: State
    answers: State
    labels: State
    explains: State

    @classmethod
    def of(cls, languages: Sequence[Language]) -> Grammar:
        """Compile the rules of some languages.

        Raises:
            ConfigurationError: A rule cannot be read.
        """

        def start(kind: str, *, opened: bool) -> State:
            return compile_rules(
                Rules(
                    rules=getattr(language, kind) + _whole(language) * (kind == "declines"),
                    start=f"(({') | ('.join(language.labels)}))? {language.start}" if opened else "",
                    words=language.words,
                    parts=language.parts,
                )
                for language in languages
            )

        return cls(
            languages=tuple(languages),
            declines=start("declines", opened=True),
            answers=start("answers", opened=True),
            labels=start("labels", opened=False),
            explains=start("explains", opened=False),
        )

    @cached_property
    def denials(self) -> State:
        """The first state of the automaton that finds denials anywhere in a sentence; compiled when first needed."""
        return self._compiled(
            lambda language: (
                *(f"(... ,)? {language.start} ({rule})" for rule in language.declines),
                *(f"... {rule}" for rule in language.denials),
            )
        )

    @cached_property
    def no(self) -> State:
        """The first state of the automaton of replies that begin with "no"; compiled when first needed."""
        return self._compiled(lambda language: (f"({language.no}) (, | . | :)",) if language.no else ())

    @cached_property
    def asks(self) -> State:
        """The first state of the automaton of what denies after "no", too; compiled when first needed."""
        return self._compiled(lambda language: tuple(f"... ({rule})" for rule in language.asks))

    def _compiled(self, rules: Callable[[Language], tuple[str, ...]]) -> State:
        return compile_rules(Rules(rules(language), "", language.words, language.parts) for language in self.languages)

    @cached_property
    def tells(self) -> State:
        """The first state of the automaton that reads on after such a denial; compiled when first needed."""

        def words(*lists: str) -> str:
            return " ".join(getattr(language, name) for name in lists for language in self.languages)

        lists = {
            "aside": f"{words('aside')} {_ASIDE}",
            "listing": f"{words('aside', 'listing', 'only')} {_ASIDE}",
            "only": words("only"),
            "speech": words("speech"),
            "amount": _AMOUNT,
            "pauses": ",",
        }
        return compile_rules([Rules(rules=_TELLS, words=lists)])


def _whole(language: Language) -> tuple[str, ...]:
    return tuple(f"({rule}) ." for rule in language.whole)


@lru_cache(maxsize=1)
def grammar() -> Grammar:
    """Return the grammar of all languages; compile it when it is first needed."""
    return Grammar.of(LANGUAGES)


def add_language(language: Language) -> None:
    """Add a language for this process, or replace the rules of the language with the same name.

    Args:
        language: The rules of the language.

    Raises:
        ConfigurationError: A rule cannot be read.
    """
    _ = Grammar.of([language]).denials
    LANGUAGES[:] = [*(known for known in LANGUAGES if known.name != language.name), language]
    grammar.cache_clear()
