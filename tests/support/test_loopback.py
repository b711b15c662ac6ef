"""The server on loopback fails as providers do, and is stopped without a trace; the rest is seen by the hosts' laws."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from langchain_core.exceptions import (
    ContextOverflowError,
    ModelAPIError,
    ModelError,
    ModelInvalidRequestError,
    ModelRateLimitError,
)

import loopback
from hosts_wires import chat_model
from langchain_parts import MODES, QUESTION, ask
from loopback import LoopbackServer, Reply

pytestmark = pytest.mark.usefixtures("frozen")


@pytest.mark.parametrize(
    ("client", "reply", "error"),
    [
        ("openai", loopback.RATE_LIMITED, ModelRateLimitError),
        ("openai", loopback.SERVER_ERROR, ModelAPIError),
        ("openai", loopback.TOO_LONG_TYPED, ContextOverflowError),
        ("openai", loopback.TOO_LONG_IN_WORDS, ModelInvalidRequestError),
        ("openai", Reply(status=404), ModelError),
        ("gemini", loopback.GEMINI_RATE_LIMITED, ModelRateLimitError),
        ("gemini", loopback.GEMINI_SERVER_ERROR, ModelAPIError),
        ("gemini", loopback.GEMINI_TOO_LONG, ContextOverflowError),
    ],
)
@pytest.mark.parametrize("mode", MODES)
async def test_error_answers_raise_what_the_clients_make_of_them(
    server: LoopbackServer, client: str, reply: Reply, error: type[Exception], mode: str
) -> None:
    server.answer = lambda _: reply
    with pytest.raises(error) as caught:
        await ask(chat_model(server, client), QUESTION, mode)
    assert isinstance(caught.value, ContextOverflowError) is (error is ContextOverflowError)
    await asyncio.to_thread(server.settle)
    (entry,) = server.book
    assert (entry.status, entry.done, entry.input_tokens) == (reply.status, True, 0)


def test_stopping_in_mid_stream_is_no_leaving_and_leaves_no_warning_behind() -> None:
    program = """
import gc, http.client, json
from loopback import LoopbackServer, Reply

with LoopbackServer(lambda _: Reply("word " * 100, delay=0.01), keep_alive=True) as server:
    asking = http.client.HTTPConnection(server.gemini_url.removeprefix("http://"))
    asking.request("POST", "/v1/chat/completions", json.dumps({"model": "m", "stream": True, "messages": []}))
    response = asking.getresponse()
    response.readline()
response.close(), asking.close(), gc.collect()
assert (server.book[0].left, server.book[0].done) == (False, False)
"""
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", program]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)  # noqa: S603
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
