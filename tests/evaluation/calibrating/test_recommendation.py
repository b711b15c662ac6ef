"""The laws: what is recommended is level with the best, nothing level is cheaper, and its words claim no more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from calibrating_parts import made_up
from selfroute.errors import ConfigurationError
from selfroute.evaluation.calibrating.evidence import Evidence
from selfroute.evaluation.calibrating.figures import frontier_of
from selfroute.evaluation.calibrating.recommendation import recommend
from selfroute.evaluation.calibrating.rows import Look, Row
from selfroute.evaluation.calibrating.wording import code_of, words_of
from selfroute.policies.calibration import STRATEGIES

RICH = made_up(200, 20)
HOPELESS = made_up(200, 20, unanswerable=0.5, missed=0.01, incomplete=0, invents=0.5, graded=False)
PLAIN = made_up(200, 20, incomplete=0, graded=False)
READS = made_up(200, 20, incomplete=0.4, graded=False)


@pytest.mark.parametrize(
    ("rows", "strategy", "code"),
    [
        (RICH, "graded_sections", 'answerability="graded", doubt_below=50, stop_below=20, sections=4000,'),
        (HOPELESS, "rag", "from selfroute.policies import Never\n\nescalation=Never(),"),
        (PLAIN, "self_route", "# no argument: this is the default"),
        (READS, "long_context", 'start="long_context",'),
    ],
    ids=["graded", "rag", "self_route", "long_context"],
)
def test_the_cheapest_level_strategy_is_named_with_its_code(rows: list[Row], strategy: str, code: str) -> None:
    found = recommend(rows)
    assert (found.strategy, code_of(found.rule, found.sections)) == (strategy, code)
    assert not found.behind[found.strategy].is_distinguishable
    cheaper = [
        name for name, each in found.figures.items() if each.token_share < found.figures[strategy].token_share - 1e-9
    ]
    assert all(found.behind[name].gain < -0.03 or found.behind[name].is_distinguishable for name in cheaper)


def test_dollars_decide_where_they_are_known() -> None:
    """The whole document is cached here: more tokens, fewer dollars."""
    rows = [
        replace(
            row,
            rag=replace(row.rag, dollars=0.03),
            long_context=replace(row.long_context, dollars=0.01),
        )
        for row in PLAIN
    ]
    assert recommend(PLAIN).strategy == "self_route"
    assert recommend(rows).strategy == "long_context"


def test_below_ten_documents_it_claims_nothing_beyond_them() -> None:
    words = words_of(recommend(made_up(100, 9)))
    assert words.startswith("On these documents, ")
    assert "says nothing about other documents" in words
    assert "On these documents" not in words_of(recommend(made_up(100, 10)))


def test_too_few_questions_leave_self_route() -> None:
    found = recommend(made_up(30, 15, missed=0.05, incomplete=0))
    assert found.strategy == "self_route"
    assert "too few" in words_of(found)


def test_the_break_even_share_is_where_self_route_is_as_good_as_rag() -> None:
    declined = {"rag": Look(0.0, 10, True), "long_context": Look(1.0, 100)}
    kept = {"rag": Look(1.0, 10), "long_context": Look(1.0, 100)}
    invented = {"rag": Look(1.0, 10, True), "long_context": Look(0.0, 100)}
    rows = [Row(document=f"d{n}", answerable=True, **(declined if n % 4 == 0 else kept)) for n in range(80)]
    rows += [Row(document=f"e{n}", answerable=False, **(invented if n % 2 else declined)) for n in range(20)]
    rows = [replace(row, rag=replace(row.rag, quality=1.0)) if row.answerable is False else row for row in rows]
    found = recommend(rows)
    assert found.break_even.own == pytest.approx(0.2)
    assert found.break_even.share == pytest.approx(0.25 / (0.25 + 0.5))
    assert "fewer than 33 %" in words_of(found)
    at_it = [row for row in rows if row.answerable] + [row for row in rows if not row.answerable] * 2
    both = recommend(at_it)
    assert both.figures["rag"].quality == pytest.approx(both.figures["self_route"].quality)


@pytest.mark.parametrize("unanswerable", [0.0, 1.0])
def test_there_is_no_break_even_share_without_both_kinds(unanswerable: float) -> None:
    found = recommend(made_up(60, 20, unanswerable=unanswerable))
    assert found.break_even.share is None
    assert "needs questions of both kinds" in words_of(found)


def test_the_route_matrix_counts_every_question_once() -> None:
    matrix = recommend(RICH).routes["self_route"]
    missed, half = (sum(row.rag.quality == quality and row.answerable is True for row in RICH) for quality in (0, 0.5))
    assert (matrix.needed_escalated, matrix.needed_kept) == (missed, half)
    assert matrix.idle_escalated == sum(row.answerable is False for row in RICH)
    assert matrix.idle_kept == len(RICH) - missed - half - matrix.idle_escalated


def test_the_frontier_holds_every_rule_and_marks_those_that_nothing_beats() -> None:
    points = frontier_of({None: Evidence(RICH)}, sections=(4_000, 16_000))
    assert {point.rule.strategy for point in points} == set(STRATEGIES)
    shares = [point.figures.token_share for point in points]
    assert shares == sorted(shares)
    for point in points:
        better = [p for p in points if p.figures.quality > point.figures.quality - 1e-9 and p is not point]
        cheaper = any(p.figures.token_share < point.figures.token_share - 1e-9 for p in better)
        assert not (point.efficient and cheaper)
    assert all((point.sections == (4_000, 16_000)) is point.rule.reads_sections for point in points)


def test_only_some_strategies_can_be_considered() -> None:
    assert recommend(RICH, among=["rag", "long_context"]).strategy == "long_context"
    with pytest.raises(ConfigurationError, match="none of these"):
        recommend(PLAIN, among=["graded"])
