"""Passages, documents and the window: budgets, trimming, and less when a model says that it was too long."""

from __future__ import annotations

from copy import copy, deepcopy
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, HumanMessage

from langchain_parts import (
    DOCUMENTS,
    MODES,
    PASSAGES,
    QUESTION,
    STREAMS,
    WHOLE,
    Call,
    ListRetriever,
    ScriptedModel,
    a_chain,
    ask,
)
from scenarios import FINAL, FOUND
from selfroute.flow import MOST_RETRIES
from selfroute.usage import count_tokens

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
async def test_less_is_sent_until_it_fits_at_most_half_each_time(error: Exception, mode: str) -> None:
    again = ContextOverflowError("still too long")
    chain = long_chain(failures={"long_context": [error, again, again]})
    result = await ask(chain, QUESTION, mode)
    _, *prompts = [words(call.prompt) for call in chain.llm.calls]
    around = prompts[-1] - words(result["context"][0].page_content)
    read = [prompt - around for prompt in prompts]
    assert read[2] <= read[1] // 2
    assert read[3] <= read[2] // 2
    assert PASSAGE in result["context"][0].page_content


@every_mode
async def test_what_never_fits_is_the_provider_s_error(mode: str) -> None:
    errors = [ContextOverflowError(f"too long, {number}") for number in range(99)]
    chain = long_chain(failures={"long_context": errors})
    with pytest.raises(ContextOverflowError) as raised:
        await ask(chain, QUESTION, mode)
    assert raised.value is errors[MOST_RETRIES]
    assert chain.llm.steps == ["rag"] + ["long_context"] * (MOST_RETRIES + 1)


@every_mode
async def test_another_error_of_the_retry_is_raised(mode: str) -> None:
    chain = long_chain(failures={"long_context": [TOO_LONG["typed"], OSError("down")]})
    with pytest.raises(OSError, match="down"):
        await ask(chain, QUESTION, mode)
    assert chain.llm.steps == ["rag", "long_context", "long_context"]


MANY = [Document(f"Minute {number}: nothing of note was said.", metadata={"n": number}) for number in range(100)]


@every_mode
@pytest.mark.parametrize("error", TOO_LONG.values(), ids=TOO_LONG)
async def test_passages_that_are_too_long_are_sent_again_without_the_last(error: Exception, mode: str) -> None:
    chain = long_chain(retriever=ListRetriever(passages=MANY, k=100), failures={"rag": [error]}, draft=FINAL)
    result = await ask(chain, QUESTION, mode)
    assert (result["answer"], result["route"], chain.llm.steps) == (FOUND, "rag", ["rag", "rag"])
    assert result["retrieved"] == MANY
    assert result["context"] == MANY[: len(result["context"])]
    assert 20 <= len(result["context"]) <= 70


@every_mode
@pytest.mark.parametrize("counter", [None, words], ids=["estimated", "counted"])
async def test_passages_beyond_the_window_are_left_out_the_nearest_kept(counter: Any, mode: str) -> None:
    chain = long_chain(
        retriever=ListRetriever(passages=MANY, k=100),
        draft=FINAL,
        profile={"max_input_tokens": 500},
        token_counter=counter,
    )
    result = await ask(chain, QUESTION, mode)
    assert (result["answer"], result["route"]) == (FOUND, "rag")
    assert result["retrieved"] == MANY
    assert result["context"] == MANY[: len(result["context"])]
    assert 10 < len(result["context"]) < 60
    assert (counter or count_tokens)(chain.llm.calls[0].prompt) < 500


@every_mode
async def test_a_best_passage_beyond_the_window_is_read_as_far_as_it_fits(mode: str) -> None:
    long = Document("word " * 1000)
    chain = long_chain(retriever=ListRetriever(passages=[long, *MANY]), draft=FINAL, profile={"max_input_tokens": 500})
    (read,) = (await ask(chain, QUESTION, mode))["context"]
    assert 100 < words(read.page_content) < 500
    assert read.metadata["selfroute"]["trimmed"] is True
    assert "selfroute" not in long.metadata


@every_mode
@pytest.mark.parametrize("route", ["rag", "long_context"])
async def test_the_question_and_the_history_take_their_place_from_the_window(route: str, mode: str) -> None:
    chain = long_chain(
        documents=[a_document(8000)],
        retriever=ListRetriever(passages=[Document(PASSAGE), *MANY * 5], k=600),
        draft=FINAL if route == "rag" else ("unanswerable",),
        profile={"max_input_tokens": 3000},
    )
    given = {"input": QUESTION, "chat_history": [HumanMessage("word " * 600), AIMessage("word " * 600)]}
    result = await ask(chain, given, mode)
    assert result["route"] == route
    assert all(1800 < words(call.prompt) < 2900 for call in chain.llm.calls)


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
    error = ContextOverflowError("too long")
    chain = long_chain(
        documents=[Document(WHOLE)], failures={"long_context": [error]}, token_counter=lambda text: int(len(text) > 0)
    )
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
    (read,) = result["context"]
    start, end = read.metadata["selfroute"]["read"]
    assert read.metadata["selfroute"] == {**how, "trimmed": True, "read": [start, end]}
    assert read.page_content == document.page_content[start:end]
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


OLLAMA = {
    "its own": (lambda model: model, 2000),
    "bound": (lambda model: model.bind(options={"num_ctx": 1500}), 1500),
    "with retries": (lambda model: model.with_retry(), 2000),
}


class OllamaModel(ScriptedModel):
    """Has a window of its own, which the server keeps to, whatever the model could take."""

    num_ctx: int | None = None


@pytest.mark.parametrize("name", OLLAMA)
def test_the_window_that_a_server_is_told_to_keep_is_the_model_s(name: str) -> None:
    dress, window = OLLAMA[name]
    model = OllamaModel(final=FINAL, num_ctx=2000, profile={"max_input_tokens": 128_000})
    (read,) = long_chain(documents=[a_document(8000)], long_context_llm=dress(model)).invoke(QUESTION)["context"]
    assert window / 3 < words(read.page_content) < window
    assert PASSAGE in read.page_content


def test_a_server_that_is_told_no_window_has_the_model_s() -> None:
    model = OllamaModel(final=FINAL, profile={"max_input_tokens": 3000})
    (read,) = long_chain(documents=[a_document(8000)], long_context_llm=model).invoke(QUESTION)["context"]
    assert 1000 < words(read.page_content) < 3000


class CuttingModel(ScriptedModel):
    """Reads no more than so many tokens, silently, as some servers do."""

    most: int = 300

    def _counts(self, call: Any, pieces: Any) -> Any:
        read = min(len(call.prompt.split()), self.most)
        return {"input_tokens": read, "output_tokens": 5, "total_tokens": read + 5}


@every_mode
async def test_a_prompt_that_the_provider_has_cut_is_said_so(mode: str, caplog: pytest.LogCaptureFixture) -> None:
    documents = [a_document(4000, "May"), a_document(40, "June")]
    chain = long_chain(documents=documents, long_context_llm=CuttingModel(final=FINAL, label="small"))
    for one in (chain, chain, copy(chain), chain.with_config(tags=["t"]), deepcopy(chain)):
        result = await ask(one, QUESTION, mode)
    assert result["usage"]["long_context"]["input_tokens"] == 300
    for record in caplog.records:
        assert "small" in record.getMessage()
        assert "num_ctx" in record.getMessage()
    assert len(caplog.records) == 2, "once by the chain, whatever shares its parts, and once by another"
    if mode not in STREAMS:  # a stream has given its documents away before anything is counted
        assert [one.metadata["selfroute"]["trimmed"] for one in result["context"]] == ["provider"] * 2
    assert [one.page_content for one in result["context"]] == [one.page_content for one in documents]
    assert "selfroute" not in documents[0].metadata


@every_mode
async def test_a_prompt_that_was_read_from_a_cache_is_not_taken_for_cut(
    mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    chain = long_chain(documents=[a_document(4000)], usage=True)  # half of the tokens come from the cache
    result = await ask(chain, QUESTION, mode)
    assert result["usage"]["long_context"]["cached_tokens"] > 1000
    assert (result["context"], caplog.records) == ([a_document(4000)], [])


JAPANESE = "委員会は四月の会議でクレーンの修理を決定し、予算を承認しました。"


class CharacterModel(ScriptedModel):
    """Counts nearly a token for each character, as models do in Japanese, and refuses what is too long."""

    window: int = 3000
    rate: float = 0.87

    def _begin(self, messages: Any, options: Any) -> Any:
        tokens = sum(len(str(message.text)) for message in messages) * self.rate
        if tokens > self.window:
            self.calls.append(Call("long_context", "", messages, options))
            msg = "Your input exceeds the context window of this model. Please adjust your input and try again."
            raise ValueError(msg)
        return super()._begin(messages, options)

    def _counts(self, call: Any, pieces: Any) -> Any:
        read = int(len(call.prompt) * self.rate)
        return {"input_tokens": read, "output_tokens": 5, "total_tokens": read + 5}


@every_mode
async def test_a_text_of_another_script_is_not_sent_beyond_the_window(mode: str) -> None:
    model = CharacterModel(final=FINAL, profile={"max_input_tokens": 3000}, marker=JAPANESE)
    chain = long_chain(documents=[Document(JAPANESE * 1000)], long_context_llm=model, token_counter=None)
    (read,) = (await ask(chain, QUESTION, mode))["context"]
    assert len(model.calls) == 1
    assert 1000 < len(read.page_content) < 3000


@every_mode
async def test_a_window_that_nobody_names_is_found_by_halving(mode: str) -> None:
    model = CharacterModel(final=FINAL, marker=JAPANESE)
    chain = long_chain(documents=[Document(JAPANESE * 1000)], long_context_llm=model, token_counter=None)
    (read,) = (await ask(chain, QUESTION, mode))["context"]
    assert 1000 < len(read.page_content) < 3500
    assert len(model.calls) == 5


@every_mode
@pytest.mark.parametrize("limit", [{}, {"max_context_tokens": 2000}], ids=["window", "budget"])
async def test_how_the_provider_counts_is_learned_for_the_next_question(limit: Any, mode: str) -> None:
    """A text of rare words, which takes twice the tokens that it seems to."""
    model = CharacterModel(final=FINAL, rate=0.5, window=2700, profile={"max_input_tokens": 3000})
    chain = long_chain(documents=[a_document(8000)], long_context_llm=model, token_counter=None, **limit)
    for _ in range(2):
        (read,) = (await ask(chain, QUESTION, mode))["context"]
    before = len(model.calls)
    (read,) = (await ask(chain, QUESTION, mode))["context"]
    assert len(model.calls) == before + 1
    assert 500 < len(read.page_content) * model.rate <= limit.get("max_context_tokens", 3000) * 1.1


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


def test_without_a_counter_a_token_of_prose_is_four_characters() -> None:
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
