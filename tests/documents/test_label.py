"""A label in metadata counts only if this process wrote it."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Mapping
from copy import copy, deepcopy
from typing import Any

import pytest

from golden import golden
from selfroute.documents.label import KEY, Label, label_in, labelled_with, original_label
from selfroute.documents.pages import Position, position_of

TEXT = "Tea was served."
MADE = labelled_with(original_label(TEXT), {"method": "sections", "start": 7, "end": 9, "pages": [[0, 1]]}, TEXT)
COPIES: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "a dict": dict,
    "a copy": copy,
    "a deep copy": deepcopy,
    "JSON": lambda label: json.loads(json.dumps(label)),
    "a pickle": lambda label: pickle.loads(pickle.dumps(label)),  # noqa: S301
}


@golden("label")
def test_labelled_with(case: dict[str, Any]) -> None:
    """The label, and what it and the metadata say of the place of its text."""
    label = labelled_with(case["known"], case["label"], case["text"])
    assert (label, label.length) == (case["is"], len(case["text"]))
    position = position_of({**case.get("metadata", {}), KEY: label}, case["text"])
    assert [position.begins, position.shift, [*position.pages], position.page] == case["placing"]
    assert [position.page_at(at) for at in case["at"]] == case["pages"]


def test_label_of_this_process_counts() -> None:
    assert label_in({KEY: MADE}) == MADE
    assert position_of({KEY: MADE}) == Position(7, 7, [[0, 1]], None)
    assert label_in({KEY: MADE}, TEXT) == MADE
    assert isinstance(labelled_with(MADE, {"trimmed": True}, TEXT), Label)


def test_label_is_of_one_text() -> None:
    """Metadata that are handed on to a part of the text bring its label along."""
    assert label_in({KEY: MADE}, TEXT[4:]) == {}
    assert position_of({KEY: MADE}, TEXT[4:]) == Position(0, 0, (), None)


@pytest.mark.parametrize("how", COPIES)
def test_label_that_came_from_elsewhere_says_nothing(how: str) -> None:
    """A splitter copies the metadata of a document deeply, a store writes them as JSON."""
    label = COPIES[how](MADE)
    assert label == MADE
    assert type(label) is dict
    assert label_in({KEY: label}) == {}
    assert position_of({KEY: label}) == Position(0, 0, (), None)


@pytest.mark.parametrize("label", [None, "hello", 7, [], {"start": -7, "method": "sections"}, {"pages": [["x", {}]]}])
def test_label_of_any_other_kind_says_nothing(label: Any) -> None:
    assert label_in({KEY: label}) == {}
    assert position_of({KEY: label, "page": 3}) == Position(0, 0, (), 3)
