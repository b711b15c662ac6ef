"""What a chain does when there is nothing to read, when a provider fails, and when the reader leaves."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, closing
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.exceptions import LangChainException
from langchain_core.runnables import RunnableLambda

from langchain_parts import (
    DOCUMENTS,
    MODES,
    PASSAGES,
    QUESTION,
    STREAMS,
    ListRetriever,
    ScriptedModel,
    TreeTracer,
    a_chain,
    ask,
    chunks,
)
from scenarios import FINAL, FOUND
from selfroute.usage import FREE, Usage

every_mode = pytest.mark.parametrize("mode", MODES)
every_stream = pytest.mark.parametrize("mode", STREAMS)
NEITHER = {
    "route": "long_context",
    "answer": "unanswerable",
    "answerable": False,
    "finish_reason": None,
    "decision": {"declined": True, "signal": "no_passages", "evidence": "", "ruling": None},
    "usage": Usage(long_context_only=0, cost_long_context_only=FREE).as_dict(),
}


@every_mode
async def test_an_empty_retrieval_goes_straight_to_the_documents(mode: str) -> None:
    chain = a_chain(None, retriever=ListRetriever(passages=[]), usage=True)
    result = await ask(chain, QUESTION, mode)
    assert (result["retrieved"], result["context"], result["answer"]) == ([], DOCUMENTS, FOUND)
    assert result["decision"] == NEITHER["decision"]
    assert (result["usage"]["rag"], result["usage"]["estimated"]) == (None, False)


BLANK = [Document(""), Document(" \n\t")]


@every_mode
@pytest.mark.parametrize(
    "documents",
    [BLANK, lambda _: [], lambda _: BLANK, RunnableLambda(lambda _: [])],
    ids=["blank", "none", "blanks", "runnable"],
)
async def test_nothing_to_read_asks_no_model(documents: Any, mode: str) -> None:
    chain = a_chain(None, None, retriever=ListRetriever(passages=[]), documents=documents)
    result = await ask(chain, QUESTION, mode)
    assert result == {"input": QUESTION, "retrieved": [], "context": [], **NEITHER}
    assert chain.llm.calls == []


@every_mode
async def test_nothing_to_read_after_a_decline_asks_no_second_time(mode: str) -> None:
    chain = a_chain(final=None, documents=lambda _: [])
    result = await ask(chain, QUESTION, mode)
    assert (result["answer"], result["answerable"], result["context"]) == ("unanswerable", False, [])
    assert (result["retrieved"], result["usage"]["long_context"]) == (PASSAGES, None)
    assert chain.llm.steps == ["rag"]


class WireError(Exception):
    """An error that only its own type makes recognisable."""


ERRORS = [
    WireError("cut"),
    LangChainException("Rate limit: 30000 tokens per minute"),
    TimeoutError("slow"),
    ValueError("odd"),
]


@every_mode
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(("step", "steps"), [("rag", ["rag"]), ("long_context", ["rag", "long_context"])])
async def test_an_error_of_a_model_passes_through_untouched_and_is_paid_once(
    step: str, steps: list[str], error: Exception, mode: str
) -> None:
    chain = a_chain(failures={step: [error]})
    with pytest.raises(type(error)) as raised:
        await ask(chain, QUESTION, mode)
    assert raised.value is error
    assert chain.llm.steps == steps


@every_mode
@pytest.mark.parametrize("part", ["retriever", "documents"])
async def test_an_error_of_a_part_passes_through_untouched(part: str, mode: str) -> None:
    error = WireError("the maximum context length was exceeded")  # not the model's: nothing to read less of

    def fail(_: Any) -> Any:
        raise error

    chain = a_chain(**{part: ListRetriever(failures=[error]) if part == "retriever" else fail})
    with pytest.raises(WireError) as raised:
        await ask(chain, QUESTION, mode)
    assert raised.value is error
    assert chain.llm.steps == ([] if part == "retriever" else ["rag"])


@every_mode
@pytest.mark.parametrize("stop", [StopIteration, StopAsyncIteration], ids=lambda stop: stop.__name__)
@pytest.mark.parametrize("part", ["retriever", "documents", "rag", "long_context", "counter"])
async def test_a_stop_out_of_user_code_does_not_pass_for_the_end(part: str, stop: type[Exception], mode: str) -> None:
    def fail(_: Any) -> Any:
        raise stop

    parts: dict[str, Any] = {
        "retriever": {"retriever": RunnableLambda(fail)},
        "documents": {"documents": fail},
        "rag": {"draft": fail},
        "long_context": {"final": fail},
        "counter": {"token_counter": fail, "max_context_tokens": 10},
    }
    with pytest.raises((RuntimeError, stop)):
        assert await ask(a_chain(**parts[part]), QUESTION, mode) is None


@every_stream
async def test_a_decline_that_says_no_more_ends_by_itself_and_keeps_its_usage(mode: str) -> None:
    chain = a_chain(("Un", "answer", "able", "."), usage=True)
    result = await ask(chain, QUESTION, mode)
    assert [call.ended for call in chain.llm.calls] == ["exhausted", "exhausted"]
    assert result["usage"]["estimated"] is False
    assert result["usage"]["rag"]["cached_tokens"] > 0
    assert (
        result["usage"] == (await ask(a_chain(("Un", "answer", "able", "."), usage=True), QUESTION, "invoke"))["usage"]
    )


RAMBLINGS = {
    "a reason": ("un", "answerable", ":"),
    "a sentence": ("Unanswerable", "."),
    "a because": ("unanswerable", " because"),
    "bold": ("**", "Unanswerable", "**", "\n\n"),
}


@every_stream
@pytest.mark.parametrize("opening", RAMBLINGS.values(), ids=RAMBLINGS)
async def test_a_rambling_draft_costs_two_words_after_the_refusal_at_most(opening: tuple[str, ...], mode: str) -> None:
    rambling = (*opening, " the", " passages", " do", " not", " say", *(f" word{n}" for n in range(100)))
    chain = a_chain(rambling)
    result = await ask(chain, QUESTION, mode)
    call = chain.llm.calls[0]
    refusal = next(at for at, piece in enumerate(opening, 1) if piece.endswith("answerable"))
    assert (call.ended, result["usage"]["estimated"]) == ("closed", True)
    words = [piece for piece in rambling[refusal : call.emitted] if any(map(str.isalpha, piece))]
    assert len(words) <= 2
    assert 0 < result["usage"]["rag"]["output_tokens"] < 20
    assert result["answerable"]


@every_stream
@pytest.mark.parametrize("opening", RAMBLINGS.values(), ids=RAMBLINGS)
async def test_what_the_last_step_says_after_the_refusal_is_shown_while_it_comes(
    opening: tuple[str, ...], mode: str
) -> None:
    words = (" The", " report", " covers", " 2024", " only", *(f" word{n}" for n in range(40)))
    chain = a_chain(final=(*opening, *words))
    pieces = [chunk["answer"] for chunk in await chunks(chain, QUESTION, mode) if "answer" in chunk]
    assert "".join(pieces).removeprefix("because").strip() == "".join(words).strip()
    assert len(pieces) > len(words) - 4
    assert chain.llm.calls[-1].ended == "exhausted"


@every_stream
@pytest.mark.parametrize("step", ["rag", "long_context"])
@pytest.mark.parametrize("wanted", [1, 3])
async def test_a_reader_who_leaves_stops_the_model(wanted: int, step: str, mode: str) -> None:
    reply = ("Ms", " Okafor", " took", " the", " chair", ".", *(f" word{n}" for n in range(200)))
    chain = a_chain(reply) if step == "rag" else a_chain(final=reply)
    if mode == "stream":
        with closing(chain.stream(QUESTION)) as parts:
            seen = [part for part, _ in zip(parts, range(wanted), strict=False)]
    else:
        async with aclosing(chain.astream(QUESTION)) as parts:
            seen = [await anext(parts) for _ in range(wanted)]
    assert len(seen) == wanted
    assert chain.llm.calls[-1].ended == "closed"
    assert chain.llm.calls[-1].emitted < 20


@every_stream
async def test_a_stream_that_nobody_reads_asks_nothing(mode: str) -> None:
    chain = a_chain()
    parts = getattr(chain, mode)(QUESTION)
    await parts.aclose() if mode == "astream" else parts.close()
    assert (chain.llm.calls, chain.retriever.queries) == ([], [])


@pytest.mark.parametrize("slow", ["rag", "long_context", "documents"])
@pytest.mark.parametrize("mode", ["ainvoke", "astream"])
async def test_a_cancelled_task_leaves_no_call_open(mode: str, slow: str) -> None:
    began = asyncio.Event()

    async def wait(_: Any) -> list[Document]:
        began.set()
        await asyncio.sleep(60)
        return DOCUMENTS

    tracer = TreeTracer()
    first, second = ScriptedModel(draft=("un", "answerable")), ScriptedModel(final=FINAL)
    chain = a_chain(llm=first, long_context_llm=second, documents=wait if slow == "documents" else DOCUMENTS)
    if slow != "documents":
        (first if slow == "rag" else second).delay = 60
    task = asyncio.create_task(ask(chain, QUESTION, mode, {"callbacks": [tracer]}))
    for _ in range(200):
        await asyncio.sleep(0.005)
        if began.is_set() or slow in [*first.steps, *second.steps]:
            break
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert all(call.ended != "open" for call in (*first.calls, *second.calls))
    # The host itself never ends the run of a model whose `ainvoke` is cancelled.
    assert tracer.open_runs == ([slow] if mode == "ainvoke" and slow != "documents" else [])
    assert "CancelledError" in str(tracer.root.error)


def _number(prompt: str) -> int:
    return int(prompt.rpartition("number ")[2].partition("?")[0])


def _by_question(prompt: str) -> tuple[str, ...]:
    number = _number(prompt)
    return ("unans", "werable") if number % 2 else (f"Draft {number}", " it is.")


def _final(prompt: str) -> tuple[str, ...]:
    return (f"Final {_number(prompt)}", " it is.")


def _right(results: list[Any]) -> bool:
    return [(result["answer"], result["input"]) for result in results] == [
        (f"{'Final' if n % 2 else 'Draft'} {n} it is.", f"Which is number {n}?") for n in range(50)
    ]


QUESTIONS = [f"Which is number {n}?" for n in range(50)]


@pytest.mark.parametrize("mode", ["invoke", "stream"])
def test_fifty_threads_keep_their_own_state(mode: str) -> None:
    chain = a_chain(_by_question, _final, delay=0.002)
    with ThreadPoolExecutor(50) as pool:
        results = list(pool.map(lambda question: asyncio.run(ask(chain, question, mode)), QUESTIONS))
    assert _right(results)


@pytest.mark.parametrize("mode", ["ainvoke", "astream"])
async def test_fifty_tasks_keep_their_own_state(mode: str) -> None:
    chain = a_chain(_by_question, _final, delay=0.002)
    assert _right(await asyncio.gather(*(ask(chain, question, mode) for question in QUESTIONS)))


@pytest.mark.parametrize("mode", ["ainvoke", "astream"])
@pytest.mark.parametrize("slow", ["documents", "counter"])
async def test_slow_user_code_does_not_block_the_event_loop(slow: str, mode: str) -> None:
    loop_thread, threads = threading.current_thread(), []

    def documents(_: Any) -> list[Document]:
        threads.append(threading.current_thread())
        return DOCUMENTS

    def count(text: str) -> int:
        threads.append(threading.current_thread())
        return len(text)

    fields = {"documents": documents} if slow == "documents" else {"token_counter": count, "max_context_tokens": 30}
    chain = a_chain(usage=True, **fields)
    threads.clear()
    await ask(chain, QUESTION, mode)
    assert threads
    assert loop_thread not in threads


@every_stream
async def test_a_line_that_dies_after_text_was_shown_is_an_error_not_an_end(mode: str) -> None:
    chain = a_chain(
        ("Ms", " Okafor", " took", " the", " chair", ".", *(f" word{n}" for n in range(20))), breaks_after=15
    )
    with pytest.raises(ConnectionError):
        await chunks(chain, QUESTION, mode)
    assert chain.llm.steps == ["rag"]
