"""What `benchmarks/bulk.py` asks: a chain over a hundred reports, and a model of 50 ms in a process of its own."""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
import zlib
from multiprocessing.connection import Connection
from typing import Any

from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_openai import ChatOpenAI
from typing_extensions import override

from langchain_selfroute import SelfRouteChain

REPORTS, WORDS, CHUNK = 100, 6_000, 300
DECLINED = 18  # of a hundred drafts


class ByReport(Embeddings):
    """Texts are near that name the same report; real embeddings would measure their own model."""

    @override
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    @override
    def embed_query(self, text: str) -> list[float]:
        found = re.search(r"Report (\d+)", text)
        draw = random.Random(int(found[1]) if found else -1)  # noqa: S311
        return [draw.gauss(0, 1) for _ in range(64)]


def question(number: int) -> str:
    """Return a question about one of the reports."""
    return f"By how much did item {number} rise in Report {number * 7 % REPORTS}?"


def make_chain() -> SelfRouteChain:
    """Index the reports in an embedded Chroma; the model is at OPENAI_BASE_URL."""
    draw = random.Random(0)  # noqa: S311
    words = [f"{draw.choice('bdfgklmnprst')}{draw.choice('aeiou')}{draw.choice('lmnrst')}" for _ in range(WORDS)]
    store = Chroma("reports", ByReport())
    for report in range(REPORTS):
        chunks, start = [], 0
        for first in range(0, WORDS, CHUNK):
            text = f"Report {report}: {' '.join(words[first : first + CHUNK])}\n"
            chunks.append(Document(text, metadata={"source": f"report {report}", "start_index": start}))
            start += len(text)
        store.add_documents(chunks)
    model = ChatOpenAI(model="gpt-4o-mini", max_retries=0, timeout=120)
    return SelfRouteChain.from_vectorstore(store, model, priced_as="openai:gpt-4o-mini")


def serve(pipe: Connection, latency: float) -> None:
    """Answer until told to stop; then send the number of calls, and the times of the first one and the last."""
    asyncio.run(_serve(pipe, latency))


async def _serve(pipe: Connection, latency: float) -> None:
    loop, times = asyncio.get_running_loop(), (0, 0.0, 0.0)

    def called() -> None:
        nonlocal times
        now = time.monotonic()
        times = (times[0] + 1, times[1] or now, now)

    server = await loop.create_server(lambda: _Connection(called, latency), "127.0.0.1", 0, backlog=1024)
    pipe.send(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
    await asyncio.to_thread(pipe.recv)
    pipe.send(times)


class _Connection(asyncio.Protocol):
    """One connection of a client: chat completions, one after the other."""

    def __init__(self, called: Any, latency: float) -> None:
        self._called, self._latency, self._data = called, latency, bytearray()

    @override
    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    @override
    def data_received(self, data: bytes) -> None:
        self._data += data
        head, found, _ = self._data.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
        if found and length and len(self._data) >= len(head) + 4 + int(length[1]):
            body, self._data = bytes(self._data[len(head) + 4 :]), bytearray()
            asyncio.get_running_loop().call_later(self._latency, self._reply, body)

    def _reply(self, body: bytes) -> None:
        self._called()
        draft, asked = b"Passages from" in body, body[body.rfind(b"Question: ") :]
        declined = draft and zlib.crc32(asked.partition(b"?")[0]) % 100 < DECLINED
        tokens = {"prompt_tokens": len(body) // 4, "completion_tokens": 8, "total_tokens": len(body) // 4 + 8}
        message = {"role": "assistant", "content": "unanswerable" if declined else "It rose by 12 percent."}
        reply = {"id": "1", "object": "chat.completion", "created": 1, "model": "gpt-4o-mini", "usage": tokens}
        data = json.dumps({**reply, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
        kind = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
        self._transport.write(kind + str(len(data)).encode() + b"\r\n\r\n" + data)
