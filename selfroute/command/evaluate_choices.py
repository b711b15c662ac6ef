"""Reads the options of `selfroute evaluate` that name several things, and checks that they go together."""

from __future__ import annotations

from dataclasses import dataclass

from selfroute.command.evaluate_recorded import STRATEGIES as RECORDED
from selfroute.command.evaluate_recorded import uses_recording
from selfroute.command.evaluation_options import Evaluate
from selfroute.errors import ConfigurationError
from selfroute.evaluation.records import ALL_STRATEGIES, STRATEGIES, WITH_SECTIONS, Strategy

_PAPERS = 5


@dataclass(frozen=True, slots=True)
class Choices:
    """The options, and what several of them name.

    Attributes:
        options: The options.
        strategies: The strategies to compare.
        retrievers: The retrievers to compare; the first one is for everything.
        ks: The numbers of passages, the paper's first: tables for one k are for the first.
    """

    options: Evaluate
    strategies: list[Strategy]
    retrievers: list[str]
    ks: list[int]

    @classmethod
    def of(cls, options: Evaluate) -> Choices:
        """Read the options.

        Raises:
            ConfigurationError: One cannot be meant.
        """
        strategies = _strategies(options)
        return cls(options, strategies, _retrievers(options, strategies), _ks(options))

    @property
    def searching(self) -> list[str]:
        """The retrievers that the strategies need."""
        return self.retrievers if set(self.strategies) - {"long_context"} else []

    @property
    def with_sections(self) -> int:
        """How many strategies read sections."""
        return len({*WITH_SECTIONS} & {*self.strategies})

    @property
    def perhaps_whole(self) -> bool:
        """Whether documents are read only for some questions."""
        return "long_context" not in self.strategies and bool({*self.strategies} - {"rag"})


def _strategies(options: Evaluate) -> list[Strategy]:
    if options.strategies is None:
        return [*(RECORDED if uses_recording(options) else STRATEGIES)]
    asked = [part.strip() for part in options.strategies.split(",")]
    if asked == ["all"]:
        return list(ALL_STRATEGIES)
    unknown = [part for part in asked if part not in ALL_STRATEGIES]
    if unknown:
        names = ", ".join(ALL_STRATEGIES)
        msg = f"--strategies takes all, or {names}, separated by commas; not {', '.join(map(repr, unknown))}"
        raise ConfigurationError(msg)
    return [one for one in ALL_STRATEGIES if one in asked]


def _retrievers(options: Evaluate, strategies: list[Strategy]) -> list[str]:
    names = list(dict.fromkeys(part.strip() for part in options.retriever.split(",") if part.strip()))
    if not names:
        msg = f"--retriever takes names, separated by commas, such as all-MiniLM-L6-v2,bm25; not {options.retriever!r}"
        raise ConfigurationError(msg)
    if len(names) > 1 and "rag" not in strategies:
        msg = "several retrievers are compared by RAG: add rag to --strategies, or name one retriever"
        raise ConfigurationError(msg)
    return names


def _ks(options: Evaluate) -> list[int]:
    option, given = "--k", options.k
    if options.sweep is not None:
        name, _, given = options.sweep.partition("=")
        option = "--sweep k="
        if name.strip() != "k" or options.k != Evaluate.k:
            msg = f"--sweep takes the place of --k, such as --sweep k=1,3,5,10; not {options.sweep!r}"
            raise ConfigurationError(msg)
    try:
        numbers = sorted({int(part) for part in given.split(",")}, key=lambda k: (k != _PAPERS, k))
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        msg = f"{option} takes numbers from 1, separated by commas, such as 1,5,10; not {given!r}"
        raise ConfigurationError(msg)
    return numbers
