"""The law: what an evaluation keeps of each step becomes the rows that it was made of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from calibrating_parts import evaluated, made_up
from evaluation_parts import a_question
from selfroute.errors import ConfigurationError
from selfroute.evaluation.calibrating.calibrate import calibrate
from selfroute.evaluation.calibrating.from_results import material_of
from selfroute.evaluation.calibrating.rows import Row
from selfroute.evaluation.results import Evaluation
from selfroute.policies.calibration import hash_of

PRICED = [
    replace(
        row,
        **{
            name: replace(look, dollars=look.tokens / 1e5)
            for name in ("rag", "long_context", "sections", "graded", "graded_sections")
            if (look := getattr(row, name))
        },
    )
    for row in made_up(40, 12)
]
PLAIN = made_up(40, 12, graded=False)
WORLDS = {
    "every strategy": made_up(80, 12),
    "with prices": PRICED,
    "plain strategies only": PLAIN,
    "long context that invents": made_up(40, 12, unanswerable=0.5, invents=0.5),
    "graded without sections": [replace(row, sections=None, graded_sections=None) for row in made_up(40, 12)],
    "drafts without numbers": [
        replace(row, graded=replace(row.graded, prospect=None, confidence=None))
        for row in made_up(40, 12)
        if row.graded
    ],
}


def without_documents(rows: Any) -> list[Row]:
    return [replace(row, document="") for row in rows]


@pytest.mark.parametrize("judged", [True, False], ids=["judged", "by F1"])
@pytest.mark.parametrize("world", WORLDS)
def test_results_become_the_rows_that_they_were_made_of(world: str, judged: bool) -> None:
    rows = WORLDS[world]
    found = material_of(evaluated(rows, judged=judged)).rows
    assert without_documents(found) == without_documents(rows)
    partitions = [
        {tuple(n for n, other in enumerate(each) if other.document == row.document) for row in each}
        for each in (rows, found)
    ]
    assert partitions[0] == partitions[1]


@pytest.mark.parametrize("world", WORLDS)
def test_a_saved_evaluation_becomes_the_same_rows(world: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from selfroute.evaluation.reporting import export  # noqa: PLC0415

    monkeypatch.setattr(export, "plots", lambda *_: {})  # drawing takes a second
    made = evaluated(WORLDS[world])
    made.save(tmp_path)
    assert without_documents(material_of(Evaluation.load(tmp_path)).rows) == without_documents(material_of(made).rows)


def test_settings_are_kept_with_the_calibration() -> None:
    prompts = {"rag": "r", "graded": "g", "long_context": "l"}
    policy = evaluated(made_up(200, 20), sections=8000, model="openai:gpt", prompts=prompts).calibrate()
    assert policy.calibration.sections == policy.options["sections"] == 8000
    assert (policy.calibration.model, policy.calibration.prompts) == ("openai:gpt", hash_of("g", "l"))


def test_calibrating_an_evaluation_is_calibrating_its_rows() -> None:
    rows = made_up(120, 20)
    policy = evaluated(rows).calibrate(token_share=0.3, price_of_wrong=2)
    assert policy.calibration == calibrate(material_of(evaluated(rows)).rows, token_share=0.3, price_of_wrong=2)


@pytest.mark.parametrize(
    ("changed", "remark"),
    [
        ({"judged": False}, "evaluate with --judge"),
        ({"rows": PLAIN}, "strategy graded"),
    ],
    ids=["no judge", "no graded strategy"],
)
def test_it_says_what_the_evaluation_cannot_show_and_goes_on(changed: dict[str, Any], remark: str) -> None:
    given = {"rows": made_up(120, 20), **changed}
    notes = evaluated(given.pop("rows"), **given).calibrate().calibration.notes
    assert any(remark in note for note in notes)
    assert not any(remark in note for note in evaluated(made_up(120, 20)).calibrate().calibration.notes)


def test_questions_that_were_not_finished_or_graded_are_left_out_and_counted() -> None:
    made = evaluated(made_up(60, 12))
    looks = [
        replace(one, judged=None) if one.id == "3" else one
        for one in made.looks
        if not (one.id == "4" and one.step == "rag")
    ]
    results = [one for one in made.results if not (one.id == "5" and one.strategy == "long_context")]
    found = material_of(replace(made, looks=looks, results=results))
    assert len(found.rows) == 57
    assert any(note.startswith("3 of 60 questions") for note in found.remarks)


def test_questions_without_documents_count_as_one_and_it_says_so() -> None:
    made = evaluated(made_up(60, 12))
    found = material_of(replace(made, questions=[replace(one, document=None) for one in made.questions]))
    assert len({row.document for row in found.rows}) == 1
    assert any("which document" in note and "give each the text" in note for note in found.remarks)


@pytest.mark.parametrize("missing", ["rag", "long_context"])
def test_an_evaluation_without_both_ends_is_refused(missing: str) -> None:
    made = evaluated(made_up(20, 5))
    results = [one for one in made.results if one.strategy != missing]
    looks = [one for one in made.looks if one.step != missing]
    with pytest.raises(ConfigurationError, match="both rag and long_context") as caught:
        replace(made, results=results, looks=looks).calibrate()
    assert "\n" not in str(caught.value)
    with pytest.raises(ConfigurationError, match="finished: nothing"):
        Evaluation([a_question()], []).calibrate()


def test_documents_that_only_declines_were_read_for_are_no_long_context() -> None:
    """Self-Route alone reads those of hard questions, and nothing can be compared on these."""
    made = evaluated(made_up(60, 12))
    alone = [replace(one, strategy="self_route") for one in made.results if one.strategy == "rag"]
    with pytest.raises(ConfigurationError, match="finished: self_route"):
        replace(made, results=alone).calibrate()


@pytest.mark.parametrize(("asked", "taken"), [([5, 9], 0.5), ([9, 5], 0.0), ([], 0.0), ([7], 0.0)])
def test_the_first_k_that_was_asked_for_counts(asked: list[int], taken: float) -> None:
    (row,) = made_up(1, 1, unanswerable=0, missed=0, incomplete=0)
    made = evaluated([row], k=asked)
    drafts = [one for one in made.looks if one.step == "rag"]
    others = [one for one in made.looks if one.step == "long_context"]
    looks = [replace(one, k=k, judged=judged) for one in drafts for k, judged in ((9, 0.0), (5, 0.5))]
    looks += [replace(one, k=k) for one in others for k in (None, 9)]
    found = material_of(replace(made, looks=looks)).rows
    assert [(each.rag.quality, each.long_context.quality) for each in found] == [(taken, 1.0)]


@pytest.mark.parametrize(
    ("answers", "choices", "right", "answerable"),
    [
        ((), (), 1.0, False),
        (("unanswerable",), (), 1.0, False),
        (("red cat",), (), 0.0, True),
        (("red cat", "The text does not say."), (), 1.0, True),
        (("It cannot be determined from the text.", "B"), ("red", "It cannot be determined from the text."), 0.0, True),
    ],
)
def test_without_a_judge_a_decline_is_right_where_the_text_has_no_answer(
    answers: tuple[str, ...], choices: tuple[str, ...], right: float, *, answerable: bool
) -> None:
    made = evaluated(made_up(1, 1), judged=False)
    question = replace(made.questions[0], answers=answers, choices=choices)
    looks = [replace(one, declined=True, score=0.3) for one in made.looks]
    (row,) = material_of(replace(made, questions=[question], looks=looks)).rows
    assert row.graded is not None
    assert (row.rag.quality, row.graded.quality, row.answerable) == (right, right, answerable)
