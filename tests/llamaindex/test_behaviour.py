"""What an engine does when there is nothing to read, when a provider fails, and when the reader leaves."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, closing, contextmanager, suppress
from typing import Any

import pytest
from llama_index.core.schema import Document, NodeWithScore

from llamaindex_parts import (
    AWAITED,
    DOCUMENTS,
    KEYS,
    MODES,
    PASSAGES,
    STREAMS,
    ListRetriever,
    ScriptedLLM,
    an_engine,
    ask,
    model_of,
    recorded,
)
from llamaindex_selfroute import SelfRouteDecisionEvent, SelfRouteQueryEngine
from scenarios import FINAL, FOUND, QUESTION
from selfroute.usage import FREE, Usage

every_mode = pytest.mark.parametrize("mode", MODES)
every_stream = pytest.mark.parametrize("mode", STREAMS)
every_kind = pytest.mark.parametrize("is_chat", [True, False], ids=["chat", "completion"])
NEITHER = {
    "route": "long_context",
    "answerable": False,
    "finish_reason": None,
    "decision": {"declined": True, "signal": "no_passages", "evidence": "", "ruling": None},
    "usage": Usage(long_context_only=0, cost_long_context_only=FREE).as_dict(),
    "retrieved": [],
}
LONG = ("Ms", " Okafor", " took", " the", " chair", ".", *(f" word{n}" for n in range(200)))


def an_engine_for(mode: str, *drafted: Any, **fields: Any) -> SelfRouteQueryEngine:
    """An engine that answers in the way of a mode."""
    return an_engine(*drafted, streaming=mode in STREAMS, **fields)


@every_mode
async def test_an_empty_retrieval_goes_straight_to_the_documents(mode: str) -> None:
    engine = an_engine_for(mode, None, retriever=ListRetriever([]), usage=True)
    asked = await ask(engine, QUESTION, mode)
    assert (asked.text, asked.retrieved, asked.decision) == (FOUND, [], NEITHER["decision"])
    assert asked.sources == [document.text for document in DOCUMENTS]
    assert (asked.usage["rag"], asked.usage["estimated"]) == (None, False)
    assert model_of(engine).steps == ["long_context"]


BLANK = [Document(text=""), Document(text=" \n\t")]


async def _none(*_: Any) -> list[Document]:
    return []


@every_mode
@pytest.mark.parametrize(
    "documents",
    [BLANK, lambda *_: [], lambda *_: BLANK, _none],
    ids=["blank", "none", "blanks", "awaited"],
)
async def test_nothing_to_read_asks_no_model(documents: Any, mode: str) -> None:
    engine = an_engine_for(mode, None, None, retriever=ListRetriever([]), documents=documents)
    asked = await ask(engine, QUESTION, mode)
    assert (asked.text, asked.metadata, asked.source_nodes) == ("unanswerable", NEITHER, [])
    assert model_of(engine).calls == []


@every_mode
async def test_nothing_to_read_after_a_decline_asks_no_second_time(mode: str) -> None:
    engine = an_engine_for(mode, final=None, documents=lambda *_: [])
    asked = await ask(engine, QUESTION, mode)
    assert (asked.text, asked.answerable, asked.route, asked.source_nodes) == (
        "unanswerable",
        False,
        "long_context",
        [],
    )
    assert (asked.retrieved, asked.usage["long_context"]) == (["passage-1", "passage-2"], None)
    assert model_of(engine).steps == ["rag"]


class WireError(Exception):
    """An error that only its own type makes recognisable."""


ERRORS = [
    WireError("cut"),
    RuntimeError("Rate limit: 30000 tokens per minute"),
    TimeoutError("slow"),
    ValueError("Response has no candidates"),
    TypeError("odd"),
]


@every_kind
@every_mode
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(("step", "steps"), [("rag", ["rag"]), ("long_context", ["rag", "long_context"])])
async def test_an_error_of_a_model_passes_through_untouched_and_is_paid_once(
    step: str, steps: list[str], error: Exception, mode: str, is_chat: bool
) -> None:
    engine = an_engine_for(mode, failures={step: [error]}, is_chat=is_chat)
    with pytest.raises(type(error)) as raised:
        await ask(engine, QUESTION, mode)
    assert raised.value is error
    assert model_of(engine).steps == steps


@pytest.mark.parametrize("step", ["rag", "long_context"])
def test_a_sync_stream_raises_the_error_of_its_first_words_when_it_is_asked_for(step: str) -> None:
    with pytest.raises(WireError):
        an_engine(streaming=True, failures={step: [WireError("cut")]}).query(QUESTION)


@every_mode
@pytest.mark.parametrize("part", ["retriever", "documents", "awaited documents"])
async def test_an_error_of_a_part_passes_through_untouched(part: str, mode: str) -> None:
    error = WireError("the maximum context length was exceeded")  # not the model's: nothing to read less of

    def fail(*_: Any) -> Any:
        raise error

    async def afail(*_: Any) -> Any:
        raise error

    parts: dict[str, Any] = {
        "retriever": {"retriever": ListRetriever(failures=[error])},
        "documents": {"documents": fail},
        "awaited documents": {"documents": afail},
    }
    engine = an_engine_for(mode, **parts[part])
    with pytest.raises(WireError) as raised:
        await ask(engine, QUESTION, mode)
    assert raised.value is error
    assert model_of(engine).steps == ([] if part == "retriever" else ["rag"])


@every_mode
@pytest.mark.parametrize("stop", [StopIteration, StopAsyncIteration], ids=lambda stop: stop.__name__)
@pytest.mark.parametrize("part", ["documents", "rag", "long_context", "counter", "counter of documents"])
async def test_a_stop_out_of_user_code_does_not_pass_for_the_end(part: str, stop: type[Exception], mode: str) -> None:
    def fail(*_: Any) -> Any:
        raise stop

    parts: dict[str, Any] = {
        "documents": {"documents": fail},
        "rag": {"draft": fail},
        "long_context": {"final": fail},
        "counter": {"token_counter": fail, "max_context_tokens": 10},
        "counter of documents": {"token_counter": fail, "max_context_tokens": 10, "usage": True},
    }
    with pytest.raises((RuntimeError, stop)):
        # A thread cannot hand a StopIteration to a waiting task, which then waits for ever.
        assert await asyncio.wait_for(ask(an_engine_for(mode, **parts[part]), QUESTION, mode), 2) is None


@every_stream
async def test_a_decline_that_says_no_more_ends_by_itself_and_keeps_its_usage(mode: str) -> None:
    drafted = ("Un", "answer", "able", ".")
    engine = an_engine_for(mode, drafted, usage=True)
    asked = await ask(engine, QUESTION, mode)
    assert model_of(engine).endings == ["exhausted", "exhausted"]
    assert asked.usage["estimated"] is False
    assert asked.usage["rag"]["cached_tokens"] > 0
    assert asked.usage == (await ask(an_engine(drafted, usage=True), QUESTION, "query")).usage


@every_mode
async def test_usage_is_the_provider_s_own_where_it_tells_and_estimated_where_not(mode: str) -> None:
    engine = an_engine_for(mode, usage=True)
    counted = (await ask(engine, QUESTION, mode)).usage
    for call, step in zip(model_of(engine).calls, ("rag", "long_context"), strict=True):
        words = len(call.prompt.split())
        assert (counted[step]["input_tokens"], counted[step]["cached_tokens"]) == (words, words // 2)
    assert (counted["rag"]["output_tokens"], counted["long_context"]["output_tokens"]) == (1, 4)
    assert (counted["total_tokens"], counted["estimated"]) == (
        sum(counted[step][kind] for step in ("rag", "long_context") for kind in ("input_tokens", "output_tokens")),
        False,
    )
    estimated = (await ask(an_engine_for(mode, token_counter=lambda text: len(text.split())), QUESTION, mode)).usage
    assert estimated["estimated"] is True
    assert estimated["rag"] == {**counted["rag"], "cached_tokens": 0}


def test_the_usage_of_a_sync_stream_is_complete_at_its_end() -> None:
    response = an_engine(LONG, usage=True, streaming=True).query(QUESTION)
    for _ in response.response_gen:
        pass
    assert response.metadata["usage"]["rag"]["output_tokens"] == len("".join(LONG).split())
    assert response.metadata["usage"]["estimated"] is False


RAMBLINGS = {
    "a reason": ("un", "answerable", ":"),
    "a sentence": ("Unanswerable", "."),
    "a because": ("unanswerable", " because"),
    "bold": ("**", "Unanswerable", "**", "\n\n"),
}


def rambling(opening: tuple[str, ...]) -> tuple[str, ...]:
    """A decline that goes on and on."""
    return (*opening, " the", " passages", " do", " not", " say", *(f" word{n}" for n in range(100)))


@every_kind
@every_stream
@pytest.mark.parametrize("opening", RAMBLINGS.values(), ids=RAMBLINGS)
async def test_a_rambling_draft_costs_two_words_after_the_refusal_at_most(
    opening: tuple[str, ...], mode: str, is_chat: bool
) -> None:
    reply = rambling(opening)
    engine = an_engine_for(mode, reply, usage=True, is_chat=is_chat)
    asked = await ask(engine, QUESTION, mode)
    call = model_of(engine).calls[0]
    refusal = next(at for at, piece in enumerate(opening, 1) if piece.endswith("answerable"))
    assert (call.ended, asked.usage["estimated"]) == ("closed", True)
    words = [piece for piece in reply[refusal : call.emitted] if any(map(str.isalpha, piece))]
    assert len(words) <= 2
    assert 0 < asked.usage["rag"]["output_tokens"] < 20
    assert asked.answerable


@every_kind
async def test_a_rambling_draft_stops_although_closing_its_stream_is_not_enough(is_chat: bool) -> None:
    engine = an_engine(rambling(RAMBLINGS["a reason"]), streaming=True, clings=True, delay=0.001, is_chat=is_chat)
    await ask(engine, QUESTION, "astream")
    call = model_of(engine).calls[0]
    assert (call.ended, call.emitted <= 6) == ("closed", True)


@every_kind
@pytest.mark.parametrize("age", ["young", "old"])
@pytest.mark.parametrize("packet", [1, 2, 4, 7])
async def test_a_rambling_decline_stops_although_more_of_it_has_come_already(
    packet: int, age: str, is_chat: bool
) -> None:
    def drafted(_: str) -> Any:
        gc.collect(2 if age == "old" else 0)
        return rambling(RAMBLINGS["a reason"])

    gc.freeze()
    gc.disable()
    try:
        engine = an_engine(drafted, streaming=True, clings=True, delay=0.001, packet=packet, is_chat=is_chat)
        assert (await ask(engine, QUESTION, "astream")).text == FOUND
        draft, _ = model_of(engine).calls
        assert (draft.ended, draft.emitted <= 3 + 2 * packet) == ("closed", True)
    finally:
        gc.enable()


@every_kind
def test_in_sync_a_stream_that_closing_does_not_stop_is_collected_while_it_is_young(is_chat: bool) -> None:
    engine = an_engine(rambling(RAMBLINGS["a reason"]), streaming=True, clings=True, is_chat=is_chat)
    gc.disable()  # a collection of the host's would make it old
    try:
        text = str(engine.query(QUESTION))
        assert (text, model_of(engine).calls[0].ended) == (FOUND, "closed")
    finally:
        gc.enable()


@every_kind
@every_stream
async def test_a_count_up_to_where_a_reply_was_hung_up_on_is_not_the_provider_s_last_word(
    mode: str, is_chat: bool
) -> None:
    reply = rambling(RAMBLINGS["a reason"])
    engine = an_engine_for(mode, reply, usage=True, counts_on=True, is_chat=is_chat)
    asked = await ask(engine, QUESTION, mode)
    words = len(model_of(engine).calls[0].prompt.split())
    assert (asked.usage["estimated"], asked.usage["rag"]["input_tokens"]) == (True, words)
    whole = await ask(an_engine_for(mode, ("Mr", " Lin."), usage=True, counts_on=True), QUESTION, mode)
    assert (whole.usage["estimated"], whole.usage["rag"]["output_tokens"]) == (False, 2)


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
        if all(call.ended != "open" for call in model.calls):
            return


def _reply(step: str) -> dict[str, Any]:
    return {"draft": LONG} if step == "rag" else {"final": LONG}


@every_kind
@pytest.mark.parametrize("step", ["rag", "long_context"])
@pytest.mark.parametrize("wanted", [0, 1, 3])
def test_a_reader_who_closes_a_sync_stream_stops_the_model(wanted: int, step: str, is_chat: bool) -> None:
    engine = an_engine(**_reply(step), streaming=True, is_chat=is_chat, usage=True)
    response = engine.query(QUESTION)
    with closing(response.response_gen) as pieces:
        assert len([piece for piece, _ in zip(pieces, range(wanted), strict=False)]) == wanted
    call = model_of(engine).calls[-1]
    assert (call.ended, call.emitted < 20) == ("closed", True)
    assert set(response.metadata) == KEYS
    if wanted:
        assert response.metadata["usage"]["estimated"] is True


@pytest.mark.parametrize("wanted", [0, 2])
def test_a_sync_stream_that_is_dropped_stops_the_model(wanted: int, caplog: pytest.LogCaptureFixture) -> None:
    engine = an_engine(LONG, streaming=True)
    with silence(caplog):
        response = engine.query(QUESTION)
        for _ in range(wanted):
            next(response.response_gen)
        del response
        gc.collect()
    assert (model_of(engine).calls[-1].ended, model_of(engine).calls[-1].emitted < 20) == ("closed", True)


def _by_response_gen(response: Any) -> AsyncIterator[str]:
    return response.response_gen


def _by_method(response: Any) -> AsyncIterator[str]:
    return response.async_response_gen()


every_way = pytest.mark.parametrize("way", [_by_response_gen, _by_method], ids=["response_gen", "async_response_gen"])


@every_kind
@every_way
@pytest.mark.parametrize("step", ["rag", "long_context"])
@pytest.mark.parametrize("wanted", [1, 3])
async def test_aclose_reaches_the_model(
    wanted: int, step: str, way: Callable[[Any], Any], is_chat: bool, caplog: pytest.LogCaptureFixture
) -> None:
    engine = an_engine(**_reply(step), streaming=True, clings=True, is_chat=is_chat, usage=True)
    with silence(caplog):
        response = await engine.aquery(QUESTION)
        async with aclosing(way(response)) as pieces:
            assert len([await anext(pieces) for _ in range(wanted)]) == wanted
        call = model_of(engine).calls[-1]
        assert (call.ended, call.emitted < 20) == ("closed", True)
        assert set(response.metadata) == KEYS
        assert (response.metadata["route"], response.metadata["usage"]["estimated"]) == (step, True)


@every_way
@pytest.mark.parametrize("step", ["rag", "long_context"])
@pytest.mark.parametrize("wanted", [1, 3])
async def test_a_stream_that_is_dropped_stops_the_model(
    wanted: int, step: str, way: Callable[[Any], Any], caplog: pytest.LogCaptureFixture
) -> None:
    engine = an_engine(**_reply(step), streaming=True, delay=0.0005)
    with silence(caplog):
        response = await engine.aquery(QUESTION)
        pieces = way(response)
        for _ in range(wanted):
            await anext(pieces)
        del response, pieces
        gc.collect()
        await settled(model_of(engine))
    assert (model_of(engine).calls[-1].ended, model_of(engine).calls[-1].emitted < 20) == ("closed", True)


@every_way
async def test_a_stream_that_nobody_reads_asks_nothing(
    way: Callable[[Any], Any], caplog: pytest.LogCaptureFixture
) -> None:
    engine = an_engine(streaming=True)
    with silence(caplog):
        await way(await engine.aquery(QUESTION)).aclose()
        await engine.aquery(QUESTION)
        gc.collect()
        await asyncio.sleep(0)
    assert model_of(engine).calls == []


@every_way
async def test_leaving_at_any_piece_leaves_no_call_open_and_logs_nothing(
    way: Callable[[Any], Any], caplog: pytest.LogCaptureFixture
) -> None:
    with silence(caplog):
        for wanted in range(6):
            engine = an_engine(final=LONG[:8], streaming=True, clings=True)
            pieces = way(await engine.aquery(QUESTION))
            for _ in range(wanted):
                with suppress(StopAsyncIteration):
                    await anext(pieces)
            await pieces.aclose()
            assert "open" not in model_of(engine).endings


@pytest.mark.parametrize(
    "opening", [("un", "answerable"), rambling(("unanswerable", ":"))[:9]], ids=["plain", "rambling"]
)
@pytest.mark.parametrize("clings", [False, True], ids=["plain", "clinging"])
@pytest.mark.parametrize("mode", AWAITED)
async def test_a_task_cancelled_at_any_turn_leaves_no_call_open_and_logs_nothing(
    mode: str, opening: tuple[str, ...], clings: bool, caplog: pytest.LogCaptureFixture
) -> None:
    cancelled = 0
    with silence(caplog):
        for turns in range(40):
            engine = an_engine_for(mode, opening, LONG[:8], clings=clings)
            task = asyncio.create_task(ask(engine, QUESTION, mode))
            for _ in range(turns):
                await asyncio.sleep(0)
            cancelled += task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await settled(model_of(engine))
            assert "open" not in model_of(engine).endings
    assert cancelled > 2


@pytest.mark.parametrize("clings", [False, True], ids=["plain", "clinging"])
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
    assert (model_of(engine).calls[-1].ended, model_of(engine).calls[-1].emitted < 20) == ("closed", True)


@every_way
@pytest.mark.parametrize("wanted", [0, 1, 3])
@pytest.mark.parametrize("step", ["rag", "long_context"])
def test_a_loop_that_ends_over_a_half_read_stream_logs_nothing(
    step: str, wanted: int, way: Callable[[Any], Any], caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Any] = []
    kept: list[Any] = []
    engine = an_engine(**_reply(step), streaming=True, clings=True)

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context))
        response = await engine.aquery(QUESTION)
        kept.extend([response, way(response)])
        for _ in range(wanted):
            await anext(kept[1])

    with silence(caplog):
        asyncio.run(main())
        kept.clear()
        gc.collect()
    assert heard == []
    assert model_of(engine).endings[-1:] == (["closed"] if wanted else [])


@pytest.mark.parametrize("clings", [False, True], ids=["plain", "clinging"])
@pytest.mark.parametrize("leaves", [False, True], ids=["reads", "leaves"])
def test_a_loop_that_ends_while_a_task_reads_or_leaves_logs_nothing(
    leaves: bool, clings: bool, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Any] = []
    kept: list[Any] = []

    async def main(engine: SelfRouteQueryEngine, turns: int) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context))
        response = await engine.aquery(QUESTION)
        pieces = response.async_response_gen()
        await anext(pieces)
        kept.extend([response, asyncio.create_task(pieces.aclose() if leaves else anext(pieces))])
        for _ in range(turns):
            await asyncio.sleep(0)

    with silence(caplog):
        for turns in range(8):
            engine = an_engine(LONG, streaming=True, delay=0.0005, clings=clings)
            asyncio.run(main(engine, turns))
            kept.clear()
            gc.collect()
            assert model_of(engine).endings == ["closed"]
    assert heard == []


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


@pytest.mark.parametrize("slow", ["rag", "long_context", "documents"])
@pytest.mark.parametrize("mode", AWAITED)
async def test_a_cancelled_task_leaves_no_call_open(mode: str, slow: str, caplog: pytest.LogCaptureFixture) -> None:
    began = asyncio.Event()

    async def wait(*_: Any) -> list[Document]:
        began.set()
        await asyncio.sleep(60)
        return DOCUMENTS

    first, second = ScriptedLLM(draft=("un", "answerable")), ScriptedLLM(final=FINAL)
    documents: Any = wait if slow == "documents" else DOCUMENTS
    engine = an_engine_for(mode, llm=first, long_context_llm=second, documents=documents)
    if slow != "documents":
        (first if slow == "rag" else second).delay = 60
    with silence(caplog), recorded() as recording:
        task = asyncio.create_task(ask(engine, QUESTION, mode))
        for _ in range(200):
            await asyncio.sleep(0.002)
            if began.is_set() or slow in [*first.steps, *second.steps]:
                break
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert all(call.ended != "open" for call in (*first.calls, *second.calls))
    assert recording.spans.open_spans == {}
    assert len(recording.events.of(SelfRouteDecisionEvent)) == (slow != "rag")


def _number(prompt: str) -> int:
    return int(prompt.rpartition("number ")[2].partition("?")[0])


def _by_question(prompt: str) -> tuple[str, ...]:
    number = _number(prompt)
    return ("unans", "werable") if number % 2 else (f"Draft {number}", " it is.")


def _final(prompt: str) -> tuple[str, ...]:
    return (f"Final {_number(prompt)}", " it is.")


def _right(results: list[Any]) -> bool:
    return [(asked.text, asked.route) for asked in results] == [
        (f"Final {n} it is.", "long_context") if n % 2 else (f"Draft {n} it is.", "rag") for n in range(50)
    ]


QUESTIONS = [f"Which is number {n}?" for n in range(50)]


@pytest.mark.parametrize("mode", ["query", "stream"])
def test_fifty_threads_keep_their_own_state(mode: str) -> None:
    engine = an_engine_for(mode, _by_question, _final, delay=0.002)
    with ThreadPoolExecutor(50) as pool:
        results = list(pool.map(lambda question: asyncio.run(ask(engine, question, mode)), QUESTIONS))
    assert _right(results)


@pytest.mark.parametrize("mode", AWAITED)
async def test_fifty_tasks_keep_their_own_state(mode: str) -> None:
    engine = an_engine_for(mode, _by_question, _final, delay=0.002)
    results = await asyncio.gather(*(ask(engine, question, mode) for question in QUESTIONS))
    assert _right(results)
    assert len({id(asked.metadata) for asked in results}) == 50


@pytest.mark.parametrize("mode", AWAITED)
@pytest.mark.parametrize("slow", ["documents", "counter", "counter of a retry"])
async def test_slow_user_code_does_not_block_the_event_loop(slow: str, mode: str) -> None:
    loop_thread, threads = threading.current_thread(), []

    def documents(*_: Any) -> list[Document]:
        threads.append(threading.current_thread())
        return DOCUMENTS

    def count(text: str) -> int:
        threads.append(threading.current_thread())
        return len(text)

    fields: dict[str, Any] = {
        "documents": {"documents": documents},
        "counter": {"token_counter": count, "max_context_tokens": 30},
        "counter of a retry": {
            "token_counter": count,
            "failures": {"long_context": [ValueError("prompt is too long")]},
        },
    }[slow]
    engine = an_engine_for(mode, usage=True, **fields)
    threads.clear()
    await ask(engine, QUESTION, mode)
    assert threads
    assert loop_thread not in threads


@every_stream
async def test_a_line_that_dies_after_text_was_shown_is_an_error_not_an_end(mode: str) -> None:
    engine = an_engine_for(mode, LONG[:26], breaks_after=15)
    with pytest.raises(ConnectionError):
        await ask(engine, QUESTION, mode)
    assert model_of(engine).steps == ["rag"]


async def test_a_stream_goes_on_as_it_was_asked_for_when_the_engine_is_switched_back() -> None:
    engine = an_engine(LONG[:8], streaming=True)
    response = await engine.aquery(QUESTION)
    engine._response_synthesizer._streaming = False  # as condense-question chat engines do
    assert len([piece async for piece in response.async_response_gen()]) > 1


@every_mode
async def test_the_passages_are_handed_on_and_never_changed(mode: str) -> None:
    passages: list[NodeWithScore] = [item.model_copy(deep=True) for item in PASSAGES]
    engine = an_engine_for(mode, retriever=ListRetriever(passages))
    await ask(engine, QUESTION, mode)
    assert passages == PASSAGES
