"""Find the base URL at which a client calls its model: it decides which price list applies."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import SplitResult, urlsplit

_FIELD = re.compile(r"(?:^|_)(?:api_base|base_url|api_url|endpoint|endpoint_url)$")
_KEY = re.compile(r"(?:^|_)(?:api_key|organization|project)$")
_ADDRESS = re.compile(r"https?://|[\w.-]+:\d+(?:/|$)", re.IGNORECASE)  # some fields name something else
_LOCAL = re.compile(r"(?:^|\.)(?:localhost|local|internal|lan)\.?$|^[^.]*$")  # no dot: a container or a computer
_CLIENTS = ("root_client", "client", "_client")


def address_of(model: object) -> str | None:
    """Return the address at which a model is called, without credentials and query; None if it does not say.

    Args:
        model: A framework's object for a model. It may hold the provider's own client, which knows the environment's
            settings as well; else each framework and integration has a field of another name.
    """
    return next(filter(None, map(_without_credentials, _stated(model))), None)


def account_of(model: object) -> int:
    """Return a key that differs between API accounts; valid in this process.

    It depends on the API keys in a client's fields, and says nothing of them.
    """
    keys = [value for name, value in _fields_of(model).items() if _KEY.search(name)]
    return hash(tuple(str(getattr(value, "get_secret_value", lambda value=value: value)()) for value in keys))


def host_of(address: str) -> str:
    """Return the host in an address, with its port."""
    return urlsplit(address).netloc


def is_local(address: str) -> bool:
    """Return whether an address is on this computer or in a private network."""
    host = urlsplit(address).hostname or ""
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return bool(_LOCAL.search(host))


def _stated(model: Any) -> Iterator[Any]:
    fields = _fields_of(model)
    for client in filter(None, map(fields.get, _CLIENTS)):
        yield getattr(client, "base_url", None)  # OpenAI's and Anthropic's
        inner = getattr(client, "_api_client", None)  # Google's
        yield getattr(getattr(inner, "_http_options", None), "base_url", None)
    yield from (value for name, value in fields.items() if _FIELD.search(name))


def _fields_of(model: Any) -> dict[str, Any]:
    # Not `getattr`: it may build a client that is not needed yet, or fail.
    return {**(getattr(model, "__pydantic_private__", None) or {}), **getattr(model, "__dict__", {})}


def _without_credentials(value: Any) -> str | None:
    text = str(value) if value else ""
    if not _ADDRESS.match(text):
        return None
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host = parts.netloc.rpartition("@")[2]
    except ValueError:  # such as a port that is no number
        return None
    return SplitResult(parts.scheme.lower(), host.lower(), parts.path.rstrip("/"), "", "").geturl()
