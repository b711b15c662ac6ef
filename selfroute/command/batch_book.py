"""Answer the providers' own clients from a book of recorded replies, and note what the book does not hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import httpx
from chromadb.api import ClientAPI
from typing_extensions import override

from selfroute.command import with_langchain
from selfroute.command.batch_requests import FORMATS, Request
from selfroute.command.batch_results import Result
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


class FromBook:
    """LangChain as the command uses it, but with models that are answered from a book.

    Attributes:
        index: The index, once it is open.
    """

    index: with_langchain.LangChainIndex

    NAME = with_langchain.NAME

    def __init__(self, book: Book) -> None:
        self._book = book
        self.load_embeddings = with_langchain.load_embeddings
        self.extractive_reader = with_langchain.extractive_reader
        self.recorded_model = with_langchain.recorded_model

    def open_index(self, client: ClientAPI, collection: str, embeddings: Any) -> with_langchain.LangChainIndex:
        """Open the index in an existing collection."""
        self.index = with_langchain.open_index(client, collection, embeddings)
        return self.index

    def load_model(self, provider: str, model: str, *, base_url: str | None) -> Any:
        """Make the provider's own client, which needs no key as it reaches no server.

        Raises:
            ConfigurationError: We do not know the provider's batch files.
            ImportError: The provider's package is not installed.
        """
        if provider not in FORMATS:
            msg = f"there are batch files for the providers {', '.join(FORMATS)}, not for {provider!r}"
            raise ConfigurationError(msg)
        transport = _Transport(self._book, f"{provider}:{model}")
        fields: dict[str, Any] = {"max_retries": 0}
        if provider == "openai":
            fields["http_client"] = httpx.Client(transport=transport)
        elif provider == "google_genai":
            # To Google, 0 is its default. Vertex has other files.
            fields = {"max_retries": 1, "vertexai": False, "client_args": {"transport": transport}}
        made = with_langchain.load_model(provider, model, base_url=base_url, api_key="unused", **fields)
        if provider == "anthropic":
            _replace_client(made, httpx.Client(transport=transport))
        return made


def _replace_client(model: Any, client: httpx.Client) -> None:
    """Replace the HTTP client of a ChatAnthropic, which takes none; it keeps its own in a cached property."""
    vars(model)["_client"] = model._client.with_options(http_client=client)  # noqa: SLF001
