"""What holds for LanceDB alone: keys and values are data, filters mean what they mean in a search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from llama_index.core.vector_stores import (
    MetadataFilter,
    MetadataFilters,
)

from langchain_parts import QUESTION
from langchain_selfroute import StoredDocuments
from llamaindex_selfroute.stored.naming import Name
from selfroute.errors import ConfigurationError, DocumentNotFoundError
from selfroute.stores.lancedb import rows_of
from store_cases import Piece, cut, missing, numbered
from store_cases.in_langchain import read
from store_cases.in_llamaindex import VECTOR, filtered, listing_of, node_of
from store_cases.in_milvus_and_lancedb import (
    LanceDBWithoutFiltersCase,
    LangChainLanceDBCase,
    LlamaIndexLanceDBCase,
    open_lancedb,
)

pytestmark = [
    pytest.mark.matrix,
    pytest.mark.skipif(bool(missing(LangChainLanceDBCase, LlamaIndexLanceDBCase)), reason="not installed"),
    pytest.mark.filterwarnings(r"ignore:table_names\(\) is deprecated"),
    pytest.mark.filterwarnings("ignore:create_scalar_index is deprecated"),
]

INJECTION = "x' OR '1'='1"
NORTH = MetadataFilter(key="tenant", value="north")
VALUES: tuple[Any, ...] = ("north", "nor", "o'hara \"\\", INJECTION, 7, 7.5, ["north", "o'hara \"\\"], [7, 8], None)


@pytest.fixture
def case(tmp_path: Path) -> LangChainLanceDBCase:
    return LangChainLanceDBCase(tmp_path)


@pytest.fixture
def index_case(tmp_path: Path) -> LlamaIndexLanceDBCase:
    return LlamaIndexLanceDBCase(tmp_path)


def test_a_value_in_a_dict_is_data(case: LangChainLanceDBCase) -> None:
    case.add([*cut(numbered("ours"), tenant=INJECTION), *cut(numbered("theirs"), tenant="south")])
    stored = StoredDocuments(case.vectorstore)
    for name in ("metadata.tenant", "metadata.`tenant`", "`metadata`.tenant"):
        assert read(stored, "minutes", {name: INJECTION}) == numbered("ours")
    with pytest.raises(DocumentNotFoundError):
        read(stored, "minutes", {"metadata.tenant": INJECTION + "'"})


@pytest.mark.parametrize(
    "name", ["metadata.tenant = 'north' OR metadata.tenant", "", "metadata.", "a b", "1=1 --", 7, "metadata['tenant']"]
)
def test_a_key_in_a_dict_that_names_no_column_is_refused(case: LangChainLanceDBCase, name: Any) -> None:
    with pytest.raises(ConfigurationError, match="does not name a column"):
        StoredDocuments(case.vectorstore, filter={name: "x"})


@pytest.mark.parametrize(
    "condition",
    [
        "metadata.tenant = 'north' OR metadata.tenant = 'west'",
        "metadata.tenant = 'north' -- and nobody else",
        "metadata.tenant IN ('north')",
    ],
)
def test_a_filter_in_sql_stays_whole(case: LangChainLanceDBCase, condition: str) -> None:
    case.add([*cut(numbered("ours")), *cut(numbered("theirs"), tenant="south"), Piece("other", "other")])
    assert read(StoredDocuments(case.vectorstore), "minutes", condition) == numbered("ours")
    for hides_nothing in ("", " ", {}):
        assert read(StoredDocuments(case.vectorstore, filter=hides_nothing), "other", hides_nothing) == "other"


def test_a_key_is_data(tmp_path: Path) -> None:
    for number, key in enumerate(("a b", "qu`ote", "a.b", "o'hara", 'qu"ote', "back\\slash", "Größe", "Source")):
        store = open_lancedb(tmp_path, table_name=f"t{number}")
        about = {key: key, "source": "x", "tenant": "north"}
        store.add_texts([f"of {key}", "of another"], [about, {**about, key: "another"}])
        assert read(StoredDocuments(store, source_key=key), key, key=key) == f"of {key}"


def test_a_source_that_no_chunk_can_have_names_no_document(case: LangChainLanceDBCase) -> None:
    stored = StoredDocuments(case.vectorstore)
    with pytest.raises(DocumentNotFoundError):
        read(stored, "minutes")  # there is no table yet
    case.add(cut(numbered("minutes")))
    for source, key in ((7, "source"), (True, "source"), ("minutes", "nokey"), ("0", "start_index")):
        with pytest.raises(DocumentNotFoundError):
            read(StoredDocuments(case.vectorstore, source_key=key), source, key=key)
    assert read(StoredDocuments(case.vectorstore, source_key="start_index"), 0, key="start_index")
    case.vectorstore._connection.drop_table("chunks")
    with pytest.raises(DocumentNotFoundError):
        read(stored, "minutes")


def test_what_was_written_before_is_read_by_another_object(case: LangChainLanceDBCase) -> None:
    case.add([*cut(numbered("minutes")), *cut(numbered("theirs"), tenant="south")])
    again = open_lancedb(case.folder)
    retriever = case.vectorstore.as_retriever(search_kwargs={"filter": "metadata.tenant = 'north'"})
    given = {"input": QUESTION, "retrieved": [Document("Line", metadata={"source": "minutes"})]}
    (document,) = StoredDocuments(again).limited_to(retriever, {})(given)
    assert document.page_content == numbered("minutes")
    assert not StoredDocuments(again)._store.is_of(open_lancedb(case.folder, table_name="other"))
    assert not StoredDocuments(open_lancedb("memory://"))._store.is_of(open_lancedb("memory://"))


def test_rows_stay_in_order_as_a_table_is_changed_and_compacted(case: LangChainLanceDBCase) -> None:
    lines = [f"line {number}" for number in range(40)]
    for line in lines:
        case.vectorstore.add_texts([line], [{"source": "minutes", "tenant": "north"}])
    table = case.vectorstore.get_table()
    table.delete("text = 'line 20'")
    table.optimize()
    table.create_scalar_index("text")
    assert read(StoredDocuments(case.vectorstore), "minutes").splitlines() == [*lines[:20], *lines[21:]]


class _CutShort:
    """A table that counts one row more than it lists."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def search(self) -> Any:
        return self._table.search()

    def count_rows(self, condition: str) -> int:
        return int(self._table.count_rows(condition)) + 1


def test_a_listing_that_is_cut_short_is_an_error(case: LangChainLanceDBCase) -> None:
    case.add(cut(numbered("minutes")))
    rows = rows_of(_CutShort(case.vectorstore.get_table()), ["metadata.source = 'minutes'"], ["text"])
    with pytest.raises(ConfigurationError, match="the rest of the document is missing"):
        list(rows)


def test_a_filter_of_nodes_lets_through_no_more_than_the_search(index_case: LlamaIndexLanceDBCase) -> None:
    about: list[dict[str, Any]] = [
        {"tenant": "north", "page": 7, "part": 7.5},
        {"tenant": "northern", "page": 8, "part": 1.0},
        {"tenant": "o'hara \"\\", "page": 9, "part": 2.0},
        {"tenant": INJECTION},
        {"page": 7},
    ]
    seen = list(filtered(index_case, about, ("tenant", "page", "part", "nothing"), VALUES))
    wider = [what for what, found, listed in seen if not listed <= found]
    assert not [what for what in wider if what[-1] != INJECTION]  # what the search does with that is its own affair
    assert sum(bool(found) and listed == found for _, found, listed in seen) > 5


def test_the_metadata_in_a_row_decide_what_a_filter_hides(index_case: LlamaIndexLanceDBCase) -> None:
    index_case.add(cut(numbered("minutes", 3)))
    rows = index_case.store.table.search().limit(None).to_list()
    changed = [{**rows[0], "metadata": {**rows[0]["metadata"], "tenant": "south"}}]
    index_case.store.table.merge_insert("id").when_matched_update_all().execute(changed)
    found = listing_of(index_case.index).nodes(Name.of("minutes"), (MetadataFilters(filters=[NORTH]),))
    assert rows[0]["id"] not in {node.node_id for node in found}


def test_a_node_comes_back_as_it_was_added(index_case: LlamaIndexLanceDBCase) -> None:
    both = [{"tenant": "north", "page": 7, "empty": "", "text": "own", "id": "own"}, {"tenant": "south"}]
    nodes = [node_of(Piece(f"text {number}", start=number * 6), embedding=VECTOR) for number in (0, 1)]
    for node, metadata in zip(nodes, both, strict=True):
        node.metadata = metadata
    index_case.index.insert_nodes(nodes)
    found = listing_of(index_case.index).nodes(Name.of("minutes"), ())
    assert [(node.metadata, node.get_content()) for node in found] == [(both[0], "text 0"), (both[1], "text 1")]


def test_rows_with_fewer_keys_than_others(case: LangChainLanceDBCase) -> None:
    case.vectorstore.add_texts(["one "], [{"source": "minutes", "tenant": "north", "page": 1}])
    case.vectorstore.add_texts(["two"], [{"source": "minutes", "tenant": "north"}])
    stored = StoredDocuments(case.vectorstore)
    try:
        text = read(stored, "minutes")
    except ConfigurationError as error:
        if "table.optimize()" not in str(error):
            raise
        case.vectorstore.get_table().optimize()
        text = read(stored, "minutes")
    assert text.split() == ["one", "two"]


def test_filter_that_lancedb_cannot_apply(case: LangChainLanceDBCase) -> None:
    case.add(cut(numbered("minutes")))
    with pytest.raises(ConfigurationError, match=r"metadata\.nokey = 'x'"):
        read(StoredDocuments(case.vectorstore), "minutes", "metadata.nokey = 'x'")


def test_a_search_that_ignores_filters_and_writes_over_source(tmp_path: Path) -> None:
    pytest.importorskip("langchain_lancedb")
    case = LanceDBWithoutFiltersCase(tmp_path)
    assert case.reader().listed(Piece("?")) == 0
    case.vectorstore.add_texts(["tea ", "talk ", "tea "], [{"file": "minutes", "source": "minutes"}] * 3)
    assert {found.metadata["source"] for found in case.vectorstore.similarity_search("?")} == {str(tmp_path)}
    assert case.reader().read(Piece("?")).text.split() == ["tea", "talk", "tea"]
    with pytest.raises(ConfigurationError, match="such as 'file', and pass it as source_key="):
        StoredDocuments(case.vectorstore)
    for fetch in (None, lambda *_: []):
        with pytest.raises(ConfigurationError, match="search of LanceDB ignores filters"):
            StoredDocuments(case.vectorstore, source_key="file", filter={"tenant": "north"}, fetch=fetch)
