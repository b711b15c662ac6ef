"""Sections: what of some documents matters to a question, within a budget, whatever the documents hold."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo_texts import load_documents
from golden import GOLDEN, golden, text_of
from lanes import examples
from selfroute.documents.index import SECTION, Index, stems_of
from selfroute.documents.sections import _STOP_WORDS, Ranking, Run, best_by_words, ranked
from selfroute.languages.tokens import count_tokens

MINUTES = load_documents()["harbour-minutes.md"]
RAIN = "It rained all day, and nobody came to the quay. " * 24


def read(runs: list[Run], texts: list[str]) -> list[str]:
    return [texts[run.document][run.start : run.end] for run in runs]


def filled(question: str, text: str, *passages: str, budget: int = 300) -> str:
    """The text that is read of one document, with marks where something is left out."""
    runs = ranked(question, [text], passages).fill(budget, count_tokens, always=len(passages))
    return " [...] ".join(read(runs, [text]))


def texts_in(case: dict[str, Any]) -> list[str]:
    return list(map(text_of, GOLDEN[case["texts"]] if isinstance(case["texts"], str) else case["texts"]))


@golden("ranked")
def test_ranked(case: dict[str, Any]) -> None:
    """The documents, the best section, and the runs with their beginnings.

    A budget is in tokens, or in characters, and `each` more for each text.
    """
    texts = texts_in(case)
    found = ranked(case["question"], texts, case["passages"], origins=case.get("origins", ()))
    count = count_tokens if "tokens" in case else lambda text: len(text) + case.get("each", 0)
    runs = found.fill(case.get("tokens", case.get("budget")), count, always=case["always"])
    shown = [[run.document, run.start, run.end, texts[run.document][run.start : run.end][:20]] for run in runs]
    assert [found.documents, found.best and [*found.best], shown] == case["is"]


@golden("best_by_words")
def test_best_by_words_pinned(case: dict[str, Any]) -> None:
    texts = texts_in(case)
    assert [texts[at] for at in best_by_words(case["question"], list(map(Index, texts)))] == case["is"]


def test_sections_hold_all_sentences() -> None:
    for text in load_documents().values():
        found = Index(text)
        assert "".join(text[start:end] for start, end in found.sections).split() == text.split() or all(
            text[end:start].isspace() for (_, end), (start, _) in pairwise(found.sections)
        )
        assert found.sections[0][0] == found.spans[0][0]
        assert found.sections[-1][1] == found.spans[-1][1]
        assert all(0 < end - start <= SECTION for start, end in found.sections)
        assert sum(found.section_sizes) == sum(found.sizes)


PARAGRAPH = ("The ferry left. " * 50).strip()  # 799 characters
ITEMS = "- tea\n" * 50


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{PARAGRAPH}\n\n{PARAGRAPH}\n\n{PARAGRAPH}", [PARAGRAPH] * 3),
        (f"{PARAGRAPH}\n\n{ITEMS}\n{PARAGRAPH}", [f"{PARAGRAPH}\n\n{ITEMS.strip()}", PARAGRAPH]),
        ("- A ferry\n" * 200, [("- A ferry\n" * 120).strip(), ("- A ferry\n" * 80).strip()]),
        ("It left.  " * 200, [("It left.  " * 120).strip(), ("It left.  " * 80).strip()]),
        ("a " * 1_000, ["a " * 499 + "a"] * 2),
        ("a" * 2_500, ["a" * 1_000, "a" * 1_000, "a" * 500]),
        (" \n\t ", []),
    ],
    ids=["paragraphs", "a list", "lines", "sentences", "a long sentence", "no spaces", "white space"],
)
def test_section_ends(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in Index(text).sections] == expected


SAID = {
    "English": ("Who repaired the crane?", "Ms Okafor repaired the cranes in May."),
    "only stop words": ("Who is it?", "Who it is we could not say."),
    "German": ("Wann ruhten die Häfen?", "Am 3. Oktober ruhten alle Haefen und HÄFEN."),
    "Chinese": ("主席是谁？", "会议的主席是李明先生。"),
}


@pytest.mark.parametrize("language", SAID)
def test_ranked_by_the_words_of_the_question(language: str) -> None:
    question, said = SAID[language]
    text = f"{RAIN}\n\n{RAIN}\n\n{said}\n\n{RAIN}\n\n{RAIN}"
    assert said in filled(question, text)


def test_ranked_by_rare_words() -> None:
    common = ("The harbour is what it is. What is the harbour? " * 20).strip()
    text = "\n\n".join([common, f"{RAIN}A winch.", *[f"{RAIN} {common[:200]}"] * 6])
    assert "A winch." in filled("What is the winch of the harbour?", text)


def test_ranked_by_retriever_and_words() -> None:
    parts = [f"Day {number}. {RAIN}".strip() for number in range(30)]
    parts[4] += " The crane was repaired."
    text = "\n\n".join(parts)
    ranking = ranked("Who repaired the crane?", [text], [parts[20]])
    [by_words, by_retriever] = read(ranking.fill(700, count_tokens, always=0), [text])
    assert (by_words, by_retriever) == (parts[4], parts[20])


def test_fill_always_reads_the_first_passages() -> None:
    text = " ".join(f"It rained on day {number}, and nobody came." for number in range(1_000))
    passages = [text[at : at + 400] for at in (20_000, 10_000, 30_000)]
    ranking = ranked("?", [text], passages)
    runs = ranking.fill(220, count_tokens, always=2)
    assert read(runs, [text]) == [passage.strip() for passage in (passages[1], passages[0])]
    assert read(ranking.fill(150, count_tokens, always=2), [text]) == [passages[0].strip()]
    for budget in (50, 0, -1):
        assert ranking.fill(budget, count_tokens, always=2) == []
    whole = ranking.fill(100_000, count_tokens, always=2)
    assert read(whole, [text]) == [text]
    twice = f"{RAIN.strip()}\n\n{RAIN.strip()}"  # what a passage holds is counted once
    [run] = ranked("Who came to the quay?", [twice], [RAIN]).fill(count_tokens(twice), count_tokens, always=1)
    assert (run.start, run.end) == (0, len(twice))


def test_fill_with_a_passage_that_stands_nowhere() -> None:
    expected = ranked("Who retrieved the bell?", [MINUTES], [MINUTES[500:900]]).fill(1_000, count_tokens, always=1)
    odd = ["", "  ", "\ud800", "This stands nowhere.", MINUTES[500:900]]
    fill = ranked("Who retrieved the bell?", [MINUTES], odd).fill
    assert fill(150, count_tokens, always=5) == ranked("", [MINUTES], odd[4:]).fill(150, count_tokens, always=1)
    assert fill(150, count_tokens, always=4) != fill(150, count_tokens, always=5)
    assert {run.document for run in expected} == {0}


def test_ranked_documents() -> None:
    crane, ferry = f"{RAIN}\n\nThe crane was repaired. {RAIN}", f"{RAIN}\n\nThe ferry was late. {RAIN}"
    nothing = "Tea was served. " * 100
    assert ranked("Who repaired the crane?", [nothing, ferry, crane], []).documents == [2, 0, 1]
    assert ranked("Who repaired the crane?", [ferry, crane], [ferry[1_200:1_400], ferry[:400]]).documents == [0, 1]
    assert ranked("Who came?", [nothing, nothing], []).documents == [0, 1]
    assert ranked("Who came?", [], ["Nobody."]).documents == []


def test_ranked_passage_of_several_documents() -> None:
    passage = RAIN.strip()
    fill = ranked("", ["Tea.", passage, passage], [passage]).fill
    assert fill(count_tokens(passage), count_tokens, always=1) == [Run(1, 0, len(passage))]
    begun = f"{passage[:100]} Tea was served."
    fill = ranked("", [begun, passage], [passage]).fill
    assert fill(count_tokens(passage), count_tokens, always=1) == [Run(1, 0, len(passage))]


def test_ranked_passage_of_its_origins() -> None:
    quoted = "The crane was repaired by Ms Okafor in the spring of that year. "
    texts = [f"{RAIN}\n\n{quoted}", f"Tea. {quoted}", f"{RAIN}{quoted}", RAIN]

    def place(*origins: int) -> int:
        [run] = ranked("", texts, [quoted], origins=[origins]).fill(
            count_tokens(quoted.strip()), count_tokens, always=1
        )
        assert read([run], texts) == [quoted.strip()]
        return run.document

    assert [place(), place(1), place(2, 1), place(3), place(3, 1)] == [0, 1, 2, 0, 1]
    assert ranked("", texts, [quoted], origins=[None]).documents[0] == 0
    assert ranked("", texts, [quoted, RAIN], origins=[(1,), ()]).documents == [1, 0, 2, 3]


def by_words(question: str, texts: list[str]) -> Ranking:
    """BM25 over all sections, word by word."""
    indexes = [Index(text) for text in texts]
    sections = [Run(number, *span) for number, one in enumerate(indexes) for span in one.sections]
    lengths = [size for one in indexes for size in one.section_sizes]
    first = list(accumulate((len(one.sections) for one in indexes), initial=0))
    scores: dict[int, float] = defaultdict(float)
    asked = set(stems_of(question))
    for stem in sorted(asked - set(stems_of(_STOP_WORDS)) or asked):
        held = [(first[at] + n, times) for at, one in enumerate(indexes) for n, times in one.in_sections(stem).items()]
        for number, times in held:
            most = 1.2 * (0.25 + 0.75 * lengths[number] * len(lengths) / sum(lengths))
            rarity = math.log(1 + (len(lengths) - len(held) + 0.5) / (len(held) + 0.5))
            scores[number] += rarity * times * 2.2 / (times + most)
    order = sorted(range(len(sections)), key=lambda number: (-round(scores.get(number, 0), 9), number))
    worth = [0.0] * len(texts)
    for rank, number in enumerate(number for number in order if number in scores):
        worth[sections[number].document] += 1 / (1 + rank)
    documents = sorted(range(len(texts)), key=lambda at: -worth[at])
    return Ranking(texts, passages=[], sections=[sections[number] for number in order], documents=documents)


LONG_QUESTION = " ".join(MINUTES.split()[:300])


@pytest.mark.parametrize(
    "question", ["Who retrieved the bell?", "What is it?", "", "The harbour! 主席 zzz", LONG_QUESTION]
)
def test_ranked_as_by_every_word(question: str) -> None:
    texts = list(load_documents().values())
    expected, found = by_words(question, texts), ranked(question, texts, [])
    assert found.documents == expected.documents
    for budget in (300, 1_000, 3_000, 10_000):
        assert found.fill(budget, count_tokens, always=0) == expected.fill(budget, count_tokens, always=0)


def test_ranked_by_a_long_question() -> None:
    rare, common = (" ".join(f"{kind}{number}." for number in range(300)) for kind in ("rare", "common"))
    texts = ["Tea was served.", f"{common}\n\n{common}\n\n{common}", rare]
    assert ranked(common, texts, []).documents == [1, 0, 2]
    assert ranked(f"{common} {rare}", texts, []).documents == [2, 0, 1]


WORDS = ["crane ", "ferry. ", "Okafor\n\n", "主席。", "\n", " ", "\0", "\ud800", "\u202e", "e\u0301", "x" * 700, RAIN]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=40).map("".join)


@examples(200)
@given(
    texts=st.lists(TEXTS, max_size=3),
    cuts=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9_000), st.integers(1, 1_500)), max_size=4),
    always=st.integers(0, 3),
    budgets=st.lists(st.integers(0, 6_000), min_size=2, max_size=4).map(sorted),
    count=st.sampled_from([count_tokens, len, lambda text: len(text) // 1_000, lambda text: 10 + len(text) // 4]),
)
def test_fill_any_budget(
    texts: list[str],
    cuts: list[tuple[int, int, int]],
    always: int,
    budgets: list[int],
    count: Callable[[str], int],
) -> None:
    passages = [texts[number][at : at + size] for number, at, size in cuts if number < len(texts)]
    ranking = ranked("Who repaired the crane of 主席 Okafor?\ud800\0", texts, passages)
    smaller: list[Run] = []
    for budget in budgets:
        runs = ranking.fill(budget, count, always=always)
        found = read(runs, texts)
        assert sum(map(count, found)) <= budget
        assert runs == sorted(runs)
        assert all(text and text == text.strip() for text in found)
        for before, after in pairwise(runs):
            if before.document == after.document:
                assert texts[before.document][before.end : after.start].strip()
        assert all(
            any(run.document == one.document and one.start <= run.start and run.end <= one.end for one in runs)
            for run in smaller
        )
        smaller = runs
    assert sorted(ranking.documents) == [*range(len(texts))]
    assert ranking.fill(10**9, count, always=always) == [
        Run(number, len(text) - len(text.lstrip()), len(text.rstrip()))
        for number, text in enumerate(texts)
        if text.strip()
    ]


HOSTILE = {
    "no spaces": "crane" * 50_000,
    "right to left": "\u202eשלום " * 40_000,
    "lone surrogates": "\ud800" * 250_000,
    "line breaks": "\n" * 1_000_000 + "crane",
    "Chinese": "主席" * 100_000,
    "one long space": f"crane{' ' * 1_000_000}crane",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_fill_hostile_texts(kind: str) -> None:
    text = HOSTILE[kind]
    for question in ("Who repaired the crane?", text):
        ranking = ranked(question, [text, "A crane."], [text[:2_000], text[-500:], text])
        runs = ranking.fill(4_000, count_tokens, always=2)
        assert sum(count_tokens(one) for one in read(runs, [text, "A crane."])) <= 4_000
        assert Run(1, 0, 8) in ranking.fill(10**9, count_tokens, always=3)


def test_best_by_words() -> None:
    texts = [
        "The ferry sails at noon.",
        "It rained.",
        "The ferry and the harbour.",
        "A harbour, a ferry, a lighthouse.",
    ]
    found = best_by_words("Which harbour has a lighthouse and a ferry?", [Index(text) for text in texts])
    assert found == [3, 2, 0]
    assert best_by_words("Who?", [Index(text) for text in texts]) == []


SCRIPTS = {
    "English": "The harbour board met on 12 March. Ms Chen took the chair. Ice was set at ninety a tonne. ",
    "with dashes": "The board’s meeting was on 12 March. Ms Chen took the chair — again. Ice was “ninety a tonne”. ",
    "Chinese": "港务局于三月十二日召开会议。会议由陈女士主持。冰的价格定为每吨九十元。",
    "Japanese": "港湾局は三月十二日に会議を開いた。議長は陳氏が務めた。氷の値段は一トン九十円と決まった。",
    "Korean": "어선 조합은 삼월 십이일에 회의를 열었다. 의장은 박 선장이었다. 얼음 값은 톤당 구만 원으로 정했다. ",
    "Russian": "Портовый совет собрался 12 марта. Заседание вела г-жа Чен. Цена льда была установлена. ",
    "Hindi": "बंदरगाह समिति की बैठक 12 मार्च को हुई। अध्यक्षता सुश्री चेन ने की। बर्फ का दाम नब्बे तय हुआ। ",
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_sections_have_as_many_tokens_in_each_script(script: str) -> None:
    text = SCRIPTS[script] * 150
    *whole, last = [count_tokens(text[start:end]) for start, end in Index(text).sections]
    assert len(whole) > 3
    assert all(200 < size < 340 for size in whole), whole
    assert last < 340


@pytest.mark.parametrize(
    ("noun", "word"),
    [("조합", "조합은"), ("회의", "회의를"), ("항구", "항구에서"), ("선장", "선장이"), ("부두", "부두까지")],
)
def test_korean_nouns_are_found_with_their_particles(noun: str, word: str) -> None:
    assert set(stems_of(noun)) <= set(stems_of(word))
    assert Index(f"{word} 열었다.").holding(next(iter(stems_of(noun)))) == {0}
