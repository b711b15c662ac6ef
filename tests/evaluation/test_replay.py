"""A strategy replayed over looks pays for, and shows, what its description says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes import examples
from look_parts import graded
from selfroute_workbench.evaluation.looks import STRATEGIES, Look, Strategy
from selfroute_workbench.evaluation.replay import GRADED, WITH_SECTIONS, Rule

NUMBERS = st.none() | st.integers(0, 10).map(lambda tens: 10 * tens)
LOOK = st.builds(graded, st.just(1.0), st.integers(1, 99), st.booleans(), NUMBERS, NUMBERS)
LOOKS = st.fixed_dictionaries(
    {"rag": st.tuples(LOOK), "graded": st.tuples(LOOK), "long_context": st.tuples(LOOK)},
    optional={"sections": st.lists(LOOK, max_size=2), "graded_sections": st.lists(LOOK, max_size=2)},
)


def told(strategy: Strategy, doubt: tuple[int, ...], stop: int, looks: dict[str, Any]) -> list[Look]:
    """What the description of a strategy says, step by step, without the flow."""
    if strategy == "long_context":
        return list(looks["long_context"])
    numbered = strategy in GRADED

    def goes_on(look: Look, below: int) -> bool:
        return look.declined or (numbered and look.confidence is not None and look.confidence < below)

    (draft,) = looks["graded" if numbered else "rag"]
    paid = [draft]
    hopeless = numbered and draft.declined and draft.prospect is not None and draft.prospect < stop
    if strategy == "rag" or hopeless or not goes_on(draft, doubt[0]):
        return paid
    for rung, look in enumerate(looks.get("graded_sections" if numbered else "sections", ())):
        if strategy not in WITH_SECTIONS:
            break
        paid.append(look)
        if not goes_on(look, doubt[: rung + 2][-1]):
            return paid
    return [*paid, *looks["long_context"]]


@examples(2_000)
@given(
    st.sampled_from(STRATEGIES),
    st.lists(st.sampled_from([0, 30, 50, 90]), min_size=1, max_size=3).map(tuple),
    st.sampled_from([0, 20, 50]),
    LOOKS,
)
def test_rule_follow(strategy: Strategy, doubt: tuple[int, ...], stop: int, looks: dict[str, Any]) -> None:
    assert list(Rule(strategy, doubt, stop).follow(looks) or ()) == told(strategy, doubt, stop, looks)


@pytest.mark.parametrize(
    ("strategy", "lacking"),
    [("rag", "rag"), ("self_route", "long_context"), ("graded", "graded"), ("long_context", "long_context")],
)
def test_rule_follow_missing_look(strategy: Strategy, lacking: str) -> None:
    declined = graded(0.0, 1, True)
    looks: dict[Any, Any] = {step: [declined] for step in ("rag", "graded", "long_context") if step != lacking}
    assert Rule(strategy).follow(looks) is None


def test_rule_default_bounds() -> None:
    assert {name: (Rule.default(name).doubt_below, Rule.default(name).stop_below) for name in STRATEGIES} == {
        **dict.fromkeys(STRATEGIES, ((0,), 0)),
        **dict.fromkeys(GRADED, ((50,), 20)),
    }
