"""Fill in the prompts of one question, and remember what its models were sent."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TypeVar

from selfroute.answerability.structured import length_of
from selfroute.calls.reading import SectionReader
from selfroute.documents.headings import headed, without_titles
from selfroute.documents.sent import Sent

if TYPE_CHECKING:
    from selfroute.calls.host import Host, Prompt
    from selfroute.calls.plan import Plan
    from selfroute.calls.reading import Reading
    from selfroute.documents.window import Count
    from selfroute.effects import Route

Document = TypeVar("Document")


class Sending(Generic[Document]):
    """The prompts of one question.

    Attributes:
        context: The context of the latest prompt, or of the next one: passages, sections or documents that fit.
        sections: Chooses sections, and joins them in prompts.
    """

    def __init__(self, host: Host[Document], plan: Plan, reading: Reading[Document]) -> None:
        """Start with nothing sent."""
        self._host, self._plan, self._reading = host, plan, reading
        self.context: Sequence[Document] = ()
        self.sections = SectionReader(host, reading)
        self._sent = Sent()
        self._latest_sent: list[str] = []  # unless its prompt is refused
        self._latest: tuple[Route, Sequence[Document], Prompt] | None = None
        self._headings: tuple[Sequence[Document] | None, Sequence[Sequence[str]]] = None, ()

    def note_sent(self, step: Route, context: Sequence[Document]) -> None:
        """Note that a model is sent a context; `forget_latest` takes that back."""
        self._commit()
        self.context = context
        texts = map(self._host.retrieved_text if step == "rag" else self._host.text_of, context)
        headings = self._headings_of(context) if step == "rag" else ()
        self._latest_sent = list(map(headed, texts, headings) if headings else texts)

    @property
    def has_sent_nothing(self) -> bool:
        """Whether no model has read anything."""
        return not (self._latest_sent or self._sent)

    def adds_nothing(self, context: Sequence[Document]) -> bool:
        """Return whether all of a context was sent to the models of this question before."""
        self._commit()
        return self._sent.has_all(map(self._host.text_of, context))

    def forget_latest(self) -> None:
        """Forget the latest context: its prompt was refused."""
        self._latest_sent = []

    def _commit(self) -> None:
        self._sent.add(self._latest_sent)
        self._latest_sent = []

    def prompt(self, step: Route, context: Sequence[Document]) -> Prompt:
        """Return a step's prompt with a context. The latest one is kept, since it is measured and then sent."""
        latest = self._latest
        if latest is None or latest[0] != step or latest[1] is not context:
            prompt = self._host.prompt(step, self._as_sent(step, context))
            if form := self._plan.form_of(step):
                prompt.schema = length_of(form)
            latest = self._latest = step, context, prompt
        return latest[2]

    def _as_sent(self, step: Route, context: Sequence[Document]) -> Sequence[Document]:
        """Return passages or documents in the order of a prompt: those of a store by name, whichever was hit first.

        So questions on the same documents have a prefix in common that the provider's prompt cache can hold. The
        sections of a document are one text.
        """
        if step == "sections":
            return self.sections.joined(context)
        if step == "rag":
            return self._under_headings(context)
        if len(context) <= 1 or not self._reading.is_stored:
            return context
        named = [(str(name), type(name).__name__) for name in map(self._host.source_of, context)]  # 1 is not "1"
        return [context[at] for at in sorted(range(len(context)), key=named.__getitem__)]

    def _under_headings(self, passages: Sequence[Document]) -> Sequence[Document]:
        host, headings = self._host, self._headings_of(passages)
        if not headings:
            return passages
        return [
            host.with_text(one, headed(host.text_of(one), above)) for one, above in zip(passages, headings, strict=True)
        ]

    def _headings_of(self, passages: Sequence[Document]) -> Sequence[Sequence[str]]:
        """Return the headings that each passage stands under, but for the title of a file; nothing if none has any."""
        if self._headings[0] is not passages:
            host, found = self._host, list(map(self._host.headings_of, passages))
            if any(found):
                of: dict[str, list[Sequence[str]]] = {}  # a document
                for one in self._reading.passages:
                    of.setdefault(str(host.source_of(one)), []).append(host.headings_of(one))
                names = [str(host.source_of(one)) for one in passages]
                found = [without_titles([own, *of.get(name, ())])[0] for own, name in zip(found, names, strict=True)]
            self._headings = passages, found if any(found) else ()
        return self._headings[1]

    def around(self, step: Route, count: Count) -> int:
        """Return the tokens of a step's prompt without passages or documents."""
        with suppress(Exception):  # a prompt that cannot be filled in fails where it is sent
            return count(self.prompt(step, ()).text)
        return 0
