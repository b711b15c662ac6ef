"""Embeddings of a provider, which are paid for once and count towards the cap like a model's replies."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from selfroute.error_text import one_line
from selfroute.errors import ConfigurationError
from selfroute.languages.tokens import count_tokens
from selfroute.usage.counts import StepUsage
from selfroute.usage.prices import PricedModel, cost_of
from selfroute_workbench.evaluation.replies import Replies
from selfroute_workbench.evaluation.reply import Reply

from .found import Floats

_BATCH = 64


class ProviderEncoder:
    """Embeds texts with LangChain's class for a `provider:name`; it has the methods of sentence-transformers."""

    def __init__(self, name: str, replies: Replies) -> None:
        """Make the embeddings of a `provider:name`; `replies` keeps the vectors, and counts what they cost.

        Raises:
            ConfigurationError: They cannot be made, or there is a cap on the cost and no price is known.
        """
        from langchain.embeddings import init_embeddings  # noqa: PLC0415 - heavy

        self._name, self._replies, self._model = name, replies, PricedModel.parse("--retriever", name)
        try:
            # Chunks are short enough, and counting their tokens OpenAI's way would download a vocabulary.
            options: dict[str, Any] = {"check_embedding_ctx_length": False} if self._model.provider == "openai" else {}
            self._embeddings: Any = init_embeddings(name, **options)
        except ImportError as error:
            msg = f"{name} needs a package that is not installed: {one_line(error)}"
            raise ConfigurationError(msg) from error
        except Exception as error:  # each provider's class has its own errors
            msg = f"the embeddings {name} cannot be made: {one_line(error)}"
            raise ConfigurationError(msg) from error
        replies.spending.check(lambda _: cost_of(self._model, StepUsage(1, 0)))

    def encode_query(self, text: str, **_: Any) -> Floats:
        """Return the vector of a question, of length 1."""
        found: Floats = self._vectors([text], lambda: [self._embeddings.embed_query(text)], kind="question")[0]
        return found

    def encode_document(self, texts: Sequence[str], **_: Any) -> Floats:
        """Return the vectors of passages, each of length 1."""
        batches = [list(texts[start : start + _BATCH]) for start in range(0, len(texts), _BATCH)]
        return np.concatenate(
            [self._vectors(each, partial(self._embeddings.embed_documents, each)) for each in batches]
        )

    def _vectors(self, texts: list[str], embed: Callable[[], Any], *, kind: str = "passages") -> Floats:
        tokens, model = sum(map(count_tokens, texts)), self._model
        cost = cost_of(model, StepUsage(tokens, 0, estimated=True))

        def ask() -> Reply:
            vectors = np.asarray(embed(), dtype=np.float32)
            text = f"{len(texts)} {b64encode(vectors.tobytes()).decode()}"
            stated: Any = {"model": model.name, "provider": model.provider, "cost": cost.as_text()}
            return Reply(text, tokens, 0, estimated=True, **stated)

        identity = {"embeddings": self._name, "kind": kind, "texts": texts}
        rows, _, data = self._replies.get(identity, ask, step="embed", price=lambda _: cost).text.partition(" ")
        vectors = np.frombuffer(b64decode(data), dtype=np.float32).reshape(int(rows), -1)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)
