"""Laws of fitting documents to a window, and the words in which models say that a prompt was too long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from selfroute.documents.overflow import is_too_long, read_less
from selfroute.documents.window import fit, trim
from selfroute.usage import count_tokens

COUNTERS: dict[str, Callable[[str], int]] = {
    "quarters": count_tokens,
    "characters": len,
    "words": lambda text: len(text.split()),
    "bytes": lambda text: len(text.encode()),
    "uneven": lambda text: sum(3 if character in "aeiou" else 1 for character in text),
}
counters = st.sampled_from(sorted(COUNTERS)).map(COUNTERS.__getitem__)
words = st.text(st.sampled_from("abcdeé是 \n"), min_size=1, max_size=9)
texts = st.lists(words, max_size=40).map(" ".join)
every_counter = pytest.mark.parametrize("count", COUNTERS.values(), ids=COUNTERS)


@given(st.lists(texts, max_size=5), st.lists(texts, max_size=3), st.integers(0, 120), counters)
def test_documents_never_go_above_the_budget(
    documents: list[str], passages: list[str], budget: int, count: Any
) -> None:
    parts = fit(documents, passages=passages, budget=budget, count=count)
    assert sum(count(part.text) for part in parts) <= budget
    assert [part.index for part in parts] == sorted({part.index for part in parts})
    assert all(part.text == documents[part.index] for part in parts if not part.trimmed)
    assert all(part.text and part.text in documents[part.index] for part in parts if part.trimmed)
    assert [part.trimmed for part in parts[:-1]] == [False] * len(parts[:-1])


@given(st.lists(texts, max_size=5), st.lists(texts, max_size=3), counters)
def test_documents_that_fit_are_all_taken_whole(documents: list[str], passages: list[str], count: Any) -> None:
    for budget in (None, sum(map(count, documents))):
        parts = fit(documents, passages=passages, budget=budget, count=count)
        assert [(part.index, part.text, part.trimmed) for part in parts] == [
            (index, text, False) for index, text in enumerate(documents)
        ]


@given(texts, texts, texts, st.integers(0, 60), counters)
def test_the_best_passage_is_kept_when_it_fits(before: str, passage: str, after: str, more: int, count: Any) -> None:
    passage = f"<{passage.strip()}>"
    text = f"{before} {passage} {after}"
    part = trim(text, passages=["elsewhere", passage], budget=count(passage) + more, count=count)
    assert passage in part
    assert count(part) <= count(passage) + more


@every_counter
def test_the_best_passage_is_kept_in_a_text_of_uneven_density(count: Any) -> None:
    passage = "Ms Okafor, in the chair, opened it at 9."
    text = "a b c d e f g h i j " * 200 + passage + " extraordinarily-long-compound-words" * 200
    assert passage in trim(text, passages=[passage], budget=count(passage), count=count)


@every_counter
def test_several_passages_are_kept_when_they_fit_together(count: Any) -> None:
    first, second = "Ms Okafor took the chair.", "Mr Lin kept the minutes."
    text = "word " * 300 + first + " word" * 20 + " " + second + " word" * 300
    part = trim(text, passages=[second, first], budget=count("word " * 100), count=count)
    assert first in part
    assert second in part


@given(texts, st.integers(0, 40), counters)
def test_a_passage_that_is_nowhere_keeps_the_beginning(text: str, budget: int, count: Any) -> None:
    part = trim(text, passages=["nowhere at all!"], budget=budget, count=count)
    assert text.strip().startswith(part.strip())


@every_counter
def test_a_trimmed_text_is_about_as_long_as_it_may_be(count: Any) -> None:
    text = "The committee met again in the hall. " * 400
    part = trim(text, passages=["met again"], budget=500, count=count)
    assert 450 <= count(part) <= 500


@every_counter
def test_words_are_not_cut_in_two(count: Any) -> None:
    text = " ".join(f"<{n}>" for n in range(2000))
    part = trim(text, passages=["<1000>"], budget=300, count=count)
    assert all(word[0] + word[-1] == "<>" for word in part.split())


def test_a_text_without_white_space_is_cut_all_the_same() -> None:
    assert count_tokens(trim("是" * 10_000, passages=["是是"], budget=100, count=count_tokens)) in range(90, 101)


def test_counting_a_long_text_is_not_repeated_without_need() -> None:
    calls = 0

    def count(text: str) -> int:
        nonlocal calls
        calls += 1
        return len(text.split())

    assert trim("a bb ccc dddd " * 50_000, passages=["dddd a"], budget=20_000, count=count)
    assert calls < 12


class WireError(Exception):
    """An error as clients raise it: words, and perhaps a status."""

    def __init__(self, message: str, status_code: int | None = None, code: Any = None) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.code = code


TOO_LONG: dict[str, tuple[str, int | None]] = {
    "OpenAI": (
        (
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 130021 "
            "tokens. Please reduce the length of the messages."
        ),
        128_000,
    ),
    "OpenAI responses": (
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        None,
    ),
    "vLLM": (
        (
            "This model's maximum context length is 16384 tokens. However, you requested 19591 tokens (9591 "
            "in the messages, 10000 in the completion). Please reduce the length of the messages or "
            "completion."
        ),
        16_384,
    ),
    "vLLM, an engine": (
        (
            "The decoder prompt (length 10127) is longer than the maximum model length of 8192. Make sure "
            "that `max_model_len` is no smaller than the number of text tokens plus multimodal tokens."
        ),
        8192,
    ),
    "vLLM, input tokens": (
        (
            "This model's maximum context length is 262144 tokens. However, you requested 0 output tokens and"
            " your prompt contains at least 262145 input tokens, for a total of at least 262145 tokens. "
            "Please reduce the length of the input prompt or the number of requested output tokens. "
            "(parameter=input_tokens, value=262145)"
        ),
        262_144,
    ),
    "Gemini": (
        (
            "400 INVALID_ARGUMENT. The input token count (1200000) exceeds the maximum number of tokens "
            "allowed (1048576)."
        ),
        1_048_576,
    ),
    "Vertex": (
        (
            "Unable to submit request because the input token count is 32825 but model only supports up to "
            "32768. Reduce the input token count and try again."
        ),
        32_768,
    ),
    "Anthropic": ("prompt is too long: 210431 tokens > 200000 maximum", 200_000),
    "Anthropic with the answer": (
        (
            "input length and `max_tokens` exceed context limit: 170636 + 34048 > 200000, decrease input "
            "length or `max_tokens` and try again"
        ),
        200_000,
    ),
    "llama.cpp": (
        ("the request exceeds the available context size. try increasing the context size or enable context shift"),
        None,
    ),
    "llama.cpp, numbers": (
        "request (9001 tokens) exceeds the available context size (8192 tokens), try increasing it",
        8192,
    ),
    "llama-cpp-python": ("Requested tokens (9001) exceed context window of 8192", 8192),
    "Mistral": (
        ("Prompt contains 65673 tokens and 0 draft tokens, too large for model with 32768 maximum context length"),
        32_768,
    ),
    "Bedrock": (
        (
            "An error occurred (ValidationException) when calling the Converse operation: Input is too long "
            "for requested model."
        ),
        None,
    ),
    "Bedrock Titan": (
        "400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token count: 9001",
        8192,
    ),
    "TGI": ("Input validation error: `inputs` must have less than 4095 tokens. Given: 5000", 4095),
    "TGI with the answer": (
        (
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs`"
            " tokens and 20 `max_new_tokens`"
        ),
        4096,
    ),
    "SGLang": ("The input (61709 tokens) is longer than the model's context length (40960 tokens).", 40_960),
    "SGLang with the answer": (
        (
            "Requested token count exceeds the model's maximum context length of 202752 tokens. You requested"
            " a total of 202941 tokens: 170941 tokens from the input messages and 32000 tokens for the "
            "completion."
        ),
        202_752,
    ),
    "Poolside": ("Input length 131393 exceeds the maximum allowed input length of 131040 tokens.", 131_040),
    "parentheses": ("Input length (265330) exceeds model's maximum context length (262144).", 262_144),
}


@pytest.mark.parametrize("name", TOO_LONG)
def test_the_words_of_a_prompt_that_was_too_long_are_known(name: str) -> None:
    said, _ = TOO_LONG[name]
    assert is_too_long(Exception(said))
    assert is_too_long(WireError(f"Error code: 400 - {{'message': \"{said}\"}}", 400))


def test_the_code_of_openai_is_enough() -> None:
    assert is_too_long(WireError("Bad request", 400, "context_length_exceeded"))


SOMETHING_ELSE = {
    "OpenAI's tokens per minute": (
        "Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used "
        "29000, Requested 2500. Please try again in 3s."
    ),
    "OpenAI's tokens per minute at once": (
        "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested"
        " 45000. The input or output tokens must be reduced in order to run successfully."
    ),
    "Anthropic's tokens per minute": (
        "This request would exceed your organization's rate limit of 30,000 input tokens per minute. For "
        "details, refer to: https://docs.claude.com/en/api/rate-limits. Please reduce the prompt length or "
        "the maximum tokens requested, or try again later."
    ),
    "Anthropic's tokens per minute, another wording": (
        "This request would exceed the rate limit for your organization (d1f8a929) of 40,000 input tokens "
        "per minute. Please reduce the prompt length or the maximum tokens requested, or try again later."
    ),
    "Bedrock's throttle": (
        "An error occurred (ThrottlingException) when calling the Converse operation (reached max retries: "
        "4): Too many tokens, please wait before trying again."
    ),
    "Bedrock's throttle by day": "ThrottlingException: Too many tokens per day, please wait before trying again.",
    "Gemini's quota": (
        "429 RESOURCE_EXHAUSTED. You exceeded your current quota, please check your plan and billing "
        "details. Quota exceeded for metric: "
        "generativelanguage.googleapis.com/generate_content_free_tier_input_token_count, limit: 250000"
    ),
    "an answer that may not be so long": (
        "max_tokens is too large: 50000. This model supports at most 16384 completion tokens, whereas you "
        "provided 50000."
    ),
    "a wrong key": "Incorrect API key provided: sk-x. You can find your API key at the account page.",
    "an unknown model": "The model `gpt-x` does not exist or you do not have access to it.",
    "a server's trouble": "The server had an error while processing your request. Sorry about that!",
    "no connection": "Connection error.",
    "a time-out": "Request timed out.",
    "nothing": (),
}


@pytest.mark.parametrize("name", SOMETHING_ELSE)
def test_other_troubles_are_no_prompt_that_was_too_long(name: str) -> None:
    assert not is_too_long(Exception(SOMETHING_ELSE[name]))
    assert not is_too_long(WireError(SOMETHING_ELSE[name], 429))


@pytest.mark.parametrize("name", [name for name, (_, limit) in TOO_LONG.items() if limit])
def test_the_limit_that_is_named_bounds_what_is_sent_next_without_wasting_it(name: str) -> None:
    said, limit = TOO_LONG[name]
    assert limit is not None
    sent = limit * 5 // 4
    assert limit // 3 <= read_less(Exception(said), sent=sent) < sent * 95 // 100


def test_without_a_limit_half_is_sent() -> None:
    assert read_less(Exception("Input is too long for requested model."), sent=1000) == 500


numbers = st.integers(0, 10**7).map(lambda number: st.sampled_from([f"{number}", f"{number:,}"]))
messages = st.lists(
    st.sampled_from(["maximum", "limit", "tokens", "context length", "is", "(", ">"]) | numbers.flatmap(lambda n: n)
).map(" ".join)


@given(messages | st.text(), st.integers(1, 10**7))
def test_what_is_sent_next_is_always_less(message: str, sent: int) -> None:
    assert 0 <= read_less(Exception(message), sent=sent) < sent


@given(st.integers(1_000, 10**6), st.integers(101, 2_000), st.integers(50, 150))
def test_the_next_prompt_fits_by_the_provider_s_own_count(limit: int, percent: int, ours: int) -> None:
    """Our count may be half as much again as theirs, or half of it."""
    asked = limit * percent // 100
    sent = asked * ours // 100
    assume(sent > 0)
    error = Exception(f"This model's maximum context length is {limit} tokens. However, you requested {asked} tokens.")
    less = read_less(error, sent=sent)
    assert less * 100 // ours <= limit
