"""Laws of both hosts over real wires: their client packages for OpenAI and Gemini, and what the server saw."""

from __future__ import annotations

import asyncio
import gc
import traceback
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import anyio
import pytest
from langchain_core.caches import InMemoryCache

from both_parts import Pipeline
from hosts_parts import AWAITED, MODES, STREAMS, drawn
from hosts_wires import (
    ANSWER,
    AT_ONCE,
    CLIENTS,
    IN_WORDS,
    KEY,
    LONG,
    MOST_AFTER,
    PASSAGES,
    REFUSAL,
    SLOW,
    WHOLE,
    TooLong,
    broken,
    counts,
    entries,
    error_of,
    failing,
    narrow,
    over,
    refusals,
    script,
    steps,
    up_to,
    wheres,
)
from loopback import A_MINUTE, LoopbackServer, Reply

pytestmark = pytest.mark.usefixtures("frozen")

RAMBLING = REFUSAL + " because the passages tell of other meetings and of other years" * 20
GOING_ON = "Revenue was 14 million in May" + " and more in June" * 60
LEISURELY = Reply(ANSWER, delay=2 * SLOW)  # so that a draft is not stopped by the end of the event loop

everywhere = wheres()
streaming = wheres(modes=STREAMS)
awaited = wheres(modes=AWAITED)
each_step = pytest.mark.parametrize("step", ["draft", "final"])

VERDICTS = {  # draft and final reply; route, answer, whether it is one, signal
    "answered": ((ANSWER, ""), ("rag", ANSWER, True, "answered")),
    "declined": ((REFUSAL, ANSWER), ("long_context", ANSWER, True, "sentinel")),
    "declined in its own words": ((IN_WORDS, ANSWER), ("long_context", ANSWER, True, "phrase")),
    "declined twice": ((REFUSAL, REFUSAL), ("long_context", REFUSAL, False, "sentinel")),
    "an empty draft": (("", ANSWER), ("long_context", ANSWER, True, "empty")),
    "an empty final reply": ((REFUSAL, ""), ("long_context", REFUSAL, False, "sentinel")),
    "the refusal in pieces": (
        (Reply(pieces=["un", "ans", "", "werable"]), ANSWER),
        ("long_context", ANSWER, True, "sentinel"),
    ),
    "more after the last refusal": (
        (REFUSAL, RAMBLING),
        ("long_context", RAMBLING.removeprefix(f"{REFUSAL} "), False, "sentinel"),
    ),
}


@drawn([*VERDICTS], [f"{client} {mode}" for client in CLIENTS for mode in MODES])
def test_wire_verdicts_and_prices(server: LoopbackServer, where: str, name: str) -> None:
    (draft, final), expected = VERDICTS[name]
    script(server, draft=draft, final=final)
    told = over(where, server).now()
    declined = expected[0] == "long_context"
    assert told.verdict == expected
    assert told.decision["declined"] == declined
    assert told.retrieved == len(PASSAGES)
    assert told.read == ([WHOLE] if declined else list(PASSAGES.values()))
    assert steps(server) == up_to("final" if declined else "draft")
    paid = dict(zip(("rag", "long_context"), map(counts, server.book), strict=False))
    if "empty" not in name:  # a stream of nothing need not report what it cost
        assert (told.usage["estimated"], told.usage["rag"]) == (False, paid["rag"])
        assert told.usage["long_context"] == paid.get("long_context")


@wheres([client for client in CLIENTS if not client.endswith("gemini")])
def test_usage_not_asked_for_is_estimated(server: LoopbackServer, where: str, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        asker = over(where, server, model={"usage": False})
        told = asker.now()
        if where.startswith("langchain"):  # whose clients go from loop to loop
            told = asker.now()
    advice = "ChatOpenAI(stream_usage=True)" if where.startswith("langchain") else "include_usage"
    logged = [one for one in caplog.records if one.levelname == "WARNING" and one.name.endswith(".models.clients")]
    assert [advice in one.message for one in logged] == [True] * 2 * asker.streams
    assert caplog.records == logged
    assert told.usage["estimated"] is asker.streams
    assert (told.usage["rag"] == counts(entries(server, "draft")[-1])) is not asker.streams
    assert told.usage["rag"]["input_tokens"] > 0


# Errors


BROKEN = {
    "401": lambda _: Reply(status=401),
    "429": lambda protocol: failing(protocol, 429),
    "500": lambda protocol: failing(protocol, 500),
}


@everywhere
@each_step
@pytest.mark.parametrize("status", BROKEN)
def test_wire_error_is_paid_once_and_shows_no_key(server: LoopbackServer, where: str, step: str, status: str) -> None:
    reply = BROKEN[status](where.split()[1])
    broken(server, step, reply)
    expected = error_of(where, reply, step)
    with pytest.raises(type(expected)) as caught:
        over(where, server).now()
    assert (type(caught.value), str(caught.value)) == (type(expected), str(expected))
    assert steps(server) == up_to(step)
    assert KEY not in "".join(traceback.format_exception(caught.value))
    assert KEY not in repr(caught.value)


# Prompts that are too long

LIMIT = 2000  # words of a prompt: the unit that the server counts in
refused = refusals()


def words(text: str) -> int:
    return len(text.split())


@refused
def test_a_context_too_long_is_tried_once_more_with_less(server: LoopbackServer, where: str, too_long: TooLong) -> None:
    narrow(server, too_long, LIMIT, size=words)
    told = over(where, server, whole=LONG).now()
    assert told.verdict == ("long_context", ANSWER, True, "sentinel")
    first, second = entries(server, "final")
    assert (first.status, second.status) == (400, 200)
    assert LIMIT // 4 < words(second.request.prompt) <= LIMIT
    ((read,), (label,)) = told.read, told.labels
    assert label["trimmed"] is True
    assert read in LONG
    assert read in second.request.prompt
    assert PASSAGES["opening"] in read
    assert (told.usage["long_context"], told.usage["estimated"]) == (counts(second), False)


# Hanging up

NUMBERS = ["80", " 42", "\n", "Mr", " Lin took the chair"]
LEFT = {  # how a draft begins, how many pieces of it are needed, whether it is graded, the signal
    "the refusal and more": (Reply(RAMBLING), 1, "text", "sentinel"),
    "in its own words": (Reply(f"{IN_WORDS} {GOING_ON}"), words(IN_WORDS), "text", "phrase"),
    "in doubt": (Reply(pieces=[*NUMBERS, *GOING_ON.split(" ")]), NUMBERS.index("Mr") + 1, "graded", "doubt"),
}


# LangChain's models that are set to stream read a stream for a whole reply; LlamaIndex has no such setting.
SET_TO_STREAM = [f"langchain {client} {mode}" for client in ("openai", "gemini") for mode in ("whole", "awhole")]


@drawn([*LEFT], [*(f"{client} {mode}" for client in CLIENTS for mode in STREAMS), *SET_TO_STREAM], 2)
def test_draft_is_hung_up_on_as_soon_as_its_verdict_stands(server: LoopbackServer, where: str, name: str) -> None:
    draft, needed, answerability, signal = LEFT[name]
    options = {"streaming": True} if "whole" in where else {}
    script(server, draft=replace(draft, delay=SLOW, hold_after=needed + MOST_AFTER), final=LEISURELY)
    told = over(where, server, model=options, answerability=answerability).now()
    assert told.verdict == ("long_context", ANSWER, True, signal)
    ((left,), (final,)) = entries(server, "draft"), entries(server, "final")
    assert left.left
    assert (told.usage["estimated"], told.usage["long_context"]) == (True, counts(final))
    assert 0 < told.usage["rag"]["output_tokens"] <= 2 * needed + 8
    read = told.usage["rag"]["input_tokens"]
    assert read == left.input_tokens if "gemini" in where else read > 0  # its pieces all carry the counts so far


@pytest.mark.parametrize("where", SET_TO_STREAM)
def test_wire_whole_answer_of_a_stream(server: LoopbackServer, where: str) -> None:
    script(server, draft=Reply(ANSWER, cached_tokens=3))
    told, plain = (over(where, server, model=model).now() for model in ({"streaming": True}, {}))
    streamed, whole = entries(server, "draft")
    assert (streamed.request.stream, whole.request.stream) == (True, False)
    assert (told.verdict, told.usage["rag"]) == (plain.verdict, counts(streamed))
    assert told.usage["estimated"] is False
    assert told.finish_reason == plain.finish_reason


WHOLE_ONLY: dict[str, tuple[dict[str, Any], Callable[[Any], Any]]] = {  # options of the model, what is around it
    "that is not set to": ({}, lambda model: model),
    "with a cache": ({"streaming": True, "cache": InMemoryCache()}, lambda model: model),
    "that retries": ({"streaming": True}, lambda model: model.with_retry(stop_after_attempt=2)),
    "that falls back": ({"streaming": True}, lambda model: model.with_fallbacks([model])),
    "that may not": ({"disable_streaming": True}, lambda model: model),
    "bound not to": ({"streaming": True}, lambda model: model.bind(stream=False)),
}


@wheres(["langchain openai"], modes=["whole", "awhole"])
@pytest.mark.parametrize("model", WHOLE_ONLY)
def test_no_stream_is_read_for_a_whole_answer_of_a_model(server: LoopbackServer, where: str, model: str) -> None:
    options, around = WHOLE_ONLY[model]
    script(server, draft=RAMBLING)
    asker = over(where, server, model=options)
    asker.asked = asker.asked.model_copy(update={"llm": around(asker.asked.llm)})
    asker.now()
    (draft,) = entries(server, "draft")
    assert (draft.done, draft.left) == (True, False)


# A reader who leaves


def left_after(asker: Pipeline, many: int, server: LoopbackServer) -> int:
    """Leave a stream after so many pieces; return how many the server had sent by then."""

    async def leave() -> int:
        async with aclosing(asker.pieces()) as pieces:
            for _ in range(many):
                await anext(pieces)
            gc.freeze()  # however old the stream is
            return server.book[-1].sent

    return asker.run(leave())


@streaming
@each_step
def test_a_reader_who_leaves_stops_the_model(server: LoopbackServer, where: str, step: str) -> None:
    broken(server, step, Reply(GOING_ON, delay=SLOW))
    asker = over(where, server)
    sent = left_after(asker, 5, server)
    (entry,) = entries(server, step)
    assert entry.left
    assert entry.sent <= sent + AT_ONCE
    assert steps(server) == up_to(step)
    if where.startswith("llamaindex"):  # whose response outlives its reader
        assert asker.response.metadata["usage"]["estimated"] is True


async def until(come: Callable[[], bool]) -> None:
    """Wait for the server, which is in another thread."""
    while not come():  # noqa: ASYNC110
        await asyncio.sleep(0.005)


async def dropped(asking: Callable[[], Any], come: Callable[[], bool], server: LoopbackServer) -> None:
    """Ask, and leave when something has come, as FastAPI drops a request: its task is cancelled until it ends."""
    async with anyio.create_task_group() as requests:
        requests.start_soon(asking)
        await until(come)
        requests.cancel_scope.cancel()
    await asyncio.to_thread(server.settle)


@awaited
@each_step
@pytest.mark.parametrize("early", [True, False], ids=["before any reply", "in the middle"])
def test_wire_caller_leaves(server: LoopbackServer, where: str, step: str, early: bool) -> None:
    if not early and where.endswith("awhole"):
        pytest.skip("a whole reply is sent at once")
    broken(server, step, Reply(ANSWER, first_delay=A_MINUTE) if early else Reply(GOING_ON, hold_after=30))
    asker = over(where, server)

    def come() -> bool:
        return any(step in entry.request.model and (early or entry.sent == 30) for entry in server.book)

    asyncio.run(dropped(asker.ask, come, server))
    assert [entry.left for entry in entries(server, step)] == [True]
