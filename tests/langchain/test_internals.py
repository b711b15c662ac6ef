"""A private name of LangChain or an integration that has gone is no error: what it told is unknown."""

from __future__ import annotations

import langchain_core.runnables.retry
import pytest
from langchain_core.language_models import BaseChatModel

from host_names import private_names, run
from langchain_parts import ScriptedModel, a_chain
from langchain_selfroute import StoredDocuments, internals
from langchain_selfroute.models.clients import name_of
from langchain_stores import chroma_class, store_with
from selfroute.usage.prices import PricedModel

NAMES = (
    *("_get_ls_params", "_ConfigurableModel", "_model", "_should_stream", "_should_use_protocol_streaming"),
    "_supports_provider_strategy",
)


def test_every_private_name_is_known_here() -> None:
    assert private_names(internals) == set(NAMES)


def test_a_model_that_does_not_say_its_name_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert name_of(ScriptedModel(label="gpt-4o")) != PricedModel()
    monkeypatch.delattr(BaseChatModel, "_get_ls_params")
    assert name_of(ScriptedModel(label="gpt-4o")) == PricedModel()


def test_streaming_that_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert internals.streams_whole(ScriptedModel(), {"stream": True}, manager=None, awaited=False)
    monkeypatch.delattr(BaseChatModel, "_should_use_protocol_streaming", raising=False)
    assert internals.streams_whole(ScriptedModel(), {"stream": True}, manager=None, awaited=False)
    monkeypatch.delattr(BaseChatModel, "_should_stream")
    assert not internals.streams_whole(ScriptedModel(), {"stream": True}, manager=None, awaited=False)


def test_agent_s_choice_of_a_format_that_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    factory = pytest.importorskip("langchain.agents.factory")
    assert internals.keeps_to_schemas("gpt-5-mini", [])
    monkeypatch.delattr(factory, "_supports_provider_strategy")
    assert not internals.keeps_to_schemas("gpt-5-mini", [])


def test_model_chosen_in_another_way_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    base = pytest.importorskip("langchain.chat_models.base")
    model = base.init_chat_model(configurable_fields=("model",))
    monkeypatch.delattr(base._ConfigurableModel, "_model")
    assert internals.chosen_model(model, {"configurable": {"model": "gpt-4o"}}) is None


def test_a_retry_that_is_elsewhere_is_not_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    retrying = a_chain().retriever.with_retry()
    assert internals.is_retry(retrying)
    monkeypatch.delattr(langchain_core.runnables.retry, "RunnableRetry")
    assert not internals.is_retry(retrying)


def test_chroma_without_its_collection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = store_with("chroma"), store_with("chroma")
    documents = StoredDocuments(first)
    assert documents._store.cache_key([]) is not None
    monkeypatch.delattr(chroma_class(), "_collection")
    assert documents._store.cache_key([]) is None  # nothing is kept
    assert (documents._store.is_of(first), documents._store.is_of(second)) == (True, False)


@pytest.mark.matrix
def test_nothing_private_is_needed_at_import() -> None:
    run(f"""
from langchain_core.language_models import BaseChatModel, BaseLanguageModel
import langchain_core.runnables.retry
del langchain_core.runnables.retry.RunnableRetry
for name in {sorted(NAMES)}:
    for holder in (BaseLanguageModel, BaseChatModel):
        if name in vars(holder):
            delattr(holder, name)
import langchain_selfroute
""")
