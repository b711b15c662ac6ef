"""Both hosts: what they are asked through is copied as its parts are, or says which part cannot be."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import cloudpickle
import pytest
from langchain_core.runnables import RunnablePassthrough

from both_parts import HOSTS as ONE_OF_EACH
from both_parts import ledger_of, listening, pipeline
from hosts_documents import HOSTS, ITS_OWN, MINE, MODES, NOTHING_HIDDEN, house, of, two_tenants
from langchain_selfroute import SelfRouteLedger
from langchain_stores import text_of
from llamaindex_stores_parts import declining

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
    found, expected = [await plain.through(each).ask(mode) for each in (made, one)]
    assert (found.told, found.context) == (expected.told, expected.context)


@every_host
@pytest.mark.parametrize("name", ["deepcopy", "cloudpickle"])  # some filters are functions without a name
async def test_a_copy_keeps_to_the_same_filter(host: str, name: str) -> None:
    home = house(f"{host} memory", two_tenants())
    plain = home.pipeline(home.search(ITS_OWN))
    made = _copied(host, name, plain.of(False))
    assert (await plain.through(made).ask()).read == [text_of(MINE)]


@every_host
def test_deepcopy_names_the_field_that_cannot_be_copied(host: str) -> None:
    stored = house(f"{host} chroma", of(MINE)).documents(NOTHING_HIDDEN)
    with pytest.raises(TypeError, match=r"StoredDocuments\.store cannot be copied: "):
        copy.deepcopy(pipeline(f"{host} query", documents=stored).asked)


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
