"""Estimate the tokens of a text without a tokenizer, and learn from what providers count."""

from __future__ import annotations

from selfroute.documents.sizes import Recent
from selfroute.usage.prices import PricedModel

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
_SHORT = 500  # tokens; the count of a shorter prompt says little
_RATIOS = (0.5, 4.0)  # what lies beyond was not counted in tokens, or not on the same text
_MODELS = 100
_TOLERANCE = 0.05


def count_tokens(text: str) -> int:
    """Return an estimate of the tokens of a text.

    It is a quarter of the characters, rounded up, for prose in English, and more for other scripts, code and tables: a
    token for each Chinese or Japanese character, say. It needs no tokenizer and takes no time: of a long text, it looks
    at a sample. Use it for budgets, and where the provider reports no counts.
    """
    sample = _sample(text)
    encoded = sample.encode(errors="replace")
    plain, spaces, small = (_count(encoded, kind) for kind in (_ASCII, _SPACES, _SMALL_LETTERS))
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


def is_cut(text: str, *, counted: int) -> bool:
    """Return whether a provider counted so few tokens of a prompt that it cannot have read all of it.

    Some servers cut a prompt to their window without a word.

    Args:
        text: The prompt, as it was sent.
        counted: The tokens that the provider reported for it.
    """
    if counted * 7 >= len(text.encode(errors="replace")):  # the common case, without splitting the text into words
        return False
    fewest = fewest_tokens(text)
    return fewest >= _SHORT and counted < fewest


def _count(encoded: bytes, kind: bytes) -> int:
    return len(encoded) - len(encoded.translate(None, kind))


def _sample(text: str) -> str:
    """Return a text, or if it is long, stretches at equal distances."""
    if len(text) <= _SAMPLED:
        return text
    step = len(text) // _STRETCHES
    return "".join([text[start : start + _STRETCH] for start in range(0, step * _STRETCHES, step)])


class Calibration:
    """Learns how many tokens a model's provider counts for each that is estimated; safe to use from threads.

    Attributes:
        learns: Whether it learns; otherwise estimates are taken as they are.
    """

    def __init__(self, *, learns: bool = True) -> None:
        """Start with nothing learned."""
        self.learns = learns
        self._ratios: Recent[tuple[float, float]] = Recent(_MODELS)  # the latest, and the one that is in use

    def ratio(self, model: PricedModel) -> float:
        """Return how many tokens the provider counts for each that is estimated; 1 if that is not known.

        It stays the same while what is learned is within a twentieth of it: trimmed documents would otherwise be cut
        elsewhere for each question, and never come from the provider's prompt cache.
        """
        _, in_use = self._ratios.get(model) or (1.0, 1.0)
        return in_use

    def learn(self, model: PricedModel, *, text: str, counted: int) -> None:
        """Compare a provider's count of a prompt with the estimate.

        Args:
            model: The model.
            text: The prompt.
            counted: The tokens that the provider reported for it.
        """
        estimated = count_tokens(text)
        if not self.learns or estimated < _SHORT:
            return
        low, high = _RATIOS
        ratio, known = min(max(counted / estimated, low), high), self._ratios.get(model)
        latest, in_use = ((known[0] + ratio) / 2, known[1]) if known else (ratio, 1.0)
        self._ratios.put(model, (latest, in_use if abs(latest - in_use) <= _TOLERANCE * in_use else latest))
