"""Clients that believe that they call their providers, whose calls arrive at a server on loopback.

What is sent to a provider's own address only can be seen no other way.
"""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from loopback import LoopbackServer

NAMES = {"openai": "gpt-4o-mini", "anthropic": "claude-haiku-4-5"}
KEY = "sk-own-5f1c9e7a2b4d"


def clients(server: LoopbackServer) -> tuple[httpx.Client, httpx.AsyncClient]:
    """Return clients that take all they are asked for to a server."""
    to = httpx.URL(server.openai_url)

    def here(request: httpx.Request) -> None:
        request.url = request.url.copy_with(scheme="http", host=to.host, port=to.port)

    async def ahere(request: httpx.Request) -> None:
        here(request)

    return httpx.Client(event_hooks={"request": [here]}), httpx.AsyncClient(event_hooks={"request": [ahere]})


def chat_model(server: LoopbackServer, client: str, **fields: Any) -> Any:
    """Return LangChain's model for a provider."""
    sync, awaited = clients(server)
    given = {"model": NAMES[client], "max_retries": 0, **fields}
    if client == "anthropic":
        package = pytest.importorskip("langchain_anthropic")
        model = package.ChatAnthropic(api_key=KEY, max_tokens=500, **given)
        return _led(model, ("_client", "_async_client"), server, fields.get("anthropic_api_url"))
    from langchain_openai import ChatOpenAI  # noqa: PLC0415 - of one framework only

    given = {"api_key": KEY, "stream_usage": True, **given}
    return ChatOpenAI(http_client=sync, http_async_client=awaited, **given)


def llm(server: LoopbackServer, client: str, **fields: Any) -> Any:
    """Return LlamaIndex's model for a provider."""
    given = {"model": NAMES[client], "max_retries": 0, **fields}
    if client == "anthropic":
        package = pytest.importorskip("llama_index.llms.anthropic")
        model = package.Anthropic(api_key=KEY, max_tokens=500, **given)
        return _led(model, ("_client", "_aclient"), server, fields.get("base_url"))
    from llama_index.llms.openai_like import OpenAILike  # noqa: PLC0415 - of one framework only

    sync, awaited = clients(server)
    own = {"api_base": "https://api.openai.com/v1", "is_chat_model": True, "context_window": 200_000}
    return OpenAILike(http_client=sync, async_http_client=awaited, **own, **{"api_key": KEY, **given})


def model(where: str, server: LoopbackServer, client: str, **fields: Any) -> Any:
    """Return the model of a host for a provider."""
    return (chat_model if where.startswith("langchain") else llm)(server, client, **fields)


def _led(model: Any, names: tuple[str, str], server: LoopbackServer, base_url: str | None) -> Any:
    """Return a model of Anthropic's package, which takes no clients, with some that lead to a server."""
    import anthropic  # noqa: PLC0415 - not with the oldest packages

    sync, awaited = clients(server)
    options: Any = {"api_key": KEY, "base_url": base_url, "max_retries": 0}
    made = anthropic.Anthropic(http_client=sync, **options), anthropic.AsyncAnthropic(http_client=awaited, **options)
    for name, value in zip(names, made, strict=True):
        if name in (getattr(model, "__pydantic_private__", None) or {}):
            setattr(model, name, value)
        else:
            vars(model)[name] = value  # a cached property
    return model
