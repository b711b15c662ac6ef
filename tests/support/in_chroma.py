"""Chroma in this process: one client for all tests, since to read its settings takes longer than most of them."""

from __future__ import annotations

import uuid
from functools import cache
from typing import Any

import pytest


@cache
def chroma_client() -> Any:
    """The client of the one embedded server: each collection needs a name of its own."""
    return pytest.importorskip("chromadb").EphemeralClient()


def new_collection() -> Any:
    """A collection that nobody else has."""
    return chroma_client().create_collection(f"c{uuid.uuid4().hex}")


def new_chroma(embedding: Any, *, of: Any = None, client: Any = None) -> Any:
    """A `Chroma` of LangChain with such a collection; `of` is a class of the user's own, `client` that of a server."""
    kind = of or pytest.importorskip("langchain_chroma").Chroma
    more = {"client": client or chroma_client(), "client_settings": chroma_client().get_settings()}
    return kind(f"c{uuid.uuid4().hex}", embedding, **more)
