"""Money: by whose price list, at which rate, and why not."""

from __future__ import annotations

import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from textwrap import dedent
from typing import Any

import genai_prices
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI
from llama_index.llms.google_genai import GoogleGenAI
from llama_index.llms.openai import OpenAI
from llama_index.llms.openai_like import OpenAILike

import llamaindex_parts
from langchain_parts import MODES, QUESTION, ScriptedModel, a_chain, ask
from langchain_selfroute import models as langchain_models
from llamaindex_selfroute import models as llamaindex_models
from loopback import LoopbackServer
from selfroute.errors import ConfigurationError
from selfroute.usage import Cost, StepUsage, Usage
from selfroute.usage.prices import PricedModel, cost_of

pytestmark = pytest.mark.usefixtures("frozen", "one_certificate")
every_mode = pytest.mark.parametrize("mode", MODES)
MINI = "openai:gpt-4o-mini"
ROOT = Path(__file__).parents[2]
KNOWN = [
    PricedModel("gpt-4o-mini", "openai"),
    PricedModel("gpt-4o-mini-2024-07-18", "openai"),
    PricedModel("models/gemini-2.5-flash", "google_genai"),
    PricedModel("gemini-2.5-flash", "google_genai"),
    PricedModel("claude-3-5-haiku-latest", "anthropic"),
    PricedModel("gpt-4o-mini", "openai", "http://127.0.0.1:8000/v1"),  # a gateway: it is taken at its word
]
COUNTS = st.integers(0, 2_000_000)


def listed(name: str, provider: str, **counts: int) -> Decimal:
    """What the price list itself says."""
    return genai_prices.calc_price(genai_prices.Usage(**counts), name, provider_id=provider).total_price


@given(st.sampled_from(KNOWN), COUNTS, COUNTS, COUNTS, COUNTS)
def test_any_counts_of_a_known_model_have_a_price(
    model: PricedModel, read: int, written: int, cached: int, kept: int
) -> None:
    cost = cost_of(model, StepUsage(read, written, cached, cache_write_tokens=kept))
    assert cost.unknown is None
    assert isinstance(cost.dollars, Decimal)
    assert cost.dollars >= 0
    assert re.fullmatch(r"\d+(\.\d+)?", str(cost.as_text()))
    assert Decimal(str(cost.as_text())) == cost.dollars


def test_the_price_is_the_lists() -> None:
    counts = StepUsage(1_000_000, 200_000, 400_000)
    expected = listed("gpt-4o-mini", "openai", input_tokens=1_000_000, output_tokens=200_000, cache_read_tokens=400_000)
    assert cost_of(KNOWN[0], counts) == Cost(expected)
    assert expected < listed("gpt-4o-mini", "openai", input_tokens=1_000_000, output_tokens=200_000)


def test_what_is_written_to_a_cache_has_a_rate_of_its_own() -> None:
    haiku = KNOWN[4]
    plain, kept = (cost_of(haiku, StepUsage(1_000_000, 0, cache_write_tokens=count)) for count in (0, 1_000_000))
    assert kept.dollars > plain.dollars


def test_each_call_is_priced_by_itself_as_long_prompts_cost_more() -> None:
    pro = PricedModel("gemini-2.5-pro", "google_genai")
    long, short = (cost_of(pro, StepUsage(tokens, 0)).dollars for tokens in (300_000, 30_000))
    assert long > 10 * short


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (PricedModel("my-own-model", "openai"), "knows no price of 'my-own-model'"),
        (PricedModel("gpt-4o-mini", "nobody"), "knows no price of 'gpt-4o-mini'"),
        (PricedModel("gpt-4o-mini"), "knows no price of 'gpt-4o-mini'"),
        (PricedModel(), "does not say what it is"),
    ],
)
def test_an_unknown_model_has_no_price_and_a_reason(model: PricedModel, reason: str) -> None:
    cost = cost_of(model, StepUsage(10, 10))
    assert cost.dollars is None
    assert reason in str(cost.unknown)
    assert "priced_as='provider:name'" in str(cost.unknown)
    assert cost_of(model, StepUsage(10, 10)) == cost


def test_where_another_provider_serves_the_model_its_price_counts() -> None:
    router = PricedModel("deepseek-chat", "openai", "https://api.deepseek.com/v1")
    expected = listed("deepseek-chat", "deepseek", input_tokens=1000, output_tokens=1000)
    assert cost_of(router, StepUsage(1000, 1000)).dollars == expected


def test_without_the_package_there_is_no_price_and_a_reason() -> None:
    program = dedent("""
        import sys
        sys.modules["genai_prices"] = None
        from selfroute.usage.prices import PricedModel, cost_of
        from selfroute.usage import StepUsage
        cost = cost_of(PricedModel("gpt-4o-mini", "openai"), StepUsage(1, 1))
        assert cost.dollars is None and 'pip install "selfroute[prices]"' in cost.unknown
    """)
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)  # noqa: S603


# What models are called.

SCRIPTED = PricedModel("scripted", "scriptedmodel")
OTHER = ScriptedModel(label="other")


def configurable() -> Any:
    return ScriptedModel().configurable_alternatives(ConfigurableField(id="llm"), other=OTHER)


@pytest.mark.parametrize(
    ("model", "config", "expected"),
    [
        (ScriptedModel(), {}, SCRIPTED),
        (ScriptedModel().with_retry(), {}, SCRIPTED),
        (ScriptedModel().with_config(tags=["t"]).bind(stop=["x"]), {}, SCRIPTED),
        (ScriptedModel().with_fallbacks([OTHER]), {}, SCRIPTED),
        (RunnableLambda(lambda prompt: prompt) | ScriptedModel() | (lambda message: message.text), {}, SCRIPTED),
        (configurable(), {}, SCRIPTED),
        (configurable(), {"configurable": {"llm": "other"}}, PricedModel("other", "scriptedmodel")),
        (RunnableLambda(lambda _: "Mr Lin."), {}, PricedModel()),
        (ChatOpenAI(model="gpt-4o-mini", api_key="k"), {}, PricedModel("gpt-4o-mini", "openai")),
        (ChatOpenAI(model="gpt-4o-mini", api_key="k").bind(model="gpt-4o"), {}, PricedModel("gpt-4o", "openai")),
        (
            ChatOpenAI(model="m", api_key="k", base_url="http://127.0.0.1:1/v1"),
            {},
            PricedModel("m", "openai", "http://127.0.0.1:1/v1"),
        ),
        (
            ChatGoogleGenerativeAI(model="gemini-2.5-flash", google_api_key="k"),
            {},
            PricedModel("gemini-2.5-flash", "google_genai"),
        ),
    ],
)
def test_a_chat_model_tells_what_it_is(model: Any, config: Any, expected: PricedModel) -> None:
    assert langchain_models.name_of(model, config) == expected


def test_an_llm_tells_what_it_is() -> None:
    with LoopbackServer(lambda _: "") as server:  # google's client looks its model up
        found = llamaindex_models.name_of(
            GoogleGenAI(model="gemini-2.5-flash", api_key="k", http_options={"base_url": server.gemini_url})
        )
    assert (found.name, found.provider) == ("gemini-2.5-flash", "google_genai")
    assert cost_of(llamaindex_models.name_of(OpenAI(model="gpt-4o-mini", api_key="k")), StepUsage(1, 1)).dollars
    like = OpenAILike(model="gpt-4o-mini", api_key="k", api_base="http://127.0.0.1:1/v1")
    assert llamaindex_models.name_of(like) == PricedModel("gpt-4o-mini", "openai", "http://127.0.0.1:1/v1")
    assert llamaindex_models.name_of(llamaindex_parts.ScriptedLLM()) == PricedModel("scripted")


# What results say.


@every_mode
async def test_a_result_tells_what_both_steps_cost(mode: str) -> None:
    chain = a_chain(usage=True, priced_as=MINI)
    usage = (await ask(chain, QUESTION, mode))["usage"]
    first, second = (
        listed(
            "gpt-4o-mini",
            "openai",
            input_tokens=usage[step]["input_tokens"],
            output_tokens=usage[step]["output_tokens"],
            cache_read_tokens=usage[step]["cached_tokens"],
        )
        for step in ("rag", "long_context")
    )
    assert Decimal(usage["cost"]) == first + second
    assert Decimal(usage["cost_long_context_only"]) == second
    assert usage["cost_unknown"] is None


@every_mode
async def test_an_answer_from_passages_tells_what_the_long_context_would_have_cost(mode: str) -> None:
    chain = a_chain(
        ("Mr Lin.",),
        None,
        usage=True,
        priced_as=MINI,
        long_context_llm=ScriptedModel(),
        long_context_priced_as="openai:gpt-4o",
    )
    usage = (await ask(chain, QUESTION, mode))["usage"]
    only, written = usage["long_context_only"], usage["rag"]["output_tokens"]
    assert Decimal(usage["cost_long_context_only"]) == listed(
        "gpt-4o", "openai", input_tokens=only, output_tokens=written
    )


def test_what_is_known_of_one_model_only_is_no_sum() -> None:
    usage = a_chain(usage=True, priced_as=MINI, long_context_llm=ScriptedModel(final=("Ms O.",))).invoke(QUESTION)[
        "usage"
    ]
    assert (usage["cost"], usage["cost_long_context_only"]) == (None, None)
    assert "'scripted'" in usage["cost_unknown"]


def test_a_fallback_is_priced_as_what_it_is() -> None:
    failing = ScriptedModel(failures={"rag": [ConnectionError()] * 9})
    other = ScriptedModel(label="gpt-4o-mini", draft=("Mr Lin.",), usage=True)
    chain = a_chain(llm=failing.with_fallbacks([other]))
    usage = chain.invoke(QUESTION)["usage"]
    assert "'gpt-4o-mini'" in usage["cost_unknown"]


class Together(ScriptedModel):
    """As clients are that build on OpenAI's: the replies say that they are OpenAI's."""

    def _get_ls_params(self, stop: Any = None, **_: Any) -> Any:
        return {"ls_provider": "together", "ls_model_name": "Gryphe/MythoMax-L2-13b"}

    def _whole(self, call: Any, pieces: Any) -> Any:
        whole = super()._whole(call, pieces)
        whole.generations[0].message.response_metadata = {
            "model_name": "Gryphe/MythoMax-L2-13b",
            "model_provider": "openai",
        }
        return whole


def test_whose_the_model_is_its_client_knows_better_than_its_replies() -> None:
    usage = a_chain(llm=Together(draft=("Mr Lin.",), usage=True)).invoke(QUESTION)["usage"]
    step = usage["rag"]
    expected = listed(
        "Gryphe/MythoMax-L2-13b", "together", input_tokens=step["input_tokens"], output_tokens=step["output_tokens"]
    )
    assert Decimal(usage["cost"]) == expected
    assert usage["cost_long_context_only"] is not None


def test_a_model_that_is_chosen_with_the_call_is_what_both_are_priced_as() -> None:
    with LoopbackServer(lambda _: "Mr Lin.") as server:
        llm = ChatOpenAI(model="gpt-4o-mini", api_key="k", base_url=server.openai_url)
        chain = a_chain(llm=llm)
        for result in (chain.bind(model="gpt-4o").invoke(QUESTION), chain.invoke(QUESTION, model="gpt-4o")):
            usage = result["usage"]
            only, written = usage["long_context_only"], usage["rag"]["output_tokens"]
            assert Decimal(usage["cost"]) == listed(
                "gpt-4o", "openai", input_tokens=usage["rag"]["input_tokens"], output_tokens=written
            )
            assert Decimal(usage["cost_long_context_only"]) == listed(
                "gpt-4o", "openai", input_tokens=only, output_tokens=written
            )


@pytest.mark.parametrize("field", ["priced_as", "long_context_priced_as"])
@pytest.mark.parametrize("wrong", ["gpt-4o-mini", "openai:", ":gpt-4o-mini"])
def test_what_a_model_is_priced_as_is_checked_at_once(field: str, wrong: str) -> None:
    for make in (a_chain, llamaindex_parts.an_engine):
        with pytest.raises(ConfigurationError, match=f"{field} must be 'provider:name'"):
            make(**{field: wrong})


def test_costs_add_up_as_decimals() -> None:
    tenth = Usage(rag=StepUsage(1, 1, cost=Cost(Decimal("0.1"))))
    assert (tenth + tenth + tenth).cost.dollars == Decimal("0.3")
    unknown = Usage(rag=StepUsage(1, 1, cost=Cost(None, "no price")))
    assert (tenth + unknown).cost == Cost(None, "no price")


@pytest.mark.matrix
@pytest.mark.parametrize("package", ["langchain_selfroute", "llamaindex_selfroute"])
def test_the_price_lists_are_loaded_with_the_first_chain_and_not_by_the_import_or_the_first_question(
    package: str,
) -> None:
    host, make = (
        package.removesuffix("_selfroute"),
        {"langchain_selfroute": "a_chain", "llamaindex_selfroute": "an_engine"},
    )
    program = dedent(f"""
        import sys
        sys.path.insert(0, "tests/support")
        import {package}
        assert "genai_prices" not in sys.modules
        import {host}_parts
        assert "genai_prices" not in sys.modules
        {host}_parts.{make[package]}()
        assert "genai_prices" in sys.modules
    """)
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60, cwd=ROOT)  # noqa: S603
