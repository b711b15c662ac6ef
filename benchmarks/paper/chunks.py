"""Splits documents into chunks of a number of words."""

from __future__ import annotations

import re
from itertools import islice

from selfroute.errors import ConfigurationError

WORDS = 300
_NO_SPACES = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Japanese, Chinese
_WORD = re.compile(rf"[{_NO_SPACES}]|[^\s{_NO_SPACES}]{{1,100}}")


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
