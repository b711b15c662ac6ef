"""Read whole documents from the index that the retrieved nodes came from."""

from llamaindex_selfroute.stored.limits import takes_filters
from llamaindex_selfroute.stored.reading import StoredDocuments

__all__ = ["StoredDocuments", "takes_filters"]
