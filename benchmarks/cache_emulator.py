"""Emulate providers' prompt caches on loopback, over OpenAI's and Anthropic's protocols.

    python benchmarks/cache_emulator.py traffic.json --speed 10

`traffic.json` is a list of `{"question", "rag", "long_context"}`: the replies to a question, "unanswerable" for a
decline. The server prints its port, and answers whoever ends a prompt with `Question: ...`. `GET /bill` returns what
each call took, and forgets it, and all that was cached.

What is emulated, as the providers document it (November 2026):

* OpenAI before GPT-5.6: the longest known beginning is read, in steps of 128 tokens, from 1,024 on; kept for 5
  minutes.
* OpenAI from GPT-5.6 on: prefixes that end at a `prompt_cache_breakpoint`, or without `"mode": "explicit"` at the end
  of the last message, are written, and read if a later prompt has a mark at the same place; from 1,024 tokens on; kept
  for 30 minutes.
* Anthropic: the same with `cache_control`, and no other marks; from 4,096 tokens on; kept for 5 minutes or an hour.
* A prefix can be read once the first reply to it begins. That takes 0.35 s, and a second for each 12,000 tokens that
  were not cached. With `--speed 10` everything, also forgetting, is ten times faster.

A token is four characters here. What the emulator does not have: machines that share no cache, evictions, and
misses for no reason.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

CHARACTERS, STEP = 4, 128
QUESTION = re.compile(r"Question: (.*)\nAnswer:\s*\Z", re.DOTALL)
MINUTE = 60.0

Json = dict[str, Any]


@dataclass
class Rules:
    """How a provider caches.

    Attributes:
        kind: Whether it finds common beginnings itself, or keeps what is marked.
        least: The least tokens of a prefix.
        seconds: For how long a prefix is kept after its last use.
    """

    kind: Literal["automatic", "marked"]
    least: int
    seconds: float


@dataclass
class PrefixCache:
    """The prefixes that a provider knows.

    Attributes:
        rules: How it caches.
        known: Since when and until when each prefix can be read.
    """

    rules: Rules
    known: dict[bytes, tuple[float, float]] = field(default_factory=dict)

    def ask(self, prompt: str, ends: list[int], *, now: float, ready: Any, speed: float) -> Json:
        """Return what a call takes: tokens of `input`, and those of them that were `read` and `written`.

        Args:
            prompt: The prompt.
            ends: Where marks are in it, in characters.
            now: The time in seconds.
            ready: Returns when the reply begins, given the tokens that were not read.
            speed: How much faster than real time passes.
        """
        whole = len(prompt) // CHARACTERS
        if self.rules.kind == "automatic":
            size = STEP * CHARACTERS
            ends = list(range(size, len(prompt) + 1, size))
        digests = _digests(prompt, ends)
        read = 0
        for end, digest in zip(ends, digests, strict=True):
            since, until = self.known.get(digest, (now + 1, 0.0))
            if since <= now <= until:
                read = end // CHARACTERS
            elif self.rules.kind == "automatic":
                break
        read = read if read >= self.rules.least else 0
        kept = dict(zip(ends, digests, strict=True)) if max(ends, default=0) // CHARACTERS >= self.rules.least else {}
        written = max(kept, default=0) // CHARACTERS - read
        begins = ready(whole - read)
        for digest in kept.values():
            since, until = self.known.get(digest, (begins, 0.0))
            since = since if until >= now else begins
            self.known[digest] = min(since, begins), begins + self.rules.seconds / speed
        billed = max(written, 0) if self.rules.kind == "marked" else 0
        return {"input": whole, "read": read, "written": billed, "begins": begins}


def _digests(prompt: str, ends: list[int]) -> list[bytes]:
    found, digests = blake2b(digest_size=12), []
    for start, end in zip([0, *ends], ends, strict=False):
        found.update(prompt[start:end].encode("utf-8", "replace"))
        digests.append(found.copy().digest())
    return digests


def caches() -> dict[str, PrefixCache]:
    """Return empty caches, by the kind of provider."""
    return {
        "openai": PrefixCache(Rules("automatic", 1_024, 5 * MINUTE)),
        "openai-marked": PrefixCache(Rules("marked", 1_024, 30 * MINUTE)),
        "anthropic": PrefixCache(Rules("marked", 4_096, 5 * MINUTE)),
        "none": PrefixCache(Rules("marked", 1, 0)),
    }


@dataclass
class Emulator:
    """The server.

    Attributes:
        replies: The replies to each question, by step.
        speed: How much faster than real time passes.
        caches: What the providers have cached.
        bill: What each call took.
    """

    replies: dict[str, dict[str, str]]
    speed: float
    caches: dict[str, PrefixCache] = field(default_factory=caches)
    bill: list[Json] = field(default_factory=list)

    async def serve(self) -> None:
        """Serve for ever; the port is printed."""
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=2**26)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ", 2)[1].decode()
                length = re.search(rb"(?i)content-length: *(\d+)", head)
                body = await reader.readexactly(int(length[1])) if length else b"{}"
                data = json.dumps(await self._answer(path, json.loads(body))).encode()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
                writer.write(b"content-length: %d\r\n\r\n" % len(data) + data)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, path: str, body: Json) -> Any:
        if path == "/bill":
            bill, self.bill, self.caches = self.bill, [], caches()
            return bill
        kind = "anthropic" if path.endswith("/messages") else _kind(body["model"])
        if path.startswith("/uncached"):
            kind = "none"
        texts, marks = _texts(body, "cache_control" if kind == "anthropic" else "prompt_cache_breakpoint")
        if kind == "openai-marked" and (body.get("prompt_cache_options") or {}).get("mode") != "explicit":
            marks[-1] = True
        ends = [end for end, mark in zip(accumulate(map(len, texts)), marks, strict=True) if mark]
        prompt, loop = "".join(texts), asyncio.get_running_loop()
        now = loop.time()
        taken = self.caches[kind].ask(
            prompt, ends, now=now, speed=self.speed, ready=lambda tokens: now + (0.35 + tokens / 12_000) / self.speed
        )
        step = "rag" if prompt.startswith("Passages") else "long_context"
        asked = QUESTION.search(prompt)
        reply = self.replies.get(asked[1].strip() if asked else "", {}).get(step, "unanswerable")
        begins = taken.pop("begins")
        prefix = prompt[: prompt.rfind("\n\nAnswer the question")]
        document = blake2b(prefix.encode("utf-8", "replace"), digest_size=8).hexdigest()
        about = {"step": step, "document": document, "prefix": len(prefix) // CHARACTERS}
        self.bill.append({**taken, **about, "output": len(reply) // CHARACTERS + 1})
        await asyncio.sleep(begins - now)
        return _anthropic(body, reply, taken) if kind == "anthropic" else _openai(body, reply, taken, kind)


def _kind(model: str) -> str:
    return "openai-marked" if re.match(r"gpt-(5\.[6-9]|[6-9])", model) else "openai"


def _texts(body: Json, mark: str) -> tuple[list[str], list[bool]]:
    texts, marks = [], []
    system = [{"content": body["system"]}] if body.get("system") else []
    for message in [*system, *body["messages"]]:
        content = message["content"]
        for block in [{"text": content}] if isinstance(content, str) else content:
            texts.append(block.get("text", ""))
            marks.append(mark in block)
    return texts, marks


def _openai(body: Json, reply: str, taken: Json, kind: str) -> Json:
    output = len(reply) // CHARACTERS + 1
    details = {"cached_tokens": taken["read"]}
    if kind == "openai-marked":
        details["cache_write_tokens"] = taken["written"]
    usage = {
        "prompt_tokens": taken["input"],
        "completion_tokens": output,
        "total_tokens": taken["input"] + output,
        "prompt_tokens_details": details,
    }
    message = {"role": "assistant", "content": reply}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": choices,
        "usage": usage,
    }


def _anthropic(body: Json, reply: str, taken: Json) -> Json:
    usage = {
        "input_tokens": taken["input"] - taken["read"] - taken["written"],
        "output_tokens": len(reply) // CHARACTERS + 1,
        "cache_read_input_tokens": taken["read"],
        "cache_creation_input_tokens": taken["written"],
        "cache_creation": {"ephemeral_5m_input_tokens": taken["written"], "ephemeral_1h_input_tokens": 0},
    }
    content = [{"type": "text", "text": reply}]
    about = {"id": "m", "type": "message", "role": "assistant", "model": body["model"], "stop_sequence": None}
    return {**about, "content": content, "stop_reason": "end_turn", "usage": usage}


def main() -> None:
    """Serve."""
    parser = argparse.ArgumentParser(description="Emulates providers' prompt caches.")
    parser.add_argument("traffic", type=Path)
    parser.add_argument("--speed", type=float, default=10.0)
    options = parser.parse_args()
    rows = json.loads(options.traffic.read_text("utf-8"))
    asyncio.run(Emulator({row["question"]: row for row in rows}, options.speed).serve())


if __name__ == "__main__":
    main()
