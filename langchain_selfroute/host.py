"""What we use of LangChain and its integrations that is not public: all of it, in one place.

Where a package has changed, the answer is None: a model has no name, a store cannot be recognised.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def tracing_params(model: Any, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what LangChain's traces call a model when it is called with these options; empty if nobody knows."""
    try:
        params: Mapping[str, Any] = model._get_ls_params(**options)  # noqa: SLF001
    except Exception:  # noqa: BLE001 - not every model has this, and some fail
        return {}
    return params


def collection_id(vectorstore: Any) -> Any:
    """Return the id of a Chroma store's collection, None if that cannot be seen."""
    return getattr(getattr(vectorstore, "_collection", None), "id", None)
