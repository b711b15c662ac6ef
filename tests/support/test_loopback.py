"""The server on loopback does what its laws lean on: a wrong one would make them hold of nothing."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from contextlib import aclosing, closing
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import openai
import pytest
from langchain_core.exceptions import (
    ContextOverflowError,
    ModelAPIError,
    ModelError,
    ModelInvalidRequestError,
    ModelRateLimitError,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage

import loopback
from hosts_wires import DROPPED, chat_model
from loopback import Entry, LoopbackServer, Reply

pytestmark = pytest.mark.usefixtures("frozen")

PIECES = ["Mr", " Lin", "", " did."]
PROMPT, TEXT, SLOW = "Who chaired the meeting?", "Mr Lin did.", Reply("word " * 300, delay=0.01)


async def _read(llm: BaseChatModel) -> AIMessage:
    return reduce(add, [chunk async for chunk in llm.astream(PROMPT)])


ASK: dict[str, Callable[[BaseChatModel], AIMessage]] = {
    "invoke": lambda llm: llm.invoke(PROMPT),
    "ainvoke": lambda llm: asyncio.run(llm.ainvoke(PROMPT)),
    "stream": lambda llm: reduce(add, llm.stream(PROMPT)),
    "astream": lambda llm: asyncio.run(_read(llm)),
}
both = pytest.mark.parametrize("client", ["openai", "gemini"])
every_mode = pytest.mark.parametrize("mode", ASK)


def only_entry(server: LoopbackServer) -> Entry:
    server.settle()
    (entry,) = server.book
    return entry


@both
@every_mode
@pytest.mark.parametrize("usage", [True, False])
def test_what_is_reported_is_what_is_booked(server: LoopbackServer, client: str, mode: str, usage: bool) -> None:
    server.answer = lambda _: Reply(
        pieces=["Mr", " Lin", "", " did."], cached_tokens=2, thinking_tokens=20, usage=usage
    )
    message = ASK[mode](chat_model(server, client))
    entry = only_entry(server)
    assert (message.text, entry.request.prompt, entry.request.protocol) == (TEXT, PROMPT, client)
    assert (entry.sent, entry.input_tokens, entry.output_tokens, entry.cached_tokens) == (4, 4, 24, 2)
    assert (entry.done, entry.left) == (True, False)
    told: Any = message.usage_metadata
    if usage:
        assert (told["input_tokens"], told["output_tokens"], told["total_tokens"]) == (4, 24, 28)
        assert told["input_token_details"]["cache_read"] == 2
    assert bool(told) is usage


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
@every_mode
def test_error_answers_raise_what_the_clients_make_of_them(
    server: LoopbackServer, client: str, reply: Reply, error: type[Exception], mode: str
) -> None:
    server.answer = lambda _: reply
    with pytest.raises(error) as caught:
        ASK[mode](chat_model(server, client))
    assert isinstance(caught.value, ContextOverflowError) is (error is ContextOverflowError)
    entry = only_entry(server)
    assert (entry.status, entry.done, entry.input_tokens) == (reply.status, True, 0)


@both
@pytest.mark.parametrize("ending", ["drop_after", "error_after"])
@pytest.mark.parametrize("after", [0, 2])
def test_a_stream_breaks_off_where_the_reply_says(server: LoopbackServer, client: str, ending: str, after: int) -> None:
    server.answer = lambda _: Reply(TEXT, **{ending: after})  # type: ignore[arg-type]
    seen = ""
    with pytest.raises(DROPPED if ending == "drop_after" else (openai.APIError, ModelAPIError)):  # noqa: PT012
        for chunk in chat_model(server, client).stream(PROMPT):
            seen += chunk.text
    entry = only_entry(server)
    assert (seen, entry.sent, entry.done, entry.left) == ("Mr Lin" if after else "", after, False, False)


def _leave(llm: BaseChatModel) -> None:
    with closing(llm.stream(PROMPT)) as chunks:  # type: ignore[type-var]
        texts = (chunk.text for chunk in chunks if chunk.text)
        assert [next(texts) for _ in range(3)] == ["word", " word", " word"]


async def _aleave(llm: BaseChatModel) -> None:
    async with aclosing(llm.astream(PROMPT)) as chunks:  # type: ignore[type-var]
        texts = (chunk.text async for chunk in chunks if chunk.text)
        assert [await anext(texts) for _ in range(3)] == ["word", " word", " word"]
    await asyncio.sleep(0)  # openai's client closes its connection at the next turn of the loop


@both
@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("held", [False, True])
def test_a_client_that_leaves_stops_the_server_and_a_held_reply_waits_for_it(
    server: LoopbackServer, client: str, awaited: bool, held: bool
) -> None:
    server.answer = lambda _: Reply(SLOW.text, hold_after=3) if held else SLOW
    llm = chat_model(server, client)
    asyncio.run(_aleave(llm)) if awaited else _leave(llm)
    entry = only_entry(server)
    assert (entry.left, entry.done) == (True, False)
    assert entry.sent == 3 if held else 3 <= entry.sent <= 6


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
