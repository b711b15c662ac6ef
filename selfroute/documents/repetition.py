"""Find out whether a text repeats itself, so that it fits in several places."""

from __future__ import annotations

_MAX_TRIES = 1_000  # to find out whether a text repeats itself


def fits_further_on(text: str, shared: int) -> bool:
    """Return whether a chunk that shares its first characters with the text before it could also start further on."""
    rest = text[shared:]
    stripped = len(rest) - len(rest.lstrip()) if rest == rest.rstrip() else 0  # if the splitter strips chunks
    return repeats_itself(text, within=shared + stripped)


def repeats_itself(text: str, *, within: int) -> bool:
    """Return whether a text, moved by at most `within` characters, matches itself where both overlap."""
    if within >= len(text):
        return True
    probe, at = text[: len(text) - within], 0
    for _ in range(_MAX_TRIES):
        at = text.find(probe, at + 1)
        if at < 0:
            return False
        if text.startswith(text[at:]):
            return True
    return True  # undecided: assume the worse
