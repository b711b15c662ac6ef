"""The law: a question ends at the first reply that the rule lets stand, and pays for every reply before it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from selfroute.errors import ConfigurationError
from selfroute.evaluation.calibrating.rows import Look, Row, Rule, value_of

WHOLE = Look(1.0, 1000, dollars=0.1)
ANSWERED, DECLINED = Look(0.5, 100, dollars=0.01), Look(0.0, 100, declined=True, dollars=0.01)
SECTIONS = Look(0.75, 300, dollars=0.03)


def graded(*, declined: bool = False, prospect: float | None = 90, confidence: float | None = 90) -> Look:
    return Look(0.25, 110, declined, prospect, confidence, 0.011)


def row(rag: Look = ANSWERED, **looks: Look | None) -> Row:
    return Row(document="d", rag=rag, long_context=WHOLE, **looks)


CASES = {
    "RAG keeps a decline": (Rule("rag"), row(DECLINED), 0.0, 100),
    "the long context reads at once": (Rule("long_context"), row(), 1.0, 1000),
    "Self-Route keeps an answer": (Rule("self_route"), row(), 0.5, 100),
    "Self-Route escalates a decline": (Rule("self_route"), row(DECLINED), 1.0, 1100),
    "an answer from sections ends it": (Rule("sections"), row(DECLINED, sections=SECTIONS), 0.75, 400),
    "sections that decline are paid": (
        Rule("sections"),
        row(DECLINED, sections=replace(SECTIONS, declined=True)),
        1.0,
        1400,
    ),
    "without sections the documents follow": (Rule("sections"), row(DECLINED), 1.0, 1100),
    "an answered question reads no sections": (Rule("sections"), row(sections=SECTIONS), 0.5, 100),
    "a sure answer stands": (Rule("graded", 50, 20), row(graded=graded(confidence=50)), 0.25, 110),
    "a doubted answer escalates": (Rule("graded", 50, 20), row(graded=graded(confidence=49)), 1.0, 1110),
    "no confidence is no doubt": (Rule("graded", 50, 20), row(graded=graded(confidence=None)), 0.25, 110),
    "a hopeless decline ends": (Rule("graded", 50, 20), row(graded=graded(declined=True, prospect=19)), 0.25, 110),
    "a hopeful decline escalates": (Rule("graded", 50, 20), row(graded=graded(declined=True, prospect=20)), 1.0, 1110),
    "no prospect is hope": (Rule("graded", 50, 20), row(graded=graded(declined=True, prospect=None)), 1.0, 1110),
    "a decline is not judged by its confidence": (
        Rule("graded", 50, 20),
        row(graded=graded(declined=True, prospect=10, confidence=0)),
        0.25,
        110,
    ),
    "a doubted answer from sections goes on": (
        Rule("graded_sections", 50, 20),
        row(graded=graded(confidence=10), graded_sections=replace(SECTIONS, confidence=49)),
        1.0,
        1410,
    ),
    "a sure answer from sections ends it": (
        Rule("graded_sections", 50, 20),
        row(graded=graded(confidence=10), graded_sections=replace(SECTIONS, confidence=50)),
        0.75,
        410,
    ),
    "sections have no prospect that could end it": (
        Rule("graded_sections", 50, 20),
        row(graded=graded(confidence=10), graded_sections=replace(SECTIONS, declined=True, prospect=0)),
        1.0,
        1410,
    ),
    "plain strategies do not look at numbers": (Rule("self_route"), row(replace(ANSWERED, confidence=1.0)), 0.5, 100),
}


@pytest.mark.parametrize("name", CASES)
def test_a_rule_leads_a_question_through_its_replies(name: str) -> None:
    rule, question, quality, tokens = CASES[name]
    outcome = rule.follow(question)
    assert (outcome.shown.quality, outcome.tokens) == (quality, tokens)
    assert outcome.dollars == pytest.approx(tokens / 10_000)


def test_one_unknown_price_makes_the_cost_unknown() -> None:
    assert Rule("self_route").follow(row(replace(DECLINED, dollars=None))).dollars is None


def test_a_graded_strategy_says_that_it_needs_graded_drafts() -> None:
    with pytest.raises(ConfigurationError, match="graded draft"):
        Rule("graded").follow(row())


@pytest.mark.parametrize("wrong", [{"quality": 1.1}, {"quality": float("nan")}, {"tokens": -1}, {"dollars": -0.1}])
def test_a_look_refuses_impossible_figures(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError):
        replace(ANSWERED, **wrong)


@pytest.mark.parametrize(
    ("quality", "declined", "answerable", "price", "value"),
    [
        (1.0, False, True, 3, 1.0),
        (0.5, False, True, 1, 0.5),
        (0.5, False, True, 3, -0.5),
        (0.0, False, True, 3, -2.0),
        (0.0, False, None, 3, -2.0),
        (0.0, False, False, 3, -2.0),
        (0.0, True, True, 3, 0.0),
        (1.0, True, False, 3, 1.0),
        (0.0, False, False, 0.25, 0.75),
        (0.0, False, True, 0.25, 0.0),
    ],
)
def test_the_price_of_a_wrong_answer_is_what_it_costs_beside_a_decline(
    quality: float, declined: bool, answerable: bool | None, price: float, value: float
) -> None:
    assert value_of(Look(quality, 1, declined), answerable, price) == pytest.approx(value)
