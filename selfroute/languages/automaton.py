"""The automaton that matches rules over words against a text, one word at a time.

It is a regular expression engine whose letters are words, built the way RE2 builds its lazy automaton:

1. A rule is a tree of patterns: `Words` matches one word, `Concat` a sequence, `Either` an alternative, `Repeat` a
   repetition.
2. A `_Place` is a point inside that tree: the pattern to match next and, as a linked list, what has to match after it.
   The place `None` is the end: nothing is left to match.
3. A `State` is the set of all places that the words read so far may have led to. `Automaton._expand` unfolds the
   `Concat`, `Either` and `Repeat` of these places until only `Words` are left, each with the places that it leads to:
   the moves of the state.
4. `State.after(word)` follows every move that takes the word. The set of places that results is looked up among the
   states that exist, and the way there is remembered, so that reading a familiar word costs one dictionary lookup,
   however many rules there are. Once there are `_MOST_STATES` of them, all are forgotten and made again.

A state is `matched` if it contains the end, and `dead` if it is not matched and has no moves. This is what lets a
stream be released early: once the state is dead, no rule can match any more, whatever follows.

Take the rule `the text (does | do) not {say}`:

    word       places after it                  matched  dead
    (start)    the text (does | do) not {say}   no       no
    the        text (does | do) not {say}       no       no
    text       does not {say}, do not {say}     no       no
    does       not {say}                        no       no
    not        {say}                            no       no
    mention    (end)                            yes      no

At the third word, "says" instead of "does" leads to no place at all: the state is dead, and the rule cannot match.

All words that no rule names take the same moves, so `Automaton.known` maps them to one symbol, and those that share a
stem to that stem. This keeps the number of states small.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from selfroute.languages.words import is_spaced

_MOST_STATES = (
    4_000  # of an automaton that are kept; the rules of all languages have some 1,600 after 500 different replies
)
_MOST_SYMBOLS = 20_000  # words whose symbol is remembered
MARKS = frozenset(",:.?$")
CHARACTER = "*"  # stands for any character of a script without spaces


class Words:
    """A pattern that matches one of some words or phrases; or, with `others`, any word except these.

    Attributes:
        words: The words. One that ends in `*` is a stem: it stands for every word that starts with it.
        phrases: Phrases, by their first word: the pattern of the words that have to follow it.
        others: Whether to match any word except `words`.
    """

    __slots__ = ("_any_character", "_stems", "others", "phrases", "words")

    def __init__(
        self, words: Iterable[str], phrases: Mapping[str, Words] | None = None, *, others: bool = False
    ) -> None:
        """Match these words and phrases, or all other words."""
        self.words, self.phrases, self.others = frozenset(words), phrases or {}, others
        self._any_character = CHARACTER in self.words
        self._stems = tuple(word[:-1] for word in self.words if word.endswith("*") and word != CHARACTER)

    def takes(self, word: str) -> bool:
        """Return whether this matches a single word, given as `Automaton.known` returns it."""
        listed = word in self.words or (
            word not in MARKS and (word.startswith(self._stems) or (self._any_character and not is_spaced(word)))
        )
        return listed != self.others

    def excludes(self, beginning: str) -> bool:
        """Return whether this takes no word that begins like this, because all of them are excepted."""
        return beginning.startswith(self._stems)


@dataclass(frozen=True, eq=False, slots=True)
class Concat:
    """A pattern that matches its items, one after the other."""

    items: tuple[Pattern, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Either:
    """A pattern that matches one of its options."""

    options: tuple[Pattern, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Repeat:
    """A pattern that matches its item any number of times, also not at all."""

    item: Pattern


Pattern: TypeAlias = Words | Concat | Either | Repeat


@dataclass(frozen=True, eq=False, slots=True)
class _Place:
    """A point inside a pattern: what has to match next, and what after it. At the end there is `None` instead."""

    pattern: Pattern
    rest: _Place | None


_Moves: TypeAlias = dict[Words, list[_Place | None]]


class State:
    """The state of the automaton after some words.

    Attributes:
        matched: Whether the pattern matches.
        dead: Whether the pattern does not match and cannot match any more, whatever follows.
    """

    __slots__ = ("_after", "_automaton", "_moves", "_others", "_prefixes", "dead", "matched")

    def __init__(self, automaton: Automaton, moves: _Moves, *, matched: bool) -> None:
        """Make the state with these moves."""
        self._automaton, self._moves, self.matched = automaton, moves, matched
        self._after: dict[str, State] = {}
        self._others = [words for words in moves if words.others]
        self._prefixes: list[str] | None = None  # sorted; made when it is first needed
        self.dead = not (moves or matched)

    def after(self, word: str) -> State:
        """Return the state after one more word or mark."""
        if self.dead:
            return self
        word = self._automaton.known(word)
        state = self._after.get(word)
        if state is None:
            places: set[_Place | None] = set()
            for words, rests in self._moves.items():
                if words.takes(word):
                    places.update(rests)
                if word in words.phrases:
                    places.update(self._automaton.place(words.phrases[word], rest) for rest in rests)
            state = self._after[word] = self._automaton.state(frozenset(places))
        return state

    def forget(self) -> None:
        """Forget which states follow; they are made again when they are needed."""
        self._after.clear()

    def may_take(self, beginning: str) -> bool:
        """Return whether a word that begins like this may keep the state alive; `beginning` may be a whole word."""
        if any(not words.excludes(beginning) for words in self._others):
            return True
        if self._prefixes is None:
            listed = (words for words in self._moves if not words.others)
            self._prefixes = sorted({word for words in listed for word in (*words.words, *words.phrases)})
        known = self._prefixes
        at = bisect_left(known, beginning)
        if at < len(known) and known[at].startswith(beginning):
            return True
        return not self.after(beginning).dead  # longer than a stem that leads on


class Automaton:
    """A pattern, and the states that texts have led it to so far.

    Attributes:
        start: The state before the first word.
    """

    def __init__(self, pattern: Pattern, words: Iterable[str]) -> None:
        """Prepare to match.

        Args:
            pattern: The pattern to match.
            words: All words and stems that the pattern names. It does not tell any others apart.
        """
        self._words = frozenset(words)
        self._stems = frozenset(word[:-1] for word in self._words if word.endswith("*") and word != CHARACTER)
        self._longest = max(map(len, self._words), default=0)
        self._places: dict[tuple[Pattern, _Place | None], _Place] = {}
        self._states: dict[frozenset[_Place | None], State] = {}
        self._symbols: dict[str, str] = {}  # of the words met so far
        self.start = self.state(frozenset([self.place(pattern, None)]))

    def known(self, word: str) -> str:
        """Return the symbol for a word: the word if it is named, else its longest stem, else that of any word.

        What is longer than all that is named is told apart by its beginning alone, and only that is kept: a reply that
        runs on without a space is one word.
        """
        word = word[: self._longest + 1]
        symbol = self._symbols.get(word)
        if symbol is None:
            if len(self._symbols) >= _MOST_SYMBOLS:
                self._symbols.clear()
            symbol = self._symbols[word] = self._symbol(word)
        return symbol

    def _symbol(self, word: str) -> str:
        if word in self._words:
            return word
        for end in range(len(word), 0, -1):
            if word[:end] in self._stems:
                return word[:end] + "*"
        return "" if is_spaced(word) else CHARACTER

    def state(self, places: frozenset[_Place | None]) -> State:
        """Return the one state for these places; make it if it is new."""
        state = self._states.get(places)
        if state is None:
            if len(self._states) >= _MOST_STATES:
                self._forget()
            moves, matched = self._expand(places)
            state = self._states[places] = State(self, moves, matched=matched)
        return state

    def _forget(self) -> None:
        """Forget the states and the ways between them, so that no text makes the automaton grow without bound."""
        for state in [*self._states.values(), self.start]:
            state.forget()
        self._states.clear()

    def _expand(self, places: Iterable[_Place | None]) -> tuple[_Moves, bool]:
        """Return the moves from some places: words, and the places they lead to; and whether the end is reached."""
        moves: _Moves = {}
        pending, seen = list(places), set[_Place | None]()
        while pending:
            place = pending.pop()
            if place in seen:
                continue
            seen.add(place)
            if place is None:
                continue
            pattern, rest = place.pattern, place.rest
            if isinstance(pattern, Words):
                moves.setdefault(pattern, []).append(rest)
            elif isinstance(pattern, Either):
                pending += [self.place(option, rest) for option in pattern.options]
            elif isinstance(pattern, Repeat):
                pending += [rest, self.place(pattern.item, place)]
            else:
                for item in reversed(pattern.items):
                    rest = self.place(item, rest)
                pending.append(rest)
        return moves, None in seen

    def place(self, pattern: Pattern, rest: _Place | None) -> _Place:
        """Return the one place for a pattern before a rest, so that places compare by identity."""
        return self._places.setdefault((pattern, rest), _Place(pattern, rest))
