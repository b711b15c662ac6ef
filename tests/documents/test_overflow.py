"""The words in which services say that a prompt was too long, and how much less to send then."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from selfroute.documents.overflow import is_too_long, read_less


class WireError(Exception):
    """An error as clients raise it: words, and perhaps a status."""

    def __init__(self, message: str, status_code: int | None = None, code: Any = None) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.code = code


def said(words: str, limit: int | None) -> tuple[str, int | None]:
    """What a service said, and the limit that it named."""
    return words, limit


TOO_LONG: dict[str, tuple[str, int | None]] = {
    "OpenAI": said(
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130021 "
        "tokens. Please reduce the length of the messages.",
        128_000,
    ),
    "OpenAI responses": said(
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        None,
    ),
    "vLLM": said(
        "This model's maximum context length is 16384 tokens. However, you requested 19591 tokens (9591 "
        "in the messages, 10000 in the completion). Please reduce the length of the messages or "
        "completion.",
        16_384,
    ),
    "vLLM, an engine": said(
        "The decoder prompt (length 10127) is longer than the maximum model length of 8192. Make sure "
        "that `max_model_len` is no smaller than the number of text tokens plus multimodal tokens.",
        8192,
    ),
    "vLLM, input tokens": said(
        "This model's maximum context length is 262144 tokens. However, you requested 0 output tokens and"
        " your prompt contains at least 262145 input tokens, for a total of at least 262145 tokens. "
        "Please reduce the length of the input prompt or the number of requested output tokens. "
        "(parameter=input_tokens, value=262145)",
        262_144,
    ),
    "Gemini": said(
        "400 INVALID_ARGUMENT. The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        1_048_576,
    ),
    "Vertex": said(
        "Unable to submit request because the input token count is 32825 but model only supports up to "
        "32768. Reduce the input token count and try again.",
        32_768,
    ),
    "Anthropic": said("prompt is too long: 210431 tokens > 200000 maximum", 200_000),
    "Anthropic with the answer": said(
        "input length and `max_tokens` exceed context limit: 170636 + 34048 > 200000, decrease input "
        "length or `max_tokens` and try again",
        200_000,
    ),
    "llama.cpp": said(
        "the request exceeds the available context size. try increasing the context size or enable context shift",
        None,
    ),
    "llama.cpp, numbers": said(
        "request (9001 tokens) exceeds the available context size (8192 tokens), try increasing it",
        8192,
    ),
    "llama-cpp-python": said("Requested tokens (9001) exceed context window of 8192", 8192),
    "Mistral": said(
        "Prompt contains 65673 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        32_768,
    ),
    "Bedrock": said(
        "An error occurred (ValidationException) when calling the Converse operation: Input is too long "
        "for requested model.",
        None,
    ),
    "Bedrock Titan": said(
        "400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token count: 9001",
        8192,
    ),
    "TGI": said("Input validation error: `inputs` must have less than 4095 tokens. Given: 5000", 4095),
    "TGI with the answer": said(
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs`"
        " tokens and 20 `max_new_tokens`",
        4096,
    ),
    "SGLang": said("The input (61709 tokens) is longer than the model's context length (40960 tokens).", 40_960),
    "SGLang with the answer": said(
        "Requested token count exceeds the model's maximum context length of 202752 tokens. You requested"
        " a total of 202941 tokens: 170941 tokens from the input messages and 32000 tokens for the "
        "completion.",
        202_752,
    ),
    "Poolside": said("Input length 131393 exceeds the maximum allowed input length of 131040 tokens.", 131_040),
    "parentheses": said("Input length (265330) exceeds model's maximum context length (262144).", 262_144),
    "Anthropic behind LiteLLM": said(
        "litellm.ContextWindowExceededError: AnthropicError - prompt is too long: 209303 tokens > 200000 maximum. "
        "Received Model Group=anthropic/claude-3-5-sonnet-20241022",
        200_000,
    ),
    "Anthropic on Bedrock": said(
        "An error occurred (ValidationException): prompt is too long: 212034 tokens > 199999 maximum",
        199_999,
    ),
    "Bedrock Nova": said(
        "Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again.",
        None,
    ),
    "Bedrock, in characters": said("Malformed input request: expected maxLength: 2048, actual: 2400", 2048),
    "OpenAI, in characters": said(
        "Invalid 'messages[0].content': string too long. Expected a string with maximum length 10485760, but got a "
        "string with length 12000000 instead.",
        10_485_760,
    ),
    "OpenRouter": said(
        "This endpoint's maximum context length is 131072 tokens. However, you requested about 212034 tokens "
        "(212034 of text input). Please reduce the length of either one.",
        131_072,
    ),
    "vLLM, the answer does not fit": said(
        "'max_tokens' or 'max_completion_tokens' is too large: 1024. This model's maximum context length is 32768 "
        "tokens and your request has 32100 input tokens (1024 > 32768 - 32100).",
        32_768,
    ),
    "NIM, no answer fits": said("max_tokens must be at least 1, got -87000.", None),
    "xAI": said(
        "This model's maximum prompt length is 131072 but the request contains 137341 tokens.",
        131_072,
    ),
    "Cohere": said(
        "too many tokens: total number of tokens in the prompt cannot exceed 128000, received 140210. Try using a "
        "shorter prompt",
        128_000,
    ),
    "Groq": said(
        "Please reduce the length of the messages or completion. Current length is 40543 while limit is 32768",
        32_768,
    ),
    "Fireworks": said("The prompt is too long: 40012, model maximum context length: 32767", 32_767),
    "Moonshot": said("Invalid request: Your request exceeded model token limit: 8192", 8192),
    "Databricks": said(
        "Bad request: rpc response (status = 400): Prompt length (132005) exceeds limit (131072)", 131_072
    ),
    "DashScope": said("Range of input length should be [1, 129024]", 129_024),
    "Zhipu": ('{"error":{"code":"1261","message":"Prompt exceeds max length"}}', None),
    "watsonx": said(
        "Token quota/limit: the number of input tokens 12000 cannot exceed the total tokens limit 8192 for this model",
        8192,
    ),
    "LM Studio": said(
        "Trying to keep the first 11900 tokens when context the overflows. However, the model is loaded with "
        "context length of only 4096 tokens, which is not enough.",
        4096,
    ),
    "LM Studio, no numbers": said(
        "The number of tokens to keep from the initial prompt is greater than the context length.",
        None,
    ),
    "Ollama": said("input length exceeds maximum context length", None),
    "Ollama, by how much": said("prompt too long; exceeded max context length by 4013 tokens", None),
    "two sentences": said("Prompt is too long (40000 tokens). The maximum is 32768 tokens.", 32_768),
    "a status behind the words": said("input tokens exceed the limit (Status Code: 400, Request ID: 1f)", None),
    "a status after the words": said("Input is too long: exceeds the model limit. Status: 400", None),
    "a line behind the words": said("maximum context length exceeded at line 512", None),
    "a server's limit on bytes": said("<html><head><title>413 Request Entity Too Large</title></head>", None),
    "a gateway's limit on bytes": said("Error code: 413 - {'error': {'type': 'request_too_large'}}", None),
}


@pytest.mark.parametrize("name", TOO_LONG)
def test_the_words_of_a_prompt_that_was_too_long_are_known(name: str) -> None:
    words, _ = TOO_LONG[name]
    assert is_too_long(Exception(words))
    assert is_too_long(WireError(f"Error code: 400 - {{'message': \"{words}\"}}", 400))


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
def test_a_code_or_a_status_is_enough(error: WireError) -> None:
    assert is_too_long(error)


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
    "Groq's tokens per minute": (
        "Request too large for model `llama-3.1-8b-instant` in organization `org_x` on tokens per minute (TPM): Limit "
        "6000, Requested 12012, please reduce your message size and try again."
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


def test_a_rate_limit_is_none_whatever_its_status() -> None:
    assert not is_too_long(WireError(SOMETHING_ELSE["Groq's tokens per minute"], 413, "rate_limit_exceeded"))


@pytest.mark.parametrize("name", TOO_LONG)
def test_the_limit_that_is_named_bounds_what_is_sent_next_without_wasting_it_and_without_one_half_is(name: str) -> None:
    words, limit = TOO_LONG[name]
    sent = (limit or 800) * 5 // 4
    less = read_less(Exception(words), sent=sent)
    assert limit // 3 <= less < sent * 95 // 100 if limit else less == sent // 2


NOISE = {
    "a client's prefix": "Error code: 400 - {{'error': {{'message': \"{}\", 'code': 400}}}}",
    "a status": "{} (status code: 400)",
    "the date of a model": "{}\nReceived Model Group=anthropic/claude-3-5-sonnet-20241022",
    "a time": "{}, 'created': 1763800000, 'request_id': 'req-011993-20000'",
    "an address": "{} while fetching https://example.org:8443/v1/chat/completions",
}


@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
@pytest.mark.parametrize("name", TOO_LONG)
def test_other_numbers_in_an_error_change_nothing(name: str, noise: str) -> None:
    words, limit = TOO_LONG[name]
    assert is_too_long(Exception(noise.format(words)))
    for sent in (900, 100_000, (limit or 0) * 5 // 4 or 1):
        assert read_less(Exception(noise.format(words)), sent=sent) == read_less(Exception(words), sent=sent)


def test_a_size_that_cannot_be_that_of_the_prompt_is_not_believed() -> None:
    error = Exception("maximum context length is 1000 tokens, but the input has 90000 tokens")
    assert read_less(error, sent=1_200) == 800


def test_a_long_history_takes_its_share_of_the_limit() -> None:
    error = Exception("This model's maximum context length is 10000 tokens. However, you requested 16000 tokens.")
    for around in (0, 1_000, 4_000, 7_000):
        sent = 16_000 - around
        assert read_less(error, sent=sent, around=around) + around <= 10_000


def test_an_error_that_repeats_the_prompt_is_looked_at_in_no_time() -> None:
    error = Exception("prompt is too long: " + "context length limit max tokens 12 " * 1_000_000)
    assert is_too_long(error)
    assert 0 < read_less(error, sent=1_000) < 1_000


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
