"""The extractive reader: a stand-in for a language model when there is no API key; not a model itself."""

from __future__ import annotations

import re
from dataclasses import dataclass

from selfroute.demo.sentences import Embed, SentencePicker, take_apart

NAME = "extractive-reader"
REFUSAL = "unanswerable"
THRESHOLD = 0.57


@dataclass(frozen=True, slots=True)
class ReaderReply:
    """A reply of the reader, with its tokens: a quarter of the characters, as there is no tokenizer."""

    text: str
    input_tokens: int
    output_tokens: int

    @property
    def words(self) -> list[str]:
        """The text in pieces, to stream it."""
        return re.findall(r"\s*\S+", self.text)


class Reader:
    r"""Answers with the sentence of the prompt that is nearest to its question. It is not a language model.

    It understands nothing: it embeds the question and every sentence of the context, and returns the nearest
    sentence, or the refusal word if even that is not near enough. It is good for trying the routing without a key, not
    for judging answers. `with_langchain` and `with_llamaindex` make a model of it.

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

    def reply(self, prompt: str, *, threshold: float = THRESHOLD, refusal: str = REFUSAL) -> ReaderReply:
        """Answer a prompt.

        Args:
            prompt: A context, and after it a line `Question: ...`.
            threshold: The cosine below which it declines.
            refusal: What it writes to decline.
        """
        question, context = take_apart(prompt, refusal=refusal)
        pick = self._picker.pick(question, context)
        text = pick.text if pick and pick.cosine >= threshold else refusal
        return ReaderReply(text, _tokens(prompt), _tokens(text))


def _tokens(text: str) -> int:
    return -(-len(text) // 4)
