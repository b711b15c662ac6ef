"""Asks a model whether answers are right, and keeps its replies like all others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from selfroute.errors import ConfigurationError, ReplyError
from selfroute_workbench.evaluation.asker import Asker
from selfroute_workbench.evaluation.judging import JUDGE, Sheet, candidate_of, grade_by_rule
from selfroute_workbench.evaluation.looks import Look
from selfroute_workbench.evaluation.questions import Question

STEP = "judge"
_ATTEMPTS = 2
"""How often a run asks for the grades of a question, if the replies cannot be read."""


class UnreadableGradesError(ReplyError):
    """The judge's reply is not one grade for each answer."""


class ModelJudge:
    """A judge that is a model."""

    def __init__(self, asker: Asker, *, title: str | None = None) -> None:
        """Take a model.

        Raises:
            ConfigurationError: As for `Asker.check`.
        """
        self._asker, self._title = asker, title or asker.model.name or "a model without a name"
        try:
            asker.check(STEP)
        except ConfigurationError as error:
            msg = f"{error}. For the judge that is judge_priced_as='provider:name'"
            raise ConfigurationError(msg) from error

    @property
    def settings(self) -> dict[str, Any]:
        """The model's name, the prompt and what its replies cost, for the report.

        Kept replies count as if they were asked for again.
        """
        used = self._asker.used
        return {
            "model": self._title,
            "prompt": JUDGE,
            "calls": self._asker.calls,
            "input_tokens": used.input_tokens,
            "output_tokens": used.output_tokens,
            "cost": used.cost.as_text(),
        }

    def grade(self, question: Question, looks: Sequence[Look]) -> list[Look]:
        """Return looks with their grades; the model is asked once for all that no rule decides.

        Raises:
            UnreadableGradesError: Its replies cannot be read.
            NoReplyError: It gave none, for example because the provider filtered it.
        """
        ruled = [grade_by_rule(question, each) for each in looks]
        open_ = [each.answer for each, grade in zip(looks, ruled, strict=True) if grade is None]
        grades = self._ask(Sheet.of(question, open_)) if open_ else {}
        return [
            replace(each, judged=grades[candidate_of(each.answer)], judged_by="model")
            if grade is None
            else replace(each, judged=grade, judged_by="rule")
            for each, grade in zip(looks, ruled, strict=True)
        ]

    def _ask(self, sheet: Sheet) -> dict[str, float]:
        """Ask for the grades; a reply of an earlier run that cannot be read costs no attempt."""
        attempt = asked = 0
        while True:
            prompt = sheet.again() if attempt else sheet.prompt
            reply, is_new = self._asker.ask(prompt, STEP, attempt=attempt)
            grades = sheet.read(reply.text_of(STEP))
            if grades is not None:
                return grades
            attempt, asked = attempt + 1, asked + is_new
            if asked >= _ATTEMPTS:
                msg = f"the judge's reply is not one grade for each answer: {reply.text.strip()[:80]!r}"
                raise UnreadableGradesError(msg)
