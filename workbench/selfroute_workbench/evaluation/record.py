"""The plain data of an evaluation, and the strategies replayed over it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from selfroute.calls.options import Sections
from selfroute.errors import ConfigurationError
from selfroute_workbench.evaluation.looks import SECTIONS, Failure, Key, Look, Measure, Result, Strategy, by_question
from selfroute_workbench.evaluation.questions import Question
from selfroute_workbench.evaluation.replay import GRADED, Rule


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
        """The strategies that were asked for."""
        return tuple(self.settings.get("strategies", ()))

    @property
    def rules(self) -> Mapping[Strategy, Rule]:
        """Each strategy with the pipeline's bounds."""
        settings = self.settings
        bounds: dict[str, Any] = {}
        if "doubt_below" in settings:
            bounds = {"doubt_below": tuple(settings["doubt_below"]), "stop_below": settings["stop_below"]}
        return {name: replace(Rule.default(name), **(bounds if name in GRADED else {})) for name in self.strategies}

    @cached_property
    def results(self) -> Sequence[Result]:
        """What each strategy answers to each question that has the looks it needs, in their order."""
        return self._led_by(*self.rules.values())

    @cached_property
    def measure(self) -> Measure:
        """`"judged"` if a judge graded anything, else `"score"`."""
        return "judged" if any(look.judged_by == "model" for look in self.looks) else "score"

    @property
    def sections(self) -> Sections:
        """The tokens of the sections that were read."""
        tokens = self.settings.get("sections", SECTIONS)
        return tuple(tokens) if isinstance(tokens, list) else tokens

    def replay(
        self,
        doubt_below: int | Sequence[int] = 60,
        stop_below: int = 20,
        sections: bool = True,  # noqa: FBT001, FBT002
    ) -> Sequence[Result]:
        """Return what graded answerability answers with other bounds; nothing is asked.

        Args:
            doubt_below: The confidence below which a draft is in doubt; a sequence has one for the draft, and one for
                each reading of sections.
            stop_below: A draft that declines with a lower prospect ends there.
            sections: Whether sections are read before the documents.

        Returns:
            One result for each question with the looks that it takes.

        Raises:
            ConfigurationError: No graded draft was asked for.
        """
        if not any(look.step == "graded" for look in self.looks):
            msg = (
                "bounds need graded drafts: evaluate with the strategies graded and graded_sections (--strategies all)"
            )
            raise ConfigurationError(msg)
        below = (doubt_below,) if isinstance(doubt_below, int) else tuple(doubt_below)
        return self._led_by(Rule("graded_sections" if sections else "graded", below, stop_below))

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
        found = self._by_question
        return tuple(
            Result(rule.strategy, paid)
            for question in self.questions
            for rule in rules
            if (paid := rule.follow(found.get(question.key, {})))
        )

    @cached_property
    def _by_question(self) -> Mapping[Key, Any]:
        return by_question(self.looks)
