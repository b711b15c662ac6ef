"""Splits documents into chunks of a number of words, and cuts documents that are too long for the model."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice

from selfroute.errors import ConfigurationError
from selfroute.usage.tokens import count_tokens

WORDS = 300
_NO_SPACES = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Japanese, Chinese
_WORD = re.compile(rf"[{_NO_SPACES}]|[^\s{_NO_SPACES}]{{1,100}}")
_PRECISION = 500


def chunks(text: str, words: int = WORDS) -> list[str]:
    """Split a text into chunks of a number of words that do not overlap (section 3.2 of the paper).

    Words are separated by white space. Chinese and Japanese have none, so there each character is a word, as in
    LongBench. Of a longer run, every 100 characters count as a word.

    Args:
        text: The text.
        words: How many words a chunk has; the last chunk has the rest.

    Returns:
        The chunks in order, each exactly as in the text, from its first word to its last.

    Raises:
        ConfigurationError: `words` is less than 1.
    """
    if words < 1:
        msg = f"a chunk has at least one word: give a number from 1, not {words}"
        raise ConfigurationError(msg)
    found, pieces = _WORD.finditer(text), []
    while chunk := list(islice(found, words)):
        pieces.append(text[chunk[0].start() : chunk[-1].end()])
    return pieces


def cut_in_the_middle(text: str, max_tokens: int, *, count: Callable[[str], int] = count_tokens) -> tuple[str, bool]:
    """Leave out the middle of a text that is too long, as LongBench does; both ends stay, equally long.

    Args:
        text: The text.
        max_tokens: How many tokens it may have.
        count: Counts the tokens of a text. The kept text is at most 0.2 % shorter than it could be.

    Returns:
        The text, and whether it was cut.
    """
    if count(text) <= max_tokens:
        return text, False
    fits, too_long = 0, len(text) // 2 + 1  # characters of each end
    while too_long - fits > 1 + fits // _PRECISION:
        middle = (fits + too_long) // 2
        if count(_ends(text, middle)) <= max_tokens:
            fits = middle
        else:
            too_long = middle
    return _ends(text, fits), True


def _ends(text: str, length: int) -> str:
    return text[:length] + text[len(text) - length :]
