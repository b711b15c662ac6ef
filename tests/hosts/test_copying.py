"""Both hosts: what they are asked through is copied as its parts are, or says which part cannot be."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
from collections.abc import Callable
from typing import Any

import cloudpickle
import pytest
from langchain_core.runnables import RunnablePassthrough
from langchain_openai import ChatOpenAI
from pydantic import PrivateAttr

import llamaindex_selfroute
from both_parts import HOSTS as ONE_OF_EACH
from both_parts import ledger_of, listening, pipeline
from hosts_documents import HOSTS, ITS_OWN, MINE, MODES, NOTHING_HIDDEN, house, of, two_tenants
from langchain_parts import a_chain
from langchain_selfroute import SelfRouteLedger
from langchain_stores import text_of
from llamaindex_parts import ListRetriever
from llamaindex_selfroute import SelfRouteQueryEngine, SelfRouteSynthesizer
from llamaindex_stores_parts import Shelf, declining, over
from selfroute.errors import CopyError

DEEP: dict[str, Callable[[Any], Any]] = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),  # noqa: S301
    "cloudpickle": lambda one: pickle.loads(cloudpickle.dumps(one)),  # noqa: S301
}
COPIES = {**DEEP, "copy": copy.copy}
DRESSED: dict[str, Callable[[Any], Any]] = {
    "langchain itself": lambda chain: chain,
    "langchain bound": lambda chain: chain.with_config(callbacks=[SelfRouteLedger()], tags=["x"]),
    "langchain retrying": lambda chain: chain.with_retry(),
    "langchain in a sequence": lambda chain: RunnablePassthrough() | chain,
    "llamaindex itself": lambda engine: engine,
}
every_host = pytest.mark.parametrize("host", HOSTS)
every_way = pytest.mark.parametrize("name", COPIES)


def _copied(host: str, name: str, one: Any) -> Any:
    made = COPIES[name](one)
    if host == "llamaindex":  # the scripted model leaves its script behind where it is pickled
        llm = made._response_synthesizer.llm
        llm.draft, llm.final, llm.calls = declining().draft, declining().final, []
    return made


@pytest.mark.parametrize("used", [False, True], ids=["fresh", "used"])
@every_way
@pytest.mark.parametrize("kind", DRESSED)
@pytest.mark.parametrize("mode", MODES)
async def test_a_copy_answers_as_what_it_was_copied_from(mode: str, kind: str, name: str, used: bool) -> None:
    host = kind.split(maxsplit=1)[0]
    plain = house(f"{host} memory", of(MINE)).pipeline()
    one = DRESSED[kind](plain.of("stream" in mode))
    if used:
        await plain.through(one).ask(mode)
    made = _copied(host, name, one)
    assert await plain.through(made).ask(mode) == await plain.through(one).ask(mode)


@every_host
@pytest.mark.parametrize("name", ["deepcopy", "cloudpickle"])  # some filters are functions without a name
async def test_a_copy_keeps_to_the_same_filter(host: str, name: str) -> None:
    home = house(f"{host} memory", two_tenants())
    plain = home.pipeline(home.search(ITS_OWN))
    made = _copied(host, name, plain.of(False))
    assert (await plain.through(made).ask()).texts == [text_of(MINE)]


@every_host
@every_way
async def test_a_copy_of_stored_documents_reads_for_itself(host: str, name: str) -> None:
    home = house(f"{host} memory", of(MINE))
    stored = home.documents(NOTHING_HIDDEN)
    await home.pipeline(documents=stored).ask()
    made = COPIES[name](stored)
    for _ in range(2):
        assert (await home.pipeline(documents=made).ask()).texts == [text_of(MINE)]
        made.forget()


class Locked(Shelf):
    """A store that cannot be copied."""

    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    def __getstate__(self) -> Any:
        return {"__dict__": vars(self), "lock": self._lock}


def _fetch(document: str, filters: Any) -> list[Any]:
    return []


def _in_chroma(host: str) -> Any:
    return house(f"{host} chroma", of(MINE)).documents(NOTHING_HIDDEN)


def _fetched() -> Any:
    return llamaindex_selfroute.StoredDocuments(over(Locked(), []), fetch=_fetch)


def _locked() -> ListRetriever:
    retriever = ListRetriever([])
    retriever.lock = threading.Lock()  # type: ignore[attr-defined]
    return retriever


STORED = r"this StoredDocuments cannot be .* because its store \({}\)"
UNCOPIED: dict[str, tuple[Callable[[], Any], str]] = {
    **{f"documents of {host}": (lambda host=host: _in_chroma(host), STORED.format("Chroma")) for host in HOSTS},
    **{
        f"documents in {host}": (
            lambda host=host: pipeline(f"{host} query", documents=_in_chroma(host)).asked,
            STORED.format("Chroma"),
        )
        for host in HOSTS
    },
    "documents in a synthesizer": (
        lambda: SelfRouteSynthesizer(documents=_in_chroma("llamaindex"), llm=declining()),
        STORED.format("Chroma"),
    ),
    "documents that are fetched": (_fetched, STORED.format("Fetched")),
    "a retriever": (
        lambda: SelfRouteQueryEngine(_locked(), documents=lambda nodes, query: [], llm=declining()),
        r"this SelfRouteQueryEngine .* its retriever \(ListRetriever\)",
    ),
    "a model": (lambda: a_chain(llm=ChatOpenAI(api_key="none")), r"this SelfRouteChain .* its llm \(ChatOpenAI\)"),
}


# The half-made copy of a client of 2025 has no state that its end asks for.
@pytest.mark.filterwarnings("ignore:Exception ignored in.*HttpxClientWrapper:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name in DEEP for kind in UNCOPIED])
def test_what_cannot_be_copied_is_named(name: str, kind: str) -> None:
    make, message = UNCOPIED[kind]
    with pytest.raises(CopyError, match=message) as refused:
        DEEP[name](make())
    assert "\n" not in str(refused.value)
    del refused
    if kind == "a model":
        gc.collect()  # here, and not amid another test


@pytest.mark.parametrize(("where", "name"), [(where, name) for where in ONE_OF_EACH for name in DEEP])
async def test_copies_of_ledgers_go_on_by_themselves(where: str, name: str) -> None:
    ledger, one = ledger_of(where), pipeline(where)
    with listening(ledger, one):
        await one.ask()
    made = DEEP[name](ledger)
    assert made.to_dict() == ledger.to_dict()
    with listening(made, one):
        await one.ask()
    assert (ledger.to_dict()["queries"], made.to_dict()["queries"]) == (1, 2)
