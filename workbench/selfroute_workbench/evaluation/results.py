"""`Evaluation`: what `evaluate` returns, with the verdict, the tables and the files that can be made of it."""
# ruff: noqa: PLC0415 - numpy, scipy and pandas take seconds, and are imported when they are needed

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selfroute_workbench.evaluation.record import Record
from selfroute_workbench.evaluation.table import Table

if TYPE_CHECKING:
    from selfroute_workbench.evaluation.choosing import Options
    from selfroute_workbench.evaluation.verdict import Verdict


@dataclass(frozen=True, repr=False)
class Evaluation(Record):
    """The looks of an evaluation; `str` gives its verdict and the main table.

    Attributes:
        questions: The questions that were asked.
        looks: What the model replied to each of them in each step.
        failures: The steps that could not be finished; they are not scored.
        settings: What was run, as plain JSON: the strategies, their options, the model and so on, but no key.
        stopped: Why it ended before all questions were asked; None if all were asked.
    """

    def verdict(self) -> Verdict:
        """Return what yours costs and brings beside the others, and what to take, with its certainty."""
        from selfroute_workbench.evaluation.verdict import verdict

        return verdict(self)

    @cached_property
    def advice(self) -> Options | None:
        """The options that would do better than yours, as `options` chooses them.

        None if none would, or there are fewer than 50 questions to choose by.
        """
        from selfroute_workbench.evaluation.choosing import advice_of

        return advice_of(self)

    def options(self, token_share: float | None = None) -> Options:
        """Choose options: the bounds of draft and sections, whether whole documents are read, or another strategy.

        The choice is made by judged correctness, if there was a judge. Its figures are cross-validated by document.
        Yours stay unless others are better.

        Example:
            ```python
            from langchain_core.language_models import FakeListChatModel
            from langchain_core.runnables import RunnableLambda
            from langchain_selfroute import SelfRouteChain
            from selfroute_workbench import evaluate

            llm, retriever = FakeListChatModel(responses=["Ms Okafor"]), RunnableLambda(lambda _: [])
            chain = SelfRouteChain(retriever=retriever, llm=llm, documents=["Ms Okafor chaired the meeting."])
            result = evaluate(chain, [{"question": "Who chaired the meeting?", "answers": ["Ms Okafor"]}])
            options = result.options(token_share=0.3)
            print(options, options.gains["yours"])  # SelfRouteChain.from_vectorstore(store, llm, **options)
            ```

        Args:
            token_share: The tokens that may be used, as a share of the long context's, above 0 and at most 1. The
                highest quality within it is chosen. None sets no limit; a document is then read only if that is worth
                5 points of 100 on its question.

        Returns:
            The options, a dict of plain JSON, with the figures behind them as attributes.

        Raises:
            ConfigurationError: No question was finished by every strategy, or a value is not valid.
        """
        from selfroute_workbench.evaluation.choosing import options_for

        return options_for(self, token_share)

    def tables(self) -> Sequence[Table]:
        """Return the tables that the looks allow, the main one first."""
        from selfroute_workbench.evaluation.tables import tables

        return list(tables(self))

    def __str__(self) -> str:
        """Return the verdict and the main table as plain text."""
        from selfroute_workbench.evaluation.show import as_plain
        from selfroute_workbench.evaluation.tables import tables

        return as_plain([*self.verdict().lines, ""], [next(tables(self))])

    def to_dataframe(self) -> Any:
        """Return the results as a data frame of pandas, one row for each question and strategy.

        Raises:
            ImportError: pandas is not installed.
        """
        try:
            import pandas as pd  # type: ignore[import-untyped]
        except ModuleNotFoundError as error:
            msg = "a data frame needs pandas: pip install pandas"
            raise ImportError(msg) from error
        from selfroute_workbench.evaluation.export import result_rows

        return pd.DataFrame(result_rows(self))

    def save(self, folder: str | Path) -> None:
        """Write `results.json`, `results.csv` and `report.html`, a page that needs no network, to a folder.

        Args:
            folder: The folder; it is made if it does not exist. Earlier files are replaced.
        """
        from selfroute_workbench.evaluation.export import save

        save(self, Path(folder), verdict=self.verdict(), advice=self.advice, tables=self.tables())
