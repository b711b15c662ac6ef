"""`Evaluation`: what `evaluate` returns, with the verdict, the tables and the files that can be made of it."""
# ruff: noqa: PLC0415 - what needs numpy or pandas is imported when it is asked for: perhaps it is not installed

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from selfroute_workbench.evaluation.grades import load_grades
from selfroute_workbench.evaluation.record import Record
from selfroute_workbench.evaluation.table import Table

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]

    from selfroute_workbench.evaluation.choosing import Options
    from selfroute_workbench.evaluation.verdict import Verdict


@dataclass(frozen=True, repr=False)
class Evaluation(Record):
    """The looks of an evaluation; `str` gives its verdict and the main table.

    Attributes:
        questions: The questions that were asked.
        looks: What the model replied to each of them in each step.
        failures: The steps that could not be finished; they are not scored.
        settings: What was run, as plain JSON: the strategies, their bounds, the model and so on, but no key.
        stopped: Why it ended before all questions were asked; None if all were asked.
        other_grades: Other people's grades of the answers, to compare with the judge's.
        excerpts: Where in the documents the answers stand, if the evaluation was read from a folder: without the
            documents, it cannot be found again.
    """

    def verdict(self) -> Verdict:
        """Return what to do, in one sentence with its certainty; it needs the strategies `rag` and `long_context`.

        Raises:
            ImportError: The extra `evaluate` is not installed. The methods below raise it, too.
        """
        with _needing("a verdict"):
            from selfroute_workbench.evaluation.verdict import verdict

            return verdict(self)

    def options(self, token_share: float | None = None, price_of_wrong: float = 1.0) -> Options:
        """Choose options: both bounds, whether sections are read, and whether to escalate at all.

        The choice is made by judged correctness, if there was a judge. Its figures are cross-validated by document.
        Bounds need the strategy `graded`, and sections need `sections` or `graded_sections`.

        Example:
            ```python
            from selfroute_workbench.evaluation import Evaluation

            options = Evaluation.load("evaluation").options(token_share=0.3)
            print(options, options.gains["self_route"])  # SelfRouteChain.from_vectorstore(store, llm, **options)
            ```

        Args:
            token_share: The tokens that may be used, as a share of the long context's, above 0 and at most 1. The
                highest quality within it is chosen. None allows as many as Self-Route as published; a document is then
                read only if that is worth 5 points of 100 on its question.
            price_of_wrong: The cost of a wrong answer, 0 or more; an honest decline costs 1 at most. At 3, a wrong
                answer is worth -2.

        Returns:
            The options, a dict of plain JSON, with the figures behind them as attributes.

        Raises:
            ConfigurationError: No question has both a plain draft and a reply to the documents, or a value is not
                valid.
        """
        with _needing("choosing options"):
            from selfroute_workbench.evaluation.choosing import choose_options
            from selfroute_workbench.evaluation.trials import rows_of

            rows = rows_of(self.questions, self.looks, measure=self.measure)
            return choose_options(rows, sections=self.sections, token_share=token_share, price_of_wrong=price_of_wrong)

    def tables(self) -> Sequence[Table]:
        """Return the tables that the looks allow, the main one first."""
        with _needing("the tables"):
            from selfroute_workbench.evaluation.tables import tables

            return list(tables(self))

    def __str__(self) -> str:
        """Return the verdict and the main table as plain text."""
        with _needing("showing an evaluation"):
            from selfroute_workbench.evaluation.show import as_plain
            from selfroute_workbench.evaluation.tables import tables

            return as_plain([*self.verdict().lines, ""], [next(tables(self))])

    @property
    def frame(self) -> pd.DataFrame:
        """The results as a data frame, one row for each question and strategy."""
        with _needing("a data frame"):
            import pandas as pd

            from selfroute_workbench.evaluation.export import result_rows

            return pd.DataFrame(result_rows(self))

    def save(self, folder: str | Path) -> None:
        """Write `results.json`, `report.html`, `results.csv`, `looks.csv` and `tables/*.csv` to a folder.

        Args:
            folder: The folder; it is made if it does not exist. Earlier files are replaced.
        """
        with _needing("saving an evaluation"):
            from selfroute_workbench.evaluation.export import save

            save(self, folder)

    @classmethod
    def load(cls, folder: str | Path) -> Evaluation:
        """Read what `save` wrote, to make verdicts, tables and reports again.

        Args:
            folder: The folder that it was saved to.

        Returns:
            The evaluation, without the texts of documents.

        Raises:
            InputError: The folder holds no evaluation, or that of another version.
        """
        from selfroute_workbench.evaluation.saved import load

        return cls(**vars(load(folder)))

    def with_grades(self, path: str | Path, *, model: str | None = None) -> Evaluation:
        """Return the same evaluation with other people's grades; its tables show how far the judge agrees with them.

        Args:
            path: The file (see `load_grades`).
            model: The model that answered, if the file has grades for several.

        Raises:
            InputError: The file is not as described.
        """
        return replace(self, other_grades=tuple(load_grades(path, model=model)))


@contextmanager
def _needing(doing: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        msg = f"{doing} needs {error.name}: pip install {error.name}"
        raise ImportError(msg) from error
