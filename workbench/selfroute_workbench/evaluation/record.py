"""The plain data of an evaluation, and other bounds replayed over it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from selfroute.calls.plan import DOUBT_BELOW, STOP_BELOW
from selfroute.calls.settings import checked
from selfroute.errors import ConfigurationError
from selfroute_workbench.evaluation.looks import (
    MOST_DOUBT,
    TRIED,
    Failure,
    Look,
    Measure,
    Result,
    Strategy,
    by_question,
)
from selfroute_workbench.evaluation.questions import Question
from selfroute_workbench.evaluation.replay import Rule, rungs_in


@dataclass(frozen=True, repr=False)
class Record:
    """What `Evaluation` holds; its attributes are described there. What shows or saves it needs no more than this."""

    questions: Sequence[Question]
    looks: Sequence[Look]
    failures: Sequence[Failure] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    stopped: str | None = None

    @property
    def strategies(self) -> Sequence[Strategy]:
        """The strategies that were compared."""
        return tuple(self.settings.get("strategies", ()))

    @cached_property
    def results(self) -> Sequence[Result]:
        """What each strategy answers to each question that it finished, in their order."""
        return self._led_by(*map(Rule, self.strategies))

    @cached_property
    def measure(self) -> Measure:
        """`"judged"` if a judge graded anything, else `"score"`."""
        return "judged" if any(look.judged_by == "model" for look in self.looks) else "score"

    def replay(
        self,
        doubt_below: int | Sequence[int] = DOUBT_BELOW,
        stop_below: int | Sequence[int] = STOP_BELOW,
        documents: bool = True,  # noqa: FBT001, FBT002
    ) -> Sequence[Result]:
        """Return what graded answerability answers with other bounds; nothing is asked.

        Args:
            doubt_below: The confidence below which a draft is in doubt; a sequence has one for the draft, and one for
                each reading of sections.
            stop_below: A decline with a lower prospect ends the question; a pair has a bound for the draft and one for
                sections.
            documents: Whether whole documents are read.

        Returns:
            One result for each question with the looks that it takes.

        Raises:
            ConfigurationError: No bounds were tried.
        """
        if not any(look.strategy == TRIED for look in self.looks):
            msg = "bounds are tried on 50 questions or more, with the default prompts or others that ask for numbers"
            raise ConfigurationError(msg)
        doubt_below, stop_below = checked("doubt_below", doubt_below), checked("stop_below", stop_below)
        doubt = (doubt_below,) if isinstance(doubt_below, int) else tuple(doubt_below)
        if max(doubt) > MOST_DOUBT:
            msg = f"bounds of the confidence up to {MOST_DOUBT} were tried; doubt_below is {doubt_below!r}"
            raise ConfigurationError(msg)
        draft, sections = (stop_below, stop_below) if isinstance(stop_below, int) else stop_below
        return self._led_by(Rule(TRIED, doubt, (draft, sections), documents))

    @cached_property
    def compared(self) -> Sequence[Question]:
        """The questions that every strategy finished, and the judge graded if there was one."""
        counts = Counter(
            result.key
            for result in self.results
            if self.measure == "score" or all(look.judged is not None for look in result.paid)
        )
        return [question for question in self.questions if counts[question.key] == len(self.strategies) > 0]

    def _led_by(self, *rules: Rule) -> Sequence[Result]:
        found, rungs = by_question(self.looks), rungs_in(self.looks)
        return tuple(
            Result(rule.strategy, paid)
            for question in self.questions
            for rule in rules
            if (paid := rule.follow(found.get(question.key, {}), rungs))
        )
