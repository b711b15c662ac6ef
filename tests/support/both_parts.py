"""One question through either framework in any mode, in the words of neither."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document as LangChainDocument
from llama_index.core.schema import Document as LlamaIndexDocument

import langchain_parts
import llamaindex_parts
from scenarios import QUESTION
from steering import Steered

LANGCHAIN = [f"langchain {mode}" for mode in langchain_parts.MODES]
LLAMAINDEX = [f"llamaindex {mode}" for mode in llamaindex_parts.MODES]
EVERYWHERE = [*LANGCHAIN, *LLAMAINDEX]
SYNC = [where for where in EVERYWHERE if not where.split()[1].startswith("a")]
AWAITED = [where for where in EVERYWHERE if where not in SYNC]


@dataclass
class Outcome:
    """What a question came to."""

    answer: str
    route: str
    answerable: bool
    finish_reason: str | None
    decision: dict[str, Any]
    usage: dict[str, Any]
    read: list[str]
    calls: list[Any]  # of the model

    @property
    def steps(self) -> list[str]:
        """The steps that the model was asked for."""
        return [call.step for call in self.calls]


async def outcome(where: str, scenario: Steered, **fields: Any) -> Outcome:
    """Ask the question of a scenario."""
    framework, mode = where.split()
    if framework == "langchain":
        chain = langchain_parts.steered_chain(scenario, **fields)
        result = await langchain_parts.ask(chain, QUESTION, mode)
        read = [document.page_content for document in result.pop("context")]
        kept = {key: result[key] for key in ("answer", "route", "answerable", "finish_reason", "decision", "usage")}
        return Outcome(**kept, read=read, calls=chain.llm.calls)
    engine = llamaindex_parts.steered_engine(scenario, mode, **fields)
    asked = await llamaindex_parts.ask(engine, QUESTION, mode)
    calls = llamaindex_parts.model_of(engine).calls
    ended = asked.metadata["finish_reason"]
    return Outcome(asked.text, asked.route, asked.answerable, ended, asked.decision, asked.usage, asked.sources, calls)


def document(where: str, text: str) -> Any:
    """A document of the framework."""
    return LangChainDocument(text) if where in LANGCHAIN else LlamaIndexDocument(text=text)


def reading(texts: Sequence[str], where: str, log: list[Any]) -> Callable[..., Any]:
    """A callable that returns documents and logs each reading."""

    def read(*given: Any) -> list[Any]:
        log.append(given)
        time.sleep(0.002)  # so that threads would meet
        return [document(where, text) for text in texts]

    return read
