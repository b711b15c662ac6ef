"""Makes the providers' own clients, which are answered from the results that are here and reach no server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import httpx
from langchain_core.language_models import BaseChatModel
from typing_extensions import override

from selfroute.command.batch_files import FORMATS, Request
from selfroute.command.batch_results import Result
from selfroute.command.models import Models, load_model
from selfroute.errors import ConfigurationError

_UNKNOWN = {"error": {"message": "this request has no reply yet", "type": "unknown", "status": "ABORTED"}}


class Book:
    """The known replies, and what clients ask that are answered from them.

    Attributes:
        replies: What is known, by the digest of the request.
        asked: The latest request.
        seen: The digests of all requests since `open`.
    """

    def __init__(self, replies: Mapping[str, Result]) -> None:
        self.replies = replies
        self.open()

    def open(self) -> None:
        """Forget what was asked so far."""
        self.asked: Request | None = None
        self.seen: set[str] = set()

    @property
    def asks(self) -> bool:
        """Whether the latest request has no reply yet."""
        return self.asked is not None and self.asked.digest not in self.replies

    def answer(self, asked: Request) -> tuple[int, Any]:
        """Return the status and the body that a request is answered with."""
        self.asked = asked
        self.seen.add(asked.digest)
        known = self.replies.get(asked.digest)
        return (HTTPStatus.CONFLICT, _UNKNOWN) if known is None else (known.status, known.body)


class _Transport(httpx.BaseTransport):
    """What the client of a model sends its requests with; none leaves this process."""

    def __init__(self, book: Book, model: str) -> None:
        self._book, self._model = book, model

    @override
    def handle_request(self, request: httpx.Request) -> httpx.Response:
        asked = Request(self._model, str(request.url), json.loads(request.read()))
        status, body = self._book.answer(asked)
        return httpx.Response(status, json=body, request=request)


def models_from(book: Book, model: str, long_context_model: str | None) -> Models:
    """Make models that are answered from a book.

    Raises:
        ConfigurationError: We do not know a provider's batch files.
        MissingPackageError: The provider's package is not installed.
    """
    second = _client(book, long_context_model) if long_context_model else None
    return Models(_client(book, model), second, model)


def _client(book: Book, name: str) -> BaseChatModel:
    """Make the provider's own client, which needs no key."""
    provider = name.partition(":")[0]
    if provider not in FORMATS:
        msg = f"there are batch files for the providers {', '.join(FORMATS)}, not for {provider!r}"
        raise ConfigurationError(msg)
    transport = _Transport(book, name)
    fields: dict[str, Any] = {"max_retries": 0}
    if provider == "openai":
        fields["http_client"] = httpx.Client(transport=transport)
    elif provider == "google_genai":
        # To Google, 0 is its default. Vertex has other files.
        fields = {"max_retries": 1, "vertexai": False, "client_args": {"transport": transport}}
    made = load_model(name, api_key="unused", **fields)
    if provider == "anthropic":
        _replace_client(made, httpx.Client(transport=transport))
    return made


def _replace_client(model: Any, client: httpx.Client) -> None:
    """Replace the HTTP client of a ChatAnthropic, which takes none; it keeps its own in a cached property."""
    vars(model)["_client"] = model._client.with_options(http_client=client)  # noqa: SLF001
