"""Asks a model whether answers are right, and keeps its replies like all others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, replace
from typing import Any

from selfroute.errors import ConfigurationError, ReplyError
from selfroute.evaluation.asking.replies import Replies, Reply
from selfroute.evaluation.judging import JUDGE, Sheet, candidate_of, grade_by_rule
from selfroute.evaluation.questions import Question
from selfroute.evaluation.records import Answer
from selfroute.usage.counts import FREE, Cost, StepUsage
from selfroute.usage.prices import PricedModel, cost_of
from selfroute.usage.tally import Tally
from selfroute.usage.tokens import count_tokens

STEP = "judge"
_ATTEMPTS = 2
"""How often a run asks for the grades of a question, if the replies cannot be read."""


class UnreadableGradesError(ReplyError):
    """The judge's reply is not one grade for each answer."""


Call = Callable[[str], Tally]
"""Sends a prompt to a model, and returns the tally of its reply."""


class ModelJudge:
    """A judge that is a model."""

    def __init__(  # noqa: PLR0913 - each is a part of what a reply costs or is found by
        self,
        call: Call,
        replies: Replies,
        *,
        configured: PricedModel,
        identity: Any,
        name: str | None = None,
        priced_as: PricedModel | None = None,
    ) -> None:
        """Take a model.

        Args:
            call: Asks the model.
            replies: Keeps its replies.
            configured: The model's own name.
            identity: What its kept replies are found by, as plain JSON.
            name: Its name for people; None for its own.
            priced_as: The model that it is priced as, if not as itself.

        Raises:
            ConfigurationError: There is a cap on the cost, and no price of the model is known.
        """
        self._call, self._replies = call, replies
        self._configured, self._priced_as = configured, priced_as
        self._identity = [identity, astuple(configured)]
        self._name = name or configured.name or "a model without a name"
        self._used: list[Reply] = []
        try:
            replies.budget.check(lambda output: self.price(StepUsage(1, output)))
        except ConfigurationError as error:
            msg = f"{error}. For the judge that is judge_priced_as='provider:name' (--judge-priced-as)"
            raise ConfigurationError(msg) from error

    @property
    def settings(self) -> dict[str, Any]:
        """The model's name, the prompt and what its replies cost, for the report.

        Kept replies count as if they were asked for again.
        """
        used = sum((reply.usage() for reply in self._used), StepUsage(0, 0, cost=FREE))
        return {
            "model": self._name,
            "prompt": JUDGE,
            "calls": len(self._used),
            "input_tokens": used.input_tokens,
            "output_tokens": used.output_tokens,
            "cost": used.cost.as_text(),
        }

    def grade(self, question: Question, answers: Sequence[Answer]) -> list[Answer]:
        """Return results and looks with their grades; the model is asked once for all that no rule decides.

        Raises:
            UnreadableGradesError: Its replies cannot be read.
            NoReplyError: It gave none, for example because the provider filtered it.
        """
        ruled = [grade_by_rule(question, each) for each in answers]
        open_ = [each.answer for each, grade in zip(answers, ruled, strict=True) if grade is None]
        grades = self._ask(Sheet.of(question, open_)) if open_ else {}
        return [
            replace(each, judged=grades[candidate_of(each.answer)], judged_by="model")
            if grade is None
            else replace(each, judged=grade, judged_by="rule")
            for each, grade in zip(answers, ruled, strict=True)
        ]

    def _ask(self, sheet: Sheet) -> dict[str, float]:
        """Ask for the grades; a reply of an earlier run that cannot be read costs no attempt."""
        attempt = asked = 0
        while True:
            reply, is_new = self._reply(sheet.again() if attempt else sheet.prompt, attempt)
            grades = sheet.read(reply.text_of(STEP))
            if grades is not None:
                return grades
            attempt, asked = attempt + 1, asked + is_new
            if asked >= _ATTEMPTS:
                msg = f"the judge's reply is not one grade for each answer: {reply.text.strip()[:80]!r}"
                raise UnreadableGradesError(msg)

    def _reply(self, prompt: str, attempt: int) -> tuple[Reply, bool]:
        """Return the kept reply, or a new one, and whether it is new."""
        new: list[Reply] = []

        def ask() -> Reply:
            tally = self._call(prompt)
            counts = tally.usage(lambda: prompt, count=count_tokens) or StepUsage(0, 0)
            model = tally.model(self._configured)
            priced = counts.with_cost(cost_of(self._priced_as or model, counts))
            new.append(Reply.of("".join(tally.text), priced, model, ending=tally.ending()))
            return new[0]

        tokens = count_tokens(prompt)
        reply = self._replies.get(
            {"model": self._identity, "judge": attempt, "prompt": prompt},
            ask,
            step=STEP,
            price=lambda output: self.price(StepUsage(tokens, output)),
        )
        reply = reply.priced(self._priced_as)
        self._used.append(reply)
        return reply, bool(new)

    def price(self, counts: StepUsage) -> Cost:
        """Return the cost of a reply."""
        return cost_of(self._priced_as or self._configured, counts)
