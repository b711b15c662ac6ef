"""What actors of `examples/bulk_ray.py` import in the tests: a chain over five small documents."""

from __future__ import annotations

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import ChatOpenAI
from typing_extensions import override

from langchain_selfroute import SelfRouteChain

PLACES = ("harbour", "quarry", "library", "station", "brewery")


class Places(Embeddings):
    """Texts are near that name the same places."""

    @override
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    @override
    def embed_query(self, text: str) -> list[float]:
        return [float(place in text) for place in PLACES]


def make_chain() -> SelfRouteChain:
    """The model is at OPENAI_BASE_URL."""
    texts = {place: f"The {place} opened in 1873. Its first master was Osric Pellan." for place in PLACES}
    documents = [Document(text, metadata={"source": place}) for place, text in texts.items()]
    store = InMemoryVectorStore.from_documents(documents, Places())
    model = ChatOpenAI(model="test", max_retries=0, stream_usage=True)
    return SelfRouteChain.from_vectorstore(store, model, k=1)
