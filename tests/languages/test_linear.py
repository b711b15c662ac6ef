"""The work of judging a reply grows with its length and no faster, whatever it holds and however it arrives.

What is counted are the lines of Python that are executed, so that it does not matter how fast a machine is.
"""

from __future__ import annotations

import base64
import random
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from selfroute.answerability import Gate, declines, declines_anywhere
from selfroute.answerability.graded import GradedGate
from selfroute.answerability.last import LastGate
from selfroute.answerability.structured import json_in
from selfroute.citations import locate
from selfroute.documents.index import _kept_stem, stems_of
from selfroute.languages.grammars import grammar
from selfroute.languages.notation import Rules, compile_rules
from selfroute.languages.sentences import sentence_spans

SHORT = 220  # characters; more than any gate holds back
DOCUMENT = "We met at ten. Ms Okafor chaired the meeting. The crane is red. " * 5


def repeated(part: str) -> Callable[[int], str]:
    return lambda size: (part * size)[:size]


def chosen(characters: str) -> Callable[[int], str]:
    return lambda size: "".join(random.Random(1).choices(characters, k=size))  # noqa: S311


ONE_WORD = {
    "one letter": repeated("a"),
    "Thai": repeated("\u0e01"),
    "letters": chosen("abcdefghijklmnopqrstuvwxyz"),
    "accents": repeated("e\u0301"),
    "accents on one letter": lambda size: "e" + "\u0301" * (size - 1),
    "what nobody sees": lambda size: "a" + "\u200b" * (size - 1),
    "a stem": lambda size: "mention" + "s" * (size - 7),
}
KINDS = ONE_WORD | {
    "Chinese": chosen("\u6587\u4ef6\u6ca1\u6709\u63d0\u5230\u5b83\u7684\u540d\u5b57"),
    "kana": chosen("\u3072\u3089\u304c\u306a\u30ab\u30bf\u30ab\u30ca"),
    "paragraphs of one word": repeated("word\n\n"),
    "emoji": repeated("\U0001f600"),
    "base64": lambda size: base64.b64encode(random.Random(1).randbytes(size)).decode()[:size],  # noqa: S311
    "sentences": repeated("The report does say a lot of this, and more. "),
    "denials": repeated("The report does not mention deaths, only 3 injuries. "),
    "the refusal": repeated("unanswerable. "),
    "a word after the refusal": lambda size: "unanswerable. " + "a" * (size - 14),
    "a word after numbers": lambda size: "80 42\n" + "a" * (size - 6),
    **{f"many {mark!r}": repeated(mark) for mark in (" ", "\n", ".", "-", "<", "<a>", "{", '"', "a,", "A.", "ab-\n")},
}


def in_pieces(gate: Callable[[], Any]) -> Callable[[str], None]:
    """Return what feeds a text to a gate, one character at a time."""

    def judge(text: str) -> None:
        fed = gate()
        for character in text:
            fed.feed(character)
        fed.end()

    return judge


WAYS: dict[str, Callable[[str], object]] = {
    "whole": declines,
    "whole, a denial anywhere": declines_anywhere,
    "in pieces": in_pieces(Gate),
    "in pieces, the last": in_pieces(lambda: LastGate(Gate(phrases=False))),
    "in pieces, graded": in_pieces(lambda: LastGate(GradedGate(doubt_below=50, numbers=1))),
    "structured": json_in,
    "sentences": sentence_spans,
    "citations": lambda text: locate("Who?", text, DOCUMENT),
}


def lines(judge: Callable[[str], object], text: str) -> int:
    """Return how many of our lines are executed; others also run when the garbage is collected."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace if frame.f_globals.get("__name__", "").startswith("selfroute.") else None

    judge(text[:-1])  # what is kept for the next time, but not the same word
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        judge(text)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("way", WAYS)
def test_work_grows_with_the_text(way: str) -> None:
    judge = WAYS[way]
    counts = {name: (lines(judge, kind(SHORT)), lines(judge, kind(4 * SHORT))) for name, kind in KINDS.items()}
    assert {name: (few, many) for name, (few, many) in counts.items() if many > 8 * few} == {}


@pytest.mark.parametrize("way", ["whole", "whole, a denial anywhere"])
def test_work_of_a_long_word(way: str) -> None:
    """Then it does not matter that a step may look at all of the word."""
    judge, sizes = WAYS[way], (SHORT + 7, 4 * SHORT + 7)  # no test met these words before
    counts = {name: [lines(judge, kind(size)) for size in sizes] for name, kind in ONE_WORD.items()}
    assert {name: (few, many) for name, (few, many) in counts.items() if many > few} == {}


def test_work_of_a_new_word() -> None:
    start = compile_rules([Rules(("the {text} says",), words={"text": "book* letter passages"})])
    rules = grammar()
    for state in (start.after("the"), rules.declines, rules.denials):
        for word in ("zz{}", "\u0e01{}", "books{}"):
            few, many = (lines(state.after, word.format("z" * size)) for size in (100, 100_000))
            assert many <= few


def test_automaton_keeps_beginnings_of_long_words() -> None:
    start = compile_rules([Rules(("{some} end",), words={"some": "book* letter bookshelf shelf*"})])
    tail = "x" * 100_000
    taken = {word: not start.after(word + tail).dead for word in ("book", "bookshelf", "boo", "letter", "shelf", "")}
    assert taken == {"book": True, "bookshelf": True, "boo": False, "letter": False, "shelf": True, "": False}
    assert not start.after("letter").dead
    assert max(map(len, start._automaton._symbols)) < 20


def test_stems_of_long_words_are_not_kept() -> None:
    before = _kept_stem.cache_info().currsize
    assert set(stems_of("b" * 61)) == {"b" * 61}
    assert set(stems_of("b" * 70 + "ing")) == {"b" * 70}
    assert _kept_stem.cache_info().currsize == before
