"""Find the sentences that say what an answer says, by the words that they share with it and with the question."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypedDict

from selfroute.citations.search import SentenceSearch
from selfroute.documents.index import WORD_INDEXES, stems_of
from selfroute.documents.pages import Page, position_of

MAX_CITATIONS = 3
_TRIES = 4  # for each citation: some sentences are no citations
_LEAST_OF_BEST = 0.25  # what scores less than this part of the best is no citation


class Stretch(TypedDict):
    """A stretch of a text, `text[start:end]`, and how much of the answer stands there, from 0 to 1."""

    start: int
    end: int
    text: str
    score: float


class _Cited(TypedDict):
    document: int
    source: Any
    start: int
    end: int
    text: str
    score: float


class Citation(_Cited, total=False):
    """Where an answer stands, as plain JSON if the names of the documents are.

    Attributes:
        document: The number of the document or passage in the context, from 0.
        source: The name of the document.
        start: The offset of the first character in its text, or for a section, in the document that it is from.
        end: The offset behind the last one.
        text: What stands there.
        score: How much of the answer stands there, from 0 to 1.
        page: The page on which it begins, as the store names it; if that is not known there is no such key.
    """

    page: Page


def locate(question: str, answer: str, text: str, n: int = MAX_CITATIONS) -> list[Stretch]:
    """Find the sentences of a text that say what an answer says, best first.

    No model is asked: what counts are words that a sentence shares with the answer, and less those that it shares with
    the question, the rarer the more. The next sentence is chosen for what those before it do not say yet. The time
    grows with the length of the text; the index of a text is kept for the next question.

    Args:
        question: The question.
        answer: The answer.
        text: The text.
        n: How many sentences to return at most.

    Returns:
        As many as say something of the answer: none if no word of it, nor of the question, stands in the text.

    Examples:
        >>> [found] = locate("Who chaired the meeting?", "Ms Okafor", "We met at ten. Ms Okafor chaired the meeting.")
        >>> found["start"], found["text"]
        (15, 'Ms Okafor chaired the meeting.')
    """
    return [stretch for _, stretch in _located(question, answer, [text], n)]


def cite(
    question: str,
    answer: str,
    context: Sequence[tuple[Any, str]],
    *,
    metadata: Sequence[Mapping[str, Any]] = (),
    n: int = MAX_CITATIONS,
) -> list[Citation]:
    """Find where an answer stands in all that a model answered from, as `locate` does, best first.

    Args:
        question: The question.
        answer: The answer.
        context: The passages or documents: the name of each, and its text.
        metadata: The metadata of each, which say on which page it is; empty if they are not known.
        n: How many citations to return at most.
    """
    texts = [text for _, text in context]
    citations = []
    for document, stretch in _located(question, answer, texts, n):
        source, text = context[document]
        one: Citation = {"document": document, "source": source, **stretch}  # type: ignore[typeddict-item]
        if metadata:
            position = position_of(metadata[document], text)
            one["start"] += position.shift
            one["end"] += position.shift
            if (page := position.page_at(stretch["start"])) is not None:
                one["page"] = page
        citations.append(one)
    return citations


def _located(question: str, answer: str, texts: Sequence[str], n: int) -> Iterator[tuple[int, Stretch]]:
    """Yield the sentences that say what an answer says, best first, with the number of each one's text.

    The same words come only once.
    """
    search = SentenceSearch(question, answer, indexes := [WORD_INDEXES.of(text) for text in texts])
    said = set(stems_of(answer))
    shown: list[str] = []
    best = 0.0
    for _ in range(_TRIES * n):
        found = search.next() if len(shown) < n else None
        if found is None or found[1] < _LEAST_OF_BEST * best:
            return
        number, score = found
        document = bisect(search.bases, number) - 1
        start, end = indexes[document].spans[number - search.bases[document]]
        text = texts[document][start:end]
        if any(text in one for one in shown):  # passages overlap
            continue
        if not text.startswith("#") or said.intersection(stems_of(text)):  # else a heading only repeats the question
            shown.append(text)
            best = best or score
            yield document, Stretch(start=start, end=end, text=text, score=round(score, 3))
