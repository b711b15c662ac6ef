"""The servers that the tests of a real model share."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator

import pytest

from real_parts import Served, serving


@pytest.fixture(scope="session", autouse=True)
def _left_open() -> Iterator[None]:
    """Let go of the connections that sync clients leave to Python, which is no fault of a test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("served")) as server:
        yield server


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with a window of 2,048 tokens."""
    with serving(tmp_path_factory.mktemp("small"), "--ctx", "2048") as server:
        yield server
