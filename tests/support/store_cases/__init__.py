"""All stores that are read without `fetch`, for the laws that hold over all of them."""

from store_cases import in_faiss_and_qdrant, in_langchain, in_llamaindex, in_milvus_and_lancedb, in_postgres
from store_cases.base import Case, Piece, Read, Routed, cut, missing, numbered, text_of

CASES: tuple[type[Case], ...] = (
    *in_langchain.CASES,
    *in_llamaindex.CASES,
    *in_faiss_and_qdrant.CASES,
    *in_postgres.CASES,
    *in_milvus_and_lancedb.CASES,
)

__all__ = ["CASES", "Case", "Piece", "Read", "Routed", "cut", "missing", "numbered", "text_of"]
