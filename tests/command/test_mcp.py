"""`selfroute mcp`: the tools and resources over the wire, in process, over pipes and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import httpx2
import mcp
import pytest
from mcp.client.streamable_http import streamable_http_client

from command_parts import ANSWER, FERRY, QUESTION, Run, model
from loopback import LoopbackServer, Reply, Request
from selfroute_workbench.command import asking
from selfroute_workbench.command import mcp as command
from selfroute_workbench.command.options import Options

CREW = "# Crew\n\n" + "The boat has two masts. " * 300 + "Orla Finn is the captain.\n"
BEGIN = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "own", "version": "1"}},
}
ACCEPTS = {"accept": "application/json, text/event-stream"}


@pytest.fixture
def files(run: Run) -> list[Path]:
    Path("crew.md").write_text(CREW)
    return [Path("ferry.md"), Path("crew.md")]


@asynccontextmanager
async def client_of(files: list[Path], **options: Any) -> AsyncGenerator[Any, None]:
    session, library, _ = asking.open_files(Options(files=files, as_json=True, **options))
    async with mcp.Client(command.server_of(session, library)) as client:
        yield client


async def test_mcp_ask(files: list[Path]) -> None:
    seen: list[str] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        seen.append(message or "")

    async with client_of(files) as client:
        result = await client.call_tool("ask", {"question": QUESTION}, progress_callback=progress)
        declined = await client.call_tool("ask", {"question": "What does a ticket to the moon cost?"})
    told = result.structured_content
    assert (told["answer"], told["route"], told["answerable"]) == (ANSWER, "rag", True)
    assert told["citations"] == [{"source": "ferry.md", "line": 3, "text": ANSWER}]
    assert seen == ["searching", "answering from rag"]
    assert declined.structured_content["answer"] == "(not in the documents)"
    assert json.loads(result.content[0].text) == told


async def test_mcp_search_find_open(files: list[Path]) -> None:
    async with client_of(files) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["ask", "search", "find", "open"]
        searched = (await client.call_tool("search", {"query": "Who is the captain?"})).structured_content
        found = (await client.call_tool("find", {"document": "crew.md", "words": "captain"})).structured_content
        opened = (await client.call_tool("open", {"document": "ferry.md", "start": 2})).structured_content
        missing = [
            (await client.call_tool("open", {"document": name})).structured_content
            for name in ("moon.md", "../ferry.md", f"{Path.cwd()}/ferry.md", "/etc/passwd")
        ]
        refused = (await client.call_tool("search", {"query": " "})).structured_content
        resources = (await client.list_resources()).resources
        texts = [(await client.read_resource(one.uri)).contents[0].text for one in resources]
    assert "Orla Finn" in searched["passages"][0]["text"]
    assert {one["document"] for one in searched["passages"]} == {"ferry.md", "crew.md"}
    assert any("Orla Finn" in one["text"] for one in found["sections"])
    assert opened["text"] == FERRY.strip()[2:]
    assert all(one["missing"] for one in missing)
    assert refused["message"].startswith("Nothing was looked for: the question is blank")
    assert [one.name for one in resources] == ["ferry.md", "crew.md"]
    assert texts == [FERRY, CREW]
    assert str(Path.cwd()) not in str((searched, found, opened, resources))


@pytest.mark.parametrize("drafted", [False, True], ids=["the draft", "whole documents"])
async def test_mcp_client_leaves(files: list[Path], server: LoopbackServer, drafted: bool) -> None:
    def answer(request: Request) -> Reply:
        hangs = drafted != request.prompt.startswith("Passages")
        return Reply("unanswerable", first_delay=1.0 if hangs else 0.0)

    server.answer = answer
    _, name, _, url = model(server)
    steps = 1 + drafted
    async with client_of(files, model=name, base_url=url) as client:
        asking_it = asyncio.create_task(client.call_tool("ask", {"question": "Who is it?"}))
        while len(server.book) < steps:  # noqa: ASYNC110 - it is another thread's
            await asyncio.sleep(0.02)
        asking_it.cancel()
        await asyncio.gather(asking_it, return_exceptions=True)
        await asyncio.to_thread(server.settle)
        assert (len(server.book), server.book[-1].left) == (steps, True)
        assert "Orla Finn" in str(await client.call_tool("search", {"query": "Who is the captain?"}))
    assert len(server.book) == steps


async def test_mcp_provider_error_without_key(
    files: list[Path], server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-" + "secret" * 6
    monkeypatch.setenv("OPENAI_API_KEY", key)
    _, name, _, url = model(server)
    server.stop()
    async with client_of(files, model=name, base_url=url) as client:
        result = await client.call_tool("ask", {"question": QUESTION})
    assert result.is_error
    assert "onnect" in result.content[0].text
    assert key not in str(result)


@pytest.mark.parametrize("token", [None, "", " \n"])
def test_mcp_public_host_needs_token(run: Run, monkeypatch: pytest.MonkeyPatch, token: str | None) -> None:
    monkeypatch.delenv(command.TOKEN, raising=False)
    if token is not None:
        monkeypatch.setenv(command.TOKEN, token)
    refused = run("mcp", "ferry.md", "--http", "--host", "0.0.0.0")  # noqa: S104 - that it is refused
    assert (refused.code, command.TOKEN in refused.err) == (2, True)


@asynccontextmanager
async def serving(files: list[Path], token: str) -> AsyncGenerator[tuple[str, list[str]], None]:
    """The command in a process of its own: its address, and what it printed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "selfroute_workbench.cli", "mcp", *map(str, files), "--http", "--port", str(port),
        stdout=-1, stderr=-1,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), command.TOKEN: token},
    )  # fmt: skip
    assert process.stdout
    assert process.stderr
    printed: list[str] = []
    try:
        while not printed or "Serving 2 documents" not in printed[-1]:
            line = await asyncio.wait_for(process.stderr.readline(), 60)
            assert line, printed
            printed.append(line.decode().rstrip())
        yield f"http://127.0.0.1:{port}/mcp", printed
    finally:
        process.terminate()
        rest = await process.communicate()
        printed += [part.decode() for part in rest]


async def code_of(address: str, headers: dict[str, str]) -> int:
    """Return the status of a first request, once the server listens."""
    async with httpx.AsyncClient() as client:
        for _ in range(100):
            with suppress(httpx.ConnectError):
                return (await client.post(address, json=BEGIN, headers={**ACCEPTS, **headers})).status_code
            await asyncio.sleep(0.1)
    raise AssertionError(address)


@pytest.mark.matrix
@pytest.mark.parametrize("token", [" ", pytest.param("opensesame", marks=pytest.mark.matrix)])
async def test_mcp_http_needs_a_token(files: list[Path], token: str) -> None:
    async with serving(files, token) as (address, printed):
        shown = [line for line in printed if "Bearer" in line]
        header = shown[0] if shown else f"Authorization: Bearer {token}"
        name, value = header.split(": ")
        assert [await code_of(address, {name: sent}) for sent in ("", "Bearer", "Bearer other")] == [401] * 3
        async with httpx2.AsyncClient(headers={name: value}) as sender:
            transport = streamable_http_client(address, http_client=sender)
            async with mcp.Client(transport) as client:
                told = (await client.call_tool("ask", {"question": QUESTION})).structured_content
    assert told["answer"] == ANSWER
    assert len(shown) == (not token.strip())  # one that is set is not printed
    assert "\n".join(printed).count(value.split()[1]) == len(shown)


async def test_mcp_http_refuses_other_tokens(files: list[Path]) -> None:
    session, library, _ = asking.open_files(Options(files=files, as_json=True))
    app = command.server_of(session, library).streamable_http_app(json_response=True)
    transport = httpx.ASGITransport(command.with_token(app, "opensesame"))
    codes = []
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport) as client:
        for sent in ({}, {"authorization": "Bearer other"}, {"authorization": "Bearer opensesame"}):
            answer = await client.post("http://127.0.0.1:8321/mcp", json=BEGIN, headers={**ACCEPTS, **sent})
            codes.append(answer.status_code)
        for sent in (
            ["Bearer other", "Bearer opensesame"],
            ["Bearer opensesame"] * 2,
            ["Basic opensesame"],
            ["\u00e9"],
        ):
            headers = [*ACCEPTS.items(), *(("authorization", one.encode()) for one in sent)]
            refused = await client.post("http://127.0.0.1:8321/mcp", json=BEGIN, headers=headers)
            codes.append(refused.status_code)
    assert codes == [401, 401, 200, *[401] * 4]
    assert answer.json()["result"]["serverInfo"]["name"] == "selfroute"


async def test_mcp_over_pipes(files: list[Path]) -> None:
    """A second client: the protocol's lines, written by hand."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "selfroute_workbench.cli", "mcp", *map(str, files), stdin=-1, stdout=-1, stderr=-1,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert process.stdin
    assert process.stdout
    search = {"name": "search", "arguments": {"query": "Who is the captain?"}}
    for sent in (BEGIN, {"method": "notifications/initialized"}, {"id": 2, "method": "tools/call", "params": search}):
        process.stdin.write(json.dumps({**sent, "jsonrpc": "2.0"}).encode() + b"\n")
    answers = [json.loads(await asyncio.wait_for(process.stdout.readline(), 60)) for _ in range(2)]
    process.stdin.close()
    assert await asyncio.wait_for(process.wait(), 30) == 0
    assert [one["id"] for one in answers] == [1, 2]
    assert "Orla Finn" in answers[1]["result"]["content"][0]["text"]
