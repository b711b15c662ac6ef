"""One verdict, with one certainty; and strategies that are equally good are seldom told apart by a run."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from choosing_parts import OPTIONS, evaluated, made_up, without
from lanes import examples
from look_parts import a_question, graded
from selfroute_workbench.evaluation.results import Evaluation
from selfroute_workbench.evaluation.statistics import Units
from selfroute_workbench.evaluation.trials import Case, Evidence
from selfroute_workbench.evaluation.verdict import verdict_of


@pytest.mark.parametrize(
    ("done", "said"),
    [
        (
            evaluated(made_up(49, 20)),
            "49 questions on 20 documents are too few; ask at least 50 questions on at least 10 documents. Yours: ",
        ),
        (evaluated(made_up(200, 9)), "200 questions on 9 documents are too few"),
        (evaluated(made_up(60, 20), language_model=False), "the built-in reader is not a language model"),
        (evaluated([without(case, "long_context") for case in made_up(60, 20)]), "no question was finished by every"),
        (Evaluation([], [], settings={"strategies": ["yours", "rag", "long_context"]}), "no question was finished"),
    ],
    ids=["questions", "documents", "reader", "unfinished", "nothing"],
)
def test_verdict_cannot_tell(done: Evaluation, said: str) -> None:
    found = done.verdict()
    assert found.sentence.startswith(f"Cannot tell whether yours pays: {said}")
    assert (found.certainty, found.strategy, found.options, len(found.lines)) == ("cannot tell", None, None, 1)


Prices = tuple[float | None, float | None, float | None]
# The quality of yours, RAG and the long context; their dollars; what to take, and what is said.
DECISIONS: dict[str, tuple[tuple[float, float, float], Prices, str, str]] = {
    "the cheapest of equals": (
        (1.0, 1.0, 1.0),
        (0.3, 0.2, 0.1),
        "long_context",
        "the long context is as good for less",
    ),
    "by tokens without prices": ((1.0, 1.0, 1.0), (0.3, 0.2, None), "rag", "RAG is as good for less"),
    "yours": ((1.0, 0.5, 1.0), (0.2, 0.1, 0.9), "yours", "It pays: nothing that costs less is level with it."),
    "yours is not enough": (
        (0.5, 0.5, 1.0),
        (0.2, 0.1, 0.9),
        "long_context",
        "not enough here: the long context is better",
    ),
    "RAG is better": ((0.5, 1.0, 0.5), (0.2, 0.1, 0.9), "rag", "It does not pay here: RAG is better for less"),
}


@pytest.mark.parametrize("case", DECISIONS.values(), ids=DECISIONS)
def test_verdict_takes_the_cheapest_of_the_best(case: tuple[tuple[float, ...], Prices, str, str]) -> None:
    quality, dollars, taken, said = case
    steps: dict[Any, Any] = {"yours": ("rag", 20), "rag": ("rag", 10), "long_context": ("long_context", 90)}
    looks = {
        name: [graded(quality[at], tokens, dollars=dollars[at], step=step)]
        for at, (name, (step, tokens)) in enumerate(steps.items())
    }
    found = verdict_of(Evidence([Case(f"d{number % 12}", looks, True) for number in range(60)]), OPTIONS)
    assert (found.strategy, found.options) == (taken, OPTIONS[taken])
    assert said in found.sentence
    assert "22.2 % of the long context's tokens, 2.0 times RAG's" in found.sentence
    assert ("The intervals do not tell yours from RAG." in found.sentence) is (
        quality[0] == quality[1] and taken != "rag"
    )
    assert found.lines[1:] == (() if taken == "yours" else (f"Options: {json.dumps(OPTIONS[taken])}",))


# --- intervals -----------------------------------------------------------------------------------------------------

VALUES = st.lists(st.sampled_from((0.0, 0.2, 0.5, 0.8, 1.0)), min_size=2, max_size=40)


@examples(30)
@given(VALUES)
def test_interval_laws(values: list[float]) -> None:
    units = Units([str(number) for number in range(len(values))])
    found = units.interval(values)
    if len(set(values)) == 1:
        assert found is None
    else:
        assert found
        mean = sum(values) / len(values)
        assert min(values) - 1e-9 <= found[0] <= mean + 1e-9
        assert mean - 1e-9 <= found[1] <= max(values) + 1e-9
    assert units.interval(values) == found


def test_interval_of_theory() -> None:
    low, high = Units([str(n) for n in range(400)]).interval([float(n % 2) for n in range(400)]) or (0, 0)
    assert low == pytest.approx(0.5 - 1.96 * 0.5 / 20, abs=0.005)
    assert high == pytest.approx(0.5 + 1.96 * 0.5 / 20, abs=0.005)
    error = Units([str(n) for n in range(400)]).standard_error([float(n % 2) for n in range(400)])
    assert error == pytest.approx(0.5 / 20, rel=0.01)


def test_interval_of_clusters() -> None:
    values = [float(n // 10 % 2) for n in range(400)]  # ten alike on each of forty documents
    low, high = Units([str(n) for n in range(400)]).interval(values) or (0, 0)
    wide_low, wide_high = Units([str(n // 10) for n in range(400)]).interval(values) or (0, 0)
    assert wide_high - wide_low == pytest.approx((high - low) * np.sqrt(10), rel=0.1)


def test_interval_of_few_documents() -> None:
    values = [float(n % 2) for n in range(40)]
    for documents in (1, 9):
        assert Units([str(n % documents) for n in range(40)]).interval(values) == Units(
            [str(n) for n in range(40)]
        ).interval(values)
    bare = [a_question(str(n), document=None) for n in range(40)]
    assert len({each.document_id for each in bare}) == 40, "questions that name no document count by themselves"
    assert len({a_question(str(n), document="The text.").document_id for n in range(40)}) == 1
    assert Units(["a"]).interval([0.5]) is None
    assert Units([]).interval([]) is None
