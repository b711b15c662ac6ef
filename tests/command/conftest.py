"""What the tests of the command share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from command_parts import FERRY, Result, Run
from loopback import LoopbackServer
from selfroute_workbench import cli
from selfroute_workbench.command import asking
from word_vectors import LangChainWords


@pytest.fixture
def words() -> LangChainWords:
    return LangChainWords()


@pytest.fixture
def run(
    words: LangChainWords, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Run:
    """The command in a folder of its own, which holds `ferry.md`, and a cache folder of its own."""
    monkeypatch.setattr(asking, "load_embeddings", lambda _name=None: words)
    monkeypatch.delenv("COLUMNS", raising=False)  # which pytest-xdist sets
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    Path("ferry.md").write_text(FERRY)

    def call(*args: str | Path) -> Result:
        code = cli.main([*map(str, args)])
        printed = capsys.readouterr()
        return Result(code, printed.out, printed.err)

    return call


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(lambda _request: "unanswerable") as started:
        yield started
