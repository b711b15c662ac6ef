"""The options of `selfroute evaluate`, and what follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from selfroute.command import evaluate_recorded
from selfroute.errors import ConfigurationError
from selfroute.evaluation import datasets
from selfroute.evaluation.asking.found import Order
from selfroute.evaluation.records import ALL_STRATEGIES, STRATEGIES, Strategy

DEFAULT_RETRIEVER = "contriever"
_PAPERS = 5


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command; see `selfroute evaluate --help`."""

    data: Sequence[str]
    model: str | None
    reader: bool
    long_context_model: str | None
    base_url: str | None
    priced_as: str | None
    long_context_priced_as: str | None
    temperature: float | None
    strategies: str | None
    k: str
    sweep: str | None
    retriever: str
    embeddings: str
    order: Order
    window: int | None
    limit: int | None
    data_folder: Path | None
    out: Path
    concurrency: int
    max_cost: float | None
    dry_run: bool
    drop_closed_book: bool
    explain_declines: bool
    compare_based_only_on: bool
    judge: str | None
    judge_base_url: str | None
    judge_priced_as: str | None
    grades: Path | None
    as_json: bool

    @property
    def chosen(self) -> list[Strategy]:
        """The strategies to compare.

        Raises:
            ConfigurationError: One is unknown.
        """
        if self.strategies is None:
            return [*(evaluate_recorded.STRATEGIES if self.is_recorded else STRATEGIES)]
        asked = [part.strip() for part in self.strategies.split(",")]
        if asked == ["all"]:
            return list(ALL_STRATEGIES)
        unknown = [part for part in asked if part not in ALL_STRATEGIES]
        if unknown:
            names = ", ".join(ALL_STRATEGIES)
            msg = f"--strategies takes all, or {names}, separated by commas; not {', '.join(map(repr, unknown))}"
            raise ConfigurationError(msg)
        return [one for one in ALL_STRATEGIES if one in asked]

    @property
    def is_recorded(self) -> bool:
        """Whether the replies that were recorded for the demo's questions are evaluated."""
        return list(self.data) == [datasets.DEMO] and self.model is None and not self.reader

    @property
    def changing_prompts(self) -> list[str]:
        """The options that were given and need other replies than those of the recording."""
        needing: dict[str, object] = {
            "--k": self.k != str(_PAPERS),
            "--sweep": self.sweep,
            "--retriever": self.retriever != DEFAULT_RETRIEVER,
            "--order": self.order != "score",
            "--window": self.window,
            "--drop-closed-book": self.drop_closed_book,
            "--explain-declines": self.explain_declines,
            "--compare-based-only-on": self.compare_based_only_on,
            "--judge": self.judge,
            "--priced-as": self.priced_as,
            "--temperature": self.temperature,
            "--base-url": self.base_url,
            "--long-context-model": self.long_context_model,
        }
        return [option for option, given in needing.items() if given is not None and given is not False]

    @property
    def retrievers(self) -> list[str]:
        """The retrievers to compare; the first one is for everything.

        Raises:
            ConfigurationError: There is none, or several and nothing to compare them by.
        """
        names = list(dict.fromkeys(part.strip() for part in self.retriever.split(",") if part.strip()))
        if not names:
            msg = f"--retriever takes names, separated by commas, such as all-MiniLM-L6-v2,bm25; not {self.retriever!r}"
            raise ConfigurationError(msg)
        if len(names) > 1 and "rag" not in self.chosen:
            msg = "several retrievers are compared by RAG: add rag to --strategies, or name one retriever"
            raise ConfigurationError(msg)
        return names

    @property
    def ks(self) -> list[int]:
        """The numbers of passages, the paper's first: tables for one k are for the first.

        Raises:
            ConfigurationError: They are not numbers from 1.
        """
        option, given = "--k", self.k
        if self.sweep is not None:
            name, _, given = self.sweep.partition("=")
            option = "--sweep k="
            if name.strip() != "k" or self.k != str(_PAPERS):
                msg = f"--sweep takes the place of --k, such as --sweep k=1,3,5,10; not {self.sweep!r}"
                raise ConfigurationError(msg)
        try:
            numbers = sorted({int(part) for part in given.split(",")}, key=lambda k: (k != _PAPERS, k))
        except ValueError:
            numbers = []
        if not numbers or min(numbers) < 1:
            msg = f"{option} takes numbers from 1, separated by commas, such as 1,5,10; not {given!r}"
            raise ConfigurationError(msg)
        return numbers
