"""Does a reply decline? The verdict on whole replies, the same verdict on streams, and how little a stream waits."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selfroute.answerability import ANSWERED, EMPTY, NO_PASSAGES, Gate, Verdict, declines
from selfroute.wording import clause, may_decline

SENTINELS = [
    "unanswerable",
    "Unanswerable.",
    "UNANSWERABLE!",
    '"unanswerable"',
    "\u201cUnanswerable\u201d",
    "\u300cunanswerable\u300d",
    "\uff02unanswerable\uff02",
    "**Unanswerable**",
    "**Unanswerable.**",
    "# Unanswerable",
    "> unanswerable",
    "- unanswerable",
    "`unanswerable`",
    "```\nunanswerable\n```",
    "```text\nunanswerable\n```",
    "[unanswerable]",
    "(unanswerable)",
    "\ufeff \n\tunanswerable \n",
    "Answer: unanswerable",
    "**Answer:** Unanswerable.",
    "Final answer: unanswerable",
    "### Answer:\n\nunanswerable",
    "unanswerable unanswerable",
    "unanswerable because the passages stop in May",
    "unanswerable (no date is given)",
    "unanswerable: no date is given",
    "Unanswerable, the passages do not say.",
    "unanswerable \u2014 no date is given",
    "unanswerable - not stated",
    "Unanswerable. The passages only cover 1921.",
    "Unanswerable\n\nThe passages only cover 1921.",
    "Unanswerable The passages only cover 1921.",
    "unanswerable based on the provided text",
    "unanswerable from the given context",
    "unanswerable with the information provided",
]

PHRASES = [
    "The provided excerpts do not mention the harbour master.",
    "The passages don't say who won.",
    "The context doesn\u2019t contain that.",
    "The given context does not include any information about wages.",
    "The passage never mentions a dog.",
    "The documents lack any mention of the treaty.",
    "The context is insufficient to answer the question.",
    "The passages contain no information about the harvest.",
    "The text fails to mention the year.",
    "The text does not break the cost down specifically for 1921.",
    "Paper 1 discusses bridges, above all wooden ones. It does not address ferries.",
    "The passages discuss the harbour but do not name its master.",
    "**The passages do not mention** a price.",
    "The *provided* text does **not** mention it.",
    "Based on the provided context, there is no information about the harvest.",
    "Based on a careful review of the document, there are no specific details about wages.",
    "Based on the annual report, Mills & Sons does not explicitly outline a plan.",
    "According to the passages, there is no mention of a strike.",
    "From the passages provided, it is not possible to determine the price.",
    "While the passages mention the harbour, they do not say who ran it.",
    "As the passages do not mention a price, I cannot answer.",
    "After reviewing the passages, I could not find the price.",
    "As an AI language model, I cannot find this in the passages.",
    "I'm sorry, but I cannot determine the price from the passages.",
    "I apologize for the confusion, but the passages do not mention it.",
    "I'm afraid the passages don't say.",
    "I don't know.",
    "I am unable to answer this question from the passages.",
    "I have reviewed the passages and could not find the price.",
    "I found no mention of a price.",
    "Unfortunately, there is not enough information to answer.",
    "There is no mention of the price.",
    "There isn't any mention of the price.",
    "There are no figures for 1921 in the provided passages.",
    "No details are provided.",
    "None of the passages mention a lighthouse.",
    "No lantern was lit by the keeper. The passages do not mention any lantern.",
    "Insufficient information to answer.",
    "Not mentioned in the passages.",
    "Cannot be determined from the passages.",
    "It is not stated in the text who built it.",
    "It seems that the passages do not mention a price.",
    "The price is not specified.",
    "The exact date of the launch isn't given in the text.",
    "The price as of May 31 is not stated in the text.",
    "The answer is not in the passages.",
    "The question cannot be answered with the given information.",
    "The question is unanswerable.",
    "This information is not available in the text.",
    "The passages say nothing about fees.",
    "The passages are about cooking and do not mention ships.",
    "The passages only describe the harbour and do not name its master.",
    "The question asks about the fee, but the passages do not mention it.",
    "The information provided is not sufficient to determine the fee.",
    "I regret to inform you that the passages do not cover this.",
    "I'm not sure; the passages do not say.",
    "My apologies, but the context doesn't include this.",
    "There does not appear to be any mention of a fee.",
    "Nowhere in the text is the fee given.",
    "Without more information, I cannot answer.",
    "Unclear from the passages.",
    "Her age is not mentioned in the passages.",
    "The passages do not name a price. However, they mention a fee.",
    "The price is not stated, but the passages mention a fee.",
]

ANSWERS = [
    "S4: theoretically unanswerable",
    "Unanswerable questions go to the chair.",
    '"Unanswerable" is what the chair called it.',
    "unanswerables exist",
    "unanswerable's plural is rare",
    "Unanswerable? Not at all: it was 1921.",
    "un",
    "Una",
    "No, the text says they never met.",
    "No.",
    "None",
    "Nothing.",
    "42",
    "-5",
    "$12",
    "\u662f",
    "\U0001f44d",
    "Yes, the passages mention it twice.",
    "There is no dividend.",
    "There is no lighthouse on the island.",
    "There are three.",
    "No dividend was paid.",
    "None of the directors resigned.",
    "While not stated outright, the total is 12.4 from the table",
    "The passages do not state it directly, but adding the two rows gives 12.4.",
    "The text does not explicitly name him, but it was John Smith who signed.",
    "The total is not given directly; however, it can be calculated as 5 + 7 = 12.",
    "The passages don't give the total. However, it can be calculated: 5 + 7 = 12.",
    "The wood is not specified, but it is implied to be oak.",
    "The text says that she did not mention her age.",
    "The author argues that a cube cannot have a real existence.",
    "The firm holds most of it, but the exact share is not specified.",
    "The firm does not pay a dividend.",
    "The meals were not provided by the hotel.",
    "The report was not published until 1921.",
    "The treasure was not found.",
    "The ratio cannot be calculated because no dividend was paid.",
    "They did not find the treasure.",
    "It was not until 1921 that the bridge opened.",
    "It is not a lighthouse but a tower.",
    "According to the passages, the price is 12.",
    "Based on the text, the dog's name is Rex.",
    "According to the report, if the firm fails to pay, it loses the lease.",
    "The answer is no.",
    "The passages suggest that the fee was not disclosed.",
    "The document says nothing may be carried over.",
    "The story reveals the name: Ames.",
    "Without more funding, the firm would close.",
    "According to the text, nobody survived.",
    "The firm is unable to pay.",
    "It looks like rain.",
    "Answer: 42",
    "The answer is 42.",
    "Insufficient funds.",
    "Unable to pay its debts, the firm closed in 1921.",
    "The May report was late.",
]


def stream(text: str, refusal: str = "unanswerable") -> tuple[int, Gate]:
    """Feed `text` character by character; return how many were taken in when the verdict stood."""
    gate = Gate(refusal)
    for taken, character in enumerate(text, start=1):
        gate.feed(character)
        if gate.verdict is not None:
            return taken, gate
    return len(text), gate


@pytest.mark.parametrize("reply", SENTINELS)
def test_a_reply_that_is_the_refusal_declines(reply: str) -> None:
    verdict = declines(reply)
    assert verdict
    assert verdict.signal == "sentinel"
    assert verdict.evidence.lower() == "unanswerable"


@pytest.mark.parametrize("reply", PHRASES)
def test_a_reply_that_says_in_its_own_words_that_the_text_does_not_tell_declines(reply: str) -> None:
    verdict = declines(reply)
    assert verdict
    assert verdict.signal == "phrase"
    assert verdict.evidence
    assert verdict.evidence in reply


@pytest.mark.parametrize("reply", ANSWERS)
def test_an_answer_does_not_decline(reply: str) -> None:
    assert declines(reply) == ANSWERED


@pytest.mark.parametrize("reply", ["", " ", "\n\n", "**", "```\n```", "...", "\u200b", "Answer:"])
def test_a_reply_without_a_word_is_empty(reply: str) -> None:
    assert declines(reply) == EMPTY


@pytest.mark.parametrize(
    ("refusal", "reply"),
    [
        ("NO ANSWER", "no answer"),
        ("NO ANSWER", "**No\nAnswer.**"),
        ("I don't know", "I don\u2019t know."),
        ("I don't know", "I DON'T KNOW, the passages stop there"),
        ("no_answer", "no_answer"),
        ("no_answer", "no\\_answer"),
        ("[NO ANSWER]", "[NO ANSWER]"),
        ("(n/a)*+?", "(N/A)*+?"),
        ("???", "???"),
        ("-1", "-1"),
        ("Unanswerable.", "unanswerable"),
        ("STRASSE", "Stra\u00dfe"),
        ("n\u00e3o sei", "na\u0303o sei"),
        ("\u65e0\u6cd5\u56de\u7b54", "\u65e0\u6cd5\u56de\u7b54\u3002"),
    ],
)
def test_the_refusal_may_be_any_text(refusal: str, reply: str) -> None:
    assert declines(reply, refusal).signal == "sentinel"


@pytest.mark.parametrize(
    ("refusal", "reply"),
    [
        ("NO ANSWER", "No answer was needed."),
        ("NO ANSWER", "no"),
        ("a.b*", "axbb"),
        ("-1", "1"),
        ("<none>", "None"),
        ("", "42"),
    ],
)
def test_another_refusal_matches_nothing_but_itself(refusal: str, reply: str) -> None:
    assert declines(reply, refusal) == ANSWERED


def test_a_verdict_is_truthy_when_it_declines_and_is_plain_json() -> None:
    assert not ANSWERED
    assert EMPTY
    assert NO_PASSAGES.as_dict() == {"declined": True, "signal": "no_passages", "evidence": ""}
    assert declines("**Unanswerable**").as_dict() == {
        "declined": True,
        "signal": "sentinel",
        "evidence": "Unanswerable",
    }


openings = st.sampled_from([*SENTINELS, *PHRASES, *ANSWERS, "Answer:", "The", "I don't", "un", "```", ""])
fragments = st.one_of(
    st.sampled_from([" ", "\n", "**", ", but ", ". However, ", "? ", " not ", "12", "The text ", "'", "-", "  \n\n"]),
    st.text(max_size=12),
)
replies = st.builds(
    lambda before, opening, after, much: before + opening + "".join(after) * much,
    st.sampled_from(["", " ", "**", "\n> ", "```text\n", "\ufeff"]),
    openings,
    st.lists(fragments, max_size=6),
    st.sampled_from([1, 1, 1, 40]),
)
refusals = st.sampled_from(["unanswerable", "unanswerable", "I don't know", "[NO ANSWER]", "The", "-1", ""])


@settings(max_examples=600, deadline=None)
@given(reply=replies, refusal=refusals, data=st.data())
def test_a_stream_gets_the_verdict_of_the_whole_and_loses_nothing(
    reply: str, refusal: str, data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(reply)), max_size=12)))
    pieces = [reply[start:end] for start, end in zip([0, *cuts], [*cuts, len(reply)], strict=True)]
    gate = Gate(refusal)
    shown = [gate.feed(piece) for piece in pieces]
    shown.append(gate.end())
    assert gate.verdict == declines(reply, refusal)
    assert "".join(shown) == ("" if gate.verdict else reply)
    assert gate.feed("more") == ("" if gate.verdict else "more")


@settings(max_examples=300, deadline=None)
@given(reply=replies, refusal=refusals, following=st.one_of(openings, fragments))
def test_a_settled_verdict_never_changes(reply: str, refusal: str, following: str) -> None:
    taken, gate = stream(reply, refusal)
    if gate.verdict is not None:
        assert declines(reply[:taken], refusal) == gate.verdict
        assert declines(reply[:taken] + following, refusal) == gate.verdict


@pytest.mark.parametrize(
    ("reply", "held"),
    [
        ("Paris is the capital.", "Paris "),
        ("42 ships.", "42 "),
        ("No, they never met.", "No, t"),
        ("**Paris** is the capital.", "**Paris*"),
        ("As of May 2021, it was 12.", "As of "),
        ("In 1921 no ship came.", "In 1921 "),
        ("The price is 12.", "The price is 12."),
        ("The text says that she left.", "The text says that"),
        ("There are three.", "There are three."),
    ],
)
def test_an_answer_flows_as_soon_as_it_cannot_be_a_decline(reply: str, held: str) -> None:
    taken, gate = stream(reply + " And so on.")
    assert gate.verdict == ANSWERED
    assert taken <= len(held) + 1


@pytest.mark.parametrize("lead", ["", " \n" * 400, "**", "> ", "```text\n"])
def test_no_answer_waits_longer_than_its_opening(lead: str) -> None:
    reply = lead + "The passages" + " and the other old papers of the house" * 50
    taken, gate = stream(reply)
    assert gate.verdict == ANSWERED
    assert taken - len(lead) <= 210


@pytest.mark.parametrize(
    "reply",
    [
        "Unanswerable. The passages only cover 1921, which is",
        "unanswerable because the passages only cover 1921",
        "unanswerable from the passages that were given",
        "unanswerable \u2014 the passages only cover 1921",
        "**Unanswerable**\n\nThe passages only cover 1921",
    ],
)
def test_a_refusal_with_more_after_it_is_settled_within_two_words(reply: str) -> None:
    taken, gate = stream(reply)
    assert gate.verdict == Verdict(declined=True, signal="sentinel", evidence=reply.strip("*")[:12])
    assert len(reply[:taken].replace("\u2014", "").split()) <= 3


@pytest.mark.parametrize("reply", ["unanswerable", "**Unanswerable.**", "`unanswerable`\n\n", "Answer: unanswerable!"])
def test_a_reply_that_is_only_the_refusal_stays_open_until_it_ends(reply: str) -> None:
    _, gate = stream(reply)
    assert gate.verdict is None
    assert gate.end() == ""
    assert gate.verdict == declines(reply)


def test_a_declined_stream_shows_nothing_and_ends_twice_alike() -> None:
    gate = Gate()
    assert [gate.feed(piece) for piece in ("The text do", "es n", "ot menti", "on it. ", "It is", " short.")] == [
        ""
    ] * 6
    assert gate.end() == ""
    assert gate.end() == ""
    assert gate.verdict == declines("The text does not mention it. It is short.")


@pytest.mark.parametrize("unit", ["word ", "unanswerable ", "The passages, ", "I do not know. ", "'", "**", "\n"])
def test_a_huge_reply_is_judged_by_its_opening(unit: str) -> None:
    huge = unit * (2_000_000 // len(unit))
    gate = Gate()
    for at in range(0, 200_000, 4):
        gate.feed(huge[at : at + 4])
    gate.end()
    assert declines(huge) == gate.verdict == declines(huge[:1_000])


@given(st.from_regex(r"[A-Za-z]{1,12}", fullmatch=True))
def test_a_first_word_that_rules_a_decline_out_does_so_whatever_follows(word: str) -> None:
    assert may_decline(word.lower()) or _read([word.lower(), "does", "not", "say", "."]) is False


@pytest.mark.parametrize(
    "first", ["Based", "The", "I", "No", "There", "Unfortunately", "Sadly", "Ames's", "can't", "Not"]
)
def test_a_first_word_of_many_declines_is_waited_for(first: str) -> None:
    gate = Gate()
    assert gate.feed(f"{first} ") == ""
    assert gate.verdict is None


def _read(words: list[str]) -> bool | None:
    reader = clause()
    next(reader)
    try:
        for word in words:
            reader.send(word)
    except StopIteration as stop:
        return stop.value
    return None


@pytest.mark.parametrize(
    "reply",
    [
        "unanswerable weil der Text nichts sagt",
        "Unanswerable car le texte ne le dit pas",
        "unanswerable porque el texto no lo dice",
        "unanswerable（文中未提及）",
        "unanswerable，文中未提及",
        "unanswerable 文中没有提到",
        "unanswerable потому что в тексте этого нет",
    ],
)
def test_a_refusal_may_be_explained_in_another_language(reply: str) -> None:
    assert declines(reply) == Verdict(True, "sentinel", reply[:12])


@pytest.mark.parametrize("reply", ["Unanswerable Fragen gehen an den Vorsitz.", "Unanswerable déjà vu is its title."])
def test_a_refusal_that_is_a_word_of_a_sentence_in_another_language_is_none(reply: str) -> None:
    assert not declines(reply)
