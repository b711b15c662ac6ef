"""The extra `prices` alone: a call has a price."""

from selfroute.usage import StepUsage
from selfroute.usage.prices import PricedModel, cost_of

cost = cost_of(PricedModel("gpt-4o-mini", "openai"), StepUsage(input_tokens=1_000_000, output_tokens=0))
assert cost.dollars, cost
