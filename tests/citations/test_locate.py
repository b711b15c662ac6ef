"""`locate` finds the sentence that says the answer: by words, in any language, in any text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo_texts import load_documents
from lanes import examples
from selfroute.citations import locate
from selfroute.citations.citing import cite
from selfroute.documents.index import WORD_INDEXES


class Case(NamedTuple):
    """A question with its answer, and a text with the sentence that says it between brackets."""

    question: str
    answer: str
    text: str


CASES: dict[str, Case] = {
    "a name": Case(
        "Who chaired the meeting?", "Ms Okafor", "We met at ten. [Ms Okafor chaired the meeting.] Tea came."
    ),
    "other forms of the words": Case(
        "What did they repair?", "the cranes", "The tea was cold. [They were repairing a crane.] Nobody left."
    ),
    "a number with separators": Case("What was paid?", "£36490", "We paid £3,649. [We paid £36,490.] We paid £364.90."),
    "a number among commas": Case(
        "What is the price of item 77?", "101", "76,Item 76,A1,99\n[77,Item 77,B1,101]\n101,It,C,5"
    ),
    "a divided word": Case(
        "Who found it?", "Osric Pellan", "It was lost. [It was found by Osric Pel-\nlan.] It rained."
    ),
    "a row of a table": Case(
        "What does rope cost?", "92", "| Ice | 104 |\n| Tea | 29 |\n[| Rope | 92 |]\n| Oil | 192 |"
    ),
    "an item of a list": Case("What does Lin bring?", "a lamp", "- Okafor: a rope\n[- Lin: a lamp]\n- Ray: a boat"),
    "words of the question alone": Case(
        "Why was the ferry late?", "There had been fog.", "The boat came. [The ferry was late.] We ate."
    ),
    "an answer among the words of its neighbours": Case(
        "How was Ruta related to the miller?",
        "She was his sister.",
        f"{'The sister of nobody came. ' * 3}{'It rained. ' * 300}The miller is out. [Ruta is his sister.] So.",
    ),
    "German": Case(
        "Wann trat Weiss an?", "am 3. Oktober", "Er ging. [Am 3. Oktober trat Dr. Weiß an.] Die Häfen ruhten."
    ),
    "French": Case("Qui a présidé ?", "Mme Élise Durand", "Il pleut. [Mme Elise Durand a présidé.] « Oui ! » dit-il."),
    "Chinese": Case("谁是主席？", "李明", "会议于十点开始。[主席是李明先生。]大家都同意了。李先生没来。"),
    "one Chinese character": Case("有几个人？", "三", "有人来了。[共有三个人。]有二个船。"),
    "Japanese": Case("費用はいくらですか。", "3500円", "会議は十時に始まった。[費用は３５００円でした。]彼は帰った。"),
}


@pytest.mark.parametrize("name", CASES)
def test_locate(name: str) -> None:
    question, answer, text = CASES[name]
    expected = text.partition("[")[2].partition("]")[0]
    text = text.replace("[", "").replace("]", "")
    best = locate(question, answer, text)[0]
    assert best["text"] == expected == text[best["start"] : best["end"]]
    assert best["score"] > 0.1


def test_cite_documents_of_the_demo() -> None:
    documents = load_documents()
    found = cite("Who retrieved the fog bell, and for how much?", "Osric Pellan, for £180", [*documents.items()])
    assert found[0]["text"].endswith("brought it up on 2 October for £180.")
    assert [*documents][found[0]["document"]] == found[0]["source"]


def test_locate_a_long_answer() -> None:
    rain = "It rained all day, and nobody came to the quay. " * 60
    said = ["The crane was repaired in May.", "The ferry was sold to Mr Lin.", "Tea costs two pounds now."]
    text = rain.join(["", *(f"{one} " for one in said), ""])
    answer = "The crane was repaired, the ferry was sold to Lin, and tea now costs two pounds."
    found = locate("What was decided?", answer, text)
    assert {one["text"] for one in found} == {*said}
    assert [len(locate("What was decided?", answer, text, n=n)) for n in range(4)] == [0, 1, 2, 3]


def decomposed(text: str) -> str:
    return unicodedata.normalize("NFD", text)


def divided(text: str) -> str:
    """Return a text with soft hyphens within its words."""
    return re.sub(r"(?<=[a-zà-ÿ]{2})(?=[a-zà-ÿ])", "\u00ad", text)


FRENCH = "La résidence est fermée. Mère dort. " * 20 + "Les élèves préfèrent la crème brûlée. Il pleut. Où ?"
JAPANESE = "かふすはてきん。木曜日。" * 20 + "ガラスはできた。雨だ。"


@pytest.mark.parametrize(
    ("written", "answer", "text"),
    [
        (decomposed, "la crème préférée des élèves", FRENCH),
        (divided, "la crème préférée des élèves", FRENCH),
        (decomposed, "ガラスが", JAPANESE),
    ],
)
def test_locate_whatever_accents_and_hyphens(written: Callable[[str], str], answer: str, text: str) -> None:
    found = [(one["text"], one["score"]) for one in locate("?", answer, text)]
    again = [(one["text"], one["score"]) for one in locate("?", answer, written(text))]
    assert [score for _, score in again] == [score for _, score in found]
    assert [sentence for sentence, _ in again] == [written(sentence) for sentence, _ in found]


def test_locate_scores() -> None:
    text = "We met at ten. Ms Okafor chaired the meeting. Tea was served. " + "It rained. " * 50
    scores = [
        locate("Who chaired the meeting?", answer, text, n=1)[0]["score"]
        for answer in ("Ms Okafor chaired the meeting", "Ms Okafor", "Ms Okafor and Mr Lin", "Mr Lin of Ombry Castle")
    ]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > 0.8
    assert scores[-1] < 0.4


def test_cite_the_same_words_once() -> None:
    passages = [
        ("May", "Tea came. Ms Okafor was ill."),
        ("May", "Ms Okafor was ill. We left."),
        ("May", "Okafor was ill."),
    ]
    found = cite("Who was ill?", "Ms Okafor", passages)
    assert [(one["document"], one["text"]) for one in found] == [(0, "Ms Okafor was ill.")]
    assert len(locate("Who was ill?", "Ms Okafor", "Ms Okafor was ill. " * 10_000)) == 1


def test_locate_no_heading_of_the_question() -> None:
    text = "# Minutes of the harbour trust\n\nWe met at ten.\n\n## 8 August\n\nThe harbour trust sold ice."
    found = locate("What did the harbour trust of the minutes sell?", "ice", text)
    assert [one["text"] for one in found] == ["The harbour trust sold ice."]
    assert locate("When was it?", "on 8 August", text)[0]["text"] == "## 8 August"


@pytest.mark.parametrize("text", ["", " \n\t", "...", "\0", "---\n***", "Nobody knows."], ids=ascii)
def test_locate_finds_nothing(text: str) -> None:
    assert locate("Who chaired?", "Ms Okafor", text) == []
    assert locate("", "", text) == []


ODD = [
    *("Ms Okafor", " ", ".", "\n", "chaired", "\ud800", "\0", "\u202e", "\u0301", "e\u0301", "\u200b", "ＷＩＤＥ"),
    *("主席", "🚢", "|", "# "),
]


@examples(100)
@given(st.lists(st.sampled_from(ODD), max_size=300).map("".join))
def test_locate_in_any_text(text: str) -> None:
    found = locate("Who\ud800 chaired?\0", "Ms Okafor 主席 🚢 \u202e", text, n=5)
    assert all(text[one["start"] : one["end"]] == one["text"] for one in found)
    scores = [one["score"] for one in found]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)


def test_locate_in_threads_and_in_a_long_text() -> None:
    text = "\n".join(load_documents().values())
    WORD_INDEXES.clear()
    with ThreadPoolExecutor(8) as threads:
        asked = ["What did the new clapper of the bell cost?"] * 16
        first, *others = threads.map(lambda question: locate(question, "£310", text), asked)
    assert all(other == first for other in others)
    WORD_INDEXES.clear()
    assert locate(asked[0], "£310", text) == first
    text = " ".join(f"The price of item {number} is {number * 7}." for number in range(10_000))
    answer = " ".join(str(number) for number in range(5_000))
    assert len(locate("What are the prices?", answer, text)) == 3
