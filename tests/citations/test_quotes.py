"""A quote of the model's is found where it stands, but for white space, quotation marks and dashes; or not at all."""

from __future__ import annotations

import pytest

from selfroute.citations import cite

TEXT = (
    'The “charter” was  granted\nin 1650 — by the Court. He said: "don\'t go". It was bad in 1942; in 42 it was fine. '
    "A well-known “” rule. 東京都の人口は「約1400万人」である。"
)
FOUND: dict[str, str] = {
    '"The charter was granted in 1650 - by the Court."': "The “charter” was  granted\nin 1650 — by the Court",
    "don’t go": "don't go",
    "dont go": "don't go",
    "42": "42",
    "well known rule.": "well-known “” rule",
    "a “well–known rule” ": "",  # not in this case
    "約1400万人": "約1400万人",
    "人口": "人口",
}


@pytest.mark.parametrize("quote", FOUND)
def test_a_quote_is_found_word_for_word(quote: str) -> None:
    cited = cite("Who?", "Nobody", [("book", TEXT)], quotes=[quote])
    assert cited.unverified_quotes == (not FOUND[quote])
    for one in cited.citations:
        assert one["text"] == FOUND[quote] == TEXT[one["start"] : one["end"]]
        assert (one["verified"], one["score"], one["source"]) == (True, 1.0, "book")


def test_a_number_within_another_is_no_quote() -> None:
    (found,) = cite("", "", [("book", TEXT)], quotes=["42"]).citations
    assert TEXT[: found["start"]].endswith("; in ")


NOWHERE = ["", "  ", "...", "“”", "—", "granted in 1651", "Charter", "(.*)", "\ud800", "a" * 9_999]


@pytest.mark.parametrize("quote", NOWHERE, ids=lambda quote: ascii(quote[:20]))
def test_what_stands_nowhere_is_counted(quote: str) -> None:
    cited = cite("", "", [("book", TEXT)], quotes=[quote, quote])
    assert cited == ([], 2)


def test_of_several_places_the_one_that_says_the_answer_is_cited() -> None:
    text = "It cost 42 pounds. It rained. Ms Okafor paid 42 pounds for the bell."
    (found,) = cite(
        "What did Ms Okafor pay for the bell?", "42 pounds", [("book", text)], quotes=["42 pounds"]
    ).citations
    assert found["start"] == text.rindex("42 pounds")


def test_quotes_are_cited_in_their_order_each_once_and_three_at_most() -> None:
    texts = [("first", "Tea was served. We met at ten."), ("second", "It rained. Nobody came.")]
    quotes = ["Nobody came.", "Tea was served.", "nobody said so", "Nobody came", "It rained.", "We met"]
    cited = cite("Who came?", "Nobody", texts, quotes=quotes)
    assert [(one["source"], one["text"]) for one in cited.citations] == [
        ("second", "Nobody came"),
        ("first", "Tea was served"),
        ("second", "It rained"),
    ]
    assert cited.unverified_quotes == 1


def test_a_quote_across_two_documents_stands_nowhere() -> None:
    texts = [("first", "Tea was served."), ("second", "It rained.")]
    assert cite("", "", texts, quotes=["served. It rained"]).unverified_quotes == 1


@pytest.mark.parametrize(
    ("quote", "text"),
    [("a" * 1_999, "a" * 1_000_000), ("b c", "\"' " * 200_000 + "b c"), ("a b " * 400 + "c", "a b " * 200_000)],
    ids=["one word", "quotation marks", "nearly"],
)
def test_a_hostile_text_is_searched_soon(quote: str, text: str) -> None:
    cited = cite("", "", [("book", text)], quotes=[quote])
    assert [text[one["start"] : one["end"]] for one in cited.citations] == ([quote] if " " + quote in text else [])
