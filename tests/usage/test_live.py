"""The page over a running ledger, and the figures that it shows."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from html.parser import HTMLParser
from statistics import quantiles

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes import examples
from selfroute import Ledger
from selfroute.usage.counts import Cost, StepUsage, Usage
from selfroute.usage.entry import Entry
from selfroute.usage.live import live_figures, live_page

NOW = 1_700_000_000.0
ROUTES = ("rag", "sections", "long_context")
PAID, ONLY = Cost(Decimal("0.25")), Cost(Decimal("1.25"))
ANSWERED = Entry(
    "answered",
    Usage(StepUsage(100, 10, cost=PAID), long_context_only=1000, cost_long_context_only=ONLY),
    2.0,
    1.0,
    route="rag",
    declined=False,
    answerable=True,
)
ENTRIES = st.builds(
    lambda route, declined, outcome: replace(ANSWERED, route=route, declined=declined, outcome=outcome, error="E"),
    st.sampled_from([*ROUTES, None]),
    st.booleans(),
    st.sampled_from(["answered", "left", "failed", "open"]),
)
AGO = st.floats(0, 30 * 3600)


@examples(200)
@given(st.lists(st.tuples(ENTRIES, AGO), max_size=30))
def test_every_query_of_a_day_is_in_the_hour_in_which_it_was_over(traffic: list[tuple[Entry, float]]) -> None:
    ledger, expected = Ledger(), [Counter[str]() for _ in range(24)]
    for entry, ago in sorted(traffic, key=lambda each: -each[1]):
        ledger.add(entry, at=NOW - ago)
        minutes = int(NOW // 60) - int((NOW - ago) // 60)
        if minutes < 24 * 60 and entry.outcome != "open":
            counts = expected[23 - minutes // 60]
            failed = entry.outcome == "failed"
            counts.update(["failed"] if failed else ["queries", *filter(None, [entry.route])])
            counts["declined"] += bool(entry.declined) and not failed
    found = ledger.by_hour(until=NOW)
    assert [Counter({name: number for name, number in each.items() if number}) for each in found] == [
        +each for each in expected
    ]
    assert ledger.by_hour(3, until=NOW) == found[-3:]


def test_minutes_are_forgotten_after_a_day_whatever_the_order() -> None:
    ledger = Ledger()
    for minute in range(5000):
        ledger.add(ANSWERED, at=NOW + 60 * minute)
    assert len(ledger._hours._minutes) <= 24 * 60
    assert [each["queries"] for each in ledger.by_hour(until=NOW + 60 * 4999)] == [60] * 24


def test_a_ledger_counts_what_is_over_now_and_no_rows_and_begins_again_when_it_is_reset() -> None:
    ledger = Ledger()
    ledger.add(ANSWERED)
    ledger.read([{"usage": ANSWERED.usage.as_dict(), "route": "rag"}])
    assert ledger.by_hour()[-1]["queries"] == 1
    assert ledger.to_dict()["queries"] == 2
    ledger.reset()
    assert not any(each["queries"] for each in ledger.by_hour())


def test_the_figures_are_those_of_known_traffic() -> None:
    ledger = Ledger()
    both = replace(ANSWERED.usage, long_context=StepUsage(1000, 10, cost=ONLY))
    for number in range(40):
        escalated = number % 4 == 0
        entry = replace(ANSWERED, seconds=float(number), seconds_to_first_text=number / 2)
        if escalated:
            entry = replace(entry, route="long_context", declined=True, usage=both, answerable=number > 20)
        ledger.add(entry)
    ledger.add(replace(ANSWERED, outcome="failed", error="TimeoutError", route=None))
    figures = json.loads(json.dumps(live_figures(ledger)))
    last = figures["hours"][-1]
    assert (last["queries"], last["rag"], last["long_context"], last["failed"]) == (40, 30, 10, 1)
    assert (figures["declined"], figures["declined_share"], figures["unanswerable"]) == (10, 0.25, 6)
    # each saves 1.25 - 0.25, and each escalated one pays 1.25 more; so does the failed one, which is not compared
    assert figures["saved"] == "27.50"
    assert figures["cost"] == "22.75"
    times = [float(number) for number in range(40)]
    assert figures["p95"]["all"]["end"] == pytest.approx(quantiles(times, n=20, method="inclusive")[18])
    assert figures["p95"]["all"]["first_text"] == pytest.approx(figures["p95"]["all"]["end"] / 2)
    assert figures["p95"]["sections"] == {"end": None, "first_text": None}
    assert figures["errors"] == {"TimeoutError": 1}


def test_an_empty_ledger_has_figures_too() -> None:
    figures = live_figures(Ledger())
    assert (figures["queries"], figures["declined_share"], figures["saved"]) == (0, None, None)
    assert len(figures["hours"]) == 24


class Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_the_live_page_asks_its_own_server_and_nobody_else() -> None:
    hostile = "</title><script>alert(1)</script>\" onload='x' $style"
    plain, page = Tags(live_page()), Tags(live_page(hostile, title=hostile))
    assert [(tag, list(attributes)) for tag, attributes in page.found] == [
        (tag, list(attributes)) for tag, attributes in plain.found
    ]
    assert next(each for tag, each in page.found if tag == "main")["data-figures"] == hostile
    policy = next(
        each["content"] or "" for _, each in page.found if each.get("http-equiv") == "Content-Security-Policy"
    )
    assert "default-src 'none'" in policy
    assert "connect-src 'self'" in policy
    assert "unsafe" not in policy
    assert not [each for _, each in page.found if {"src", "action", "style"} & set(each)]
    assert {each["href"] for _, each in page.found if "href" in each} == {"#now"}
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", live_page())


@pytest.mark.parametrize(("seconds", "waits"), [(0, 0.1), (2, 2), (1e12, 86_400), (float("inf"), 86_400)])
def test_a_page_waits_between_two_requests_however_long_it_is_told_to(seconds: float, waits: float) -> None:
    assert f'data-seconds="{float(waits)}"' in live_page(seconds=seconds)
