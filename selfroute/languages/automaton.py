"""The automaton that reads a text by rules over its words, one word at a time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from selfroute.languages.words import is_spaced

MARKS = frozenset(",:.?$")
CHARACTER = "*"  # any character of a script without spaces


class Words:
    """Match one of these words, or of these rows of words; or any word but these.

    Attributes:
        words: The words; one that ends in `*` is a stem, and stands for all that begin so.
        rows: What has to follow the first words of the rows.
        others: Whether it is any word but these.
    """

    __slots__ = ("_any_character", "_stems", "others", "rows", "words")

    def __init__(self, words: Iterable[str], rows: Mapping[str, Words] | None = None, *, others: bool = False) -> None:
        """Match these words and rows, or all other words."""
        self.words, self.rows, self.others = frozenset(words), rows or {}, others
        self._any_character = CHARACTER in self.words
        self._stems = tuple(word[:-1] for word in self.words if word.endswith("*") and word != CHARACTER)

    def takes(self, word: str) -> bool:
        """Tell whether a word, given as the automaton knows it, is one that it matches."""
        named = word in self.words or (
            word not in MARKS and (word.startswith(self._stems) or (self._any_character and not is_spaced(word)))
        )
        return named != self.others


@dataclass(frozen=True, eq=False, slots=True)
class Row:
    """Match these patterns, one after the other."""

    items: tuple[Pattern, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Either:
    """Match one of these patterns."""

    options: tuple[Pattern, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Many:
    """Match a pattern any number of times."""

    item: Pattern


Pattern: TypeAlias = Words | Row | Either | Many


@dataclass(frozen=True, eq=False, slots=True)
class _Place:
    """What is still to match: a pattern, and then the rest; no place is left where all is matched."""

    pattern: Pattern
    rest: _Place | None


_Moves: TypeAlias = dict[Words, list[_Place | None]]


class State:
    """Where the automaton stands after some words.

    Attributes:
        matched: Whether the pattern is matched.
        dead: Whether it is not, and can not be any more, whatever follows.
    """

    __slots__ = ("_automaton", "_moves", "_next", "_starts", "dead", "matched")

    def __init__(self, automaton: Automaton, moves: _Moves, *, matched: bool) -> None:
        """Stand where these words lead on."""
        self._automaton, self._moves, self.matched = automaton, moves, matched
        self._next: dict[str, State] = {}
        self._starts: list[str] | None = None
        self.dead = not (moves or matched)

    def after(self, word: str) -> State:
        """Return the state after one more word or mark."""
        word = self._automaton.known(word)
        state = self._next.get(word)
        if state is None:
            places: set[_Place | None] = set()
            for words, rests in self._moves.items():
                if words.takes(word):
                    places.update(rests)
                if word in words.rows:
                    places.update(self._automaton.place(words.rows[word], rest) for rest in rests)
            state = self._next[word] = self._automaton.state(frozenset(places))
        return state

    def may_take(self, beginning: str) -> bool:
        """Tell whether a word that begins so leads on."""
        if self._starts is None:
            open_ended = any(words.others for words in self._moves)
            self._starts = (
                [""] if open_ended else sorted({word for words in self._moves for word in (*words.words, *words.rows)})
            )
        starts = self._starts
        if not starts or not starts[0]:
            return bool(starts)
        at = bisect_left(starts, beginning)
        if at < len(starts) and starts[at].startswith(beginning):
            return True
        return not self.after(beginning).dead  # a stem that has begun


class Automaton:
    """A pattern, read word by word.

    The states are made as texts come to them (a lazily built deterministic automaton), so that one more word costs a
    look into a table, whatever the text.

    Attributes:
        start: The state before the first word.
    """

    def __init__(self, pattern: Pattern, words: Iterable[str]) -> None:
        """Prepare to read.

        Args:
            pattern: What is to be matched.
            words: All words and stems that it names; any others it can not tell apart.
        """
        self._words = frozenset(words)
        self._stems = frozenset(word[:-1] for word in self._words if word.endswith("*") and word != CHARACTER)
        self._places: dict[tuple[Pattern, _Place | None], _Place] = {}
        self._states: dict[frozenset[_Place | None], State] = {}
        self.start = self.state(frozenset([self.place(pattern, None)]))

    def known(self, word: str) -> str:
        """Return what the pattern knows a word as: itself, its longest stem, or nothing but a word."""
        if word in self._words:
            return word
        for end in range(len(word), 0, -1):
            if word[:end] in self._stems:
                return word[:end] + "*"
        return "" if is_spaced(word) else CHARACTER

    def state(self, places: frozenset[_Place | None]) -> State:
        """Return the state for these places."""
        state = self._states.get(places)
        if state is None:
            moves, matched = self._opened(places)
            state = self._states[places] = State(self, moves, matched=matched)
        return state

    def _opened(self, places: Iterable[_Place | None]) -> tuple[_Moves, bool]:
        """Return the words that lead on from some places, where to, and whether all is matched at one."""
        moves: _Moves = {}
        waiting, seen = list(places), set[_Place | None]()
        while waiting:
            place = waiting.pop()
            if place in seen:
                continue
            seen.add(place)
            if place is None:
                continue
            pattern, rest = place.pattern, place.rest
            if isinstance(pattern, Words):
                moves.setdefault(pattern, []).append(rest)
            elif isinstance(pattern, Either):
                waiting += [self.place(option, rest) for option in pattern.options]
            elif isinstance(pattern, Many):
                waiting += [rest, self.place(pattern.item, place)]
            else:
                for item in reversed(pattern.items):
                    rest = self.place(item, rest)
                waiting.append(rest)
        return moves, None in seen

    def place(self, pattern: Pattern, rest: _Place | None) -> _Place:
        """Return the one place for a pattern before a rest, so that places can be told apart."""
        return self._places.setdefault((pattern, rest), _Place(pattern, rest))
