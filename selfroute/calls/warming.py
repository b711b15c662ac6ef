"""Do once what would otherwise hold up the first question."""

from __future__ import annotations

from typing import Any

from selfroute.answerability import declines, declines_anywhere
from selfroute.calls.call import Call
from selfroute.usage.counts import StepUsage
from selfroute.usage.prices import cost_of

_REPLY = "The report does not say. It covers 2024."


def warm_up(call: Call[Any]) -> None:
    """Compile the rules by which declines are recognised, and load the price lists, which takes a tenth of a second.

    Args:
        call: A call of the pipeline; nothing is retrieved and no model is asked.
    """
    declines(_REPLY, call.refusal)
    declines_anywhere(_REPLY, call.refusal)
    for step in call.settings.ladder("rag"):
        cost_of(call.costs.priced(step), StepUsage(1, 1))
