"""Small questions, results and evaluations, for the tests of `selfroute.evaluation`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from selfroute.evaluation.questions import Question
from selfroute.evaluation.records import Look, LookStep
from selfroute.evaluation.results import Evaluation, Failure, Result, Strategy

REFUSAL = "unanswerable"


def a_question(id: str = "1", dataset: str = "narrativeqa", **fields: Any) -> Question:  # noqa: A002
    """A question on a document of its own."""
    name = f"{dataset}-{id}".replace(" ", "-")
    fields = {"answers": (f"answer {id}",), "document": f"The document of {name}.", **fields}
    return Question(dataset, id, f"What is {id}?", **fields)


def counts(input_tokens: int, output_tokens: int = 1) -> dict[str, int]:
    """The usage of a step."""
    return {"input_tokens": input_tokens, "output_tokens": output_tokens, "cached_tokens": 0}


def usage(
    rag: int | None = None,
    long_context: int | None = None,
    *,
    long_context_only: int | None = None,
    cost: str | None = None,
    cost_long_context_only: str | None = None,
) -> dict[str, Any]:
    """The usage of a chain, from the input tokens of its steps; each step writes one token."""
    return {
        "rag": None if rag is None else counts(rag),
        "long_context": None if long_context is None else counts(long_context),
        "total_tokens": sum(step + 1 for step in (rag, long_context) if step is not None),
        "estimated": False,
        "long_context_only": long_context_only,
        "token_ratio": None,
        "cost": cost,
        "cost_long_context_only": cost_long_context_only,
        "cost_unknown": None if cost else "no price",
    }


def a_result(strategy: Strategy = "rag", score: float = 1.0, **fields: Any) -> Result:
    """A result; a strategy with a first step declined if its signal says so.

    Args:
        strategy: Which strategy.
        score: Its score.
        fields: Any field of `Result`, and the `signal` of the decision.
    """
    drafted = strategy in ("rag", "self_route")
    signal = fields.pop("signal", "answered")
    declined = signal != "answered"
    alone = strategy == "rag" or (strategy == "self_route" and not declined)
    usual: dict[str, Any] = {
        "dataset": "narrativeqa",
        "id": "1",
        "k": 5 if drafted else None,
        "based_only_on": False,
        "answer": REFUSAL if declined and strategy == "rag" else f"{strategy} {score}",
        "route": None if strategy == "closed_book" else "rag" if alone else "long_context",
        "answerable": not (declined and strategy == "rag"),
        "decision": {"declined": declined, "signal": signal, "evidence": ""} if drafted else {},
        "usage": usage(10 if drafted else None, None if alone else 100),
        "draft": (REFUSAL if declined else f"{strategy} {score}") if drafted else None,
        "passages": (),
        "cut": False,
        "seconds": 0.5,
        "exact": float(score == 1),
        "set_f1": score,
    }
    return Result(strategy=strategy, score=score, **{**usual, **fields})


def a_look(step: LookStep, answer: str, **fields: Any) -> Look:
    """A look that answers."""
    usual = {
        "dataset": "narrativeqa",
        "id": "1",
        "k": 5,
        "declined": False,
        "prospect": None,
        "confidence": None,
        "input_tokens": 10,
        "output_tokens": 1,
        "cost": None,
        "score": 0.0,
    }
    return Look(step=step, answer=answer, **{**usual, **fields})


def results_of(
    scores: Mapping[Strategy, Iterable[float]], *, dataset: str = "narrativeqa", **fields: Any
) -> list[Result]:
    """The results of some strategies on the questions "0", "1" and so on."""
    return [
        a_result(strategy, score, dataset=dataset, id=str(number), **fields)
        for strategy, of_strategy in scores.items()
        for number, score in enumerate(of_strategy)
    ]


def an_evaluation(results: Iterable[Result], failures: Iterable[Failure] = (), **fields: Any) -> Evaluation:
    """An evaluation of the questions that the results and failures are on."""
    results, failures = list(results), list(failures)
    keys = dict.fromkeys((each.dataset, each.id) for each in [*results, *failures])
    questions = [a_question(name, dataset) for dataset, name in keys]
    return Evaluation(**{"questions": questions, "results": results, "failures": failures, **fields})


def of_the_paper(evaluation: Evaluation) -> Evaluation:
    """The same evaluation, as if its data sets had been loaded as the paper's."""
    names = list(dict.fromkeys(question.dataset for question in evaluation.questions))
    return replace(evaluation, settings={**evaluation.settings, "data": names})
