"""Use those parts of LangChain and its integrations that are not public. All such uses are in this module.

If a package has changed, nothing fails: a model has no known name, and a store is not recognised.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def tracing_params(model: Any, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the parameters by which LangChain's traces name a model called with these options; empty if unknown."""
    try:
        params: Mapping[str, Any] = model._get_ls_params(**options)  # noqa: SLF001
    except Exception:  # noqa: BLE001 - not every model has this, and some fail
        return {}
    return params


def collection_id(vectorstore: Any) -> Any:
    """Return the id of a Chroma store's collection; None if it cannot be found."""
    return getattr(getattr(vectorstore, "_collection", None), "id", None)
