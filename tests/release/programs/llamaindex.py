"""The extra `llamaindex` alone: an engine over the host's own fakes answers, and nothing else is imported."""

import sys
from typing import Any

from llama_index.core import Document, MockEmbedding, VectorStoreIndex
from llama_index.core.llms import CompletionResponse, CompletionResponseGen, CustomLLM, LLMMetadata

from llamaindex_selfroute import SelfRouteQueryEngine


class Declining(CustomLLM):
    """Answers only what it is asked for the second time."""

    asked: int = 0

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        self.asked += 1
        return CompletionResponse(text="unanswerable" if self.asked == 1 else "Ms Okafor")

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        yield self.complete(prompt)


minutes = Document(text="Ms Okafor took the chair.")
index = VectorStoreIndex.from_documents([minutes], embed_model=MockEmbedding(embed_dim=8))
whole = [Document(text="Ms Okafor took the chair. Tea was served.")]
engine = SelfRouteQueryEngine.from_index(index, documents=whole, llm=Declining(), priced_as="openai:gpt-4o-mini")
response = engine.query("Who chaired the meeting?")
assert (str(response), response.metadata["route"]) == ("Ms Okafor", "long_context"), response
assert 'pip install "selfroute[prices]"' in response.metadata["usage"]["cost_unknown"], response.metadata

foreign = ("langchain_core", "langchain_selfroute", "openai", "chromadb", "torch", "transformers", "pandas")
assert not set(foreign) & set(sys.modules), set(foreign) & set(sys.modules)
try:
    import langchain_selfroute  # noqa: F401
except ImportError as error:
    assert 'pip install "selfroute[langchain]"' in str(error), error
else:
    sys.exit("LangChain came along")
