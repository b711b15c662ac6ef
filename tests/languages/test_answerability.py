"""Does a reply decline? The verdict on whole replies, the same verdict on streams, and how little a stream waits."""

from __future__ import annotations

import re
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
    YES_NO,
    by_language,
    languages_put_back,
)
from selfroute.answerability import Gate, Verdict, declines, declines_anywhere
from selfroute.answerability.ending import ANSWERED, EMPTY, NO_PASSAGES
from selfroute.answerability.spoken import said_in
from selfroute.errors import ConfigurationError
from selfroute.languages import Language, add_language
from selfroute.languages.grammars import LANGUAGES, grammar


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


def streams_alike(reply: str, *, phrases: bool = True) -> bool:
    """Whether a gate shows all or nothing of a reply, character by character, and comes to the verdict of the whole."""
    gate, verdict = Gate(phrases=phrases), declines(reply)
    shown = "".join(map(gate.feed, reply)) + gate.end() + gate.end()
    return (shown, gate.verdict) == ("" if verdict else said_in(reply), verdict)


@by_language(REFUSALS)
def test_declines_the_refusal(told: Sequence[str]) -> None:
    assert misjudged(told, lambda reply: quotes(declines(reply), reply, "sentinel")) == []
    assert misjudged([declines(reply).evidence for reply in told], lambda one: declines(one).signal == "sentinel") == []
    assert misjudged(told, lambda reply: declines_anywhere(reply) == declines(reply)) == []
    assert misjudged(told, lambda reply: streams_alike(reply) and streams_alike(reply, phrases=False)) == []


@by_language(DECLINES)
def test_declines_in_own_words(told: Sequence[str]) -> None:
    assert misjudged(told, lambda reply: quotes(declines(reply), reply, "phrase")) == []
    assert misjudged(told, lambda reply: declines_anywhere(reply) == declines(reply)) == []
    assert misjudged(told, streams_alike) == []


@by_language(ANSWERS)
def test_declines_no_answer(told: Sequence[str]) -> None:
    assert misjudged(told, lambda reply: declines(reply) == ANSWERED) == []
    assert misjudged(told, streams_alike) == []


@by_language(POLICIES)
def test_declines_no_denial_of_a_fact(told: Sequence[str]) -> None:
    assert misjudged(told, lambda reply: declines(reply) == declines_anywhere(reply) == ANSWERED) == []


def test_declines_finds_no_word() -> None:
    empty = ["", " ", "\n\n", "**", "```\n```", "...", "\u200b", "Answer:", "<think>It was", "<think></think>\n"]
    assert misjudged(empty, lambda reply: declines(reply) == EMPTY) == []


@by_language(LEAD_INS)
def test_declines_after_a_lead_in(told: Sequence[str]) -> None:
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
def test_declines_refusal_with_more_after_it(refusal: str) -> None:
    for said in SAID:
        reply = f"{refusal}. {said}"
        assert declines(reply, refusal).signal == "sentinel", reply
        _, gate = stream(reply, refusal)
        gate.end()
        assert gate.verdict == declines(reply, refusal), reply


def test_declines_at_line_breaks_fillers_and_what_is_invisible() -> None:
    for mark in "\n\r\v\f\x85\u2028\u2029":
        assert declines(f"unanswerable{mark}zoe took the minutes").signal == "sentinel"
    for before in ("Ok", "Sure", "So", "However", "Paris", "May", "Yes"):
        assert bool(declines(f"{before}. unanswerable")) is (before not in {"Paris", "May", "Yes"})
    for mark in ("\u00ad", "\u200b", "\u200d", "\u2060", "\ufeff", "\u202e", "\u2066", "\u061c", "\ufe0f"):
        assert declines(f"{mark}un{mark}answer{mark}{mark}able{mark}").signal == "sentinel"
        assert declines(f"The pas{mark}sages do not men{mark}tion it.").signal == "phrase"
        assert not declines(f"un{mark}answerable questions go to the chair")


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
        ("unanswerable", "```unanswerable\nIt covers 2024.\n```"),
        pytest.param("no " * 200, ("no" + " " * 4) * 200, id="long, with spaces in twice its length"),
    ],
)
def test_declines_any_refusal(refusal: str, reply: str) -> None:
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
        pytest.param("no " * 200, ("no" + " " * 5) * 200, id="long, with spaces beyond twice its length"),
    ],
)
def test_declines_no_other_refusal(refusal: str, reply: str) -> None:
    assert declines(reply, refusal) == ANSWERED


@by_language(DENIALS)
def test_declines_anywhere_denials(told: Sequence[str]) -> None:
    assert misjudged(told, lambda reply: quotes(declines_anywhere(reply), reply) and not declines(reply)) == []


@by_language(TELLING)
def test_declines_anywhere_no_sentence_that_answers(told: Sequence[str]) -> None:
    assert misjudged(told, lambda reply: declines(reply).signal == "phrase") == []
    assert misjudged(told, lambda reply: declines_anywhere(reply) == ANSWERED) == []
    amid = [f"Kew is a garden. {reply} So it was." for reply in told]
    assert misjudged(amid, lambda reply: declines_anywhere(reply) == ANSWERED) == []
    denying = [f"{reply} The text does not mention the rest." for reply in told]
    assert misjudged(denying, lambda reply: declines_anywhere(reply).signal == "phrase") == []


@by_language(STILL_DENYING)
def test_declines_anywhere_sentences_that_describe(told: Sequence[str]) -> None:
    assert misjudged(told, lambda reply: bool(declines(reply)) and quotes(declines_anywhere(reply), reply)) == []


@pytest.mark.parametrize("told", YES_NO.values(), ids=list(YES_NO))
def test_declines_of_yes_and_no(told: dict[str, list[str]]) -> None:
    for kind, draft, last in (("answers", False, False), ("deny_things", True, False), ("deny_telling", True, True)):
        judged = {reply: (bool(declines(reply)), bool(declines_anywhere(reply))) for reply in told[kind]}
        assert judged == dict.fromkeys(told[kind], (draft, last))
        assert misjudged(told[kind], streams_alike) == []
        for reply in told[kind]:
            gate = Gate(last=True)
            shown = "".join(map(gate.feed, reply)) + gate.end()
            assert (bool(gate.verdict), shown) == (last, "" if last else reply)


def test_declines_anywhere_a_part_of_an_answer() -> None:
    taken = [reply for replies in ANSWERS.values() for reply in replies if declines_anywhere(reply)]
    assert taken == [
        "The firm holds most of it, but the exact share is not specified.",
        "The firm was founded in 1987. Its capital is not mentioned.",
        "What the passages do not say is quoted below: 1921.",
        "\u6587\u4e2d\u63d0\u5230\uff0c\u6e21\u8f6e\u6bcf\u5929\u5f00\u4e24\u73ed\u3002\u6587\u4e2d\u6ca1\u6709\u63d0\u5230\u672b\u73ed\u8239\u7684\u65f6\u95f4\u3002",
    ]


def test_declines_anywhere_after_a_long_answer() -> None:
    answer = "The harbour was built in 1921, and two ships, both of oak, were kept there. "
    assert not declines_anywhere(answer * 200)
    assert declines_anywhere(answer * 200 + "The report does not mention their names.")
    assert declines_anywhere(answer * 3 + "\n\n**Unanswerable.**").signal == "sentinel"
    assert declines_anywhere(answer * 3 + "\nkeine Angabe", "keine Angabe").signal == "sentinel"
    for gap, signal in (("\n", "sentinel"), (" ", "answered"), (" " * 199, "answered"), (" " * 200, "sentinel")):
        assert declines_anywhere(f"{answer}\nUnanswerable{gap}Letters go to Mr Lin", "unanswerable").signal == signal
    assert not declines_anywhere("<think>The report does not mention it.</think>" + answer)


@examples(200)
@given(reply=replies, refusal=refusals, answer=st.sampled_from(["It was 12.", "1921"]))
def test_declines_anywhere_quotes_any_reply(reply: str, refusal: str, answer: str) -> None:
    whole = declines_anywhere(reply, refusal)
    assert bool(whole) >= (declines(reply, refusal).signal in {"sentinel", "empty"})
    assert whole.evidence in reply


def test_verdict_is_plain_json() -> None:
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
def test_declines_whatever_the_dress(dress: str) -> None:
    for replies, expected in ((DECLINES, True), (ANSWERS, False)):
        for reply in replies["English"]:
            if not reply.startswith(("<", "`", "Answer", "## ")):
                assert bool(declines(dress.format(reply.replace("'", "\u2019")))) == expected, reply


@examples(1000)
@given(reply=replies, refusal=refusals, data=st.data())
def test_gate_comes_to_the_verdict_of_the_whole(reply: str, refusal: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(reply)), max_size=12)))
    pieces = [reply[start:end] for start, end in zip([0, *cuts], [*cuts, len(reply)], strict=True)]
    gate = Gate(refusal)
    shown = [gate.feed(piece) for piece in pieces]
    shown.append(gate.end())
    assert gate.verdict == declines(reply, refusal)
    assert "".join(shown) == ("" if gate.verdict else said_in(reply))
    assert gate.feed("more") == ("" if gate.verdict else "more")


@examples(400)
@given(reply=replies, refusal=refusals, following=st.one_of(openings, fragments))
def test_gate_never_changes_a_verdict(reply: str, refusal: str, following: str) -> None:
    taken, gate = stream(reply, refusal)
    if gate.verdict is not None:
        assert declines(reply[:taken], refusal) == gate.verdict
        assert declines(reply[:taken] + following, refusal) == gate.verdict


@pytest.mark.parametrize("name", ["Lucy", "Dorian Gray", "\u00c9mile's dog", "Chief Regalia"])
def test_gate_holds_a_name(name: str) -> None:
    assert Gate().feed(f"{name} ") == ""
    assert declines(f"{name} is not mentioned in the provided chunks.").signal == "phrase"
    for answer in (f"{name}, the ", f"{name} is a ", f"{name}\n\n", f"{name} was not se"):
        assert Gate().feed(answer + "p") == answer + "p"


@pytest.mark.parametrize(
    ("reply", "held"),
    [
        ("Paris is the capital.", "Paris is "),
        ("No, they never met.", "No, they never "),
        ("In 1921 no ship came.", "In "),
        ("According to the report, it was 12.", "According to the "),
        ("The price is 12.", "The price is "),
        ("The text is long.", "The text is "),
        ("I kept it.", "I "),
        ("It was oak.", "It was "),
    ],
)
def test_gate_lets_an_answer_flow(reply: str, held: str) -> None:
    for first in ("Yes", "1921", "42", "$12.4", "**7**"):
        assert Gate().feed(first) == first
    taken, gate = stream(reply + " And so on.")
    assert gate.verdict == ANSWERED
    assert len(held) < taken <= len(held) + 5  # the first letters of the next word tell
    assert reply[len(held) : taken - 1].isalnum() or taken == len(held) + 1


@pytest.mark.parametrize("lead", ["", " \n" * 400, "**", "> ", "```text\n", "<think>" + "Hm. " * 400 + "</think>"])
def test_gate_holds_no_more_than_an_opening(lead: str) -> None:
    reply = lead + "The passages" + " and the other old papers of the house" * 50
    taken, gate = stream(reply)
    assert gate.verdict == ANSWERED
    assert taken - len(lead) <= 210


def test_gate_settles_a_refusal_within_two_words() -> None:
    for reply in (
        "Unanswerable. The passages only cover 1921, which is",
        "unanswerable because the passages only cover 1921",
        "unanswerable \u2014 the passages only cover 1921",
        "**Unanswerable**\n\nThe passages only cover 1921",
        "unanswerable weil der Text nur 1921 behandelt",
    ):
        taken, gate = stream(reply)
        assert gate.verdict == Verdict(declined=True, signal="sentinel", evidence=reply.strip("*")[:12])
        assert len(reply[:taken].replace("\u2014", "").split()) <= 3
    for reply in ("unanswerable", "**Unanswerable.**", "`unanswerable`\n\n", "Answer: unanswerable!"):
        _, gate = stream(reply)
        assert gate.verdict is None, "it stays open until it ends"


@pytest.fixture
def languages() -> Iterator[list[Language]]:
    with languages_put_back() as known:
        yield known


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.name)
def test_language_uses_all_its_lists_and_parts(language: Language) -> None:
    rules = (
        language.start,
        *language.declines,
        *language.denials,
        *language.answers,
        *language.labels,
        *language.explains,
        *language.whole,
        *language.asks,
    )
    used = set(re.findall(r"\{(\w+)\}", " ".join([*rules, *language.parts.values()])))
    assert {*language.words, *language.parts} - used <= {"stops"}
    assert not set(language.words) & set(language.parts)


@pytest.mark.matrix
def test_grammar_is_read_by_many_threads() -> None:
    replies = every_reply[::60]
    expected = [declines(reply) for reply in replies]
    for _ in range(3):
        grammar.cache_clear()
        with ThreadPoolExecutor(8) as pool:
            for found in pool.map(lambda _: [declines(reply) for reply in replies], range(8)):
                assert found == expected


def test_add_language(languages: list[Language]) -> None:
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
    before = list(languages)
    with pytest.raises(ConfigurationError, match="no list or part is named 'testo'"):
        add_language(Language(name="Italian", declines=("{testo} non",)))
    assert (languages, bool(declines("The passages do not say."))) == (before, True)


def test_add_language_whose_rule_repeats_the_end(languages: list[Language]) -> None:
    add_language(
        Language(name="Endless", declines=("zzz ($)* zzz",), answers=("zzz ($)* zzz",), explains=("zzz ($)* zzz",))
    )
    assert not declines("zzz")
    assert not declines("unanswerable zzz")
