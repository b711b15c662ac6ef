"""Which prompt cache a model's prompts may hit, and what prompts have in common."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes import examples
from selfroute.calls.caching import Prefix, ProviderCache, cache_of, prefix_in
from selfroute.usage.prices import PricedModel

OPENAI, ANTHROPIC = "https://api.openai.com/v1/", "https://api.anthropic.com"
GOOGLE = "https://generativelanguage.googleapis.com/"
MINUTES = 60.0
GPT = PricedModel("gpt-4o-mini", "openai", url=OPENAI)
HAIKU = PricedModel("claude-haiku-4-5", "anthropic", url=ANTHROPIC)
SONNET = replace(HAIKU, name="claude-sonnet-4-5")
AUTOMATIC = ProviderCache(5 * MINUTES, 1_024)
CASES = [  # model, `prompt_cache`, the cache
    (GPT, "auto", AUTOMATIC),
    (GPT, "off", None),
    (replace(GPT, name="gpt-4.1", url="https://eu.api.openai.com/v1"), "auto", AUTOMATIC),
    (replace(GPT, name="gpt-5.5-mini-2026-03-01"), "auto", AUTOMATIC),
    (replace(GPT, name="o4-mini"), "5m", AUTOMATIC),
    (replace(GPT, name="gpt-3.5-turbo"), "auto", None),
    (replace(GPT, name="gpt-5.6-luna"), "auto", None),  # charges for what it writes
    (replace(GPT, url="https://api.openai.com.example.org/v1"), "auto", None),
    (replace(GPT, url="http://localhost:8000/v1"), "auto", None),
    (replace(GPT, url=None), "auto", None),
    (replace(GPT, provider="deepseek"), "auto", None),
    (replace(GPT, fallbacks=(HAIKU,)), "auto", AUTOMATIC),
    (PricedModel("gpt-4o", "azure", url="https://mine.openai.azure.com/"), "auto", AUTOMATIC),
    (HAIKU, "auto", None),
    (HAIKU, "5m", ProviderCache(5 * MINUTES, 4_096, "5m")),
    (HAIKU, "1h", ProviderCache(60 * MINUTES, 4_096, "1h")),
    (replace(HAIKU, url="https://bedrock.example.org"), "5m", None),
    (replace(HAIKU, fallbacks=(GPT,)), "5m", None),
    (replace(HAIKU, fallbacks=(SONNET,)), "5m", ProviderCache(5 * MINUTES, 4_096, "5m")),
    (replace(HAIKU, fallbacks=(replace(SONNET, url="https://example.org"),)), "5m", None),
    (PricedModel("gemini-2.5-flash", "google_genai", url=GOOGLE), "auto", AUTOMATIC),
    (PricedModel("models/gemini-3-pro-preview", "google", url=GOOGLE), "auto", ProviderCache(5 * MINUTES, 4_096)),
    (PricedModel("gemini-2.0-flash", "google_genai", url=GOOGLE), "auto", None),
    (PricedModel(None, None), "auto", None),
]


@pytest.mark.parametrize(("model", "wish", "cache"), CASES, ids=str)
def test_cache_of_model(model: PricedModel, wish: str, cache: ProviderCache | None) -> None:
    assert cache_of(model, wish) == cache  # type: ignore[arg-type]


NO_PREFIX = {
    "no documents": [("user", "Who?")],
    "an empty context": [("user", "")],
    "a text in parts": [("user", None)],
    "parts before it": [("system", None), ("user", "DOC\nWho?")],
    "a conversation before it": [("user", "Hello."), ("assistant", "Hello!"), ("user", "DOC\nWho?")],
    "the question before it": [("user", "Who? DOC")],
    "the question before it, in the system's message": [("system", "Answer: Who?"), ("user", "DOC")],
}


@pytest.mark.parametrize("name", NO_PREFIX)
def test_prefix_is_none(name: str) -> None:
    context = "" if name == "an empty context" else "DOC"
    assert prefix_in(NO_PREFIX[name], context=context, question="Who?") is None


@examples(200)
@given(before=st.text(), context=st.text(min_size=1), question=st.text(min_size=1), system=st.booleans())
def test_prefix_is_what_comes_before_the_question(before: str, context: str, question: str, system: bool) -> None:
    front = [("system", "Be short.")] if system else []
    whole = "".join(text for _, text in front) + f"{before}{context}"
    prefix = prefix_in([*front, ("user", f"{before}{context}\n{question}")], context=context, question=question)
    if prefix is not None:  # the question may stand in front by chance
        assert whole.startswith("".join(prefix.texts))
        assert prefix.texts[-1].endswith(context)


def test_prefix_digest_depends_on_every_message() -> None:
    prefixes = [Prefix(texts) for texts in (("ab", "c"), ("a", "bc"), ("abc",), ("ab", "d"), ("\ud800",))]
    digests = {prefix.digest() for prefix in prefixes}
    assert len(digests) == len(prefixes)
    assert all(set(digest) <= set("0123456789abcdef") for digest in digests)
