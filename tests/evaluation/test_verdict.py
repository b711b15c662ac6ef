"""One verdict, with one certainty; and strategies that are equally good are seldom told apart by a run."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from choosing_parts import evaluated, made_up, without
from lanes import examples
from look_parts import graded
from selfroute_workbench.evaluation.replay import Rule
from selfroute_workbench.evaluation.results import Evaluation
from selfroute_workbench.evaluation.statistics import Units
from selfroute_workbench.evaluation.trials import Evidence, Row
from selfroute_workbench.evaluation.verdict import verdict_of


@pytest.mark.parametrize(
    ("done", "said"),
    [
        (
            evaluated(made_up(49, 20)),
            "49 questions on 20 documents are too few; ask at least 50 questions on at least 10",
        ),
        (evaluated(made_up(200, 9)), "200 questions on 9 documents are too few"),
        (evaluated(made_up(60, 20), strategies=["rag", "self_route"]), "the long context was not among the strategies"),
        (evaluated(made_up(60, 20), language_model=False), "the built-in reader is not a language model"),
        (evaluated([without(row, "long_context") for row in made_up(60, 20)]), "no question was finished by every"),
        (Evaluation([], [], settings={"strategies": ["rag", "long_context"]}), "no question was finished"),
    ],
    ids=["questions", "documents", "strategies", "reader", "unfinished", "nothing"],
)
def test_verdict_cannot_tell(done: Evaluation, said: str) -> None:
    found = done.verdict()
    assert found.sentence.startswith(f"Cannot tell which strategy is best: {said}")
    assert (found.certainty, found.strategy, found.options, len(found.lines)) == ("cannot tell", None, None, 1)


@pytest.mark.parametrize(("dollars", "taken"), [((0.2, 0.1), "long_context"), ((0.2, None), "rag")], ids=str)
def test_verdict_takes_the_cheapest(dollars: tuple[float, float | None], taken: str) -> None:
    looks = {
        "rag": [graded(1.0, 10, dollars=dollars[0])],
        "long_context": [graded(1.0, 90, dollars=dollars[1])],
    }
    rows = [Row(f"d{number % 12}", looks, True) for number in range(60)]  # type: ignore[arg-type]
    rules = {"rag": Rule("rag"), "long_context": Rule("long_context")}
    assert verdict_of(Evidence(rows), rules, 4_000).strategy == taken  # type: ignore[arg-type]


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
    assert Units(["a"]).interval([0.5]) is None
    assert Units([]).interval([]) is None
