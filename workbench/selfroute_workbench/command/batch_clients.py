"""Makes the providers' own clients, which are answered from the results that are here and reach no server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, cast

import httpx
from langchain_core.language_models import BaseChatModel

from selfroute.errors import ConfigurationError
from selfroute_workbench.command.batch_files import FORMATS, Request
from selfroute_workbench.command.batch_results import Result
from selfroute_workbench.command.models import Models, load_model

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

    def client(self, model: str) -> httpx.Client:
        """Return what the client of a model sends its requests with; none leaves this process."""
        return httpx.Client(transport=self.transport(model))

    def transport(self, model: str) -> httpx.MockTransport:
        """Return what answers the requests of a client of a model."""

        def answer(request: httpx.Request) -> httpx.Response:
            self.asked = Request(model, str(request.url), json.loads(request.read()))
            self.seen.add(self.asked.digest)
            known = self.replies.get(self.asked.digest)
            if known is None:
                return httpx.Response(HTTPStatus.CONFLICT, json=_UNKNOWN)
            return httpx.Response(known.status, json=known.body)

        return httpx.MockTransport(answer)


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
    fields: dict[str, Any] = {"max_retries": 0}
    if provider == "openai":
        fields["http_client"] = book.client(name)
    elif provider == "google_genai":
        # To Google, 0 is its default. Vertex has other files.
        fields = {"max_retries": 1, "vertexai": False, "client_args": {"transport": book.transport(name)}}
    made = load_model(name, api_key="unused", **fields)
    if provider == "anthropic":
        # ChatAnthropic takes no client, and keeps its own in a cached property.
        vars(made)["_client"] = cast("Any", made)._client.with_options(http_client=book.client(name))  # noqa: SLF001
    return made
