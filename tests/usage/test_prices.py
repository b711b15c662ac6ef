"""Money: by whose price list, at which rate, and why not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import genai_prices
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.runnables import ConfigurableField, Runnable, RunnableLambda
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI
from llama_index.llms.openai import OpenAI
from llama_index.llms.openai_like import OpenAILike

import llamaindex_parts
from langchain_parts import MODES, QUESTION, ScriptedModel, a_chain, ask
from langchain_selfroute.models import clients as langchain_models
from llamaindex_selfroute.models import clients as llamaindex_models
from loopback import LoopbackServer
from selfroute.errors import ConfigurationError
from selfroute.usage import Cost, StepUsage, Usage, prices
from selfroute.usage.addresses import account_of, address_of
from selfroute.usage.counts import FREE
from selfroute.usage.prices import PricedModel, cost_of

pytestmark = pytest.mark.usefixtures("frozen")
MINI = "openai:gpt-4o-mini"
OPENAI = "https://api.openai.com/v1"
GOOGLE = "https://generativelanguage.googleapis.com"
HERE = "http://127.0.0.1:1/v1"
OURS = "https://ours.openai.azure.com/openai/deployments/mini"
AWS = "regional.anthropic.claude-3-5-haiku-20241022-v1:0"  # the list has no rate for an hour
NO_NAME, NO_PRICE, AT_HOME = "does not report its name", "knows no price of", "a local address"
CALL = StepUsage(1_000_000, 100_000)


def chat(**fields: Any) -> ChatOpenAI:
    return ChatOpenAI(**{"model": "gpt-4o-mini", "api_key": "k", **fields})


def gemini() -> Any:
    return ChatGoogleGenerativeAI(model="gemini-2.5-flash", google_api_key="k")


MINI_HOSTED = PricedModel("gpt-4o-mini", "openai", OPENAI)
CLIENTS: dict[str, tuple[Callable[[], Any], PricedModel]] = {  # and the model that each reports
    "ChatOpenAI, bound": (lambda: chat().bind(model="gpt-4o"), PricedModel("gpt-4o", "openai", OPENAI)),
    "ChatOpenAI, with retries": (lambda: chat().with_retry(), MINI_HOSTED),
    "ChatOpenAI, in a sequence": (lambda: RunnableLambda(lambda prompt: prompt) | chat() | str, MINI_HOSTED),
    "ChatOpenAI, elsewhere": (lambda: chat(base_url=HERE), replace(MINI_HOSTED, url=HERE)),
    "ChatGoogleGenerativeAI": (gemini, PricedModel("gemini-2.5-flash", "google_genai", GOOGLE)),
    "a function": (lambda: RunnableLambda(lambda _: "Mr Lin."), PricedModel()),
    "a model of one's own": (ScriptedModel, PricedModel("scripted", "scriptedmodel")),
    "OpenAI": (lambda: OpenAI(model="gpt-4o-mini", api_key="k"), MINI_HOSTED),
    "OpenAILike": (lambda: OpenAILike(model="m", api_key="k", api_base=HERE), PricedModel("m", "openai", HERE)),
    "an LLM of one's own": (llamaindex_parts.ScriptedLLM, PricedModel("scripted")),
}
LISTED: dict[PricedModel, str] = {  # as which one of the price lists a model is priced, or why it is not
    MINI_HOSTED: "openai:gpt-4o-mini",
    PricedModel("gpt-4o-mini-2024-07-18", "openai"): "openai:gpt-4o-mini",
    PricedModel("gemini-2.5-flash", "google_genai", GOOGLE): "google:gemini-2.5-flash",
    PricedModel("models/gemini-2.5-flash", "google_genai"): "google:gemini-2.5-flash",
    PricedModel("gemini-2.5-pro", "google_genai"): "google:gemini-2.5-pro",  # a long prompt costs more
    PricedModel("claude-3-5-haiku-latest", "anthropic"): "anthropic:claude-3-5-haiku-latest",
    PricedModel("gpt-4o-mini", "azure", OURS): "openai:gpt-4o-mini",
    PricedModel("deepseek-chat", "openai", "https://api.deepseek.com/v1"): "deepseek:deepseek-chat",
    PricedModel("gpt-4o-mini", "openai", HERE): AT_HOME,
    PricedModel(): NO_NAME,
    PricedModel("my-own-model", "openai"): NO_PRICE,
    PricedModel("gpt-4o-mini", "nobody"): NO_PRICE,
    PricedModel("gpt-4o-mini"): NO_PRICE,
    PricedModel("gpt-4o-mini", "openai", "https://llm.our-company.com/v1"): NO_PRICE,
}


@pytest.mark.parametrize("name", CLIENTS)
def test_name_of_a_client(name: str) -> None:
    make, model = CLIENTS[name]
    client = make()
    names = langchain_models if isinstance(client, Runnable) else llamaindex_models
    assert names.name_of(client) == model


@pytest.mark.parametrize("model", LISTED, ids=str)
def test_cost_of(model: PricedModel) -> None:
    cost, (provider, _, listed) = cost_of(model, CALL), LISTED[model].partition(":")
    if listed:
        counts = genai_prices.Usage(input_tokens=CALL.input_tokens, output_tokens=CALL.output_tokens)
        assert cost == Cost(genai_prices.calc_price(counts, listed, provider_id=provider).total_price)
    else:
        assert LISTED[model] in str(cost.unknown)
        assert "priced_as='provider:name'" in str(cost.unknown)


KNOWN = [model for model, expected in LISTED.items() if ":" in expected]
COUNTS = st.integers(0, 2_000_000)


@given(st.sampled_from(KNOWN), COUNTS, COUNTS, COUNTS, COUNTS)
def test_cost_of_any_counts_is_a_plain_amount(
    model: PricedModel, read: int, written: int, cached: int, kept: int
) -> None:
    cost = cost_of(model, StepUsage(read, written, cached, cache_write_tokens=kept))
    assert isinstance(cost.dollars, Decimal)
    assert cost.dollars >= 0
    assert "E" not in str(cost.as_text())
    assert Decimal(str(cost.as_text())) == cost.dollars


RATES = {  # tokens kept five minutes, kept an hour, read, of a million; and the factor to the plain price
    "plain": ((0, 0, 0), "1"),
    "five minutes": ((1_000_000, 0, 0), "1.25"),
    "an hour": ((0, 1_000_000, 0), "2"),
    "read": ((0, 0, 1_000_000), "0.1"),
    "all of these": ((100_000, 600_000, 200_000), "1.445"),
}


@pytest.mark.parametrize("name", RATES)
@pytest.mark.parametrize("model", [PricedModel("claude-3-5-haiku-latest", "anthropic"), PricedModel(AWS, "aws")])
def test_cost_of_a_cache(model: PricedModel, name: str) -> None:
    (minutes, hour, cached), factor = RATES[name]
    kept = {"cache_write_tokens": minutes + hour, "cache_write_1h_tokens": hour}
    plain = cost_of(model, StepUsage(1_000_000, 0)).dollars
    assert plain is not None
    assert cost_of(model, StepUsage(1_000_000, 0, cached, **kept)).dollars == plain * Decimal(factor)


def test_cost_of_a_repeated_reply_is_nothing() -> None:
    assert {cost_of(model, replace(CALL, repeated=True)) for model in (*KNOWN, PricedModel())} == {FREE}


LOCAL = [
    *("http://localhost:11434", "http://127.0.0.1:8000/v1", "http://127.9.8.7/v1", "http://[::1]:8000/v1"),
    *("http://10.1.2.3:8000/v1", "http://172.17.0.1/v1", "http://192.168.0.20:1234/v1", "http://169.254.1.1/v1"),
    *("http://100.64.0.9/v1", "http://[fd00::1]/v1", "http://host.docker.internal:4000/v1"),
    *("http://litellm:4000", "http://gpu-box.local/v1", "http://vllm.models.svc.cluster.local:8000/v1"),
    "http://localhost/x.openai.azure.com",
]


@pytest.mark.parametrize("address", [*LOCAL, "https://llm.our-company.com/v1", "http://8.8.8.8/v1"])
def test_cost_at_an_address_that_is_no_providers(address: str) -> None:
    for name, provider in (("gpt-4o-mini", "openai"), ("gemini-2.5-flash", "google_genai")):
        unknown = str(cost_of(PricedModel(name, provider, address), CALL).unknown)
        assert repr(name) in unknown
        assert urlsplit(address).netloc in unknown
        assert (AT_HOME in unknown) == (address in LOCAL)


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
def test_address_of(fields: dict[str, Any], expected: str | None) -> None:
    assert address_of(Client(**fields)) == expected


def test_address_of_a_client_may_be_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:7/v1")
    assert address_of(chat()) == "http://127.0.0.1:7/v1"


def test_account_of_depends_on_the_key_and_says_nothing_of_it() -> None:
    first, again, other = (chat(api_key=key) for key in ("sk-one", "sk-one", "sk-other"))
    assert account_of(first) == account_of(again) != account_of(other)
    assert "sk-one" not in str(account_of(first))
    assert account_of(object()) == account_of(object())


GPT_OSS = PricedModel("gpt-oss", "openai", "http://localhost:8000/v1")
HOSTED = PricedModel("gpt-4o", "openai", OPENAI)
TOGETHER = PricedModel("MythoMax", "together", "https://api.together.xyz/v1")
CLAUDE = PricedModel("claude-3-5-haiku-latest", "anthropic", "https://api.anthropic.com")


@pytest.mark.parametrize(
    ("models", "answered", "expected"),
    [
        ([GPT_OSS], PricedModel(), GPT_OSS),
        ([GPT_OSS], PricedModel("gpt-4o-mini", "anthropic"), PricedModel("gpt-4o-mini", "anthropic", GPT_OSS.url)),
        ([GPT_OSS, HOSTED], PricedModel("gpt-4o-2024-08-06", "openai"), replace(HOSTED, name="gpt-4o-2024-08-06")),
        ([HOSTED, GPT_OSS], PricedModel("gpt-oss", "openai"), GPT_OSS),
        ([HOSTED, MINI_HOSTED], PricedModel("gpt-4o-mini", "openai"), MINI_HOSTED),
        ([CLAUDE, GPT_OSS], PricedModel("llama", "openai"), replace(GPT_OSS, name="llama")),
        ([PricedModel()], PricedModel("gpt-4o", "openai"), PricedModel("gpt-4o", "openai")),
        ([TOGETHER], PricedModel("MythoMax", "openai"), TOGETHER),  # a client that builds on OpenAI's
        ([PricedModel("gpt-4o")], PricedModel(None, "openai"), PricedModel("gpt-4o", "openai")),
    ],
)
def test_replied(models: list[PricedModel], answered: PricedModel, expected: PricedModel) -> None:
    first, *others = models
    assert replace(first, fallbacks=tuple(others)).replied(answered) == expected


def test_name_of_fallbacks_has_their_addresses() -> None:
    at_home = chat(base_url=HERE).with_retry()
    name = langchain_models.name_of(chat(model="gpt-4o").with_fallbacks([at_home]).bind(stop=["x"]))
    assert [model.url for model in (name, *name.fallbacks)] == [OPENAI, HERE]


def test_name_of_an_alternative_is_that_of_the_config() -> None:
    llm = ScriptedModel().configurable_alternatives(ConfigurableField(id="llm"), other=ScriptedModel(label="other"))
    found = [langchain_models.name_of(llm, config).name for config in ({}, {"configurable": {"llm": "other"}})]
    assert found == ["scripted", "other"]


# The price lists are optional: whatever is installed under their name, answers are given.

PRICE = """
from decimal import Decimal
from types import SimpleNamespace
def Usage(**_): ...
def calc_price(*_, **__): return SimpleNamespace(total_price={})
"""
BROKEN = {
    "none": None,
    "an import that raises": "raise RuntimeError('broken')",
    "half an installation": "",
    "names changed": "class Use: ...\ndef price(*_): ...",
    "a price that raises": "class Usage:\n def __init__(self, **_): ...\ndef calc_price(*_, **__): raise ValueError",
    "a price that is text": PRICE.format("'a lot'"),
    "a price that is no number": PRICE.format("float('nan')"),
    "a price below zero": PRICE.format("-1"),
}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str | None], None]]:
    """Install other price lists for a test, or none."""
    caches = (prices.load_price_lists, prices._provider_of)

    def installed(content: str | None) -> None:
        for name in [name for name in sys.modules if name.partition(".")[0] == "genai_prices"]:
            monkeypatch.delitem(sys.modules, name)
        if content is None:
            monkeypatch.setitem(sys.modules, "genai_prices", None)
        else:
            (tmp_path / "genai_prices.py").write_text(content)
            monkeypatch.syspath_prepend(tmp_path)
        for one in caches:
            one.cache_clear()

    yield installed
    for one in caches:
        one.cache_clear()


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_broken_price_lists_cost_no_answer(content: str | None, installed: Callable[[str | None], None]) -> None:
    installed(content)
    chain = a_chain(usage=True, priced_as=MINI)
    engine = llamaindex_parts.an_engine(priced_as=MINI)
    for usage in (chain.invoke(QUESTION)["usage"], engine.query(QUESTION).metadata["usage"]):
        assert (usage["cost"], usage["cost_long_context_only"]) == (None, None)
        expected = 'pip install "selfroute[prices]"' if content is None else "the installed genai-prices fails ("
        assert expected in usage["cost_unknown"]


@pytest.mark.parametrize("price", ["0.5", "'0.5'", "1", "Decimal('0.5')"])
def test_cost_is_a_decimal(price: str, installed: Callable[[str | None], None]) -> None:
    installed(PRICE.format(price))
    total = cost_of(KNOWN[0], StepUsage(1, 1)) + cost_of(KNOWN[0], StepUsage(1, 1))
    assert total.dollars in {Decimal(1), Decimal(2)}
    assert isinstance(total.dollars, Decimal)


# What results say.


@pytest.mark.parametrize("mode", MODES)
async def test_cost_of_the_long_context_is_that_of_its_own_model(mode: str) -> None:
    named = {"llm": MINI, "long_context_llm": "openai:gpt-4o"}
    chain = a_chain(("Mr Lin.",), None, usage=True, priced_as=named, long_context_llm=ScriptedModel())
    usage = (await ask(chain, QUESTION, mode))["usage"]
    counts = StepUsage(usage["long_context_only"], usage["rag"]["output_tokens"])
    assert Decimal(usage["cost_long_context_only"]) == cost_of(PricedModel("gpt-4o", "openai"), counts).dollars


def test_cost_of_a_fallback_is_its_own() -> None:
    failing = ScriptedModel(failures={"rag": [ConnectionError()] * 9})
    other = ScriptedModel(label="gpt-4o-mini", draft=("Mr Lin.",), usage=True)
    chain = a_chain(llm=failing.with_fallbacks([other]))
    usage = chain.invoke(QUESTION)["usage"]
    assert "'gpt-4o-mini'" in usage["cost_unknown"]


def test_cost_is_that_of_a_model_chosen_with_the_call() -> None:
    with LoopbackServer(lambda _: "Mr Lin.") as server:
        llm = chat(base_url=server.openai_url)
        chain = a_chain(llm=llm)
        for result in (chain.bind(model="gpt-4o").invoke(QUESTION), chain.invoke(QUESTION, model="gpt-4o")):
            assert "'gpt-4o'" in result["usage"]["cost_unknown"]


@pytest.mark.parametrize("wrong", ["gpt-4o-mini", "openai:", {"llm": ":gpt-4o-mini"}, {"rag": MINI}])
def test_priced_as_is_checked_at_once(wrong: Any) -> None:
    for make in (a_chain, llamaindex_parts.an_engine):
        with pytest.raises(ConfigurationError, match=r"priced_as.*provider:name"):
            make(priced_as=wrong)


def test_costs_add_up_as_decimals() -> None:
    tenth = Usage(rag=StepUsage(1, 1, cost=Cost(Decimal("0.1"))))
    assert (tenth + tenth + tenth).cost.dollars == Decimal("0.3")
    unknown = Usage(rag=StepUsage(1, 1, cost=Cost(None, "no price")))
    assert (tenth + unknown).cost == Cost(None, "no price")


@pytest.mark.matrix
@pytest.mark.parametrize(("host", "make"), [("langchain", "a_chain"), ("llamaindex", "an_engine")])
def test_price_lists_are_loaded_with_the_first_chain(host: str, make: str) -> None:
    program = f"""
import subprocess
import sys
sys.path.insert(0, "tests/support")
import {host}_parts
assert "genai_prices" not in sys.modules
{host}_parts.{make}()
assert "genai_prices" in sys.modules
"""
    command = [sys.executable, "-c", program]
    subprocess.run(command, check=True, timeout=60, cwd=Path(__file__).parents[2])  # noqa: S603
