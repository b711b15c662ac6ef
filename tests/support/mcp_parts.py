"""`selfroute mcp` over HTTP, in a process of its own."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx


@contextmanager
def served(command: Sequence[str | Path], printed: Path) -> Iterator[str]:
    """The address at which a command serves, once it does; what it prints goes into a file."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}/mcp"
    with (
        printed.open("w") as out,
        subprocess.Popen([*command, "--http", "--port", str(port)], stdout=out, stderr=out) as process,  # noqa: S603
    ):
        try:
            while process.poll() is None:
                with suppress(httpx.ConnectError):
                    httpx.get(address)
                    break
                time.sleep(0.1)
            yield address
        finally:
            process.terminate()
