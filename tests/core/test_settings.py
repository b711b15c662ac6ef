"""The options that both frameworks take."""

from __future__ import annotations

from typing import Any

import pytest

from selfroute.errors import ConfigurationError
from selfroute.policies import Never
from selfroute.settings import Bounds, Settings


def test_the_refusal_is_used_without_the_white_space_around_it() -> None:
    assert Settings(refusal=" not in the text \n").refusal == "not in the text"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("refusal", None),
        ("refusal", "..."),
        ("answerability", "json"),
        *[(bound, value) for bound in ("doubt_below", "stop_below") for value in (-1, 101, 50.5, True, "50")],
        *[("widen", value) for value in (0, -1, True)],
        *[("escalation", value) for value in ("never", 5, Never)],
        *[("start", value) for value in ("wider", None, 1)],
        ("max_context_tokens", 0),
        ("max_context_tokens", True),
        ("max_context_tokens", "many"),
        ("token_counter", "words"),
        ("measure_savings", "later"),
        ("measure_savings", 1.0),
        ("priced_as", "gpt-4o"),
        ("long_context_priced_as", ":"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused_by_its_name(name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=name):
        Settings(**{name: value})


@pytest.mark.parametrize("bound", ["doubt_below", "stop_below"])
def test_a_bound_needs_numbers(bound: str) -> None:
    with pytest.raises(ConfigurationError, match="answerability='graded' or 'structured'"):
        Settings(**{bound: 50})
    for answerability in ("graded", "structured"):
        assert Settings(answerability=answerability, **{bound: 0}).bounds
        assert Settings(answerability=answerability, **{bound: 100}).bounds


def test_the_bounds_are_those_that_were_measured_unless_others_are_set() -> None:
    assert Settings(answerability="graded").bounds == Bounds(50, 20)
    assert Settings(answerability="graded", doubt_below=70).bounds == Bounds(70, 20)
    assert Settings(answerability="structured", stop_below=5).bounds == Bounds(50, 5)
    assert (Settings().bounds, Settings(answerability="structured").bounds) == (None, None)


def test_the_documents_have_the_budget_that_was_set_or_what_the_window_leaves() -> None:
    assert Settings(max_context_tokens=70).document_budget(100_000) == 70
    assert Settings().document_budget(None) is None
    assert Settings().document_budget(100_000) == 89_000
