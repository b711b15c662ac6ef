"""A second step that fails can be answered for: by a model with a smaller window, by another chain, by a plain word."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.exceptions import ContextOverflowError
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable, RunnableLambda

from langchain_parts import MODES, QUESTION, ListRetriever, ScriptedModel, TreeTracer, a_chain, ask
from langchain_selfroute import SelfRouteLedger
from scenarios import FINAL, FOUND, WHOLE

every_mode = pytest.mark.parametrize("mode", MODES)
PASSAGE = "Ms Okafor took the chair at nine."
DOWN = ConnectionError("500: the big model is down")


def words(text: str) -> int:
    """Count tokens as words."""
    return len(text.split())


class Small(ScriptedModel):
    """Refuses prompts over its window, as a provider does."""

    window: int = 300

    def _begin(self, messages: Any, options: Any) -> Any:
        asked = sum(words(str(message.text)) for message in messages)
        if asked > self.window:
            self.failures = {"long_context": [*[None] * len(self.calls), too_long(asked, self.window)]}
        return super()._begin(messages, options)


def too_long(asked: int, window: int) -> Exception:
    return ContextOverflowError(f"This model's maximum context length is {window} tokens, you requested {asked}.")


def a_big_one(**fields: Any) -> ScriptedModel:
    return ScriptedModel(failures={"long_context": [DOWN] * 9}, **fields)


def _function(small: ScriptedModel) -> Runnable[Any, Any]:
    def reply(prompt: PromptValue) -> str:
        asked = words(prompt.to_string())
        small.calls.append(asked)
        if asked > 300:
            raise too_long(asked, 300)
        return FOUND

    return RunnableLambda(reply)


FALLBACKS = {
    "a smaller one": lambda small: a_big_one().with_fallbacks([small]),
    "the last of three": lambda small: a_big_one().with_fallbacks([a_big_one(), small]),
    "with retries": lambda small: a_big_one().with_fallbacks([small.with_retry(stop_after_attempt=1)]),
    "bound": lambda small: a_big_one().with_fallbacks([small]).bind(stop=["\n"]),
    "in a sequence": lambda small: RunnableLambda(lambda prompt: prompt) | a_big_one().with_fallbacks([small]),
    "a function": lambda small: a_big_one().with_fallbacks([_function(small)]),
}


def a_long_chain(**fields: Any) -> Any:
    text = " ".join([*[f"{WHOLE} word{n}." for n in range(150)], PASSAGE, *[f"{WHOLE} more{n}." for n in range(50)]])
    parts = {"documents": [Document(text, metadata={"source": "May"})], "token_counter": words}
    return a_chain(**{**parts, "retriever": ListRetriever(passages=[Document(PASSAGE)]), **fields})


@every_mode
@pytest.mark.parametrize("dress", FALLBACKS)
async def test_a_fallback_with_a_smaller_window_is_given_what_fits_it(dress: str, mode: str) -> None:
    small = Small(final=FINAL)
    chain = a_long_chain(long_context_llm=FALLBACKS[dress](small))
    result = await ask(chain, QUESTION, mode)
    assert (result["answer"], len(small.calls)) == (FOUND, 2)
    (read,) = result["context"]
    assert PASSAGE in read.page_content
    assert 150 < words(read.page_content) < 300
    assert read.metadata["selfroute"]["trimmed"] is True


@every_mode
async def test_the_trace_says_which_error_made_it_read_less(mode: str) -> None:
    tracer = TreeTracer()
    chain = a_long_chain(long_context_llm=FALLBACKS["a smaller one"](Small(final=FINAL)))
    await ask(chain, QUESTION, mode, {"callbacks": [tracer]})
    readings = [run.inputs for run in tracer.root.children if run.name == "read_documents"]
    assert ["maximum context length is 300" in str(inputs.get("too_long")) for inputs in readings] == [False, True]
    assert tracer.open_runs == []


@every_mode
async def test_other_errors_of_a_fallback_leave_the_first_one_to_be_raised(mode: str) -> None:
    other = ScriptedModel(failures={"long_context": [OSError("the small one is down, too")]})
    with pytest.raises(ConnectionError) as raised:
        await ask(a_long_chain(long_context_llm=a_big_one().with_fallbacks([other])), QUESTION, mode)
    assert raised.value is DOWN


@every_mode
async def test_where_the_fallback_refuses_all_the_first_error_is_raised(mode: str) -> None:
    small = Small(final=FINAL, window=3)
    with pytest.raises(ConnectionError) as raised:
        await ask(a_long_chain(long_context_llm=a_big_one().with_fallbacks([small])), QUESTION, mode)
    assert raised.value is DOWN


@every_mode
async def test_another_chain_answers_for_a_second_step_that_fails(mode: str) -> None:
    ledger, small = SelfRouteLedger(), Small(final=FINAL)
    chain = a_long_chain(long_context_llm=a_big_one())
    smaller = a_long_chain(long_context_llm=small, max_context_tokens=200)
    result = await ask(chain.with_fallbacks([smaller]), QUESTION, mode, {"callbacks": [ledger]})
    assert (result["answer"], len(small.calls)) == (FOUND, 1)
    assert (ledger.to_dict()["queries"], ledger.to_dict()["failed"]) == (1, 1)


def sorry(question: Any) -> dict[str, Any]:
    """Say that the documents could not be read; as the documentation does."""
    inputs = {"input": question} if isinstance(question, str) else question
    return {**inputs, "answer": "The documents could not be read.", "answerable": False, "context": []}


@every_mode
@pytest.mark.parametrize("given", [QUESTION, {"input": QUESTION}], ids=["text", "dict"])
async def test_an_honest_refusal_takes_the_place_of_an_error(given: Any, mode: str) -> None:
    chain = a_long_chain(long_context_llm=a_big_one())
    honest = chain.with_fallbacks([RunnableLambda(sorry)], exceptions_to_handle=(ConnectionError,))
    result = await ask(honest, given, mode)
    assert result == sorry(given)
    with pytest.raises(OSError, match="disk"):
        await ask(
            a_chain(failures={"long_context": [OSError("disk")]}).with_fallbacks(
                [RunnableLambda(sorry)], exceptions_to_handle=(ConnectionError,)
            ),
            given,
            mode,
        )
