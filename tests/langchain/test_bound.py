"""What is bound to a chain holds for all that hangs on it, or it does not exist there."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import ConfigurableField, RunnableBinding, RunnableLambda

from hosts_documents import ITS_OWN, MINE, OTHER, QUESTION, Holds, house, of
from langchain_selfroute import SelfRouteChain, SelfRouteLedger
from langchain_stores import text_of
from selfroute.errors import ConfigurationError

THEIRS = Holds("tenant", OTHER)
every_way = pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])


def _home() -> Any:
    return house("langchain memory", [*of(MINE, "ash.md"), *of(OTHER, "birch.md")])


def _configurable(home: Any) -> SelfRouteChain:
    retriever = home.search(k=30).configurable_fields(search_kwargs=ConfigurableField(id="search"))
    chain: SelfRouteChain = home.pipeline(retriever).of(False)
    return chain


def _only(home: Any, ledger: SelfRouteLedger) -> Any:
    return {"configurable": {"search": {"k": 30, "filter": home.filter(ITS_OWN)}}, "callbacks": [ledger]}


def _alternatives(home: Any) -> Any:
    theirs = home.pipeline(home.search(THEIRS)).of(False)
    mine = home.pipeline(home.search(ITS_OWN)).of(False)
    return theirs.configurable_alternatives(ConfigurableField(id="who"), default_key=OTHER, **{MINE: mine})


def _alternative_bindings(home: Any) -> Any:
    chain = _configurable(home)
    theirs, mine = (
        chain.with_config(configurable={"search": {"filter": home.filter(one)}}) for one in (THEIRS, ITS_OWN)
    )
    return theirs.configurable_alternatives(ConfigurableField(id="who"), default_key=OTHER, **{MINE: mine})


FORMS: dict[str, Callable[[Any, SelfRouteLedger], Any]] = {
    "with_config": lambda home, ledger: _configurable(home).with_config(_only(home, ledger)),
    "with_config, bind": lambda home, ledger: _configurable(home).with_config(_only(home, ledger)).bind(stop=["."]),
    "bind, with_config": lambda home, ledger: _configurable(home).bind(stop=["."]).with_config(_only(home, ledger)),
    "twice": lambda home, ledger: (
        _configurable(home).with_config(_only(home, ledger)).with_config(tags=["a"], run_name="mine")
    ),
    "twice configured": lambda home, ledger: (
        _configurable(home).with_config(_only(home, ledger)).with_config(configurable={"other": 1})
    ),
    "with_types": lambda home, ledger: (
        _configurable(home).with_types(output_type=dict).with_config(_only(home, ledger))
    ),
    "with_listeners": lambda home, ledger: (
        _configurable(home).with_listeners(on_start=print).with_config(_only(home, ledger))
    ),
    "LangChain's binding": lambda home, ledger: RunnableBinding(
        bound=_configurable(home), config=_only(home, ledger), kwargs={}
    ),
    "configurable_fields": lambda home, ledger: (
        _configurable(home).configurable_fields(refusal=ConfigurableField(id="no")).with_config(_only(home, ledger))
    ),
    "configurable_fields, twice": lambda home, ledger: (
        _configurable(home)
        .configurable_fields(refusal=ConfigurableField(id="no"))
        .with_config(_only(home, ledger))
        .with_config(tags=["a"])
    ),
    "the retriever as a field": lambda home, ledger: (
        home.pipeline(home.search(THEIRS))
        .of(False)
        .configurable_fields(retriever=ConfigurableField(id="retriever"))
        .with_config(configurable={"retriever": home.search(ITS_OWN)}, callbacks=[ledger])
    ),
    "configurable_alternatives": lambda home, ledger: _alternatives(home).with_config(
        configurable={"who": MINE}, callbacks=[ledger]
    ),
    "alternatives of bindings": lambda home, ledger: _alternative_bindings(home).with_config(
        configurable={"who": MINE}, callbacks=[ledger]
    ),
    "a binding of alternatives": lambda home, ledger: (
        _alternatives(home).bind(stop=["."]).with_config(configurable={"who": MINE}, callbacks=[ledger])
    ),
}


async def _use(tool: Any, given: dict[str, Any], awaited: bool, config: Any = None) -> str:
    return str(await tool.ainvoke(given, config) if awaited else tool.invoke(given, config))


@pytest.mark.parametrize("form", FORMS)
@every_way
async def test_bound_keeps_the_filter(form: str, awaited: bool) -> None:
    """Of the chain itself, or the rest would show nothing; of its tools, and of its checks."""
    home, ledger = _home(), SelfRouteLedger()
    made = FORMS[form](home, ledger)
    assert {one.metadata["source"] for one in made.invoke(QUESTION)["retrieved"]} == {"ash.md"}
    assert ledger.to_dict()["queries"] == 1
    search, find, opening = made.tools()
    assert await _use(opening, {"document": "ash.md"}, awaited)
    told = [
        await _use(search, {"query": QUESTION}, awaited),
        await _use(find, {"document": "birch.md", "words": QUESTION}, awaited),
        await _use(opening, {"document": "birch.md"}, awaited),
    ]
    assert MINE in told[0]
    assert not any(OTHER in text for text in told)
    assert text_of(MINE) in await _use(opening, {"document": "ash.md"}, awaited)
    findings = await made.acheck(QUESTION) if awaited else made.check(QUESTION)
    assert ("birch" in str(findings), "ash.md" in str(findings)) == (False, True)
    made.warm_up()


@pytest.mark.parametrize("name", ["tools", "check", "acheck", "warm_up"])
def test_bound_fallbacks_have_nothing_of_one_chain(name: str) -> None:
    home, ledger = _home(), SelfRouteLedger()
    chain = _configurable(home)
    for made in (
        chain.with_fallbacks([chain]),
        chain.with_fallbacks([chain]).with_config(_only(home, ledger)),
        chain.with_config(_only(home, ledger)).with_fallbacks([chain]),
        chain.with_retry().with_config(_only(home, ledger)),
    ):
        assert not hasattr(made, name)


async def test_bound_listeners_hear_the_tools() -> None:
    heard: list[str] = []
    chain = (
        _configurable(_home())
        .with_listeners(on_end=lambda run: heard.append(run.name))
        .with_config(tags=["a"], run_name="mine")
    )
    chain.tools()[0].invoke({"query": QUESTION})
    assert heard == ["search"]


@every_way
async def test_bound_tools_say_where_a_chosen_part_fails(awaited: bool) -> None:
    def broken() -> Any:
        msg = "postgres://user:secret@host is down"
        raise ConnectionError(msg)

    made = _configurable(_home()).configurable_alternatives(ConfigurableField(id="who"), broken=broken)
    (search, *_) = made.with_config(configurable={"who": "broken"}).tools()
    told = await _use(search, {"query": QUESTION}, awaited)
    assert told.startswith("This failed (ConnectionError).")


@every_way
async def test_bound_tools_obey_the_config_of_a_call(awaited: bool) -> None:
    home = _home()
    search, _, opening = _alternatives(home).with_config(configurable={"who": MINE}).tools()
    theirs = {"configurable": {"who": OTHER}}
    assert OTHER in await _use(search, {"query": QUESTION}, awaited, theirs)
    assert MINE in await _use(search, {"query": QUESTION}, awaited)
    assert OTHER not in await _use(opening, {"document": "birch.md"}, awaited)
    assert text_of(OTHER) in await _use(opening, {"document": "birch.md"}, awaited, theirs)


def test_bound_tools_say_what_is_no_chain() -> None:
    chain = _configurable(_home())
    made: Any = chain.configurable_alternatives(
        ConfigurableField(id="who"), none=RunnableLambda(lambda _: [Document("x")])
    )
    with pytest.raises(ConfigurationError, match=re.escape("the config chooses a RunnableLambda")):
        made.with_config(configurable={"who": "none"}).check()
