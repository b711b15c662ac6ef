"""What is no question is refused in one line, before anything is retrieved or asked, in every mode."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core.schema import QueryBundle

import langchain_parts
import llamaindex_parts
from langchain_parts import a_chain
from llamaindex_parts import an_engine, model_of
from selfroute.errors import InputError

HALVES: dict[str, tuple[str, str]] = {
    "alone": ("\ud83d", r"'\\ud83d', at position 0"),
    "at the end": ("Who chaired? \ude00", r"'\\ude00', at position 13"),
    "a pair of halves": (json.loads('"who "') + "\ud83d" + "\ude00", r"'\\ud83d', at position 4"),
    "bytes of another encoding": (b"caf\xe9".decode(errors="surrogateescape"), r"'\\udce9', at position 3"),
}
NO_QUESTIONS: list[Any] = [None, 5, b"who", ["who"], QueryBundle(7)]  # type: ignore[arg-type]


def refused(error: pytest.ExceptionInfo[InputError]) -> str:
    told = str(error.value)
    assert "nothing was retrieved and no model was asked" in told
    assert "\n" not in told
    told.encode()
    return told


@pytest.mark.parametrize("mode", langchain_parts.MODES)
@pytest.mark.parametrize("kind", HALVES)
async def test_half_a_character_asks_nobody_in_langchain(kind: str, mode: str) -> None:
    question, where = HALVES[kind]
    retriever = langchain_parts.ListRetriever()
    chain = a_chain(retriever=retriever)
    asks: list[Callable[[], Any]] = [lambda: chain.check(question), lambda: chain.first_step.invoke(question)]
    for given in (question, {"input": question}):
        with pytest.raises(InputError, match=where) as error:
            await langchain_parts.ask(chain, given, mode)
        refused(error)
    for ask in asks:
        with pytest.raises(InputError, match=where):
            ask()
    assert (chain.llm.calls, retriever.queries) == ([], [])


@pytest.mark.parametrize("mode", llamaindex_parts.MODES)
@pytest.mark.parametrize("kind", HALVES)
async def test_half_a_character_asks_nobody_in_llamaindex(kind: str, mode: str) -> None:
    question, where = HALVES[kind]
    retriever = llamaindex_parts.ListRetriever()
    engine = an_engine(retriever=retriever, streaming=mode in llamaindex_parts.STREAMS)
    synthesizer = engine._response_synthesizer
    asks: list[Callable[[], Any]] = [
        lambda: engine.check(question),
        lambda: engine.first_step(question),
        lambda: engine._query(QueryBundle(question)),
        lambda: synthesizer.synthesize(question, []),
        lambda: synthesizer.get_response(question, ["text"]),
    ]
    for given in (question, QueryBundle(question)):
        with pytest.raises(InputError, match=where) as error:
            await llamaindex_parts.ask(engine, given, mode)
        refused(error)
    for ask in asks:
        with pytest.raises(InputError, match=where):
            ask()
    assert (model_of(engine).calls, retriever.queries) == ([], [])


def test_the_advice_makes_a_question_of_it() -> None:
    for question, _ in HALVES.values():
        asked = ("Who? " + question).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        assert a_chain().invoke(asked)["input"] == asked
    assert "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16", "replace") == "\N{GRINNING FACE}"


@pytest.mark.parametrize("mode", llamaindex_parts.MODES)
@pytest.mark.parametrize("given", NO_QUESTIONS, ids=lambda given: type(given).__name__)
async def test_what_is_no_text_is_no_question_in_llamaindex(given: Any, mode: str) -> None:
    engine = an_engine(streaming=mode in llamaindex_parts.STREAMS)
    with pytest.raises(InputError, match="the question must be a string, not ") as error:
        await llamaindex_parts.ask(engine, given, mode)
    refused(error)
    with pytest.raises(InputError, match="the question must be a string, not "):
        engine._response_synthesizer.synthesize(given, [])


@pytest.mark.parametrize("mode", langchain_parts.MODES)
@pytest.mark.parametrize("history", [None, 5, "human: hello", {"a": 1}, [5], [None]], ids=repr)
async def test_a_history_without_messages_asks_nobody(history: Any, mode: str) -> None:
    retriever = langchain_parts.ListRetriever()
    chain = a_chain(retriever=retriever)
    with pytest.raises(InputError, match="chat_history must be a list of messages"):
        await langchain_parts.ask(chain, {"input": "Who?", "chat_history": history}, mode)
    assert (chain.llm.calls, retriever.queries) == ([], [])
