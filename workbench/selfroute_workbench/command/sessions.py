"""Answers questions about a library by a chain, and says where in the files the answers stand."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, cast

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import Runnable, RunnableLambda

from langchain_selfroute import SelfRouteChain, SelfRouteLedger
from selfroute.calls.settings import reach_of
from selfroute.usage.tokens import count_tokens
from selfroute_workbench.command.citing import FileCitation, FileRead, files_read, in_files
from selfroute_workbench.command.library import Library
from selfroute_workbench.command.models import Models

Show = Callable[[str, str], object]

_REWORD = (
    "Rewrite the question below so that it can be understood without the conversation above. "
    "Do not answer it. Write nothing but the question.\n\nQuestion: "
)


@dataclass(frozen=True, slots=True)
class Turn:
    """A question and its answer."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Output:
    """An answer, and how it came about.

    Attributes:
        question: The question.
        answer: The answer.
        route: The step that produced it.
        answerable: Whether the question was answered.
        decision: Why it took that route.
        usage: The tokens and the cost of all steps, and those of the long context alone.
        retrieved: The passages that the draft reads, nearest first; more may have been retrieved.
        read: The documents that were read, in the order in which the model was given them.
        citations: Where in the files the answer stands, best first.
    """

    question: str
    answer: str
    route: str
    answerable: bool
    decision: Mapping[str, Any]
    usage: Mapping[str, Any]
    retrieved: Sequence[Document]
    read: Sequence[FileRead]
    citations: Sequence[FileCitation] = ()


class Session:
    """Answers questions by a chain; one of your own needs no more than `__init__` does.

    Attributes:
        ledger: Adds up the tokens and the cost of the questions.
        chain: The chain.
    """

    def __init__(
        self, library: Library, models: Models, *, k: int, retrieved: list[str] | None = None, **options: Any
    ) -> None:
        """Build the chain.

        Args:
            library: What it answers from.
            models: The models.
            k: How many passages the draft reads.
            retrieved: The ids of the passages that are found for a question; if it is empty, they are looked up and
                put there. None to look them up for every question.
            options: More options of the chain.
        """
        self.ledger = SelfRouteLedger()
        self._texts, self._k, self._llm = library.texts, k, models.llm
        found: Runnable[str, Any] = library.retriever(reach_of(k, None, sections=options.get("sections")))
        if retrieved is not None:
            found = _same_again(library, found, retrieved)

        def build(retriever: Runnable[Any, Any]) -> SelfRouteChain:
            return SelfRouteChain(
                retriever=retriever,
                llm=models.llm,
                long_context_llm=models.long_context_llm,
                documents=library.documents,
                draft_passages=k,
                **{"citations": True, **options},
            )

        self.chain = build(found)
        self._counted = self.chain.with_config(callbacks=[self.ledger])
        # With a history, the passages are searched for by the question as it was reworded.
        self._talk = build(RunnableLambda(itemgetter("alone")) | found).with_config(callbacks=[self.ledger])

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
            retrieved=output["retrieved"][: self._k],
            read=files_read(output["route"], context, self._texts),
            citations=in_files(output["citations"], [one.metadata for one in context], self._texts),
        )

    def stream(self, question: str, show: Show, *, turns: Sequence[Turn] = (), alone: str | None = None) -> Output:
        """Answer a question piece by piece.

        Args:
            question: The question.
            show: Called with the route and the next piece of the answer, at least once.
            turns: What was said before; empty if the question begins a conversation.
            alone: The question as `reword` words it; None for the question itself.
        """
        output: Any = None
        talk = {"input": question, "chat_history": _messages(turns), "alone": alone or question}
        chunks = self._talk.stream(talk) if turns else self._counted.stream(question)
        with closing(cast("Generator[Any, None, None]", chunks)):  # else the model goes on when one leaves
            for chunk in chunks:
                output = chunk if output is None else output + chunk
                show(output["route"], chunk.get("answer", ""))
        return self.output(output)

    async def aask(self, question: str, begun: Callable[[str], Awaitable[object]]) -> Output:
        """Answer a question asynchronously; cancelling this stops the model, and no other is asked.

        Args:
            question: The question.
            begun: Called with the route, once, as soon as the answer begins.
        """
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

    def reword(self, question: str, turns: Sequence[Turn]) -> tuple[str, int]:
        """Have the model word a question so that it can be understood without what was said before.

        Returns:
            That question, and about how many tokens it took.
        """
        prompt = [*_messages(turns), HumanMessage(_REWORD + question)]
        alone = StrOutputParser().invoke(self._llm.invoke(prompt)).strip()
        tokens = sum(count_tokens(message.text) for message in prompt) + count_tokens(alone)
        return alone or question, tokens


def _same_again(library: Library, retriever: Runnable[str, Any], retrieved: list[str]) -> Runnable[str, list[Document]]:
    """Return a retriever that finds the passages of these ids, and first of all puts them there."""

    def find(question: str) -> list[Document]:
        if not retrieved:
            retrieved.extend(str(passage.id) for passage in retriever.invoke(question))
        return library.by_ids(retrieved)

    return RunnableLambda(find)


def _messages(turns: Sequence[Turn]) -> list[BaseMessage]:
    return [message for turn in turns for message in (HumanMessage(turn.question), AIMessage(turn.answer))]
