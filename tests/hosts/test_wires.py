"""Laws of both hosts over real wires: their client packages for OpenAI and Gemini, and what the server saw."""

from __future__ import annotations

import asyncio
import gc
import traceback
from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any

import anyio
import pytest
from google import genai
from langchain_core.caches import InMemoryCache

from both_parts import Outcome, Pipeline
from hosts_parts import AWAITED, STREAMS, cases
from hosts_wires import (
    ANSWER,
    AT_ONCE,
    CLIENTS,
    DROPPED,
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
    step_of,
    steps,
    up_to,
    wheres,
)
from loopback import A_MINUTE, LoopbackServer, Reply
from selfroute.errors import SelfRouteError

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


@everywhere
@pytest.mark.parametrize("name", VERDICTS)
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


@wheres([client for client in CLIENTS if client.endswith("openai")])
def test_null_content_is_an_empty_reply(server: LoopbackServer, where: str) -> None:
    null = Reply("a b", content_null=True)
    script(server, draft=null, final=null)
    assert over(where, server).now().verdict == ("long_context", REFUSAL, False, "empty")
    assert steps(server) == ["draft", "final"]


@everywhere
@pytest.mark.parametrize("draft", [ANSWER, REFUSAL])
def test_usage_is_the_server_s(server: LoopbackServer, where: str, draft: str, caplog: Any) -> None:
    """With thoughts and cached tokens; then nothing is logged."""
    script(
        server,
        draft=Reply(draft, cached_tokens=4, thinking_tokens=21),
        final=Reply(ANSWER, cached_tokens=9, thinking_tokens=34),
    )
    usage = over(where, server).now().usage
    paid = [counts(entry) for step in up_to("final") for entry in entries(server, step)]
    assert [usage["rag"], *([usage["long_context"]] if draft is REFUSAL else [])] == paid
    assert usage["total_tokens"] == sum(one["input_tokens"] + one["output_tokens"] for one in paid)
    assert usage["estimated"] is False
    assert (paid[0]["cached_tokens"], paid[0]["output_tokens"] > 21) == (4, True)
    assert caplog.records == []


@wheres([client for client in CLIENTS if not client.endswith("gemini")])
def test_usage_not_asked_for_is_estimated(server: LoopbackServer, where: str, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        asker = over(where, server, model={"usage": False})
        told = asker.now()
        if where.startswith("langchain"):  # whose clients go from loop to loop
            told = asker.now()
    advice = "ChatOpenAI(stream_usage=True)" if where.startswith("langchain") else "include_usage"
    logged = [one for one in caplog.records if one.levelname == "WARNING" and one.name.endswith("selfroute.models")]
    assert [advice in one.message for one in logged] == [True] * 2 * asker.streams
    assert caplog.records == logged
    assert told.usage["estimated"] is asker.streams
    assert (told.usage["rag"] == counts(entries(server, "draft")[-1])) is not asker.streams
    assert told.usage["rag"]["input_tokens"] > 0


# Errors


def asks_again(where: str) -> bool:
    """Whether google-genai itself asks again after a drop, up to ten seconds later."""
    host, client, mode = where.split()
    if host == "llamaindex":
        return (client, mode) == ("gemini", "awhole")
    return client == "gemini" and mode in AWAITED and genai.__version__.startswith("1.")


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


@everywhere
@each_step
def test_a_connection_dropped_before_any_text_passes_through(server: LoopbackServer, where: str, step: str) -> None:
    if asks_again(where):
        pytest.skip("the client asks again, some seconds later")
    broken(server, step, Reply(ANSWER, drop_after=0))
    with pytest.raises(DROPPED) as caught:
        over(where, server).now()
    assert not isinstance(caught.value, SelfRouteError)
    assert steps(server) == up_to(step)
    assert KEY not in "".join(traceback.format_exception(caught.value))


# openai's client of 2025 leaves the socket of a stream that ends in an error to the garbage collector.
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@streaming
@each_step
@pytest.mark.parametrize("ending", ["drop_after", "error_after"])
def test_wire_stream_that_breaks_off(server: LoopbackServer, where: str, step: str, ending: str) -> None:
    broken(server, step, Reply(ANSWER, delay=0.01, **{ending: 4}))  # type: ignore[arg-type]
    shown: list[str] = []

    async def read() -> None:
        async for piece in asker.pieces():
            shown.append(piece)  # noqa: PERF401 - what came before the error counts

    asker = over(where, server)
    with pytest.raises(Exception) as caught:  # noqa: PT011
        asker.run(read())
    assert ANSWER.startswith("".join(shown))
    assert len("".join(shown)) < len(ANSWER)
    assert not isinstance(caught.value, SelfRouteError)
    assert ending != "drop_after" or isinstance(caught.value, DROPPED)
    assert steps(server) == up_to(step)


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
SET_TO_STREAM = cases(["langchain openai", "langchain gemini"], ["whole", "awhole"])


@pytest.mark.parametrize("where", [*cases(CLIENTS, STREAMS), *SET_TO_STREAM])
@pytest.mark.parametrize("name", LEFT)
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
def test_whole_answer_of_a_stream_comes_with_what_the_model_reports(server: LoopbackServer, where: str) -> None:
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


@awaited
@each_step
def test_wire_caller_is_cancelled(server: LoopbackServer, where: str, step: str) -> None:
    # Before Python 3.12, `asyncio.wait_for` of a client passes over a caller who is cancelled just as something comes.
    broken(server, step, Reply(GOING_ON, hold_after=3))
    asker = over(where, server)

    async def leave() -> Outcome:
        task = asyncio.create_task(asker.ask())
        await until(lambda: bool(server.book) and step_of(server.book[-1].request.model) == step)
        entry = server.book[-1]
        await until(lambda: entry.sent == 3)
        await asyncio.sleep(SLOW)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(server.settle)
        script(server, draft=ANSWER)
        return await asker.ask()

    again = asyncio.run(leave())
    assert (again.route, again.answer, again.usage["estimated"]) == ("rag", ANSWER, False)
    assert entries(server, step)[0].left
    assert steps(server) == [*up_to(step), "draft"]


@wheres(modes=["astream"])
def test_wire_reader_is_cancelled_at_the_end(server: LoopbackServer, where: str) -> None:
    broken(server, "final", Reply(GOING_ON, delay=SLOW))
    asker = over(where, server)

    async def leave() -> int:
        enough = asyncio.Event()

        async def read() -> None:
            many = 0
            async with aclosing(asker.pieces()) as pieces:
                async for _ in pieces:
                    many += 1
                    if many == 5:
                        enough.set()  # the task is cancelled as soon as it waits for more

        task = asyncio.create_task(read())
        await enough.wait()
        sent = server.book[-1].sent
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        return sent

    sent = asyncio.run(leave())
    (entry,) = entries(server, "final")
    assert entry.left
    assert entry.sent <= sent + AT_ONCE


@awaited
@each_step
def test_wire_caller_leaves_before_any_reply(server: LoopbackServer, where: str, step: str) -> None:
    broken(server, step, Reply(ANSWER, first_delay=A_MINUTE))
    asker = over(where, server)

    async def leave() -> None:
        async with anyio.create_task_group() as requests:  # FastAPI drops a request like this
            requests.start_soon(asker.ask)
            await until(lambda: step in {entry.request.model for entry in server.book})
            requests.cancel_scope.cancel()
        await asyncio.to_thread(server.settle)

    asyncio.run(leave())
    assert [entry.left for entry in entries(server, step)] == [True]
