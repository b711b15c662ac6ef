"""Both frameworks' extras together: one import brings one framework, and no provider."""

import sys

import langchain_selfroute

assert "llama_index" not in sys.modules
assert langchain_selfroute.SelfRouteChain

import llamaindex_selfroute  # noqa: E402 - after the look at what the first brought

assert llamaindex_selfroute.SelfRouteQueryEngine

foreign = ("langchain", "openai", "chromadb", "torch", "transformers", "pandas")
assert not set(foreign) & set(sys.modules), set(foreign) & set(sys.modules)
