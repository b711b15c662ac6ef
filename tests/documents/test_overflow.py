"""The words in which services say that a prompt was too long, and how much less to send then."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from golden import GOLDEN as ALL
from selfroute.documents.overflow import is_too_long, read_less

GOLDEN = ALL["overflow"]
"""What providers said, the tokens of documents and around them in the refused prompt, and what to send then."""


class WireError(Exception):
    """An error as clients raise it: words, and perhaps a status."""

    def __init__(self, message: str, status_code: int | None = None, code: Any = None) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.code = code


@pytest.mark.parametrize(("words", "sent", "around", "less"), GOLDEN.values(), ids=GOLDEN)
def test_read_less(words: str, sent: int, around: int, less: int) -> None:
    assert is_too_long(Exception(words))
    assert read_less(Exception(words), sent=sent, around=around) == less


@pytest.mark.parametrize(
    "error",
    [
        WireError("Bad request", 400, "context_length_exceeded"),
        WireError("Bad request", 400, "string_above_max_length"),
        WireError("Request failed", 413),
        WireError("Request failed", None, 413),
    ],
    ids=lambda error: f"{error.status_code} {error.code}",
)
def test_is_too_long_by_a_code_or_a_status(error: WireError) -> None:
    assert is_too_long(error)


SOMETHING_ELSE = {
    "OpenAI's tokens per minute": (
        "Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used "
        "29000, Requested 2500. Please try again in 3s."
    ),
    "Anthropic's tokens per minute": (
        "This request would exceed your organization's rate limit of 30,000 input tokens per minute. For "
        "details, refer to: https://docs.claude.com/en/api/rate-limits. Please reduce the prompt length or "
        "the maximum tokens requested, or try again later."
    ),
    "Bedrock's throttle": (
        "An error occurred (ThrottlingException) when calling the Converse operation (reached max retries: "
        "4): Too many tokens, please wait before trying again."
    ),
    "tokens per day": "Too many tokens per day for this model.",
    "Gemini's quota": (
        "429 RESOURCE_EXHAUSTED. You exceeded your current quota. Quota exceeded for metric: "
        "generativelanguage.googleapis.com/generate_content_free_tier_input_token_count, limit: 250000"
    ),
    "Groq's tokens per minute": (
        "Request too large for model `llama-3.1-8b-instant` in organization `org_x` on tokens per minute (TPM): Limit "
        "6000, Requested 12012, please reduce your message size and try again."
    ),
    "an answer that may not be so long": (
        "max_tokens is too large: 50000. This model supports at most 16384 completion tokens, whereas you "
        "provided 50000."
    ),
    "a wrong key": "Incorrect API key provided: sk-x. You can find your API key at the account page.",
    "a time-out": "Request timed out.",
}


@pytest.mark.parametrize("name", SOMETHING_ELSE)
def test_is_too_long_is_no_other_trouble(name: str) -> None:
    words = SOMETHING_ELSE[name]
    assert not any(map(is_too_long, (Exception(words), WireError(words, 429))))
    if "token" in name or "Bedrock" in name:
        assert not is_too_long(WireError(words, 413, "rate_limit_exceeded"))


@pytest.mark.parametrize("status", [401, 403, 404, 408, 429])
def test_is_too_long_at_no_other_status(status: int) -> None:
    assert not is_too_long(WireError("prompt is too long: 210431 tokens > 200000 maximum", status))


NOISE = {
    "a client's prefix": "Error code: 400 - {{'error': {{'message': \"{}\", 'code': 400}}}}",
    "a status": "{} (status code: 400)",
    "the date of a model": "{}\nReceived Model Group=anthropic/claude-3-5-sonnet-20241022",
    "a time": "{}, 'created': 1763800000, 'request_id': 'req-011993-20000'",
    "an address": "{} while fetching https://example.org:8443/v1/chat/completions",
}


@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
def test_read_less_whatever_other_numbers_stand_there(noise: str) -> None:
    for words, asked, around, less in GOLDEN.values():
        error = Exception(noise.format(words))
        assert is_too_long(error)
        assert is_too_long(WireError(str(error), 400))
        assert read_less(error, sent=asked, around=around) == less, words
        for sent in (900, 100_000):
            assert read_less(error, sent=sent) == read_less(Exception(words), sent=sent), words


def test_read_less_of_an_error_that_repeats_the_prompt() -> None:
    error = Exception("prompt is too long: " + "context length limit max tokens 12 " * 1_000_000)
    assert is_too_long(error)
    assert 0 < read_less(error, sent=1_000) < 1_000


numbers = st.integers(0, 10**7).map(lambda number: st.sampled_from([f"{number}", f"{number:,}"]))
messages = st.lists(
    st.sampled_from(["maximum", "limit", "tokens", "context length", "is", "(", ">"]) | numbers.flatmap(lambda n: n)
).map(" ".join)


@given(messages | st.text(), st.integers(1, 10**7))
def test_read_less_is_always_less(message: str, sent: int) -> None:
    assert 0 <= read_less(Exception(message), sent=sent) < sent


@given(st.integers(1_000, 10**6), st.integers(101, 2_000), st.integers(50, 150))
def test_read_less_fits_by_the_providers_own_count(limit: int, percent: int, ours: int) -> None:
    """Our count may be half as much again as theirs, or half of it."""
    asked = limit * percent // 100
    sent = asked * ours // 100
    assume(sent > 0)
    error = Exception(f"This model's maximum context length is {limit} tokens. However, you requested {asked} tokens.")
    less = read_less(error, sent=sent)
    assert less * 100 // ours <= limit
