"""Whole documents out of the store that the passages came from."""

from langchain_selfroute.stored.reading import StoredDocuments

__all__ = ["StoredDocuments"]
