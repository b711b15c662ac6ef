"""Finds the sentence of a text that shares most with a question, by words; no framework, no model."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from selfroute.documents.index import stems_of
from selfroute.documents.sections import telling_stems

_QUESTION = re.compile(r"^(?:Question|Query):", re.MULTILINE)
_BLOCKS = re.compile(r"\n\s*\n|\n(?=[-|>#]|\d+\. )")  # paragraphs, and the lines of lists and tables
_SENTENCES = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"])")
_SHORTEST = 3  # words


@dataclass(frozen=True, slots=True)
class Pick:
    """The sentence that shares most with a question, and how much: from 0 to 1, where rare words count for more."""

    text: str
    share: float


def take_apart(prompt: str, *, refusal: str) -> tuple[str, str, str]:
    """Return the question, the context and the instruction of a prompt."""
    starts = list(_QUESTION.finditer(prompt))
    if not starts:
        return "", prompt, ""
    after = prompt[starts[-1].end() :].strip()  # the last one: a document may contain others
    question = after.split("\n\n")[0].removesuffix("Answer:").strip()
    blocks = prompt[: starts[-1].start()].strip().split("\n\n")
    instruction = [blocks.pop()] if refusal in blocks[-1] else []
    if blocks and (blocks[0].rstrip().endswith(":") or refusal in blocks[0]):
        instruction.insert(0, blocks.pop(0))
    return question, "\n\n".join(blocks), "\n\n".join(instruction)


def split_sentences(text: str) -> Iterator[str]:
    """Split a text, plain or Markdown, into sentences, without headings and emphasis; roughly: "Dr." ends one, too."""
    for block in _BLOCKS.split(text.replace("*", "")):
        if not block.lstrip().startswith("#"):
            sentences = _SENTENCES.split(" ".join(block.split()).strip("-|> "))
            yield from (sentence for sentence in sentences if len(sentence.split()) >= _SHORTEST)


def pick(question: str, text: str) -> Pick | None:
    """Return the sentence of a text that shares most with a question; None if the text has no sentence."""
    sentences = list(dict.fromkeys(split_sentences(text)))
    if not sentences or not question.strip():
        return None
    asked = telling_stems(question)
    shared = [asked.intersection(stems_of(sentence)) for sentence in sentences]
    counts = Counter(stem for stems in shared for stem in stems)
    worth = {stem: math.log(1 + (len(sentences) - counts[stem] + 0.5) / (counts[stem] + 0.5)) for stem in asked}
    scores = [sum(map(worth.__getitem__, sorted(stems))) for stems in shared]
    best = max(range(len(sentences)), key=scores.__getitem__)
    return Pick(sentences[best], scores[best] / (sum(worth.values()) or 1.0))
