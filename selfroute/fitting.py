"""Fit what a step answers from to its model's window, and compare what was sent with what the provider counted."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import groupby
from math import ceil
from typing import Any, Generic, TypeVar

from selfroute.documents.chunks import Place
from selfroute.documents.overflow import read_less
from selfroute.documents.sections import Ranking, Run, ranked
from selfroute.documents.window import Count, fit_documents, fit_passages, prompt_limit, room_in
from selfroute.effects import ReadDocuments, Route
from selfroute.memory import Memory
from selfroute.settings import Settings
from selfroute.usage.prices import PricedModel
from selfroute.usage.tokens import count_tokens, is_cut

Document = TypeVar("Document")
Prompt = TypeVar("Prompt")
_PART = 2  # sections may be such a part of the documents
_LEFT_OUT = "[...]"
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
        passages: The retrieved passages, best first.
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
        self._rung = 0  # of the sections that were fitted last
        self._read_before = 0  # characters, before these
        self._most_sections: int | None = None  # tokens, once a prompt was refused as too long
        self._ranking: Ranking | None = None
        self._best: Sequence[Document] | None = None  # of the documents
        self._runs: dict[int, Run] = {}  # where in which document each section stands, by its identity

    passages: Sequence[Document] = ()

    @property
    @abstractmethod
    def question(self) -> str:
        """The question."""

    @property
    def _is_stored(self) -> bool:
        """Whether the documents are those that a store holds."""
        return False

    def _source_name(self, document: Document) -> Any:
        """Return the name of the document that a passage is from, or of a document itself."""
        return self._place_of(document).source

    def _place_of(self, passage: Document) -> Place:  # noqa: ARG002
        """Return where a passage stands, as far as its metadata say."""
        return Place(None, None, {})

    @abstractmethod
    def _text_of(self, document: Document) -> str:
        """Return a document's text."""

    @abstractmethod
    def _trimmed(self, document: Document, text: str, /, **label: Any) -> Document:
        """Return a copy of a document with less text.

        Args:
            document: The document, or passage.
            text: The text that is left.
            label: What to say of it: `trimmed` and, if it is known, `read`, the stretch of the document that this is.
                A `method` is all that is said of it, but for its pages.
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
        if effect.too_long is not None or effect.step == "sections":
            return False
        if self._fits_by(_at_most, effect):
            return True
        # A counter of the user's may be slow.
        return not self.settings.token_counter and self._fits_by(self._count(effect.step), effect)

    def _fits_by(self, count: Count, effect: ReadDocuments) -> bool:
        if effect.step == "long_context":
            budget = self._budget(count)
            return budget is None or sum(count(self._text_of(document)) for document in self._chosen) <= budget
        window = self._window_of(effect.step)
        if window is not None:
            with suppress(Exception):
                return count(self._text_with(effect.step, effect.passages)) <= prompt_limit(window)
        return True

    def _fit(self, effect: ReadDocuments, *, fits: bool | None = None) -> Sequence[Document]:
        """Fit passages, sections or documents to the window, or to less if the model refused them.

        Passages and documents become the context; sections do once they are sent, since a policy may object to them.

        Args:
            effect: Says which.
            fits: The result of `_fits`, if it is known.
        """
        if effect.step == "sections":
            return self._fit_sections(effect)
        fit = self._fit_documents if effect.step == "long_context" else self._fit_passages
        self.context = fit(effect, whole=self._fits(effect) if fits is None else fits)
        return self.context

    def _fit_passages(self, effect: ReadDocuments, *, whole: bool) -> Sequence[Document]:
        step, passages = effect.step, effect.passages
        if whole:
            return passages
        count, window = self._count(step), self._window_of(step) or 0
        around = self._around(step, count)

        def size(some: Sequence[Document]) -> int:
            return count(self._text_with(step, some)) - around

        budget = max(prompt_limit(window) - around, window // 10)
        if effect.too_long is not None:
            budget = self._less(effect.step, effect.too_long, sent=size(self.context), around=around)
        # Where not even the best one fits, its beginning is better than nothing.
        fitting = fit_passages(passages, budget=budget, size=size)
        return fitting or self._cut(passages[:1], (), budget=budget, count=count)

    def _fit_sections(self, effect: ReadDocuments) -> Sequence[Document]:
        """Return the best sections of the documents; none where reading them would save little.

        They save little if they are more than half of what the last step would read, or no more than was read before.
        """
        count, window = self._count("sections"), self._window_of("sections")
        budget, around = self.settings.section_tokens[effect.rung], 0
        if window is not None or effect.too_long:
            around = self._around("sections", count)
        if window is not None:
            budget = min(budget, max(prompt_limit(window) - around, window // 10))
        if effect.too_long:
            sent = sum(count(self._text_of(section)) for section in self.context)
            budget = self._most_sections = self._less("sections", effect.too_long, sent=sent, around=around)
        else:
            self._rung, self._read_before = effect.rung, self._solid(self.context)
            budget = min(budget, self._most_sections or budget)
        runs = self._ranked.fill(budget, count, always=len(effect.passages))
        sections = [self._section(run) for run in runs]
        worth = self.settings.max_documents == 0 or self._length(sections) * _PART <= self._length(self._chosen)
        return sections if worth and self._solid(sections) > self._read_before else ()

    def _section(self, run: Run) -> Document:
        document = self.read[run.document]
        label = {"method": "sections", "start": run.start, "end": run.end, "document": self._source_name(document)}
        section = self._trimmed(document, self._text_of(document)[run.start : run.end], **label)
        self._runs[id(section)] = run
        return section

    def _joined(self, sections: Sequence[Document]) -> list[Document]:
        """Return the sections of each document as one text, with a mark where text is left out."""
        joined = []
        for number, found in groupby(sections, lambda section: self._runs[id(section)].document):
            document, runs = self.read[number], [self._runs[id(section)] for section in found]
            whole = self._text_of(document)
            text = f"\n{_LEFT_OUT}\n".join(whole[run.start : run.end] for run in runs)
            before = f"{_LEFT_OUT}\n" if whole[: runs[0].start].strip() else ""
            after = f"\n{_LEFT_OUT}" if whole[runs[-1].end :].strip() else ""
            joined.append(self._trimmed(document, f"{before}{text}{after}"))
        return joined

    @property
    def _ranked(self) -> Ranking:
        """The sections of the documents that were read, in the order of their worth; ranked once a question."""
        if self._ranking is None:
            passages = [self._retrieved_text(passage) for passage in self.passages]
            texts = [self._text_of(document) for document in self.read]
            names = [self._source_name(document) for document in self.read]
            origins = [
                [at for at, other in enumerate(names) if type(other) is type(name) and other == name is not None]
                for name in map(self._source_name, self.passages)
            ]
            self._ranking = ranked(self.question, texts, passages, origins=origins)
        return self._ranking

    @property
    def _chosen(self) -> Sequence[Document]:
        """The documents that the last step reads, best first: all that were read, or the best of stored ones."""
        most = self.settings.most_compared
        if most is None or len(self.read) <= most or not self._is_stored:
            return self.read
        if self._best is None:
            self._best = [self.read[number] for number in self._ranked.documents[:most]]
        return self._best

    def _choose(self) -> None:
        """Choose these documents now, where it takes no time of an event loop."""
        self._best = self._chosen

    def _length(self, documents: Sequence[Document]) -> int:
        return sum(len(self._text_of(document)) for document in documents)

    def _solid(self, documents: Sequence[Document]) -> int:
        """Return the length of texts without white space, of which joined ones have more."""
        return sum(len("".join(self._text_of(document).split())) for document in documents)

    def _fit_documents(self, effect: ReadDocuments, *, whole: bool) -> Sequence[Document]:
        count = self._count("long_context")
        budget = None if whole else self._budget(count)
        if effect.too_long is not None:
            sent = sum(count(self._text_of(document)) for document in self.context)
            budget = self._less(effect.step, effect.too_long, sent=sent, around=self._around(effect.step, count))
        return self._cut(self._chosen, effect.passages, budget=budget, count=count)

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
