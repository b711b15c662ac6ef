"""Do what every adapter does around the effects: price calls, complete the usage; `Fitting` fits the documents.

The steps of an adapter are a subclass of `BaseSteps`, which knows how its framework retrieves, calls models and reads
documents. Everything else is here, once for all frameworks.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from asyncio import CancelledError
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from operator import is_
from typing import Any, TypeVar

from selfroute.answerability.ending import DONE, Ending
from selfroute.answerability.opening import ReasoningSplitter
from selfroute.documents.overflow import is_too_long
from selfroute.documents.sizes import Lengths, Size
from selfroute.documents.stored import ScopedDocuments
from selfroute.effects import Answer, ReadDocuments, Route
from selfroute.errors import InputError, ReplyError
from selfroute.escalating import Escalating
from selfroute.first_step import FirstStep
from selfroute.memory import Memory
from selfroute.settings import Settings
from selfroute.two_steps import TwoSteps
from selfroute.usage import prices
from selfroute.usage.account import Account
from selfroute.usage.counts import NOTHING, StepUsage, Usage
from selfroute.usage.entry import Entry
from selfroute.usage.prices import PricedModel
from selfroute.usage.savings import LEAST_RATE, RATE, PromptSize, Window, with_bounds
from selfroute.usage.tally import Tally

Document = TypeVar("Document")
_UNASKED = "nothing was retrieved and no model was asked"
_LONG = 50_000  # characters; citing from fewer takes some milliseconds


class BaseSteps(Escalating[Document], TwoSteps[Document]):
    """Performs the effects of one question: the part that does not depend on the framework.

    Attributes:
        settings: The options of the chain or engine.
        refusal: The word that declines.
        account: What the question takes.
        passages: The retrieved passages, best first.
        read: As in `Fitting`.
        context: As in `Fitting`.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        memory: Memory,
        record: Callable[[Entry], None] | None,
        retrieves: bool = True,
        parent_span: Callable[[], Any] | None = None,
    ) -> None:
        """Start with an open account.

        Args:
            settings: The options of the chain or engine.
            memory: What the chain or engine keeps between questions.
            record: Called with the entry when the account is closed; None if there is no ledger or handler.
            retrieves: Whether retrieval is part of the question.
            parent_span: As in `Account`.
        """
        super().__init__(settings, memory=memory)
        self.refusal = settings.refusal
        self.account = Account(record, retrieves=retrieves, parent_span=parent_span)
        self._estimate = memory.estimate
        self._answered_by = PricedModel()  # the model that replied last
        self._last_call: StepUsage | None = None
        self._open: tuple[Route, Tally, Callable[[], str]] | None = None  # as in `_counted`

    def go_on(self, first: FirstStep[Document]) -> None:
        """Go on from what the first step has kept."""
        super().go_on(first)
        if self._tally:
            self._answered_by, self._last_call = self._priced("rag", self._tally), first.usage.rag

    def _must_retrieve(self) -> bool:
        try:
            source = self._source()
            return isinstance(source, ScopedDocuments) and source.access().is_from_passages
        except Exception:  # noqa: BLE001 - what keeps documents from being read does not concern an answer without them
            return True

    @property
    @abstractmethod
    def _one_model(self) -> bool:
        """Whether one model performs both steps."""

    @abstractmethod
    def _source(self) -> Any:
        """Return the source of the documents: `ScopedDocuments`, a list, or a callable."""

    def _log_missing_usage(self, step: Route) -> None:
        """Log how to make the model of a step report its token counts, if it can."""

    @property
    def _draft(self) -> str:
        return "".join(self._tally.text) if self._tally else ""

    @property
    def ending(self) -> Ending:
        """How the latest reply ended."""
        return self._tally.ending() if self._tally else DONE

    def is_too_long(self, error: Exception) -> bool:
        """Return whether an error means that the prompt was too long for the model's window."""
        return is_too_long(error)

    def complete_usage(self, answer: Answer) -> None:
        """Add what the long context alone would have cost to the usage."""
        if answer.is_open or not self.settings.measure_savings:
            return
        model = self._priced("long_context")
        if answer.route != "long_context":
            lengths = self._known_lengths()
            window = self._room()
            priced = self._answered_by if self._one_model else model
            size = self._prompt_size
            latest = self._last_call
            self._estimate.answered(
                self.account, lengths, latest=latest, prompt=size, window=window, model=model, priced=priced
            )
        else:
            lengths = self._lengths()
            whole = len(self.read) == len(self.context) and all(map(is_, self.read, self.context))
            sizes = lengths() if lengths and whole else None
            usage = self._estimate.read(self.account.usage, sizes, prompt=self._prompt_size, model=model)
            if usage.long_context:
                usage = with_bounds(usage, usage.long_context, model=self._answered_by)
            self.account.usage = usage

    def cite(self, answer: Answer) -> Answer:
        """Return the answer with where it stands in the context, if that is wanted."""
        if not self.settings.citations:
            return answer
        from selfroute.citations import NOTHING_CITED, cite  # noqa: PLC0415 - most chains do not cite

        if not answer.answerable:
            return replace(answer, cited=NOTHING_CITED)
        _, text = ReasoningSplitter().split(answer.text, final=True)
        context = [(self._source_name(document), self._text_of(document)) for document in answer.context]
        metadata = [self._place_of(document).metadata for document in answer.context]
        quotes = self._tally.quotes if self._tally else ()
        return replace(answer, cited=cite(self.question, text, context, metadata=metadata, quotes=quotes))

    async def acite(self, answer: Answer) -> Answer:
        """Do as `cite` does, asynchronously: a long text would block the event loop."""
        if self.settings.citations and self._length(answer.context) > _LONG:
            return await asyncio.to_thread(self.cite, answer)
        return self.cite(answer)

    def _as_sent(self, step: Route, context: Sequence[Document], *, stored: bool) -> Sequence[Document]:
        """Return passages or documents in the order of a prompt: those of a store by name, whichever was hit first.

        So questions on the same documents have a prefix in common that the provider's prompt cache can hold. The
        sections of a document are one text.

        Args:
            step: The step.
            context: The passages or documents.
            stored: Whether documents come from a store. Others are in an order that the user has chosen.
        """
        if step == "sections":
            return self._joined(context)
        if step != "long_context" or not stored:
            return context
        named = [(str(name), type(name).__name__) for name in map(self._source_name, context)]  # 1 is not "1"
        return [context[at] for at in sorted(range(len(context)), key=named.__getitem__)]

    def _room(self) -> Window:
        return Window(self.settings.document_budget(self._window_of("long_context")))

    def _tokens_of(self, sizes: Sequence[Size]) -> int:
        size, model = self._prompt_size, self._priced("long_context")
        return self._estimate.tokens(sizes, self._rate(), prompt=size, window=self._room(), model=model)

    def _tokens_with(self, passages: Sequence[Document]) -> int:
        """Return the estimated tokens of a prompt like the latest one, with other passages; no less than they have."""
        size, before, after = self._prompt_size, self._length(self.context), self._length(passages)
        context = max(size.context * after / before, after) if before else after  # with what formats the passages
        count = self._count("sections")
        return max(round((size.around + context) * self._rate()), sum(count(self._text_of(one)) for one in passages))

    def _rate(self) -> float:
        """Return the tokens per character of the latest prompt; if there is none, those of the passages."""
        latest, characters = self._latest_call(), self._prompt_size.characters
        if latest and characters:
            return max(latest.input_tokens / characters, LEAST_RATE)
        count = self._count("long_context")
        tokens = sum(count(self._text_of(passage)) for passage in self.passages)
        return tokens / max(self._length(self.passages), 1) or RATE

    def _to_answer(self, step: Route) -> PricedModel:
        """Return the model as which a step is priced that is still to come: a draft's reply may have named it."""
        return self._priced(step, self._tally if step == "sections" or self._one_model else None)

    def _reply_of(self, step: Route) -> int:
        """Return the estimated tokens of a step's reply: as many as of the last ones, or of this question's draft.

        A model that thinks long over the draft does so again.
        """
        latest, shared = self._latest_call() or NOTHING, step == "sections" or self._one_model
        return max(self._estimate.reply(self._priced(step)), latest.output_tokens if shared else 0)

    def _note_prompt(self, characters: Callable[[], int], *, context: int) -> None:
        """Note the size of a prompt, if savings are measured or a policy may want to know what a step costs.

        Args:
            characters: Returns the length of the prompt; called only if it is needed.
            context: The length of the passages or documents in it.
        """
        if self.settings.measure_savings or self.settings.escalation is not None:
            self._prompt_size = PromptSize(characters(), context)

    @contextmanager
    def _counted(self, step: Route, tally: Tally, prompt: Callable[[], str]) -> Iterator[None]:
        """Add a call of a model to the account, however it ends; the code within makes the call.

        Args:
            step: The step that called it.
            tally: The text and the counts that were received.
            prompt: Returns the text of the prompt.
        """
        self._tally, self._open = tally, (step, tally, prompt)
        try:
            yield
            tally.whole = True
        except CancelledError:
            tally.left = True
            raise
        except Exception as error:
            if not tally.ends_with(error):
                raise
        finally:
            self._open = None
            self._add_call(step, tally, prompt)

    def _so_far(self) -> Usage:
        """Return what the question has used so far, with a reply in doubt, which is still open."""
        counts = self._latest_call()
        if self._open is None or counts is None:
            return self.account.usage
        step, tally, _ = self._open
        return self.account.usage + Usage.of(step, counts.with_cost(prices.cost_of(self._priced(step, tally), counts)))

    def _latest_call(self) -> StepUsage | None:
        """Return what the latest call of a model has taken so far; None if there was none."""
        if self._open is None:
            return self._last_call
        _, tally, prompt = self._open
        return tally.usage(prompt, count=self.settings.count_tokens) or NOTHING

    def _add_call(self, step: Route, tally: Tally, prompt: Callable[[], str]) -> None:
        self._open = None
        counts = tally.usage(prompt, count=self.settings.count_tokens)
        if counts is None:
            return
        self._answered_by, self._last_call = self._priced(step, tally), counts
        self.account.add_call(step, counts, self._answered_by)
        if step != "rag":
            self._estimate.replied(self._priced(step), counts.output_tokens)
        if not counts.estimated:
            self._compare(step, prompt, counted=counts.input_tokens)
        elif tally.whole and not tally.left:
            self._log_missing_usage(step)

    def _priced(self, step: Route, tally: Tally | None = None) -> PricedModel:
        """Return the model as which a step is priced: the declared, answering or configured one."""
        declared = self.settings.declared_model(step, shared=self._one_model)
        if declared:
            return declared
        name = self._model_name(step)
        return tally.model(name) if tally else name

    @property
    def _is_stored(self) -> bool:
        return isinstance(self._source(), ScopedDocuments)

    def _lengths(self) -> Lengths | None:
        """Return what says how long the documents are that the last step would read, None if nothing does."""
        try:
            source = self._source()
            if isinstance(source, ScopedDocuments):
                return source.lengths(self._of_the_best())
        except Exception:  # noqa: BLE001 - what keeps documents from being read does not concern an answer without them
            return None
        if not isinstance(source, list | tuple):
            return None
        size = Size(None, sum([len(self._text_of(document)) for document in source]))
        return lambda: [size]

    def _of_the_best(self) -> Sequence[Document]:
        """Return the passages of the documents that would be read, as far as the passages tell which."""
        most, names = self.settings.most_compared, [self._source_name(passage) for passage in self.passages]
        if most is None or len(set(names)) <= most:
            return self.passages
        worth: dict[Any, float] = {}
        for rank, name in enumerate(names):
            worth[name] = worth.get(name, 0) + 1 / (1 + rank)
        best = sorted(worth, key=worth.__getitem__, reverse=True)[:most]
        return [passage for passage, name in zip(self.passages, names, strict=True) if name in best]

    def _found_passages(self, passages: Sequence[Document]) -> ReadDocuments:
        """Keep the retrieved passages; return the effect of fitting those that the draft reads."""
        self.passages = passages
        return ReadDocuments(passages[: self.settings.draft_passages], step="rag")


def check_question(question: Any) -> None:
    """Check that a question is a text with something to see, before anything is retrieved or asked for it.

    Raises:
        InputError: It is something else, there is nothing to see, or it has half of a character.
    """
    if not isinstance(question, str):
        msg = f"the question must be a string, not {type(question).__name__}: {_UNASKED}"
        raise InputError(msg)
    try:
        question.encode()
    except UnicodeEncodeError as error:
        msg = (
            f"the question has half of a character, {question[error.start]!a}, at position {error.start}: {_UNASKED}. "
            "Read the text as UTF-8, or pass question.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')"
        )
        raise InputError(msg) from None
    if not any(character.isprintable() and not character.isspace() for character in question):
        msg = f"the question is blank: {_UNASKED}"
        raise InputError(msg)


def items_of(found: Any, kinds: type[Any] | tuple[type[Any], ...], *, what: str) -> list[Any]:
    """Return what a component supplied by the user returned, as a list of items of the right types.

    Args:
        found: What it returned.
        kinds: The accepted types.
        what: The beginning of the error message, such as "documents must return a list of Documents".

    Raises:
        ReplyError: It returned something else.
    """
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    if type(found) is list or (isinstance(found, Iterable) and not isinstance(found, (str, Mapping, *kinds))):
        items = list(found)
        others = [item for item in items if type(item) is not kinds[0] and not isinstance(item, kinds)]
        if not others:
            return items
        found = others[0]
    msg = f"{what}; got {type(found).__name__}"
    raise ReplyError(msg)
