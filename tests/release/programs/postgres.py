"""The extra `postgres`: the stores of both frameworks are there; without a server, no more can be tried."""

from langchain_postgres import PGVector, PGVectorStore
from llama_index.vector_stores.postgres import PGVectorStore as IndexStore

import langchain_selfroute
import llamaindex_selfroute

assert {PGVector, PGVectorStore, IndexStore}
assert {langchain_selfroute.StoredDocuments, llamaindex_selfroute.StoredDocuments}
