"""Finds the sentence of a text that is nearest to a question, by embeddings; no framework, no language model."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np
from numpy.typing import NDArray

Embed = Callable[[list[str]], Sequence[Sequence[float]]]

_QUESTION = re.compile(r"^(?:Question|Query):", re.MULTILINE)
_BLOCKS = re.compile(r"\n\s*\n|\n(?=[-|>#]|\d+\. )")  # paragraphs, and the lines of lists and tables
_SENTENCES = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"])")
_SHORTEST = 3  # words


@dataclass(frozen=True, slots=True)
class Pick:
    """The sentence nearest to a question, and the cosine of the angle between the two."""

    text: str
    cosine: float


def take_apart(prompt: str, *, refusal: str) -> tuple[str, str, str]:
    """Return the question, the context and the instruction of a prompt.

    Args:
        prompt: A context, and after it a paragraph `Question: ...` or `Query: ...` and perhaps `Answer:`. A paragraph
            next to the context that ends with a colon or contains the refusal is the instruction.
        refusal: The word by which the model declines.
    """
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


class SentencePicker:
    """Picks the sentence that is nearest to a question, by the cosine of their embeddings.

    Embeddings are cached, so that a document that is read for many questions is embedded once.
    """

    def __init__(self, embed: Embed, *, cache_size: int = 50_000) -> None:
        """Make a picker.

        Args:
            embed: Turns texts into vectors, all of one length.
            cache_size: How many sentences to cache (1.5 kB each with 384 dimensions).
        """
        self._embed = embed
        self._cache_size = cache_size
        self._cache: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self._lock = Lock()

    def pick(self, question: str, text: str) -> Pick | None:
        """Return the sentence of a text that is nearest to a question; None if the text has no sentence."""
        sentences = list(dict.fromkeys(split_sentences(text)))
        if not sentences or not question.strip():
            return None
        with self._lock:  # one thread embeds a text, and the others find it in the cache
            vectors = self._vectors([question, *sentences])
        cosines = vectors[1:] @ vectors[0]
        best = int(np.argmax(cosines))
        return Pick(sentences[best], float(cosines[best]))

    def _vectors(self, texts: list[str]) -> NDArray[np.float32]:
        """Return unit vectors, one row per text."""
        # By length: batches of texts that are about equally long take less time.
        missing = sorted((text for text in dict.fromkeys(texts) if text not in self._cache), key=len)
        if missing:
            made = np.asarray(self._embed(missing), dtype=np.float32)
            made /= np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-12)
            self._cache.update(zip(missing, made, strict=True))
        for text in texts:
            self._cache.move_to_end(text)
        rows = np.stack([self._cache[text] for text in texts])
        while len(self._cache) > self._cache_size:
            self._cache.popitem(last=False)
        return rows
