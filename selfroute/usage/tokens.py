"""Estimate tokens without a tokenizer: of a text, and of always reading the whole documents; learn from providers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from selfroute.documents.cache import MOST, Recent, Size
from selfroute.languages.tokens import count_tokens, fewest_tokens
from selfroute.usage import prices
from selfroute.usage.counts import FREE, NOTHING, Cost, StepUsage, Usage
from selfroute.usage.prices import PricedModel

_UNMEASURED = Cost(None, "the length of the documents is not known")
RATE = 0.25  # tokens per character, where nothing was counted
LEAST_RATE = RATE / 2
"""No text takes fewer tokens per character. What says so was not counted in tokens, or not on this text."""
_REPLY = 100  # tokens, of a reply that is as brief as a complete answer allows
_SHORT = 500  # tokens; the count of a shorter prompt says little
_RATIOS = (0.5, 4.0)  # what lies beyond was not counted in tokens, or not on the same text
_MODELS = 100
_TOLERANCE = 0.05


def is_cut(text: str, *, counted: int) -> bool:
    """Return whether a provider counted so few tokens of a prompt that it cannot have read all of it.

    Some servers cut a prompt to their window without a word.
    """
    if counted * 7 >= len(text.encode(errors="replace")):  # the common case, without splitting the text into words
        return False
    fewest = fewest_tokens(text)
    return fewest >= _SHORT and counted < fewest


class Calibration:
    """Learns how many tokens a model's provider counts for each that is estimated; safe to use from threads.

    Attributes:
        learns: Whether it learns; otherwise estimates are taken as they are.
    """

    def __init__(self, *, learns: bool = True) -> None:
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
        """Compare the tokens that a provider counted of a prompt with the estimate."""
        estimated = count_tokens(text)
        if not self.learns or estimated < _SHORT:
            return
        low, high = _RATIOS
        ratio, known = min(max(counted / estimated, low), high), self._ratios.get(model)
        latest, in_use = ((known[0] + ratio) / 2, known[1]) if known else (ratio, 1.0)
        self._ratios.put(model, (latest, in_use if abs(latest - in_use) <= _TOLERANCE * in_use else latest))


@dataclass(frozen=True, slots=True)
class PromptSize:
    """The size of a prompt.

    Attributes:
        characters: The length of the whole prompt.
        context: The length of the passages or documents in it.
    """

    characters: int
    context: int

    @property
    def around(self) -> int:
        """The length of the text around the context."""
        return max(self.characters - self.context, 0)


class LongContextEstimate:
    """Estimates what reading the documents costs a model, and learns from each time that it reads them.

    What it learns is kept by model and document, so chains that share it may have other options.

    Attributes:
        calibration: What was learned about how the providers count.
    """

    def __init__(self, *, calibrates: bool = True) -> None:
        """Start with nothing learned; `calibrates` is whether what providers count decides how much fits a window."""
        self.calibration = Calibration(learns=calibrates)
        self._rates: Recent[float] = Recent(MOST)  # tokens per character, by model and document
        self._replies: Recent[float] = Recent(MOST)  # tokens, by model

    def reply(self, model: PricedModel) -> int:
        """Estimate the tokens of a model's reply, with those that it thinks."""
        return max(_REPLY, ceil(self._replies.get(model) or 0))

    def replied(self, model: PricedModel, tokens: int) -> None:
        """Learn from the tokens of a reply: at once from a long one, by halves from a short one."""
        self._replies.put(model, max(tokens, (tokens + (self._replies.get(model) or 0)) / 2))

    def read(self, usage: Usage, sizes: Sequence[Size] | None, *, prompt: PromptSize, model: PricedModel) -> Usage:
        """Return the usage of a question whose documents were read, with what reading them cost.

        Args:
            usage: The usage of all steps.
            sizes: The documents' sizes, if all of them were read, and untrimmed; else None.
            prompt: The size of their prompt.
            model: The model that read them.
        """
        step = usage.long_context
        if step is None:
            return usage.compared(0, FREE)
        if prompt.characters and not step.estimated:
            for size in sizes or ():
                self._rates.put((model, size.key), step.input_tokens / prompt.characters)
        return usage.compared(step.input_tokens, step.cost)

    def answered(  # noqa: PLR0913 - an estimate needs all of them
        self,
        usage: Usage,
        sizes: Sequence[Size] | None,
        *,
        latest: StepUsage | None,
        prompt: PromptSize,
        room: int | None,
        model: PricedModel,
        priced: PricedModel,
    ) -> Usage:
        """Return the usage of a question whose documents were not read, with an estimate for the long context alone.

        The tokens per character of a document are those that the provider counted when the model read it last. For a
        document that it has not read yet, they are those of the latest prompt; if the model was not asked at all, as
        many as in most texts.

        Args:
            usage: The usage of all steps.
            sizes: The sizes of the documents that would have been read; None if they are not known.
            latest: What the latest call of a model took; None if there was none.
            prompt: The size of its prompt. The text around the context is assumed to be the same in all.
            room: The tokens of documents that fit in a prompt; None for no limit.
            model: The model that would have read them.
            priced: The model as which it is priced.
        """
        if sizes is None:
            return usage.compared(usage.long_context_only, _UNMEASURED)
        if latest and prompt.characters:
            rate = latest.input_tokens / prompt.characters
        else:
            rate = RATE * self.calibration.ratio(model)
        only = self.tokens(sizes, rate, prompt=prompt, room=room, model=model)
        if not only:
            return usage.compared(only, FREE)
        # A reply from the framework's cache cost nothing; the other one would have come from there, too.
        cold, warm = _bounds(only, latest or NOTHING, priced)
        return usage.compared(only, cold, cold, warm)

    def tokens(
        self, sizes: Sequence[Size], rate: float, *, prompt: PromptSize, room: int | None, model: PricedModel
    ) -> int:
        """Estimate the tokens of a prompt with whole documents.

        Args:
            sizes: The sizes of the documents.
            rate: The tokens per character of a document that the provider has not counted yet.
            prompt: The size of a prompt with other text in it. The text around that is assumed to be the same.
            room: The tokens of documents that fit in a prompt; None for no limit.
            model: The model that is to read them.
        """
        tokens, characters = 0.0, 0
        for size in sizes:
            tokens += size.characters * (self._rates.get((model, size.key)) or rate)
            characters += size.characters
        if not characters:
            return round(prompt.around * rate)
        most = characters if room is None else min(characters, room / (rate or RATE))
        return round(tokens / characters * (most + prompt.around))


def with_bounds(usage: Usage, counts: StepUsage, *, model: PricedModel) -> Usage:
    """Return the usage with what the long context alone costs if the provider's prompt cache holds none or all of it.

    Neither has the surcharge for writing to the cache.

    Args:
        usage: The usage of a question.
        counts: What the long context alone takes.
        model: The model as which it is priced.
    """
    cold, warm = _bounds(counts.input_tokens, counts, model)
    return usage.compared(usage.long_context_only, usage.cost_long_context_only, cold, warm)


def _bounds(read: int, reply: StepUsage, model: PricedModel) -> tuple[Cost, Cost]:
    """Return what it costs to read so many tokens for a reply if the provider's cache holds none of them, and all."""
    cold = prices.cost_of(model, StepUsage(read, reply.output_tokens, repeated=reply.repeated))
    if cold.dollars is None:  # as the other is then
        return cold, cold
    return cold, prices.cost_of(model, StepUsage(read, reply.output_tokens, read, repeated=reply.repeated))
