"""Rules over words: what they match, what may still match, and what is refused."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from selfroute.errors import ConfigurationError
from selfroute.languages.automaton import State
from selfroute.languages.notation import Rules, compile_rules

WORDS = ["a", "ab", "abc", "b", "bcd", "x"]
LISTS = {"some": "a b_ab abc", "stems": "ab* bc*", "stops": "b x", "any": ", ab"}
PARTS = {"part": "a (b | {some})?"}

# An expression, and the same as a pattern over words that end in a space.
ATOMS = {
    **{word: f"{word} " for word in WORDS},
    ",": ", ",
    "...": r"(?:\w+ |, )*",
    "..": r"(?:(?!b |x )\w+ |, )*",
    "-{stops}": r"(?:(?!b |x )\w+ |, )",
    "{some}": "(?:a |b ab |abc )",
    "{stems}": r"(?:ab\w* |bc\w* )",
    "{part}": "(?:a (?:b |a |b ab |abc )?)",
}
expressions = st.recursive(
    st.sampled_from(list(ATOMS.items())),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda two: (f"{two[0][0]} {two[1][0]}", two[0][1] + two[1][1])),
        st.tuples(inner, inner).map(lambda two: (f"({two[0][0]} | {two[1][0]})", f"(?:{two[0][1]}|{two[1][1]})")),
        inner.map(lambda one: (f"({one[0]})?", f"(?:{one[1]})?")),
        inner.map(lambda one: (f"({one[0]})*", f"(?:{one[1]})*")),
    ),
    max_leaves=6,
)
texts = st.lists(st.sampled_from([*WORDS, "abz", "zz", ","]), max_size=6)


def first(*rules: str, start: str = "") -> State:
    """The state before the first word."""
    return compile_rules([Rules(rules, start, LISTS, PARTS)])


def states(state: State, words: list[str]) -> list[State]:
    """This state, and those after each word."""
    found = [state]
    for word in words:
        found.append(found[-1].after(word))
    return found


@given(rules=st.lists(expressions, min_size=1, max_size=3), words=texts)
def test_rules_match_what_regular_expressions_match(rules: list[tuple[str, str]], words: list[str]) -> None:
    text = "".join(f"{word} " for word in words)
    together = first(*(rule for rule, _ in rules))
    found = any(re.match(pattern, text) for _, pattern in rules)
    assert any(state.matched for state in states(together, words)) is found


@given(start=expressions, rule=expressions, words=texts)
def test_start_comes_before_every_rule(start: tuple[str, str], rule: tuple[str, str], words: list[str]) -> None:
    with_start, spelled_out = first(rule[0], start=start[0]), first(f"({start[0]}) {rule[0]}")
    assert [one.matched for one in states(with_start, words)] == [one.matched for one in states(spelled_out, words)]


@given(expression=expressions, words=texts, more=texts, beginning=st.sampled_from(["a", "ab", "abz", "b", "bc", "z"]))
def test_state_that_is_dead_stays_dead(
    expression: tuple[str, str], words: list[str], more: list[str], beginning: str
) -> None:
    state = states(first(expression[0]), words)[-1]
    if state.dead:
        assert not any(later.matched for later in states(state, more))
    if not state.may_take(beginning):
        for word in ("", "c", "cd", "zz"):
            assert not any(later.matched for later in states(state.after(beginning + word), more))


@given(expression=expressions, words=texts, word=st.sampled_from([*WORDS, "abz", "bcx"]))
def test_state_may_take_beginnings(expression: tuple[str, str], words: list[str], word: str) -> None:
    state = states(first(expression[0]), words)[-1]
    if not state.after(word).dead:
        assert all(state.may_take(word[:end]) for end in range(1, len(word) + 1))
    start, beginnings = first("mention", "inform"), ("m", "ment", "mention", "mentions", "p")
    assert [start.may_take(beginning) for beginning in beginnings] == [True, True, True, False, False]


def test_star_stands_for_any_character() -> None:
    machine = compile_rules([Rules(("{character} .. \u306f \u7121\u3044",), "", {"character": "*", "stops": "\u306f"})])
    assert states(machine, list("\u4fa1\u683c\u306f\u7121\u3044"))[-1].matched
    assert states(machine, ["price", "\u306f"])[-1].dead
    assert not machine.may_take("price")


def test_automaton_is_bounded() -> None:
    state, last = first("... a" + " (a | b)" * 12 + " x"), "b" * 13  # whether to match depends on all of 13 words
    machine = state._automaton
    passed = set()
    for word in random.Random(0).choices("ab", k=8_000):  # noqa: S311
        state, last = state.after(word), last[1:] + word
        passed.add(last)
        assert state.after("x").matched == last.startswith("a")
        assert len(machine._states) <= 4_000
    assert len(passed) > 4_500


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("{nothing}", "no list or part is named 'nothing'"),
        ("-{nothing}", "no list or part is named 'nothing'"),
        ("(a | b", "a bracket is not closed"),
        ("a )", r"'\)' is out of place"),
        ("* a", r"'\*' is out of place"),
        ("a {b c}", "is out of place"),
        ("a b* c", r"b\* is for lists"),
        ("{self}", "'self' contains itself"),
        ("{loop}", "'loop' contains itself"),
    ],
)
def test_compile_rules_refuses(rule: str, why: str) -> None:
    parts = {"self": "a {self}", "loop": "{back}", "back": "b {loop}"}
    with pytest.raises(ConfigurationError, match=why):
        compile_rules([Rules((rule,), "", {}, parts)])
