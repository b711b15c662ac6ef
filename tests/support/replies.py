"""Replies by kind and language: the refusal in many forms, declines in words, answers, and answers of policies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pytest

import replies_chinese_japanese as eastern
import replies_domains as domains
import replies_english as english
import replies_german_french_spanish as continental
import replies_policies as policies
import replies_policies_translated as translated
from selfroute.languages import LANGUAGES, Language, grammar

REFUSALS = {"English": english.REFUSALS, **continental.REFUSALS, **eastern.REFUSALS}
DECLINES = {"English": [*english.DECLINES, *domains.DECLINES], **continental.DECLINES, **eastern.DECLINES}
ANSWERS = {"English": english.ANSWERS, **continental.ANSWERS, **eastern.ANSWERS}
LEAD_INS = {"English": english.LEAD_INS, **continental.LEAD_INS, **eastern.LEAD_INS}
TELLING = {"English": english.TELLING, **continental.TELLING}
STILL_DENYING = {"English": english.STILL_DENYING, **continental.STILL_DENYING, **eastern.STILL_DENYING}
DENIALS = {"English": english.DENIALS, **translated.DENIALS}
POLICIES = {"English": [*policies.ENGLISH, *domains.ANSWERS], **translated.ANSWERS}


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
