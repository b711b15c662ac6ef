"""However a stream of LlamaIndex is left, dropped or cancelled: its model stops, and nothing is logged."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
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
@pytest.mark.parametrize("packet", [1, 2, 7])
async def test_hang_up_although_closing_is_not_enough(packet: int, age: str, is_chat: bool) -> None:
    """More of the rambling decline has come already; in sync a stream is collected while it is young."""

    def drafted(_: str) -> Any:
        gc.collect(2 if age == "old" else 0)
        return RAMBLING

    gc.freeze()
    gc.disable()  # a collection of the host's would make it old
    try:
        engine = an_engine(drafted, streaming=True, clings=True, delay=0.001, packet=packet, is_chat=is_chat)
        assert (await ask(engine, QUESTION, "astream")).text == FOUND
        draft, _ = model_of(engine).calls
        assert (draft.ended, draft.emitted <= 3 + (3 if packet == 1 else 2 * packet)) == ("closed", True)
        engine = an_engine(RAMBLING, streaming=True, clings=True, is_chat=is_chat)
        assert (str(engine.query(QUESTION)), model_of(engine).calls[0].ended) == (FOUND, "closed")
    finally:
        gc.enable()


@every_kind
@pytest.mark.parametrize("mode", STREAMS)
async def test_count_up_to_a_hang_up_is_not_the_last_word(mode: str, is_chat: bool) -> None:
    parts: dict[str, Any] = {"usage": True, "counts_on": True, "is_chat": is_chat, "streaming": True}
    engine = an_engine(RAMBLING, **parts)
    asked = await ask(engine, QUESTION, mode)
    words = len(model_of(engine).calls[0].prompt.split())
    assert (asked.usage["estimated"], asked.usage["rag"]["input_tokens"]) == (True, words)
    whole = await ask(an_engine(("Mr", " Lin."), **parts), QUESTION, mode)
    assert (whole.usage["estimated"], whole.usage["rag"]["output_tokens"]) == (False, 2)


@every_kind
@every_way
@either_step
async def test_aclose_reaches_the_model(
    step: str, way: Callable[[Any], Any], is_chat: bool, caplog: pytest.LogCaptureFixture
) -> None:
    engine = an_engine(**{step: LONG}, streaming=True, clings=True, is_chat=is_chat, usage=True)
    with silence(caplog):
        response = await engine.aquery(QUESTION)
        async with aclosing(way(response)) as pieces:
            await anext(pieces)
        check_stopped(engine)
    assert (set(response.metadata), response.metadata["usage"]["estimated"]) == (KEYS, True)
    assert response.metadata["route"] == ("rag" if step == "draft" else "long_context")


@every_way
@either_step
async def test_drop_of_a_stream_stops_the_model(
    step: str, way: Callable[[Any], Any], caplog: pytest.LogCaptureFixture
) -> None:
    engine = an_engine(**{step: LONG}, streaming=True, delay=0.0005)
    with silence(caplog):
        response = await engine.aquery(QUESTION)
        pieces = way(response)
        await anext(pieces)
        del response, pieces
        gc.collect()
        await settled(model_of(engine))
    check_stopped(engine)


@pytest.mark.parametrize("opening", [("un", "answerable"), RAMBLING[:9]], ids=["plain", "rambling"])
@clinging
@pytest.mark.parametrize("mode", AWAITED)
async def test_cancel_at_any_turn_leaves_no_call_open(
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


READING: dict[str, Callable[[Any], Any]] = {
    **WAYS,
    "a task that reads": lambda pieces: asyncio.create_task(anext(pieces)),
    "a task that leaves": lambda pieces: asyncio.create_task(pieces.aclose()),
}


@clinging
@pytest.mark.parametrize("name", READING)
@either_step
def test_end_of_the_loop_logs_nothing(step: str, name: str, clings: bool, caplog: pytest.LogCaptureFixture) -> None:
    for turns in (0, 1, 3, 7):
        kept: list[Any] = []
        engine = an_engine(**{step: LONG}, streaming=True, delay=0.0005 * (name not in WAYS), clings=clings)

        async def main(engine: Any = engine, kept: list[Any] = kept, turns: int = turns) -> None:
            asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context))
            kept.append(await engine.aquery(QUESTION))
            pieces = WAYS.get(name, WAYS["async_response_gen"])(kept[0])
            kept.append(pieces)
            if name in WAYS:
                for _ in range(turns):
                    await anext(pieces)
                return
            await anext(pieces)
            kept[1] = READING[name](pieces)
            for _ in range(turns):
                await asyncio.sleep(0)

        with silence(caplog) as heard:
            asyncio.run(main())
            kept.clear()
            gc.collect()
        assert model_of(engine).endings[-1:] == (["closed"] if turns or name not in WAYS else [])
