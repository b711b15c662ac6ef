"""The extra `openai`: it brings both frameworks' clients, which a chain and an engine take; neither is asked."""

from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.llms.openai_like import OpenAILike

from langchain_selfroute import SelfRouteChain
from llamaindex_selfroute import SelfRouteQueryEngine

SelfRouteChain(
    retriever=RunnableLambda(lambda _: []),
    llm=ChatOpenAI(model="gpt-4o-mini", api_key="none"),
    documents=[Document("")],
)
index = VectorStoreIndex([], embed_model=MockEmbedding(embed_dim=8))
SelfRouteQueryEngine.from_index(index, llm=OpenAILike(model="gpt-4o-mini", api_key="none"))
