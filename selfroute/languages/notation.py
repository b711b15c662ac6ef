"""The notation of rules over words.

A rule is a regular expression whose letters are words:

| notation | matches |
| --- | --- |
| `word` | itself |
| `{name}` | one of the words listed under that name, or the part of that name |
| `a b`, `a | b`, `( )` | one after the other, either, a group |
| `a?`, `{name}*`, `(a)*` | at most once, any number of times |
| `...` | any words of the same sentence, commas included |
| `..` | the same, but for those that are listed as `stops`, of which `,` may be one |
| `-{name}` | any one word or comma of the same sentence that is not listed under that name |
| `,` `:` `.` `$` | a comma, dash or bracket; a colon; the end of a sentence; the end of the reply |

In a list, `mention*` stands for all words that begin so, and `at_all` for two words in a row; where a list says what is
not matched, only its single words count. Apostrophes part words: "doesn't" is `doesn t`, and may be written `doesn't`.
Case, accents (and voicing marks of kana) and width do not count. In scripts without spaces every character is a word,
and a `*` in a list stands for any of them.

A rule is matched as soon as its last word is read. All rules are read at once, by one automaton, which knows at each
word whether some rule is matched and whether any still can be: so a stream is held no longer than its wording makes
necessary, and every word takes the same time, whatever the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NoReturn

from selfroute.errors import ConfigurationError
from selfroute.languages.automaton import CHARACTER, MARKS, Automaton, Either, Many, Pattern, Row, State, Words
from selfroute.languages.words import words_of

_ITEM = re.compile(r"(?P<but>-?)\{(?P<name>\w+)\}|(?P<gap>\.\.\.?)|(?P<sign>[()|?*])|(?P<word>[^\s(){}|?*]+)")


@dataclass(frozen=True)
class Rules:
    """Rules of one language, and what their names stand for.

    Attributes:
        rules: Expressions in the notation of this module.
        start: What comes before any of them, likewise.
        words: Lists of words, separated by white space, by name.
        parts: Expressions that rules are made of, by name.
    """

    rules: tuple[str, ...]
    start: str = ""
    words: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)


def compiled(languages: Iterable[Rules]) -> State:
    """Make one automaton of the rules of some languages; return its first state.

    Examples:
        >>> words = {"text": "text passage*", "tells": "mention* say"}
        >>> start = compiled([Rules(("the {text} (does | do) not {tells}",), words=words)])
        >>> start.after("the").after("passages").after("do").after("not").after("say").matched
        True
        >>> start.after("the").may_take("ship")
        False

    Raises:
        ConfigurationError: A rule can not be read.
    """
    words: set[str] = set()
    patterns = [_Reader(rules, words).pattern() for rules in languages]
    return Automaton(Either(tuple(patterns)), words).start


_NOTHING = Row(())


class _Reader:
    """Reads the rules of a language: each expression once, and each list."""

    def __init__(self, rules: Rules, words: set[str]) -> None:
        """Read these rules, and note the words that they name."""
        self._rules, self._noted = rules, words
        self._named: dict[str, Pattern] = {}
        self._reading: list[str] = []  # parts within parts

    def pattern(self) -> Pattern:
        """Return the pattern of all rules: the start, and then one of them."""
        return Row((self.read(self._rules.start), Either(tuple(map(self.read, self._rules.rules)))))

    def read(self, expression: str) -> Pattern:
        """Return the pattern of an expression."""
        return _Expression(expression, self).pattern()

    def named(self, name: str) -> Pattern | None:
        """Return the pattern of a part or of a list; None if nothing is called so."""
        if name in self._named or name in self._reading:
            return self._named.get(name, _NOTHING)
        if name in self._rules.parts:
            self._reading.append(name)
            self._named[name] = self.read(self._rules.parts[name])
            self._reading.pop()
        elif name in self._rules.words:
            self._named[name] = self._list(self._rows(name))
        return self._named.get(name)

    def word(self, words: Iterable[str], *, others: bool = False) -> Pattern:
        """Return the pattern of one word: one of these, or any but these and the marks."""
        taken = frozenset(words)
        self._noted |= taken
        return Words(taken | (MARKS - {","}) if others else taken, others=others)

    def _list(self, rows: Iterable[Sequence[str]]) -> Words:
        """Return the pattern of the entries of a list: words, and rows of words by their first ones."""
        words, longer = set[str](), dict[str, list[Sequence[str]]]()
        for first, *rest in rows:
            self._noted.add(first)
            if rest:
                longer.setdefault(first, []).append(rest)
            else:
                words.add(first)
        return Words(words, {first: self._list(rests) for first, rests in longer.items()})

    def row(self, words: Iterable[str]) -> Pattern:
        """Return the pattern of some words in a row."""
        return Row(tuple(self.word([word]) for word in words))

    def other(self, name: str) -> Pattern | None:
        """Return the pattern of any word that is not listed under a name; None if nothing is called so."""
        if name and name not in self._rules.words:
            return None
        return self.word((row[0] for row in self._rows(name) if len(row) == 1), others=True)

    def _rows(self, name: str) -> list[tuple[str, ...]]:
        return [_row_of(entry) for entry in self._rules.words.get(name, "").split()]


class _Expression:
    """Reads one expression, by recursive descent."""

    def __init__(self, expression: str, reader: _Reader) -> None:
        self._expression, self._reader = expression, reader
        self._items = list(_ITEM.finditer(expression))
        self._at = 0
        if rest := _ITEM.sub("", expression).strip():
            self._refuse(f"{rest!r} is out of place")

    def pattern(self) -> Pattern:
        found = self._either()
        if self._at < len(self._items):
            self._refuse(f"{self._items[self._at][0]!r} is out of place")
        return found

    def _either(self) -> Pattern:
        options = [self._row()]
        while self._sign() == "|":
            self._at += 1
            options.append(self._row())
        return options[0] if len(options) == 1 else Either(tuple(options))

    def _row(self) -> Pattern:
        items = []
        while self._at < len(self._items) and self._sign() not in ("|", ")"):
            one, sign = self._one(), self._sign()
            if sign in ("?", "*"):
                self._at += 1
                one = Many(one) if sign == "*" else Either((one, _NOTHING))
            items.append(one)
        return items[0] if len(items) == 1 else Row(tuple(items))

    def _one(self) -> Pattern:
        item, reader = self._items[self._at], self._reader
        self._at += 1
        if item["word"]:
            if self._sign() == "*" and self._items[self._at].start() == item.end():
                self._refuse(f"{item[0]}* is for lists; a word that may come many times is ({item[0]})*")
            return reader.row(_row_of(item["word"]))
        if item["name"]:
            found = reader.other(item["name"]) if item["but"] else reader.named(item["name"])
            if found is None:
                self._refuse(f"nothing is called {item['name']!r}")
            if found is _NOTHING:
                self._refuse(f"{item['name']!r} stands for itself")
            return found
        if item["gap"]:
            return Many(reader.other("stops" if item["gap"] == ".." else "") or reader.word([], others=True))
        if item["sign"] != "(":
            self._refuse(f"{item[0]!r} is out of place")
        found = self._either()
        if self._sign() != ")":
            self._refuse("a bracket is not closed")
        self._at += 1
        return found

    def _sign(self) -> str:
        return self._items[self._at]["sign"] or "" if self._at < len(self._items) else ""

    def _refuse(self, why: str) -> NoReturn:
        msg = f"the rule {self._expression!r} can not be read: {why}"
        raise ConfigurationError(msg)


@cache
def _row_of(entry: str) -> tuple[str, ...]:
    """Return the words of an entry of a list, the last one as a stem if it has a star; a mark is a word."""
    if entry in MARKS or entry == CHARACTER:
        return (entry,)
    row = words_of(entry)
    return (*row[:-1], row[-1] + "*") if entry.endswith("*") and row else tuple(row)
