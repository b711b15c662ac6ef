"""Replies by kind and language, which `replies.json` has; the names below say what they are."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from selfroute.languages import Language
from selfroute.languages.grammars import LANGUAGES, grammar

_TABLES: dict[str, dict[str, list[str]]] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
REFUSALS = _TABLES["refusals"]  # the word in all its dress
DECLINES = _TABLES["declines"]  # in a model's own words
ANSWERS = _TABLES["answers"]  # some only sound like declines
LEAD_INS = _TABLES["lead_ins"]  # what introduces an answer, with none after it
TELLING = _TABLES["telling"]  # deny, and answer after that: they decline as a draft, not as a reply to documents
STILL_DENYING = _TABLES["still_denying"]  # the same openings with no answer after them
DENIALS = _TABLES["denials"]  # answers whose opening answers and whose end denies
YES_NO = _TABLES["yes_no"]  # replies to "does it mention?" and "was there?": answers, and two kinds of denials
POLICIES = _TABLES["policies"]  # answers from contracts, manuals and the like: they deny facts, never an answer


def by_language(table: Mapping[str, Sequence[str]]) -> pytest.MarkDecorator:
    """Run a test for the replies of each language in a table."""
    return pytest.mark.parametrize("told", table.values(), ids=list(table))


@contextmanager
def languages_put_back() -> Iterator[list[Language]]:
    """The languages, which are afterwards what they were."""
    before = list(LANGUAGES)
    try:
        yield LANGUAGES
    finally:
        if before != LANGUAGES:
            LANGUAGES[:] = before
            grammar.cache_clear()
