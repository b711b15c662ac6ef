"""A scripted model that writes questions about any document, and makes the mistakes that models make."""

from __future__ import annotations

import json
import re
import zlib
from typing import Any

from loopback import Request

KNOWN = "What is the capital of France?"
GUESSED = "Who is mentioned first of all?"
"""Said to be unanswerable, and answered by whoever sees the document."""


def is_writing(request: Request) -> bool:
    """Whether questions are to be written."""
    return "</document>" in request.prompt


class ScriptedWriter:
    """Asks about sentences, each time about others; with `mistakes`, every reply has some."""

    def __init__(self, *, mistakes: bool = False) -> None:
        self.mistakes, self.asked = mistakes, 0

    def __call__(self, request: Request) -> str:
        prompt = request.prompt
        if not is_writing(request):
            question = re.findall(r"Question: (.*)", prompt)[-1]
            return {KNOWN: "Paris", GUESSED: "The harbour master"}.get(question, "unanswerable")
        document = prompt.partition("<document>\n")[2].rpartition("\n</document>")[0]
        count = int(re.findall(r"Write (\d+) questions of one kind", prompt)[-1])
        return self.written(document, count, self.kind_in(prompt))

    def kind_in(self, prompt: str) -> str:
        """The kind that is asked for."""
        said = prompt.rpartition("of one kind. ")[2]
        starts = {"Each is answered by one": "local", "Each needs two": "steps", "Each needs the whole": "whole"}
        return next((kind for start, kind in starts.items() if said.startswith(start)), "unanswerable")

    def written(self, document: str, count: int, kind: str) -> str:
        """A reply with questions."""
        sentences = [each for each in re.split(r"(?<=[.!?])\s+", document) if 40 < len(each) < 300]
        first = zlib.crc32(f"{kind} {len(document)}".encode()) + self.asked
        self.asked += count
        rows: list[dict[str, Any]] = []
        for number in range(first, first + count):
            one, other = (sentences[at % len(sentences)] for at in (7 * number, 7 * number + 3))
            words = " ".join(re.findall(r"\w+", one)[:9])
            quotes = {"local": [one], "unanswerable": []}.get(kind, [one, other])
            rows.append({"question": f"Why is it said, of {words}?", "answer": f"Answer {number}", "quotes": quotes})
        if self.mistakes:
            rows = [*self.wrong(rows[0], kind), *rows]
        return f"Here they are:\n```json\n{json.dumps(rows, indent=1)}\n```\nGood luck!"

    def wrong(self, right: dict[str, Any], kind: str) -> list[dict[str, Any]]:
        """Questions that have to be dropped."""
        invented = {"question": "Who sank the Marigold?", "answer": "Nobody", "quotes": ["The Marigold sank at night."]}
        rows = [{**right, "question": right["question"].upper()}, {"answer": "No question", "quotes": []}]
        if kind == "unanswerable":
            return [*rows, {"question": GUESSED, "answer": None, "quotes": []}]
        return [*rows, invented, {**right, "question": KNOWN, "answer": "Paris"}]
