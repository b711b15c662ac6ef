"""Bounds replayed over looks pay for, and show, what their description says."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lanes import examples
from look_parts import graded
from selfroute.calls.plan import DOUBT_BELOW, STOP_BELOW
from selfroute_workbench.evaluation.looks import STRATEGIES, TRIED, Look
from selfroute_workbench.evaluation.replay import Rule

NUMBERS = st.none() | st.integers(0, 10).map(lambda tens: 10 * tens)


def look(step: Any) -> st.SearchStrategy[Look]:
    return st.builds(graded, st.just(1.0), st.integers(3, 99), st.booleans(), NUMBERS, NUMBERS, step=st.just(step))


LOOKS = st.tuples(look("rag"), st.lists(look("sections"), max_size=2), look("long_context"))


def told(doubt: tuple[int, ...], stop: tuple[int, int], looks: Any, documents: bool) -> list[Look]:
    """What the description of the bounds says, step by step, without the flow."""
    draft, sections, whole = looks

    paid: list[Look] = []
    for at, each in enumerate([draft, *sections]):
        paid.append(each)
        doubted = each.confidence is not None and each.confidence < doubt[: at + 1][-1]
        hopeless = each.prospect is not None and each.prospect < stop[min(at, 1)]
        if (each.declined and hopeless) or not (each.declined or doubted):
            return paid
    return [*paid, whole] if documents else paid


@examples(2_000)
@given(
    st.lists(st.sampled_from([0, 30, 50, 90]), min_size=1, max_size=3).map(tuple),
    st.tuples(st.sampled_from([0, 20, 50]), st.sampled_from([0, 50])),
    LOOKS,
    st.booleans(),
)
def test_rule_follow(doubt: tuple[int, ...], stop: tuple[int, int], looks: Any, documents: bool) -> None:
    draft, sections, whole = looks
    rungs = [Look(**{**_fields(each), "rung": at}) for at, each in enumerate(sections)]
    given_looks: Any = {TRIED: [draft, *rungs, whole]}
    found = Rule(TRIED, doubt, stop, documents).follow(given_looks, len(rungs))
    assert list(found or ()) == told(doubt, stop, (draft, rungs, whole), documents)


def _fields(look: Look) -> dict[str, Any]:
    return {name: getattr(look, name) for name in Look.__dataclass_fields__}


def test_rule_follow_missing() -> None:
    declined, whole = graded(0.0, 3, True), graded(1.0, 9, step="long_context")
    assert [Rule(name).follow({}, 0) for name in (*STRATEGIES, TRIED)] == [None] * 6
    assert Rule("paper").follow({"paper": [declined, whole]}, 0) == (declined, whole)
    assert Rule().follow({TRIED: [declined]}, 0) == (declined,), "there was nothing more to read"
    assert Rule(documents=False).follow({TRIED: [declined, whole]}, 1) is None, (
        "the sections were too large to be tried"
    )


def test_rule_default_bounds() -> None:
    assert (Rule().doubt_below, Rule().stop_below, Rule().documents) == (DOUBT_BELOW, STOP_BELOW, True)
