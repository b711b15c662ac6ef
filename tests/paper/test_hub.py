"""The Hugging Face Hub is asked once: whether it answers is known within seconds, and asked anew each time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from huggingface_hub import constants
from typing_extensions import override

from paper.hub import download, is_online

MODEL = ("facebook/contriever", "model")
DATA_SET = ("THUDM/LongBench", "dataset")
repositories = pytest.mark.parametrize(("name", "kind"), [MODEL, DATA_SET])


class Empty(BaseHTTPRequestHandler):
    """A hub that has nothing."""

    def do_GET(self) -> None:
        self.send_error(404)

    @override
    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ThreadingHTTPServer]:
    """The Hub, at an address of this machine."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), Empty) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        yield server
        server.shutdown()
        thread.join()


@repositories
def test_a_hub_that_went_away_is_offline_at_once(server: ThreadingHTTPServer, name: str, kind: str) -> None:
    assert is_online(name, kind)  # type: ignore[arg-type]
    server.socket.close()
    started = time.monotonic()
    assert not is_online(name, kind)  # type: ignore[arg-type]
    assert time.monotonic() - started < 5


def test_a_hub_at_an_unknown_address_is_offline(server: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "https://hub.invalid")
    assert not is_online("facebook/contriever", "model")


def test_a_download_from_a_hub_that_does_not_answer_is_an_error_of_few_words(server: ThreadingHTTPServer) -> None:
    server.socket.close()
    with pytest.raises(OSError, match=r"^it does not answer$"):
        download("THUDM/LongBench", "data.zip")
