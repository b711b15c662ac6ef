"""Refuse a policy that needs a price if the model certainly has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from selfroute.effects import Route
from selfroute.errors import ConfigurationError
from selfroute.usage import prices
from selfroute.usage.counts import Cost, StepUsage
from selfroute.usage.prices import PricedModel

_SOME = StepUsage(1, 1)


def check_prices(policy: Any, priced_as: Callable[[Route], PricedModel], *, shared: bool, sections: bool) -> None:
    """Check that the models may have a price, if the policy needs one.

    A model that does not report its name may still report it in its reply, so it is not refused.

    Args:
        policy: The policy.
        priced_as: Returns the model whose price counts for a step.
        shared: Whether one model performs all steps.
        sections: Whether sections are read.

    Raises:
        ConfigurationError: A model reports its name and has no price, or there are no price lists.
    """
    if not getattr(policy, "needs_price", False):
        return
    if isinstance(lists := prices.load_price_lists(), Cost):
        msg = f"a limit in dollars needs prices: {lists.unknown}; or limit the tokens, as in Budget(tokens=...)"
        raise ConfigurationError(msg)
    steps: list[tuple[Route, str]] = [("long_context", "llm" if shared else "long_context_llm")]
    if sections or getattr(policy, "counts_draft", False):
        steps.append(("rag", "llm"))
    for step, field in steps:
        model = priced_as(step)
        costs = [prices.cost_of(one, _SOME) for one in (model, *model.fallbacks) if one.name]
        if len(costs) == 1 + len(model.fallbacks) and all(cost.dollars is None for cost in costs):
            option = "'provider:name'" if field == "llm" else "{'long_context_llm': 'provider:name'}"
            reason = str(costs[0].unknown).partition(";")[0]
            msg = (
                f"a limit in dollars needs the price of {field}, but {reason}. Limit the tokens instead, as in "
                f"Budget(tokens=...), or set priced_as={option} to a model with a price"
            )
            raise ConfigurationError(msg)
