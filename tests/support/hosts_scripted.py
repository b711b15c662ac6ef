"""A scripted model under either host, in a chain or an engine, in the words of neither."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document as LangChainDocument
from llama_index.core.constants import DEFAULT_CONTEXT_WINDOW
from llama_index.core.schema import Document as LlamaIndexDocument
from llama_index.core.schema import NodeWithScore, TextNode

import langchain_parts
import llamaindex_parts
from hosts_parts import STREAMS, Asker, LangChainAsker, LlamaIndexAsker
from selfroute.effects import Route


def document(where: str, text: str, source: str | None = None, **metadata: Any) -> Any:
    """Make a document of the host; its source is its id, too."""
    metadata = {"source": source, **metadata} if source else metadata
    if where.startswith("langchain"):
        return LangChainDocument(text, id=source, metadata=metadata)
    return LlamaIndexDocument(text=text, metadata=metadata, **({"id_": source} if source else {}))


def passage(where: str, text: str, name: str = "p", **metadata: Any) -> Any:
    """Make a passage of the host."""
    if where.startswith("langchain"):
        return LangChainDocument(text, id=name, metadata=metadata)
    return NodeWithScore(node=TextNode(text=text, id_=name, metadata=metadata), score=0.9)


def retriever(where: str, passages: Sequence[Any]) -> Any:
    """Make a retriever that finds these passages."""
    if where.startswith("langchain"):
        return langchain_parts.ListRetriever(passages=list(passages), k=len(passages))
    return llamaindex_parts.ListRetriever(passages, k=len(passages))


class _OfLangChain(langchain_parts.ScriptedModel):
    """Counts the tokens of prompts by `tokens`, if given; raises `refusal(tokens)` for those of more than `limit`."""

    tokens: Any = None
    limit: Any = None
    refusal: Any = None

    def _begin(self, messages: Any, options: Any) -> Any:
        prompt = "\n".join(str(message.text) for message in messages)
        if self.limit and self.tokens(prompt) > self.limit:
            self.calls.append(langchain_parts.Call(self._step(prompt), prompt, messages, options))
            raise self.refusal(int(self.tokens(prompt)))
        return super()._begin(messages, options)

    def _counts(self, call: Any, pieces: Any) -> Any:
        if self.tokens is None:
            return super()._counts(call, pieces)
        read = int(self.tokens(call.prompt))
        return {"input_tokens": read, "output_tokens": 5, "total_tokens": read + 5}


class _OfLlamaIndex(llamaindex_parts.ScriptedLLM):
    """The same model."""

    tokens: Any = None
    limit: Any = None
    refusal: Any = None

    def _begin(self, asked: Any, options: Any) -> Any:
        prompt = asked if isinstance(asked, str) else "\n".join(message.content or "" for message in asked)
        if self.limit and self.tokens(prompt) > self.limit:
            self.calls.append(llamaindex_parts.Call(self._step(prompt), prompt, asked, options))
            raise self.refusal(int(self.tokens(prompt)))
        return super()._begin(asked, options)

    def _raw(self, call: Any, pieces: Any) -> Any:
        if self.tokens is None:
            return super()._raw(call, pieces)
        read = int(self.tokens(call.prompt))
        counts = {"prompt_tokens": read, "completion_tokens": 5, "total_tokens": read + 5}
        usage = llamaindex_parts.Counts(**counts, prompt_tokens_details={"cached_tokens": 0})
        return llamaindex_parts.Raw(model=self.label, usage=usage)


def model(where: str, *, window: int | None = None, **script: Any) -> Any:
    """Make a scripted model that declares a window, or none."""
    if where.startswith("langchain"):
        return _OfLangChain(profile=window and {"max_input_tokens": window}, **script)
    return _OfLlamaIndex(context_window=window or DEFAULT_CONTEXT_WINDOW, **script)  # the host's own says nothing


class Scripted:
    """A chain or an engine over scripted models.

    Attributes:
        asker: Asks it.
        llm: The model of the first step, and of the last unless that has another.
    """

    def __init__(self, where: str, **parts: Any) -> None:
        """Make it.

        Args:
            where: A host and a mode.
            parts: The model's script and fields, `window` among them, and fields of the chain or the engine.
        """
        host, mode = where.split()
        script = {"draft": ("unanswerable",), "final": langchain_parts.FINAL, "window": None}
        fields = (langchain_parts.ScriptedModel.model_fields.keys() | {"window"}) - {"name"}
        script |= {name: parts.pop(name) for name in tuple(parts) if name in fields}
        self.llm = parts.setdefault("llm", model(where, **script))
        self.asker: Asker
        if host == "langchain":
            self.asker = LangChainAsker(langchain_parts.a_chain(**parts), mode)
        else:
            self.asker = LlamaIndexAsker(llamaindex_parts.an_engine(**parts, streaming=mode in STREAMS), mode)
        self.ask = self.asker.ask

    @property
    def steps(self) -> list[Route]:
        """The steps that the model was asked for."""
        return [call.step for call in self.llm.calls]

    @property
    def prompts(self) -> list[str]:
        """What it was asked."""
        return [call.prompt for call in self.llm.calls]
