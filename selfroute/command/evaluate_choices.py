"""Reads the options of `selfroute evaluate` that name several things, and checks that they go together."""

from __future__ import annotations

from selfroute.command import evaluate_recorded
from selfroute.command.evaluation_options import Evaluate
from selfroute.errors import ConfigurationError
from selfroute.evaluation import datasets
from selfroute.evaluation.records import ALL_STRATEGIES, STRATEGIES, Strategy

_PAPERS = 5


def chosen_strategies(options: Evaluate) -> list[Strategy]:
    """Return the strategies to compare.

    Raises:
        ConfigurationError: One is unknown.
    """
    if options.strategies is None:
        return [*(evaluate_recorded.STRATEGIES if uses_recording(options) else STRATEGIES)]
    asked = [part.strip() for part in options.strategies.split(",")]
    if asked == ["all"]:
        return list(ALL_STRATEGIES)
    unknown = [part for part in asked if part not in ALL_STRATEGIES]
    if unknown:
        names = ", ".join(ALL_STRATEGIES)
        msg = f"--strategies takes all, or {names}, separated by commas; not {', '.join(map(repr, unknown))}"
        raise ConfigurationError(msg)
    return [one for one in ALL_STRATEGIES if one in asked]


def uses_recording(options: Evaluate) -> bool:
    """Return whether the replies that were recorded for the demo's questions are evaluated."""
    return list(options.data) == [datasets.DEMO] and options.model is None and not options.reader


def needs_more(options: Evaluate) -> list[str]:
    """Return the options that were given and need other replies than those of the recording."""
    needing: dict[str, object] = {
        "--k": options.k != Evaluate.k,
        "--sweep": options.sweep,
        "--retriever": options.retriever != Evaluate.retriever,
        "--order": options.order != "score",
        "--window": options.window,
        "--drop-closed-book": options.drop_closed_book,
        "--explain-declines": options.explain_declines,
        "--compare-based-only-on": options.compare_based_only_on,
        "--judge": options.judge,
        "--priced-as": options.priced_as,
        "--temperature": options.temperature,
        "--base-url": options.base_url,
        "--long-context-model": options.long_context_model,
    }
    return [option for option, given in needing.items() if given is not None and given is not False]


def chosen_retrievers(options: Evaluate) -> list[str]:
    """Return the retrievers to compare; the first one is for everything.

    Raises:
        ConfigurationError: There is none, or several and nothing to compare them by.
    """
    names = list(dict.fromkeys(part.strip() for part in options.retriever.split(",") if part.strip()))
    if not names:
        msg = f"--retriever takes names, separated by commas, such as all-MiniLM-L6-v2,bm25; not {options.retriever!r}"
        raise ConfigurationError(msg)
    if len(names) > 1 and "rag" not in chosen_strategies(options):
        msg = "several retrievers are compared by RAG: add rag to --strategies, or name one retriever"
        raise ConfigurationError(msg)
    return names


def chosen_ks(options: Evaluate) -> list[int]:
    """Return the numbers of passages, the paper's first: tables for one k are for the first.

    Raises:
        ConfigurationError: They are not numbers from 1.
    """
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
