"""Estimate what always reading the whole documents would have cost, without reading them for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, inf

from selfroute.documents.sizes import MOST, Lengths, Recent, Size
from selfroute.usage import prices
from selfroute.usage.account import Account
from selfroute.usage.counts import FREE, NOTHING, Cost, StepUsage, Usage
from selfroute.usage.prices import PricedModel
from selfroute.usage.tokens import Calibration

_UNMEASURED = Cost(None, "the length of the documents is not known")
RATE = 0.25  # tokens per character, where nothing was counted
LEAST_RATE = RATE / 2
"""No text takes fewer tokens per character. What says so was not counted in tokens, or not on this text."""
_REPLY = 100  # tokens, of a reply that is as brief as a complete answer allows


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


@dataclass(frozen=True, slots=True)
class Window:
    """The room for documents in a prompt.

    Attributes:
        budget: The limit in tokens; None for no limit.
    """

    budget: int | None

    def characters(self, rate: float) -> float:
        """Return the limit in characters.

        Args:
            rate: Tokens per character.
        """
        if self.budget is None:
            return inf
        return self.budget / (rate or RATE)


class LongContextEstimate:
    """Estimates what reading the documents costs a model, and learns from each time that it reads them.

    What it learns is kept by model and document, so chains that share it may have other options.

    Attributes:
        calibration: What was learned about how the providers count.
    """

    def __init__(self, *, calibrates: bool = True) -> None:
        """Start with nothing learned.

        Args:
            calibrates: Whether what the providers count decides how much fits a window.
        """
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
        """Add what the long context alone costs to the usage of a question whose documents were read.

        That is what the step that read them used.

        Args:
            usage: The usage of all steps.
            sizes: The documents' sizes, if all of them were read, and untrimmed; else None.
            prompt: The size of their prompt.
            model: The model that read them.
        """
        step = usage.long_context
        if step is None:
            return replace(usage, long_context_only=0, cost_long_context_only=FREE)
        if prompt.characters and not step.estimated:
            for size in sizes or ():
                self._rates.put((model, size.key), step.input_tokens / prompt.characters)
        return replace(usage, long_context_only=step.input_tokens, cost_long_context_only=step.cost)

    def answered(  # noqa: PLR0913 - an estimate needs all of them
        self,
        account: Account,
        lengths: Lengths | None,
        *,
        latest: StepUsage | None,
        prompt: PromptSize,
        window: Window,
        model: PricedModel,
        priced: PricedModel,
    ) -> None:
        """Add an estimate for the long context alone to a question whose documents were not read, now or later.

        The tokens per character of a document are those that the provider counted when the model read it last. For a
        document that it has not read yet, they are those of the latest prompt; if the model was not asked at all, as
        many as in most texts.

        Args:
            account: The account.
            lengths: Returns the lengths of the documents that would have been read; None if they cannot become known.
            latest: What the latest call of a model took; None if there was none.
            prompt: The size of its prompt. The text around the context is assumed to be the same in all.
            window: The room for documents in a prompt.
            model: The model that would have read them.
            priced: The model as which it is priced.
        """
        usage = account.usage
        if latest and prompt.characters:
            rate = latest.input_tokens / prompt.characters
        else:
            rate = RATE * self.calibration.ratio(model)

        def complete() -> Usage | None:
            sizes = lengths() if lengths else None
            if sizes is None:
                return None
            only = self.tokens(sizes, rate, prompt=prompt, window=window, model=model)
            # The framework's cache of replies, if that is where this one came from, would have had the other one, too.
            reply = latest or NOTHING
            counts = StepUsage(only, reply.output_tokens, repeated=reply.repeated)
            cost = prices.cost_of(priced, counts) if only else FREE
            completed = replace(usage, long_context_only=only, cost_long_context_only=cost)
            return with_bounds(completed, counts, model=priced) if only else completed

        completed = complete()
        account.usage = completed or replace(usage, cost_long_context_only=_UNMEASURED)
        account.complete_later = complete if lengths and not completed else None

    def tokens(
        self, sizes: Sequence[Size], rate: float, *, prompt: PromptSize, window: Window, model: PricedModel
    ) -> int:
        """Estimate the tokens of a prompt with whole documents.

        Args:
            sizes: The sizes of the documents.
            rate: The tokens per character of a document that the provider has not counted yet.
            prompt: The size of a prompt with other text in it. The text around that is assumed to be the same.
            window: The room for documents.
            model: The model that is to read them.
        """
        tokens, characters = 0.0, 0
        for size in sizes:
            tokens += size.characters * (self._rates.get((model, size.key)) or rate)
            characters += size.characters
        if not characters:
            return round(prompt.around * rate)
        return round(tokens / characters * (min(characters, window.characters(rate)) + prompt.around))


def with_bounds(usage: Usage, counts: StepUsage, *, model: PricedModel) -> Usage:
    """Add what the long context alone costs if the provider's prompt cache holds nothing, and if it holds all of it.

    Neither has the surcharge for writing to the cache.

    Args:
        usage: The usage of a question.
        counts: What the long context alone takes.
        model: The model as which it is priced.
    """
    cold = replace(counts, cached_tokens=0, cache_write_tokens=0, cache_write_1h_tokens=0)
    warm = replace(cold, cached_tokens=counts.input_tokens)
    return replace(usage, cost_cold=prices.cost_of(model, cold), cost_warm=prices.cost_of(model, warm))
