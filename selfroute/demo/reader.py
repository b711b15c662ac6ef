"""The extractive reader: a stand-in for a language model when there is no API key; not a model itself."""

from __future__ import annotations

import re
from dataclasses import dataclass

from selfroute.demo.sentences import Embed, SentencePicker, take_apart

NAME = "extractive-reader"
REFUSAL = "unanswerable"
THRESHOLD = 0.57
_ASKS_FOR_TWO, _ASKS_FOR_ONE = "two numbers from 0 to 100", "a number from 0 to 100"
_LOWEST, _HIGHEST = 0.3, 0.7  # the cosines that it calls 0 and 100


@dataclass(frozen=True, slots=True)
class StandInReply:
    """A reply of the stand-in for a model.

    Attributes:
        text: The reply.
        input_tokens: The tokens of the prompt; None if they were not counted.
        output_tokens: The tokens of the reply.
    """

    text: str
    input_tokens: int | None = None
    output_tokens: int = 0

    @property
    def words(self) -> list[str]:
        """The text in pieces, to stream it."""
        return re.findall(r"\s*\S+", self.text)


class Reader:
    r"""Answers with the sentence of the prompt that is nearest to its question. It is not a language model.

    It understands nothing: it embeds the question and every sentence of the context, and returns the nearest
    sentence, or the refusal word if even that is not near enough. It is good for trying the routing without a key, not
    for judging answers. `with_langchain` and `with_llamaindex` make a model of it.

    Where the prompt asks for two numbers from 0 to 100 (graded answerability), both are the cosine of the nearest
    sentence, from 0 at 0.3 to 100 at 0.7; the second is 0 if it declines. Where it asks for one (sections), an answer
    begins with it. They say how near that sentence is, not whether the text holds the answer, so they show the routing
    and nothing else. With these thresholds no answer has
    less than 67: to see a doubt, raise its bound above that.

    The default threshold was chosen with the 30 questions that come with the package, all-MiniLM-L6-v2 and five
    passages: at 0.57 it answers 15 of them from the passages and 2 from the whole documents, and declines 13, among
    them all 6 that the documents do not answer; from 0.55 down it answers some of those 6. This says nothing about
    other texts or other embeddings.

    Example:
        >>> reader = Reader(lambda texts: [[float("pier" in text), 0.1] for text in texts])
        >>> reader.reply("The pier was closed in May. It rained.\n\nQuestion: When was the pier closed?\nAnswer:").text
        'The pier was closed in May.'
    """

    def __init__(self, embed: Embed) -> None:
        """Make a reader.

        Args:
            embed: Turns texts into vectors, all of one length.
        """
        self._picker = SentencePicker(embed)

    def reply(self, prompt: str, *, threshold: float = THRESHOLD, refusal: str = REFUSAL) -> StandInReply:
        """Answer a prompt.

        Args:
            prompt: A context, and after it a line `Question: ...`.
            threshold: The cosine below which it declines.
            refusal: What it writes to decline.
        """
        question, context, instruction = take_apart(prompt, refusal=refusal)
        pick = self._picker.pick(question, context)
        answers = pick is not None and pick.cosine >= threshold
        text = pick.text if pick and answers else refusal
        nearness = _nearness(pick.cosine if pick else 0.0)
        if _ASKS_FOR_TWO in instruction:
            text = f"{nearness} {nearness if answers else 0}\n{text}"
        elif _ASKS_FOR_ONE in instruction and answers:
            text = f"{nearness}\n{text}"
        return StandInReply(text, _tokens(prompt), _tokens(text))


def _nearness(cosine: float) -> int:
    return round(100 * min(max((cosine - _LOWEST) / (_HIGHEST - _LOWEST), 0.0), 1.0))


def _tokens(text: str) -> int:
    return -(-len(text) // 4)
