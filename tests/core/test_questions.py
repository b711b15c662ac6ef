"""What is no question is refused in one line, before anything is retrieved or asked, in every mode."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core.schema import QueryBundle

from both_parts import LANGCHAIN, LLAMAINDEX, everywhere, is_langchain, pipeline
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


@everywhere
@pytest.mark.parametrize("kind", HALVES)
async def test_question_with_half_a_character(kind: str, where: str) -> None:
    question, where_it_is = HALVES[kind]
    one = pipeline(where)
    asks: list[Callable[[], Any]] = [lambda: one.ask(question)]
    if is_langchain(where):
        asks.append(lambda: one.ask({"input": question}))
    else:
        bundle = QueryBundle(question)
        asks += [lambda: one.ask(bundle), lambda: one.asked._query(bundle)]
        asks += [lambda: one.holder.synthesize(question, []), lambda: one.holder.get_response(question, ["text"])]
    for ask in (*asks, lambda: one.asked.check(question)):
        with pytest.raises(InputError, match=where_it_is) as error:
            await ask()
        refused(error)
    assert (one.model.calls, one.queries) == ([], [])


@pytest.mark.parametrize("where", LLAMAINDEX)
@pytest.mark.parametrize("given", NO_QUESTIONS, ids=lambda given: type(given).__name__)
async def test_question_that_is_no_text(given: Any, where: str) -> None:
    one = pipeline(where)
    with pytest.raises(InputError, match="the question must be a string, not ") as error:
        await one.ask(given)
    refused(error)
    with pytest.raises(InputError, match="the question must be a string, not "):
        one.holder.synthesize(given, [])


@pytest.mark.parametrize("where", LANGCHAIN)
@pytest.mark.parametrize("history", [None, 5, "human: hello", {"a": 1}, [5], [None]], ids=repr)
async def test_history_without_messages(history: Any, where: str) -> None:
    one = pipeline(where)
    with pytest.raises(InputError, match="chat_history must be a list of messages"):
        await one.ask({"input": "Who?", "chat_history": history})
    assert (one.model.calls, one.queries) == ([], [])
