"""Find what the prompts of all questions on the same documents have in common: all up to the documents' end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b


@dataclass(frozen=True, slots=True)
class Prefix:
    """The beginning of a prompt, up to the end of the documents.

    Attributes:
        texts: The texts of the messages, of which the last ends with the documents.
    """

    texts: tuple[str, ...]

    @property
    def message(self) -> int:
        """The position of the message with the documents."""
        return len(self.texts) - 1

    @property
    def end(self) -> int:
        """Where the documents end in that message."""
        return len(self.texts[-1])

    @property
    def characters(self) -> int:
        """The length of the whole prefix."""
        return sum(map(len, self.texts))

    def digest(self) -> str:
        """Return what identifies the prefix, without saying anything of its text: 32 hexadecimal digits."""
        found = blake2b(digest_size=16)
        for text in self.texts:
            found.update(f"{len(text)} {text}".encode("utf-8", "surrogatepass"))
        return found.hexdigest()


def prefix_in(messages: Sequence[tuple[str, str | None]], *, context: str, question: str) -> Prefix | None:
    """Return what the prompts of all questions on the same documents have in common.

    Args:
        messages: The role and the text of each message of a prompt; None for a text in parts.
        context: The text of the documents in it.
        question: The question.

    Returns:
        The prefix; None if there is none: the documents do not occur, a conversation comes before them, or the question
        does.
    """
    before: list[str] = []
    for role, text in messages:
        if text is None or not context:
            return None
        at = text.find(context)
        head = text if at < 0 else text[:at]
        if question in head:
            return None
        if at >= 0:
            return Prefix((*before, text[: at + len(context)]))
        if role not in ("system", "developer"):
            return None
        before.append(text)
    return None
