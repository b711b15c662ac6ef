"""What a `Ledger` adds up."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
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
from selfroute.usage import Cost, StepUsage, Usage
from selfroute.usage import totals as sums
from selfroute.usage.counts import STEPS
from selfroute.usage.entry import Entry
from selfroute.usage.ledger import Ledger
from selfroute.usage.ledger_text import dollars

COUNTS = st.integers(0, 10**7)
COSTS = st.one_of(
    st.builds(Cost, st.decimals(0, 1000, places=9)),
    st.builds(Cost, st.none(), st.sampled_from(["no name", "no price"])),
)
STEP = st.none() | st.builds(
    StepUsage, COUNTS, COUNTS, COUNTS, st.booleans(), cost=COSTS, cache_write_tokens=st.just(0)
)
USAGES = st.builds(Usage, *[STEP] * 3, st.none() | COUNTS, *[COSTS] * 3)
MODELS = st.dictionaries(
    st.sampled_from(["openai:a", "anthropic:b"]),
    st.builds(StepUsage, COUNTS, COUNTS, COUNTS, cache_write_tokens=COUNTS),
)
SECONDS = st.floats(0, 1000)
ROUTES = st.sampled_from(STEPS)
WHY = [st.none() | st.booleans()] * 3  # declined, doubted, stopped
MAYBE = (USAGES, SECONDS, st.none() | SECONDS, st.none() | ROUTES, *WHY)
ANSWERED = st.builds(
    Entry, st.just("answered"), USAGES, SECONDS, SECONDS, ROUTES, *WHY, st.booleans(), st.none(), models=MODELS
)
LEFT = st.builds(Entry, st.just("left"), *MAYBE)
FAILED = st.builds(Entry, st.just("failed"), *MAYBE, st.none(), st.sampled_from(["TimeoutError", "RateLimitError"]))
ENTRIES = st.lists(ANSWERED | LEFT | FAILED, max_size=20)


def added(entries: Iterable[Entry]) -> Ledger:
    ledger = Ledger()
    for entry in entries:
        ledger.add(entry)
    return ledger


KNOWN = Usage(
    StepUsage(100, 10, 20, cost=Cost(Decimal("0.1"))),
    long_context_only=1000,
    cost_long_context_only=Cost(Decimal("0.8")),
)
UNMEASURED = Usage(KNOWN.rag)


def an_entry(**fields: Any) -> Entry:
    defaults = {"outcome": "answered", "usage": KNOWN, "seconds": 2.0, "seconds_to_first_text": 1.0, "route": "rag"}
    return Entry(**{**defaults, "declined": False, "answerable": True, **fields})


@examples(60)
@given(ENTRIES, st.randoms(use_true_random=False))
def test_ledger_figures_depend_neither_on_order_nor_on_threads(entries: list[Entry], random: Any) -> None:
    shuffled, ledger = random.sample(entries, len(entries)), Ledger()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ledger.add, shuffled))
    assert ledger.to_dict() == added(entries).to_dict()
    assert str(ledger) == str(added(entries))
    assert json.loads(json.dumps(ledger.to_dict(), allow_nan=False)) == ledger.to_dict()
    assert max(len(line) for line in str(ledger).splitlines()) <= 100


def steps_of(entries: Iterable[Entry], step: str) -> list[StepUsage]:
    return [counts for entry in entries if (counts := getattr(entry.usage, step))]


def test_ledger_models_are_bounded() -> None:
    entries = [an_entry(models={f"openai:{number}": StepUsage(1, 1)}) for number in range(150)]
    figures = added([*entries, *entries]).to_dict()["models"]
    assert len(figures) <= 101
    assert figures["openai:0"]["input_tokens"] == 2
    assert sum(one["input_tokens"] for one in figures.values()) == 300
    assert figures["others"]["input_tokens"] > 90


@pytest.mark.parametrize(
    ("times", "median", "p95"),
    [([], None, None), ([3.0], 3.0, 3.0), ([1.0, 2.0], 1.5, 1.95), ([float(n) for n in range(101)], 50.0, 95.0)],
)
def test_ledger_times_by_route(times: list[float], median: float | None, p95: float | None) -> None:
    ledger = added(an_entry(seconds=time, seconds_to_first_text=time) for time in times)
    ledger.add(an_entry(seconds=1e9, route="long_context"))
    ledger.add(an_entry(outcome="left", seconds=1e9, seconds_to_first_text=None))
    ledger.add(an_entry(outcome="failed", seconds=1e9, seconds_to_first_text=1e9, error="TimeoutError"))
    for kind in ("first_text", "end"):
        assert ledger.to_dict()["seconds"]["rag"][kind] == {"median": pytest.approx(median), "p95": pytest.approx(p95)}


def test_ledger_times_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "_MAX_TIMES", 10)
    ledger = added(an_entry(seconds=float(n)) for n in range(25))
    assert ledger.to_dict()["seconds"]["rag"]["end"]["median"] == 19.5
    assert ledger.to_dict()["queries"] == 25


@pytest.mark.parametrize(("answered", "unknown", "told"), [(10, 1, True), (19, 2, False), (20, 2, True), (9, 1, False)])
def test_ledger_savings_of_a_tenth_may_be_unknown(answered: int, unknown: int, *, told: bool) -> None:
    entries = [*[an_entry()] * (answered - unknown), *[an_entry(usage=UNMEASURED)] * unknown]
    figures = added([*entries, an_entry(outcome="left"), an_entry(outcome="failed", error="TimeoutError")]).to_dict()
    assert figures["savings"]["unknown"] == unknown
    assert (figures["savings"]["token_ratio"] is not None) is told
    assert (figures["money"]["compared"]["saved"] is not None) is told


def test_ledger_saved_is_none_where_prices_are_missing() -> None:
    price = Cost(None, "no price")
    unpriced = Usage(StepUsage(100, 10, cost=price), long_context_only=1000, cost_long_context_only=price)
    figures = added([an_entry(), an_entry(usage=unpriced)]).to_dict()
    assert figures["savings"]["token_ratio"] == 0.1
    assert (figures["money"]["compared"]["queries"], figures["money"]["compared"]["saved"]) == (1, None)
    assert Ledger().to_dict()["money"]["compared"]["saved"] is None


@examples(60)
@given(ENTRIES)
def test_ledger_reset_returns_figures(entries: list[Entry]) -> None:
    ledger = added([*entries, an_entry()])
    assert ledger.reset() == added([*entries, an_entry()]).to_dict()
    assert ledger.to_dict() == Ledger().to_dict()
    assert str(ledger) == "no queries yet"


def test_ledger_reset_in_threads_loses_nothing() -> None:
    ledger, ended, over = Ledger(), list[dict[str, Any]](), threading.Event()

    def look() -> None:
        while not over.is_set():
            ended.append(ledger.reset())
            str(ledger)

    with ThreadPoolExecutor(6) as pool:
        looking = [pool.submit(look) for _ in range(2)]
        adding = [pool.submit(ledger.add, an_entry()) for _ in range(3000)]
        for one in adding:
            one.result()
        over.set()
        for one in looking:
            one.result()
    ended.append(ledger.reset())
    assert sum(figures["queries"] for figures in ended) == 3000
    assert sum(figures["savings"]["queries"] for figures in ended) == 3000
    assert sum(figures["tokens"]["total_tokens"] for figures in ended) == 3000 * KNOWN.total_tokens


def test_ledger_add_within_add() -> None:
    class Name(str):
        __slots__ = ()

        def __str__(self) -> str:  # here the garbage collector might close a stream
            ledger.add(an_entry())
            return "TimeoutError"

    ledger = added([])
    ledger.add(an_entry(outcome="failed", route=None, error=Name()))
    figures = ledger.to_dict()
    assert (figures["queries"], figures["errors"]) == (1, {"TimeoutError": 1})


@pytest.mark.parametrize(
    ("amount", "told"),
    [("0", "$0.00"), ("-0.0039", "-$0.003900"), ("0.1326004", "$0.1326"), ("12345.678", "$12,345.68")],
)
def test_dollars(amount: str, told: str) -> None:
    assert dollars(amount) == told


def test_ledger_dataframe() -> None:
    pytest.importorskip("pandas")
    unknown = an_entry(outcome="left", route=None, seconds_to_first_text=None)
    frame = added([an_entry(), an_entry(route="long_context"), an_entry(), unknown]).to_dataframe()
    assert list(frame.index) == ["rag", "sections", "long_context", "all"]
    assert frame["queries"].to_dict() == {"rag": 2, "sections": 0, "long_context": 1, "all": 4}
    assert frame.loc["all", "savings_token_ratio"] == pytest.approx(0.1)
    assert frame.loc["rag", "money_compared_saved"] == pytest.approx(1.4)
    assert frame.loc["all", "seconds_first_text_median"] == 1.0


@pytest.mark.parametrize("entries", [[], [an_entry()], [an_entry(outcome="failed", error="TimeoutError")]])
def test_ledger_dataframe_columns(entries: list[Entry]) -> None:
    pytest.importorskip("pandas")
    frame = added(entries).to_dataframe()
    assert set(frame.dtypes.map(lambda kind: kind.kind)) <= {"i", "f"}
    assert list(frame.columns) == list(Ledger().to_dataframe().columns)


def test_ledger_dataframe_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        Ledger().to_dataframe()


SECTIONS = Usage(KNOWN.rag, StepUsage(300, 5), None, 1000)
MISSING = Cost(None, "no price of 'm'")
LEFT_EARLY = an_entry(outcome="left", usage=Usage(StepUsage(20, 10, estimated=True, cost=Cost(Decimal("0.0325")))))
BOUNDED = replace(KNOWN, cost_cold=Cost(Decimal(1)), cost_warm=Cost(Decimal("0.2")))
UNPRICED = Usage(StepUsage(1, 1, cost=MISSING), long_context_only=10, cost_long_context_only=MISSING)
# The last lines of tables: all of it for every end, and what follows the columns for the others.
TABLES: dict[str, tuple[list[Entry], str]] = {
    "every end": (
        [
            an_entry(stopped=True, answerable=False),
            an_entry(answerable=False),
            an_entry(doubted=True, route="long_context"),
            an_entry(usage=SECTIONS, route="sections"),
            an_entry(outcome="failed", error="TimeoutError"),
        ],
        """\
by the query's route                           rag      sections  long context           all
  queries                                        2             1             1             4
  doubted                                        0             0             1             1
  unanswerable                                   1             0             0             1
  stopped                                        1             0             0             1
  failed attempts                                                                          1
  seconds to first text, median              1.000         1.000         1.000         1.000
  seconds to first text, 95 % within         1.000         1.000         1.000         1.000
  seconds to end, median                     2.000         2.000         2.000         2.000
  seconds to end, 95 % within                2.000         2.000         2.000         2.000
by the step that used them                     rag      sections  long context           all
  input tokens                                 500           300             0           800
  cached tokens                                100             0             0           100
  output tokens                                 50             5             0            55
errors: TimeoutError 1
tokens read: 18% of the long context alone (700 of 4,000; queries: 4)
cost: $0.5000, and what has no price
not compared: 1 failed
no price for 1 query: it was not asked for""",
    ),
    "savings": (
        [an_entry()] * 2000,
        """\
  output tokens                             20,000             0        20,000
tokens read: 10% of the long context alone (200,000 of 2,000,000; queries: 2,000)
cost: $200.00
saved: $1,400.00 ($200.00 instead of $1,600.00; queries: 2,000)""",
    ),
    "caches": (
        [an_entry(usage=BOUNDED, models={"openai:gpt-4o": StepUsage(1000, 9, 250)})],
        """\
saved, compared with a prompt cache that holds nothing: $0.9000; that holds every document: $0.1000
prompt cache of openai:gpt-4o: 25% of 1,000 input tokens""",
    ),
    "estimates": (
        [an_entry(), an_entry(), LEFT_EARLY],
        """\
  estimated tokens                              30             0            30
tokens read: 10% of the long context alone (200 of 2,000; queries: 2)
cost: $0.2325 (12% of the tokens estimated)
saved: $1.40 ($0.2000 instead of $1.60; queries: 2)
not compared: 1 left""",
    ),
    "no prices": (
        [an_entry(usage=UNPRICED)] * 3,
        """\
  output tokens                                  3             0             3
tokens read: 10% of the long context alone (3 of 30; queries: 3)
no price for 3 queries: no price of 'm'""",
    ),
}


def test_ledger_figures() -> None:
    left = an_entry(outcome="left", answerable=None, route=None)
    models = {"openai:a": StepUsage(100, 10, 25, cache_write_tokens=5), "openai:b": StepUsage(0, 0)}
    figures = added(
        [*TABLES["every end"][0], left, LEFT_EARLY, an_entry(models=models), an_entry(models=models)]
    ).to_dict()
    assert figures["tokens"]["rag"] == {
        "input_tokens": 820,
        "output_tokens": 90,
        "cached_tokens": 160,
        "estimated_tokens": 30,
        "total_tokens": 910,
    }
    assert figures["tokens"]["sections"]["total_tokens"] == 305
    assert figures["tokens"]["total_tokens"] == 1215
    assert (figures["queries"], figures["routes"]) == (8, {"rag": 5, "sections": 1, "long_context": 1})
    named = ("declined", "doubted", "stopped", "unanswerable", "left", "failed", "errors")
    assert [figures[name] for name in named] == [0, 1, 1, 1, 2, 1, {"TimeoutError": 1}]
    counted = {"input_tokens": 200, "cached_tokens": 50, "cache_write_tokens": 10, "hit_rate": 0.25}
    assert figures["models"]["openai:a"].items() >= counted.items()
    assert figures["models"]["openai:b"]["hit_rate"] is None


@pytest.mark.parametrize(("entries", "table"), TABLES.values(), ids=TABLES)
def test_ledger_table(entries: list[Entry], table: str) -> None:
    told, expected = str(added(entries)).splitlines(), table.splitlines()
    times = [line for line in told if line.startswith("tokens used: ")]
    told = [line for line in told if line not in times]
    assert told[-len(expected) :] == expected
    assert told[0].startswith("by the query's route")
    assert len(times) == 1


def test_ledger_times_the_drafts() -> None:
    assert "tokens used: 1.0 times those of the drafts; RAG takes a draft for each question" in str(added([an_entry()]))
    twice = an_entry(usage=Usage(StepUsage(90, 10), StepUsage(190, 10), StepUsage(0, 0)))
    assert "tokens used: 3.0 times those of the drafts" in str(added([twice]))
    assert "times those of the drafts" not in str(added([an_entry(usage=Usage(None, None, StepUsage(5, 1)))]))


# Rows


PRICED, UNPRICEABLE = st.builds(Cost, st.decimals(0, 1000, places=9)), st.just(Cost(None, "no price"))
BOUNDS = st.one_of(st.tuples(PRICED, PRICED, PRICED), st.tuples(UNPRICEABLE, UNPRICEABLE, UNPRICEABLE))
ROW_USAGES = st.builds(lambda steps, only, costs: Usage(*steps, only, *costs), st.tuples(*[STEP] * 3), COUNTS, BOUNDS)
YES_OR_NO = st.booleans()
ROWS = st.lists(
    st.builds(
        Entry,
        st.just("answered"),
        ROW_USAGES,
        SECONDS,
        SECONDS,
        ROUTES,
        YES_OR_NO,
        st.just(False),
        YES_OR_NO,
        YES_OR_NO,
        models=MODELS,
    )
    | st.builds(Entry, st.just("failed"), ROW_USAGES, SECONDS, error=st.just("TimeoutError"), models=MODELS),
    max_size=12,
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


@examples(100)
@example([Entry("failed", Usage(FREE_STEP, None, FREE_STEP, 0, *[NINE_ZEROS] * 3), 1.0, error="TimeoutError")])
@given(ROWS)
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
