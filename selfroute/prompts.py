"""The default prompts, after the paper's (section 4.2 and Table 9), and those that ask for numbers first.

All have the variables `{context}`, `{question}` and `{refusal}`; an adapter renames them for its framework. The
question comes last, so that the documents of the last step are part of a prefix that providers can cache.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from selfroute.errors import ConfigurationError

CHECK_QUESTION = "What is this document about?"
"""The question of `check()` where the user passes none: one that may find anything."""

RAG = """\
Passages from a longer text:

{context}

Answer the question from these passages only, as briefly as a complete answer allows. Write {refusal} if \
the question cannot be answered based on the passages: exactly this word and nothing else.

Question: {question}
Answer:"""

NUMBERS = """\
On the first line write two numbers from 0 to 100 with a space between: first, how likely it is that the longer text, \
read as a whole, holds an answer to the question; second, how likely it is that somebody who reads the whole longer \
text would give the same answer as you give from these passages (0 if you give none). From the second line on write \
the answer, or only the word {refusal} if the question cannot be answered based on the passages."""
"""The instruction of graded answerability."""

CONFIDENCE = """\
On the first line write a number from 0 to 100: how likely it is that somebody who reads the whole longer text, and \
not only these passages, would give the same answer. From the second line on write the answer. If the question cannot \
be answered based on the passages, write on the first line, in place of that number, how likely it is, from 0 to 100, \
that the whole longer text holds an answer to the question, and on the second line only the word {refusal}."""
"""The instruction for sections, with graded answerability."""

GRADED = f"""\
Passages from a longer text:

{{context}}

Answer the question from these passages only, as briefly as a complete answer allows. {NUMBERS}

Question: {{question}}
Answer:"""

SECTIONS = f"""\
Passages from a longer text:

{{context}}

Answer the question from these passages only, as briefly as a complete answer allows. {CONFIDENCE}

Question: {{question}}
Answer:"""

LONG_CONTEXT = """\
Read the following text:

{context}

Answer the question from this text only, as briefly as a complete answer allows. Write {refusal} if the \
question cannot be answered based on the text: exactly this word and nothing else.

Question: {question}
Answer:"""

ASKS_FOR_NUMBERS = (
    "a {} that asks for two numbers from 0 to 100 on the first line of the reply: how likely the whole text holds an "
    "answer, and how likely the answer would stay the same; selfroute.prompts.GRADED shows how"
)
JUDGED_AS_TEXT = (
    "your rag_prompt does not ask for the two numbers of answerability='graded', so replies are judged as text "
    "(answerability='text')"
)
ASK_FOR_THEM = (
    "add them as selfroute.prompts.GRADED does, or pass instructions= in place of the prompt; if it asks for them "
    "where we cannot see it, pass answerability='graded'"
)
NO_NUMBERS = f"{JUDGED_AS_TEXT}: {ASK_FOR_THEM}"
"""What is logged, and said by `check()`, where the default degrades for a prompt of the user's."""

_SCALE = re.compile(r"(?<!\d)0(?!\d)[^\d]{1,40}100(?!\d)|(?<!\d)100(?=\s*([.,;:)]|$))")  # not 100 words, 100 %
INSTRUCTIONS = "{instructions}\n\n"
"""What precedes a default prompt where there are instructions of the user's."""

_MAX_NAME = 200  # characters of a document's name in its heading
_MAX_VALUE = 2_000  # characters of another value of its metadata
_BREAKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")  # what ends a line anywhere, and other control characters


def one_line(text: str, *, most: int = _MAX_VALUE) -> str:
    """Return a text as one line of a bounded length, so that it cannot pass for several lines of a prompt.

    Args:
        text: The text.
        most: The limit in characters; what is cut off is marked by an ellipsis.
    """
    if len(text) <= most and text.isprintable():
        return text
    line = _BREAKS.sub(" ", text[: 2 * most]).strip()
    return line if len(line) <= most and len(text) <= 2 * most else f"{line[: most - 1]}…"


def sendable(text: str) -> str:
    """Return a text that a client can send: halves of surrogate pairs, as PDF readers give them, become U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def in_prompt(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return metadata as a prompt may show them: each key, and each value that is text, as one line."""
    shown = {_shown(key): _shown(value) for key, value in metadata.items()}
    return metadata if shown == metadata else shown


def _shown(value: Any) -> Any:
    return one_line(value) if isinstance(value, str) else value


def documents_in(texts: Sequence[str], names: Sequence[Any]) -> str:
    """Join several documents, each under its number and its name; return the text alone if there is only one.

    Args:
        texts: The texts of the documents.
        names: The name of each document, of which a heading shows one line; None if it is not known.
    """
    if len(texts) < 2:  # noqa: PLR2004
        return "".join(texts)
    known = ["" if name is None else one_line(str(name), most=_MAX_NAME) for name in names]
    heads = [f"Document {n}: {name}" if name else f"Document {n}" for n, name in enumerate(known, 1)]
    return "\n\n".join(f"{head}\n{text}" for head, text in zip(heads, texts, strict=True))


def check_instructions(*, rag_prompt: bool, long_context_prompt: bool) -> None:
    """Check that neither prompt is the user's own, since instructions precede only the default ones.

    Raises:
        ConfigurationError: One is.
    """
    if rag_prompt or long_context_prompt:
        own = "rag_prompt" if rag_prompt else "long_context_prompt"
        msg = f"instructions= goes before the default prompts, and {own} is your own: put the text into it"
        raise ConfigurationError(msg)


def check_asks_for_numbers(name: str, text: str) -> None:
    """Check that a prompt asks for the two numbers of graded answerability.

    Raises:
        ConfigurationError: It does not say, in any language, that they go to 100.
    """
    if not _SCALE.search(text):
        msg = f"answerability='graded' needs {ASKS_FOR_NUMBERS.format(name)}"
        raise ConfigurationError(msg)
