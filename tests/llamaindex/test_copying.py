"""Engines, synthesizers, stored documents and ledgers are copied as their parts are, or say which part cannot be."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

import cloudpickle
import pytest
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.schema import Document
from pydantic import PrivateAttr

from llamaindex_parts import MODES, QUESTION, STREAMS, an_engine, ask
from llamaindex_selfroute import SelfRouteLedger, SelfRouteQueryEngine, SelfRouteSynthesizer, StoredDocuments
from llamaindex_stores_parts import Shelf, chroma, declining, over, simple, split
from selfroute.errors import CopyError

COPIES: dict[str, Any] = {
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),  # noqa: S301
    "cloudpickle": lambda one: pickle.loads(cloudpickle.dumps(one)),  # noqa: S301
}
DEEP = [name for name in COPIES if name != "copy"]
DOCUMENT = Document(text="The crane of the north lifts crates.\nThe crane of the south sings.", id_="a")


def _engine(mode: str) -> SelfRouteQueryEngine:
    index = simple(split(DOCUMENT))
    return SelfRouteQueryEngine(
        index.as_retriever(), documents=StoredDocuments(index), llm=declining(), streaming=mode in STREAMS
    )


@pytest.mark.parametrize("used", [False, True], ids=["fresh", "used"])
@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("mode", MODES)
async def test_a_copy_of_an_engine_answers_as_the_engine_does(mode: str, name: str, used: bool) -> None:
    engine = _engine(mode)
    if used:
        await ask(engine, QUESTION, mode)
    made = COPIES[name](engine)
    llm, of_copy = (one._response_synthesizer.llm for one in (engine, made))
    for model in (llm, of_copy):  # the scripted model leaves its script behind where it is pickled
        model.draft, model.final, model.calls = declining().draft, declining().final, []
    given, copied = await ask(engine, QUESTION, mode), await ask(made, QUESTION, mode)
    assert (copied.text, copied.metadata["route"]) == (given.text, "long_context")
    assert [one.get_content() for one in copied.source_nodes] == [one.get_content() for one in given.source_nodes]


class Locked(Shelf):
    """A store that cannot be copied."""

    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    def __getstate__(self) -> Any:
        return {"__dict__": vars(self), "lock": self._lock}


UNCOPIED: dict[str, Any] = {
    "Fetched": lambda: StoredDocuments(over(Locked(), split(DOCUMENT)), fetch=_fetch),
    "Chroma": lambda: StoredDocuments(chroma(split(DOCUMENT))),  # LlamaIndex would pickle it without its collection
}


@pytest.mark.parametrize("store", UNCOPIED)
@pytest.mark.parametrize("name", DEEP)
def test_what_cannot_be_copied_is_named(name: str, store: str) -> None:
    stored = UNCOPIED[store]()
    for whole in (
        stored,
        SelfRouteSynthesizer(documents=stored, llm=declining()),
        an_engine(documents=stored),
    ):
        with pytest.raises(
            CopyError, match=rf"this StoredDocuments cannot be .* because its store \({store}\)"
        ) as refused:
            COPIES[name](whole)
        assert "\n" not in str(refused.value)


def _fetch(document: str, filters: Any) -> list[Any]:
    return []


@pytest.mark.parametrize("name", DEEP)
def test_copies_of_ledgers_go_on_by_themselves(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = SelfRouteLedger()
    handlers = get_dispatcher().event_handlers
    monkeypatch.setattr(get_dispatcher(), "event_handlers", [*handlers, ledger])
    an_engine().query(QUESTION)
    made = COPIES[name](ledger)
    assert made.to_dict() == ledger.to_dict()
    assert made.to_dict()["queries"] == 1
    monkeypatch.setattr(get_dispatcher(), "event_handlers", [*handlers, made])
    an_engine().query(QUESTION)
    assert (ledger.to_dict()["queries"], made.to_dict()["queries"]) == (1, 2)
    assert ledger.model_copy(deep=True).to_dict() == ledger.to_dict()
