"""A real Chromium, which asks nothing of the network that a test has not started."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_QUIET = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
)


_NEEDED = "needs Chromium or Chrome: apt-get install chromium, or set CHROMIUM to its path"


def _chromium() -> str | None:
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)


def pytest_report_header() -> str:
    """Say once which browser it is, or what to install."""
    path = _chromium()
    return f"browser: {path}" if path else f"SKIPPED: tests/browser {_NEEDED}"


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    needed = "needs playwright: make test-browser"
    sync_api = pytest.importorskip("playwright.sync_api", reason=needed)
    path = _chromium()
    if not path:
        pytest.skip(_NEEDED)
    sandbox = [] if os.geteuid() else ["--no-sandbox"]  # Chromium refuses to run as root with one
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=[*_QUIET, *sandbox])
        yield started
        started.close()


@pytest.fixture(params=[360, 1400])
def width(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def tab(browser: Any, width: int) -> Iterator[Any]:
    """A tab on a screen that is so many pixels wide; a request to anywhere else, or an error on the page, fails."""
    context = browser.new_context(viewport={"width": width, "height": 800})
    page = context.new_page()
    page.set_default_timeout(20_000)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
    allowed = ("file:", "data:", "http://127.0.0.1:")
    page.on("request", lambda request: None if request.url.startswith(allowed) else wrong.append(request.url))
    page.wrong = wrong
    yield page
    context.close()
    assert wrong == []
