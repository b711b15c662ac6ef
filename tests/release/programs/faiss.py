"""The extra `faiss`: a chain over FAISS reads a whole document."""

import warnings

warnings.filterwarnings("ignore", category=DeprecationWarning)  # where LangChain's FAISS is, is no longer maintained

from langchain_community.vectorstores import FAISS  # noqa: E402
from langchain_core.documents import Document  # noqa: E402
from langchain_core.embeddings import DeterministicFakeEmbedding  # noqa: E402
from langchain_core.language_models import FakeListChatModel  # noqa: E402

from langchain_selfroute import SelfRouteChain  # noqa: E402

chunks = [Document(text, metadata={"source": "minutes"}) for text in ("Tea was served.", "Ms Okafor took the chair.")]
store = FAISS.from_documents(chunks, DeterministicFakeEmbedding(size=8))
llm = FakeListChatModel(responses=["unanswerable", "Ms Okafor"])
result = SelfRouteChain.from_vectorstore(store, llm, k=1).invoke("Who chaired the meeting?")
assert result["route"] == "long_context", result
(document,) = result["context"]
assert document.page_content.split() == ["Tea", "was", "served.", "Ms", "Okafor", "took", "the", "chair."], document
