"""Fit the context of a step to its model's window, and compare the prompt with the provider's count."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from math import ceil
from typing import TYPE_CHECKING, Generic, TypeVar

from selfroute.documents.overflow import read_less
from selfroute.documents.window import Count, fit_documents, fit_passages, prompt_limit, room_in, room_of
from selfroute.effects import ReadDocuments, Route
from selfroute.languages.tokens import count_tokens
from selfroute.usage.tokens import is_cut

if TYPE_CHECKING:
    from selfroute.calls.host import Host, Prompt
    from selfroute.calls.memory import Memory
    from selfroute.calls.plan import Plan
    from selfroute.calls.reading import Reading
    from selfroute.calls.sending import Sending

Document = TypeVar("Document")
_PART = 2  # sections may be such a part of the documents
_MOST_BYTES = 4  # of a character, each a token at most
_WORTH = 10  # learn from prompts of at least such a part of the limit
_CUT = (
    "%s counted far fewer tokens than the prompt of the %s step has words: its server has cut the prompt, and the "
    "model has not read all of it. Give the model a larger window (num_ctx for Ollama), or set max_context_tokens to "
    "what it takes"
)
_NO_ROOM = (
    "what comes with the question, such as its history, takes more tokens than max_context_tokens=%s, so documents are "
    "cut to a tenth of that, and the model may read less of the prompt than was sent: send a shorter history, or raise "
    "max_context_tokens if the model takes more"
)
_logger = logging.getLogger(__name__)


class Fitting(Generic[Document]):
    """Fits the passages and documents of one question to the windows of its models.

    Attributes:
        reading: Its passages and documents.
        sending: Its prompts.
    """

    def __init__(
        self,
        host: Host[Document],
        plan: Plan,
        reading: Reading[Document],
        sending: Sending[Document],
        memory: Memory,
    ) -> None:
        """Start with nothing fitted."""
        self._host, self._plan, self._memory = host, plan, memory
        self.reading, self.sending = reading, sending
        self._most_sections: int | None = None  # tokens, once a prompt was refused as too long
        self._refused: set[Route] = set()  # the steps whose prompt was too long
        self._windows: dict[Route, int | None] = {}

    def window(self, step: Route) -> int | None:
        """Return the window of a step's model in tokens; None if it is not known."""
        model: Route = "rag" if self._host.one_model else step
        if model not in self._windows:
            self._windows[model] = self._host.window(model)
        return self._windows[model]

    def count(self, step: Route) -> Count:
        """Return a function that counts tokens as the provider of a step does, by what was learned about it."""
        ratio = self._memory.estimate.calibration.ratio(self._host.name_of(step))
        return count_tokens if ratio == 1 else lambda text: ceil(count_tokens(text) * ratio)

    def tokens(self, documents: Sequence[Document], count: Count) -> int:
        """Return the tokens of the texts of passages or documents."""
        return sum([count(self._host.text_of(document)) for document in documents])

    def budget(self, count: Count) -> int | None:
        """Return how many tokens of documents the last step may be given; None for no limit."""
        if self._plan.max_context_tokens is not None:
            return self._under(self._plan.max_context_tokens, "long_context", count)
        window = self.window("long_context")
        return None if window is None else room_in(window, around=self.sending.around("long_context", count))

    def _under(self, limit: int, step: Route, count: Count) -> int:
        """Return how much of a limit for documents is left after what else the question brings along."""
        around = self.sending.around(step, count)
        if around > limit and count is not _at_most:  # which is more than there are
            self._memory.said.warn(_logger, _NO_ROOM, self._plan.max_context_tokens)
        return room_of(limit, around=around)

    async def afit(self, effect: ReadDocuments) -> Sequence[Document]:
        """The async twin of `fit`: counting and trimming a long text may block the event loop."""
        if self._fits(effect):
            return self.fit(effect, whole=True)
        return await asyncio.to_thread(self._fit_guarded, effect)

    def _fit_guarded(self, effect: ReadDocuments) -> Sequence[Document]:
        try:
            return self.fit(effect, whole=False)
        except StopIteration as stop:  # of a user's prompt or text; a future cannot carry it
            msg = "a prompt raised StopIteration"
            raise RuntimeError(msg) from stop

    def fit(self, effect: ReadDocuments, *, whole: bool | None = None) -> Sequence[Document]:
        """Fit passages, sections or documents to the window, or to less if the model refused them.

        Passages and documents become the context; sections do once they are sent, since a policy may object to them.

        Args:
            effect: Says which.
            whole: Whether all of it fits; None if that is not known.
        """
        if effect.too_long is not None:
            self.sending.forget_latest()
        if effect.step == "sections":
            return self.fit_sections(effect)[0]
        fit = self._fit_documents if effect.step == "long_context" else self._fit_passages
        self.sending.context = fit(effect, whole=self._fits(effect) if whole is None else whole)
        return self.sending.context

    def _fits(self, effect: ReadDocuments) -> bool:
        """Return whether all that a step would answer from certainly fits, so that fitting it takes no time."""
        if effect.too_long is not None or effect.step == "sections":
            return False
        return self._fits_by(_at_most, effect) or self._fits_by(self.count(effect.step), effect)

    def _fits_by(self, count: Count, effect: ReadDocuments) -> bool:
        if effect.step == "long_context":
            budget = self.budget(count)
            return budget is None or self.tokens(self.reading.chosen, count) <= budget
        window = self.window(effect.step)
        if window is not None:
            with suppress(Exception):
                return count(self.sending.prompt(effect.step, effect.passages).text) <= prompt_limit(window)
        return True

    def _fit_passages(self, effect: ReadDocuments, *, whole: bool) -> Sequence[Document]:
        step, passages = effect.step, effect.passages
        if whole:
            return passages
        count, window = self.count(step), self.window(step) or 0
        around = self.sending.around(step, count)

        def size(some: Sequence[Document]) -> int:
            return count(self.sending.prompt(step, some).text) - around

        budget = max(prompt_limit(window) - around, window // 10)
        if effect.too_long is not None:
            budget = self._less(effect.step, effect.too_long, sent=size(self.sending.context), around=around)
        # Where not even the best one fits, its beginning is better than nothing.
        fitting = fit_passages(passages, budget=budget, size=size)
        return fitting or self._cut(passages[:1], (), budget=budget, count=count)

    def fit_sections(self, effect: ReadDocuments) -> tuple[Sequence[Document], str]:
        """Return the best sections of the documents; or none, and why they are skipped.

        The first rung is skipped when larger than half of all documents behind the passages, unless it has room for all
        of them and the last step has not; a further one when larger than half of what the last step reads; and each
        when it holds nothing new.
        """
        count, window, reading = self.count("sections"), self.window("sections"), self.reading
        around, drafted = 0, self.tokens(reading.drafted, count_tokens)
        budget = self._plan.section_tokens(effect.rung, drafted=drafted)
        if window is not None or effect.too_long:
            around = self.sending.around("sections", count)
        if window is not None:
            budget = min(budget, max(prompt_limit(window) - around, window // 10))
        if self._plan.max_context_tokens is not None:
            budget = min(budget, self._under(max(budget, self._plan.max_context_tokens), "sections", count))
        if effect.too_long:
            sent = self.tokens(self.sending.context, count)
            budget = self._most_sections = self._less("sections", effect.too_long, sent=sent, around=around)
        else:
            budget = min(budget, self._most_sections or budget)
        sections = self.sending.sections.best(budget, count, always=len(effect.passages))
        if self._plan.max_documents != 0 and self._are_most(sections, effect.rung, budget):
            return (), "they would be more than half of the documents"
        if self.sending.adds_nothing(sections):
            return (), "they hold nothing that was not read before"
        return sections, ""

    def _are_most(self, sections: Sequence[Document], rung: int, room: int) -> bool:
        reading, size = self.reading, self.reading.length(sections) * _PART
        if rung == 0:
            has_room = self.tokens(reading.documents, self.count("sections")) <= room
            reads_all = has_room and not self.sending.adds_nothing(
                self.sending.sections.beyond(sections, reading.chosen)
            )
            return size > reading.length(reading.documents) and not reads_all
        count = self.count("long_context")
        most = self.budget(count)
        too_many = most is not None and self.tokens(sections, count) * _PART > most
        return too_many or size > reading.length(reading.chosen)

    def last(self) -> Sequence[Document]:
        """Return what the last step would read, as it fits its window."""
        effect = ReadDocuments(self.reading.drafted)
        return self._fit_documents(effect, whole=self._fits(effect))

    def _fit_documents(self, effect: ReadDocuments, *, whole: bool) -> Sequence[Document]:
        count = self.count("long_context")
        budget = None if whole else self.budget(count)
        if effect.too_long is not None:
            sent, around = self.tokens(self.sending.context, count), self.sending.around(effect.step, count)
            budget = self._less(effect.step, effect.too_long, sent=sent, around=around)
        return self._cut(self.reading.chosen, effect.passages, budget=budget, count=count)

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
            passages=[self._host.retrieved_text(passage) for passage in passages],
            budget=budget,
            count=count,
            text_of=self._host.text_of,
            trimmed=self._host.with_text,
        )

    def learn(self, step: Route, prompt: Prompt, *, counted: int) -> None:
        """Learn from a provider's count of a prompt, or say that it cannot have read all of it.

        Args:
            step: The step.
            prompt: The prompt.
            counted: The tokens that the provider reported for it.
        """
        text = prompt.text
        if is_cut(text, counted=counted):
            name = self._host.name_of(step).name or "The model"
            self._memory.said.warn(_logger, _CUT, name, step)
            if step == "long_context":
                host = self._host
                self.sending.context = [
                    host.with_text(one, host.text_of(one), trimmed="provider") for one in self.sending.context
                ]
        else:
            limit = self._plan.max_context_tokens or self.window(step)
            if limit is not None and counted * _WORTH >= limit:
                self._memory.estimate.calibration.learn(self._host.name_of(step), text=text, counted=counted)


def _at_most(text: str) -> int:
    return len(text) if text.isascii() else _MOST_BYTES * len(text)
