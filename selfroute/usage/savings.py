"""What always reading the whole documents would have taken, without reading them for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from selfroute.documents.sizes import MOST, Lengths, Recent, Size
from selfroute.usage import prices
from selfroute.usage.account import Account
from selfroute.usage.counts import FREE, Cost, StepUsage, Usage
from selfroute.usage.prices import PricedModel

_UNMEASURED = Cost(None, "it is not known how long the documents are")


@dataclass(frozen=True, slots=True)
class PromptSize:
    """What a step's prompt tells of the other's.

    Attributes:
        characters: How long it is.
        context: How many characters of it are passages or documents.
    """

    characters: int
    context: int


@dataclass(frozen=True, slots=True)
class Window:
    """How much of the documents the second step would be given.

    Attributes:
        budget: In tokens; None for no limit.
        roughly: Whether these are a quarter of the characters, and not by a counter of the user's.
    """

    budget: int | None
    roughly: bool

    def characters(self, rate: float) -> float:
        """How many characters that is, with so many tokens to a character."""
        if self.budget is None:
            return inf
        return self.budget * 4 if self.roughly or not rate else self.budget / rate


class LongContextEstimate:
    """What reading the documents costs a model: learned whenever it reads them, estimated when it need not."""

    def __init__(self) -> None:
        self._rates: Recent[float] = Recent(MOST)  # tokens to a character, of a model and a document

    def __reduce__(self) -> tuple[type[LongContextEstimate], tuple[()]]:
        return LongContextEstimate, ()  # a copy learns anew

    def read(self, usage: Usage, sizes: Sequence[Size] | None, *, asked: PromptSize, model: PricedModel) -> Usage:
        """Complete the usage of a question whose documents were read: the long context alone is what that step took.

        Args:
            usage: What both steps took.
            sizes: The documents that were read, if all of them were, and whole.
            asked: The second step's prompt.
            model: Its model.
        """
        step = usage.long_context
        if step is None:
            return replace(usage, long_context_only=0, cost_long_context_only=FREE)
        if asked.characters and not step.estimated:
            for size in sizes or ():
                self._rates.put((model, size.key), step.input_tokens / asked.characters)
        return replace(usage, long_context_only=step.input_tokens, cost_long_context_only=step.cost)

    def answered(  # noqa: PLR0913 - what an estimate is made of
        self,
        account: Account,
        lengths: Lengths | None,
        *,
        asked: PromptSize,
        window: Window,
        model: PricedModel,
        priced: PricedModel,
    ) -> None:
        """Complete the account of a question that was answered from the passages, at once or later.

        A document has as many tokens to a character as the provider counted when the model read it last; one that it
        did not read yet, as many as the first step's prompt had.

        Args:
            account: The account.
            lengths: Tells how long the documents are that the second step would have read; None if nothing does.
            asked: The first step's prompt: what is around the passages would be around the documents.
            window: What of them that step would be given.
            model: The second step's model.
            priced: What it is priced as.
        """
        step = account.usage.rag
        if lengths is None or step is None or not asked.characters:
            account.usage = replace(account.usage, cost_long_context_only=_UNMEASURED)
            return

        def complete() -> Usage | None:
            sizes = lengths()
            if sizes is None:
                return None
            only = self._tokens(sizes, step.input_tokens / asked.characters, asked=asked, window=window, model=model)
            cost = prices.cost_of(priced, StepUsage(only, step.output_tokens))
            return Usage(step, None, only, cost)

        completed = complete()
        account.usage = completed or Usage(step, cost_long_context_only=_UNMEASURED)
        account.later = None if completed else complete

    def _tokens(
        self, sizes: Sequence[Size], rate: float, *, asked: PromptSize, window: Window, model: PricedModel
    ) -> int:
        tokens, characters = 0.0, 0
        for size in sizes:
            tokens += size.characters * (self._rates.get((model, size.key)) or rate)
            characters += size.characters
        around = asked.characters - asked.context
        if not characters:
            return round(around * rate)
        return round(tokens / characters * (min(characters, window.characters(rate)) + around))
