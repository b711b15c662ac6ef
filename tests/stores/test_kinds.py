"""A kind of store is known by the package and the name of its class, also where a user derives from that."""

from __future__ import annotations

from typing import Any

import pytest

from langchain_selfroute.stored import kinds as in_langchain
from llamaindex_selfroute.stored import kinds as in_llamaindex
from selfroute.stores.listing import Wrapped, known_store

KINDS = [(*name, module._KINDS) for module in (in_langchain, in_llamaindex) for name in module._KINDS]
every_kind = pytest.mark.parametrize(("package", "name", "kinds"), KINDS, ids=lambda value: str(value)[:60])


def of(package: str, name: str, base: type = object) -> type:
    return type(name, (base,), {"__module__": package})


@every_kind
@pytest.mark.parametrize("module", ["", ".base"])
def test_kind_of_a_class_and_those_derived_from_it(package: str, name: str, kinds: dict[Any, Any], module: str) -> None:
    known = of(package + module, name)
    for kind in (known, of("app", "Theirs", known)):
        found = known_store(kind(), kinds)
        assert isinstance(found, Wrapped)
        assert (type(found), found.base) == (kinds[package, name], known)


@every_kind
@pytest.mark.parametrize("elsewhere", ["app.stores", "{}_aws.stores", "my.{}", "{}s"])
def test_kind_of_no_namesake(package: str, name: str, kinds: dict[Any, Any], elsewhere: str) -> None:
    assert known_store(of(elsewhere.format(package), name)(), kinds) is None
    assert known_store(of(package, f"My{name}")(), kinds) is None
