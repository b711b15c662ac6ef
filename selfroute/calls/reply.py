"""Read a model's reply: until its verdict is certain, on from a doubt, and to its end.

A gate judges it. Each step has its own rules: the numbers that the model was asked for and their bounds, and whether
anything may follow that could answer.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from selfroute.answerability.ending import Ending, Verdict
from selfroute.answerability.gate import Gate
from selfroute.answerability.graded import GradedGate
from selfroute.answerability.last import LastGate
from selfroute.answerability.reply_gate import ReplyGate
from selfroute.effects import Decide, Decided, Judged

if TYPE_CHECKING:
    from selfroute.answerability.echo import Sent
    from selfroute.answerability.graded import Ungraded
    from selfroute.calls.costs import Costs
    from selfroute.calls.plan import Plan
    from selfroute.effects import Generate, Route


class Reply:
    """One reply of a model, while it is read; closing it stops the model.

    Attributes:
        pieces: What is left of it: a generator, an async one for the async twins.
    """

    def __init__(self, step: Route, pieces: Any, gate: ReplyGate, costs: Costs[Any]) -> None:
        """Start before the first piece.

        Args:
            step: The step that was asked.
            pieces: The reply.
            gate: Judges it.
            costs: Knows how it ended.
        """
        self.pieces = pieces
        self._step, self._gate, self._costs, self._closed = step, gate, costs, False

    @cached_property
    def ending(self) -> Ending:
        """How it ended; asked once all its pieces have come."""
        return self._costs.ending

    @property
    def is_open(self) -> bool:
        """Whether more of it may be shown."""
        return not self._closed

    def judge(self, *, resumed: bool) -> Judged:
        """Read until the verdict is certain; close a reply of which nothing more can be shown.

        Args:
            resumed: Whether to take a reply in doubt for the answer.

        Raises:
            NoReplyError: It ended without anything to judge.
        """
        gate = self._gate
        text = gate.resume() if resumed else ""
        if gate.verdict is None:
            for piece in self.pieces:
                text += gate.feed(piece)
                if gate.verdict is not None:
                    break
            else:
                text += gate.end(self.ending.kind)
        judged = self._judged(text)
        if self._is_over(judged.verdict):
            self.close()
        return judged

    async def ajudge(self, *, resumed: bool) -> Judged:
        """The async twin of `judge`."""
        gate = self._gate
        text = gate.resume() if resumed else ""
        if gate.verdict is None:
            async for piece in self.pieces:
                text += gate.feed(piece)
                if gate.verdict is not None:
                    break
            else:
                text += gate.end(self.ending.kind)
        judged = self._judged(text)
        if self._is_over(judged.verdict):
            await self.aclose()
        return judged

    def _judged(self, text: str) -> Judged:
        verdict = self._gate.verdict
        if verdict is None or (verdict.signal == "phrase" and self._costs.ending.kind == "refused"):
            raise self._costs.no_reply(self._step)  # a filter's stock sentence says nothing of the passages
        return Judged(text, verdict)

    def _is_over(self, verdict: Verdict) -> bool:
        """Return whether nothing more will be shown. A reply in doubt may be the answer, if there is no more."""
        return verdict.declined and not self._gate.shows_declines

    def is_given_up(self, effect: Decide, decided: Decided) -> bool:
        """Return whether a decision gives up the reply: one in doubt, or one that may have been the last."""
        return not (self._closed or effect.final) and (decided.granted or effect.latest.declined)

    def shown(self, piece: str) -> str:
        """Return what may be shown of a further piece."""
        return self._gate.feed(piece)

    def end(self) -> str:
        """Return what may be shown, now that all pieces have come."""
        return self._gate.end(self.ending.kind)

    def close(self) -> None:
        """Stop the model, if it is still writing."""
        if not self._closed:
            self._closed = True
            self.pieces.close()

    async def aclose(self) -> None:
        """The async twin of `close`."""
        if not self._closed:
            self._closed = True
            await self.pieces.aclose()


def gate_of(effect: Generate, plan: Plan, *, sent: Sent, ungraded: Ungraded) -> ReplyGate:
    """Return a fresh gate for the reply of a step.

    Args:
        effect: Asks for it.
        plan: The options of the chain or engine.
        sent: Returns the texts of the prompt, which some models give back.
        ungraded: Counts the replies without numbers.
    """
    step, refusal = effect.step, plan.refusal
    own_words = plan.not_found is None  # else what is shown of a decline is known before any text
    bounds = plan.bounds
    gate: Gate | GradedGate
    if step == "long_context":
        gate = Gate(refusal, phrases=not own_words, last=True, sent=sent)
    elif bounds is None:
        gate = Gate(refusal, sent=sent)
    else:
        doubt, stop, numbers = bounds.doubt_below, bounds.stop_below, 2
        if step == "sections":
            doubt, stop, numbers = bounds.sections_below[: effect.rung + 1][-1], bounds.sections_stop, 1
        counted = None if plan.structured else ungraded
        gate = GradedGate(refusal, doubt_below=doubt, stop_below=stop, numbers=numbers, ungraded=counted, sent=sent)
    last = step == "long_context" or (step == "sections" and plan.max_documents == 0)
    return LastGate(gate, refusal, sent=sent) if last and own_words else gate
