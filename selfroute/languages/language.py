"""The rules by which a reply in one language is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Language:
    """The rules by which a reply in one language is judged, in the notation of `selfroute.languages.notation`.

    Examples:
        >>> latin = Language(
        ...     name="Latin",
        ...     declines=("{text} non {says}",),
        ...     labels=("responsum :",),
        ...     words={"text": "liber libri", "says": "dicit dicunt narra*"},
        ... )

    Attributes:
        name: The name of the language.
        declines: How a reply that declines begins: "The text does not mention".
        start: What may come before that, after a label: "Unfortunately,", "Based on the passages,".
        denials: What denies in the middle of a sentence, too, if a whole reply is searched for denials: "is not stated
            in the report". The beginnings of `declines` are looked for after each comma as well.
        answers: Whole sentences, from their first word, that begin like a decline but answer after all: "The text does
            not say so directly, but adding both figures gives 42".
        no: Words for "no", with which a reply begins to "Does the text mention it?".
        asks: What still denies after those, where "it does not mention a fire" has answered: "does not say whether".
        whole: First sentences that decline only as they are, up to their end: "No data.".
        labels: What may come before the refusal or a decline: "Answer:".
        explains: How an explanation begins that follows the refusal without a punctuation mark: "Unanswerable because".
        words: Lists of words that rules refer to, by name.
        parts: Expressions that rules are composed of, by name.
        aside: Words by which a sentence that denied goes on to speak of the text, or denies again. Without these it
            answers after all if it names an amount, or who said it: "The report mentions no deaths, only 3 injuries".
        listing: Words by which it goes on to list what was denied, and so gives no amount: "and", "or", "such as".
        only: Words for "only". An amount directly after one answers; "only the date of 12 May" does not.
        speech: Verbs of speech: "I don't know, said the witness."
    """

    name: str
    declines: tuple[str, ...]
    start: str = ""
    denials: tuple[str, ...] = ()
    no: str = ""
    asks: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    explains: tuple[str, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)
    aside: str = ""
    listing: str = ""
    only: str = ""
    speech: str = ""
