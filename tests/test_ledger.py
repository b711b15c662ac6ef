"""What a `Ledger` adds up."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selfroute import sums
from selfroute.account import Entry
from selfroute.ledger import Ledger
from selfroute.usage import Cost, StepUsage, Usage

COUNTS = st.integers(0, 10**7)
COSTS = st.one_of(
    st.builds(Cost, st.decimals(0, 1000, places=9)),
    st.builds(Cost, st.none(), st.sampled_from(["no name", "no price"])),
)
STEPS = st.none() | st.builds(
    StepUsage, COUNTS, COUNTS, COUNTS, st.booleans(), cost=COSTS, cache_write_tokens=st.just(0)
)
USAGES = st.builds(Usage, STEPS, STEPS, st.none() | COUNTS, COSTS)
SECONDS = st.floats(0, 1000)
ROUTES = st.sampled_from(["rag", "long_context"])
ANSWERED = st.builds(
    Entry, st.just("answered"), USAGES, SECONDS, SECONDS, ROUTES, st.booleans(), st.booleans(), st.none()
)
LEFT = st.builds(
    Entry, st.just("left"), USAGES, SECONDS, st.none() | SECONDS, st.none() | ROUTES, st.none() | st.booleans()
)
FAILED = st.builds(
    Entry,
    st.just("failed"),
    USAGES,
    SECONDS,
    st.none() | SECONDS,
    st.none() | ROUTES,
    st.none() | st.booleans(),
    st.none(),
    st.sampled_from(["TimeoutError", "RateLimitError"]),
)
ENTRIES = st.lists(ANSWERED | LEFT | FAILED, max_size=20)


def added(entries: Iterable[Entry]) -> Ledger:
    ledger = Ledger()
    for entry in entries:
        ledger.add(entry)
    return ledger


def an_entry(**fields: Any) -> Entry:
    usage = Usage(StepUsage(100, 10, 20, cost=Cost(Decimal("0.1"))), None, 1000, Cost(Decimal("0.8")))
    defaults = {"outcome": "answered", "usage": usage, "seconds": 2.0, "seconds_to_first_text": 1.0, "route": "rag"}
    return Entry(**{**defaults, "declined": False, "answerable": True, **fields})


@settings(max_examples=60, deadline=None)
@given(ENTRIES, st.randoms(use_true_random=False))
def test_the_figures_depend_neither_on_the_order_nor_on_the_threads(entries: list[Entry], random: Any) -> None:
    shuffled, ledger = random.sample(entries, len(entries)), Ledger()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ledger.add, shuffled))
    assert ledger.to_dict() == added(entries).to_dict()
    assert str(ledger) == str(added(entries))


def steps_of(entries: Iterable[Entry], step: str) -> list[StepUsage]:
    return [counts for entry in entries if (counts := getattr(entry.usage, step))]


@settings(max_examples=60, deadline=None)
@given(ENTRIES)
def test_the_tokens_are_those_of_every_step_that_was_paid_for(entries: list[Entry]) -> None:
    tokens = added(entries).to_dict()["tokens"]
    for step in ("rag", "long_context"):
        all_of = steps_of(entries, step)
        assert tokens[step] == {
            "input_tokens": sum(one.input_tokens for one in all_of),
            "output_tokens": sum(one.output_tokens for one in all_of),
            "cached_tokens": sum(one.cached_tokens for one in all_of),
            "estimated_tokens": sum(one.total_tokens for one in all_of if one.estimated),
            "total_tokens": sum(one.total_tokens for one in all_of),
        }
    assert tokens["total_tokens"] == sum(entry.usage.total_tokens for entry in entries)


@settings(max_examples=60, deadline=None)
@given(ENTRIES)
def test_a_query_is_what_did_not_fail(entries: list[Entry]) -> None:
    figures = added(entries).to_dict()
    queries = [entry for entry in entries if entry.outcome != "failed"]
    failed = [entry.error for entry in entries if entry.outcome == "failed"]
    assert figures["queries"] == len(queries)
    assert figures["routes"] == {
        route: sum(entry.route == route for entry in queries) for route in ("rag", "long_context")
    }
    assert figures["declined"] == sum(entry.declined is True for entry in queries)
    assert figures["unanswerable"] == sum(entry.answerable is False for entry in queries)
    assert figures["left"] == sum(entry.outcome == "left" for entry in queries)
    assert figures["failed"] == len(failed)
    assert figures["errors"] == {error: failed.count(error) for error in failed}


@settings(max_examples=60, deadline=None)
@given(ENTRIES)
def test_what_is_compared_is_of_the_same_queries(entries: list[Entry]) -> None:
    answered = [entry.usage for entry in entries if entry.outcome == "answered"]
    figures = added(entries).to_dict()
    measured = [usage for usage in answered if usage.long_context_only is not None]
    read, only = sum(one.input_tokens for one in measured), sum(one.long_context_only or 0 for one in measured)
    assert figures["savings"] == {
        "queries": len(measured),
        "input_tokens": read,
        "long_context_only": only,
        "token_ratio": read / only if only else None,
    }
    both = [(one.cost.dollars, one.cost_long_context_only.dollars) for one in answered]
    known = [(cost, alone) for cost, alone in both if cost is not None and alone is not None]
    compared = figures["money"]["compared"]
    assert compared["queries"] == len(known)
    assert Decimal(compared["cost"]) == sum(cost for cost, _ in known)
    assert Decimal(compared["cost_long_context_only"]) == sum(alone for _, alone in known)
    assert Decimal(compared["saved"]) == sum(alone - cost for cost, alone in known)


@settings(max_examples=60, deadline=None)
@given(ENTRIES)
def test_the_cost_is_all_that_is_known_and_tells_what_is_not(entries: list[Entry]) -> None:
    money = added(entries).to_dict()["money"]
    steps = [*steps_of(entries, "rag"), *steps_of(entries, "long_context")]
    known = [step.cost.dollars for step in steps if step.cost.dollars is not None]
    if known or not steps:
        assert Decimal(money["cost"]) == sum(known)
    else:
        assert money["cost"] is None
    reasons = [entry.usage.cost.unknown for entry in entries if entry.usage.cost.dollars is None]
    assert money["unpriced"] == {reason: reasons.count(reason) for reason in reasons}


@settings(max_examples=60, deadline=None)
@given(ENTRIES)
def test_the_figures_are_json_and_the_table_fits(entries: list[Entry]) -> None:
    ledger = added(entries)
    assert json.loads(json.dumps(ledger.to_dict(), allow_nan=False)) == ledger.to_dict()
    assert max(len(line) for line in str(ledger).splitlines()) <= 100


@pytest.mark.parametrize(
    ("times", "median", "p95"),
    [([], None, None), ([3.0], 3.0, 3.0), ([1.0, 2.0], 1.5, 1.95), ([float(n) for n in range(101)], 50.0, 95.0)],
)
def test_times_are_told_by_route(times: list[float], median: float | None, p95: float | None) -> None:
    ledger = added(an_entry(seconds=time, seconds_to_first_text=time) for time in times)
    ledger.add(an_entry(seconds=1e9, route="long_context"))
    ledger.add(an_entry(outcome="left", seconds=1e9, seconds_to_first_text=None))
    ledger.add(an_entry(outcome="failed", seconds=1e9, seconds_to_first_text=1e9, error="TimeoutError"))
    for kind in ("first_text", "end"):
        assert ledger.to_dict()["seconds"]["rag"][kind] == {"median": pytest.approx(median), "p95": pytest.approx(p95)}


def test_of_the_times_the_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "_MOST", 10)
    ledger = added(an_entry(seconds=float(n)) for n in range(25))
    assert ledger.to_dict()["seconds"]["rag"]["end"]["median"] == 19.5
    assert ledger.to_dict()["queries"] == 25


def test_a_ledger_that_is_reset_is_as_new() -> None:
    ledger = added([an_entry()])
    ledger.reset()
    assert ledger.to_dict() == Ledger().to_dict()
    assert str(ledger) == str(Ledger())


def test_an_entry_that_comes_while_another_is_added_is_neither_lost_nor_waited_for() -> None:
    class Name(str):
        __slots__ = ()

        def __str__(self) -> str:  # here the garbage collector might close a stream
            ledger.add(an_entry())
            return "TimeoutError"

    ledger = added([])
    ledger.add(an_entry(outcome="failed", route=None, error=Name()))
    figures = ledger.to_dict()
    assert (figures["queries"], figures["errors"]) == (1, {"TimeoutError": 1})


def test_the_table_says_once_that_prices_are_not_installed() -> None:
    missing = Cost(None, 'prices need the package genai-prices: pip install "selfroute[prices]"')
    table = str(added(an_entry(usage=Usage(StepUsage(1, 1, cost=missing), None, 10, missing)) for _ in range(3)))
    assert table.count("genai-prices") == 1
    assert "$" not in table
    assert table.splitlines()[-1].startswith("no price for 3: prices need")


def test_the_table_tells_what_was_saved() -> None:
    told = str(added([*[an_entry()] * 2000, an_entry(outcome="failed", error="TimeoutError")]))
    assert "tokens read: 10.0% of the long context alone (200,000 of 2,000,000; queries: 2,000)" in told
    assert "saved: $1,400.0000 ($200.0000 instead of $1,600.0000; queries: 2,000)" in told
    assert "errors: TimeoutError 1" in told


def test_a_data_frame_has_a_row_for_each_route_and_one_for_all() -> None:
    pytest.importorskip("pandas")
    unknown = an_entry(outcome="left", route=None, seconds_to_first_text=None)
    frame = added([an_entry(), an_entry(route="long_context"), an_entry(), unknown]).to_dataframe()
    assert list(frame.index) == ["rag", "long_context", "all"]
    assert frame["queries"].to_dict() == {"rag": 2, "long_context": 1, "all": 4}
    assert frame.loc["all", "savings_token_ratio"] == pytest.approx(0.1)
    assert frame.loc["rag", "money_compared_saved"] == pytest.approx(1.4)
    assert frame.loc["all", "seconds_first_text_median"] == 1.0


@pytest.mark.parametrize("entries", [[], [an_entry()], [an_entry(outcome="failed", error="TimeoutError")]])
def test_the_columns_of_a_data_frame_are_the_same_numbers_whatever_was_added(entries: list[Entry]) -> None:
    pytest.importorskip("pandas")
    frame = added(entries).to_dataframe()
    assert set(frame.dtypes.map(lambda kind: kind.kind)) <= {"i", "f"}
    assert list(frame.columns) == list(Ledger().to_dataframe().columns)


def test_without_pandas_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        Ledger().to_dataframe()
