"""Lead a recorded question through the real chain, with the recorded replies as its models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda

from langchain_selfroute import SelfRouteChain
from selfroute.policies import Never

STEPS = ("rag", "wider", "long_context")


@dataclass(frozen=True, slots=True)
class Recording:
    """What was recorded of one question.

    Attributes:
        question: The question.
        passages: The passages of the draft, best first.
        replies: The reply of each step as the model wrote it, with its numbers if it was asked for them; a wider look
            that was not recorded is left out, and then it finds nothing, so that the documents are read at once.
    """

    question: str
    passages: Sequence[str]
    replies: Mapping[str, str]


def graded_text(text: str, *, prospect: float | None, confidence: float | None) -> str:
    """Return a reply with its two numbers in front; as it is if the model was not sure of anything.

    Where only the second was asked for, the first is taken as 100, so that nothing stops for it.
    """
    if prospect is None and confidence is None and text.strip() != "unanswerable":
        return text
    return f"{100 if prospect is None else round(prospect)} {round(confidence or 0)}\n{text}"


def steps_of(recording: Recording, options: Mapping[str, Any]) -> tuple[tuple[str, ...], str, bool]:
    """Ask the chain the question.

    Args:
        recording: The question and the replies.
        options: Fields of the chain: `answerability`, `doubt_below`, `stop_below`, `escalation`, `start`; and `widen`,
            whether there is a wider look.

    Returns:
        The steps that ran, the one whose reply is shown, and whether it answers.
    """
    replies = recording.replies
    passages = [Document(text) for text in recording.passages]
    wider = [*passages, *(Document(f"Another passage, {number}.") for number in range(11))]
    drafts = _in_turn(replies["rag"], replies.get("wider"))
    chain = SelfRouteChain(
        retriever=RunnableLambda(lambda _: passages),
        llm=RunnableLambda(lambda _: AIMessage(next(drafts))),
        long_context_llm=RunnableLambda(lambda _: AIMessage(replies["long_context"])),
        documents=lambda _: [Document("The whole document.")],
        **{
            **options,
            "widen": RunnableLambda(lambda _: wider if "wider" in replies else []) if options.get("widen") else None,
        },
    )
    result = chain.invoke(recording.question)
    ran = tuple(step for step in STEPS if result["usage"][step])
    return ran, result["route"], result["answerable"]


def options_of(strategy: str, *, doubt_below: int = 0, stop_below: int = 0) -> dict[str, Any]:
    """Return the options of a chain that make it follow a strategy."""
    if strategy == "rag":
        return {"escalation": Never()}
    if strategy == "long_context":
        return {"start": "long_context"}
    graded = {"answerability": "graded", "doubt_below": doubt_below, "stop_below": stop_below}
    return {**(graded if strategy.startswith("graded") else {}), "widen": strategy.endswith("wider")}


def _in_turn(*replies: str | None) -> Iterator[str]:
    yield from (reply for reply in replies if reply is not None)
