"""What became of the questions: one `Result` for each question and strategy, and all of them as an `Evaluation`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from selfroute.evaluation.questions import Question
from selfroute.evaluation.table import Table
from selfroute.flow import Route

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]

Strategy = Literal["rag", "long_context", "self_route", "closed_book"]
STRATEGIES: tuple[Strategy, ...] = ("rag", "long_context", "self_route")


@dataclass(frozen=True, slots=True)
class Passage:
    """A retrieved passage.

    Attributes:
        text: Its text, as the model was given it.
        score: How near it is to the question, by the retriever's own measure; None if the retriever does not say.
    """

    text: str
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What one strategy made of one question.

    Attributes:
        dataset: The question's data set.
        id: The question's name within it.
        strategy: `"rag"` is the first step alone, with a decline as its final answer; `"long_context"` reads the
            documents at once; `"self_route"` is both, as the chain decides; `"closed_book"` sees no text at all.
        k: How many passages were retrieved; None where no number was set or none are.
        based_only_on: Whether the prompt said "based only on the provided passage" (Table 4).
        answer: The final answer; the refusal word if there is none.
        route: The step that produced it; None for closed book.
        answerable: Whether the model answered.
        decision: Why it took that route, as the chain says it.
        usage: What it took, as the chain says it; what a kept reply took counts as if it was asked for again.
        draft: What the model wrote in the first step, None if that did not run.
        passages: What was retrieved.
        cut: Whether the model did not read the document whole, as it was longer than its window.
        seconds: How long the model took to reply, in all steps that ran; of a kept reply when it was asked for.
        score: By the question's own metric, from 0 to 1.
        exact: The loose exact match of Li et al. (2025), 0 or 1; of SQuAD its own, of choices and pass keys the score.
        set_f1: The F1 of Li et al. (2025), over sets of words, from 0 to 1; likewise.
    """

    dataset: str
    id: str
    strategy: Strategy
    k: int | None
    based_only_on: bool
    answer: str
    route: Route | None
    answerable: bool
    decision: Mapping[str, Any]
    usage: Mapping[str, Any]
    draft: str | None
    passages: Sequence[Passage]
    cut: bool
    seconds: float = field(compare=False)
    score: float
    exact: float
    set_f1: float

    @property
    def key(self) -> tuple[str, str]:
        """The question's key."""
        return self.dataset, self.id

    @property
    def input_tokens(self) -> int:
        """The tokens that the model read, in all steps that ran."""
        steps = (self.usage.get("rag"), self.usage.get("long_context"))
        return sum(step["input_tokens"] for step in steps if step)


@dataclass(frozen=True, slots=True)
class Failure:
    """A question that a strategy could not finish: it is not scored.

    Attributes:
        dataset: The question's data set.
        id: The question's name within it.
        strategy: Which strategy; `"reason"` where the model was to say why it declined.
        k: How many passages were asked for.
        based_only_on: As in `Result`.
        error: What went wrong, in one line and without keys.
    """

    dataset: str
    id: str
    strategy: Strategy | Literal["reason"]
    k: int | None
    based_only_on: bool
    error: str


@dataclass(frozen=True, slots=True)
class Reason:
    """Why the passages did not do, by the model's own account (section 5.2 of the paper).

    Attributes:
        dataset: The question's data set.
        id: The question's name within it.
        k: How many passages were retrieved.
        letter: "A" multi-step, "B" general, "C" long and complex, "D" implicit, "E" other; "answerable" if
            the model, asked for a reason, answered after all; "?" if its reply can not be read.
        reply: What it wrote.
    """

    dataset: str
    id: str
    k: int | None
    letter: str
    reply: str


@dataclass(frozen=True, repr=False)
class Evaluation:
    """What became of an evaluation; `str` gives its summary and the main table.

    Attributes:
        questions: The questions that were asked.
        results: What the strategies made of them.
        failures: What could not be finished, and is scored nowhere.
        reasons: Why drafts were declined, where that was asked.
        settings: What was run, as plain JSON: model, retriever, k and so on; never a key.
        stopped: Why it ended before all questions were asked; None if all were.
    """

    questions: Sequence[Question]
    results: Sequence[Result]
    failures: Sequence[Failure] = ()
    reasons: Sequence[Reason] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    stopped: str | None = None

    def __repr__(self) -> str:
        """Tell how much there is: all of it would fill the screen."""
        counts = {"questions": self.questions, "results": self.results, "failures": self.failures}
        return f"Evaluation({', '.join(f'{len(found):,} {what}' for what, found in counts.items())})"

    def __str__(self) -> str:
        """Return the summary and the main table as plain text."""
        with _reporting():
            from selfroute.evaluation.reporting.show import as_plain  # noqa: PLC0415

            return as_plain(self.summary(), [table for table in self.tables() if table.name == "main"])

    @property
    def frame(self) -> pd.DataFrame:
        """The results as a data frame, one row for each question and strategy.

        Raises:
            ImportError: The extra `evaluate` is not installed; so do all that follow.
        """
        with _reporting():
            from selfroute.evaluation.reporting.frame import frame  # noqa: PLC0415

            return frame(self)

    def summary(self) -> list[str]:
        """What it shows, in a few sentences."""
        with _reporting():
            from selfroute.evaluation.reporting.summary import summary  # noqa: PLC0415

            return summary(self)

    def tables(self) -> list[Table]:
        """The tables that the results allow, the paper's Table 1 first."""
        with _reporting():
            from selfroute.evaluation.reporting.tables import tables  # noqa: PLC0415

            return tables(self)

    def save(self, folder: str | Path) -> None:
        """Write the report, the tables, the plots and all results to a folder.

        Args:
            folder: Where to; it is made if it is not there.
        """
        with _reporting():
            from selfroute.evaluation.reporting.export import save  # noqa: PLC0415

            save(self, folder)


@contextmanager
def _reporting() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        msg = f'what an evaluation shows needs {error.name}: pip install "selfroute[evaluate]"'
        raise ImportError(msg) from error
