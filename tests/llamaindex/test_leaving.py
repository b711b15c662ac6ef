"""However a stream of LlamaIndex is left, dropped or cancelled: its model stops, and nothing is logged."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, closing, contextmanager, suppress
from typing import Any

import pytest

from llamaindex_parts import AWAITED, KEYS, STREAMS, ScriptedLLM, an_engine, ask, model_of
from scenarios import FOUND, QUESTION

every_kind = pytest.mark.parametrize("is_chat", [True, False], ids=["chat", "completion"])
clinging = pytest.mark.parametrize("clings", [False, True], ids=["plain", "clinging"])
either_step = pytest.mark.parametrize("step", ["draft", "final"])
LONG = ("Ms", " Okafor", " took", " the", " chair", ".", *(f" word{n}" for n in range(200)))
RAMBLING = ("un", "answerable", ":", " the", " passages", " do", " not", " say", *(f" word{n}" for n in range(100)))
WAYS: dict[str, Callable[[Any], Any]] = {
    "response_gen": lambda response: response.response_gen,
    "async_response_gen": lambda response: response.async_response_gen(),
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@contextmanager
def silence(caplog: pytest.LogCaptureFixture) -> Iterator[list[Any]]:
    """Fail if anything is logged, told to the loop's handler, or raised where nobody can catch it."""
    heard: list[Any] = []
    hook, sys.unraisablehook = sys.unraisablehook, heard.append
    gc.freeze()  # what was there before need not be looked through
    with suppress(RuntimeError):
        asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context))
    try:
        yield heard
        gc.collect()
    finally:
        sys.unraisablehook = hook
    assert [*heard, *(record.getMessage() for record in caplog.records if record.levelname != "DEBUG")] == []


async def settled(model: ScriptedLLM) -> None:
    """Give the loop the turns that it needs to close what was dropped."""
    for _ in range(50):
        await asyncio.sleep(0.001)
        if "open" not in model.endings:
            return


def check_stopped(engine: Any) -> None:
    """Check that the latest call ended soon."""
    call = model_of(engine).calls[-1]
    assert (call.ended, call.emitted < 20) == ("closed", True)


@every_kind
@pytest.mark.parametrize("age", ["young", "old"])
@pytest.mark.parametrize("packet", [1, 2, 4, 7])
async def test_a_rambling_decline_stops_although_more_of_it_has_come_already(
    packet: int, age: str, is_chat: bool
) -> None:
    """And although closing its stream is not enough."""

    def drafted(_: str) -> Any:
        gc.collect(2 if age == "old" else 0)
        return RAMBLING

    gc.freeze()
    gc.disable()
    try:
        engine = an_engine(drafted, streaming=True, clings=True, delay=0.001, packet=packet, is_chat=is_chat)
        assert (await ask(engine, QUESTION, "astream")).text == FOUND
        draft, _ = model_of(engine).calls
        assert (draft.ended, draft.emitted <= 3 + (3 if packet == 1 else 2 * packet)) == ("closed", True)
    finally:
        gc.enable()


@every_kind
def test_in_sync_a_stream_that_closing_does_not_stop_is_collected_while_it_is_young(is_chat: bool) -> None:
    engine = an_engine(RAMBLING, streaming=True, clings=True, is_chat=is_chat)
    gc.disable()  # a collection of the host's would make it old
    try:
        text = str(engine.query(QUESTION))
        assert (text, model_of(engine).calls[0].ended) == (FOUND, "closed")
    finally:
        gc.enable()


@every_kind
@pytest.mark.parametrize("mode", STREAMS)
async def test_a_count_up_to_where_a_reply_was_hung_up_on_is_not_the_provider_s_last_word(
    mode: str, is_chat: bool
) -> None:
    parts: dict[str, Any] = {"usage": True, "counts_on": True, "is_chat": is_chat, "streaming": True}
    engine = an_engine(RAMBLING, **parts)
    asked = await ask(engine, QUESTION, mode)
    words = len(model_of(engine).calls[0].prompt.split())
    assert (asked.usage["estimated"], asked.usage["rag"]["input_tokens"]) == (True, words)
    whole = await ask(an_engine(("Mr", " Lin."), **parts), QUESTION, mode)
    assert (whole.usage["estimated"], whole.usage["rag"]["output_tokens"]) == (False, 2)


@every_kind
@either_step
@pytest.mark.parametrize("wanted", [0, 1, 3])
def test_a_reader_who_closes_a_sync_stream_stops_the_model(wanted: int, step: str, is_chat: bool) -> None:
    engine = an_engine(**{step: LONG}, streaming=True, is_chat=is_chat, usage=True)
    response = engine.query(QUESTION)
    with closing(response.response_gen) as pieces:
        assert len([piece for piece, _ in zip(pieces, range(wanted), strict=False)]) == wanted
    check_stopped(engine)
    assert set(response.metadata) == KEYS
    assert response.metadata["usage"]["estimated"] is True or not wanted


@every_kind
@every_way
@either_step
@pytest.mark.parametrize("wanted", [1, 3])
async def test_aclose_reaches_the_model(
    wanted: int, step: str, way: Callable[[Any], Any], is_chat: bool, caplog: pytest.LogCaptureFixture
) -> None:
    engine = an_engine(**{step: LONG}, streaming=True, clings=True, is_chat=is_chat, usage=True)
    with silence(caplog):
        response = await engine.aquery(QUESTION)
        async with aclosing(way(response)) as pieces:
            assert len([await anext(pieces) for _ in range(wanted)]) == wanted
        check_stopped(engine)
    assert (set(response.metadata), response.metadata["usage"]["estimated"]) == (KEYS, True)
    assert response.metadata["route"] == ("rag" if step == "draft" else "long_context")


@pytest.mark.parametrize("wanted", [0, 2])
def test_a_sync_stream_that_is_dropped_stops_the_model(wanted: int, caplog: pytest.LogCaptureFixture) -> None:
    engine = an_engine(LONG, streaming=True)
    with silence(caplog):
        response = engine.query(QUESTION)
        for _ in range(wanted):
            next(response.response_gen)
        del response
        gc.collect()
    check_stopped(engine)


@every_way
@either_step
@pytest.mark.parametrize("wanted", [1, 3])
async def test_a_stream_that_is_dropped_stops_the_model(
    wanted: int, step: str, way: Callable[[Any], Any], caplog: pytest.LogCaptureFixture
) -> None:
    engine = an_engine(**{step: LONG}, streaming=True, delay=0.0005)
    with silence(caplog):
        response = await engine.aquery(QUESTION)
        pieces = way(response)
        for _ in range(wanted):
            await anext(pieces)
        del response, pieces
        gc.collect()
        await settled(model_of(engine))
    check_stopped(engine)


@every_way
async def test_leaving_at_any_piece_leaves_no_call_open_and_one_that_nobody_reads_asks_nothing(
    way: Callable[[Any], Any], caplog: pytest.LogCaptureFixture
) -> None:
    with silence(caplog):
        for wanted in range(6):
            engine = an_engine(final=LONG[:8], streaming=True, clings=True)
            await engine.aquery(QUESTION)
            pieces = way(await engine.aquery(QUESTION))
            for _ in range(wanted):
                with suppress(StopAsyncIteration):
                    await anext(pieces)
            await pieces.aclose()
            assert "open" not in model_of(engine).endings
            assert wanted or model_of(engine).calls == []


@pytest.mark.parametrize("opening", [("un", "answerable"), RAMBLING[:9]], ids=["plain", "rambling"])
@clinging
@pytest.mark.parametrize("mode", AWAITED)
async def test_a_task_cancelled_at_any_turn_leaves_no_call_open(
    mode: str, opening: tuple[str, ...], clings: bool, caplog: pytest.LogCaptureFixture
) -> None:
    cancelled = 0
    with silence(caplog):
        for turns in range(40):
            engine = an_engine(opening, LONG[:8], clings=clings, streaming=mode == "astream")
            task = asyncio.create_task(ask(engine, QUESTION, mode))
            for _ in range(turns):
                await asyncio.sleep(0)
            cancelled += task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await settled(model_of(engine))
            assert "open" not in model_of(engine).endings
    assert cancelled > 2


@clinging
@pytest.mark.parametrize("turns", range(6))
async def test_a_reader_cancelled_while_leaving_leaves_no_call_open(
    turns: int, clings: bool, caplog: pytest.LogCaptureFixture
) -> None:
    engine = an_engine(LONG, streaming=True, delay=0.0005, clings=clings)
    with silence(caplog):
        response = await engine.aquery(QUESTION)
        pieces = response.async_response_gen()
        await anext(pieces)
        leaving = asyncio.create_task(pieces.aclose())
        for _ in range(turns):
            await asyncio.sleep(0)
        leaving.cancel()
        with suppress(asyncio.CancelledError):
            await leaving
        del response, pieces, leaving
        gc.collect()
        await settled(model_of(engine))
    check_stopped(engine)


def over_when_the_loop_is(
    engine: Any, use: Callable[[Any, list[Any]], Any], caplog: pytest.LogCaptureFixture
) -> list[str]:
    """Use a stream in a loop that then ends, and drop what was kept; return how the calls of the model ended."""
    kept: list[Any] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context))
        kept.append(await engine.aquery(QUESTION))
        await use(kept[0], kept)

    with silence(caplog) as heard:
        asyncio.run(main())
        kept.clear()
        gc.collect()
    return model_of(engine).endings


@every_way
@pytest.mark.parametrize("wanted", [0, 1, 3])
@either_step
def test_a_loop_that_ends_over_a_half_read_stream_logs_nothing(
    step: str, wanted: int, way: Callable[[Any], Any], caplog: pytest.LogCaptureFixture
) -> None:
    async def use(response: Any, kept: list[Any]) -> None:
        kept.append(way(response))
        for _ in range(wanted):
            await anext(kept[1])

    engine = an_engine(**{step: LONG}, streaming=True, clings=True)
    assert over_when_the_loop_is(engine, use, caplog)[-1:] == (["closed"] if wanted else [])


@clinging
@pytest.mark.parametrize("leaves", [False, True], ids=["reads", "leaves"])
def test_a_loop_that_ends_while_a_task_reads_or_leaves_logs_nothing(
    leaves: bool, clings: bool, caplog: pytest.LogCaptureFixture
) -> None:
    for turns in range(8):

        async def use(response: Any, kept: list[Any], turns: int = turns) -> None:
            pieces = response.async_response_gen()
            await anext(pieces)
            kept.append(asyncio.create_task(pieces.aclose() if leaves else anext(pieces)))
            for _ in range(turns):
                await asyncio.sleep(0)

        engine = an_engine(LONG, streaming=True, delay=0.0005, clings=clings)
        assert over_when_the_loop_is(engine, use, caplog) == ["closed"]


def test_a_sync_stream_can_be_read_and_left_in_another_thread(caplog: pytest.LogCaptureFixture) -> None:
    engine = an_engine(LONG, streaming=True)
    with silence(caplog), ThreadPoolExecutor(1) as pool:
        response = engine.query(QUESTION)
        assert pool.submit("".join, response.response_gen).result() == "".join(LONG)
        assert response.metadata["usage"]["rag"]["output_tokens"] > 0
        left = engine.query(QUESTION)
        next(left.response_gen)
        pool.submit(left.response_gen.close).result()
    assert model_of(engine).endings == ["exhausted", "closed"]
