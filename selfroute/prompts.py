"""The default prompts, after the paper's (section 4.2 and Table 9).

Both have the variables `{context}`, `{question}` and `{refusal}`; an adapter renames them for its framework. The
question comes last, so that the documents of the second step are part of a prefix that providers can cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from selfroute.errors import ConfigurationError

RAG = """\
Passages from a longer text:

{context}

Answer the question from these passages only, as briefly as a complete answer allows. Write {refusal} if \
the question cannot be answered based on the passages: exactly this word and nothing else.

Question: {question}
Answer:"""

LONG_CONTEXT = """\
Read the following text:

{context}

Answer the question from this text only, as briefly as a complete answer allows. Write {refusal} if the \
question cannot be answered based on the text: exactly this word and nothing else.

Question: {question}
Answer:"""


def documents_in(texts: Sequence[str], names: Sequence[Any]) -> str:
    """Join several documents, each under its number and its name; return the text alone if there is only one.

    Args:
        texts: The texts of the documents.
        names: The name of each document; None if it is not known.
    """
    if len(texts) < 2:  # noqa: PLR2004
        return "".join(texts)
    heads = [f"Document {n}" if name is None else f"Document {n}: {name}" for n, name in enumerate(names, 1)]
    return "\n\n".join(f"{head}\n{text}" for head, text in zip(heads, texts, strict=True))


def refusal_of(value: Any) -> str:
    """Return the refusal as a model is asked to write it: without white space around it.

    Raises:
        ConfigurationError: It is not text, or contains no letter or digit.
    """
    if not isinstance(value, str) or not any(character.isalnum() for character in value):
        msg = "refusal must be a word or words that a model can write, such as 'unanswerable'"
        raise ConfigurationError(msg)
    return value.strip()
