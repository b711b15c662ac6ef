"""Whether the hub is within reach is known in seconds, not after its client has tried for minutes."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing

import pytest
from huggingface_hub import constants

from selfroute.evaluation.hub import is_within_reach


@pytest.fixture
def listening(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """The hub, at an address of this machine."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    is_within_reach.cache_clear()
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{server.getsockname()[1]}")
        yield server
    is_within_reach.cache_clear()


def test_a_hub_that_listens_is_within_reach(listening: socket.socket) -> None:
    assert is_within_reach()


def test_a_hub_that_nobody_answers_for_is_not(listening: socket.socket) -> None:
    listening.close()
    assert not is_within_reach()


def test_a_name_that_nobody_knows_is_not(listening: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "https://hub.invalid")
    assert not is_within_reach()


def test_who_says_offline_is_not_asked(listening: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert not is_within_reach()


def test_behind_a_proxy_the_client_finds_out(listening: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.invalid:3128")
    listening.close()
    assert is_within_reach()
