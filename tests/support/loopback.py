"""Loopback servers that speak the protocols of OpenAI, Anthropic, Gemini, Ollama and Bedrock.

The tests run the real client packages against a `LoopbackServer`: HTTP on a free port of 127.0.0.1, asyncio streams in
one daemon thread. A function of the test chooses what to do with each request; the server keeps its own book of what
was asked, sent and billed.

    with LoopbackServer(lambda request: "Mr Lin.") as server:
        model = ChatOpenAI(base_url=server.openai_url, api_key="k", model="m", max_retries=0, stream_usage=True)
        assert model.invoke("Who chaired?").text == "Mr Lin."
        server.settle()
    assert server.book[0].request.prompt == "Who chaired?"
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import struct
import threading
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import responses
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

Json = dict[str, Any]
Wire = Literal["openai", "anthropic", "gemini", "ollama", "bedrock"]

OK = 200
A_MINUTE = 60.0  # that a held reply is held at most
POLL = 0.01  # seconds between looks whether the client has gone


@dataclass(frozen=True)
class Request:
    """What a client asked of a model.

    Attributes:
        protocol: The protocol of the request.
        model: The name of the model.
        prompt: All text of all messages, the system's first, joined with newlines; or the prompt of a completion.
        stream: Whether the answer is to be streamed.
        body: The JSON body.
        headers: The HTTP headers, their names in lower case.
    """

    protocol: Wire
    model: str
    prompt: str
    stream: bool
    body: Json
    headers: dict[str, str]


@dataclass(frozen=True)
class Reply:
    """What the server does with a request.

    Attributes:
        text: The whole reply.
        pieces: How the reply is cut in a stream; by default at spaces, the space leading the next piece. If given,
            they are the reply, whatever `text` is.
        delay: Seconds before each piece. An answer that is not streamed comes after the delays of all its pieces.
        first_delay: Seconds before anything is sent, headers included.
        usage: Whether usage is reported at all.
        bare_end: Gemini only: the last event of a stream has the reason why it ended and the usage, but no content.
        cached_tokens: How many input tokens are reported as read from a cache.
        thinking_tokens: How many tokens are billed as thoughts, which nobody sees, before the first piece.
        status: The HTTP status; any but 200 makes an error answer.
        error: The protocol's "error" object, for an error answer or an error event.
        drop_after: Abort the connection after so many pieces; 0: right after the headers. A client that does not
            stream gets no answer at all.
        hangs_up: Abort the connection before anything is sent, headers included.
        hold_after: After so many pieces, fewer than there are, wait until the client leaves; 0: right after the
            headers.
        hold_for: For how many seconds to wait so at most.
        error_after: Send an error event in place of all that follows so many pieces of a stream.
        call: The name of a function: the reply is a call of it, the text its arguments in JSON. Completions have none.
        finish: The protocol's word for how the reply ended; by default it ended by itself, or in a call.
        refusal: OpenAI's protocols only: the text of the field in which the model refuses.
        thoughts: The text of thoughts, which the protocol tells apart from the reply. Completions have none.
        commentary: OpenAI's responses only: the text of a message of this phase, before that of the final answer.
        dress: Turns each event of a stream, each whole answer and each error answer into what is sent in its place, as
            servers that speak a protocol of others have their own fields; of a whole answer only the first is sent.
    """

    text: str = ""
    pieces: Sequence[str] | None = None
    delay: float = 0.0
    first_delay: float = 0.0
    usage: bool = True
    bare_end: bool = False
    cached_tokens: int = 0
    thinking_tokens: int = 0
    status: int = OK
    error: Json | None = None
    drop_after: int | None = None
    hangs_up: bool = False
    hold_after: int | None = None
    hold_for: float = A_MINUTE
    error_after: int | None = None
    call: str | None = None
    finish: str | None = None
    refusal: str = ""
    thoughts: str = ""
    commentary: str = ""
    dress: Callable[[Entry, Json], Iterable[Json]] | None = None

    def dressed(self, entry: Entry, made: Json) -> list[Json]:
        """Return what is sent in place of this."""
        return [*self.dress(entry, made)] if self.dress else [made]

    def cut(self) -> list[str]:
        """Return the pieces of the reply; an empty text has none."""
        return re.findall(r"^[^ ]+| [^ ]*", self.text) if self.pieces is None else list(self.pieces)


@dataclass
class Entry:
    """One request in the server's own book; final once the server has settled.

    Attributes:
        request: The request.
        status: The HTTP status of the answer.
        sent: How many pieces were sent or, if the answer is not streamed, made.
        left: Whether the client hung up before the end.
        done: Whether the answer, be it an error answer, was sent to its end. False if the client left or the server
            was stopped, and for a reply with `drop_after`, `hangs_up` or `error_after`.
        input_tokens: The words of the prompt; 0 for an error answer, or none.
        cached_tokens: How many of them were reported as cached.
        thinking_tokens: The thoughts; 0 for an error answer.
    """

    request: Request
    status: int = OK
    sent: int = 0
    left: bool = False
    done: bool = False
    input_tokens: int = 0
    cached_tokens: int = 0
    thinking_tokens: int = 0

    @property
    def output_tokens(self) -> int:
        """The output as billed: the thoughts, and a token for each piece."""
        return self.thinking_tokens + self.sent


class _Events:
    """What protocols have in common: a stream is one of events, and an error an object of that name."""

    newline = "\n"
    end = b""
    media = "text/event-stream"

    @classmethod
    def frame(cls, event: Json) -> bytes:
        """Return an event of a stream as it is sent."""
        head = f"event: {event['type']}{cls.newline}" if "type" in event else ""
        return f"{head}data: {json.dumps(event)}{cls.newline}{cls.newline}".encode()

    @classmethod
    def failure(cls, reply: Reply) -> Json:
        """Return the body of an error answer."""
        return {"error": reply.error or cls.error(reply.status)}

    @staticmethod
    def error(status: int) -> Json:
        return {"message": responses.get(status, "Error"), "type": "error", "param": None, "code": None}


class _OpenAI(_Events):
    """The words of the OpenAI protocol (chat completions)."""

    end = b"data: [DONE]\n\n"
    kind, kind_of_chunk = "chat.completion", "chat.completion.chunk"

    @staticmethod
    def prompt(body: Json) -> str:
        return "\n".join(map(_text, _contents(body)))

    @classmethod
    def whole(cls, entry: Entry, reply: Reply) -> Json:
        text = "".join(reply.cut())
        if reply.call:
            calls = [cls._call(reply.call, text)]
            message = {"role": "assistant", "content": None, "tool_calls": calls}
            return cls._whole(entry, reply, message=message)
        message = {"role": "assistant", "content": None if reply.refusal else text}
        if reply.thoughts:
            message["reasoning_content"] = reply.thoughts
        return cls._whole(entry, reply, message={**message, "refusal": reply.refusal or None})

    @staticmethod
    def _call(name: str, arguments: str) -> Json:
        return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}

    @classmethod
    def opening(cls, entry: Entry, reply: Reply) -> list[Json]:
        if reply.call:
            delta = {"role": "assistant", "tool_calls": [{"index": 0, **cls._call(reply.call, "")}]}
            return [cls._chunk(entry, delta=delta)]
        opening = cls._chunk(entry, delta={"role": "assistant", "content": ""})
        told = (("reasoning_content", reply.thoughts), ("refusal", reply.refusal))
        words = [{field: word} for field, text in told for word in Reply(text).cut()]
        return [opening, *(cls._chunk(entry, delta=delta) for delta in words)]

    @classmethod
    def piece(cls, entry: Entry, reply: Reply, text: str) -> Json:
        if reply.call:
            return cls._chunk(entry, delta={"tool_calls": [{"index": 0, "function": {"arguments": text}}]})
        return cls._chunk(entry, delta={"content": text})

    @classmethod
    def closing(cls, entry: Entry, reply: Reply) -> list[Json]:
        return [cls._chunk(entry, delta={}, finish_reason=cls._finish(reply)), *cls._usage(entry, reply)]

    @staticmethod
    def _finish(reply: Reply) -> str:
        return reply.finish or ("tool_calls" if reply.call else "stop")

    @classmethod
    def _whole(cls, entry: Entry, reply: Reply, **choice: Any) -> Json:
        choices = [{"index": 0, "finish_reason": cls._finish(reply), **choice}]
        return cls._answer(entry, cls.kind, choices, usage=reply.usage)

    @classmethod
    def _chunk(cls, entry: Entry, **choice: Any) -> Json:
        choices = [{"index": 0, "finish_reason": None, **choice}]
        return cls._answer(entry, cls.kind_of_chunk, choices, usage=False)

    @classmethod
    def _usage(cls, entry: Entry, reply: Reply) -> list[Json]:
        asked = (entry.request.body.get("stream_options") or {}).get("include_usage")
        return [cls._answer(entry, cls.kind_of_chunk, [], usage=True)] if asked and reply.usage else []

    @staticmethod
    def _answer(entry: Entry, kind: str, choices: list[Json], *, usage: bool) -> Json:
        answer: Json = {"id": "chatcmpl-1", "object": kind, "created": 1, "model": entry.request.model}
        return answer | {"choices": choices} | ({"usage": openai_usage(entry)} if usage else {})


def openai_usage(entry: Entry) -> Json:
    """Return what a request has cost so far, in the words of OpenAI's chat completions."""
    return {
        "prompt_tokens": entry.input_tokens,
        "completion_tokens": entry.output_tokens,
        "total_tokens": entry.input_tokens + entry.output_tokens,
        "prompt_tokens_details": {"cached_tokens": entry.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": entry.thinking_tokens},
    }


class _Completions(_OpenAI):
    """The words of OpenAI's older protocol (completions): a prompt and a text in place of messages."""

    kind = kind_of_chunk = "text_completion"

    @staticmethod
    def prompt(body: Json) -> str:
        return str(body.get("prompt", ""))

    @classmethod
    def whole(cls, entry: Entry, reply: Reply) -> Json:
        return cls._whole(entry, reply, text="".join(reply.cut()))

    @classmethod
    def opening(cls, _entry: Entry, _reply: Reply) -> list[Json]:
        return []

    @classmethod
    def piece(cls, entry: Entry, reply: Reply, text: str) -> Json:
        return cls._chunk(entry, text=text)

    @classmethod
    def closing(cls, entry: Entry, reply: Reply) -> list[Json]:
        return [cls._chunk(entry, text="", finish_reason=cls._finish(reply)), *cls._usage(entry, reply)]


class _Gemini(_Events):
    """The words of the Gemini protocol (generateContent)."""

    newline = "\r\n"

    @staticmethod
    def prompt(body: Json) -> str:
        contents = [body.get("systemInstruction"), *body.get("contents", [])]
        return "\n".join(_text(content.get("parts")) for content in contents if content)

    @staticmethod
    def error(status: int) -> Json:
        phrase = responses.get(status, "Error")
        return {"code": status, "message": phrase, "status": phrase.upper().replace(" ", "_")}

    @classmethod
    def whole(cls, entry: Entry, reply: Reply) -> Json:
        said = cls._last(reply) or "".join(reply.cut()) or (None if reply.finish else "")
        answer = cls._answer(entry, reply, said, finishReason=reply.finish or "STOP")
        if reply.thoughts and said is not None:
            answer["candidates"][0]["content"]["parts"].insert(0, cls._thought(reply))
        return answer

    @classmethod
    def opening(cls, entry: Entry, reply: Reply) -> list[Json]:
        return [cls._answer(entry, reply, cls._thought(reply))] if reply.thoughts else []

    @staticmethod
    def _thought(reply: Reply) -> Json:
        return {"text": reply.thoughts, "thought": True}

    @classmethod
    def piece(cls, entry: Entry, reply: Reply, text: str) -> Json:
        return cls._answer(entry, reply, "" if reply.call else text)  # a call comes whole

    @classmethod
    def closing(cls, entry: Entry, reply: Reply) -> list[Json]:
        end = None if reply.bare_end else cls._last(reply) or ""
        return [cls._answer(entry, reply, end, finishReason=reply.finish or "STOP")]

    @staticmethod
    def _last(reply: Reply) -> Json | None:
        return {"functionCall": {"name": reply.call, "args": json.loads("".join(reply.cut()))}} if reply.call else None

    @staticmethod
    def _answer(entry: Entry, reply: Reply, said: str | Json | None, **finish: str) -> Json:
        part = {"text": said} if isinstance(said, str) else said
        content = {} if part is None else {"content": {"role": "model", "parts": [part]}}
        tokens = {
            "promptTokenCount": entry.input_tokens,
            "candidatesTokenCount": entry.sent,
            "totalTokenCount": entry.input_tokens + entry.output_tokens,
        }
        if entry.cached_tokens:
            tokens["cachedContentTokenCount"] = entry.cached_tokens
        if entry.thinking_tokens:
            tokens["thoughtsTokenCount"] = entry.thinking_tokens
        candidate = {**content, "index": 0, **finish}
        answer: Json = {"candidates": [candidate], "modelVersion": entry.request.model, "responseId": "r1"}
        return answer | ({"usageMetadata": tokens} if reply.usage else {})


class _Responses(_Events):
    """The words of OpenAI's newer protocol (responses), whose `finish` is the reason why a reply is incomplete."""

    @staticmethod
    def prompt(body: Json) -> str:
        asked = body.get("input", [])
        return asked if isinstance(asked, str) else "\n".join(_text(message.get("content")) for message in asked)

    @classmethod
    def whole(cls, entry: Entry, reply: Reply) -> Json:
        items = [cls._item(reply)] if reply.refusal or reply.call or reply.cut() else []
        return cls._response(entry, reply, [*cls._before(reply), *items])

    @classmethod
    def opening(cls, entry: Entry, reply: Reply) -> list[Json]:
        response = cls._response(entry, reply, [], status="in_progress")
        events: list[Json] = [{"type": "response.created", "response": response}]
        for place, item in enumerate(before := cls._before(reply)):
            begun = {**item, "content": []} if "content" in item else item
            events.append(cls._event("response.output_item.added", output_index=place, item=begun))
            for part in item.get("content", ()):
                delta = {"output_index": place, "item_id": item["id"], "content_index": 0, "delta": part["text"]}
                events.append(cls._event("response.output_text.delta", logprobs=[], **delta))
            events.append(cls._event("response.output_item.done", output_index=place, item=item))
        if before and not reply.call:
            item = {**cls._item(reply), "content": []}
            events.append(cls._event("response.output_item.added", output_index=len(before), item=item))
        if reply.call:
            item = {**cls._item(reply), "arguments": ""}
            return [*events, cls._event("response.output_item.added", item=item)]
        if reply.refusal:
            return [*events, cls._event("response.refusal.done", content_index=0, refusal=reply.refusal)]
        return events

    @classmethod
    def piece(cls, _entry: Entry, reply: Reply, text: str) -> Json:
        kind = "function_call_arguments" if reply.call else "output_text"
        place = 0 if reply.call else len(cls._before(reply))
        return cls._event(f"response.{kind}.delta", output_index=place, content_index=0, delta=text, logprobs=[])

    @classmethod
    def closing(cls, entry: Entry, reply: Reply) -> list[Json]:
        response = cls.whole(entry, reply)
        return [{"type": f"response.{response['status']}", "sequence_number": 9, "response": response}]

    @staticmethod
    def _event(kind: str, **fields: Any) -> Json:
        return {"type": kind, "item_id": "msg_1", "output_index": 0, "sequence_number": 1, **fields}

    @classmethod
    def _before(cls, reply: Reply) -> list[Json]:
        """Return what comes before the answer: reasoning, and commentary."""
        thoughts = [{"type": "summary_text", "text": reply.thoughts}]
        found: list[Json] = [{"type": "reasoning", "id": "rs_1", "summary": thoughts}] if reply.thoughts else []
        return found + ([cls._message(reply.commentary, "commentary")] if reply.commentary else [])

    @classmethod
    def _item(cls, reply: Reply) -> Json:
        text = "".join(reply.cut())
        if reply.call:
            return {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": reply.call, "arguments": text}
        message = cls._message(text, "final_answer" if reply.commentary else None)
        return {**message, "content": [{"type": "refusal", "refusal": reply.refusal}]} if reply.refusal else message

    @staticmethod
    def _message(text: str, phase: str | None) -> Json:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        about = {"phase": phase, "id": f"msg_{phase}"} if phase else {"id": "msg_1"}
        return {"type": "message", "role": "assistant", "status": "completed", "content": content, **about}

    @staticmethod
    def _response(entry: Entry, reply: Reply, output: list[Json], *, status: str | None = None) -> Json:
        usage = {
            "input_tokens": entry.input_tokens,
            "input_tokens_details": {"cached_tokens": entry.cached_tokens},
            "output_tokens": entry.output_tokens,
            "output_tokens_details": {"reasoning_tokens": entry.thinking_tokens},
            "total_tokens": entry.input_tokens + entry.output_tokens,
        }
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "model": entry.request.model,
            "status": status or ("incomplete" if reply.finish else "completed"),
            "incomplete_details": {"reason": reply.finish} if reply.finish else None,
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": usage,
        }


class _Anthropic(_Events):
    """The words of Anthropic's protocol (messages), which has no calls and no refusals here."""

    @staticmethod
    def prompt(body: Json) -> str:
        return "\n".join(_text(content) for content in [body.get("system"), *_contents(body)] if content)

    @staticmethod
    def error(status: int) -> Json:
        return {"type": "api_error", "message": responses.get(status, "Error")}

    @classmethod
    def failure(cls, reply: Reply) -> Json:
        return {"type": "error", **super().failure(reply)}

    @classmethod
    def whole(cls, entry: Entry, reply: Reply) -> Json:
        thoughts = [cls._thinking(reply.thoughts)] if reply.thoughts else []
        text = {"type": "text", "text": "".join(reply.cut())}
        return cls._message(entry, [*thoughts, text], reply.finish or "end_turn")

    @classmethod
    def opening(cls, entry: Entry, reply: Reply) -> list[Json]:
        events: list[Json] = [{"type": "message_start", "message": cls._message(entry, [], None)}]
        if reply.thoughts:
            signed = {"type": "signature_delta", "signature": "c2ln"}
            events += [
                {"type": "content_block_start", "index": 0, "content_block": cls._thinking("")},
                cls._delta(0, {"type": "thinking_delta", "thinking": reply.thoughts}),
                cls._delta(0, signed),
                {"type": "content_block_stop", "index": 0},
            ]
        block = {"type": "text", "text": ""}
        return [*events, {"type": "content_block_start", "index": bool(reply.thoughts) + 0, "content_block": block}]

    @classmethod
    def piece(cls, _entry: Entry, reply: Reply, text: str) -> Json:
        return cls._delta(bool(reply.thoughts) + 0, {"type": "text_delta", "text": text})

    @classmethod
    def closing(cls, entry: Entry, reply: Reply) -> list[Json]:
        delta = {"stop_reason": reply.finish or "end_turn", "stop_sequence": None}
        return [
            {"type": "content_block_stop", "index": bool(reply.thoughts) + 0},
            {"type": "message_delta", "delta": delta, "usage": cls._usage(entry)},
            {"type": "message_stop"},
        ]

    @staticmethod
    def _thinking(text: str) -> Json:
        return {"type": "thinking", "thinking": text, "signature": "c2ln" if text else ""}

    @staticmethod
    def _delta(place: int, delta: Json) -> Json:
        return {"type": "content_block_delta", "index": place, "delta": delta}

    @classmethod
    def _message(cls, entry: Entry, content: list[Json], ended: str | None) -> Json:
        about = {"id": "msg_1", "type": "message", "role": "assistant", "model": entry.request.model}
        ending = {"stop_reason": ended, "stop_sequence": None, "usage": cls._usage(entry)}
        return {**about, "content": content, **ending}

    @staticmethod
    def _usage(entry: Entry) -> Json:
        return {
            "input_tokens": entry.input_tokens - entry.cached_tokens,
            "cache_read_input_tokens": entry.cached_tokens,
            "cache_creation_input_tokens": 0,
            "output_tokens": entry.output_tokens,
        }


class _Ollama(_Events):
    """The words of Ollama's protocol (chat): a stream is one of lines."""

    media = "application/x-ndjson"

    prompt = staticmethod(_OpenAI.prompt)

    @classmethod
    def frame(cls, event: Json) -> bytes:
        return json.dumps(event).encode() + b"\n"

    @classmethod
    def failure(cls, reply: Reply) -> Json:
        return {"error": (reply.error or cls.error(reply.status))["message"]}

    @classmethod
    def whole(cls, entry: Entry, reply: Reply) -> Json:
        return cls._end(entry, reply) | cls._message("".join(reply.cut()), reply.thoughts)

    @classmethod
    def opening(cls, entry: Entry, reply: Reply) -> list[Json]:
        return [cls._answer(entry) | cls._message("", reply.thoughts)] if reply.thoughts else []

    @classmethod
    def piece(cls, entry: Entry, _reply: Reply, text: str) -> Json:
        return cls._answer(entry) | cls._message(text)

    @classmethod
    def closing(cls, entry: Entry, reply: Reply) -> list[Json]:
        return [cls._end(entry, reply) | cls._message("")]

    @staticmethod
    def _message(text: str, thoughts: str = "") -> Json:
        thinking = {"thinking": thoughts} if thoughts else {}
        return {"message": {"role": "assistant", "content": text, **thinking}}

    @staticmethod
    def _answer(entry: Entry) -> Json:
        return {"model": entry.request.model, "created_at": "2026-01-01T00:00:00Z", "done": False}

    @classmethod
    def _end(cls, entry: Entry, reply: Reply) -> Json:
        counts = {"prompt_eval_count": entry.input_tokens, "eval_count": entry.output_tokens} if reply.usage else {}
        times = dict.fromkeys(("total_duration", "load_duration", "prompt_eval_duration", "eval_duration"), 1)
        return {**cls._answer(entry), "done": True, "done_reason": reply.finish or "stop", **times, **counts}


class _Converse(_Events):
    """The words of Bedrock's protocol (converse): a stream is one of binary messages."""

    media = "application/vnd.amazon.eventstream"

    @staticmethod
    def prompt(body: Json) -> str:
        return "\n".join(map(_text, [body.get("system"), *_contents(body)]))

    @classmethod
    def frame(cls, event: Json) -> bytes:
        ((name, content),) = event.items()
        about = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
        pairs = [(key.encode(), value.encode()) for key, value in about.items()]
        headers = b"".join(
            struct.pack(">B", len(key)) + key + struct.pack(">BH", 7, len(value)) + value for key, value in pairs
        )
        payload = json.dumps(content).encode()
        head = struct.pack(">II", len(headers) + len(payload) + 16, len(headers))
        message = head + struct.pack(">I", zlib.crc32(head)) + headers + payload
        return message + struct.pack(">I", zlib.crc32(message))

    @classmethod
    def failure(cls, reply: Reply) -> Json:
        error = reply.error or cls.error(reply.status)
        return {"__type": error["type"], "message": error["message"]}

    @classmethod
    def whole(cls, entry: Entry, reply: Reply) -> Json:
        thoughts = [{"reasoningContent": {"reasoningText": {"text": reply.thoughts, "signature": "c2ln"}}}]
        content = [*(thoughts if reply.thoughts else []), {"text": "".join(reply.cut())}]
        output = {"message": {"role": "assistant", "content": content if reply.thoughts or reply.cut() else []}}
        return {"output": output, "stopReason": reply.finish or "end_turn", **cls._usage(entry)}

    @classmethod
    def opening(cls, _entry: Entry, reply: Reply) -> list[Json]:
        thoughts = [
            cls._delta(0, {"reasoningContent": {"text": reply.thoughts}}),
            cls._delta(0, {"reasoningContent": {"signature": "c2ln"}}),
            {"contentBlockStop": {"contentBlockIndex": 0}},
        ]
        return [{"messageStart": {"role": "assistant"}}, *(thoughts if reply.thoughts else [])]

    @classmethod
    def piece(cls, _entry: Entry, reply: Reply, text: str) -> Json:
        return cls._delta(bool(reply.thoughts) + 0, {"text": text})

    @classmethod
    def closing(cls, entry: Entry, reply: Reply) -> list[Json]:
        return [
            {"contentBlockStop": {"contentBlockIndex": bool(reply.thoughts) + 0}},
            {"messageStop": {"stopReason": reply.finish or "end_turn"}},
            {"metadata": cls._usage(entry)},
        ]

    @staticmethod
    def _delta(place: int, delta: Json) -> Json:
        return {"contentBlockDelta": {"delta": delta, "contentBlockIndex": place}}

    @staticmethod
    def _usage(entry: Entry) -> Json:
        usage = {
            "inputTokens": entry.input_tokens - entry.cached_tokens,
            "outputTokens": entry.output_tokens,
            "totalTokens": entry.input_tokens + entry.output_tokens,
            "cacheReadInputTokens": entry.cached_tokens,
            "cacheWriteInputTokens": 0,
        }
        return {"usage": usage, "metrics": {"latencyMs": 1}}


def _contents(body: Json) -> list[Any]:
    return [message.get("content") for message in body.get("messages", [])]


_Protocol = type[_OpenAI | _Gemini | _Responses | _Anthropic | _Ollama | _Converse]


def _text(content: str | list[Json] | None) -> str:
    """Return the text of a message: it may come as such, in parts or not at all."""
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content if "text" in part)
    return content or ""


_POSTS: tuple[tuple[str, Wire, _Protocol], ...] = (  # a call, which may name the model; and what is asked for
    (r"/v1/chat/completions", "openai", _OpenAI),
    (r"/v1/completions", "openai", _Completions),
    (r"/v1/responses", "openai", _Responses),
    (r"/openai/deployments/(?P<model>[^/]+)/chat/completions", "openai", _OpenAI),
    (r"/v1/messages", "anthropic", _Anthropic),
    (r"/v1beta/models/(?P<model>[^:]+):(?P<how>generateContent|streamGenerateContent)", "gemini", _Gemini),
    (r"/api/chat", "ollama", _Ollama),
    (r"/model/(?P<model>[^/]+)/(?P<how>converse|converse-stream)", "bedrock", _Converse),
)


class _Connection:
    """One HTTP/1.1 connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, keep_alive: bool) -> None:
        self._reader = reader
        self._writer = writer
        self.keep_alive = keep_alive
        writer.transport.set_write_buffer_limits(0)  # so that drain() waits until all is out
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # pieces leave at once

    async def read_head(self) -> tuple[str, dict[str, str]]:
        """Return the call, such as "POST /v1/completions", and the headers of the next request."""
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip().split("\r\n")
        method, target, _ = first.split(" ")
        pairs = (line.partition(":") for line in lines)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        self.keep_alive = self.keep_alive and headers.get("connection", "").lower() != "close"
        return f"{method} {unquote(urlsplit(target).path)}", headers

    async def read_body(self, headers: dict[str, str]) -> Json:
        """Return the JSON body of the request that has these headers."""
        body = await self._reader.readexactly(int(headers.get("content-length", 0)))
        parsed: Json = json.loads(body or b"{}")
        return parsed

    async def pause(self, seconds: float) -> None:
        """Let time pass.

        Raises:
            ConnectionResetError: The client has gone.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        await asyncio.sleep(0)
        while not self._gone and (remaining := end - loop.time()) > 0:  # noqa: ASYNC110 (EOF sets no event)
            await asyncio.sleep(min(remaining, POLL))
        if self._gone:
            raise ConnectionResetError

    @property
    def _gone(self) -> bool:
        return self._reader.at_eof() or self._reader.exception() is not None

    async def send_json(self, status: int, answer: Json) -> None:
        """Send a whole answer."""
        body = json.dumps(answer).encode()
        await self._send_head(status, f"Content-Type: application/json\r\nContent-Length: {len(body)}", body)

    async def open_stream(self, media: str) -> None:
        """Send the headers of a stream of events."""
        await self._send_head(OK, f"Content-Type: {media}\r\nTransfer-Encoding: chunked")

    async def send_event(self, event: bytes) -> None:
        """Send one event of a stream."""
        await self._send(b"%x\r\n%b\r\n" % (len(event), event))

    async def close_stream(self) -> None:
        """End a stream."""
        await self._send(b"0\r\n\r\n")

    def abort(self) -> None:
        """Cut the connection off; whoever waits for the client wakes up."""
        self._writer.transport.abort()

    async def closed(self) -> None:
        """Wait until the connection is closed."""
        with suppress(ConnectionError):
            await self._writer.wait_closed()

    async def _send_head(self, status: int, headers: str, body: bytes = b"") -> None:
        connection = "keep-alive" if self.keep_alive else "close"
        head = f"HTTP/1.1 {status} {responses.get(status, 'Error')}\r\nConnection: {connection}\r\n{headers}\r\n\r\n"
        await self._send(head.encode() + body)

    async def _send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


class LoopbackServer:
    """A server on a free loopback port; a context manager.

    Attributes:
        answer: Chooses what to do with a request; a string means `Reply(text=...)`. It runs in the server's thread, so
            it must not block; it may be replaced at any time. If it raises, the answer is a status 500 that says so.
        book: An entry for each request to a model, in order of arrival.
        embed: Makes the vector of a text, for OpenAI's embeddings; without it the server has no embeddings.
        embedded: The texts of each request for embeddings.
        calls: Every request, such as "GET /v1beta/models/m", also those that are not in the book.
        keep_alive: Whether connections are kept for further requests. Not by default: chat models pool connections
            and do not close them, so a second event loop would meet those of the first, and they would be reported as
            unclosed.
    """

    def __init__(self, answer: Callable[[Request], Reply | str], *, keep_alive: bool = False) -> None:
        self.answer = answer
        self.keep_alive = keep_alive
        self.book: list[Entry] = []
        self.embed: Callable[[str], Sequence[float]] | None = None
        self.embedded: list[list[str]] = []
        self.calls: list[str] = []
        self._port = 0
        self._thread: threading.Thread | None = None
        self._connections: set[_Connection] = set()
        self._in_progress = 0
        self._changed = threading.Condition()

    @property
    def openai_url(self) -> str:
        """The base URL for OpenAI clients; it outlives a stop."""
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def gemini_url(self) -> str:
        """The base URL for Gemini clients; it outlives a stop."""
        return self.url

    @property
    def url(self) -> str:
        """The address of the server, for all other clients; it outlives a stop."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> LoopbackServer:
        """Listen on a free port; return the server."""
        listener = socket.create_server(("127.0.0.1", 0))
        self._port = listener.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._thread = threading.Thread(target=self._run, args=(listener,), name="loopback", daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Cut off all connections and end the thread."""
        if self._thread is not None:
            self._loop.call_soon_threadsafe(self._stopped.set)
            self._thread.join()
            self._thread = None

    def __enter__(self) -> LoopbackServer:  # noqa: PYI034 (typing.Self is of Python 3.11)
        return self.start()

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    def settle(self, timeout: float = 2.0) -> None:
        """Wait until no request is in progress, so that the entries of the book are final.

        This blocks. In a coroutine, whose client may need the event loop to hang up, use
        `await asyncio.to_thread(server.settle)`.

        Args:
            timeout: For how many seconds to wait at most.

        Raises:
            TimeoutError: Requests are still in progress.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._in_progress == 0, timeout):
                message = f"still in progress after {timeout} s: {self._in_progress}"
                raise TimeoutError(message)

    def _run(self, listener: socket.socket) -> None:
        try:
            self._loop.run_until_complete(self._listen(listener))
        finally:
            self._loop.close()

    async def _listen(self, listener: socket.socket) -> None:
        server = await asyncio.start_server(self._serve, sock=listener, backlog=1024)
        await self._stopped.wait()
        server.close()
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            for connection in self._connections:
                connection.abort()
            await asyncio.wait(tasks, timeout=0.01)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection, one after the other."""
        connection = _Connection(reader, writer, keep_alive=self.keep_alive)
        self._connections.add(connection)
        try:
            while True:
                call, headers = await connection.read_head()
                with self._progress():
                    await self._respond(connection, call, headers)
                if not connection.keep_alive:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has gone
        finally:
            connection.abort()
            await connection.closed()
            self._connections.discard(connection)

    @contextmanager
    def _progress(self) -> Iterator[None]:
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    def _count(self, step: int) -> None:
        with self._changed:
            self._in_progress += step
            self._changed.notify_all()

    async def _respond(self, connection: _Connection, call: str, headers: dict[str, str]) -> None:
        self.calls.append(call)
        body = await connection.read_body(headers)
        for path, wire, protocol in _POSTS:
            if found := re.fullmatch(f"POST {path}", call):
                named = found.groupdict()
                stream = "tream" in named["how"] if "how" in named else bool(body.get("stream"))
                model = named.get("model") or body.get("model") or ""
                request = Request(wire, model, protocol.prompt(body), stream, body, headers)
                await self._generate(connection, request, protocol=protocol)
                return
        if found := re.fullmatch(r"GET /v1beta/(models/[^:]+)", call):
            limits = {"inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536}
            await connection.send_json(OK, {"name": found[1], "version": "1", **limits})
        elif call == "POST /v1/embeddings" and self.embed:
            self.embedded.append(body["input"])
            await connection.send_json(OK, _embeddings(body, map(self.embed, body["input"])))
        else:
            await connection.send_json(404, {"error": _Gemini.error(404)})

    async def _generate(self, connection: _Connection, request: Request, *, protocol: _Protocol) -> None:
        """Answer a request to a model and book it."""
        entry = Entry(request)
        self.book.append(entry)
        try:
            chosen = self.answer(request)
        except Exception as error:  # noqa: BLE001 (whatever it is, the test must see it)
            message = f"the test's answer function raised {error!r}"
            chosen = Reply(status=500, error={"code": 500, "message": message})
        reply = Reply(text=chosen) if isinstance(chosen, str) else chosen
        entry.status = reply.status
        try:
            await connection.pause(reply.first_delay)
            if reply.hangs_up:
                connection.abort()
            elif reply.status == OK:
                entry.input_tokens = len(request.prompt.split())
                entry.cached_tokens = reply.cached_tokens
                entry.thinking_tokens = reply.thinking_tokens
                send = _send_stream if request.stream else _send_whole
                entry.done = await send(connection, entry, reply=reply, protocol=protocol)
            else:
                await connection.send_json(reply.status, reply.dressed(entry, protocol.failure(reply))[0])
                entry.done = True
        except ConnectionError:
            entry.left = not self._stopped.is_set()
            raise


def _embeddings(body: Json, vectors: Iterable[Sequence[float]]) -> Json:
    """Return vectors as OpenAI's clients ask for them."""
    made = [b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode() for vector in vectors]
    data = [{"object": "embedding", "index": number, "embedding": one} for number, one in enumerate(made)]
    return {"object": "list", "data": data, "model": body["model"], "usage": {"prompt_tokens": 1, "total_tokens": 1}}


async def _make_piece(connection: _Connection, entry: Entry, reply: Reply) -> None:
    await connection.pause(reply.hold_for if entry.sent == reply.hold_after else reply.delay)
    entry.sent += 1


async def _send_whole(connection: _Connection, entry: Entry, *, reply: Reply, protocol: _Protocol) -> bool:
    """Make all pieces of a reply and send it; return whether it came to its end."""
    for _ in reply.cut()[: reply.drop_after]:
        await _make_piece(connection, entry, reply)
    if reply.drop_after is not None:
        connection.abort()
        return False
    await connection.send_json(OK, reply.dressed(entry, protocol.whole(entry, reply))[0])
    return True


async def _send_stream(connection: _Connection, entry: Entry, *, reply: Reply, protocol: _Protocol) -> bool:
    """Send a reply piece by piece; return whether it came to its end."""

    async def send(*events: Json) -> None:
        for event in events:
            for one in reply.dressed(entry, event):
                await connection.send_event(protocol.frame(one))

    await connection.open_stream(protocol.media)
    if 0 not in {reply.drop_after, reply.hold_after}:
        await send(*protocol.opening(entry, reply))
    for piece in reply.cut()[: reply.drop_after][: reply.error_after]:
        await _make_piece(connection, entry, reply)
        await send(protocol.piece(entry, reply, piece))
    if reply.drop_after is not None:
        connection.abort()
        return False
    if reply.error_after is not None:
        await send({"error": reply.error or protocol.error(500)})
    else:
        await send(*protocol.closing(entry, reply))
        if protocol.end:
            await connection.send_event(protocol.end)
    await connection.close_stream()
    return reply.error_after is None


def report(request: Request, **fields: Any) -> Reply:
    """Return the reply that fills in what a request asks to be filled in: a call of its function, or else JSON."""
    text, tools = json.dumps(fields), request.body.get("tools") or []
    if not tools:
        return Reply(text)
    function = tools[0]["function"] if request.protocol == "openai" else tools[0]["functionDeclarations"][0]
    return Reply(text, call=function["name"])


def _openai_error(status: int, message: str, **more: str | int | None) -> Reply:
    return Reply(status=status, error={"message": message, "type": "error", "param": None, "code": None, **more})


def _gemini_error(status: int, message: str, name: str) -> Reply:
    return Reply(status=status, error={"code": status, "message": message, "status": name})


def too_long_typed(limit: int = 272_000, asked: int = 300_000) -> Reply:
    """Return OpenAI's answer to a prompt that is too long."""
    message = (
        f"Input tokens exceed the configured limit of {limit} tokens. Your messages resulted in {asked} tokens. "
        "Please reduce the length of the messages."
    )
    code = "context_length_exceeded"
    return _openai_error(400, message, type="invalid_request_error", param="messages", code=code)


def too_long_in_words(limit: int = 8192, asked: int = 9000) -> Reply:
    """Return the answer of servers that say only in words that a prompt is too long, such as vLLM."""
    message = (
        f"This model's maximum context length is {limit} tokens. However, you requested {asked} tokens ({asked} in the "
        "messages, 0 in the completion). Please reduce the length of the messages or completion."
    )
    return _openai_error(400, message, type="BadRequestError", code=400)


def gemini_too_long(limit: int = 1_048_576, asked: int = 1_200_000) -> Reply:
    """Return Gemini's answer to a prompt that is too long."""
    message = f"The input token count ({asked}) exceeds the maximum number of tokens allowed ({limit})."
    return _gemini_error(400, message, "INVALID_ARGUMENT")


RATE_LIMITED = _openai_error(
    429, "Rate limit reached for requests. Please try again in 20s.", type="requests", code="rate_limit_exceeded"
)
SERVER_ERROR = _openai_error(
    500, "The server had an error while processing your request. Sorry about that!", type="server_error"
)
GEMINI_RATE_LIMITED = _gemini_error(
    429, "You exceeded your current quota, please check your plan and billing details.", "RESOURCE_EXHAUSTED"
)
GEMINI_SERVER_ERROR = _gemini_error(500, "An internal error has occurred. Please retry.", "INTERNAL")
