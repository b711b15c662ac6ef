"""Documents and the model's window: budgets, trimming, and one retry with less when a model says too long."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.exceptions import ContextOverflowError

from langchain_parts import (
    DOCUMENTS,
    MODES,
    PASSAGES,
    QUESTION,
    STREAMS,
    WHOLE,
    ListRetriever,
    ScriptedModel,
    a_chain,
    ask,
)
from scenarios import FINAL, FOUND

every_mode = pytest.mark.parametrize("mode", MODES)
every_stream = pytest.mark.parametrize("mode", STREAMS)


class BadRequestError(Exception):
    """What a client raises for an error that it knows no type for."""

    status_code = 400


PASSAGE = "Ms Okafor took the chair at nine."


def a_document(words: int = 600, source: str = "May") -> Document:
    """A long document with the passage in its last tenth."""
    filler = [f"{WHOLE} word{n}." for n in range(words // 4)]
    filler.insert(len(filler) * 9 // 10, PASSAGE)
    return Document(" ".join(filler), metadata={"source": source, "pages": [1, 2]}, id=source)


def words(text: str) -> int:
    """Count tokens as words."""
    return len(text.split())


TOO_LONG = {
    "typed": ContextOverflowError("no words to go by"),
    "vllm": BadRequestError(
        "This model's maximum context length is 400 tokens. However, you requested 640 tokens in the messages. "
        "Please reduce the length of the messages."
    ),
    "in words": ValueError("prompt is too long: 640 tokens > 400 maximum"),
}


def long_chain(**fields: Any) -> Any:
    """A chain over one long document and its passage."""
    parts = {
        "documents": [a_document()],
        "retriever": ListRetriever(passages=[Document(PASSAGE)]),
        "token_counter": words,
    }
    return a_chain(**{**parts, **fields})


@every_mode
@pytest.mark.parametrize("error", TOO_LONG.values(), ids=TOO_LONG)
async def test_a_prompt_that_is_too_long_is_sent_once_more_with_less(error: Exception, mode: str) -> None:
    documents = [a_document()]
    chain = long_chain(documents=documents, failures={"long_context": [error]}, usage=True)
    result = await ask(chain, QUESTION, mode)
    assert (result["answer"], chain.llm.steps) == (FOUND, ["rag", "long_context", "long_context"])
    _, first, second = chain.llm.calls
    assert words(second.prompt) < words(first.prompt)
    (read,) = result["context"]
    assert read.page_content in second.prompt
    assert PASSAGE in read.page_content
    assert read.metadata["selfroute"]["trimmed"] is True
    assert documents == [a_document()]
    assert result["usage"]["long_context"]["input_tokens"] == words(second.prompt)


@every_mode
@pytest.mark.parametrize("name", ["vllm", "in words"])
async def test_the_limit_that_the_error_names_is_kept(name: str, mode: str) -> None:
    chain = long_chain(failures={"long_context": [TOO_LONG[name]]})
    (read,) = (await ask(chain, QUESTION, mode))["context"]
    assert 200 <= words(read.page_content) <= 400


@every_mode
@pytest.mark.parametrize("error", TOO_LONG.values(), ids=TOO_LONG)
async def test_a_second_refusal_is_raised(error: Exception, mode: str) -> None:
    again = ContextOverflowError("still too long")
    chain = long_chain(failures={"long_context": [error, again]})
    with pytest.raises(ContextOverflowError) as raised:
        await ask(chain, QUESTION, mode)
    assert raised.value is again
    assert chain.llm.steps == ["rag", "long_context", "long_context"]


@every_mode
async def test_another_error_of_the_retry_is_raised(mode: str) -> None:
    chain = long_chain(failures={"long_context": [TOO_LONG["typed"], OSError("down")]})
    with pytest.raises(OSError, match="down"):
        await ask(chain, QUESTION, mode)
    assert chain.llm.steps == ["rag", "long_context", "long_context"]


@every_mode
@pytest.mark.parametrize("error", TOO_LONG.values(), ids=TOO_LONG)
async def test_passages_that_are_too_long_are_an_error(error: Exception, mode: str) -> None:
    chain = long_chain(failures={"rag": [error]})
    with pytest.raises(type(error)) as raised:
        await ask(chain, QUESTION, mode)
    assert raised.value is error
    assert chain.llm.steps == ["rag"]


@every_stream
async def test_too_long_after_text_was_shown_is_raised(mode: str) -> None:
    final = ScriptedModel(
        final=("Ms", " Okafor", " took", " the", " chair", ".", *(f" word{n}" for n in range(20))),
        breaks_after=15,
        breaks_with=TOO_LONG["typed"],
    )
    with pytest.raises(ContextOverflowError):
        await ask(long_chain(long_context_llm=final), QUESTION, mode)
    assert len(final.calls) == 1


@every_stream
async def test_too_long_while_the_reply_is_held_back_is_tried_once_more(mode: str) -> None:
    final = ScriptedModel(final=("Un", "a"), breaks_after=1, breaks_with=TOO_LONG["typed"], breaks_calls=1)
    result = await ask(long_chain(long_context_llm=final), QUESTION, mode)
    assert (result["answer"], len(final.calls)) == ("Una", 2)


@every_mode
async def test_a_refused_prompt_with_nothing_left_to_send_is_an_error(mode: str) -> None:
    error = ContextOverflowError("This model's maximum context length is 100 tokens, you requested 90000 tokens.")
    chain = long_chain(documents=[Document(WHOLE)], failures={"long_context": [error]})
    with pytest.raises(ContextOverflowError) as raised:
        await ask(chain, QUESTION, mode)
    assert raised.value is error
    assert chain.llm.steps.count("long_context") == 1


@every_mode
@pytest.mark.parametrize("budget", [100, 300, 599])
async def test_documents_fill_the_budget_and_no_more(budget: int, mode: str) -> None:
    chain = long_chain(max_context_tokens=budget)
    result = await ask(chain, QUESTION, mode)
    (read,) = result["context"]
    assert budget * 0.8 <= words(read.page_content) <= budget
    assert PASSAGE in read.page_content
    assert (read.metadata["source"], read.metadata["pages"], read.id) == ("May", [1, 2], "May")
    assert read.metadata["selfroute"]["trimmed"] is True
    assert chain.llm.steps == ["rag", "long_context"]


@every_mode
async def test_documents_that_fit_are_handed_over_as_they_are(mode: str) -> None:
    documents = [a_document(source="May"), a_document(source="June")]
    result = await ask(long_chain(documents=documents, max_context_tokens=5000), QUESTION, mode)
    assert result["context"] == documents
    assert all("selfroute" not in document.metadata for document in result["context"])


@every_mode
async def test_the_best_documents_come_first_and_the_last_is_trimmed(mode: str) -> None:
    documents = [a_document(400, name) for name in ("May", "June", "July")]
    before = deepcopy(documents)
    result = await ask(long_chain(documents=documents, max_context_tokens=600), QUESTION, mode)
    assert [document.metadata["source"] for document in result["context"]] == ["May", "June"]
    assert result["context"][0] == documents[0]
    assert sum(words(document.page_content) for document in result["context"]) <= 600
    assert result["context"][1].metadata["selfroute"]["trimmed"] is True
    assert documents == before


@every_mode
async def test_what_a_document_says_of_itself_is_kept_when_it_is_trimmed(mode: str) -> None:
    how = {"method": "offsets", "chunks": 7, "gaps": [[3, 9]], "trimmed": False}
    document = a_document()
    document.metadata["selfroute"] = how
    result = await ask(long_chain(documents=[document], max_context_tokens=100), QUESTION, mode)
    assert result["context"][0].metadata["selfroute"] == {**how, "trimmed": True}
    assert how["trimmed"] is False


@every_mode
async def test_a_budget_for_nothing_asks_no_model(mode: str) -> None:
    chain = long_chain(max_context_tokens=1, token_counter=lambda text: 2 * bool(text), final=None)
    result = await ask(chain, QUESTION, mode)
    assert (result["answerable"], result["context"], chain.llm.steps) == (False, [], ["rag"])


PROFILED = {
    "plain": lambda model: model,
    "bind": lambda model: model.bind(stop=["\n"]),
    "with_config": lambda model: model.with_config(tags=["t"]),
    "with_retry": lambda model: model.with_retry(),
    "with_fallbacks": lambda model: model.with_fallbacks([ScriptedModel()]),
}


@every_mode
@pytest.mark.parametrize("dress", PROFILED)
async def test_the_model_s_own_window_is_kept(dress: str, mode: str) -> None:
    model = PROFILED[dress](ScriptedModel(final=FINAL, profile={"max_input_tokens": 3000}))
    result = await ask(long_chain(documents=[a_document(8000)], long_context_llm=model), QUESTION, mode)
    (read,) = result["context"]
    assert 1000 < words(read.page_content) < 3000
    assert PASSAGE in read.page_content


@pytest.mark.parametrize("profile", [None, {}, {"max_output_tokens": 5}, {"max_input_tokens": None}], ids=repr)
def test_a_model_that_says_nothing_of_its_window_gets_all(profile: Any) -> None:
    documents = [a_document(8000)]
    chain = long_chain(documents=documents, long_context_llm=ScriptedModel(final=FINAL, profile=profile))
    assert chain.invoke(QUESTION)["context"] == documents


def test_the_window_of_the_first_model_does_not_bound_the_second() -> None:
    first = ScriptedModel(draft=("unanswerable",), profile={"max_input_tokens": 100})
    chain = long_chain(llm=first, long_context_llm=ScriptedModel(final=FINAL))
    assert chain.invoke(QUESTION)["context"] == [a_document()]


def test_the_budget_that_was_given_goes_before_the_model_s_own_window() -> None:
    model = ScriptedModel(final=FINAL, profile={"max_input_tokens": 128_000})
    (read,) = long_chain(long_context_llm=model, max_context_tokens=50).invoke(QUESTION)["context"]
    assert words(read.page_content) <= 50


def test_without_a_counter_a_token_is_a_quarter_of_its_characters() -> None:
    (read,) = long_chain(token_counter=None, max_context_tokens=100).invoke(QUESTION)["context"]
    assert 300 <= len(read.page_content) <= 400


def test_the_passages_of_the_first_step_are_never_trimmed() -> None:
    chain = a_chain(("Mr Lin.",), max_context_tokens=1, documents=DOCUMENTS)
    assert chain.invoke(QUESTION)["context"] == PASSAGES


@every_mode
async def test_a_key_of_somebody_elses_under_our_name_does_no_harm(mode: str) -> None:
    document = Document("word " * 400, metadata={"source": "minutes", "selfroute": "mine"})
    result = await ask(a_chain(documents=[document], max_context_tokens=50), QUESTION, mode)
    assert result["context"][0].metadata["selfroute"]["trimmed"] is True
    assert document.metadata["selfroute"] == "mine"
