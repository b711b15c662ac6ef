"""Estimate the tokens of a text without a tokenizer, by the scripts that it is written in."""

from __future__ import annotations

from functools import partial

# Tokens per character, between what o200k and cl100k take. They were measured on prose in each script, and on program
# code, tables and logs.
_ASCII = bytes(range(128))
_SPACE, _SPACES = 0.05, bytes(range(33))  # most tokens begin with a space
_SMALL, _SMALL_LETTERS = 0.2, bytes(range(ord("a"), ord("z") + 1))
_SIGN = 0.7  # capitals, digits, punctuation
_PROSE = 0.25  # at least, of all ASCII: a little more than English takes
_OTHERS = (  # by the first byte of the character in UTF-8
    (0.4, bytes([*range(0xD0, 0xD4), *range(0xD8, 0xDC)])),  # Cyrillic, Arabic
    (0.7, bytes([0xCE, 0xCF, 0xD6, 0xD7, 0xE0])),  # Greek, Hebrew, the scripts of India, Thai
    # Letters with accents; Chinese, Japanese, Korean; typographic and mathematical signs
    (1.0, bytes([*range(0xC2, 0xCE), 0xD4, 0xD5, *range(0xDC, 0xE0), *range(0xE1, 0xF0)])),
    (2.5, bytes(range(0xF0, 0xF5))),  # emoji, rare ideographs
)
_UNSPACED = bytes(range(0xE3, 0xEA))  # Chinese and Japanese
_SAMPLED = 200_000  # a longer text is sampled
_STRETCHES, _STRETCH = 100, 1_000


def count_tokens(text: str) -> int:
    """Return an estimate of the tokens of a text.

    It is a quarter of the characters, rounded up, for prose in English, and more for other scripts, code and tables: a
    token for each Chinese or Japanese character, say. It needs no tokenizer and takes no time: of a long text, it looks
    at a sample. Use it for budgets, and where the provider reports no counts.
    """
    sample = _sample(text)
    encoded = sample.encode(errors="replace")
    plain, spaces, small = map(partial(_count, encoded), (_ASCII, _SPACES, _SMALL_LETTERS))
    by_kind = _SPACE * spaces + _SMALL * small + _SIGN * (plain - spaces - small)
    tokens = max(_PROSE * plain, by_kind)
    if plain < len(encoded):
        tokens += sum([rate * _count(encoded, kind) for rate, kind in _OTHERS])
    return max(-(-len(text) // 4), int(tokens * len(text) / len(sample)) if sample else 0)


def fewest_tokens(text: str) -> int:
    """Return a number of tokens that any tokenizer finds in a text: nearly one a word, or one in three ideographs."""
    sample = _sample(text)
    encoded = sample.encode(errors="replace")
    tokens = 0.8 * len(sample.split()) + 0.35 * _count(encoded, _UNSPACED)
    return int(tokens * len(text) / len(sample)) if sample else 0


def _count(encoded: bytes, kind: bytes) -> int:
    return len(encoded) - len(encoded.translate(None, kind))


def _sample(text: str) -> str:
    """Return a text, or if it is long, stretches at equal distances."""
    if len(text) <= _SAMPLED:
        return text
    step = len(text) // _STRETCHES
    return "".join([text[start : start + _STRETCH] for start in range(0, step * _STRETCHES, step)])
