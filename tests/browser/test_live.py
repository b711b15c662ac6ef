"""The live page in a real browser, over a ledger that goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from selfroute import Ledger
from selfroute.usage.counts import Cost, StepUsage, Usage
from selfroute.usage.entry import Entry
from selfroute.usage.live import live_figures, live_page

pytestmark = pytest.mark.browser

PAID, ONLY = Cost(Decimal("0.25")), Cost(Decimal("1.25"))
ANSWERED = Entry(
    "answered",
    Usage(StepUsage(100, 10, cost=PAID), long_context_only=1000, cost_long_context_only=ONLY),
    2.0,
    0.5,
    route="rag",
    declined=False,
    answerable=True,
)


class Service(ThreadingHTTPServer):
    """Serves the page of a ledger, and its figures, unless it is `broken`."""

    daemon_threads = True

    def __init__(self) -> None:
        self.ledger, self.broken, self.asked = Ledger(), False, 0
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    server: Service

    def do_GET(self) -> None:
        if self.path == "/live":
            return self.say(200, "text/html; charset=utf-8", live_page("live.json", seconds=0.1))
        if self.path == "/live.json":
            self.server.asked += 1
            return self.say(
                503 if self.server.broken else 200, "application/json", json.dumps(live_figures(self.server.ledger))
            )
        return self.say(204, "text/plain", "")  # the icon that browsers ask for

    def say(self, status: int, kind: str, body: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: Any) -> None:
        pass


# Tests ask for it before the tab, which then is closed first: it would tell of each request that fails.
@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as running:
        Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


def open_page(tab: Any, service: Service) -> None:
    tab.goto(f"http://127.0.0.1:{service.server_port}/live")
    tab.wait_for_selector("#state:has-text('Live')")


def test_the_page_shows_the_figures_and_goes_on_with_the_ledger(service: Service, tab: Any) -> None:
    for _ in range(3):
        service.ledger.add(ANSWERED)
    open_page(tab, service)
    assert tab.inner_text("#per-hour") == "3"
    assert tab.inner_text("#declined") == "0 %"
    assert tab.inner_text("#saved") == "$3.00"
    assert tab.inner_text("#p95") == "2 s"
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    dear = replace(ANSWERED.usage, long_context=StepUsage(1000, 10, cost=ONLY))
    service.ledger.add(replace(ANSWERED, route="long_context", declined=True, usage=dear))
    tab.wait_for_selector("#per-hour:text-is('4')")
    assert tab.inner_text("#per-hour-more") == "3 passages, 1 whole documents"
    assert tab.inner_text("#declined") == "25 %"
    assert tab.inner_text("#saved") == "$2.75"
    assert tab.locator("#hours rect").count() == 2
    tab.get_by_text("The same as a table").click()
    assert tab.locator("#table tr").first.inner_text().split("\t") == ["the last hour", "3", "0", "1", "1", "0"]


def test_it_pauses_by_keyboard(service: Service, tab: Any) -> None:
    open_page(tab, service)
    tab.keyboard.press("Tab")
    tab.keyboard.press("Tab")
    tab.keyboard.press("Space")
    tab.wait_for_selector("#state:has-text('Paused')")
    tab.wait_for_timeout(300)  # what was on its way
    asked = service.asked
    tab.wait_for_timeout(500)
    assert service.asked == asked
    tab.keyboard.press("Space")
    tab.wait_for_selector("#state:has-text('Live')")


def test_a_service_that_does_not_answer_is_told_and_asked_again(service: Service, tab: Any) -> None:
    service.ledger.add(ANSWERED)
    open_page(tab, service)
    service.broken = True
    tab.wait_for_selector("#state:has-text('No figures (the server says 503)')")
    assert tab.inner_text("#per-hour") == "1"  # the last that is known stays
    service.broken = False
    tab.wait_for_selector("#state:has-text('Live')")
    tab.wrong.clear()  # the browser tells of each 503


def test_a_name_of_an_error_is_text(service: Service, tab: Any) -> None:
    service.ledger.read([{"error": "<img src=x onerror=alert(1)>"}])
    open_page(tab, service)
    assert "<img src=x onerror=alert(1)>" in tab.inner_text("#facts")
    assert tab.locator("#facts img").count() == 0
