"""What the tests of stores share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from store_cases import in_postgres


@pytest.fixture(scope="session", autouse=True)
def _servers() -> Iterator[None]:
    """Stop the servers that cases have started."""
    yield
    in_postgres.stop()
