"""The tree index of LlamaIndex as the sequel uses it (Li et al., 2025, section 3.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llama_index.core import TreeIndex
from llama_index.core.llms import CompletionResponse, CompletionResponseGen, CustomLLM, LLMMetadata
from llama_index.core.schema import TextNode
from pydantic import Field
from typing_extensions import override

from .found import Found, Retriever

_WINDOW = 8_000  # tokens that a prompt and its reply may take together
_REPLY = 500


class _Model(CustomLLM):
    """The model, as LlamaIndex calls it."""

    answer: Any = Field(exclude=True)

    @property
    @override
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=_WINDOW, num_output=_REPLY)

    @override
    def complete(self, prompt: str, formatted: bool = False, **options: Any) -> CompletionResponse:
        return CompletionResponse(text=self.answer(prompt))

    @override
    def stream_complete(self, prompt: str, formatted: bool = False, **options: Any) -> CompletionResponseGen:
        raise NotImplementedError  # nothing streams here


class TreeRetriever(Retriever):
    """Goes from summaries down to one chunk, as a model chooses: TreeIndex and its default, select_leaf.

    The model summarizes ten neighbours at a time, and for a question names one of the top summaries, then one of what
    that is of, down to a chunk. `k` is not used: one chunk is found, or none if the reply names no number.
    """

    def __init__(self, answer: Callable[[str], str]) -> None:
        """Take what answers the prompts of LlamaIndex, those for a summary and those for a choice."""
        super().__init__()
        self._model = _Model(answer=answer)

    @override
    def _index(self, chunks: Sequence[str]) -> TreeIndex:
        return TreeIndex([TextNode(id_=str(place), text=text) for place, text in enumerate(chunks)], llm=self._model)

    @override
    def _found(self, index: TreeIndex, question: str, k: int) -> list[Found]:
        found = index.as_retriever().retrieve(question)
        return [Found(int(item.node.node_id), item.node.get_content(), 0.0) for item in found]
