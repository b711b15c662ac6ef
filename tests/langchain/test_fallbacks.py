"""A second step that fails can be answered for: by a model with a smaller window, by another chain, by a plain word."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.exceptions import ContextOverflowError
from langchain_core.runnables import RunnableLambda

from langchain_parts import MODES, QUESTION, ListRetriever, ScriptedModel, TreeTracer, a_chain, ask
from scenarios import FINAL, FOUND, WHOLE

every_mode = pytest.mark.parametrize("mode", MODES)
PASSAGE = "Ms Okafor took the chair at nine."
DOWN = ConnectionError("500: the big model is down")


def words(text: str) -> int:
    """Count tokens as words."""
    return len(text.split())


def too_long(asked: int, window: int = 300) -> Exception:
    return ContextOverflowError(f"This model's maximum context length is {window} tokens, you requested {asked}.")


def small(window: int = 300) -> Any:
    """Make a model that refuses prompts over its window, as a provider does."""
    refusal = partial(too_long, window=window)
    return ScriptedModel(final=FINAL, tokens=words, limit=window, refuses=refusal)


def big() -> ScriptedModel:
    return ScriptedModel(failures={"long_context": [DOWN] * 9})


def _function(of: ScriptedModel) -> RunnableLambda[Any, Any]:
    def reply(prompt: Any) -> str:
        of.calls.append(prompt)
        if words(prompt.to_string()) > 300:
            raise too_long(words(prompt.to_string()))
        return FOUND

    return RunnableLambda(reply)


FALLBACKS: dict[str, Any] = {
    "a smaller one": lambda of: big().with_fallbacks([of]),
    "the last of three": lambda of: big().with_fallbacks([big(), of]),
    "in a sequence": lambda of: RunnableLambda(lambda prompt: prompt) | big().with_fallbacks([of]),
    "a function": lambda of: big().with_fallbacks([_function(of)]),
}


def a_long_chain(**fields: Any) -> Any:
    text = " ".join([*(f"{WHOLE} word{n}." for n in range(150)), PASSAGE, *(f"{WHOLE} more{n}." for n in range(50))])
    found = {"documents": [Document(text)], "retriever": ListRetriever(passages=[Document(PASSAGE)])}
    return a_chain(**{**found, **fields})


@every_mode
@pytest.mark.parametrize("name", FALLBACKS)
async def test_fallback_is_given_what_fits_it(name: str, mode: str) -> None:
    tracer, smaller = TreeTracer(), small()
    chain = a_long_chain(long_context_llm=FALLBACKS[name](smaller))
    result = await ask(chain, QUESTION, mode, {"callbacks": [tracer]})
    assert (result["answer"], len(smaller.calls)) == (FOUND, 2)
    (read,) = result["context"]
    assert PASSAGE in read.page_content
    assert 150 < words(read.page_content) < 300
    assert read.metadata["selfroute"]["trimmed"] is True
    readings = [run.inputs for run in tracer.root.children if run.name == "read_documents"]
    assert ["maximum context length is 300" in str(inputs.get("too_long")) for inputs in readings] == [False, True]
    assert tracer.open_runs == []


@every_mode
@pytest.mark.parametrize("other", ["fails, too", "refuses all"])
async def test_fallback_that_gives_nothing(other: str, mode: str) -> None:
    failing = ScriptedModel(failures={"long_context": [OSError("the small one is down, too")]})
    fallback = failing if other == "fails, too" else small(3)
    with pytest.raises(ConnectionError) as raised:
        await ask(a_long_chain(long_context_llm=big().with_fallbacks([fallback])), QUESTION, mode)
    assert raised.value is DOWN
