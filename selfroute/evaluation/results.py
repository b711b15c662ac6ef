"""`Evaluation`: what `evaluate` returns, with the tables, sentences and files that can be made of it."""
# ruff: noqa: PLC0415 - what draws and writes is imported when it is asked for: it is heavy, and perhaps not installed

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from selfroute.evaluation.grades import load_grades
from selfroute.evaluation.records import (
    ALL_STRATEGIES,
    STRATEGIES,
    Excerpt,
    Failure,
    Look,
    OtherGrade,
    Passage,
    Reason,
    Record,
    Result,
    Strategy,
)
from selfroute.evaluation.table import Table
from selfroute.policies.calibrated import Calibrated

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]

    from selfroute.evaluation.reporting.advice import Advice

__all__ = [
    "ALL_STRATEGIES",
    "STRATEGIES",
    "Evaluation",
    "Excerpt",
    "Failure",
    "Look",
    "OtherGrade",
    "Passage",
    "Reason",
    "Result",
    "Strategy",
]


class Evaluation(Record):
    """The results of an evaluation; `str` gives its recommendation, its summary and the main table.

    Attributes:
        questions: The questions that were asked.
        results: One for each question and strategy.
        failures: The tasks that could not be finished; they are not scored.
        reasons: Why drafts were declined, if the model was asked.
        settings: What was run, as plain JSON: model, retriever, k and so on, but no key.
        stopped: Why it ended before all questions were asked; None if all were asked.
        other_grades: Other people's grades of the answers, to compare with the judge's.
        looks: The model's reply in each step, even if no strategy showed it; one for each question, step and k.
        excerpts: Where in the documents the answers stand, if the evaluation was read from a folder: without the
            documents, it cannot be found again.
    """

    @classmethod
    def of(cls, record: Record) -> Evaluation:
        """Return the evaluation that has a record's data."""
        return cls(**vars(record))

    @classmethod
    def load(cls, folder: str | Path) -> Evaluation:
        """Read what `save` wrote, to make tables and reports again.

        Args:
            folder: The folder that it was saved to.

        Returns:
            The evaluation, without the texts of documents and with the passages of one k only, as in `results.json`.
        """
        with _reporting():
            from selfroute.evaluation.reporting.export import load

            return cls.of(load(folder))

    def with_grades(self, path: str | Path, *, model: str | None = None) -> Evaluation:
        """Return the same evaluation with other people's grades; its tables show how far the judge agrees with them.

        Args:
            path: The file (see `load_grades`).
            model: The model that answered, if the file has grades for several.

        Raises:
            InputError: The file is not as described.
        """
        return replace(self, other_grades=tuple(load_grades(path, model=model)))

    def __str__(self) -> str:
        """Return the recommendation, the summary and the main table as plain text."""
        with _reporting():
            from selfroute.evaluation.reporting.show import as_plain

            sentences = [*self.recommendation().lines, "", *self.summary()]
            return as_plain(sentences, [table for table in self.tables() if table.name == "main"])

    @property
    def frame(self) -> pd.DataFrame:
        """The results as a data frame, one row for each question and strategy.

        Raises:
            ImportError: The extra `evaluate` is not installed. The methods below raise it, too.
        """
        with _reporting():
            from selfroute.evaluation.reporting.frame import frame

            return frame(self)

    def recommendation(self) -> Advice:
        """Return which strategy to take: in words, in the lines of code to paste, and with the figures behind it.

        It needs the strategies `rag` and `long_context`. Graded answerability is considered if it was tried.
        """
        with _reporting():
            from selfroute.evaluation.reporting.advice import advise

            return advise(self)

    def summary(self) -> list[str]:
        """Return a few sentences on what the results show."""
        with _reporting():
            from selfroute.evaluation.reporting.summary import summary

            return summary(self)

    def tables(self) -> list[Table]:
        """Return the tables that the results allow, the paper's Table 1 first."""
        with _reporting():
            from selfroute.evaluation.reporting.tables import tables

            return tables(self)

    def calibrate(self, token_share: float | None = None, price_of_wrong: float = 1.0) -> Calibrated:
        """Choose when to escalate: both bounds, the sections, and whether to escalate at all.

        The choice is made by judged correctness, if there was a judge. Its figures are cross-validated by document.
        Bounds need the strategy `graded`, and sections need `sections` or `graded_sections`.

        Example:
            ```python
            from selfroute.evaluation import Evaluation

            policy = Evaluation.load("evaluation").calibrate(token_share=0.3)
            policy.save("policy.json")  # SelfRouteChain(..., escalation=Calibrated.load("policy.json"))
            ```

        Args:
            token_share: The input tokens that may be used, as a share of the long context's, above 0 and at most 1. The
                highest quality within it is chosen. None allows as many as Self-Route as published; a document is then
                read only if that is worth 5 points of 100 on its question.
            price_of_wrong: The cost of a wrong answer, 0 or more; an honest decline costs 1 at most. At 3, a wrong
                answer is worth -2.

        Returns:
            The policy; its `calibration` has the figures and their limits.

        Raises:
            ConfigurationError: No question was finished by both `rag` and `long_context`, or a value is not valid.
        """
        with _reporting("calibrating"):
            from selfroute.evaluation.calibrating.calibrate import calibrate
            from selfroute.evaluation.calibrating.from_results import material_of

            found = material_of(self)
            calibration = calibrate(
                found.rows,
                token_share=token_share,
                price_of_wrong=price_of_wrong,
                sections=found.sections,
                model=found.model,
                prompts=found.prompts,
                remarks=found.remarks,
            )
            return Calibrated(calibration)

    def save(self, folder: str | Path) -> None:
        """Write the report, the tables, the plots and all results to a folder.

        Args:
            folder: The folder; it is created if it does not exist.
        """
        with _reporting():
            from selfroute.evaluation.reporting.export import save

            save(self, folder)


@contextmanager
def _reporting(doing: str = "showing an evaluation") -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        msg = f'{doing} needs {error.name}: pip install "selfroute[evaluate]"'
        raise ImportError(msg) from error
