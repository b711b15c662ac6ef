"""Which prompt cache a model's prompts may hit, and what prompts have in common."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes import examples
from selfroute.caching import Prefix, ProviderCache, cache_of, prefix_in
from selfroute.usage.prices import PricedModel

OPENAI, ANTHROPIC = "https://api.openai.com/v1/", "https://api.anthropic.com"
GOOGLE = "https://generativelanguage.googleapis.com/"
MINUTES = 60.0
LUNA = PricedModel("gpt-5.6-luna", "openai", url=OPENAI)
HAIKU = PricedModel("claude-haiku-4-5", "anthropic", url=ANTHROPIC)
SONNET = replace(HAIKU, name="claude-sonnet-4-5")
SELF_FOUND = ProviderCache(5 * MINUTES, 1_024)
MARKED = ProviderCache(30 * MINUTES, 1_024, "openai")

CASES = [
    (PricedModel("gpt-4o-mini", "openai", url=OPENAI), "auto", SELF_FOUND),
    (PricedModel("gpt-4.1", "openai", url="https://eu.api.openai.com/v1"), "auto", SELF_FOUND),
    (PricedModel("gpt-5.5-mini-2026-03-01", "openai", url=OPENAI), "auto", SELF_FOUND),
    (PricedModel("o4-mini", "openai", url=OPENAI), "1h", SELF_FOUND),
    (PricedModel("gpt-3.5-turbo", "openai", url=OPENAI), "auto", None),
    (PricedModel("gpt-4", "openai", url=OPENAI), "auto", None),
    (LUNA, "auto", MARKED),
    (LUNA, "1h", MARKED),
    (LUNA, "off", None),
    (PricedModel("gpt-10", "openai", url=OPENAI), "auto", MARKED),
    (replace(LUNA, url="https://api.openai.com.example.org/v1"), "auto", None),
    (replace(LUNA, url="https://gateway.example.org/api.openai.com/v1"), "auto", None),
    (replace(LUNA, url="http://localhost:8000/v1"), "auto", None),
    (replace(LUNA, url=None), "auto", None),
    (replace(LUNA, provider="deepseek"), "auto", None),
    (PricedModel("gpt-4o", "azure", url="https://mine.openai.azure.com/"), "auto", SELF_FOUND),
    (PricedModel("gpt-5.6", "azure", url="https://mine.openai.azure.com/"), "auto", None),
    (HAIKU, "auto", None),
    (HAIKU, "5m", ProviderCache(5 * MINUTES, 4_096, "anthropic", "5m")),
    (HAIKU, "1h", ProviderCache(60 * MINUTES, 4_096, "anthropic", "1h")),
    (replace(HAIKU, name="claude-opus-5"), "5m", ProviderCache(5 * MINUTES, 1_024, "anthropic", "5m")),
    (SONNET, "1h", ProviderCache(60 * MINUTES, 1_024, "anthropic", "1h")),
    (replace(HAIKU, url="https://bedrock.example.org"), "5m", None),
    (PricedModel("gemini-2.5-flash", "google_genai", url=GOOGLE), "auto", SELF_FOUND),
    (PricedModel("models/gemini-3-pro-preview", "google", url=GOOGLE), "auto", ProviderCache(5 * MINUTES, 4_096)),
    (PricedModel("gemini-2.0-flash", "google_genai", url=GOOGLE), "auto", None),
    (PricedModel("gemini-2.5-flash", "google_genai", url=GOOGLE), "off", None),
    (PricedModel(None, None), "auto", None),
    (replace(LUNA, fallbacks=(PricedModel("gpt-5.7", "openai", url=OPENAI),)), "auto", MARKED),
    (replace(LUNA, fallbacks=(PricedModel("gpt-4o", "openai", url=OPENAI),)), "auto", None),
    (replace(HAIKU, fallbacks=(LUNA,)), "5m", None),
    (replace(HAIKU, fallbacks=(SONNET,)), "5m", ProviderCache(5 * MINUTES, 4_096, "anthropic", "5m")),
    (replace(HAIKU, fallbacks=(replace(SONNET, url="https://example.org"),)), "5m", None),
    (PricedModel("gpt-4o", "openai", url=OPENAI, fallbacks=(HAIKU,)), "auto", SELF_FOUND),
]


@pytest.mark.parametrize(("model", "wish", "cache"), CASES, ids=str)
def test_a_cache_is_known_at_its_providers_own_address_only(
    model: PricedModel, wish: str, cache: ProviderCache | None
) -> None:
    assert cache_of(model, wish) == cache  # type: ignore[arg-type]


def test_models_that_differ_in_their_fallbacks_are_not_mistaken_for_each_other() -> None:
    assert cache_of(replace(LUNA, fallbacks=(HAIKU,)), "auto") is None
    assert cache_of(LUNA, "auto") == MARKED


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
def test_nothing_is_shared_where(name: str) -> None:
    context = "" if name == "an empty context" else "DOC"
    assert prefix_in(NO_PREFIX[name], context=context, question="Who?") is None


@examples(200)
@given(
    before=st.text(),
    context=st.text(min_size=1),
    questions=st.tuples(st.text(min_size=1), st.text(min_size=1)),
    system=st.booleans(),
)
def test_prompts_on_the_same_documents_share_all_up_to_their_end(
    before: str, context: str, questions: tuple[str, str], system: bool
) -> None:
    front = [("system", "Be short.")] if system else []
    shared = [text for _, text in front] + [f"{before}{context}"]

    def found(question: str) -> Prefix | None:
        return prefix_in([*front, ("user", f"{before}{context}\n{question}")], context=context, question=question)

    first, second = map(found, questions)
    for prefix in filter(None, (first, second)):
        last = len(prefix.texts) - 1  # the system's message, if the documents are a part of it
        assert prefix.texts[-1].endswith(context)
        assert list(prefix.texts[:last]) == shared[:last]
        assert shared[last].startswith(prefix.texts[-1])
    if first and second:
        assert first == second
        assert first.digest() == second.digest()


def test_a_digest_depends_on_every_message_and_says_nothing_of_it() -> None:
    prefixes = [Prefix(texts) for texts in (("ab", "c"), ("a", "bc"), ("abc",), ("ab", "d"), ("\ud800",))]
    digests = {prefix.digest() for prefix in prefixes}
    assert len(digests) == len(prefixes)
    assert all(set(digest) <= set("0123456789abcdef") for digest in digests)
