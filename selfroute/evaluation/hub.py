"""Whether the Hugging Face hub is within reach: its client finds out by itself, but only after minutes."""

from __future__ import annotations

import socket
from functools import cache
from urllib.parse import urlsplit
from urllib.request import getproxies

_SECONDS = 5.0


@cache
def is_within_reach() -> bool:
    """Whether the hub can be asked. Behind a proxy it is taken to be: only the client knows how to get through."""
    from huggingface_hub import constants  # noqa: PLC0415 - it takes a second

    if constants.HF_HUB_OFFLINE:
        return False
    if getproxies():
        return True
    address = urlsplit(constants.ENDPOINT)
    port = address.port or (80 if address.scheme == "http" else 443)
    try:
        with socket.create_connection((address.hostname or "", port), timeout=_SECONDS):
            return True
    except OSError:
        return False
