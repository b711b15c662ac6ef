"""The extra `llamaindex-milvus`: the document behind a node in Milvus Lite is read whole."""

import tempfile
import warnings

warnings.filterwarnings("ignore")

from llama_index.core import Document, MockEmbedding, StorageContext, VectorStoreIndex  # noqa: E402
from llama_index.core.schema import QueryBundle  # noqa: E402
from llama_index.vector_stores.milvus import MilvusVectorStore  # noqa: E402

from llamaindex_selfroute import StoredDocuments  # noqa: E402

TEXT = "Tea was served. Ms Okafor took the chair."
with tempfile.TemporaryDirectory() as folder:
    store = MilvusVectorStore(uri=f"{folder}/milvus.db", dim=8)
    index = VectorStoreIndex.from_documents(
        [Document(text=TEXT, doc_id="minutes")],
        StorageContext.from_defaults(vector_store=store),
        embed_model=MockEmbedding(embed_dim=8),
    )
    query = QueryBundle("Who chaired the meeting?")
    nodes = index.as_retriever().retrieve(query)
    (found,) = StoredDocuments(index).limited_to(index.as_retriever())(nodes, query)
    assert found.get_content() == TEXT, found
