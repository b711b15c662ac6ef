"""Filters that are dicts, tested outside of their store."""

from __future__ import annotations

from typing import Any

import pytest

from selfroute.stores.conditions import metadata_test

NORTH = {"tenant": "north", "year": 2024, "public": True, "tags": ["a", 7]}
MET: list[Any] = [
    {},
    {"tenant": "north"},
    {"tenant": "north", "year": 2024},
    {"tenant": {"$eq": "north"}},
    {"tenant": {"$ne": "south"}},
    {"nothing": {"$ne": "south"}},
    {"tenant": {"$in": ["south", "north"]}},
    {"tenant": {"$nin": ["south"]}},
    {"year": {"$gte": 2024, "$lt": 2025}},
    {"$and": [{"tenant": "north"}, {"year": {"$gt": 2000}}]},
    {"$or": [{"tenant": "south"}, {"year": {"$lte": 2024}}]},
    {"public": True},
    {"year": 2024.0},
    {"year": {"$in": [2024.0]}},
    {"tags": "a"},
    {"tags": {"$ne": "b"}},
]
UNMET: list[Any] = [
    {"tenant": "south"},
    {"nothing": "north"},
    {"public": 1},
    {"public": {"$ne": 1}},
    {"public": {"$nin": [1]}},
    {"public": {"$in": [1]}},
    {"year": {"$ne": 2024.0}},
    {"year": {"$nin": [2024.0]}},
    {"tags": {"$ne": "a"}},
    {"tags": "7"},
    {"year": "2024"},
    {"year": {"$in": "2024"}},
    {"year": {"$gt": "a"}},
    {"tenant": {"$nin": ["north"]}},
    {"$and": [{"tenant": "north"}, {"tenant": "south"}]},
    {"$or": [{"tenant": "south"}, {"year": 1}]},
    {"nothing": {"$gt": 1}},
]
OF_ANOTHER_FORM: list[Any] = [
    None,
    "tenant = 'north'",
    ["tenant"],
    {"tenant": ["north"]},
    {"tenant": None},
    {"tenant": {}},
    {"tenant": {"$regex": "n.*"}},
    {"tenant": {"term": "north"}},
    {"$not": {"tenant": "north"}},
    {"$and": {"tenant": "north"}},
    {"$or": [{"tenant": "north"}, {"year": {"$mod": 2}}]},
    {"metadata.tenant": "north"},
    {7: "north"},
]


@pytest.mark.parametrize(("condition", "met"), [(one, True) for one in MET] + [(one, False) for one in UNMET])
def test_condition_is_tested_on_metadata(condition: Any, met: bool) -> None:
    test = metadata_test(condition)
    assert test is not None
    assert test(NORTH) is met


@pytest.mark.parametrize("condition", OF_ANOTHER_FORM)
def test_condition_of_another_form_is_left_to_its_store(condition: Any) -> None:
    assert metadata_test(condition) is None
