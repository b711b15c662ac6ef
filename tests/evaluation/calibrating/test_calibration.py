"""The laws of choosing: the better rule wins, within the budget, by documents that it is not tested on."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from calibrating_parts import made_up
from selfroute.errors import ConfigurationError
from selfroute.evaluation.calibrating.calibrate import calibrate, rule_of
from selfroute.evaluation.calibrating.choosing import cross_validated
from selfroute.evaluation.calibrating.evidence import Evidence
from selfroute.evaluation.calibrating.rows import Look, Row, Rule
from selfroute.policies.stored import from_json, to_json

WORLDS = {
    "where the long context invents, nothing escalates": (
        made_up(200, 20, unanswerable=0.4, missed=0.02, incomplete=0, invents=0.9, graded=False),
        ("never", None),
    ),
    "where declines can be answered, they escalate": (made_up(200, 20, incomplete=0, graded=False), ("declined", None)),
    "where drafts are incomplete, doubts escalate": (
        [replace(row, sections=None, graded_sections=None) for row in made_up(200, 20, incomplete=0.1)],
        ("graded", None),
    ),
    "where sections answer as well, they come first": (made_up(200, 20), ("graded", 4_000)),
}


@pytest.mark.parametrize("world", WORLDS)
def test_the_better_rule_is_chosen(world: str) -> None:
    rows, (escalate, sections) = WORLDS[world]
    found = calibrate(rows)
    assert (found.escalate, found.sections) == (escalate, sections)
    if escalate == "graded":
        assert (found.doubt_below, found.stop_below) == (50, 20)
    assert all(gain.gain >= 0 for name, gain in found.gains.items() if name in ("rag", "self_route"))


def test_by_default_no_more_is_read_than_by_self_route() -> None:
    found = calibrate(made_up(300, 30, incomplete=0.7, missed=0.05, unanswerable=0.0))
    assert found.gains["self_route"].token_share <= 0


@pytest.mark.parametrize("share", [0.05, 0.15, 0.3, 0.5, 1.0])
def test_a_budget_holds_on_documents_that_were_not_chosen_by(share: float) -> None:
    found = calibrate(made_up(200, 20), token_share=share)
    assert found.figures.token_share <= max(share, 0.09) + 0.02  # a draft alone takes 0.09


def test_more_budget_is_never_worse() -> None:
    rows = made_up(200, 20)
    qualities = [calibrate(rows, token_share=share).figures.quality for share in (0.1, 0.3, 0.6, 1.0)]
    assert qualities == sorted(qualities)


def test_bounds_move_where_the_models_numbers_lie_elsewhere() -> None:
    timid = [
        replace(row, graded=replace(row.graded, confidence=row.graded.confidence and row.graded.confidence + 4))
        for row in made_up(200, 20)
        if row.graded
    ]
    moved = [
        replace(row, graded=replace(row.graded, confidence=65.0 if row.graded.confidence == 34 else 99.0))
        if row.graded and row.graded.confidence
        else row
        for row in timid
    ]
    assert calibrate(timid, token_share=1.0).doubt_below == 50
    assert calibrate(moved, token_share=1.0).doubt_below in (70, 90)


def test_noise_does_not_move_the_bounds() -> None:
    moved = 0
    for seed in range(8):
        chance = random.Random(seed)  # noqa: S311
        rows = [
            replace(
                row, graded=replace(row.graded, confidence=row.graded.confidence and chance.choice((10.0, 40.0, 99.0)))
            )
            for row in made_up(80, 16, incomplete=0, seed=seed)
            if row.graded
        ]
        found = calibrate(rows, token_share=1.0)
        moved += found.escalate == "graded" and (found.doubt_below, found.stop_below) != (50, 20)
    assert moved <= 1


@pytest.mark.parametrize(("questions", "documents"), [(49, 20), (20, 5), (1, 1)])
def test_too_few_questions_leave_the_published_rule(questions: int, documents: int) -> None:
    found = calibrate(made_up(questions, documents, invents=0.9))
    assert found.escalate == "declined"
    assert not found.options
    assert any("too few" in note for note in found.notes)


def test_few_documents_leave_the_bounds_and_say_so() -> None:
    found = calibrate(made_up(120, 6), token_share=1.0)
    assert rule_of(found) in (Rule("graded", 50, 20), Rule("graded_sections", 50, 20))
    assert any("these documents" in note for note in found.notes)


def test_one_document_is_enough_to_calibrate_for_it() -> None:
    assert calibrate(made_up(120, 1)).counts.documents == 1


def test_no_document_takes_part_in_the_choice_that_is_tested_on_it() -> None:
    """Only the questions of one document want the documents read; without it, nobody would read them."""
    quiet = Row(document="", rag=Look(1.0, 50, True), long_context=Look(0.0, 1000), answerable=False)
    loud = Row(document="loud", rag=Look(0.0, 50, True), long_context=Look(1.0, 1000), answerable=True)
    rows = [replace(quiet, document=f"d{n // 3}") for n in range(60)] + [loud] * 80
    assert calibrate(rows).escalate == "declined"
    trial, chosen = cross_validated(Evidence(rows))
    assert sum(trial.values[60:]) == 0
    assert chosen[Rule("rag")] == 1


def test_a_price_of_wrong_answers_turns_escalation_off() -> None:
    rows = made_up(300, 30, unanswerable=0.3, missed=0.2, incomplete=0, invents=0.4, graded=False)
    assert calibrate(rows, price_of_wrong=1).escalate == "declined"
    assert calibrate(rows, price_of_wrong=5).escalate == "never"


def test_without_unanswerable_questions_it_says_what_it_cannot_see() -> None:
    assert any("unanswerable" in note for note in calibrate(made_up(100, 20, unanswerable=0)).notes)


def test_partly_graded_questions_are_calibrated_without_grades_and_it_says_so() -> None:
    rows = [replace(row, graded=None) if number % 3 else row for number, row in enumerate(made_up(120, 20))]
    found = calibrate(rows)
    assert found.escalate != "graded"
    assert any("80 of the questions" in note for note in found.notes)


def test_the_options_are_those_of_the_constructor() -> None:
    assert calibrate(made_up(200, 20)).options == {
        "answerability": "graded",
        "doubt_below": 50,
        "stop_below": 20,
        "sections": 4000,
    }


@pytest.mark.parametrize(
    "wrong",
    [
        *({"token_share": value} for value in (0, 1.5, True, "0.3")),
        *({"price_of_wrong": value} for value in (-1, float("nan"), True, "3", None)),
    ],
    ids=str,
)
def test_values_that_mean_nothing_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        calibrate(made_up(60, 20), **wrong)


def test_no_questions_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="no question"):
        calibrate([])


PROMPTS = {"rag": "rag {input}", "graded": "two numbers {input}", "long_context": "long {input}"}


@pytest.mark.parametrize("world", WORLDS)
def test_the_prompts_of_other_steps_than_its_own_are_refused(world: str) -> None:
    rows, (escalate, _) = WORLDS[world]
    found = calibrate(rows, prompts=PROMPTS)
    own, other = ("graded", "rag") if escalate == "graded" else ("rag", "graded")
    found.check_prompts(PROMPTS[own], PROMPTS["long_context"])
    for wrong in ((PROMPTS[other], PROMPTS["long_context"]), (PROMPTS[own] + "long ", "{input}"), (PROMPTS[own],)):
        with pytest.raises(ConfigurationError, match="other prompts"):
            found.check_prompts(*wrong)


@pytest.mark.parametrize("prompts", [None, {}, {"rag": "a", "graded": "b"}], ids=["none", "no names", "one missing"])
def test_prompts_that_are_not_known_are_not_checked(prompts: dict[str, str] | None) -> None:
    calibrate(made_up(60, 20), prompts=prompts).check_prompts("any", "thing")


@pytest.mark.parametrize("world", WORLDS)
def test_json_brings_back_the_same_calibration(world: str) -> None:
    found = calibrate(WORLDS[world][0], model="m", prompts=PROMPTS, token_share=0.6)
    assert from_json(to_json(found)) == found
    assert len(to_json(found)) < 4_000
