"""A budget in dollars needs a price of each model that it is to pay for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from llama_index.llms.openai_like import OpenAILike

from langchain_parts import ScriptedModel, a_chain
from llamaindex_parts import ScriptedLLM, an_engine
from selfroute.errors import ConfigurationError
from selfroute.policies import Budget

LOCAL = {
    a_chain: lambda: ChatOpenAI(model="qwen3", base_url="http://localhost:8000/v1", api_key="k"),
    an_engine: lambda: OpenAILike(model="qwen3", api_base="http://localhost:8000/v1", api_key="k"),
}
HOSTED = {
    a_chain: lambda: ChatOpenAI(model="gpt-4o-mini", api_key="k"),
    an_engine: lambda: OpenAILike(model="gpt-4o-mini", api_base="https://api.openai.com/v1", api_key="k"),
}
SILENT = {a_chain: lambda: ScriptedModel(label=""), an_engine: lambda: ScriptedLLM(label="")}
DAY = {"usd": 1, "per": "day"}
PRICES: dict[str, tuple[Any, Any, dict[str, Any], dict[str, Any], str]] = {
    "local": (LOCAL, None, DAY, {}, "price of llm"),
    "local, in tokens": (LOCAL, None, {"tokens": 1}, {}, ""),
    "local, priced": (LOCAL, None, DAY, {"priced_as": "openai:gpt-4o-mini"}, ""),
    "unknown": (SILENT, None, DAY, {}, ""),
    "hosted": (HOSTED, None, {"usd": 1}, {}, ""),
    "a local second": (HOSTED, LOCAL, DAY, {}, "price of long_context_llm"),
    "a local second, priced": (HOSTED, LOCAL, DAY, {"priced_as": {"long_context_llm": "openai:gpt-4o-mini"}}, ""),
    "a local first, by question": (LOCAL, HOSTED, {"usd": 1}, {}, "price of llm"),
}


@pytest.mark.parametrize("build", [a_chain, an_engine])
@pytest.mark.parametrize("name", PRICES)
def test_budget_in_dollars_needs_a_price(name: str, build: Callable[..., Any]) -> None:
    llm, second, limit, fields, refused = PRICES[name]
    parts = {"llm": llm[build](), "long_context_llm": second and second[build](), **fields}
    if not refused:
        build(escalation=Budget(**limit), **parts)
        return
    with pytest.raises(ConfigurationError, match=rf"{refused}, but .*Budget\(tokens=\.\.\.\), or set .*priced_as"):
        build(escalation=Budget(**limit), **parts)


class Twin(ScriptedLLM):
    """A model that is equal to others of its kind."""

    __hash__ = ScriptedLLM.__hash__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Twin)


@pytest.mark.parametrize("build", [a_chain, an_engine])
def test_budget_of_two_equal_models(build: Callable[..., Any]) -> None:
    kind = ScriptedModel if build is a_chain else Twin
    one, other = kind(label="own"), kind(label="own")
    assert one == other
    fields = {"priced_as": "openai:gpt-4o", "escalation": Budget(usd=1)}
    for second in (None, one):
        build(llm=one, long_context_llm=second, **fields)
    with pytest.raises(ConfigurationError, match="price of long_context_llm"):
        build(llm=one, long_context_llm=other, **fields)
