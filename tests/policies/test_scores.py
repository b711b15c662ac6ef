"""The numbers that a graded reply begins with, however it writes them and however it arrives."""

from __future__ import annotations

from collections.abc import Iterable
from string import Formatter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes import examples
from scenarios import cut
from selfroute.answerability import Verdict
from selfroute.answerability.ending import ANSWERED, EMPTY
from selfroute.answerability.graded import GradedGate
from selfroute.answerability.scores import Numbers, NumbersReader, numbers_of
from selfroute.prompts import GRADED, SECTIONS, check_asks_for_numbers

NUMBERS = [
    *("80 42", "80, 42", "80,42", "80/42", "80% / 42%", "80 % 42 %", "**80 42**", "**80** **42**", "80 | 42"),
    *("(80, 42)", "[80, 42]", "`80 42`", "80 - 42", "80 \u2013 42", "80; 42", "80.0 42.0", "80/100 42/100"),
    *("80 out of 100, 42 out of 100", "Prospect: 80, confidence: 42", "First: 80. Second: 42.", "80 and 42"),
    *("  80 42  ", "\n\n80 42", "80\u300142", "```\n80 42"),
]
ONE_NUMBER = [
    *("62", "**62**", "62%", "62 %", "62/100", "62 / 100", "62 out of 100", "62 of 100", "(62)", "`62`", "62.", "62.0"),
    *(
        "Confidence: 62",
        "**Confidence:** 62%",
        "Confidence: 62/100",
        "Number: 62",
        "  62  ",
        "\n\n62",
        "```\n62",
        "> 62",
    ),
]
TEXTS = [
    *("", "Paris", "80", "80 42 17", "80 42 17\nParis", "1850 42\nParis"),
    *("1850 was the year.", "1850\nThe year is given twice.", "80 42 people came\nThat is all.", "80 or 42 came"),
    *("In 80 of 42 cases", "-", "101 20\nParis", "unanswerable", "20 to 30 people\nas it says"),
]


@pytest.mark.parametrize("line", NUMBERS)
def test_numbers_of_two(line: str) -> None:
    for rest in ("\nParis", "\n\n \n\nParis", "\r\nParis\nor Rome"):
        assert numbers_of(line + rest) == (Numbers(80, 42), rest.lstrip())
        assert numbers_of(line + rest, 1) == (Numbers(80, 42), rest.lstrip())
    for end in ("", "\n", "\r\n", "\n\n \n"):
        assert numbers_of(line + end) == (None, line + end)
    for ends in ((0, 0), (100, 100), (5, 0)):
        assert numbers_of(f"{ends[0]} {ends[1]}\nunanswerable") == (Numbers(*ends), "unanswerable")
    assert numbers_of("```\n80 42\n```\n") == (None, "```\n80 42\n```\n")
    assert numbers_of("```\n80 42\n```\nParis") == (Numbers(80, 42), "Paris")


@pytest.mark.parametrize("text", TEXTS)
def test_numbers_of_any_text(text: str) -> None:
    assert numbers_of(text) == (None, text)


@pytest.mark.parametrize("rest", ["\nParis", "\n\n \n\nParis", "\r\nParis\nor Rome", "\n1912", "\n12\n15"])
def test_numbers_of_one(rest: str) -> None:
    for line in ONE_NUMBER:
        assert numbers_of(line + rest, 1) == (Numbers(None, 62), rest.lstrip()), line


@pytest.mark.parametrize("rest", ["", "\n", "\r\n", "\n\n \n"])
def test_numbers_of_one_with_nothing_after_it(rest: str) -> None:
    for line in [*ONE_NUMBER, *NUMBERS, "1912", "12"]:
        assert numbers_of(line + rest, 1) == (None, line + rest), line


@pytest.mark.parametrize(
    "text",
    [
        *("", "Paris", "62 Paris\nor Rome", "62 people\ncame", "1912\nwas the year", "101\nParis", "80 42 17\nParis"),
        *("-", "$62\nParis", "1. Paris\n2. Rome", "62: Paris", "unanswerable"),
    ],
)
def test_numbers_of_any_text_where_one_is_enough(text: str) -> None:
    assert numbers_of(text, 1) == (None, text)


@given(
    text=st.sampled_from([f"{line}\nParis 1 2" for line in NUMBERS + ONE_NUMBER] + TEXTS)
    | st.text("80 42,%\n*Pa/-.", max_size=30),
    cuts=st.lists(st.integers(0, 30), max_size=6),
    least=st.sampled_from([1, 2]),
)
def test_numbers_reader_whatever_the_pieces(text: str, cuts: list[int], least: int) -> None:
    places = sorted({cut for cut in cuts if cut < len(text)})
    reader = NumbersReader(least)
    pieces = [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
    shown = "".join([*map(reader.feed, pieces), reader.end()])
    assert (reader.numbers, shown) == numbers_of(text, least)


def test_numbers_reader_holds_back_no_more_than_numbers() -> None:
    for text in ("Paris lies on the Seine", "1 2 3 4 5 6 7 a", "In 80 of 42 cases it w"):
        reader = NumbersReader()
        assert ("".join(map(reader.feed, text)), reader.numbers) == (text, None)
    reader = NumbersReader()
    assert [reader.feed(piece) for piece in ("80", " 4", "2", "\n", " \n")] == [""] * 5
    assert reader.numbers is None
    assert (reader.feed("P"), reader.numbers) == ("P", Numbers(80, 42))


def test_numbers_reader_has_begun_where_a_line_of_numbers_may_end() -> None:
    begun = {"": False, "**": False, "8": True, "```\n80 4": True, "80 42\n": False, "80 42\nP": False, "In 80": False}
    for text, expected in begun.items():
        reader = NumbersReader()
        reader.feed(text)
        assert reader.begun is expected, text


DRAFTS = st.lists(
    st.sampled_from(
        [
            *("80 42", "5 0", "62", "20", "12 and 15", "\n", " ", "**", "```", "Paris", "unanswerable"),
            *("The answer is:", "-"),
        ]
    ),
    max_size=6,
).map("".join)


@examples(200)
@given(
    draft=DRAFTS,
    cuts=st.lists(st.integers(0, 40), max_size=8),
    kind=st.sampled_from(["complete", "cut", "refused"]),
    numbers=st.sampled_from([1, 2]),
)
def test_graded_gate_whatever_the_pieces(draft: str, cuts: list[int], kind: Any, numbers: int) -> None:
    def judged(pieces: tuple[str, ...]) -> tuple[Any, str]:
        gate = GradedGate(doubt_below=50, stop_below=20, numbers=numbers)
        shown = "".join([*map(gate.feed, pieces), gate.end(kind)])
        return gate.verdict, shown

    assert judged(cut(draft, cuts)) == judged((draft,)) == judged(tuple(draft))
    verdict, shown = judged((draft,))
    if verdict and verdict.signal == "empty":
        assert verdict.ruling is None
    if verdict is not None and verdict.confidence is None and verdict.signal == "answered":
        assert shown == draft
    if verdict is not None and verdict.ruling is not None:
        assert verdict.declined
        assert verdict.prospect is not None
        assert verdict.prospect < 20


ONE_WAY = [  # of writing the same two numbers, and the text after them
    *("80\n42\nParis", "80\n\n42\n\nParis", "80%\n42%\nParis", "Prospect: 80\nConfidence: 42\n\nParis"),
    *("Confidence: 42\nProspect: 80\nParis", "**Prospect:** 80\n**Confidence:** 42\n\nParis", "1. 80\n2. 42\nParis"),
    *("- 80\n- 42\nParis", "80 42 Paris", "80 42. Paris", "80, 42 - Paris", "(80, 42) Paris", "80 42\tParis"),
    *(
        "80-90 42-50\nParis",
        "80\u201390 42\u201350\nParis",
        "~80 ~42\nParis",
        "\ufeff80 42\nParis",
        "80\u200b42\nParis",
    ),
    *("\u0668\u0660 \u0664\u0662\nParis", "\uff18\uff10 \uff14\uff12\nParis", "80 42\u2028Paris", "80 42<br>Paris"),
    *(
        "Sure! 80 42\nParis",
        "Here are the numbers:\n80 42\nParis",
        "Line 1: 80 42\nLine 2: Paris",
        "| 80 | 42 |\n|---|---|\nParis",
    ),
    *("80 (prospect) 42 (confidence)\nParis", "Prospect: 80\nConfidence: 42\nAnswer: Paris", "80 42\\nParis"),
    *(
        '{"prospect": 80, "confidence": 42, "answer": "Paris"}',
        '```json\n{"prospect": "80%", "confidence": "42", "answer": "Paris"}\n```',
    ),
    *("```text\n80 42\nParis\n```", "<think>90 95</think>80 42\nParis", "80 42\n<think>Hm.</think>Paris<|im_end|>"),
]


@pytest.mark.parametrize("reply", ONE_WAY)
def test_graded_gate_reads_numbers_as_models_write_them(reply: str) -> None:
    for pieces in ((reply,), tuple(reply), cut(reply, [3, 7, 8, 20])):
        gate = GradedGate(doubt_below=50, stop_below=20)
        shown = shown_of(gate, pieces)
        assert (gate.verdict, shown) == (doubt(42, 80), "")
        assert gate.resume() + gate.end() == "Paris"


KEPT = [
    "-5 degrees",
    "$42 million",
    "**Paris**",
    '"Paris"',
    "(a) first",
    "<b>x</b>",
    ".NET",
    "12 %",
    "1. Paris\n2. Rome",
]


@pytest.mark.parametrize("answer", KEPT)
def test_graded_gate_keeps_the_answer_behind_its_numbers(answer: str) -> None:
    for head in (
        "85 90\n",
        "Prospect: 85\nConfidence: 90\nAnswer: ",
        "1. Prospect: 85\n2. Confidence: 90\n3. Answer: ",
    ):
        for pieces in ((head + answer,), tuple(head + answer)):
            gate = GradedGate(doubt_below=50)
            assert shown_of(gate, pieces) == answer
            assert gate.verdict is not None
            assert (gate.verdict.prospect, gate.verdict.confidence) == (85, 90)


def test_graded_gate_reads_shares_and_scales() -> None:
    for head in (
        "0.85 0.42\n",
        "Prospect (0-100): 85\nConfidence (0-100): 42\n",
        "P=85, C=42\n",
        "85 42 \u2705\n",
        "Answer: 85 42\n",
    ):
        gate = GradedGate(doubt_below=50)
        gate.feed(f"{head}Ms Okafor")
        assert gate.verdict == doubt(42, 85), head
    gate = GradedGate(doubt_below=50, stop_below=20, numbers=1)
    assert gate.feed("90\n1950. The passages do not state the month.") == "1950. The passages do not state the month."
    gate = GradedGate(doubt_below=50)
    gate.feed('{"prospect": 85, "confidence": 42}\nMs Okafor.')
    assert (gate.end(), gate.verdict, gate.resume() + gate.end()) == ("", doubt(42, 85), "Ms Okafor.")


HEADS = [
    "80 0\n",
    "80\n0\n",
    "Prospect: 80\nConfidence: 0\n\n",
    "80 0 ",
    "80 0: ",
    "80-90 0\n",
    "80\u200b0\n",
    "N/A\n",
    "80 n/a\n",
]
HEADS += [
    "80 0 0\n",
    "```text\n80 0\n",
    "80\n",
    "eighty zero\n",
    "First line: 80 0\n",
    "30: ",
    "0 ",
    "confidence 30 - ",
    "80 -\n",
]
REFUSALS = ["unanswerable", "Unanswerable. The passages do not say.", "**unanswerable**", '"unanswerable"']


@pytest.mark.parametrize("head", HEADS)
def test_graded_gate_finds_the_refusal_behind_whatever_stands_there(head: str) -> None:
    for reply in [head + refusal for refusal in REFUSALS] + [f"unanswerable\n{head}"]:
        for numbers in (1, 2):
            for pieces in ((reply,), tuple(reply)):
                gate = GradedGate(doubt_below=0, numbers=numbers)
                shown = shown_of(gate, pieces)
                assert gate.verdict, reply
                assert shown == ""


def test_graded_gate_reads_a_report_for_what_it_says() -> None:
    for reply, answer in (
        ('{"answerable": "true", "answer": "Paris"}', "Paris"),
        ('[{"answerable": true, "answer": "Paris"}]', "Paris"),
        ('{"answer": "Paris"}', "Paris"),
        ('{"name": "Paris"}', '{"name": "Paris"}'),
        ('{"answerable": "false", "answer": "Paris"}', None),
        ('{"answerable": null, "answer": "Paris"}', None),
        ('{"answerable": true, "answer": "Paris"} {"answerable": false}', None),
        ('{"answerable": true, "answerable": false, "answer": "Paris"}', None),
        ('{"answerable": true, "ans', None),
    ):
        for pieces in ((reply,), tuple(reply)):
            gate = GradedGate(doubt_below=50)
            shown = shown_of(gate, pieces)
            assert (bool(gate.verdict), shown) == (answer is None, answer or ""), reply


def shown_of(gate: GradedGate, pieces: Iterable[str]) -> str:
    """What a gate shows of a reply."""
    return "".join(map(gate.feed, pieces)) + gate.end()


def sure(confidence: int | None, prospect: int | None = None) -> Verdict:
    return Verdict(declined=False, signal="answered", prospect=prospect, confidence=confidence)


def doubt(confidence: int, prospect: int | None = None) -> Verdict:
    evidence = f"{confidence}" if prospect is None else f"{prospect} {confidence}"
    return Verdict(declined=False, signal="doubt", evidence=evidence, prospect=prospect, confidence=confidence)


def declined(prospect: int | None, evidence: str = "unanswerable", confidence: int | None = None) -> Verdict:
    reason = f"the model gives the documents {prospect} of 100 to hold an answer, less than 20"
    stops = prospect is not None and prospect < 20
    ruling = {"go": False, "by": "prospect", "reason": reason} if stops else None
    about = {"prospect": prospect, "confidence": confidence, "ruling": ruling}
    return Verdict(declined=True, signal="sentinel", evidence=evidence, **about)  # type: ignore[arg-type]


DENIAL = Verdict(declined=True, signal="phrase", evidence="The text does not say", confidence=0)


LIN = "Mr Lin took the chair at nine."
ASKED_FOR_ONE: dict[str, tuple[str, Verdict, str]] = {  # the reply, its verdict, and the answer that it is
    "sure": (f"62\n{LIN}", sure(62), LIN),
    "at the bound": (f"50\n{LIN}", sure(50), LIN),
    "in doubt": (f"42\n{LIN}", doubt(42), LIN),
    "in doubt, a number": ("42\n1912", doubt(42), "1912"),
    "in doubt, like a refusal": ("42\nUnanswerable letters go to Lin.", doubt(42), "Unanswerable letters go to Lin."),
    "sure, in Markdown": (f"**62**\n\n{LIN}", sure(62), LIN),
    "in doubt, in a fence": (f"```\n42\n```\n{LIN}", doubt(42), LIN),
    "in doubt, after thoughts": (f"<think>hm, 90\n</think>42\n{LIN}", doubt(42), LIN),
    "sure, with a low prospect": (f"10 62\n{LIN}", sure(62, 10), LIN),
    "in doubt, with a prospect": (f"80 42\n{LIN}", doubt(42, 80), LIN),
    "hopeless": ("19\nunanswerable", declined(19), ""),
    "hopeless by two numbers": ("10 0\nunanswerable", declined(10, confidence=0), ""),
    "a decline": ("unanswerable", declined(None), ""),
    "a decline, unsure, with more": ("20\n\n**Unanswerable.** It ends early.", declined(20, "Unanswerable"), ""),
    "a denial, whose number may be either": ("0\nThe text does not say who.", DENIAL, ""),
    "nothing": ("", EMPTY, ""),
    "a year and nothing more": ("1912", ANSWERED, "1912"),
    "two numbers and nothing more": ("12 and 15\n", ANSWERED, "12 and 15\n"),
    "a year in a line of its own": ("1912\nis the year.", ANSWERED, "1912\nis the year."),
    "no number": (LIN, ANSWERED, LIN),
}


@pytest.mark.parametrize("name", ASKED_FOR_ONE)
@given(cuts=st.lists(st.integers(0, 40), max_size=8))
def test_graded_gate_of_one_number(name: str, cuts: list[int]) -> None:
    reply, verdict, answer = ASKED_FOR_ONE[name]
    for pieces in (cut(reply, cuts), tuple(reply), (reply,)):
        gate = GradedGate(doubt_below=50, stop_below=20, numbers=1)
        shown = "".join([*map(gate.feed, pieces), gate.end()])
        assert gate.verdict == verdict
        if verdict.signal == "doubt":
            assert shown == ""
            shown = gate.resume() + gate.end()
            assert gate.verdict == sure(verdict.confidence, verdict.prospect)
        assert shown == answer


def test_graded_gate_reads_the_first_words() -> None:
    for reply, read in (
        ("42\nMr Lin", "42\nMr"),
        ("42\nUnder oath", "42\nUnde"),
        ("42\nunanswerable.", "42\nunanswerable."),
    ):
        gate, seen = GradedGate(doubt_below=50, numbers=1), ""
        for piece in reply:
            seen += piece
            if gate.feed(piece) or gate.verdict is not None:
                break
        assert seen == read


def test_verdict_shows_its_numbers() -> None:
    plain = {"declined": True, "signal": "sentinel", "evidence": "unanswerable", "ruling": None}
    assert declined(None).as_dict() == plain
    assert declined(20).as_dict() == {**plain, "prospect": 20}
    both = Verdict(declined=True, signal="sentinel", evidence="unanswerable", prospect=0, confidence=0)
    assert both.as_dict() == {**plain, "prospect": 0, "confidence": 0}


def test_sections_prompt_asks_for_one_number() -> None:
    check_asks_for_numbers("prompt", SECTIONS)
    assert "write a number from 0 to 100" in SECTIONS
    variables = [[name for _, name, _, _ in Formatter().parse(prompt) if name] for prompt in (SECTIONS, GRADED)]
    assert variables == [["context", "refusal", "question"]] * 2
