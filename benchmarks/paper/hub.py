"""Asks the Hugging Face Hub once: its client would retry for minutes."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

_SECONDS = 5.0


def is_online(repository: str, kind: Literal["dataset", "model"]) -> bool:
    """Return whether the Hub answers a request about a repository, be it that there is no such repository."""
    from huggingface_hub import HfApi  # noqa: PLC0415 - heavy
    from huggingface_hub.errors import HfHubHTTPError  # noqa: PLC0415

    try:
        HfApi().repo_info(repository, repo_type=kind, timeout=_SECONDS)
    except HfHubHTTPError:
        return True
    except Exception:  # noqa: BLE001 - offline, a proxy, a timeout: which error depends on the client's version
        return False
    return True


def download(repository: str, file: str) -> Path:
    """Download a file of a data set, or return its copy; an OSError says that there is none, or no Hub."""
    from huggingface_hub import hf_hub_download  # noqa: PLC0415 - heavy

    online = is_online(repository, "dataset")
    try:
        return Path(hf_hub_download(repository, file, repo_type="dataset", local_files_only=not online))
    except OSError as error:
        if online:
            raise
        msg = "it does not answer"
        raise ConnectionError(msg) from error
