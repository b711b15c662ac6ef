"""Ids and filters are data: no store that builds queries out of text is sent what it could take for a query."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core.schema import BaseNode, Document, NodeWithScore, QueryBundle
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilters
from pydantic import PrivateAttr

from llamaindex_selfroute import StoredDocuments
from llamaindex_selfroute.stored.limits import NodeLimits
from llamaindex_stores_parts import Shelf, only, over, split
from selfroute.errors import ConfigurationError


class TextualStore(Shelf):
    """A store that writes filters into the text of SQL, as integrations do, and runs what comes out."""

    _database: Any = PrivateAttr(default_factory=lambda: sqlite3.connect(":memory:"))

    def add(self, nodes: Sequence[BaseNode], **options: Any) -> list[str]:
        self._database.execute("CREATE TABLE IF NOT EXISTS nodes (id, ref_doc_id, tenant)")
        for node in nodes:
            row = (node.node_id, node.ref_doc_id, node.metadata.get("tenant"))
            self._database.execute("INSERT INTO nodes VALUES (?, ?, ?)", row)
        return super().add(nodes, **options)

    def get_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None) -> list[BaseNode]:
        where = " AND ".join(f"{one.key} = '{one.value}'" for one in filters.filters)  # type: ignore[union-attr]
        found: list[BaseNode] = []
        for statement in f"SELECT id FROM nodes WHERE {where}".split(";"):  # noqa: S608
            found += [self._held[id_][0].model_copy() for (id_, *_) in self._database.execute(statement)]
        return found

    @property
    def tables(self) -> set[str]:
        """The names of the tables."""
        return {name for (name,) in self._database.execute("SELECT name FROM sqlite_master")}


HOSTILE = (
    "x'; CREATE TABLE pwned (a int); SELECT id FROM nodes WHERE '' = '",
    "' OR '1'='1",
    "' OR '1'='1' OR 'a'='",
    "' or tenant != '' or tenant == '",
    '" or tenant != "" or tenant == "',
    "o'hara",
    "back\\slash",
    "100%",
    "line\nbreak",
    "nul\0",
    "{braces}",
    "$1",
    "`tick`",
    "(a, b)",
    "\u02bcmodifier",
    "\u2019typographic",
    "\uff07wide",
    "semi;colon",
    "x@y",
    "a|b",
    "a*",
    "a?",
)
HARMLESS = ("7f9a1b2c-0000-4a3b", "/data/minutes 2024/part_1.txt", "https://host/a.b", "Müller", "議事録", "42", "")


def _index(*ids: str) -> Any:
    nodes = split(
        *(
            Document(text=f"The crane of {one}.", id_=id_, metadata={"tenant": one})
            for id_ in ids
            for one in ("north", "south")
        )
    )
    return over(TextualStore(), nodes)


def _read(index: Any, id_: str, filters: MetadataFilters | None) -> list[str]:
    nodes = [node for node, _ in index.vector_store._held.values() if node.ref_doc_id == id_]
    found = [NodeWithScore(node=node) for node in nodes if node.metadata["tenant"] == "north"]
    stored = StoredDocuments(index, filters=filters or MetadataFilters(filters=[]))
    return [document.get_content() for document in stored(found, QueryBundle("?"))]


@pytest.mark.parametrize("id_", HOSTILE)
def test_id_that_may_be_a_query_is_refused(id_: str) -> None:
    index = _index(id_)
    with pytest.raises(ConfigurationError, match=r"fetch=") as refused:
        _read(index, id_, only("tenant", "north"))
    assert "\n" not in str(refused.value)
    assert index.vector_store.tables == {"nodes"}


@pytest.mark.parametrize(
    "filters",
    [
        *(only("tenant", value) for value in HOSTILE),
        only("tenant' = '' OR '1", "north"),
        only("tenant", ["north", "x' OR '1'='1"], FilterOperator.IN),
        MetadataFilters(filters=[only("tenant", "x' --")], condition=FilterCondition.OR),
    ],
    ids=repr,
)
def test_filter_that_may_be_a_query_is_refused(filters: MetadataFilters) -> None:
    index = _index("minutes")
    with pytest.raises(ConfigurationError, match="fetch="):
        _read(index, "minutes", filters)
    assert index.vector_store.tables == {"nodes"}


@pytest.mark.parametrize("id_", [id_ for id_ in HARMLESS if id_])
def test_ids_as_people_have_them_are_read(id_: str) -> None:
    assert _read(_index(id_), id_, only("tenant", "north")) == ["The crane of north."]


class Alike(str):
    """Texts that all have one hash, as any two may have."""

    __slots__ = ()

    def __hash__(self) -> int:
        return 1


def test_limits_are_told_apart_by_what_they_are_not_by_a_hash() -> None:
    def limits(value: Any, of: str) -> NodeLimits:
        ids = frozenset([Alike(of)])
        return NodeLimits(filters=(only("score", value),), documents=ids, nodes=ids)

    values: list[Any] = [1, 1.0, "1", float("nan"), float("inf"), float("-inf"), None, "None", ["a", "b"], ["a, b"]]
    made = [limits(value, of) for value in values for of in ("a", "b")]
    assert len({one.identity for one in made}) == len(made)
    assert made[0].identity == limits(1, "a").identity
