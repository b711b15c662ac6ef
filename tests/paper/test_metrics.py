"""The metrics: what the data sets' own programs say of an answer, worked out by hand, and the laws they keep."""

from __future__ import annotations

import pytest

from paper.metrics import rouge_l
from selfroute_workbench.evaluation.metrics import METRICS

ROUNDED_UP = 5e-9  # what ROUGE-L lacks to 1 for equal texts

CASES = [
    # the harmonic mean of precision and recall is twice the shared words, over all words
    ("f1", "The red harbour.", ["a RED harbour"], 1.0),
    ("f1", "red harbour at night", ["the harbour"], 2 * 1 / (4 + 1)),
    ("f1", "no no no", ["no no yes"], 2 * 2 / (3 + 3)),
    ("f1", "red-haired", ["red haired"], 0.0),  # punctuation leaves no gap
    ("f1", "“the” harbour", ["harbour"], 2 * 1 / (3 + 1)),  # quotes that are not ASCII stay, and become words
    ("f1", "harbour", ["the harbour at night", "a harbour", "night"], 1.0),
    ("f1", "", ["harbour"], 0.0),
    ("f1", "the", ["a"], 0.0),
    ("f1", "harbour", [], 0.0),
    ("f1", "first line\nsecond line", ["first line"], 2 * 2 / (4 + 2)),  # all lines count
    # ROUGE-L: recall 2/2, precision 2/3
    ("rouge_l", "red harbour light", ["red light"], 2 * (2 / 3) / (5 / 3)),
    ("rouge_l", "Red light", ["red light"], 0.5),  # case counts
    ("rouge_l", "light red", ["red light"], 0.5),  # order counts
    ("rouge_l", "red. light", ["red light"], 1.0),  # sentences add up
    ("rouge_l", "red red red", ["red"], 1.0),  # repeated words do not count
    ("rouge_l", "", ["red"], 0.0),
    ("rouge_l", "...", ["..."], 0.0),
    ("rouge_l", "red", ["", "red"], 1.0),
    ("rouge_l", "red", [], 0.0),
    ("rouge_l", "red " * 1500, ["red light"], 0.0),  # too long a sentence for its recursion
    ("rouge_l", "red." * 1500, ["red light"], 2 / 3),
    ("squad_f1", "red harbour", ["red harbour at night"], 2 * 2 / (2 + 4)),
    ("squad_f1", "", [], 1.0),
    ("squad_f1", "The...", [], 1.0),
    ("squad_f1", "harbour", [], 0.0),
    ("squad_f1", "", ["an"], 1.0),  # that is no answer
    ("squad_f1", "", ["an", "harbour"], 0.0),
    ("squad_em", "The Harbour!", ["night", "harbour"], 1.0),
    ("squad_em", "harbour red", ["red harbour"], 0.0),
    ("squad_em", "", [], 1.0),
    ("squad_em", "harbour", [], 0.0),
    ("squad_em", "a", ["the"], 1.0),
    ("squad_em", "", ["the", "harbour"], 0.0),
    ("choice", "B", ["In a boat", "B"], 1.0),
    ("choice", " B. By train", ["In a boat", "B"], 1.0),
    ("choice", "C", ["In a boat", "B"], 0.0),
    ("choice", "Because of that, B", ["In a boat", "B"], 1.0),  # unluckily it begins with a letter, but the right one
    ("choice", "Clearly B", ["In a boat", "B"], 0.0),
    ("choice", "A boat", ["A boat", "B"], 0.0),  # the letter goes first
    ("choice", "In a boat ", ["In a boat", "B"], 1.0),
    ("choice", "in a boat", ["In a boat", "B"], 0.0),
    ("choice", "He says: the answer is: B", ["In a boat", "B"], 1.0),
    ("choice", "So the answer is\n\nIn a boat, I think", ["In a boat", "B"], 1.0),
    ("choice", "So the answer is A, not B", ["In a boat", "B"], 0.0),
    ("choice", "So the answer is", ["In a boat", "B"], 0.0),
    ("choice", "Not C but the option is B", ["In a boat", "B"], 1.0),
    ("choice", "I take B.", ["In a boat", "B"], 1.0),
    ("choice", "I take C rather than B.", ["In a boat", "B"], 0.0),
    ("choice", "I take BC", ["In a boat", "B"], 0.0),
    ("choice", "{B}", ["In a boat", "B"], 1.0),
    ("choice", "(B)", ["In a boat", "B"], 0.0),
    ("choice", "**B**", ["In a boat", "B"], 0.0),
    ("choice", " \n", ["In a boat", "B"], 0.0),
    ("choice", "The answer is B", ["", "A"], 0.0),
    ("passkey", "The pass key is 40718.", ["40718"], 1.0),
    ("passkey", "Of 2 keys it is 40718.", ["40718"], 0.0),
    ("passkey", "040718", ["40718"], 0.0),
    ("passkey", "40,718", ["40718"], 0.0),
    ("passkey", "٤٠: 40718", ["40718"], 1.0),  # only 0 to 9 are digits
    ("passkey", "none", [""], 0.0),
    ("passkey", "40718", [], 0.0),
    ("first_or_second", "The second one is larger.", ["second"], 1.0),
    ("first_or_second", "**Second**", ["second"], 1.0),
    ("first_or_second", "FIRST, not the second", ["First"], 1.0),
    ("first_or_second", "the second, not the first", ["first"], 0.0),
    ("first_or_second", "in seconds: first", ["first"], 1.0),
    ("first_or_second", "firstly", ["first"], 0.0),
    ("first_or_second", "40718", ["first"], 0.0),
    ("first_or_second", "", ["first"], 0.0),
    ("first_or_second", "first", [], 0.0),
    ("exact_loose", "It is the red harbour, at night.", ["Harbour (red)"], 1.0),
    ("exact_loose", "harbour", ["the red harbour at night"], 1.0),
    ("exact_loose", "red boat", ["red harbour"], 0.0),
    ("exact_loose", "night and day", ["day or night"], 1.0),
    ("exact_loose", "harbour", ["night", "harbour"], 1.0),
    ("exact_loose", "", ["harbour"], 0.0),  # their program says 1
    ("exact_loose", "harbour", ["about to"], 0.0),  # and here
    ("exact_loose", "", [""], 0.0),
    ("exact_loose", "harbour", [], 0.0),
    ("text_f1", "cat leaps table quickly", ["the cat leaps over the table"], 2 * 0.75 * 0.6 / (0.75 + 0.6)),  # 0.67
    ("text_f1", "Cat, leaps; table!", ["table cat leaps", "dog"], 1.0),
    ("text_f1", "", ["harbour"], 0.0),
    ("text_em", "Cat leaps!", ["the cat leaps", "dog"], 1.0),
    ("text_em", "leaps cat", ["the cat leaps"], 0.0),
    ("text_em", "the", ["A"], 0.0),
    ("text_em", "", [], 0.0),
    ("text_f1", "harbour", [], 0.0),
    ("set_f1", "cat leaps table quickly", ["the cat leaps over the table"], 0.75),
    ("set_f1", "red red harbour", ["the harbour, red"], 1.0),
    ("set_f1", "boats to red harbour", ["harbour about and"], 2 * 1 / (3 + 1)),
    ("set_f1", "day or night", ["night and boat", "boat"], 2 * 1 / (2 + 2)),
    ("set_f1", "red harbour light", ["harbour at night stays a red harbour"], 2 * 2 / (3 + 5)),  # 0.5, not rounded
    ("set_f1", "red boat", ["red"], 2 / 3),  # their program says 0.67
    ("set_f1", "", ["harbour"], 0.0),
    ("set_f1", "the", ["a"], 0.0),
    ("set_f1", "harbour", [], 0.0),
]


@pytest.mark.parametrize(("metric", "prediction", "answers", "expected"), CASES)
def test_metrics_by_hand(metric: str, prediction: str, answers: list[str], expected: float) -> None:
    assert METRICS[metric](prediction, answers) == pytest.approx(expected, abs=2 * ROUNDED_UP)


def test_rouge_l_long_reply() -> None:
    summary, reply = "The group agreed on the red one. It costs less.", "The group agreed on " + "and on " * 250
    assert rouge_l(reply, [summary]) > 0.5
