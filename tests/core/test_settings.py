"""The options that both frameworks take."""

from __future__ import annotations

from typing import Any

import pytest

from selfroute.errors import ConfigurationError
from selfroute.settings import Settings


def test_the_refusal_is_used_without_the_white_space_around_it() -> None:
    assert Settings(refusal=" not in the text \n").refusal == "not in the text"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("refusal", None),
        ("refusal", "..."),
        ("answerability", "json"),
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


def test_the_documents_have_the_budget_that_was_set_or_what_the_window_leaves() -> None:
    assert Settings(max_context_tokens=70).document_budget(100_000) == 70
    assert Settings().document_budget(None) is None
    assert Settings().document_budget(100_000) == 89_000
