"""`selfroute mcp`, over pipes and HTTP, seen by clients that need environments of their own: `make test-clients`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from loopback import LoopbackServer, Reply, Request
from mcp_parts import served

CLIENTS = Path(os.environ.get("SELFROUTE_CLIENTS", ""))
HERE = Path(__file__).parent
CREW = "# Crew\n\nOrla Finn is the captain.\n"
ANSWER = "Orla Finn is the captain of the boat and of everybody who sails in her"
NAMES = ["ask", "search", "find", "open"]
KEY = "sk-" + "secret" * 6
pytestmark = [
    pytest.mark.skipif(
        "SELFROUTE_CLIENTS" not in os.environ, reason="`make test-clients` installs them, and runs this"
    ),
    pytest.mark.timeout(120),
]


def answer(request: Request) -> Reply:
    if "Who fails?" in request.prompt:
        return Reply(status=429, error={"message": f"Rate limit reached for {KEY}", "code": "rate_limit_exceeded"})
    if "Who waits?" in request.prompt:
        return Reply(f"95 95\n{ANSWER}", hold_after=3)
    return Reply(f"95 95\n{ANSWER}", delay=0.25 if "Be slow" in request.prompt else 0.0)


@pytest.fixture(scope="module")
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(answer) as started:
        yield started


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("served") / "boats"
    made.mkdir()
    Path(made, "crew.md").write_text(CREW)
    Path(made, "ferry.md").write_text("# Ferry\n\nThe ferry leaves Haldon pier at seven.\n")
    return made


@pytest.fixture(scope="module")
def stdio(server: LoopbackServer, folder: Path) -> Iterator[list[str]]:
    """The command that serves the folder."""
    command = [
        "-m",
        "selfroute_workbench.cli",
        "mcp",
        folder,
        "--model",
        "openai:test",
        "--base-url",
        server.openai_url,
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.setenv("SELFROUTE_MCP_TOKEN", "opensesame")
        yield [sys.executable, *map(str, command)]


@pytest.fixture(scope="module")
def http(stdio: list[str], folder: Path) -> Iterator[list[str]]:
    """The address at which it is served."""
    with served(stdio, folder.parent / "printed") as address:
        yield [address]


@pytest.fixture(params=["stdio", "http"])
def there(request: pytest.FixtureRequest) -> list[str]:
    """What a client takes to reach the server: the command, or the address."""
    reached: list[str] = request.getfixturevalue(request.param)
    return reached


@contextmanager
def client(*command: str | Path) -> Iterator[dict[str, Any]]:
    """What a client saw; it is there until this ends."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        line = process.stdout.readline()
        yield json.loads(line)
        process.stdin.close()
        assert process.wait(30) == 0


def check_tour(seen: dict[str, Any], folder: Path) -> None:
    """Check what every client has to see."""
    assert seen["server"] == "boats"
    assert seen["instructions"].endswith('"crew.md" ("Crew"), "ferry.md" ("Ferry").')
    assert [(tool["name"], tool["annotations"]["readOnlyHint"]) for tool in seen["tools"]] == [
        (name, True) for name in NAMES
    ]
    assert all(tool["outputSchema"]["properties"] for tool in seen["tools"])
    assert [one["name"] for one in seen["resources"]] == ["crew.md", "ferry.md"]
    assert seen["searched"]["passages"][0]["document"] == "crew.md"
    assert seen["found"]["sections"][0]["text"] == seen["opened"]["text"] == CREW.strip()
    assert "no such document" in seen["missing"]["message"]
    assert (seen["slow"]["answer"], seen["slow"]["route"]) == (ANSWER, "rag")
    assert len(seen["progress"]) >= 4
    failed = json.dumps(seen["failed"])
    assert seen["failed"]["isError"]
    assert "Rate limit reached" in failed
    assert KEY not in failed
    assert str(folder) not in json.dumps(seen)


@pytest.mark.parametrize(("package", "mode"), [("sdk", "legacy"), ("client", "legacy"), ("client", "auto")])
def test_clients_in_typescript(server: LoopbackServer, folder: Path, there: list[str], package: str, mode: str) -> None:
    with client("node", HERE / "client.mjs", package, mode, *there) as seen:
        check_tour(seen, folder)
        assert "Abort" in seen["left"], seen["left"]
        server.settle(30)
        assert ("Who waits?" in server.book[-1].request.prompt, server.book[-1].left) == (True, True)


def test_clients_of_mcp_1(folder: Path, there: list[str]) -> None:
    with client(CLIENTS / "mcp-1/bin/python", HERE / "client.py", "mcp", *there) as seen:
        check_tour(seen, folder)


def test_clients_of_langchain_with_two_servers(there: list[str]) -> None:
    with client(CLIENTS / "mcp-1/bin/python", HERE / "client.py", "langchain", *there) as seen:
        prefixes = ["ours_", "theirs_"] if there[0].startswith("http") else ["", ""]
        assert seen["names"] == [f"{prefix}{name}" for prefix in prefixes for name in NAMES]
        assert all('"crew.md" ("Crew")' in one for one in seen["described"][:4])
        if not there[0].startswith("http"):
            assert all("The letters of another board." in one for one in seen["described"][4:])
        assert seen["slow"]["answer"] == ANSWER


def test_clients_of_llama_index_in_one_environment(stdio: list[str], tmp_path: Path) -> None:
    python = CLIENTS / "llama-index/bin/python"
    program = [python, HERE / "client.py", "llama_index"]
    with served([python, *stdio[1:]], tmp_path / "printed") as address, client(*program, address) as seen:
        assert seen["names"] == NAMES
        assert all('"crew.md" ("Crew")' in one for one in seen["described"])
        assert seen["slow"]["answer"] == ANSWER
