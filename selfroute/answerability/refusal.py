"""The word or words by which a model was told to decline, as they are looked for in its reply."""

from __future__ import annotations

import re
from functools import lru_cache

from selfroute.languages.words import NOISE, fold, words_of


class Refusal:
    """A refusal as it is compared.

    Attributes:
        core: Its words, without the quotes and marks around them.
        first: The first of its words, if it has one.
        visible: Finds the first character of a reply that counts.
    """

    __slots__ = ("_forms", "core", "first", "visible")

    def __init__(self, refusal: str) -> None:
        """Prepare to look for it."""
        bare = refusal.strip(" \t\r\n\"'`*_.!\u201c\u201d\u2018\u2019") or refusal.strip()
        self.core = " ".join("".join(map(fold, bare)).split())
        bracketed = re.fullmatch(r"[\[({]+ ?(\w.*\w) ?[\])}]+", self.core)
        self._forms = (self.core, bracketed[1]) if bracketed else (self.core,)  # models leave brackets out
        self.first = words_of(self.core)[:1]
        self.visible = re.compile(f"[^{NOISE}]" + (f"|{re.escape(bare[0])}" if bare else ""))

    def end_in(self, text: str, at: int) -> int | None:
        """Return where the refusal that begins at `at` ends, -1 if none does, None if the text is too short to tell."""
        ends = [_end_of(form, text, at) for form in self._forms]
        return None if None in ends else max(end for end in ends if end is not None)


def _end_of(form: str, text: str, at: int) -> int | None:
    done = 0
    while done < len(form):
        if at == len(text):
            return None
        part = fold(text[at])
        if form.startswith(part, done):
            done += len(part)
        elif part != " " or not done or form[done - 1] != " ":
            return -1
        at += 1
    return at


@lru_cache(maxsize=64)
def prepared(refusal: str) -> Refusal:
    """Return the refusal, prepared once."""
    return Refusal(refusal)
