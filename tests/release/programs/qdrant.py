"""The extra `qdrant`: a chain and an engine over Qdrant read a whole document."""

from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_qdrant import QdrantVectorStore
from llama_index.core import Document as IndexDocument
from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.schema import QueryBundle
from llama_index.vector_stores.qdrant import QdrantVectorStore as IndexStore
from qdrant_client import QdrantClient

from langchain_selfroute import SelfRouteChain
from llamaindex_selfroute import StoredDocuments

TEXT = "Tea was served. Ms Okafor took the chair."
chunks = [Document(TEXT[at : at + 16], metadata={"source": "minutes", "start_index": at}) for at in (0, 16, 32)]
store = QdrantVectorStore.from_documents(
    chunks, DeterministicFakeEmbedding(size=8), location=":memory:", collection_name="minutes"
)
llm = FakeListChatModel(responses=["unanswerable", "Ms Okafor"])
result = SelfRouteChain.from_vectorstore(store, llm, k=1).invoke("Who chaired the meeting?")
assert [document.page_content for document in result["context"]] == [TEXT], result

storage = StorageContext.from_defaults(vector_store=IndexStore("nodes", client=QdrantClient(":memory:")))
index = VectorStoreIndex.from_documents(
    [IndexDocument(text=TEXT, doc_id="minutes")], storage, embed_model=MockEmbedding(embed_dim=8)
)
query = QueryBundle("Who chaired the meeting?")
nodes = index.as_retriever().retrieve(query)
(found,) = StoredDocuments(index).limited_to(index.as_retriever())(nodes, query)
assert found.get_content() == TEXT, found
