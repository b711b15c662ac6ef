"""The extra `prices` alone: a call has a price."""

from selfroute.prices import Model, cost_of
from selfroute.usage import StepUsage

cost = cost_of(Model("gpt-4o-mini", "openai"), StepUsage(input_tokens=1_000_000, output_tokens=0))
assert cost.dollars, cost
