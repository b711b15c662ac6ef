"""Models report all kinds of things: none of it costs an answer, and what makes no sense is not counted."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from llama_index.core.llms import ChatMessage, ChatResponse

import llamaindex_parts
from langchain_parts import MODES, QUESTION, STREAMS, ScriptedModel, a_chain, ask
from langchain_selfroute import StoredDocuments
from langchain_stores import Shelf, a_model, chunks_of, text_of
from llamaindex_selfroute import models as llamaindex_models

every_mode = pytest.mark.parametrize("mode", MODES)


class Odd(ScriptedModel):
    """Reports what it is told to."""

    usage_metadata: Any = None
    response_metadata: Any = None

    def _generate(self, *args: Any, **options: Any) -> ChatResult:
        whole = super()._generate(*args, **options)
        message = AIMessage(whole.generations[0].text)
        object.__setattr__(message, "usage_metadata", self.usage_metadata)
        object.__setattr__(message, "response_metadata", self.response_metadata or {})
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(self, *args: Any, **options: Any) -> ChatResult:
        return self._generate(*args)


SOUND = {"input_tokens": 30, "output_tokens": 2, "total_tokens": 32}
USAGES = {
    "negative": {**SOUND, "input_tokens": -5},
    "text": {**SOUND, "input_tokens": "30"},
    "no number": {**SOUND, "output_tokens": "many"},
    "nothing": {"input_tokens": None, "output_tokens": None, "total_tokens": None},
    "zeros": {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0},
    "a fraction": {**SOUND, "input_tokens": 30.0},
    "infinite": {**SOUND, "input_tokens": float("inf")},
    "details in a list": {**SOUND, "input_token_details": [1]},
    "more cached than read": {**SOUND, "input_token_details": {"cache_read": 99}},
    "details as text": {**SOUND, "input_token_details": {"cache_read": "4"}},
}


@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
@pytest.mark.parametrize("usage", USAGES.values(), ids=USAGES)
async def test_odd_usage_costs_no_answer_and_is_never_negative(usage: Any, mode: str) -> None:
    chain = a_chain(llm=Odd(draft=("Mr Lin.",), usage_metadata=usage), priced_as="openai:gpt-4o-mini")
    result = await ask(chain, QUESTION, mode)
    step = result["usage"]["rag"]
    assert result["answer"] == "Mr Lin."
    assert step["input_tokens"] > 0
    assert min(*step.values(), result["usage"]["long_context_only"]) >= 0
    counted = usage["input_tokens"] in {30, "30"}
    assert (step["input_tokens"] == 30, result["usage"]["estimated"]) == (counted, not counted)
    assert result["usage"]["cost"] is not None


@pytest.mark.parametrize(
    "about", [{"model_name": 5}, {"model_name": ["a"], "model_provider": {"b": 1}}, {"model_provider": 0.5}]
)
def test_odd_names_cost_no_answer(about: Any) -> None:
    chain = a_chain(llm=Odd(draft=("Mr Lin.",), usage_metadata=SOUND, response_metadata=about))
    result = chain.invoke(QUESTION)
    assert (result["answer"], result["usage"]["cost"]) == ("Mr Lin.", None)


def fails(*_: Any) -> int:
    raise ValueError


@every_mode
async def test_a_counter_that_fails_costs_no_answer_that_needs_none(mode: str) -> None:
    chain = a_chain(("Mr Lin.",), None, usage=True, token_counter=fails, max_context_tokens=5)
    assert (await ask(chain, QUESTION, mode))["answer"] == "Mr Lin."


@every_mode
async def test_documents_that_can_not_be_looked_at_cost_no_answer_that_needs_none(mode: str) -> None:
    shelf = Shelf(chunks_of(text_of("North"), source="north"))
    chain = a_chain(
        llm=a_model(draft=("It lifts 4.",), usage=True),
        retriever=shelf.as_retriever(search_kwargs={"k": 2}),
        documents=StoredDocuments(shelf, fetch=fails),
    )
    usage = (await ask(chain, QUESTION, mode))["usage"]
    assert usage["long_context_only"] is None


class Unknown(llamaindex_parts.ScriptedLLM):
    """Does not know its window, as OpenAI's model does with a name that it has not heard of."""

    @property
    def metadata(self) -> Any:
        msg = "Unknown model"
        raise ValueError(msg)


@pytest.mark.parametrize("mode", llamaindex_parts.MODES)
async def test_an_engine_whose_second_model_does_not_know_itself_answers_from_passages(mode: str) -> None:
    engine = llamaindex_parts.an_engine(
        ("Mr Lin.",), None, long_context_llm=Unknown(), streaming=mode in llamaindex_parts.STREAMS
    )
    asked = await llamaindex_parts.ask(engine, QUESTION, mode)
    assert (asked.text, asked.usage["long_context_only"]) == ("Mr Lin.", None)
    assert llamaindex_models.name_of(Unknown()).name is None


RAWS: dict[str, tuple[Any, dict[str, Any], tuple[int, int, int] | None]] = {
    "text": ({}, {"prompt_tokens": "30", "completion_tokens": "2"}, (30, 2, 0)),
    "negative": ({}, {"prompt_tokens": -5, "completion_tokens": 2}, None),
    "Anthropic's, whose cache is apart": (
        {
            "usage": SimpleNamespace(
                input_tokens=20, output_tokens=5, cache_read_input_tokens=1000, cache_creation_input_tokens=50
            )
        },
        {"prompt_tokens": 20, "completion_tokens": 5},
        (1070, 5, 1000),
    ),
    "OpenAI's": (
        {"usage": {"prompt_tokens_details": {"cached_tokens": "4"}}},
        {"prompt_tokens": 30, "completion_tokens": 2},
        (30, 2, 4),
    ),
    "Gemini's": (
        {"usage_metadata": {"thoughts_token_count": "2", "cached_content_token_count": None}},
        {"prompt_tokens": 30, "completion_tokens": 2},
        (30, 4, 0),
    ),
}


@pytest.mark.parametrize(("raw", "counts", "expected"), RAWS.values(), ids=RAWS)
def test_what_llama_index_passes_on_is_read_as_it_is_meant(raw: Any, counts: Any, expected: Any) -> None:
    class Reports(llamaindex_parts.ScriptedLLM):
        def _reply(self, *args: Any) -> ChatResponse:
            return ChatResponse(message=ChatMessage(content="Mr Lin."), raw=raw, additional_kwargs=counts)

    usage = llamaindex_parts.an_engine(llm=Reports(draft=("Mr Lin.",))).query(QUESTION).metadata["usage"]
    assert usage["estimated"] is (expected is None)
    if expected:
        assert tuple(usage["rag"][name] for name in ("input_tokens", "output_tokens", "cached_tokens")) == expected


HAIKU = "anthropic:claude-3-5-haiku-latest"  # $0.80 a million, $1.60 if it is kept for an hour
READ = 1_000_000
FOR_AN_HOUR = {
    "instead of the sum": {"cache_creation": 0, "ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": READ},
    "beside the sum": {"cache_creation": READ, "ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": READ},
    "alone": {"ephemeral_1h_input_tokens": READ},
}


@pytest.mark.parametrize("details", FOR_AN_HOUR.values(), ids=FOR_AN_HOUR)
def test_what_a_chain_has_kept_for_an_hour_costs_twice_as_much(details: dict[str, int]) -> None:
    usage = {"input_tokens": READ, "output_tokens": 0, "total_tokens": READ, "input_token_details": details}
    chain = a_chain(llm=Odd(draft=("Mr Lin.",), usage_metadata=usage), priced_as=HAIKU)
    assert Decimal(chain.invoke(QUESTION)["usage"]["cost"]) == Decimal("1.6")


def reporting(raw: Any, **counts: int) -> Any:
    """An engine whose model reports this in every piece."""

    class Reports(llamaindex_parts.ScriptedLLM):
        def _reply(self, call: Any, content: str | None, delta: str | None, _: Any) -> ChatResponse:
            message = ChatMessage(content=content or "")
            return ChatResponse(message=message, delta=delta, raw=raw, additional_kwargs=counts)

    return partial(llamaindex_parts.an_engine, llm=Reports(draft=("Mr Lin.",)), priced_as=HAIKU)


def test_what_an_engine_has_kept_for_an_hour_costs_twice_as_much() -> None:
    kept = {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": READ}
    usage = SimpleNamespace(input_tokens=0, cache_creation_input_tokens=READ, cache_creation=SimpleNamespace(**kept))
    usage = reporting({"usage": usage}, prompt_tokens=1)().query(QUESTION).metadata["usage"]
    assert Decimal(usage["cost"]) == Decimal("1.6") + Decimal("0.0000008")


def test_what_an_engine_writes_to_openais_cache_costs_a_quarter_more() -> None:
    details = {"prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": READ}}
    usage = reporting({"usage": details}, prompt_tokens=READ, completion_tokens=0)().query(QUESTION).metadata["usage"]
    assert Decimal(usage["cost"]) == Decimal("1.0")


CACHED = {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}


@pytest.mark.parametrize(("cached", "estimated"), [({}, True), (dict.fromkeys(CACHED), True), (CACHED, False)])
@pytest.mark.parametrize("mode", llamaindex_parts.STREAMS)
async def test_counts_without_those_of_the_cache_at_the_end_of_anthropics_stream_are_no_exact_ones(
    cached: dict[str, Any], mode: str, *, estimated: bool
) -> None:
    class Usage(dict[str, Any]):
        model_dump = dict.copy

    raw = {"type": "message_delta", "usage": Usage(input_tokens=3, output_tokens=2, **cached)}
    asked = await llamaindex_parts.ask(reporting(raw)(streaming=True), QUESTION, mode)
    step = asked.usage["rag"]
    assert (asked.usage["estimated"], step["input_tokens"] > 3, step["output_tokens"]) == (estimated, estimated, 2)


@pytest.mark.parametrize("mode", STREAMS)
async def test_a_model_that_returns_text_has_no_name_and_answers(mode: str) -> None:
    chain = a_chain(llm=RunnableLambda(lambda _: "Mr Lin."))
    usage = (await ask(chain, QUESTION, mode))["usage"]
    assert (usage["estimated"], usage["cost"]) == (True, None)
