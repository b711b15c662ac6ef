"""A real model on loopback: a server of llama.cpp in a process of its own."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

SERVE = Path(__file__).parents[1] / "real" / "serve.py"


@dataclass
class Served:
    """A server, its address and its log."""

    url: str
    log: Path

    def count(self, words: str) -> int:
        """Return how often the log has some words."""
        return self.log.read_text("utf-8", "replace").count(words)

    def settle(self, words: str, count: int) -> None:
        """Wait until the log has some words so often."""
        for _ in range(200):
            if self.count(words) >= count:
                return
            time.sleep(0.05)
        pytest.fail(f"the log does not say {words!r} {count} times")

    def ask(self, prompt: str, **more: Any) -> dict[str, Any]:
        """Ask the server without a framework, for what it counts itself."""
        body = {"messages": [{"role": "user", "content": prompt}], "temperature": 0, "max_tokens": 4, **more}
        found: dict[str, Any] = httpx.post(f"{self.url}/chat/completions", json=body, timeout=120).json()
        return found


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[Served]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder / "server.log"
    with log.open("wb") as file:
        command = [sys.executable, str(SERVE), str(port), *options]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, text=True)  # noqa: S603
        assert process.stdin
        assert process.stdout
        try:
            line = process.stdout.readline()
            assert line.startswith("READY"), log.read_text("utf-8", "replace")[-2_000:]
            yield Served(f"http://127.0.0.1:{port}/v1", log)
        finally:
            process.stdin.close()
            process.kill()
            process.wait()
            process.stdout.close()
