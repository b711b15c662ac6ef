"""Fit what a step answers from to its model's window, and compare what was sent with what the provider counted."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import ceil
from typing import Any, Generic, TypeVar

from selfroute.documents.chunks import Place, in_document_order
from selfroute.documents.overflow import read_less
from selfroute.documents.window import Count, fit_documents, fit_passages, prompt_limit, room_in
from selfroute.flow import ReadDocuments, Route
from selfroute.memory import Memory
from selfroute.settings import Settings
from selfroute.usage.prices import PricedModel
from selfroute.usage.tokens import count_tokens, is_cut

Document = TypeVar("Document")
Prompt = TypeVar("Prompt")
_MOST_BYTES = 4  # of a character, each a token at most
_WORTH = 10  # learn from prompts of at least such a part of the limit
_CUT = (
    "%s counted far fewer tokens than the prompt of the %s step has words: its server has cut the prompt, and the "
    "model has not read all of it. Give the model a larger window (num_ctx for Ollama), or set max_context_tokens to "
    "what it takes"
)
_logger = logging.getLogger(__name__)


class Fitting(ABC, Generic[Document]):
    """Fits the passages and documents of one question to the windows of its models.

    Attributes:
        settings: The options of the chain or engine.
        read: The whole documents, before they were fitted to the window.
        context: What the latest prompt held: the passages or documents, as they were fitted to the window.
    """

    def __init__(self, settings: Settings, *, memory: Memory) -> None:
        """Start with nothing read.

        Args:
            settings: The options of the chain or engine.
            memory: What the chain or engine keeps between questions.
        """
        self.settings = settings
        self.read: Sequence[Document] = ()
        self.context: Sequence[Document] = ()
        self._memory, self._calibration = memory, memory.estimate.calibration
        self._refused: set[Route] = set()  # the steps whose prompt was too long
        self._windows: dict[Route, int | None] = {}
        self._filled_in: tuple[Route, Sequence[Document], Any] | None = None
        self._wider: Sequence[Document] = ()  # the passages of a wider look, best first

    def _place_of(self, passage: Document) -> Place:  # noqa: ARG002
        """Return where a passage stands, as far as its metadata say."""
        return Place(None, None, {})

    @abstractmethod
    def _text_of(self, document: Document) -> str:
        """Return a document's text."""

    @abstractmethod
    def _trimmed(self, document: Document, text: str, **label: Any) -> Document:
        """Return a copy of a document with less text.

        Args:
            document: The document, or passage.
            text: The text that is left.
            label: What to say of it: `trimmed` and, if it is known, `read`, the stretch of the document that this is.
        """

    def _window(self, step: Route) -> int | None:  # noqa: ARG002
        """Return the window of a step's model in tokens, None if it does not say."""
        return None

    def _model_name(self, step: Route) -> PricedModel:  # noqa: ARG002
        """Return what the model of a step is called where it is paid for, as far as it says so."""
        return PricedModel()

    def _text_with(self, step: Route, context: Sequence[Document]) -> str:
        """Return the text of a step's prompt with these passages or documents."""
        del step
        return "\n\n".join(map(self._text_of, context))

    def _wording(self, step: Route) -> str | None:
        """Return the text of a step's prompt with nothing to read; None if that is not known before the step."""
        return self._text_with(step, ())

    def _latest(self, step: Route, context: Sequence[Document], fill_in: Callable[[], Prompt]) -> Prompt:
        """Return a step's prompt, filled in with a context. The latest is kept, since it is measured and then sent."""
        if self._filled_in is None or self._filled_in[0] != step or self._filled_in[1] is not context:
            self._filled_in = step, context, fill_in()
        prompt: Prompt = self._filled_in[2]
        return prompt

    def _window_of(self, step: Route) -> int | None:
        if step not in self._windows:
            self._windows[step] = self._window(step)
        return self._windows[step]

    def _retrieved_text(self, passage: Document) -> str:
        """Return the text of a passage as it stands in its document."""
        return self._text_of(passage)

    def _count(self, step: Route) -> Count:
        """Return what counts tokens as the provider of a step does, as far as that is known."""
        if self.settings.token_counter:
            return self.settings.token_counter
        ratio = self._calibration.ratio(self._model_name(step))
        return count_tokens if ratio == 1 else lambda text: ceil(count_tokens(text) * ratio)

    def _budget(self, count: Count) -> int | None:
        """Return how many tokens of documents the second step may be given; None for no limit."""
        if self.settings.max_context_tokens is not None:
            return self.settings.max_context_tokens
        window = self._window_of("long_context")
        return None if window is None else room_in(window, around=self._around("long_context", count))

    def _around(self, step: Route, count: Count) -> int:
        """Return the tokens of a step's prompt without passages or documents."""
        with suppress(Exception):  # a prompt that cannot be filled in fails where it is sent
            return count(self._text_with(step, ()))
        return 0

    def _fits(self, effect: ReadDocuments) -> bool:
        """Return whether all that a step would answer from certainly fits, so that `_fit` takes no time."""
        if effect.too_long is not None:
            return False
        if self._fits_by(_at_most, effect):
            return True
        # A counter of the user's may be slow.
        return not self.settings.token_counter and self._fits_by(self._count(effect.step), effect)

    def _fits_by(self, count: Count, effect: ReadDocuments) -> bool:
        if effect.step == "long_context":
            budget = self._budget(count)
            return budget is None or sum(count(self._text_of(document)) for document in self.read) <= budget
        window = self._window_of(effect.step)
        if window is not None:
            passages = self._wider if effect.step == "wider" else effect.passages
            with suppress(Exception):
                return count(self._text_with(effect.step, passages)) <= prompt_limit(window)
        return True

    def _fit(self, effect: ReadDocuments, *, fits: bool | None = None) -> Sequence[Document]:
        """Fit passages or documents to the window, or to less if the model refused them; that becomes the context.

        Args:
            effect: Says which.
            fits: The result of `_fits`, if it is known.
        """
        fit = self._fit_documents if effect.step == "long_context" else self._fit_passages
        self.context = fit(effect, whole=self._fits(effect) if fits is None else fits)
        return self.context

    def _fit_passages(self, effect: ReadDocuments, *, whole: bool) -> Sequence[Document]:
        step = effect.step
        passages = self._wider if step == "wider" else effect.passages
        if whole:
            return self._ordered(passages, step)
        count, window = self._count(step), self._window_of(step) or 0
        around = self._around(step, count)

        def size(some: Sequence[Document]) -> int:
            return count(self._text_with(step, some)) - around

        budget = max(prompt_limit(window) - around, window // 10)
        if effect.too_long is not None:
            budget = self._less(effect.step, effect.too_long, sent=size(self.context), around=around)
        # Where not even the best one fits, its beginning is better than nothing.
        fitting = fit_passages(passages, budget=budget, size=size)
        return self._ordered(fitting, step) or self._cut(passages[:1], (), budget=budget, count=count)

    def _ordered(self, passages: Sequence[Document], step: Route) -> Sequence[Document]:
        """Return passages in the order of a step's prompt: a wider look's as they follow one another in the text."""
        return in_document_order(passages, self._place_of) if step == "wider" else passages

    def _fit_documents(self, effect: ReadDocuments, *, whole: bool) -> Sequence[Document]:
        count = self._count("long_context")
        budget = None if whole else self._budget(count)
        if effect.too_long is not None:
            sent = sum(count(self._text_of(document)) for document in self.context)
            budget = self._less(effect.step, effect.too_long, sent=sent, around=self._around(effect.step, count))
        return self._cut(self.read, effect.passages, budget=budget, count=count)

    def _less(self, step: Route, too_long: Exception, *, sent: int, around: int) -> int:
        """Return the budget after a model refused the context as too long; the second time at most half of it."""
        less = read_less(too_long, sent=max(sent, 0), around=around)
        less = min(less, sent // 2) if step in self._refused else less
        self._refused.add(step)
        return less

    def _cut(
        self, documents: Sequence[Document], passages: Sequence[Document], *, budget: int | None, count: Count
    ) -> Sequence[Document]:
        return fit_documents(
            documents,
            passages=[self._retrieved_text(passage) for passage in passages],
            budget=budget,
            count=count,
            text_of=self._text_of,
            trimmed=self._trimmed,
        )

    def _compare(self, step: Route, prompt: Callable[[], str], *, counted: int) -> None:
        """Learn from a provider's count of a prompt, or say that it cannot have read all of it.

        Args:
            step: The step.
            prompt: Returns the text of the prompt.
            counted: The tokens that the provider reported for it.
        """
        text = prompt()
        if is_cut(text, counted=counted):
            self._memory.said.warn(_logger, _CUT, self._model_name(step).name or "The model", step)
            if step == "long_context":
                self.context = [self._trimmed(one, self._text_of(one), trimmed="provider") for one in self.context]
        elif self.settings.token_counter is None:
            limit = self.settings.max_context_tokens or self._window_of(step)
            if limit is not None and counted * _WORTH >= limit:
                self._calibration.learn(self._model_name(step), text=text, counted=counted)


def _at_most(text: str) -> int:
    return len(text) if text.isascii() else _MOST_BYTES * len(text)
