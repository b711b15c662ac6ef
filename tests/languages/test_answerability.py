"""Does a reply decline? The verdict on whole replies, the same verdict on streams, and how little a stream waits."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes import examples
from replies import (
    ANSWERS,
    DECLINES,
    DENIALS,
    LEAD_INS,
    POLICIES,
    REFUSALS,
    STILL_DENYING,
    TELLING,
    by_language,
    languages_put_back,
)
from selfroute.answerability import ANSWERED, EMPTY, NO_PASSAGES, Gate, Verdict, declines, declines_anywhere
from selfroute.errors import ConfigurationError
from selfroute.languages import LANGUAGES, Language, add_language, grammar


def stream(text: str, refusal: str = "unanswerable") -> tuple[int, Gate]:
    """Feed `text` character by character; return how many were taken in when the verdict stood."""
    gate = Gate(refusal)
    for taken, character in enumerate(text, start=1):
        gate.feed(character)
        if gate.verdict is not None:
            return taken, gate
    return len(text), gate


every_reply = [
    reply for table in (REFUSALS, DECLINES, ANSWERS, LEAD_INS) for replies in table.values() for reply in replies
]
openings = st.sampled_from([*every_reply, "Answer:", "The", "I don't", "un", "```", "<think>", "</think>", ""])
fragments = st.one_of(
    st.sampled_from([" ", "\n", "**", ", but ", ". However, ", "? ", " not ", "12", "The text ", "'", "-", "  \n\n"]),
    st.text(max_size=12),
)
replies = st.builds(
    lambda before, opening, after, much: before + opening + "".join(after) * much,
    st.sampled_from(["", " ", "**", "\n> ", "```text\n", "\ufeff", "<think>No.</think>\n", "Answer: "]),
    openings,
    st.lists(fragments, max_size=6),
    st.sampled_from([1, 1, 1, 40]),
)
refusals = st.sampled_from(["unanswerable", "unanswerable", "I don't know", "[NO ANSWER]", "The", "-1", ""])


def misjudged(told: Sequence[str], right: Callable[[str], bool]) -> list[str]:
    """The replies that are not judged so."""
    return [reply for reply in told if not right(reply)]


def quotes(verdict: Verdict, reply: str, signal: str | None = None) -> bool:
    """Whether it declines, by this signal, and quotes the reply."""
    said = verdict.evidence
    return bool(verdict and said) and said in reply and signal in {verdict.signal, None}


@by_language(REFUSALS)
def test_a_reply_that_is_the_refusal_declines(told: Sequence[str]) -> None:
    assert misjudged(told, lambda reply: quotes(declines(reply), reply, "sentinel")) == []
    assert misjudged([declines(reply).evidence for reply in told], lambda one: declines(one).signal == "sentinel") == []


@by_language(DECLINES)
def test_a_reply_that_says_in_its_own_words_that_the_text_does_not_tell_declines(told: Sequence[str]) -> None:
    assert misjudged(told, lambda reply: quotes(declines(reply), reply, "phrase")) == []


@by_language(ANSWERS)
def test_an_answer_does_not_decline(told: Sequence[str]) -> None:
    assert misjudged(told, lambda reply: declines(reply) == ANSWERED) == []


@by_language(POLICIES)
def test_an_answer_that_denies_a_fact_declines_by_neither_rule(told: Sequence[str]) -> None:
    assert misjudged(told, lambda reply: declines(reply) == declines_anywhere(reply) == ANSWERED) == []


@pytest.mark.parametrize(
    "reply", ["", " ", "\n\n", "**", "```\n```", "...", "\u200b", "Answer:", "<think>It was", "<think></think>\n"]
)
def test_a_reply_without_a_word_is_empty(reply: str) -> None:
    assert declines(reply) == EMPTY


@by_language(LEAD_INS)
def test_a_lead_in_with_nothing_after_it_is_empty_and_a_refusal_after_it_declines(told: Sequence[str]) -> None:
    assert misjudged(told, lambda reply: declines(reply) == declines_anywhere(reply) == EMPTY) == []
    assert misjudged(told, lambda reply: declines(f"{reply} unanswerable.").signal == "sentinel") == []
    assert misjudged(told, lambda reply: declines(f"{reply} 1921") == ANSWERED) == []


REFUSAL_WORDS = [
    *("unanswerable", "Unanswerable.", "NO ANSWER", "[NO ANSWER]", "{unanswerable}", "**none**", "I don't know."),
    *("keine Angabe", "Sans r\u00e9ponse", "no se sabe", "\u4e0d\u660e"),
    *("\u56de\u7b54\u3067\u304d\u307e\u305b\u3093", "N/A", "-1", "???", "(a|b)+"),
]
SAID = ["jonathan", "false", "answerable", "a", "he is not named", "questions go to the chair", "ZEBRA", "May", "5/10"]
SAID += ["? no", "?? who", ": false", "(x)", ".net", "'s plural", "-- y", "\u201cquoted\u201d", "<b>x</b>", "<think>x"]
SAID += ["\u7684\u95ee\u9898", "\u306e\u8cea\u554f", "es ist Jonathan", "il est parti", "42"]


@pytest.mark.parametrize("refusal", REFUSAL_WORDS)
def test_a_refusal_with_a_full_stop_declines_whatever_is_said_after_it(refusal: str) -> None:
    for said in SAID:
        reply = f"{refusal}. {said}"
        assert declines(reply, refusal).signal == "sentinel", reply
        _, gate = stream(reply, refusal)
        gate.end()
        assert gate.verdict == declines(reply, refusal), reply


@pytest.mark.parametrize("mark", ["\n", "\r", "\v", "\f", "\x85", "\u2028", "\u2029"])
def test_a_line_break_of_any_kind_ends_a_refusal(mark: str) -> None:
    assert declines(f"unanswerable{mark}zoe took the minutes").signal == "sentinel"


def test_what_is_invisible_does_not_hide_a_decline() -> None:
    for mark in ("\u00ad", "\u200b", "\u200d", "\u2060", "\ufeff", "\u202e", "\u2066", "\u061c", "\ufe0f"):
        assert declines(f"{mark}un{mark}answer{mark}{mark}able{mark}").signal == "sentinel"
        assert declines(f"The pas{mark}sages do not men{mark}tion it.").signal == "phrase"
        assert not declines(f"un{mark}answerable questions go to the chair")


@pytest.mark.parametrize(
    ("before", "declined"),
    [("Ok", True), ("Sure", True), ("So", True), ("However", True), ("Paris", False), ("May", False), ("Yes", False)],
)
def test_a_refusal_after_an_answer_is_part_of_the_answer_and_after_a_filler_it_declines(
    before: str, declined: bool
) -> None:
    assert bool(declines(f"{before}. unanswerable")) == declined


@pytest.mark.parametrize(
    ("refusal", "reply"),
    [
        ("NO ANSWER", "no answer"),
        ("NO ANSWER", "**No\nAnswer.**"),
        ("NO ANSWER", "Antwort: No answer"),
        ("[NO_ANSWER]", "NO_ANSWER"),
        ("{unanswerable}", "unanswerable"),
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
        ("nicht beantwortbar", "Nicht beantwortbar, da der Text schweigt."),
        ("The passages do not say whether it was ever found.", "The passages do not say whether it was ever found"),
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
        ("unknown", "Unknown U.S. officials met him."),
        ("unknown", "Unknown car thieves did it."),
        ("none", "None but the chair may vote."),
    ],
)
def test_another_refusal_matches_nothing_but_itself(refusal: str, reply: str) -> None:
    assert declines(reply, refusal) == ANSWERED


@by_language(DENIALS)
def test_a_denial_anywhere_in_a_reply_to_whole_documents_counts(told: Sequence[str]) -> None:
    assert misjudged(told, lambda reply: quotes(declines_anywhere(reply), reply) and not declines(reply)) == []


@by_language(TELLING)
def test_a_sentence_that_denies_and_then_answers_is_an_answer_to_whole_documents(told: Sequence[str]) -> None:
    assert misjudged(told, lambda reply: declines(reply).signal == "phrase") == []
    assert misjudged(told, lambda reply: declines_anywhere(reply) == ANSWERED) == []
    amid = [f"Kew is a garden. {reply} So it was." for reply in told]
    assert misjudged(amid, lambda reply: declines_anywhere(reply) == ANSWERED) == []
    denying = [f"{reply} The text does not mention the rest." for reply in told]
    assert misjudged(denying, lambda reply: declines_anywhere(reply).signal == "phrase") == []


@by_language(STILL_DENYING)
def test_a_sentence_that_denies_and_then_only_describes_declines_by_either_rule(told: Sequence[str]) -> None:
    assert misjudged(told, lambda reply: bool(declines(reply)) and quotes(declines_anywhere(reply), reply)) == []


@pytest.mark.parametrize("table", [REFUSALS, DECLINES], ids=["refusals", "declines"])
def test_what_declines_by_its_opening_declines_by_the_wider_rule(table: dict[str, list[str]]) -> None:
    for reply in (reply for replies in table.values() for reply in replies):
        assert declines_anywhere(reply) == declines(reply)


def test_an_answer_declines_by_the_wider_rule_only_if_a_part_of_it_denies() -> None:
    taken = [reply for replies in ANSWERS.values() for reply in replies if declines_anywhere(reply)]
    assert taken == [
        "The firm holds most of it, but the exact share is not specified.",
        "The firm was founded in 1987. Its capital is not mentioned.",
        "What the passages do not say is quoted below: 1921.",
        "\u6587\u4e2d\u63d0\u5230\uff0c\u6e21\u8f6e\u6bcf\u5929\u5f00\u4e24\u73ed\u3002\u6587\u4e2d\u6ca1\u6709\u63d0\u5230\u672b\u73ed\u8239\u7684\u65f6\u95f4\u3002",
    ]


def test_a_denial_counts_however_long_the_answer_before_it_is_and_not_in_what_the_model_thinks() -> None:
    answer = "The harbour was built in 1921, and two ships, both of oak, were kept there. "
    assert not declines_anywhere(answer * 200)
    assert declines_anywhere(answer * 200 + "The report does not mention their names.")
    assert declines_anywhere(answer * 3 + "\n\n**Unanswerable.**").signal == "sentinel"
    assert declines_anywhere(answer * 3 + "\nkeine Angabe", "keine Angabe").signal == "sentinel"
    assert not declines_anywhere("<think>The report does not mention it.</think>" + answer)


@examples(200)
@given(reply=replies, refusal=refusals, answer=st.sampled_from(["It was 12.", "1921"]))
def test_what_declines_still_does_after_an_answer_of_another_line(reply: str, refusal: str, answer: str) -> None:
    whole = declines_anywhere(reply, refusal)
    assert bool(whole) >= (declines(reply, refusal).signal in {"sentinel", "empty"})
    assert whole.evidence in reply


def test_the_time_of_the_wider_rule_grows_with_the_length_of_the_reply() -> None:
    for unit in ("The text, ", "there is no ", "while the paper, ", "It was oak. ", "(", "a, the ", "\u6587\u4e2d"):
        declines_anywhere(unit * 100)
        short, long = (min(seconds_of(unit * (size // len(unit))) for _ in range(2)) for size in (5_000, 50_000))
        assert long < 50 * short  # ten times, and squared it would be a hundred


def seconds_of(reply: str) -> float:
    """The time of this thread that a reply takes."""
    begun = time.thread_time()
    declines_anywhere(reply)
    return time.thread_time() - begun


@pytest.mark.parametrize("reply", ["The passages do not mention it.", "In 1921, no ship came.", "Based on it, 12"])
def test_a_gate_for_the_refusal_alone_lets_everything_else_flow(reply: str) -> None:
    gate = Gate(phrases=False)
    assert "".join(map(gate.feed, reply)) + gate.end() == reply
    assert gate.verdict == ANSWERED


@by_language(REFUSALS)
def test_a_gate_for_the_refusal_alone_holds_the_refusal_back(told: Sequence[str]) -> None:
    def holds_back(reply: str) -> bool:
        gate = Gate(phrases=False)
        return "".join(map(gate.feed, reply)) + gate.end() == "" and gate.verdict == declines(reply)

    assert misjudged(told, holds_back) == []


def test_a_verdict_is_truthy_when_it_declines_and_is_plain_json() -> None:
    assert not ANSWERED
    assert EMPTY
    assert NO_PASSAGES.as_dict() == {"declined": True, "signal": "no_passages", "evidence": "", "ruling": None}
    assert declines("**Unanswerable**").as_dict() == {
        "declined": True,
        "signal": "sentinel",
        "evidence": "Unanswerable",
        "ruling": None,
    }


@pytest.mark.parametrize(
    "dress", ["{}", "**{}**", "> {}", "  \n{}", "<think>Hm.</think>{}", "Answer: {}", "```\n{}\n```"]
)
def test_its_dress_does_not_change_a_verdict(dress: str) -> None:
    for replies, expected in ((DECLINES, True), (ANSWERS, False)):
        for reply in replies["English"]:
            if not reply.startswith(("<", "`", "Answer", "## ")):
                assert bool(declines(dress.format(reply.replace("'", "\u2019")))) == expected, reply


@examples(1000)
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


def test_every_reply_streamed_by_the_character_gets_the_verdict_of_the_whole() -> None:
    for reply in every_reply:
        gate = Gate()
        shown = "".join(map(gate.feed, reply)) + gate.end()
        assert (gate.verdict, shown) == (declines(reply), "" if gate.verdict else reply)


@examples(400)
@given(reply=replies, refusal=refusals, following=st.one_of(openings, fragments))
def test_a_settled_verdict_never_changes(reply: str, refusal: str, following: str) -> None:
    taken, gate = stream(reply, refusal)
    if gate.verdict is not None:
        assert declines(reply[:taken], refusal) == gate.verdict
        assert declines(reply[:taken] + following, refusal) == gate.verdict


@pytest.mark.parametrize("first", ["Yes", "1921", "42", "$12.4", "**7**"])
def test_an_answer_whose_first_word_rules_a_decline_out_is_not_held_at_all(first: str) -> None:
    assert Gate().feed(first) == first


@pytest.mark.parametrize("name", ["Lucy", "Dorian Gray", "\u00c9mile's dog", "Chief Regalia"])
def test_a_name_is_held_only_while_the_reply_may_still_say_that_it_is_not_mentioned(name: str) -> None:
    assert Gate().feed(f"{name} ") == ""
    assert declines(f"{name} is not mentioned in the provided chunks.").signal == "phrase"
    for answer in (f"{name}, the ", f"{name} is a ", f"{name}\n\n", f"{name} was not se"):
        assert Gate().feed(answer + "p") == answer + "p"


@pytest.mark.parametrize(
    ("reply", "held"),
    [
        ("Paris is the capital.", "Paris is "),
        ("Emma walked to the harbour that day.", "Emma walked "),
        ("No, they never met.", "No"),
        ("As of May 2021, it was 12.", "As "),
        ("In 1921 no ship came.", "In "),
        ("According to the report, it was 12.", "According to the "),
        ("Based on revenue, it grew.", "Based on "),
        ("The price is 12.", "The price is "),
        ("The text says that she left.", "The text says "),
        ("There are three.", "There are "),
        ("I kept it.", "I "),
        ("It was oak.", "It was "),
    ],
)
def test_an_answer_flows_as_soon_as_it_cannot_be_a_decline(reply: str, held: str) -> None:
    taken, gate = stream(reply + " And so on.")
    assert gate.verdict == ANSWERED
    assert len(held) < taken <= len(held) + 5  # the first letters of the next word tell
    assert reply[len(held) : taken - 1].isalnum() or taken == len(held) + 1


@pytest.mark.parametrize("lead", ["", " \n" * 400, "**", "> ", "```text\n", "<think>" + "Hm. " * 400 + "</think>"])
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
        "unanswerable weil der Text nur 1921 behandelt",
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


@pytest.mark.parametrize(
    "unit", ["word ", "unanswerable ", "The passages, ", "I do not know. ", "'", "**", "\n", "<think>", "\u6587"]
)
def test_a_huge_reply_is_judged_by_its_opening(unit: str) -> None:
    huge = unit * (2_000_000 // len(unit))
    gate = Gate()
    for at in range(0, 200_000, 4):
        gate.feed(huge[at : at + 4])
    gate.end()
    assert declines(huge) == gate.verdict == declines(huge[:1_000])


@pytest.fixture
def languages() -> Iterator[list[Language]]:
    with languages_put_back() as known:
        yield known


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.name)
def test_every_list_and_every_part_of_a_language_is_used(language: Language) -> None:
    rules = (
        language.start,
        *language.declines,
        *language.denials,
        *language.answers,
        *language.labels,
        *language.explains,
    )
    used = set(re.findall(r"\{(\w+)\}", " ".join([*rules, *language.parts.values()])))
    assert {*language.words, *language.parts} - used <= {"stops"}
    assert not set(language.words) & set(language.parts)


@pytest.mark.matrix
def test_many_questions_at_once_read_rules_that_no_one_has_read_before() -> None:
    replies = every_reply[::60]
    expected = [declines(reply) for reply in replies]
    for _ in range(3):
        grammar.cache_clear()
        with ThreadPoolExecutor(8) as pool:
            for found in pool.map(lambda _: [declines(reply) for reply in replies], range(8)):
                assert found == expected


def test_a_language_can_be_added_and_replaced(languages: list[Language]) -> None:
    reply = "Il testo non menziona il prezzo."
    assert not declines(reply)
    italian = Language(
        name="Italian",
        declines=("{text} non {tell}",),
        words={"text": "il_testo i_brani il_documento", "tell": "menziona* dice dicono contien* indica*"},
        labels=("risposta :",),
        explains=("perch\u00e9 | poich\u00e9",),
    )
    add_language(italian)
    assert declines(reply) == Verdict(declined=True, signal="phrase", evidence="Il testo non menziona")
    assert declines("Risposta: unanswerable").signal == "sentinel"
    assert declines("unanswerable perche' il testo tace").signal == "sentinel"
    assert not declines("Il testo dice che non viene.")
    assert declines("The passages do not say.")
    add_language(Language(name="Italian", declines=()))
    assert not declines(reply)
    assert [language.name for language in languages].count("Italian") == 1


def test_a_language_that_can_not_be_read_is_refused_and_changes_nothing(languages: list[Language]) -> None:
    before = list(languages)
    with pytest.raises(ConfigurationError, match="no list or part is named 'testo'"):
        add_language(Language(name="Italian", declines=("{testo} non",)))
    assert languages == before
    assert declines("The passages do not say.")


def test_a_rule_that_repeats_the_end_comes_to_an_end(languages: list[Language]) -> None:
    add_language(
        Language(name="Endless", declines=("zzz ($)* zzz",), answers=("zzz ($)* zzz",), explains=("zzz ($)* zzz",))
    )
    assert not declines("zzz")
    assert not declines("unanswerable zzz")
