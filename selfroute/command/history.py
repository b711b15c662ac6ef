"""What was said in a conversation, as far as the next question may refer to it."""

from __future__ import annotations

from dataclasses import dataclass

from selfroute.usage.tokens import count_tokens

MOST_TOKENS = 2000
"""How many tokens of the conversation go along with a question, at most."""


REWORD = (
    "Rewrite the question below so that it can be understood without the conversation above. "
    "Do not answer it. Write nothing but the question.\n\nQuestion: "
)


@dataclass(frozen=True, slots=True)
class Turn:
    """A question and its answer."""

    question: str
    answer: str


class History:
    """The latest questions and answers; the earliest are forgotten when they are too long together."""

    def __init__(self) -> None:
        self.turns: tuple[Turn, ...] = ()

    def add(self, question: str, answer: str) -> None:
        """Add a turn. A refusal is better left out: it would teach the model to write more of them."""
        half = MOST_TOKENS // 2
        self.turns = (*self.turns, Turn(_cut(question, half), _cut(answer, half)))
        while sum(count_tokens(turn.question) + count_tokens(turn.answer) for turn in self.turns) > MOST_TOKENS:
            self.turns = self.turns[1:]

    def clear(self) -> None:
        """Forget all."""
        self.turns = ()


def _cut(text: str, tokens: int) -> str:
    while (count := count_tokens(text)) > tokens:
        text = text[: len(text) * tokens // count]
    return text
