"""Texts are split into whole sentences, and lines of lists and tables, with exact offsets."""

import random

import pytest

from selfroute.languages.sentences import LONGEST, sentence_spans

SENTENCES: dict[str, list[str]] = {
    "English": ["Dr. Ray paid $3.50 on Sept. 5.", "Who else did?", "Nobody!"],
    "initials": ["J. R. Smith of the U.S. Army came, e.g. at 5 p.m. sharp.", "So did Prof. Lin."],
    "quotes": ['He said: "Stop!"', "(Then he left.)", "“No!” she cried.", "It ended..."],
    "figures and footnotes": ["See Fig. 3 and vol. 2, p. 14.", "It grew by 4.5 per cent.", "No. 7 did not."],
    "numbered clauses": ["1. The lease begins on 1 May.", "2. The rent is due."],
    "German": ["Am 3. Oktober 1990 trat Dr. Weiß das Amt an, z. B. als Vertreter.", "Es kostet ca. 3,5 Mio. Euro."],
    "a German law": ["§ 3. Der Rat tagt öffentlich.", "Art. 5 gilt, vgl. Abs. 2 und Nr. 7."],
    "French": [
        "M. Dupont est arrivé, p. ex. hier.",
        "« Nous fermerons ! » dit-elle.",
        "« Oui ! »",
        "Les élèves riaient.",
    ],
    "Spanish": ["La Sra. Núñez presidió.", "¿Quién vino?", "¡Nadie!", "El Sr. Gil, de EE. UU., no."],
    "Hindi": ["बैठक दस बजे शुरू हुई।", "अध्यक्ष राम शर्मा थे।"],
    "Chinese": ["会议于十点开始。", "他说：“我们要关闭港口。”", "谁同意？", "费用为3,500元。"],
    "Japanese": ["会議は十時に始まった。", "「港を閉鎖する。」", "費用は3500円でした。"],
}
# One sentence to a line, unless the line begins with a plus sign: then it goes on in the same one.
LINES: dict[str, str] = {
    "a table": "| Item | Price |\n| --- | --- |\n| Ice | 104 |",
    "columns": "Name        Age\nBob           3\nWilhelmina   41",
    "tabs": "Name\tAge\nBob\t3",
    "a list": "Bring for the long way back:\n- a rope, which is long enough for this\n- a lamp",
    "a heading": "# The crane\n\nIt was repaired.",
    "turns": "Ms Okafor: We begin\nMr Lin: Yes .",
    "wrapped prose": (
        "The harbourmaster asked for two days of good\n+weather, and for the use of the small crane\n+until Friday.\n"
        "It was quiet until the evening, when Captain\n+Varrick\n+came."
    ),
    "indented prose": "   Raise his salary or give him a bonus, the old\n+ idea of what a man would want.",
    "a divided word": "The bell was found by Osric Pel-\n+lan in October.\nHe is a diver.",
    "a log": (
        "2026-11-28 12:19:00 INFO worker-0 processed job 9\n2026-11-30 03:14:15 ERROR worker-3 disk full on /var\n"
        "2026-11-30 03:14:16 INFO worker-0 processed job 3"
    ),
    "rows with commas": "17,Harbour Trust,Saltmarket,Fish Quay\n18,Kestrel Ridge,Observatory,North Road",
    "Windows": "It began.\r\n\r\nIt ended.\r\n",
    "lower case": "so it began.\nthen it ended.",
    "nothing": " \n\t ",
    "one word": "Yes",
}


@pytest.mark.parametrize("name", SENTENCES)
def test_sentence_spans(name: str) -> None:
    sentences = SENTENCES[name]
    between = "" if name in {"Chinese", "Japanese"} else "\n" if name == "numbered clauses" else " "
    text = between.join(sentences)
    assert [text[start:end] for start, end in sentence_spans(text)] == sentences


@pytest.mark.parametrize("name", LINES)
def test_sentence_spans_of_lines(name: str) -> None:
    text = LINES[name].replace("\n+", "\n")
    expected = LINES[name].replace("\n+", "+").splitlines()
    found = [text[start:end].replace("\n", "+") for start, end in sentence_spans(text)]
    assert found == [line.strip() for line in expected if line.strip()]


HOSTILE = [
    *(".", "!?", ". ", "\n", " ", "\r\n", '"', "'", "a", "A.", "1. ", "。", "」", "|", "\t", "a    ", "\0"),
    *("\ud800", "\u202e", "\u0301"),
]


def check(text: str) -> None:
    """Hold the spans of a text to the laws."""
    at = 0
    for start, end in sentence_spans(text):
        assert at <= start < end <= len(text)
        assert end - start <= LONGEST
        assert not text[at:start].strip()
        assert text[start:end] == text[start:end].strip()
        at = end
    assert not text[at:].strip()


def test_sentence_spans_hold_all_text() -> None:
    of = random.Random(1)  # noqa: S311
    for size in range(0, 400, 3):
        check("".join(of.choices([*HOSTILE, "word", "Word", "Wort", "es", "字"], k=size)))


@pytest.mark.parametrize(
    "part", [HOSTILE[0], *(pytest.param(part, marks=pytest.mark.matrix) for part in HOSTILE[1:])], ids=ascii
)
def test_sentence_spans_of_one_thing_a_million_times(part: str) -> None:
    check(part * (1_000_000 // len(part)))


def test_sentence_spans_without_an_end() -> None:
    text = "harbour " * 500
    spans = sentence_spans(text)
    assert len(spans) == pytest.approx(len(text) / LONGEST, abs=1)
    assert {word for start, end in spans for word in text[start:end].split()} == {"harbour"}
