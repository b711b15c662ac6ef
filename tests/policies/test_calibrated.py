"""The policy `Calibrated`: which options it sets, what it says, and that it travels."""

from __future__ import annotations

import asyncio
import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from selfroute.errors import ConfigurationError
from selfroute.policies import Budget, Calibrated, Case, Never, Ruling
from selfroute.policies.calibration import Calibration, Counts, Figures, hash_of
from selfroute.policies.case import Estimate
from selfroute.policies.policy import Policy, aask, ask, options_of

COUNTS = Counts(questions=164, documents=34, declined=53, unanswerable=30)
FIGURES = Figures(0.85, 0.79, 0.91, 0.42, None)
CASE = Case(
    question="Who?",
    inputs={},
    decision={},
    draft="",
    passages=(),
    usage={},
    step="long_context",
    estimated=lambda: Estimate(1),
)


def calibrated(escalate: Any = "graded", **values: Any) -> Calibrated:
    bounds = {"doubt_below": 60, "stop_below": 20} if escalate == "graded" else {}
    return Calibrated(Calibration(escalate=escalate, counts=COUNTS, figures=FIGURES, **{**bounds, **values}))


GRADED = {"answerability": "graded", "doubt_below": 60, "stop_below": 20}
KINDS: dict[str, tuple[Calibrated, dict[str, Any], bool]] = {
    "never": (calibrated("never"), {}, False),
    "declined": (calibrated("declined"), {}, True),
    "declined, sections": (calibrated("declined", sections=4000), {"sections": 4000}, True),
    "graded": (calibrated(), GRADED, True),
    "graded, sections": (calibrated(sections=8000), {**GRADED, "sections": 8000}, True),
    "graded, sections twice": (calibrated(sections=(4000, 16000)), {**GRADED, "sections": (4000, 16000)}, True),
}


@pytest.mark.parametrize("kind", KINDS)
def test_it_sets_its_options_and_says_whether_to_escalate(kind: str) -> None:
    policy, options, go = KINDS[kind]
    assert policy.options == options_of(policy) == options
    for ruling in (ask(policy, CASE), asyncio.run(aask(policy, CASE))):
        assert ruling == Ruling(
            go, "calibrated", "" if go else "escalating did not pay on 164 questions on 34 documents"
        )


@pytest.mark.parametrize("kind", KINDS)
def test_files_pickles_and_copies_are_the_same_policy(kind: str, tmp_path: Path) -> None:
    policy, *_ = KINDS[kind]
    policy.save(tmp_path / "policy.json")
    for other in (
        Calibrated.load(tmp_path / "policy.json"),
        Calibrated.load(str(tmp_path / "policy.json")),
        pickle.loads(pickle.dumps(policy)),  # noqa: S301
        copy.deepcopy(policy),
    ):
        assert (other, hash(other), repr(other), other.options) == (policy, hash(policy), repr(policy), policy.options)


def test_its_repr_says_what_it_does_and_what_that_rests_on() -> None:
    constants = "escalate='graded', doubt_below=60, stop_below=20, sections=4000"
    assert repr(calibrated(sections=4000)) == f"<Calibrated({constants}) from 164 questions on 34 documents>"


def gold(case: Case) -> bool:
    return case.inputs.get("tier") == "gold"


TWINS = calibrated(sections=4000) | calibrated(sections=4000)
COMBINED: list[tuple[Any, dict[str, Any]]] = [
    (None, {}),
    (gold, {}),
    (Never(), {}),
    (Budget(tokens=1) | Never(), {}),
    (calibrated() & Budget(tokens=1), GRADED),
    (gold & calibrated(sections=4000), {**GRADED, "sections": 4000}),
    ((Budget(tokens=1) & gold) | (Never() | calibrated("declined", sections=2000)), {"sections": 2000}),
    (TWINS, {**GRADED, "sections": 4000}),
]


@pytest.mark.parametrize("number", range(len(COMBINED)))
def test_its_options_are_found_wherever_it_is_combined(number: int) -> None:
    policy, options = COMBINED[number]
    assert options_of(policy) == options


def test_the_options_may_be_changed_without_changing_the_policy() -> None:
    policy = calibrated() & gold
    options_of(policy)["doubt_below"] = 0
    assert options_of(policy) == GRADED


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (calibrated(), calibrated(doubt_below=70)),
        (calibrated(), calibrated("declined")),
        (calibrated("never"), calibrated()),
        (calibrated(sections=4000) & gold, Never() | calibrated(sections=8000)),
    ],
    ids=["bounds", "graded or not", "never and graded", "deep down"],
)
def test_two_calibrations_that_disagree_cannot_be_combined(first: Policy, second: Policy) -> None:
    for combine in (first.__and__, first.__or__):
        with pytest.raises(ConfigurationError, match="set different options"):
            combine(second)


def test_prompts_that_it_was_not_made_for_are_refused_wherever_it_is_combined() -> None:
    policy = calibrated(prompts=hash_of("rag", "long"))
    for each in (policy, gold & policy, (policy | Never()) & Budget(tokens=9)):
        each.check_prompts("rag", "long")
        with pytest.raises(ConfigurationError, match="calibrate again"):
            each.check_prompts("rag", "another")
    calibrated().check_prompts("any", "thing")
    (Never() & gold).check_prompts("any", "thing")


@pytest.mark.parametrize("value", ["policy.json", None, {"escalate": "graded"}], ids=["a path", "nothing", "a dict"])
def test_what_is_no_calibration_is_refused_with_what_to_write(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"Calibrated\.load\(path\)"):
        Calibrated(value)


def test_policies_are_imported_without_what_calibrating_needs() -> None:
    heavy = ("numpy", "scipy", "pandas", "selfroute.evaluation")
    program = f"import sys, selfroute.policies; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "[]"
