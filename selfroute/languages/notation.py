"""The notation of the rules by which replies are judged, and the parser that reads it.

A rule is a regular expression whose letters are words:

| notation | matches |
| --- | --- |
| `word` | that word |
| `{name}` | one of the words listed under that name, or the part with that name |
| `a b`, `a | b`, `( )` | `a` and then `b`; `a` or `b`; a group |
| `a?`, `{name}*`, `(a)*` | at most once; any number of times |
| `...` | any number of words of the same sentence, commas included |
| `..` | the same, except the words (and perhaps the comma) that are listed as `stops` |
| `-{name}` | one word or comma of the same sentence that is not listed under that name |
| `,` `:` `.` `$` | a comma, dash or bracket; a colon; the end of a sentence; the end of the reply |

In a list, `mention*` stands for every word that starts with "mention", and `at_all` for the phrase "at all". Where a
list says what must not match (`-{name}`, `..`), its phrases are ignored. An apostrophe separates words: "doesn't" reads
as `doesn t`, and may be written `doesn't` in a rule. Case, accents, voicing marks of kana and the width of characters
are ignored. In scripts without spaces every character is a word, and a `*` in a list stands for any of them.

A rule matches as soon as its last word is read. `selfroute.languages.automaton` matches all rules at once. After each
word it knows whether a rule matches and whether any still can, so a stream is held back no longer than its wording
requires.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NoReturn

from selfroute.errors import ConfigurationError
from selfroute.languages.automaton import CHARACTER, MARKS, Automaton, Concat, Either, Pattern, Repeat, State, Words
from selfroute.languages.words import words_of

_TOKEN = re.compile(r"(?P<negated>-?)\{(?P<name>\w+)\}|(?P<gap>\.\.\.?)|(?P<operator>[()|?*])|(?P<word>[^\s(){}|?*]+)")


@dataclass(frozen=True)
class Rules:
    """The rules of one language, with the lists and parts that they name.

    Attributes:
        rules: The rules, in the notation of this module.
        start: An expression that comes before each of them.
        words: Lists of words by name; each is a string, separated by white space.
        parts: Expressions that rules may contain, by name.
    """

    rules: tuple[str, ...]
    start: str = ""
    words: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)


def compile_rules(languages: Iterable[Rules]) -> State:
    """Compile the rules of some languages into one automaton; return its first state.

    Examples:
        >>> words = {"text": "text passage*", "say": "mention* say"}
        >>> start = compile_rules([Rules(("the {text} (does | do) not {say}",), words=words)])
        >>> start.after("the").after("passages").after("do").after("not").after("say").matched
        True
        >>> start.after("the").may_take("ship")
        False

    Raises:
        ConfigurationError: A rule cannot be read.
    """
    words: set[str] = set()
    patterns = [_Parser(rules, words).pattern() for rules in languages]
    return Automaton(Either(tuple(patterns)), words).start


_EMPTY = Concat(())  # matches without reading a word


class _Parser:
    """A parser that turns the rules of one language into a pattern; it reads each list and part once."""

    def __init__(self, rules: Rules, words: set[str]) -> None:
        """Prepare to read these rules; every word and stem that they name is added to `words`."""
        self._rules, self._all_words = rules, words
        self._by_name: dict[str, Pattern] = {}
        self._open_parts: list[str] = []  # parts being read, to notice one that contains itself

    def pattern(self) -> Pattern:
        """Return the pattern of all rules: the start, and then one of them."""
        return Concat((self.parse(self._rules.start), Either(tuple(map(self.parse, self._rules.rules)))))

    def parse(self, expression: str) -> Pattern:
        """Return the pattern of an expression."""
        return _Expression(expression, self).pattern()

    def named(self, name: str) -> Pattern | None:
        """Return the pattern of a part or list; None if there is no such name, `_EMPTY` if it contains itself."""
        if name in self._by_name or name in self._open_parts:
            return self._by_name.get(name, _EMPTY)
        if name in self._rules.parts:
            self._open_parts.append(name)
            self._by_name[name] = self.parse(self._rules.parts[name])
            self._open_parts.pop()
        elif name in self._rules.words:
            self._by_name[name] = self._list(self._entries(name))
        return self._by_name.get(name)

    def word(self, words: Iterable[str], *, others: bool = False) -> Pattern:
        """Return the pattern of one of these words; with `others`, of any word or comma but these."""
        listed = frozenset(words)
        self._all_words |= listed
        return Words(listed | (MARKS - {","}) if others else listed, others=others)

    def _list(self, entries: Iterable[Sequence[str]]) -> Words:
        """Return the pattern of a list's entries: words, and phrases by their first word."""
        words, phrases = set[str](), dict[str, list[Sequence[str]]]()
        for first, *rest in entries:
            self._all_words.add(first)
            if rest:
                phrases.setdefault(first, []).append(rest)
            else:
                words.add(first)
        return Words(words, {first: self._list(rests) for first, rests in phrases.items()})

    def phrase(self, words: Iterable[str]) -> Pattern:
        """Return the pattern of some words, one after the other."""
        return Concat(tuple(self.word([word]) for word in words))

    def not_listed(self, name: str) -> Pattern | None:
        """Return the pattern of any word that is not in a list; None if there is no such list."""
        if name and name not in self._rules.words:
            return None
        return self.word((entry[0] for entry in self._entries(name) if len(entry) == 1), others=True)

    def _entries(self, name: str) -> list[tuple[str, ...]]:
        return [_words_of_entry(entry) for entry in self._rules.words.get(name, "").split()]


class _Expression:
    """A recursive-descent parser of one expression: alternatives, sequences of items, single items."""

    def __init__(self, expression: str, parser: _Parser) -> None:
        self._expression, self._parser = expression, parser
        self._tokens = list(_TOKEN.finditer(expression))
        self._at = 0
        if rest := _TOKEN.sub("", expression).strip():
            self._refuse(f"{rest!r} is out of place")

    def pattern(self) -> Pattern:
        found = self._either()
        if self._at < len(self._tokens):
            self._refuse(f"{self._tokens[self._at][0]!r} is out of place")
        return found

    def _either(self) -> Pattern:
        options = [self._concat()]
        while self._operator() == "|":
            self._at += 1
            options.append(self._concat())
        return options[0] if len(options) == 1 else Either(tuple(options))

    def _concat(self) -> Pattern:
        items = []
        while self._at < len(self._tokens) and self._operator() not in ("|", ")"):
            item, operator = self._item(), self._operator()
            if operator in ("?", "*"):
                self._at += 1
                item = Repeat(item) if operator == "*" else Either((item, _EMPTY))
            items.append(item)
        return items[0] if len(items) == 1 else Concat(tuple(items))

    def _item(self) -> Pattern:
        token, parser = self._tokens[self._at], self._parser
        self._at += 1
        if token["word"]:
            if self._operator() == "*" and self._tokens[self._at].start() == token.end():
                self._refuse(f"{token[0]}* is for lists; to repeat a word, write ({token[0]})*")
            return parser.phrase(_words_of_entry(token["word"]))
        if token["name"]:
            found = parser.not_listed(token["name"]) if token["negated"] else parser.named(token["name"])
            if found is None:
                self._refuse(f"no list or part is named {token['name']!r}")
            if found is _EMPTY:
                self._refuse(f"{token['name']!r} contains itself")
            return found
        if token["gap"]:
            return Repeat(parser.not_listed("stops" if token["gap"] == ".." else "") or parser.word([], others=True))
        if token["operator"] != "(":
            self._refuse(f"{token[0]!r} is out of place")
        found = self._either()
        if self._operator() != ")":
            self._refuse("a bracket is not closed")
        self._at += 1
        return found

    def _operator(self) -> str:
        return self._tokens[self._at]["operator"] or "" if self._at < len(self._tokens) else ""

    def _refuse(self, why: str) -> NoReturn:
        msg = f"the rule {self._expression!r} cannot be read: {why}"
        raise ConfigurationError(msg)


@cache
def _words_of_entry(entry: str) -> tuple[str, ...]:
    """Return the words of a list's entry; the last is a stem if the entry ends in `*`, and a mark is a word."""
    if entry in MARKS or entry == CHARACTER:
        return (entry,)
    words = words_of(entry)
    return (*words[:-1], words[-1] + "*") if entry.endswith("*") and words else tuple(words)


NOTHING = compile_rules([])  # matches no text
