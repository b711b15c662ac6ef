"""Money: by whose price list, at which rate, and why not."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from textwrap import dedent
from typing import Any
from urllib.parse import urlsplit

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
from selfroute.usage import FREE, Cost, StepUsage, Usage, prices
from selfroute.usage.addresses import account_of, address_of
from selfroute.usage.prices import PricedModel, cost_of

pytestmark = pytest.mark.usefixtures("frozen")
every_mode = pytest.mark.parametrize("mode", MODES)
MINI = "openai:gpt-4o-mini"
OPENAI = "https://api.openai.com/v1"
ROOT = Path(__file__).parents[2]
KNOWN = [
    PricedModel("gpt-4o-mini", "openai"),
    PricedModel("gpt-4o-mini-2024-07-18", "openai"),
    PricedModel("models/gemini-2.5-flash", "google_genai"),
    PricedModel("gemini-2.5-flash", "google_genai"),
    PricedModel("claude-3-5-haiku-latest", "anthropic"),
    PricedModel("gpt-4o-mini", "openai", "https://api.openai.com/v1"),
    PricedModel("gpt-4o-mini", "azure", "https://ours.openai.azure.com/openai/deployments/mini"),
]
COUNTS = st.integers(0, 2_000_000)
PRICE = """
from decimal import Decimal
from types import SimpleNamespace
def Usage(**_): ...
def calc_price(*_, **__): return SimpleNamespace(total_price={})
"""


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


@pytest.mark.parametrize(
    "model",
    [
        PricedModel("claude-3-5-haiku-latest", "anthropic"),  # the list has a rate for an hour
        PricedModel("regional.anthropic.claude-3-5-haiku-20241022-v1:0", "aws"),  # it has none
    ],
    ids=["listed", "not listed"],
)
def test_what_is_written_to_a_cache_costs_more_the_longer_it_is_kept(model: PricedModel) -> None:
    def cost(minutes: int = 0, hour: int = 0, cached: int = 0, written: int = 0) -> Any:
        kept = {"cache_write_tokens": minutes + hour, "cache_write_1h_tokens": hour}
        return cost_of(model, StepUsage(1_000_000, written, cached, **kept)).dollars

    plain = cost()
    assert cost(minutes=1_000_000) == plain * Decimal("1.25")
    assert cost(hour=1_000_000) == plain * 2
    parts = (600_000 * 2 + 100_000 * Decimal("1.25") + 200_000 * Decimal("0.1") + 100_000) / 1_000_000
    assert cost(minutes=100_000, hour=600_000, cached=200_000) == plain * parts
    assert cost(hour=1_000_000, written=1000) - plain * 2 == cost(written=1000) - plain


def test_a_reply_that_was_kept_by_the_framework_is_free_whatever_the_model() -> None:
    for model in (*KNOWN, PricedModel()):
        assert cost_of(model, StepUsage(1000, 10, repeated=True)) == FREE


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
        (PricedModel(), "does not report its name"),
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


LOCAL = [
    *("http://localhost:11434", "http://127.0.0.1:8000/v1", "http://127.9.8.7/v1", "http://[::1]:8000/v1"),
    *("http://10.1.2.3:8000/v1", "http://172.17.0.1/v1", "http://192.168.0.20:1234/v1", "http://169.254.1.1/v1"),
    *("http://100.64.0.9/v1", "http://[fd00::1]/v1", "http://host.docker.internal:4000/v1"),
    *("http://litellm:4000", "http://gpu-box.local/v1", "http://vllm.models.svc.cluster.local:8000/v1"),
    "http://localhost/x.openai.azure.com",
]
OTHERS = ["https://llm.our-company.com/v1", "http://8.8.8.8/v1"]


@pytest.mark.parametrize("address", [*LOCAL, *OTHERS])
def test_a_model_at_an_address_that_is_no_providers_has_no_providers_price(address: str) -> None:
    for name, provider in (("gpt-4o-mini", "openai"), ("gemini-2.5-flash", "google_genai")):
        unknown = str(cost_of(PricedModel(name, provider, address), StepUsage(10, 10)).unknown)
        assert repr(name) in unknown
        assert urlsplit(address).netloc in unknown
        assert ("a local address" in unknown) == (address in LOCAL)
        assert "priced_as='provider:name'" in unknown


class Client:
    """As an integration's model, which has its address in a field of some name."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"openai_api_base": None, "base_url": "http://127.0.0.1:1/v1/"}, "http://127.0.0.1:1/v1"),
        ({"xai_api_base": "https://api.x.ai/v1"}, "https://api.x.ai/v1"),
        ({"base_url": "localhost:11434"}, "http://localhost:11434"),
        ({"endpoint_url": "https://me:secret@Gateway.example/v1?key=secret#x"}, "https://gateway.example/v1"),
        ({"root_client": Client(base_url="http://127.0.0.1:9"), "openai_api_base": None}, "http://127.0.0.1:9"),
        ({"endpoint": "databricks-llama", "base_url": 5}, None),
        ({"database_url": "http://store"}, None),
        ({"base_url": "http://[broken"}, None),
        ({}, None),
    ],
)
def test_a_model_says_where_it_is_called_without_secrets(fields: dict[str, Any], expected: str | None) -> None:
    assert address_of(Client(**fields)) == expected


def test_the_environment_may_say_where_it_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:7/v1")
    assert address_of(ChatOpenAI(model="gpt-4o-mini", api_key="k")) == "http://127.0.0.1:7/v1"


AT_HOME = PricedModel("gpt-oss", "openai", "http://localhost:8000/v1")
HOSTED = PricedModel("gpt-4o", "openai", OPENAI)
MINI_HOSTED = PricedModel("gpt-4o-mini", "openai", OPENAI)
CLAUDE = PricedModel("claude-3-5-haiku-latest", "anthropic", "https://api.anthropic.com")


@pytest.mark.parametrize(
    ("models", "answered", "expected"),
    [
        ([AT_HOME], PricedModel(), AT_HOME),
        ([AT_HOME], PricedModel("gpt-4o-mini", "anthropic"), PricedModel("gpt-4o-mini", "anthropic", AT_HOME.url)),
        ([AT_HOME, HOSTED], PricedModel("gpt-4o-2024-08-06", "openai"), replace(HOSTED, name="gpt-4o-2024-08-06")),
        ([HOSTED, AT_HOME], PricedModel("gpt-oss", "openai"), AT_HOME),
        ([HOSTED, MINI_HOSTED], PricedModel("gpt-4o-mini", "openai"), MINI_HOSTED),
        ([CLAUDE, AT_HOME], PricedModel("llama", "openai"), replace(AT_HOME, name="llama")),
        ([PricedModel()], PricedModel("gpt-4o", "openai"), PricedModel("gpt-4o", "openai")),
        ([PricedModel("gpt-4o")], PricedModel(None, "openai"), PricedModel("gpt-4o", "openai")),
    ],
)
def test_a_reply_is_priced_where_the_model_that_gave_it_is_called(
    models: list[PricedModel], answered: PricedModel, expected: PricedModel
) -> None:
    first, *others = models
    assert replace(first, fallbacks=tuple(others)).replied(answered) == expected


def test_fallbacks_are_known_by_their_addresses() -> None:
    at_home = ChatOpenAI(model="gpt-4o-mini", api_key="k", base_url="http://127.0.0.1:1/v1").with_retry()
    name = langchain_models.name_of(ChatOpenAI(model="gpt-4o", api_key="k").with_fallbacks([at_home]).bind(stop=["x"]))
    assert [model.url for model in (name, *name.fallbacks)] == [OPENAI, "http://127.0.0.1:1/v1"]


# The price lists are optional: whatever is installed under their name, answers are given.

BROKEN = {
    "none": None,
    "an import that fails": "import nothing_like_this",
    "an import that raises": "raise RuntimeError('broken')",
    "half an installation": "",
    "names changed": "class Use: ...\ndef price(*_): ...",
    "arguments changed": "def Usage(reading): ...\ndef calc_price(use): ...",
    "a price that raises": "class Usage:\n def __init__(self, **_): ...\ndef calc_price(*_, **__): raise ValueError",
    "a price of None": "def Usage(**_): ...\ndef calc_price(*_, **__): return None",
    "a price that is text": PRICE.format("'a lot'"),
    "a price that is no number": PRICE.format("float('nan')"),
    "a price below zero": PRICE.format("-1"),
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_whatever_the_price_lists_do_chains_and_engines_answer_and_say_why_there_is_no_price(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "genai_prices"]:
        monkeypatch.delitem(sys.modules, name)
    if content is None:
        monkeypatch.setitem(sys.modules, "genai_prices", None)
    else:
        (tmp_path / "genai_prices.py").write_text(content)
        monkeypatch.syspath_prepend(tmp_path)
    with loaded_anew():
        chain = a_chain(usage=True, priced_as=MINI)
        engine = llamaindex_parts.an_engine(priced_as=MINI)
        for usage in (chain.invoke(QUESTION)["usage"], engine.query(QUESTION).metadata["usage"]):
            assert (usage["cost"], usage["cost_long_context_only"]) == (None, None)
            expected = 'pip install "selfroute[prices]"' if content is None else "the installed genai-prices fails ("
            assert expected in usage["cost_unknown"]


@pytest.mark.parametrize("price", ["0.5", "'0.5'", "1", "Decimal('0.5')"])
def test_a_price_is_a_decimal_whatever_number_the_lists_give(
    price: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "genai_prices", raising=False)
    (tmp_path / "genai_prices.py").write_text(PRICE.format(price))
    monkeypatch.syspath_prepend(tmp_path)
    with loaded_anew():
        total = cost_of(KNOWN[0], StepUsage(1, 1)) + cost_of(KNOWN[0], StepUsage(1, 1))
    assert total.dollars in {Decimal(1), Decimal(2)}
    assert isinstance(total.dollars, Decimal)


@contextmanager
def loaded_anew() -> Iterator[None]:
    caches = (prices.load_price_lists, prices._provider_of)
    for one in caches:
        one.cache_clear()
    yield
    for one in caches:
        one.cache_clear()


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
        (ChatOpenAI(model="gpt-4o-mini", api_key="k"), {}, PricedModel("gpt-4o-mini", "openai", OPENAI)),
        (
            ChatOpenAI(model="gpt-4o-mini", api_key="k").bind(model="gpt-4o"),
            {},
            PricedModel("gpt-4o", "openai", OPENAI),
        ),
        (
            ChatOpenAI(model="m", api_key="k", base_url="http://127.0.0.1:1/v1"),
            {},
            PricedModel("m", "openai", "http://127.0.0.1:1/v1"),
        ),
        (
            ChatGoogleGenerativeAI(model="gemini-2.5-flash", google_api_key="k"),
            {},
            PricedModel("gemini-2.5-flash", "google_genai", "https://generativelanguage.googleapis.com"),
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
    assert str(found.url).startswith("http://127.0.0.1:")
    like = OpenAILike(model="gpt-4o-mini", api_key="k", api_base="http://127.0.0.1:1/v1")
    assert llamaindex_models.name_of(like) == PricedModel("gpt-4o-mini", "openai", "http://127.0.0.1:1/v1")
    assert llamaindex_models.name_of(llamaindex_parts.ScriptedLLM()) == PricedModel("scripted")


# What results say.


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


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("second", [None, "openai:gpt-4o"])
@pytest.mark.parametrize("first", [None, MINI])
def test_sections_are_priced_as_the_first_step(first: str | None, second: str | None, *, shared: bool) -> None:
    declared = prices.declared_models(priced_as=first, long_context_priced_as=second, shared=shared)
    assert list(declared) == ["rag", "sections", "long_context"]
    assert declared["sections"] == declared["rag"]
    assert declared["long_context"] == (
        PricedModel("gpt-4o", "openai") if second else declared["rag"] if shared else None
    )


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
            assert "'gpt-4o'" in result["usage"]["cost_unknown"]


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


def test_accounts_are_told_apart_by_their_keys_and_nothing_is_said_of_them() -> None:
    first, again, other = (ChatOpenAI(model="gpt-4o", api_key=key) for key in ("sk-one", "sk-one", "sk-other"))
    assert account_of(first) == account_of(again) != account_of(other)
    assert "sk-one" not in str(account_of(first))
    assert account_of(object()) == account_of(object())
