"""Answers questions about a library by a chain, and says where in the files the answers stand."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.documents import Document

from langchain_selfroute import SelfRouteChain, SelfRouteLedger
from selfroute.calls.plan import reach_of
from selfroute.calls.settings import DEFAULTS
from selfroute_workbench.command.citing import FileCitation, FilePassage, FileRead, files_read, in_files, passages_in
from selfroute_workbench.command.library import Library
from selfroute_workbench.command.models import Models
from selfroute_workbench.command.options import Options

Show = Callable[[str, str], object]


@dataclass(frozen=True, slots=True)
class Output:
    """An answer, and how it came about."""

    question: str
    answer: str
    route: str
    answerable: bool
    decision: Mapping[str, Any]
    usage: Mapping[str, Any]
    passages: Sequence[FilePassage]
    read: Sequence[FileRead]
    citations: Sequence[FileCitation] = ()


class Session:
    """Answers questions by a chain; one of your own needs no more than `__init__` does."""

    def __init__(self, library: Library, models: Models, typed: Options, chain: Mapping[str, Any]) -> None:
        """Build the chain by options of the command and of the chain."""
        self.ledger = SelfRouteLedger()
        self._texts, self._k = library.texts, typed.k
        self.chain = SelfRouteChain(
            retriever=library.retriever(reach_of(typed.k, None, sections=chain.get("sections", DEFAULTS.sections))),
            llm=models.llm,
            long_context_llm=models.long_context_llm,
            documents=library.documents,
            draft_passages=typed.k,
            priced_as=typed.priced_as,
            **{"citations": True, **chain},
        )
        self._counted = self.chain.with_config(callbacks=[self.ledger])

    def ask(self, question: str) -> Output:
        """Answer a question."""
        return self.output(self._counted.invoke(question))

    def output(self, output: Mapping[str, Any]) -> Output:
        """Return an output of the chain, with places in the files."""
        context: Sequence[Document] = output["context"]
        return Output(
            question=output["input"],
            answer=output["answer"],
            route=output["route"],
            answerable=output["answerable"],
            decision=output["decision"],
            usage=output["usage"],
            passages=passages_in(output["retrieved"][: self._k], self._texts),
            read=files_read(output["route"], context, self._texts),
            citations=in_files(output["citations"], [one.metadata for one in context], self._texts),
        )

    def stream(self, question: str, show: Show) -> Output:
        """Answer a question piece by piece; `show` is called with the route and the next piece, at least once."""
        output: Any = None
        chunks = self._counted.stream(question)
        with closing(cast("Generator[Any, None, None]", chunks)):  # else the model goes on when one leaves
            for chunk in chunks:
                output = chunk if output is None else output + chunk
                show(output["route"], chunk.get("answer", ""))
        return self.output(output)

    async def aask(self, question: str, begun: Callable[[str], Awaitable[object]]) -> Output:
        """Answer a question asynchronously; cancelling this stops the model, and no other is asked."""
        output: dict[str, Any] = {}
        pieces: list[str] = []
        chunks = self.chain.astream(question, {"callbacks": [self.ledger]})
        async with aclosing(cast("AsyncGenerator[Any, None]", chunks)):
            async for chunk in chunks:
                if not output:
                    await begun(chunk["route"])
                output |= chunk
                pieces.append(chunk.get("answer", ""))
        return self.output({**output, "answer": "".join(pieces)})
