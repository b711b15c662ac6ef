"""Runs examples as a user would, in processes of their own.

As a program it runs one with embeddings that cost nothing: the real ones take many seconds to load and to index with.

    python tests/support/examples_parts.py examples/chat.py --model openai:test
"""

from __future__ import annotations

import importlib.util
import os
import re
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from typing_extensions import Self

from word_vectors import LangChainWords, LlamaIndexWords

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
_DEADLINE = 120.0


def load(name: str) -> Any:
    """Import an example."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def wait_for(condition: Callable[[], Any], what: Callable[[], str] = str) -> Any:
    """Wait until something holds, and return it."""
    deadline = time.monotonic() + _DEADLINE
    while not (found := condition()):
        assert time.monotonic() < deadline, what()
        time.sleep(0.02)
    return found


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Started:
    """A program that runs, its output as it comes; a context manager, which ends it.

    Attributes:
        text: What it has printed, on stdout and on stderr.
    """

    def __init__(self, command: list[str], *, model_at: str | None = None, cwd: Path = ROOT) -> None:
        keys = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": model_at or "", "OPENAI_API_BASE": model_at or ""}
        paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        quiet = {"HF_HUB_OFFLINE": "1", "ANONYMIZED_TELEMETRY": "False", "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(  # noqa: S603
            command,
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": paths, **quiet, **(keys if model_at else {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            bufsize=1,
        )
        self.text, self._seen = "", 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while piece := os.read(self.process.stdout.fileno(), 4096):  # type: ignore[union-attr]
            self.text += piece.decode(errors="replace")

    def until(self, pattern: str) -> re.Match[str]:
        """Wait for more output that matches; the next call looks behind it."""

        def found() -> re.Match[str] | None:
            match = re.compile(pattern).search(self.text, self._seen)
            assert match or self._reader.is_alive(), self.text
            return match

        match: re.Match[str] = wait_for(found, lambda: f"no {pattern!r} in {self.text!r}")
        self._seen = match.end()
        return match

    def say(self, line: str) -> None:
        """Type a line."""
        assert self.process.stdin
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def end(self) -> int:
        """Wait until it ends by itself, and return its exit code."""
        code = self.process.wait(_DEADLINE)
        self._reader.join()
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._reader.join()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe
            pipe.close()


def start(name: str, *args: object, model_at: str | None = None, cwd: Path = ROOT) -> Started:
    """Start an example, with embeddings that cost nothing.

    Args:
        name: Its name.
        args: Its arguments.
        model_at: The address of the server that answers as OpenAI; without one the extractive reader does.
        cwd: Where.
    """
    model = ["--model", "openai:test"] if model_at else []
    command = [sys.executable, __file__, str(EXAMPLES / f"{name}.py"), *model, *map(str, args)]
    return Started(command, model_at=model_at, cwd=cwd)


if __name__ == "__main__":
    from selfroute_workbench.demo import with_langchain, with_llamaindex

    with_langchain.load_embeddings = LangChainWords  # type: ignore[assignment,misc]
    with_llamaindex.load_embeddings = LlamaIndexWords  # type: ignore[assignment,misc]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a terminal; in the background it may be ignored
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")
