"""The effects that the flow yields, their results, and the answer that it returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from selfroute.answerability import Verdict, declines_anywhere

if TYPE_CHECKING:
    from selfroute.citations import Citation

Route = Literal["rag", "sections", "long_context"]
Start = Literal["rag", "sections", "auto", "long_context"]
NOTHING_MORE: Mapping[str, Any] = {
    "go": False,
    "by": "nothing_more",
    "reason": "the models have been sent all of the documents behind the passages that the next steps would read",
}
"""The ruling where no step that is left would read anything new."""


class Retrieve(NamedTuple):
    """Find the passages for a question. Result: those that the draft reads, best first; there may be none.

    None: nothing was retrieved, and documents are only reachable through passages.

    Attributes:
        question: The question.
    """

    question: str


class Compare(NamedTuple):
    """Compare the passages with their documents. Result: whether a draft would cost more than it saves.

    Attributes:
        passages: The passages that the draft would read.
    """

    passages: Sequence[Any]


class ReadDocuments(NamedTuple):
    """Read the context of a step, fitted to the window. Result: a sequence, best first; empty if nothing is to be read.

    None: all of it was sent to a model before.

    Attributes:
        passages: The retrieved passages.
        too_long: The provider's error if it refused the last prompt as too long; then read less.
        step: The step. The sections are empty where they would save little; then the step is skipped.
        rung: How many steps of the same name came before; each may read more than the last.
    """

    passages: Sequence[Any]
    too_long: Exception | None = None
    step: Route = "long_context"
    rung: int = 0

    @property
    def anew(self) -> bool:
        """Whether documents have to be read; else what is at hand is fitted."""
        return self.step != "rag" and self.too_long is None


class Generate(NamedTuple):
    """Ask the model of one step to answer from a context. Result: a `Judged`, as soon as its verdict is certain.

    Attributes:
        step: The step.
        context: The passages, sections or documents.
        resumed: Whether to continue the reply in doubt, which is still open: there is nothing better to come.
        rung: How many steps of the same name came before; each may have its own bounds.
    """

    step: Route
    context: Sequence[Any]
    resumed: bool = False
    rung: int = 0


class Decide(NamedTuple):
    """Propose a step, before anything is paid for it or its text is shown. Result: what was `Decided`.

    Attributes:
        route: The step that the question should go to, or that answered it.
        decision: The verdict on the first step.
        latest: The verdict on the latest reply, which says why the question should go on.
        since: The step that it comes from.
        context: The sections that would be read.
        final: Whether the question ends here; then nothing is proposed, and no policy is asked.
    """

    route: Route
    decision: Verdict
    latest: Verdict
    since: Route = "rag"
    context: Sequence[Any] = ()
    final: bool = False


class Decided(NamedTuple):
    """Announce the route, as soon as it is known. The drivers yield it.

    Attributes:
        route: The proposed step; or the one that the question comes from, if it must not go on.
        decision: The verdict on the first step, with what a policy said.
        granted: Whether the question may go on as proposed.
    """

    route: Route
    decision: Verdict
    granted: bool = True


Effect = Retrieve | Compare | ReadDocuments | Generate | Decide


class Judged(NamedTuple):
    """What was read of a model's reply when its verdict became certain.

    Attributes:
        text: The text that may be shown: none of a draft that declines, nor the refusal itself.
        verdict: Whether the reply declines, by this part.
    """

    text: str
    verdict: Verdict


class Answer(NamedTuple):
    """The answer to one question. The drivers yield it last, with its whole text.

    Attributes:
        text: The answer. If every step declined, the last step's own words, or the refusal word if it gave none.
        route: The step that produced the answer.
        answerable: False if every step that ran declined.
        decision: Why this route: the verdict on the first step.
        passages: The retrieved passages, on either route.
        context: What the model answered from: the passages, the sections, or the documents.
        finish_reason: How the reply that is shown ended, in the provider's word; None if it says nothing.
        citations: Where the answer stands in the context; None if that was not asked for.
    """

    text: str
    route: Route
    answerable: bool
    decision: Verdict
    passages: Sequence[Any]
    context: Sequence[Any]
    finish_reason: str | None = None
    citations: list[Citation] | None = None

    def ended(self, text: str, *, finish_reason: str | None, refusal: str) -> Answer:
        """Return the answer with its whole text. A reply to documents is judged again, as a whole.

        Args:
            text: All the text that was shown.
            finish_reason: How the reply ended, in the provider's word.
            refusal: The word that declines.
        """
        whole = self.route == "long_context"
        answerable = self.answerable and not (whole and declines_anywhere(text, refusal))
        return self._replace(text=text, answerable=answerable, finish_reason=finish_reason)

    def cited(self) -> dict[str, Any]:
        """Return the citations as an item of a result; empty if they were not asked for."""
        return {} if self.citations is None else {"citations": self.citations}
