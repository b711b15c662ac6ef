"""Passages, documents and the window: budgets, trimming, and less when a model says that it was too long."""

from __future__ import annotations

from copy import copy, deepcopy
from typing import Any

import pytest
from llama_index.core.constants import DEFAULT_CONTEXT_WINDOW
from llama_index.core.schema import Document, MetadataMode, NodeWithScore, TextNode
from pydantic import Field

from llamaindex_parts import (
    DOCUMENTS,
    MODES,
    PASSAGES,
    STREAMS,
    WHOLE,
    Asked,
    Counts,
    ListRetriever,
    Raw,
    ScriptedLLM,
    an_engine,
    ask,
    model_of,
)
from llamaindex_selfroute import SelfRouteQueryEngine
from scenarios import FINAL, FOUND, QUESTION
from selfroute.flow import MOST_RETRIES
from selfroute.usage import count_tokens

every_mode = pytest.mark.parametrize("mode", MODES)
every_stream = pytest.mark.parametrize("mode", STREAMS)


class BadRequestError(Exception):
    """What a client raises for an error that it knows no type for."""

    status_code = 400

    def __init__(self, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code


PASSAGE = "Ms Okafor took the chair at nine."


def a_document(words: int = 600, source: str = "May") -> Document:
    """A long document with the passage in its last tenth."""
    filler = [f"{WHOLE} word{n}." for n in range(words // 4)]
    filler.insert(len(filler) * 9 // 10, PASSAGE)
    return Document(text=" ".join(filler), metadata={"source": source, "pages": [1, 2]}, id_=source)


def words(text: str) -> int:
    """Count tokens as words."""
    return len(text.split())


TOO_LONG = {
    "by its code": BadRequestError("no words to go by", "context_length_exceeded"),
    "vllm": BadRequestError(
        "This model's maximum context length is 400 tokens. However, you requested 640 tokens in the messages. "
        "Please reduce the length of the messages."
    ),
    "in words": ValueError("prompt is too long: 640 tokens > 400 maximum"),
}


def long_engine(mode: str = "query", **fields: Any) -> SelfRouteQueryEngine:
    """An engine over one long document and its passage."""
    parts = {
        "documents": [a_document()],
        "retriever": ListRetriever([NodeWithScore(node=TextNode(text=PASSAGE), score=1)]),
        "token_counter": words,
        "streaming": mode in STREAMS,
    }
    return an_engine(**{**parts, **fields})


def label_of(asked: Asked, at: int = 0) -> dict[str, Any]:
    """How a document was rebuilt."""
    return asked.source_nodes[at].node.metadata["selfroute"]


@every_mode
@pytest.mark.parametrize("error", TOO_LONG.values(), ids=TOO_LONG)
async def test_a_prompt_that_is_too_long_is_sent_once_more_with_less(error: Exception, mode: str) -> None:
    documents = [a_document()]
    engine = long_engine(mode, documents=documents, failures={"long_context": [error]}, usage=True)
    asked, model = await ask(engine, QUESTION, mode), model_of(engine)
    assert (asked.text, model.steps) == (FOUND, ["rag", "long_context", "long_context"])
    _, first, second = model.calls
    assert words(second.prompt) < words(first.prompt)
    (read,) = asked.sources
    assert read in second.prompt
    assert PASSAGE in read
    assert label_of(asked)["trimmed"] is True
    assert documents == [a_document()]
    assert asked.usage["long_context"]["input_tokens"] == words(second.prompt)


@every_mode
@pytest.mark.parametrize("name", ["vllm", "in words"])
async def test_the_limit_that_the_error_names_is_kept(name: str, mode: str) -> None:
    (read,) = (await ask(long_engine(mode, failures={"long_context": [TOO_LONG[name]]}), QUESTION, mode)).sources
    assert 200 <= words(read) <= 400


@every_mode
@pytest.mark.parametrize("error", TOO_LONG.values(), ids=TOO_LONG)
async def test_less_is_sent_until_it_fits_at_most_half_each_time(error: Exception, mode: str) -> None:
    again = BadRequestError("still too long", "context_length_exceeded")
    engine = long_engine(mode, failures={"long_context": [error, again, again]})
    asked = await ask(engine, QUESTION, mode)
    _, *prompts = [words(call.prompt) for call in model_of(engine).calls]
    around = prompts[-1] - words(asked.sources[0])
    read = [prompt - around for prompt in prompts]
    assert read[2] <= read[1] // 2
    assert read[3] <= read[2] // 2
    assert PASSAGE in asked.sources[0]


@every_mode
async def test_what_never_fits_is_the_provider_s_error(mode: str) -> None:
    errors = [BadRequestError(f"too long, {number}", "context_length_exceeded") for number in range(99)]
    engine = long_engine(mode, failures={"long_context": errors})
    with pytest.raises(BadRequestError) as raised:
        await ask(engine, QUESTION, mode)
    assert raised.value is errors[MOST_RETRIES]
    assert model_of(engine).steps == ["rag"] + ["long_context"] * (MOST_RETRIES + 1)


@every_mode
async def test_another_error_of_the_retry_is_raised(mode: str) -> None:
    engine = long_engine(mode, failures={"long_context": [TOO_LONG["vllm"], OSError("down")]})
    with pytest.raises(OSError, match="down"):
        await ask(engine, QUESTION, mode)
    assert model_of(engine).steps == ["rag", "long_context", "long_context"]


MANY = [
    NodeWithScore(
        node=TextNode(text=f"Minute {number}: nothing of note was said.", id_=f"{number}", metadata={"page": number}),
        score=1 / (number + 1),
    )
    for number in range(100)
]


@every_mode
@pytest.mark.parametrize("error", TOO_LONG.values(), ids=TOO_LONG)
async def test_passages_that_are_too_long_are_sent_again_without_the_last(error: Exception, mode: str) -> None:
    engine = long_engine(mode, retriever=ListRetriever(MANY, k=100), failures={"rag": [error]}, draft=FINAL)
    asked = await ask(engine, QUESTION, mode)
    assert (asked.text, asked.metadata["route"], model_of(engine).steps) == (FOUND, "rag", ["rag", "rag"])
    assert asked.metadata["retrieved"] == [one.node.node_id for one in MANY]
    assert asked.source_nodes == MANY[: len(asked.source_nodes)]
    assert 20 <= len(asked.source_nodes) <= 70


@every_mode
@pytest.mark.parametrize("counter", [None, words], ids=["estimated", "counted"])
async def test_passages_beyond_the_window_are_left_out_the_nearest_kept(counter: Any, mode: str) -> None:
    engine = long_engine(
        mode, retriever=ListRetriever(MANY, k=100), draft=FINAL, context_window=500, token_counter=counter
    )
    asked = await ask(engine, QUESTION, mode)
    assert (asked.text, asked.metadata["route"]) == (FOUND, "rag")
    assert asked.metadata["retrieved"] == [one.node.node_id for one in MANY]
    assert asked.source_nodes == MANY[: len(asked.source_nodes)]
    assert 8 < len(asked.source_nodes) < 60
    prompt = model_of(engine).calls[0].prompt
    assert "page: 8" in prompt  # what a node shows beside its text counts, too
    assert (counter or count_tokens)(prompt) < 500


@every_mode
async def test_a_best_passage_beyond_the_window_is_read_as_far_as_it_fits(mode: str) -> None:
    long = NodeWithScore(node=TextNode(text="word " * 1000), score=1)
    engine = long_engine(mode, retriever=ListRetriever([long, *MANY]), draft=FINAL, context_window=500)
    asked = await ask(engine, QUESTION, mode)
    assert len(asked.sources) == 1
    assert 100 < words(asked.sources[0]) < 500
    assert label_of(asked)["trimmed"] is True
    assert long.node.metadata == {}


@every_mode
@pytest.mark.parametrize("route", ["rag", "long_context"])
async def test_the_question_takes_its_place_from_the_window(route: str, mode: str) -> None:
    engine = long_engine(
        mode,
        documents=[a_document(8000)],
        retriever=ListRetriever([*PASSAGES, *MANY * 5], k=600),
        draft=FINAL if route == "rag" else ("unanswerable",),
        context_window=3000,
    )
    asked = await ask(engine, "word " * 1200 + QUESTION, mode)
    assert asked.metadata["route"] == route
    assert all(1800 < words(call.prompt) < 2900 for call in model_of(engine).calls)


@every_stream
async def test_too_long_after_text_was_shown_is_raised(mode: str) -> None:
    final = ScriptedLLM(
        final=("Ms", " Okafor", " took", " the", " chair", ".", *(f" word{n}" for n in range(20))),
        breaks_after=15,
        breaks_with=TOO_LONG["by its code"],
    )
    with pytest.raises(BadRequestError):
        await ask(long_engine(mode, long_context_llm=final), QUESTION, mode)
    assert len(final.calls) == 1


@every_stream
async def test_too_long_while_the_reply_is_held_back_is_tried_once_more(mode: str) -> None:
    final = ScriptedLLM(final=("Un", "a"), breaks_after=1, breaks_with=TOO_LONG["by its code"], breaks_calls=1)
    asked = await ask(long_engine(mode, long_context_llm=final), QUESTION, mode)
    assert (asked.text, len(final.calls)) == ("Una", 2)


@every_mode
async def test_a_refused_prompt_with_nothing_left_to_send_is_an_error(mode: str) -> None:
    error = ValueError("prompt is too long")
    engine = long_engine(
        mode,
        documents=[Document(text=WHOLE)],
        failures={"long_context": [error]},
        token_counter=lambda text: int(len(text) > 0),
    )
    with pytest.raises(ValueError, match="too long") as raised:
        await ask(engine, QUESTION, mode)
    assert raised.value is error
    assert model_of(engine).steps.count("long_context") == 1


@every_mode
@pytest.mark.parametrize("budget", [100, 300, 599])
async def test_documents_fill_the_budget_and_no_more(budget: int, mode: str) -> None:
    engine = long_engine(mode, max_context_tokens=budget)
    asked = await ask(engine, QUESTION, mode)
    (read,) = asked.source_nodes
    assert budget * 0.8 <= words(read.node.get_content()) <= budget
    assert PASSAGE in read.node.get_content()
    assert (read.node.metadata["source"], read.node.metadata["pages"], read.node.node_id) == ("May", [1, 2], "May")
    assert label_of(asked)["trimmed"] is True
    assert model_of(engine).steps == ["rag", "long_context"]


@every_mode
async def test_documents_that_fit_are_handed_over_whole(mode: str) -> None:
    documents = [a_document(source="May"), a_document(source="June")]
    asked = await ask(long_engine(mode, documents=documents, max_context_tokens=5000), QUESTION, mode)
    assert asked.sources == [document.text for document in documents]
    assert not any(item.node.metadata.get("selfroute", {}).get("trimmed") for item in asked.source_nodes)


@every_mode
async def test_the_best_documents_come_first_and_the_last_is_trimmed(mode: str) -> None:
    documents = [a_document(400, name) for name in ("May", "June", "July")]
    before = deepcopy(documents)
    asked = await ask(long_engine(mode, documents=documents, max_context_tokens=600), QUESTION, mode)
    assert [item.node.metadata["source"] for item in asked.source_nodes] == ["May", "June"]
    assert asked.sources[0] == documents[0].text
    assert sum(map(words, asked.sources)) <= 600
    assert label_of(asked, 1)["trimmed"] is True
    assert documents == before


@every_mode
async def test_what_a_document_says_of_itself_is_kept_when_it_is_trimmed(mode: str) -> None:
    how = {"method": "offsets", "chunks": 7, "gaps": [[3, 9]], "trimmed": False}
    document = a_document()
    document.metadata["selfroute"] = how
    asked = await ask(long_engine(mode, documents=[document], max_context_tokens=100), QUESTION, mode)
    start, end = label_of(asked)["read"]
    assert label_of(asked) == {**how, "trimmed": True, "read": [start, end]}
    assert asked.sources == [document.text[start:end]]
    assert how["trimmed"] is False


@every_mode
async def test_the_label_is_kept_out_of_prompts_and_embeddings(mode: str) -> None:
    labelled = a_document()
    labelled.metadata["selfroute"] = {"method": "offsets", "chunks": 7, "gaps": [], "trimmed": False}
    for fields in ({"documents": [labelled]}, {"documents": lambda *_: [labelled]}, {"max_context_tokens": 100}):
        engine = long_engine(mode, **fields)
        asked = await ask(engine, QUESTION, mode)
        (read,) = asked.source_nodes
        assert set(label_of(asked)) - {"read"} == {"method", "chunks", "gaps", "trimmed"}
        assert "source: May" in model_of(engine).calls[-1].prompt
        for shown in (
            model_of(engine).calls[-1].prompt,
            read.node.get_content(metadata_mode=MetadataMode.LLM),
            read.node.get_content(metadata_mode=MetadataMode.EMBED),
        ):
            assert not any(word in shown for word in ("selfroute", "method", "offsets", "trimmed"))


@every_mode
async def test_a_budget_for_nothing_asks_no_model(mode: str) -> None:
    engine = long_engine(mode, max_context_tokens=1, token_counter=lambda text: 2 * bool(text), final=None)
    asked = await ask(engine, QUESTION, mode)
    assert (asked.answerable, asked.source_nodes, model_of(engine).steps) == (False, [], ["rag"])


@every_mode
@pytest.mark.parametrize("window", [3000, DEFAULT_CONTEXT_WINDOW + 1])
async def test_the_model_s_own_window_is_kept(window: int, mode: str) -> None:
    model = ScriptedLLM(final=FINAL, context_window=window)
    engine = long_engine(mode, documents=[a_document(8000)], long_context_llm=model)
    (read,) = (await ask(engine, QUESTION, mode)).sources
    assert window / 3 < words(read) < window
    assert PASSAGE in read
    assert words(model.calls[-1].prompt) < window


@pytest.mark.parametrize("window", [DEFAULT_CONTEXT_WINDOW, 0, -1])
def test_a_window_by_default_or_of_no_size_says_nothing(window: int) -> None:
    documents = [a_document(8000)]
    model = ScriptedLLM(final=FINAL, context_window=window)
    response = long_engine(documents=documents, long_context_llm=model).query(QUESTION)
    assert [item.node.get_content() for item in response.source_nodes] == [documents[0].text]


class OllamaLLM(ScriptedLLM):
    """Tells its server which window to keep, even the default one."""

    additional_kwargs: Any = Field(default_factory=dict)


OllamaLLM.__module__ = "llama_index.llms.ollama.base"  # which is how its package is known


@pytest.mark.parametrize(
    ("fields", "window"),
    [
        ({}, DEFAULT_CONTEXT_WINDOW),
        ({"context_window": 3000}, 3000),
        ({"context_window": 128_000, "additional_kwargs": {"num_ctx": 2000}}, 2000),
    ],
    ids=["default", "declared", "option"],
)
def test_the_window_that_a_server_is_told_to_keep_is_the_model_s(fields: dict[str, Any], window: int) -> None:
    engine = long_engine(documents=[a_document(8000)], long_context_llm=OllamaLLM(final=FINAL, **fields))
    (read,) = engine.query(QUESTION).source_nodes
    assert window / 3 < words(read.node.get_content()) < window


class CuttingLLM(ScriptedLLM):
    """Reads no more than so many tokens, silently, as some servers do."""

    def _raw(self, call: Any, pieces: Any) -> Raw:
        counts = Counts(
            prompt_tokens=300, completion_tokens=5, total_tokens=305, prompt_tokens_details={"cached_tokens": 0}
        )
        return Raw(model=self.label, usage=counts)


@every_mode
async def test_a_prompt_that_the_provider_has_cut_is_said_so(mode: str, caplog: pytest.LogCaptureFixture) -> None:
    documents = [a_document(4000, "May"), a_document(40, "June")]
    engine = long_engine(mode, documents=documents, long_context_llm=CuttingLLM(final=FINAL, label="small"))
    for one in (engine, engine, copy(engine), deepcopy(engine)):
        asked = await ask(one, QUESTION, mode)
    assert asked.usage["long_context"]["input_tokens"] == 300
    assert ["small" in record.getMessage() for record in caplog.records] == [True] * 2, "once by it, once by another"
    assert [label_of(asked, at)["trimmed"] for at in (0, 1)] == ["provider"] * 2
    assert asked.sources == [one.text for one in documents]


@every_mode
async def test_a_prompt_that_was_read_from_a_cache_is_not_taken_for_cut(
    mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    asked = await ask(long_engine(mode, documents=[a_document(4000)], usage=True), QUESTION, mode)
    assert asked.usage["long_context"]["cached_tokens"] > 1000
    assert (label_of(asked)["trimmed"], caplog.records) == (False, [])


@every_mode
async def test_how_the_provider_counts_is_learned_for_the_next_question(mode: str) -> None:
    """A model that has a token for each word, where one for four characters is estimated."""
    model = ScriptedLLM(final=FINAL, usage=True, context_window=5000)
    engine = long_engine(mode, documents=[a_document(8000)], long_context_llm=model, token_counter=None)
    lengths = [words((await ask(engine, QUESTION, mode)).sources[0]) for _ in range(3)]
    assert lengths[0] < lengths[1] < 5000 * 9 // 10 - 1000 == 3500
    assert 3300 < lengths[2] <= 3550


def test_a_model_that_is_told_nothing_has_the_host_s_default_window() -> None:
    assert ScriptedLLM().metadata.context_window == DEFAULT_CONTEXT_WINDOW == 3900


def test_the_window_of_the_first_model_does_not_bound_the_second() -> None:
    first = ScriptedLLM(draft=("unanswerable",), context_window=1000)
    response = long_engine(llm=first, long_context_llm=ScriptedLLM(final=FINAL)).query(QUESTION)
    assert [item.node.get_content() for item in response.source_nodes] == [a_document().text]


def test_the_budget_that_was_given_goes_before_the_model_s_own_window() -> None:
    model = ScriptedLLM(final=FINAL, context_window=128_000)
    (read,) = long_engine(long_context_llm=model, max_context_tokens=50).query(QUESTION).source_nodes
    assert words(read.node.get_content()) <= 50


def test_without_a_counter_a_token_of_prose_is_four_characters() -> None:
    (read,) = long_engine(token_counter=None, max_context_tokens=100).query(QUESTION).source_nodes
    assert 300 <= len(read.node.get_content()) <= 400


def test_the_passages_of_the_first_step_are_never_trimmed() -> None:
    engine = an_engine(("Mr Lin.",), max_context_tokens=1, documents=DOCUMENTS)
    assert engine.query(QUESTION).source_nodes == PASSAGES


@every_mode
async def test_a_key_of_somebody_elses_under_our_name_does_no_harm(mode: str) -> None:
    document = Document(text="word " * 400, metadata={"source": "minutes", "selfroute": "mine"})
    engine = an_engine(documents=[document], max_context_tokens=50, streaming=mode in STREAMS, marker="word word")
    asked = await ask(engine, QUESTION, mode)
    assert label_of(asked)["trimmed"] is True
    assert document.metadata["selfroute"] == "mine"


@every_mode
async def test_the_long_context_is_one_call_whatever_its_length(mode: str) -> None:
    document = Document(text=f"{WHOLE}. " + "word " * 60_000 + "The needle is here.")
    engine = an_engine(documents=[document], streaming=mode in STREAMS)
    await ask(engine, QUESTION, mode)
    assert model_of(engine).steps == ["rag", "long_context"]
    assert document.text in model_of(engine).calls[-1].prompt
