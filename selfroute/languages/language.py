"""What a language has to say about declines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Language:
    """Rules by which a language declines, in the notation of `selfroute.languages.notation`.

    Examples:
        >>> latin = Language(
        ...     name="Latin",
        ...     declines=("{text} non {tells}",),
        ...     labels=("responsum :",),
        ...     words={"text": "liber libri", "tells": "dicit dicunt narra*"},
        ... )

    Attributes:
        name: Its name.
        declines: How a reply opens that declines.
        start: What may come before that, after a label: "Unfortunately,", "Based on the passages,".
        answers: How the sentence that declines goes on, from its first word, where the reply answers after all.
        labels: What may stand before the refusal: "Answer:".
        explains: How an explanation opens that follows the refusal without a mark.
        words: Lists of words, by name.
        parts: Parts of rules, by name.
    """

    name: str
    declines: tuple[str, ...]
    start: str = ""
    answers: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    explains: tuple[str, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)
