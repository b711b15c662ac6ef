"""The extra `langchain` alone: a chain over the host's own fakes answers, and nothing else is imported."""

import sys

from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda

from langchain_selfroute import SelfRouteChain, SelfRouteLedger

minutes = [Document("Ms Okafor took the chair.", metadata={"source": "minutes"})]
whole = [Document("Ms Okafor took the chair. Tea was served.", metadata={"source": "minutes"})]
llm = FakeListChatModel(responses=["unanswerable", "Ms Okafor"])
chain = SelfRouteChain(
    retriever=RunnableLambda(lambda _: minutes), llm=llm, documents=whole, priced_as="openai:gpt-4o-mini"
)
ledger = SelfRouteLedger()
result = chain.invoke("Who chaired the meeting?", config={"callbacks": [ledger]})
assert (result["answer"], result["route"]) == ("Ms Okafor", "long_context"), result
assert 'pip install "selfroute[prices]"' in result["usage"]["cost_unknown"], result["usage"]
assert ledger.to_dict()["routes"] == {"rag": 0, "sections": 0, "long_context": 1}

foreign = ("llama_index", "llamaindex_selfroute", "langchain", "openai", "chromadb", "torch", "transformers", "pandas")
assert not set(foreign) & set(sys.modules), set(foreign) & set(sys.modules)
try:
    import llamaindex_selfroute  # noqa: F401
except ImportError as error:
    assert 'pip install "selfroute[llamaindex]"' in str(error), error
else:
    sys.exit("LlamaIndex came along")
