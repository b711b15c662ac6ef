"""The extra `google-genai`, as `openai.py`."""

from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_google_genai import ChatGoogleGenerativeAI
from llama_index.llms.google_genai import GoogleGenAI

from langchain_selfroute import SelfRouteChain

SelfRouteChain(
    retriever=RunnableLambda(lambda _: []),
    llm=ChatGoogleGenerativeAI(model="gemini-2.5-flash", api_key="none"),
    documents=[Document("")],
)
assert GoogleGenAI.class_name() == "GenAI"
