"""Both hosts: what happens when there is nothing to read, when a provider fails, and when the reader leaves."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, nullcontext
from copy import deepcopy
from typing import Any

import pytest

from both_parts import (
    AWAITED,
    SYNC,
    awaited,
    document,
    every_model,
    every_stream,
    everywhere,
    model,
    pipeline,
    pipeline_for,
    retriever,
    seen,
    until,
)
from scenarios import DOCUMENT_TEXTS, FINAL, PASSAGE_TEXTS, QUESTION
from selfroute.errors import InputError
from selfroute.usage import Usage
from selfroute.usage.counts import FREE
from steering import BY_NAME

NEITHER = {
    "route": "long_context",
    "answer": "unanswerable",
    "answerable": False,
    "finish_reason": None,
    "decision": {"declined": True, "signal": "no_passages", "evidence": "", "ruling": None},
    "usage": Usage(long_context_only=0, cost_long_context_only=FREE).as_dict(),
}
LONG = ("Ms", " Okafor", " took", " the", " chair", ".", *(f" word{n}" for n in range(200)))
either_step = pytest.mark.parametrize("step", ["rag", "long_context"])


def saying(step: str, reply: Any) -> dict[str, Any]:
    """The script of a model that says this in a step."""
    return {"draft": reply} if step == "rag" else {"final": reply}


async def _none(*_: Any) -> list[Any]:
    return []


BLANK = ("", " \n\t")
NOTHING: dict[str, Any] = {
    "blank": lambda where: [*BLANK],
    "none": lambda where: lambda *_: [],
    "blanks": lambda where: lambda *_: [document(where, text) for text in BLANK],
    "awaited": lambda where: _none if where in AWAITED or "llamaindex" in where else lambda *_: [],
}


@everywhere
@pytest.mark.parametrize("name", NOTHING)
async def test_nothing_to_read_asks_no_model(name: str, where: str) -> None:
    found = await pipeline(where, None, None, passages=(), documents=NOTHING[name](where)).ask()
    assert (found.told | {"input": None}, found.context, found.calls) == (NEITHER | {"input": None}, [], [])


class WireError(Exception):
    """An error that only its own type makes recognisable."""


ERRORS = [
    WireError("cut"),
    RuntimeError("Rate limit: 30000 tokens per minute"),
    TimeoutError("slow"),
    ValueError("Response has no candidates"),
    TypeError("odd"),
]


@every_model
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@either_step
async def test_error_of_a_model_is_paid_once(step: str, error: Exception, where: str) -> None:
    one = pipeline(where, failures={step: [error]})
    with pytest.raises(type(error)) as raised:
        await one.ask()
    assert raised.value is error
    assert one.model.steps == ["rag", "long_context"][: 1 + (step == "long_context")]


@everywhere
@pytest.mark.parametrize("part", ["retriever", "documents", "awaited documents"])
async def test_error_of_a_part_passes_through_untouched(part: str, where: str) -> None:
    error = WireError("the maximum context length was exceeded")  # not the model's: nothing to read less of

    def fail(*_: Any) -> Any:
        raise error

    async def afail(*_: Any) -> Any:
        raise error

    documents = {"documents": afail if part.startswith("awaited") and where in AWAITED else fail}
    failing = {"retriever": retriever(where, failures=[error])} if part == "retriever" else documents
    one = pipeline(where, **failing)
    with pytest.raises(WireError) as raised:
        await one.ask()
    assert raised.value is error
    assert one.model.steps == ([] if part == "retriever" else ["rag"])


@everywhere
@pytest.mark.parametrize("stop", [StopIteration, StopAsyncIteration], ids=lambda stop: stop.__name__)
@pytest.mark.parametrize("part", ["documents", "rag", "long_context"])
async def test_a_stop_out_of_user_code_does_not_pass_for_the_end(part: str, stop: type[Exception], where: str) -> None:
    def fail(*_: Any) -> Any:
        raise stop

    parts: dict[str, Any] = {
        "documents": {"documents": fail},
        "rag": {"draft": fail},
        "long_context": {"final": fail},
    }
    with pytest.raises((RuntimeError, stop)):
        # A thread cannot hand a StopIteration to a waiting task, which then waits for ever.
        assert await asyncio.wait_for(pipeline(where, **parts[part]).ask(), 2) is None


RAMBLINGS = {
    "a reason": ("un", "answerable", ":"),
    "a sentence": ("Unanswerable", "."),
    "a because": ("unanswerable", " because"),
    "bold": ("**", "Unanswerable", "**", "\n\n"),
}


@every_stream
@pytest.mark.parametrize("opening", RAMBLINGS.values(), ids=RAMBLINGS)
async def test_rambling_ends_a_draft_and_is_shown_at_last(opening: tuple[str, ...], where: str) -> None:
    rambling = (*opening, " the", " passages", " do", " not", " say", *(f" word{n}" for n in range(100)))
    found = await pipeline(where, rambling, usage=True).ask()
    call = found.calls[0]
    refusal = next(at for at, piece in enumerate(opening, 1) if piece.endswith("answerable"))
    assert (call.ended, found.usage["estimated"], found.answerable) == ("closed", True, True)
    assert len([piece for piece in rambling[refusal : call.emitted] if any(map(str.isalpha, piece))]) <= 2
    assert 0 < found.usage["rag"]["output_tokens"] < 20
    words = (" The", " report", " covers", " 2024", " only", *(f" word{n}" for n in range(40)))
    found = await pipeline(where, final=(*opening, *words)).ask()
    assert "".join(found.pieces).removeprefix("because").strip() == "".join(words).strip()
    assert (len(found.pieces) > len(words) - 4, found.calls[-1].ended) == (True, "exhausted")


@every_stream
@either_step
@pytest.mark.parametrize("wanted", [1, 3])
async def test_reader_who_leaves_stops_the_model(wanted: int, step: str, where: str) -> None:
    for watch in (nullcontext, seen):  # a tracer gives the loop turns in which a stream that was dropped is closed
        one = pipeline(where, **saying(step, LONG), usage=True)
        with watch(one) as watched:
            async with aclosing(one.pieces()) as pieces:
                for _ in range(wanted):
                    await anext(pieces)
            assert (one.model.calls[-1].ended, one.model.calls[-1].emitted < 20) == ("closed", True)
        assert watched is one or watched.open == []


@awaited
@pytest.mark.parametrize("slow", ["rag", "long_context", "documents"])
async def test_a_cancelled_task_leaves_no_call_open(slow: str, where: str) -> None:
    began: list[bool] = []

    async def wait(*_: Any) -> list[Any]:
        began.append(True)
        await asyncio.sleep(60)
        return []

    first, second = model(where, draft=("un", "answerable")), model(where, final=FINAL)
    documents: Any = wait if slow == "documents" else [*DOCUMENT_TEXTS]
    one = pipeline(where, llm=first, long_context_llm=second, documents=documents)
    if slow != "documents":
        (first if slow == "rag" else second).delay = 60
    with seen(one) as watched:
        task = asyncio.create_task(one.ask())
        await until(lambda: began or slow in [*first.steps, *second.steps])
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert all(call.ended != "open" for call in (*first.calls, *second.calls))
    # LangChain itself never ends the run of a model whose `ainvoke` is cancelled.
    assert watched.open == ([slow] if where == "langchain ainvoke" and slow != "documents" else [])
    assert len(watched.decisions) == (slow != "rag")


def _by_question(prompt: str) -> tuple[str, ...]:
    number = int(prompt.rpartition("number ")[2].partition("?")[0])
    return ("unans", "werable") if number % 2 else (f"Draft {number}", " it is.")


def _final(prompt: str) -> tuple[str, ...]:
    return (f"Final {prompt.rpartition('number ')[2].partition('?')[0]}", " it is.")


QUESTIONS = [f"Which is number {n}?" for n in range(50)]


@everywhere
async def test_fifty_questions_at_once_keep_their_own_state_and_traces(where: str) -> None:
    one = pipeline(where, _by_question, _final, delay=0.002)
    with seen(one) as watched:
        if where in SYNC:
            with ThreadPoolExecutor(50) as pool:
                found = await asyncio.to_thread(
                    lambda: list(pool.map(lambda question: asyncio.run(one.ask(question)), QUESTIONS))
                )
        else:
            found = await asyncio.gather(*map(one.ask, QUESTIONS))
    assert [(each.answer, each.route) for each in found] == [
        (f"Final {n} it is.", "long_context") if n % 2 else (f"Draft {n} it is.", "rag") for n in range(50)
    ]
    assert len({id(each.decision) for each in found}) == 50
    assert (len(watched.decisions), watched.open) == (50, [])


@awaited
async def test_slow_user_code_does_not_block_the_event_loop(where: str) -> None:
    loop_thread, threads = threading.current_thread(), []

    def documents(*_: Any) -> list[Any]:
        threads.append(threading.current_thread())
        return [document(where, text) for text in DOCUMENT_TEXTS]

    await pipeline(where, usage=True, documents=documents).ask()
    assert (bool(threads), loop_thread in threads) == (True, False)


def never_asked(_: Any) -> Any:
    raise AssertionError


@everywhere
@pytest.mark.parametrize("question", ["", " \n", "\u200b", "\t"], ids=ascii)
async def test_a_blank_question_asks_nobody(question: str, where: str) -> None:
    one = pipeline_for(where, BY_NAME["a sure answer"], start=never_asked)
    with pytest.raises(InputError, match="blank"):
        await one.ask(question)
    assert (one.model.calls, one.queries) == ([], [])


@everywhere
@pytest.mark.parametrize("listed", [True, False], ids=["a list", "a callable"])
async def test_documents_given_are_never_changed(where: str, listed: bool) -> None:
    def called(*given: Any) -> list[Any]:
        """Empty all that was handed on."""
        for one in given:
            held = one["retrieved"] if isinstance(one, dict) else one
            if isinstance(held, list):
                held.clear()
            if isinstance(one, dict):
                one.clear()
        return documents

    documents = [document(where, text) for text in DOCUMENT_TEXTS]
    before = deepcopy(documents)
    one = pipeline(where, passages=PASSAGE_TEXTS, documents=documents if listed else called)
    for _ in range(2):
        found = await one.ask()
        assert (found.retrieved, found.read) == (2, [*DOCUMENT_TEXTS])
        assert found.told.get("input", QUESTION) == QUESTION
        found.sources.clear()
    assert documents == before
    assert len(one.asked.retriever.passages) == 2
