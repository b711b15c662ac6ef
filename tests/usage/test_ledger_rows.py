"""A ledger that reads rows has the figures of one that counted the questions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import langchain_selfroute
import llamaindex_selfroute
from lanes import examples
from langchain_parts import a_chain
from llamaindex_parts import an_engine
from scenarios import QUESTION
from selfroute.errors import InputError
from selfroute.usage import Cost, Entry, Ledger, StepUsage, Usage
from selfroute.usage.counts import STEPS

COUNTS = st.integers(0, 10**7)
KNOWN = st.builds(Cost, st.decimals(0, 1000, places=9))
UNKNOWN = st.builds(Cost, st.none(), st.sampled_from(["no name", "no price"]))
STEP = st.none() | st.builds(StepUsage, COUNTS, COUNTS, COUNTS, st.booleans(), cost=KNOWN | UNKNOWN)
BOUNDS = st.one_of(st.tuples(KNOWN, KNOWN, KNOWN), st.tuples(UNKNOWN, UNKNOWN, UNKNOWN))
USAGES = st.builds(lambda steps, only, costs: Usage(*steps, only, *costs), st.tuples(STEP, STEP, STEP), COUNTS, BOUNDS)
MODELS = st.dictionaries(
    st.sampled_from(["openai:a", "anthropic:b"]),
    st.builds(StepUsage, COUNTS, st.just(0), COUNTS, cache_write_tokens=COUNTS),
)
ANSWERED = st.builds(
    Entry,
    st.just("answered"),
    USAGES,
    st.floats(0, 1000),
    st.floats(0, 1000),
    st.sampled_from(STEPS),
    st.booleans(),
    st.just(False),
    st.booleans(),
    st.booleans(),
    models=MODELS,
)
FAILED = st.builds(
    Entry, st.just("failed"), USAGES, st.floats(0, 1000), error=st.sampled_from(["TimeoutError"]), models=MODELS
)


def row_of(entry: Entry) -> dict[str, Any]:
    """A row of a job that answers questions."""
    ruling = {"go": False, "by": "never", "reason": ""} if entry.stopped else None
    failed = {"error": f"{entry.error}: no answer in time: 60 s"} if entry.error else {}
    row = {
        "answer": "Mr Lin.",
        "route": entry.route,
        "answerable": entry.answerable,
        "decision": {"declined": entry.declined, "signal": "sentinel", "evidence": "", "ruling": ruling},
        "usage": entry.usage.as_dict(entry.models),
        "seconds": entry.seconds,
        "seconds_to_first_text": entry.seconds_to_first_text,
        **failed,
    }
    return json.loads(json.dumps(row))  # type: ignore[no-any-return]


NINE_ZEROS = Cost(Decimal("0E-9"))
FREE_STEP = StepUsage(0, 0, cost=NINE_ZEROS)


@examples(300)
@example([Entry("failed", Usage(FREE_STEP, None, FREE_STEP, 0, *[NINE_ZEROS] * 3), 1.0, error="TimeoutError")])
@given(st.lists(ANSWERED | FAILED, max_size=12))
def test_ledger_read_adds_up(entries: list[Entry]) -> None:
    ledger = Ledger()
    for entry in entries:
        ledger.add(entry)
    found = Ledger.read(map(row_of, entries))
    assert found.to_dict() == ledger.to_dict()
    assert str(found) == str(ledger)


def test_ledger_read_of_a_chain_and_an_engine() -> None:
    """Of two models with prices, one of which declines."""
    named = {"llm": "openai:gpt-4o-mini", "long_context_llm": "anthropic:claude-haiku-4-5"}
    priced = {"usage": True, "priced_as": named}
    kept = langchain_selfroute.SelfRouteLedger()
    rows, responses = [], []
    for draft in (("Mr Lin.",), ("unanswerable",)):
        result = a_chain(draft, **priced).invoke(QUESTION, {"callbacks": [kept]})
        assert any(result["usage"]["ledger"]["models"])
        rows.append(json.loads(json.dumps({key: result[key] for key in ("route", "answerable", "decision", "usage")})))
        responses.append(an_engine(draft, **priced).query(QUESTION).metadata)
    expected = _timeless(kept.to_dict())
    assert expected["money"]["cost"] is not None
    assert expected["routes"] == {"rag": 1, "sections": 0, "long_context": 1}
    for found in (
        langchain_selfroute.SelfRouteLedger.read(rows),
        langchain_selfroute.SelfRouteLedger().read(rows),
        llamaindex_selfroute.SelfRouteLedger.read(responses),
    ):
        assert _timeless(found.to_dict()) == expected


def _timeless(figures: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in figures.items() if key != "seconds"}


def test_ledger_read_goes_on_with_the_same_ledger() -> None:
    row = row_of(Entry("answered", Usage(StepUsage(10, 1, cost=Cost(Decimal("0.5")))), 1.0, route="rag"))
    assert [Ledger.read([row]).to_dict()["queries"] for _ in range(2)] == [1, 1]
    ledger = Ledger()
    assert ledger.read([row]) is ledger
    ledger.read([row, row])
    figures = ledger.to_dict()
    assert (figures["queries"], figures["money"]["cost"]) == (3, "1.5")


def test_ledger_read_of_errors_and_of_an_earlier_version() -> None:
    figures = Ledger.read([{"error": "RateLimitError: slow down"}, {"error": "killed", "usage": None}]).to_dict()
    assert (figures["failed"], figures["errors"], figures["queries"]) == (2, {"RateLimitError": 1, "killed": 1}, 0)

    row = row_of(Entry("answered", Usage(StepUsage(10, 1, cost=Cost(Decimal(2)))), 1.0, route="rag"))
    del row["usage"]["ledger"]
    figures = Ledger.read([row]).to_dict()
    assert (figures["tokens"]["total_tokens"], figures["money"]["cost"], figures["models"]) == (11, "2", {})


NO_ROWS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "text": lambda _: "row",
    "a list": lambda row: [row],
    "nothing": lambda _: {},
    "an empty usage": lambda row: {**row, "usage": {}},
    "a usage that is text": lambda row: {**row, "usage": json.dumps(row["usage"])},
    "a step without counts": lambda row: {**row, "usage": {**row["usage"], "rag": {"tokens": 3}}},
    "a cost that is no number": lambda row: {**row, "usage": {**row["usage"], "cost": "cheap"}},
    "a step with counts that are text": lambda row: {
        **row,
        "usage": {**row["usage"], "rag": {"input_tokens": "9", "output_tokens": 1, "cached_tokens": 0}},
    },
    "a step with fewer tokens than none": lambda row: {
        **row,
        "usage": {**row["usage"], "rag": {"input_tokens": -9, "output_tokens": 1, "cached_tokens": 0}},
    },
    "a length that no float holds": lambda row: {**row, "usage": {**row["usage"], "long_context_only": 10**400}},
    "a cost without bounds": lambda row: {**row, "usage": {**row["usage"], "cost": "1e999999999"}},
    "a cost below zero": lambda row: {**row, "usage": {**row["usage"], "cost": "-1000"}},
    "a cost that would be written out in a million characters": lambda row: {
        **row,
        "usage": {**row["usage"], "cost": "1e-999999"},
    },
    "a decision that is True": lambda row: {**row, "decision": True},
    "an answerable that is text": lambda row: {**row, "answerable": "yes"},
    "a time that is text": lambda row: {**row, "seconds": "9"},
    "a model's counts that are text": lambda row: {
        **row,
        "usage": {**row["usage"], "ledger": {"models": {"a": ["1", "2", "3"]}}},
    },
}


@pytest.mark.parametrize("name", NO_ROWS)
def test_ledger_read_refuses_what_is_no_row(name: str) -> None:
    row = row_of(Entry("answered", Usage(StepUsage(10, 1, cost=Cost(Decimal(2)))), 1.0, route="rag"))
    with pytest.raises(InputError, match="usage"):
        Ledger.read([NO_ROWS[name](row)])
