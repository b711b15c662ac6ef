"""Find the refusal, the text by which the prompt tells the model to decline, at a position in a reply."""

from __future__ import annotations

import re
from functools import lru_cache

from selfroute.languages.words import NOISE, fold, fold_character, words_of

# The first mark after a refusal that is a reply of its own: a full stop, or a symbol such as an emoji or an arrow.
_ENDING = re.compile(
    r"[^\w?\uff1f.!\u2026\u3002\uff01\uff0e]*"
    r"(?:[.!\u2026\u3002\uff01\uff0e](?!\w)|[\u2190-\u21ff\u2300-\u27bf\u2900-\u297f\u2b00-\u2bff\U0001f000-\U0001faff])"
)


class Refusal:
    """A refusal, prepared for comparison with replies.

    Attributes:
        core: Its words, folded, without the quotes and punctuation around them.
        first: The first of its words, or nothing if it has none.
        visible: Finds the first character of a reply that is not noise such as white space, quotes or Markdown.
    """

    __slots__ = ("_forms", "core", "first", "visible")

    def __init__(self, refusal: str) -> None:
        """Prepare to find `refusal`."""
        bare = refusal.strip(" \t\r\n\"'`*_.!\u201c\u201d\u2018\u2019") or refusal.strip()
        self.core = " ".join(fold(bare).split())
        bracketed = re.fullmatch(r"[\[({]+ ?(\w.*\w) ?[\])}]+", self.core)
        self._forms = (self.core, bracketed[1]) if bracketed else (self.core,)  # models leave brackets out
        self.first = words_of(self.core)[:1]
        self.visible = re.compile(f"[^{NOISE}]" + (f"|{re.escape(bare[0])}" if bare else ""))

    def end_in(self, text: str, at: int) -> int | None:
        """Return where the refusal that begins at `at` ends: -1 if there is none, None if `text` is still too short."""
        ends = [_end_of(form, text, at) for form in self._forms]
        return None if None in ends else max(end for end in ends if end is not None)

    @staticmethod
    def ends_reply(text: str, at: int) -> bool:
        """Return whether the first mark after a refusal that ends at `at` ends it, whatever word comes next."""
        return _ENDING.match(text, at) is not None


def _end_of(form: str, text: str, at: int) -> int | None:
    """Do as `Refusal.end_in`, for one form of the refusal; white space may be repeated."""
    matched = 0
    while matched < len(form):
        if at == len(text):
            return None
        part = fold_character(text[at])
        if form.startswith(part, matched):
            matched += len(part)
        elif part != " " or not matched or form[matched - 1] != " ":
            return -1
        at += 1
    return at


@lru_cache(maxsize=64)
def compile_refusal(refusal: str) -> Refusal:
    """Return a refusal, prepared for comparison; the last ones are cached."""
    return Refusal(refusal)
