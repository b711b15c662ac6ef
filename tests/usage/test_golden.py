"""What a provider reports of a reply, and what a question's usage then says: tokens, estimates, cost and savings."""

from __future__ import annotations

from inspect import signature
from types import SimpleNamespace
from typing import Any

import pytest
from genai_prices import calc_price
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from llama_index.core.llms import ChatMessage, ChatResponse

import langchain_parts
import llamaindex_parts
from langchain_selfroute.models.tally import MessageTally
from scenarios import QUESTION
from selfroute.documents.cache import Size
from selfroute.usage import StepUsage, Usage
from selfroute.usage.counts import FREE
from selfroute.usage.prices import PricedModel, cost_of
from selfroute.usage.tokens import LongContextEstimate, PromptSize, with_bounds

HAIKU = "anthropic:claude-3-5-haiku-latest"  # $0.80 a million, $4 written; to a cache $1, for an hour $1.60
MILLION = 1_000_000


class Odd(langchain_parts.ScriptedModel):
    """A chat model that reports what it is told to."""

    usage_metadata: Any = None
    response_metadata: Any = None

    def _generate(self, *args: Any, **options: Any) -> ChatResult:
        whole = super()._generate(*args, **options)
        message = AIMessage(whole.generations[0].text)
        object.__setattr__(message, "usage_metadata", self.usage_metadata)
        object.__setattr__(message, "response_metadata", self.response_metadata or {})
        return ChatResult(generations=[ChatGeneration(message=message)])


def in_langchain(reported: dict[str, Any]) -> dict[str, Any]:
    about = reported.pop("about", None)
    llm = Odd(draft=("Mr Lin.",), usage_metadata=reported or None, response_metadata=about)
    result = langchain_parts.a_chain(llm=llm, priced_as=None if about else HAIKU).invoke(QUESTION)
    assert result["answer"] == "Mr Lin."
    return result["usage"]  # type: ignore[no-any-return]


def in_llamaindex(reported: dict[str, Any]) -> dict[str, Any]:
    counts = {name: reported.pop(name) for name in ("prompt_tokens", "completion_tokens") if name in reported}

    class Reports(llamaindex_parts.ScriptedLLM):
        def _reply(self, *_: Any) -> ChatResponse:
            return ChatResponse(message=ChatMessage(content="Mr Lin."), raw=reported, additional_kwargs=counts)

    response = llamaindex_parts.an_engine(llm=Reports(draft=("Mr Lin.",)), priced_as=HAIKU).query(QUESTION)
    assert str(response) == "Mr Lin."
    return response.metadata["usage"]  # type: ignore[no-any-return]


def lc(read: Any = 30, said: Any = 2, **details: Any) -> dict[str, Any]:
    return {"input_tokens": read, "output_tokens": said, "total_tokens": 32, **details}


def li(read: Any = 30, said: Any = 2, **raw: Any) -> dict[str, Any]:
    return {"prompt_tokens": read, "completion_tokens": said, **raw}


def kept(**details: int) -> dict[str, Any]:
    return lc(MILLION, 0, input_token_details=details)


HOUR = SimpleNamespace(ephemeral_5m_input_tokens=0, ephemeral_1h_input_tokens=MILLION)
OF_ANTHROPIC = {
    "input_tokens": 20,
    "output_tokens": 5,
    "cache_read_input_tokens": 1000,
    "cache_creation_input_tokens": 50,
}
# What is reported; then input, output and cached tokens, whether any is estimated, and dollars.
GOLDEN: dict[str, tuple[Any, dict[str, Any], tuple[int, int, int, bool, str | None]]] = {
    "lc: sound": (in_langchain, lc(), (30, 2, 0, False, "0.000032")),
    "lc: nothing": (in_langchain, {}, (78, 2, 0, True, "0.0000704")),
    "lc: zeros": (in_langchain, lc(0, 0), (78, 2, 0, True, "0.0000704")),
    "lc: text": (in_langchain, lc("30"), (30, 2, 0, False, "0.000032")),
    "lc: no number": (in_langchain, lc(30, "many"), (30, 0, 0, False, "0.000024")),
    "lc: a fraction": (in_langchain, lc(30.0), (30, 2, 0, False, "0.000032")),
    "lc: infinite": (in_langchain, lc(float("inf")), (78, 2, 0, True, "0.0000704")),
    "lc: cached": (in_langchain, lc(input_token_details={"cache_read": 20}), (30, 2, 20, False, "0.0000176")),
    "lc: more cached than read": (
        in_langchain,
        lc(input_token_details={"cache_read": 99}),
        (30, 2, 99, False, "0.0000104"),
    ),
    "lc: cached, in a tier": (
        in_langchain,
        lc(input_token_details={"flex_cache_read": 20, "flex": 10}),
        (30, 2, 20, False, "0.0000176"),
    ),
    "lc: thoughts in the sum alone": (in_langchain, lc() | {"total_tokens": 532}, (30, 502, 0, False, "0.002032")),
    "lc: details in a list": (in_langchain, lc(input_token_details=[1]), (30, 2, 0, False, "0.000032")),
    "lc: written": (in_langchain, kept(cache_creation=MILLION), (1_000_000, 0, 0, False, "1.00")),
    "lc: kept an hour, beside the sum": (
        in_langchain,
        kept(cache_creation=MILLION, ephemeral_1h_input_tokens=MILLION),
        (1_000_000, 0, 0, False, "1.60"),
    ),
    "lc: a name that is a number": (in_langchain, lc(about={"model_name": 5}), (30, 2, 0, False, None)),
    "li: sound": (in_llamaindex, li(), (30, 2, 0, False, "0.000032")),
    "li: nothing": (in_llamaindex, {}, (78, 2, 0, True, "0.0000704")),
    "li: OpenAI's": (
        in_llamaindex,
        li(usage={"prompt_tokens_details": {"cached_tokens": "4"}}),
        (30, 2, 4, False, "0.00002912"),
    ),
    "li: OpenAI's, written": (
        in_llamaindex,
        li(MILLION, 0, usage={"prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": MILLION}}),
        (1_000_000, 0, 0, False, "1.00"),
    ),
    "li: Anthropic's, whose cache is apart": (
        in_llamaindex,
        li(20, 5, usage=SimpleNamespace(**OF_ANTHROPIC)),
        (1_070, 5, 1_000, False, "0.000166"),
    ),
    "li: Anthropic's, kept an hour": (
        in_llamaindex,
        li(1, 0, usage=SimpleNamespace(input_tokens=0, cache_creation_input_tokens=MILLION, cache_creation=HOUR)),
        (1_000_001, 0, 0, False, "1.6000008"),
    ),
    "li: Gemini's": (
        in_llamaindex,
        li(usage_metadata={"thoughts_token_count": "2", "cached_content_token_count": None}),
        (30, 4, 0, False, "0.000040"),
    ),
}


def piece(read: int, said: int) -> dict[str, Any]:
    return lc(read, said) | {"total_tokens": read + said}


PIECES: dict[str, tuple[list[dict[str, Any]], tuple[int, int, int]]] = {  # of a stream, and what they are together
    "once": ([lc(30, 4, input_token_details={"cache_read": 20})], (30, 4, 20)),
    "so far, in each": ([piece(30, 1), piece(30, 2), lc(30, 4)], (30, 4, 0)),
    "twice": ([lc(30, 4), lc(30, 4)], (30, 4, 0)),
    "the input first": ([piece(30, 1), piece(0, 3)], (30, 4, 0)),
    "the input first, and more of it": ([piece(30, 0), piece(0, 1), piece(0, 1), piece(0, 2)], (30, 4, 0)),
}


@pytest.mark.parametrize("name", PIECES)
def test_usage_of_pieces_counts_once(name: str) -> None:
    pieces, together = PIECES[name]
    tally = MessageTally(whole=False)
    for piece in pieces:
        tally.add(AIMessageChunk("Mr Lin.", usage_metadata=piece))
    assert tally.counts is not None
    assert (tally.counts.input_tokens, tally.counts.output_tokens, tally.counts.cached_tokens) == together


@pytest.mark.skipif("price_context" not in signature(calc_price).parameters, reason="older price lists know no tiers")
def test_a_tier_has_its_own_price() -> None:
    counts, model = StepUsage(MILLION, MILLION), PricedModel("gpt-5", "openai")
    costs = {
        tier: cost_of(model.served(tier), counts).dollars for tier in (None, "default", "flex", "priority", "none")
    }
    assert costs["flex"] * 2 == costs["default"] == costs[None] == costs["none"] < costs["priority"]  # type: ignore[operator]
    about = {"model_name": "gpt-5", "model_provider": "openai", "service_tier": "flex"}
    assert in_langchain(lc(MILLION, 0) | {"about": about})["cost"] == "0.6250"


@pytest.mark.parametrize("name", GOLDEN)
def test_usage_of_what_a_provider_reports(name: str) -> None:
    ask, reported, expected = GOLDEN[name]
    usage = ask({**reported})
    step = usage["rag"]
    counts = step["input_tokens"], step["output_tokens"], step["cached_tokens"]
    assert (*counts, usage["estimated"], usage["cost"]) == expected


CACHED = {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}


@pytest.mark.parametrize(("cached", "estimated"), [({}, True), (dict.fromkeys(CACHED), True), (CACHED, False)])
@pytest.mark.parametrize("mode", llamaindex_parts.STREAMS)
async def test_usage_of_anthropics_stream_that_leaves_out_the_cache(
    cached: dict[str, Any], mode: str, *, estimated: bool
) -> None:
    class Counts(dict[str, Any]):
        model_dump = dict.copy

    class Reports(llamaindex_parts.ScriptedLLM):
        def _reply(self, call: Any, content: str | None, delta: str | None, _: Any) -> ChatResponse:
            raw = {"type": "message_delta", "usage": Counts(input_tokens=3, output_tokens=2, **cached)}
            return ChatResponse(message=ChatMessage(content=content or ""), delta=delta, raw=raw)

    engine = llamaindex_parts.an_engine(llm=Reports(draft=("Mr Lin.",)), streaming=True)
    usage = (await llamaindex_parts.ask(engine, QUESTION, mode)).usage
    assert (usage["estimated"], usage["rag"]["input_tokens"] > 3, usage["rag"]["output_tokens"]) == (
        estimated,
        estimated,
        2,
    )


@pytest.mark.parametrize("mode", langchain_parts.MODES)
async def test_usage_of_a_model_that_returns_text_is_estimated(mode: str) -> None:
    chain = langchain_parts.a_chain(llm=RunnableLambda(lambda _: "Mr Lin."))
    usage = (await langchain_parts.ask(chain, QUESTION, mode))["usage"]
    assert (usage["estimated"], usage["cost"]) == (True, None)


class Unknown(llamaindex_parts.ScriptedLLM):
    """Does not know its window, as OpenAI's model does with a name that it has not heard of."""

    @property
    def metadata(self) -> Any:
        msg = "Unknown model"
        raise ValueError(msg)


def test_usage_with_a_second_model_of_no_name() -> None:
    response = llamaindex_parts.an_engine(("Mr Lin.",), None, long_context_llm=Unknown()).query(QUESTION)
    assert (str(response), response.metadata["usage"]["long_context_only"]) == ("Mr Lin.", None)


# What always reading the documents would have taken. The latest prompt had 400 characters, 100 of them around its
# context, and took 100 tokens; without a prompt, nothing is around.

ONE, OTHER = PricedModel("one"), PricedModel("other")
PROMPT, NO_PROMPT = PromptSize(400, 300), PromptSize(0, 0)
READ = {
    "a": (20_000, 20_100, PromptSize(20_100, 20_000)),
    "b": (100, 50, PromptSize(200, 100)),
}  # length, tokens, prompt
SAVINGS: dict[str, tuple[dict[str, Any], int | None]] = {  # what is asked, and `long_context_only`
    "not read": ({"sizes": {"c": 20_000}}, 5_025),
    "not known": ({"sizes": None}, None),
    "nothing": ({"sizes": {}, "prompt": NO_PROMPT}, 0),
    "without a draft": ({"sizes": {"c": 400}, "prompt": NO_PROMPT}, 100),
    "more than fits": ({"sizes": {"c": 20_000}, "room": 1_000}, 1_025),
    "read": ({"sizes": {"a": 20_000}}, 20_100),
    "read by another model": ({"sizes": {"a": 20_000}, "model": OTHER}, 5_025),
    "read, with what stood around it": ({"sizes": {"b": 100}}, 50),
    "read, and it has grown": ({"sizes": {"b": 100_000}}, 25_025),
}


@pytest.mark.parametrize("name", SAVINGS)
def test_savings_of_a_question_that_read_no_documents(name: str) -> None:
    fields, only = SAVINGS[name]
    asked = {"prompt": PROMPT, "room": None, "model": ONE, **fields}
    sizes = asked.pop("sizes")
    estimate, used = LongContextEstimate(), Usage(rag=StepUsage(100, 5))
    for key, (length, tokens, prompt) in READ.items():
        read = estimate.read(Usage(long_context=StepUsage(tokens, 9)), [Size(key, length)], prompt=prompt, model=ONE)
        assert read.long_context_only == tokens
    known = None if sizes is None else [Size(key, length) for key, length in sizes.items()]
    usage = estimate.answered(used, known, latest=used.rag, priced=ONE, **asked)
    assert (usage.long_context_only, usage.rag) == (only, used.rag)
    assert usage.token_ratio == (100 / only if only else None)
    assert (usage.cost_long_context_only == FREE) is (only == 0)
    assert usage.as_dict()["cost_unknown"] is not None


@pytest.mark.parametrize(
    ("counts", "sizes"),
    [(StepUsage(5_000, 9, estimated=True), [Size("a", 20_000)]), (StepUsage(9_000, 9), None)],
    ids=["estimated", "trimmed"],
)
def test_savings_learn_nothing_from_estimates(counts: StepUsage, sizes: Any) -> None:
    estimate, used = LongContextEstimate(), Usage(rag=StepUsage(100, 5))
    prompt = PromptSize(20_100, 20_000)
    read = estimate.read(Usage(long_context=counts), sizes, prompt=prompt, model=ONE)
    assert read.long_context_only == counts.input_tokens
    about: Any = {"latest": used.rag, "prompt": PROMPT, "room": None, "model": ONE, "priced": ONE}
    assert estimate.answered(used, [Size("a", 20_000)], **about).long_context_only == 5_025


def test_savings_lie_between_a_cold_and_a_warm_cache() -> None:
    model = PricedModel("claude-3-5-haiku-latest", "anthropic")
    for counts in (StepUsage(10_000, 100), StepUsage(10_000, 100, 4_000)):
        usage = with_bounds(Usage(), counts, model=model)
        assert usage.cost_warm.dollars < cost_of(model, counts).dollars <= usage.cost_cold.dollars
    assert usage.cost_cold == cost_of(model, StepUsage(10_000, 100))
    assert usage.cost_warm == cost_of(model, StepUsage(10_000, 100, 10_000))
    assert with_bounds(Usage(), counts, model=PricedModel("?", "?")).cost_cold.dollars is None
