"""Finding the sentence of a text that is nearest to a question; no framework, no language model."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np
from numpy.typing import NDArray

Embed = Callable[[list[str]], Sequence[Sequence[float]]]

_END = re.compile(r"(?<=[.!?])[\"'”’)\]]*\s+(?=[\"'“‘(\[]*[A-Z0-9À-Þ])")  # noqa: RUF001
_ABBREVIATION = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|St|No|Nos|Prof|Capt|Sgt|Rev|Sr|Jr|vs|etc|cf|ca|[A-Z])|e\.g|i\.e)\.$")
_HEADING = re.compile(r"#{1,6}\s")
_ITEM = re.compile(r"(?:[-*+]|\d{1,3}[.)])\s+|\||>\s*")
_RUN_IN = re.compile(r"^\*\*[^*]+[.:]\*\*\s+|^\*\*[^*]+\*\*[.:]\s+")
_EMPHASIS = re.compile(r"\*\*|__|(?<!\w)[*_](?=\w)|(?<=[\w.,;!?])[*_](?!\w)|`")
_RULE = re.compile(r"[\s|:=*_-]+$")
_LEANS_BACK = re.compile(r"(?:He|She|It|They|This|That|These|Those|His|Her|Its|Their)\b")
_QUESTION = re.compile(r"^(?:Question|Query):", re.MULTILINE)
_ANSWER = re.compile(r"\n\s*Answer:\s*$")
_LONGEST_HEADING = 80
_SHORTEST = 3


@dataclass(frozen=True, slots=True)
class Pick:
    """The sentence nearest to a question, and the cosine of the angle between the two."""

    text: str
    cosine: float


def take_apart(prompt: str, *, refusal: str) -> tuple[str, str]:
    """Return the question and the context of a prompt, without the instruction.

    Args:
        prompt: A context, and after it a paragraph `Question: ...` or `Query: ...` and perhaps `Answer:`. A paragraph
            next to the context that ends with a colon or names the refusal is the instruction.
        refusal: The word by which the model declines.
    """
    starts = list(_QUESTION.finditer(prompt))
    if not starts:
        return "", prompt
    after = prompt[starts[-1].end() :].strip()  # the last: a document may hold others
    question = _ANSWER.sub("", after.split("\n\n")[0]).strip()
    blocks = prompt[: starts[-1].start()].strip().split("\n\n")
    if refusal in blocks[-1]:
        blocks.pop()
    if blocks and (blocks[0].rstrip().endswith(":") or refusal in blocks[0]):
        blocks.pop(0)
    return question, "\n\n".join(blocks)


def split_sentences(text: str) -> Iterator[str]:
    """Split a text, plain or Markdown, into sentences; headings, rules and bare labels are none.

    A sentence that opens with a pronoun comes with the one before it.
    """
    for block in re.split(r"\n\s*\n", text):
        lines = [line.strip() for line in block.splitlines()]
        lines = [line for line in lines if line and not _RULE.match(line) and not _HEADING.match(line)]
        if len(lines) == 1 and _is_label(lines[0]):
            continue
        for unit in _units(lines):
            yield from _sentences(_EMPHASIS.sub("", _RUN_IN.sub("", unit)))


def _is_label(line: str) -> bool:
    """Whether a line that stands alone is a heading without a mark."""
    return len(line) <= _LONGEST_HEADING and not _ITEM.match(line) and line[-1] not in ".!?\"”’')"  # noqa: RUF001


def _units(lines: Iterable[str]) -> list[str]:
    """Join the lines of a paragraph; an item of a list and a row of a table stay apart."""
    units: list[str] = []
    for line in lines:
        if units and not _ITEM.match(line):
            units[-1] += f" {line}"
        else:
            units.append(line)
    return [unit[found.end() :].rstrip("| ") if (found := _ITEM.match(unit)) else unit for unit in units]


def _sentences(unit: str) -> Iterator[str]:
    before = held = ""
    for piece in [*_END.split(unit), ""]:
        if piece and (not held or _ABBREVIATION.search(held)):
            held = f"{held} {piece}".strip()
            continue
        if len(held.split()) >= _SHORTEST:
            yield f"{before} {held}" if before and _LEANS_BACK.match(held) else held
        before, held = held, piece


class SentencePicker:
    """Picks the sentence that is nearest to a question by the cosine of their embeddings.

    Embeddings of sentences are kept, so that a document that is read for many questions is embedded once.
    """

    def __init__(self, embed: Embed, *, cache_size: int = 50_000) -> None:
        """Make a picker.

        Args:
            embed: Turns texts into vectors, all of one length.
            cache_size: How many sentences' vectors are kept (1.5 kB each with 384 dimensions).
        """
        self._embed = embed
        self._cache_size = cache_size
        self._cache: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self._lock = Lock()

    def pick(self, question: str, text: str) -> Pick | None:
        """Return the sentence of a text that is nearest to a question, None if the text has no sentence."""
        sentences = list(dict.fromkeys(split_sentences(text)))
        if not sentences or not question.strip():
            return None
        with self._lock:  # one text is embedded by one thread: the others find it in the cache
            vectors = self._vectors([question, *sentences])
        cosines = vectors[1:] @ vectors[0]
        best = int(np.argmax(cosines))
        return Pick(sentences[best], float(cosines[best]))

    def _vectors(self, texts: list[str]) -> NDArray[np.float32]:
        """Return unit vectors, one row per text."""
        # By length: a batch of texts that are alike takes less time.
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
