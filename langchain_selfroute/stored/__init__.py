"""Read whole documents from the vector store that the passages came from."""

from langchain_selfroute.stored.reading import StoredDocuments
from langchain_selfroute.stored.stores import Fetch

__all__ = ["Fetch", "StoredDocuments"]
