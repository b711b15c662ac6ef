"""Lead a recorded question through the real chain, with the recorded replies as its models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import RunnableLambda

from langchain_selfroute import SelfRouteChain
from selfroute.policies import Never

STEPS = ("rag", "sections", "long_context")
SECTION_TOKENS = 3_000
"""As much as the recorded prompts for sections held; at most half of each recorded document."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What was recorded of one question.

    Attributes:
        question: The question.
        passages: The passages of the draft, best first.
        document: The text of the document.
        replies: The reply of each step as the model wrote it, with its numbers if it was asked for them. If there is
            none for sections, the chain is asked without them, so that the document is read at once.
    """

    question: str
    passages: Sequence[str]
    document: str
    replies: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Replay:
    """What the chain made of a question.

    Attributes:
        ran: The steps that ran.
        shown: The step whose reply is shown.
        answers: Whether that reply answers.
        characters: Those of all prompts that were sent.
        read: Where in the document the sections stand that the shown reply is made from; empty if it is not.
    """

    ran: tuple[str, ...]
    shown: str
    answers: bool
    characters: int
    read: tuple[tuple[int, int], ...]

    def skips(self, counted: Sequence[str]) -> bool:
        """Return whether the document was read at once, since it is short, where other steps have sections."""
        return self.ran == ("rag", "long_context") and "sections" in counted


def with_numbers(text: str, *numbers: float | None) -> str:
    """Return a reply with its numbers in front, 0 for a later one that is missing; as it is if the first one is."""
    if not numbers or numbers[0] is None:
        return text
    return " ".join(str(round(number or 0)) for number in numbers) + f"\n{text}"


def ask(recording: Recording, options: Mapping[str, Any]) -> Replay:
    """Ask the chain the question.

    Args:
        recording: The question and the replies.
        options: Fields of the chain: `answerability`, `doubt_below`, `stop_below`, `escalation`, `start`, `sections`,
            `max_documents`.
    """
    replies, sent = recording.replies, list[int]()
    passages = [Document(text, metadata={"source": "document"}) for text in recording.passages]
    if "sections" not in replies:
        options = _without_sections(options)
    chain = SelfRouteChain(
        retriever=RunnableLambda(lambda _: passages),
        llm=_model([replies["rag"], replies.get("sections", "")], sent),
        long_context_llm=_model([replies["long_context"]], sent),
        documents=lambda _: [Document(recording.document, metadata={"source": "document"})],
        **options,
    )
    result = chain.invoke(recording.question)
    usage: Mapping[str, Any] = result["usage"]
    ran = tuple(step for step in STEPS if usage[step])
    of_sections = result["context"] if result["route"] == "sections" else ()
    places = (document.metadata["selfroute"] for document in of_sections)
    read = tuple((place["start"], place["end"]) for place in places)
    return Replay(ran, result["route"], result["answerable"], sum(sent), read)


def options_of(
    strategy: str, *, doubt_below: int | tuple[int, int] = 0, stop_below: int = 0, sections: int = SECTION_TOKENS
) -> dict[str, Any]:
    """Return the options of a chain that make it follow a strategy."""
    if strategy == "rag":
        return {"escalation": Never()}
    if strategy == "long_context":
        return {"start": "long_context"}
    graded = {"answerability": "graded", "doubt_below": doubt_below, "stop_below": stop_below}
    reads = {"sections": sections} if strategy.endswith("sections") else {}
    return {**(graded if strategy.startswith("graded") else {}), **reads}


def _without_sections(options: Mapping[str, Any]) -> dict[str, Any]:
    doubt = options.get("doubt_below")
    return {**options, "sections": None, "doubt_below": doubt[0] if isinstance(doubt, tuple) else doubt}


def _model(replies: Sequence[str], sent: list[int]) -> RunnableLambda[PromptValue, AIMessage]:
    """Return a model that gives these replies in turn, and notes how long its prompts are."""
    waiting = iter(replies)

    def reply(prompt: PromptValue) -> AIMessage:
        sent.append(sum(len(message.content) for message in prompt.to_messages()))
        return AIMessage(next(waiting))

    return RunnableLambda(reply)
