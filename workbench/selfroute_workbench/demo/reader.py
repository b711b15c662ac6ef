"""The extractive reader: a stand-in for a language model when there is no API key; not a model itself."""

from __future__ import annotations

import re
from dataclasses import dataclass

from selfroute_workbench.demo.sentences import pick, take_apart

NAME = "extractive-reader"
REFUSAL = "unanswerable"
_THRESHOLD = 0.35
_ASKS_FOR_TWO, _ASKS_FOR_ONE = "two numbers from 0 to 100", "a number from 0 to 100"
_LOWEST, _HIGHEST = 0.1, 0.6  # the shares that it calls 0 and 100


@dataclass(frozen=True, slots=True)
class StandInReply:
    """A reply of the stand-in for a model."""

    text: str
    input_tokens: int | None = None
    output_tokens: int = 0

    @property
    def words(self) -> list[str]:
        """The text in pieces, to stream it."""
        return re.findall(r"\s*\S+", self.text)


def reply(prompt: str) -> StandInReply:
    r"""Answer with the sentence of a prompt that shares most words with its question. This is not a language model.

    It understands nothing: it returns that sentence, or the refusal if it shares too little. It is good for trying the
    routing without a key, not for judging answers. `with_langchain` and `with_llamaindex` make a model of it.

    Where the prompt asks for two numbers from 0 to 100 (graded answerability), both say how much the sentence shares,
    from 0 at a tenth to 100 at 0.6; the second is 0 if it declines. Where it asks for one (sections), an answer begins
    with it. They do not say whether the text holds the answer, so they show the routing and nothing else.

    Of the 30 questions that come with the package it answers 3 from passages, one of which has no answer, and declines
    the others. This says nothing about other texts.

    Args:
        prompt: A context, and after it a line `Question: ...`.

    Example:
        >>> reply("The pier was closed in May. It rained.\n\nQuestion: When was the pier closed?\nAnswer:").text
        'The pier was closed in May.'
    """
    question, context, instruction = take_apart(prompt, refusal=REFUSAL)
    found = pick(question, context)
    share = found.share if found else 0.0
    answers = found is not None and share >= _THRESHOLD
    text = found.text if found and answers else REFUSAL
    nearness = round(100 * min(max((share - _LOWEST) / (_HIGHEST - _LOWEST), 0.0), 1.0))
    if _ASKS_FOR_TWO in instruction:
        text = f"{nearness} {nearness if answers else 0}\n{text}"
    elif _ASKS_FOR_ONE in instruction and answers:
        text = f"{nearness}\n{text}"
    return StandInReply(text, _tokens(prompt), _tokens(text))


def _tokens(text: str) -> int:
    return -(-len(text) // 4)
