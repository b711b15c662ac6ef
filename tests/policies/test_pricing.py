"""A limit in dollars needs the price of each model that it counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from langchain_parts import ScriptedModel, a_chain
from llamaindex_parts import ScriptedLLM, an_engine
from selfroute.errors import ConfigurationError
from selfroute.policies import Budget


class Twin(ScriptedLLM):
    """A model that is equal to others of its kind."""

    __hash__ = ScriptedLLM.__hash__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Twin)


@pytest.mark.parametrize("build", [a_chain, an_engine])
def test_two_equal_models_are_priced_apart_and_one_model_is_priced_once(build: Callable[..., Any]) -> None:
    kind = ScriptedModel if build is a_chain else Twin
    one, other = kind(label="own"), kind(label="own")
    assert one == other
    fields = {"priced_as": "openai:gpt-4o", "escalation": Budget(usd=1)}
    for second in (None, one):
        build(llm=one, long_context_llm=second, **fields)
    with pytest.raises(ConfigurationError, match="price of long_context_llm"):
        build(llm=one, long_context_llm=other, **fields)
