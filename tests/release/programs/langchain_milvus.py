"""The extra `langchain-milvus`: a chain over Milvus Lite reads a whole document."""

import tempfile
import warnings

warnings.filterwarnings("ignore")

from langchain_core.documents import Document  # noqa: E402
from langchain_core.embeddings import DeterministicFakeEmbedding  # noqa: E402
from langchain_core.language_models import FakeListChatModel  # noqa: E402
from langchain_milvus import Milvus  # noqa: E402

from langchain_selfroute import SelfRouteChain  # noqa: E402

TEXT = "Tea was served. Ms Okafor took the chair."
chunks = [Document(TEXT[at : at + 16], metadata={"source": "minutes", "start_index": at}) for at in (0, 16, 32)]
with tempfile.TemporaryDirectory() as folder:
    store = Milvus.from_documents(
        chunks, DeterministicFakeEmbedding(size=8), connection_args={"uri": f"{folder}/milvus.db"}, auto_id=True
    )
    llm = FakeListChatModel(responses=["unanswerable", "Ms Okafor"])
    result = SelfRouteChain.from_vectorstore(store, llm, k=1).invoke("Who chaired the meeting?")
    assert [document.page_content for document in result["context"]] == [TEXT], result
