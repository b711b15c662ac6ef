"""Filters of nodes that a store is given in a language of its own are joined as they are nested."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.vector_stores import FilterCondition, MetadataFilter, MetadataFilters

from llamaindex_selfroute.stored.naming import Name
from selfroute.errors import ConfigurationError
from store_cases import Piece, missing
from store_cases.in_llamaindex import LlamaIndexCase, listing_of
from store_cases.in_milvus_and_lancedb import LlamaIndexLanceDBCase, LlamaIndexMilvusCase
from store_cases.in_postgres import PostgresCase

TENANTS = ("north", "south", "west", "x' OR '1'='1", 'a"\\')


@pytest.fixture(params=[LlamaIndexMilvusCase, LlamaIndexLanceDBCase, PostgresCase], ids=lambda kind: kind.name)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LlamaIndexCase]:
    if absent := missing(request.param):
        pytest.skip(f"{', '.join(absent)} is not installed")
    opened: LlamaIndexCase = request.param(tmp_path)
    yield opened
    opened.close()


@pytest.mark.matrix
@pytest.mark.filterwarnings(r"ignore:table_names\(\) is deprecated")
@pytest.mark.filterwarnings("ignore:create_scalar_index is deprecated")
@pytest.mark.parametrize("odd", TENANTS[3:])
def test_filters_of_nodes_are_joined_as_they_are_nested(case: LlamaIndexCase, odd: str) -> None:
    case.add([Piece(f"{tenant} ", "minutes", tenant, at * 20) for at, tenant in enumerate(TENANTS)])
    listing = listing_of(case.index)

    def tenants(filters: list[Any], condition: FilterCondition) -> list[str]:
        found = listing.nodes(Name.of("minutes"), (MetadataFilters(filters=filters, condition=condition),))
        return sorted(node.metadata["tenant"] for node in found)

    north, south, strange = (MetadataFilter(key="tenant", value=tenant) for tenant in ("north", "south", odd))
    either = MetadataFilters(filters=[north, south, strange], condition=FilterCondition.OR)
    assert tenants([either], FilterCondition.AND) == sorted(["north", "south", odd])
    assert tenants([either, south], FilterCondition.AND) == ["south"]
    assert tenants([MetadataFilters(filters=[]), south], FilterCondition.AND) == ["south"]
    with pytest.raises(ConfigurationError, match="cannot combine"):
        tenants([south], FilterCondition.NOT)
