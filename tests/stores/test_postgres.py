"""What holds for Postgres alone: nothing in data is run, filters mean what they mean in a search, async engines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextvars import ContextVar, copy_context
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)

from langchain_selfroute import StoredDocuments
from llamaindex_selfroute import StoredDocuments as IndexDocuments
from llamaindex_selfroute.stored.naming import Name
from selfroute.errors import ConfigurationError, DocumentNotFoundError
from store_cases import Case, Piece, cut, in_postgres, numbered, text_of
from store_cases.in_langchain import SIZE, HashEmbeddings, read
from store_cases.in_llamaindex import EMBEDDING, VECTOR
from store_cases.in_postgres import PGVectorCase, PGVectorStoreCase, PGVectorStoreColumnsCase, PostgresCase

langchain_postgres = pytest.importorskip("langchain_postgres")
pytest.importorskip("llama_index.vector_stores.postgres")
pytest.importorskip(in_postgres.SERVER)
async_stores = pytest.importorskip("langchain_postgres.v2.async_vectorstore")
sqlalchemy = pytest.importorskip("sqlalchemy")

INJECTION = "x'; CREATE TABLE pwned(a int); COMMIT; --"
KEYS = ("file-name", "a b", "a.b", "q\"uo'te", "100%s%(x)s", ":name", "$eq", "Quelle – 会議", INJECTION)
NORTH = MetadataFilter(key="tenant", value="north")

a_langchain_case = pytest.mark.parametrize("kind", [PGVectorCase, PGVectorStoreCase], ids=lambda kind: kind.name)
a_case = pytest.mark.parametrize("kind", [PGVectorCase, PGVectorStoreCase, PostgresCase], ids=lambda kind: kind.name)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[type[Case]], Any]]:
    """Open stores, and close them in the end."""
    cases: list[Case] = []

    def opened(kind: type[Case]) -> Case:
        cases.append(kind(tmp_path))
        return cases[-1]

    yield opened
    for case in cases:
        case.close()


def _async_engine(driver: str = "psycopg") -> Any:
    from sqlalchemy.ext.asyncio import create_async_engine  # noqa: PLC0415 - may not be installed

    return create_async_engine(in_postgres.address(driver), poolclass=sqlalchemy.pool.NullPool)


@a_case
def test_postgres_runs_nothing_in_data(opened: Callable[[type[Case]], Any], kind: type[Case]) -> None:
    case = opened(kind)
    pieces = cut(numbered("minutes"), source=INJECTION, tenant=INJECTION)
    case.add([*pieces, *cut(numbered("others"), source="others", tenant="north")])
    for condition in case.filters(INJECTION).values():
        assert case.reader(declared=condition).read(pieces[0]).text == text_of(pieces)
    assert case.reader().read(pieces[0]).text == text_of(pieces)
    assert "pwned" not in in_postgres.psql("SELECT tablename FROM pg_tables;")


@a_langchain_case
def test_postgres_keys_are_data(opened: Callable[[type[Case]], Any], kind: type[Case]) -> None:
    vectorstore = opened(kind).vectorstore
    vectorstore.add_documents([Document(f"Line {key}.", metadata={key: "minutes"}) for key in KEYS])
    for key in KEYS:
        assert read(StoredDocuments(vectorstore, source_key=key, filter={}), "minutes", key=key) == f"Line {key}."
    assert "pwned" not in in_postgres.psql("SELECT tablename FROM pg_tables;")


@a_langchain_case
def test_postgres_tells_numbers_from_digits(opened: Callable[[type[Case]], Any], kind: type[Case]) -> None:
    vectorstore = opened(kind).vectorstore
    sources = [each for number in (7, 7.5, 8.0, -1.5e-7, 1e22, 10**20, True) for each in (number, str(number))]
    vectorstore.add_documents([Document(repr(source), metadata={"source": source}) for source in sources])
    stored = StoredDocuments(vectorstore, filter={})
    found = vectorstore.similarity_search("", k=100)
    assert len(found) == len(sources)
    for document in found:
        assert read(stored, document.metadata["source"]) == document.page_content


LANGCHAIN_FILTERS: tuple[dict[str, Any], ...] = (
    *({"tenant": {operator: "north"}} for operator in ("$eq", "$ne", "$lt", "$lte", "$gt", "$gte", "$like", "$ilike")),
    {"tenant": "o'hara"},
    {"tenant": "no_th"},
    {"tenant": {"$like": "no_th"}},
    {"tenant": {"$like": "%h"}},
    {"tenant": {"$in": ["north", "o'hara"]}},
    {"tenant": {"$nin": ["north", "south"]}},
    {"tenant": {"$exists": True}},
    {"tenant": {"$exists": False}},
    {"level": 7},
    {"level": {"$gte": 7}},
    {"level": {"$between": (1, 7)}},
    {"level": 7, "tenant": "north"},
    {"$not": {"tenant": "north"}},
    {"$not": [{"tenant": "north"}, {"tenant": "south"}]},
    {"$and": [{"tenant": "north"}, {"$or": [{"level": 7}, {"level": 1}]}]},
    {"$or": [{"tenant": "north"}, {"$not": {"level": {"$lt": 5}}}]},
    {"$AND": [{"tenant": "north"}]},
)
HELD: tuple[dict[str, Any], ...] = (
    {"tenant": "north", "level": 7},
    {"tenant": "north", "level": 1},
    {"tenant": "south", "level": 9},
    {"tenant": "NORTH", "level": 7},
    {"tenant": "no_th", "level": 0},
    {"tenant": "o'hara", "level": 7},
    {"tenant": "", "level": 7},
    {"tenant": None, "level": 7},
    {"level": 7},
    {"tenant": "7"},
)


@a_langchain_case
def test_postgres_filters_as_its_search(opened: Callable[[type[Case]], Any], kind: type[Case]) -> None:
    vectorstore = opened(kind).vectorstore
    vectorstore.add_documents(
        [
            Document(f"Row {n}.", metadata={"source": "minutes", "start_index": 10 * n, **held})
            for n, held in enumerate(HELD)
        ]
    )
    seen = set()
    for condition in LANGCHAIN_FILTERS:
        try:
            found = vectorstore.similarity_search("", k=100, filter=condition)
        except Exception:  # noqa: BLE001, S112 - such as an operator that only the other one has
            continue
        texts = {document.page_content for document in found}
        listed = StoredDocuments(vectorstore)._store.chunks("source", "minutes", [condition])
        assert {chunk.text for chunk in listed} == texts, condition
        seen.add(frozenset(texts))
    assert len(seen) > 10


def _of(*filters: Any, condition: FilterCondition = FilterCondition.AND) -> MetadataFilters:
    return MetadataFilters(filters=list(filters), condition=condition)


def _one(value: Any, operator: FilterOperator = FilterOperator.EQ, key: str = "tenant") -> MetadataFilter:
    return MetadataFilter(key=key, value=value, operator=operator)


LLAMAINDEX_FILTERS: tuple[MetadataFilters, ...] = (
    *(
        _of(_one("north", operator))
        for operator in FilterOperator
        if operator not in (FilterOperator.IN, FilterOperator.NIN, FilterOperator.ANY, FilterOperator.ALL)
    ),
    _of(_one(["north", "no_th"], FilterOperator.IN)),
    _of(_one(["north", "south"], FilterOperator.NIN)),
    _of(_one("no_th", FilterOperator.TEXT_MATCH)),
    _of(_one("7", key="level")),
    *(_of(_one(7, operator, "level")) for operator in (FilterOperator.EQ, FilterOperator.NE, FilterOperator.GT)),
    _of(_one("a", FilterOperator.CONTAINS, "tags")),
    _of(_one(["a", "c"], FilterOperator.ANY, "tags")),
    _of(_one(["a", "b"], FilterOperator.ALL, "tags")),
    _of(_one("minutes", key="ref_doc_id")),
    _of(NORTH, _one(7, key="level")),
    _of(NORTH, _one("south"), condition=FilterCondition.OR),
    _of(NORTH, _of(_one(7, key="level"), _one(1, key="level"), condition=FilterCondition.OR)),
    _of(NORTH, _of()),
    _of(NORTH, _of(), condition=FilterCondition.OR),
    _of(_of(), _of(_of())),
)
TAGGED = (*HELD[:-1], {"tenant": "north", "tags": ["a", "b"]}, {"tenant": "south", "tags": "a,b"}, {"tags": ["c"]})


def test_postgres_filters_nodes_as_its_search(
    opened: Callable[[type[Case]], Any],
) -> None:
    store = opened(PostgresCase).store
    store.add([_node(f"Row {n}.", held) for n, held in enumerate(TAGGED)])
    listed, seen = IndexDocuments(VectorStoreIndex.from_vector_store(store, embed_model=EMBEDDING))._store, set()
    for filters in LLAMAINDEX_FILTERS:
        query = VectorStoreQuery(query_embedding=VECTOR, similarity_top_k=100, filters=filters)
        try:
            texts = {node.get_content() for node in store.query(query).nodes}
        except Exception:  # noqa: BLE001, S112 - no search takes these
            continue
        assert {node.get_content() for node in listed.nodes(Name.of("minutes"), [filters])} == texts, filters
        assert len(listed.ids(Name.of("minutes"), [filters])) == len(texts)
        seen.add(frozenset(texts))
    assert len(seen) > 12


def _node(text: str, metadata: dict[str, Any], document: str = "minutes") -> TextNode:
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)}
    return TextNode(text=text, metadata=metadata, embedding=VECTOR, relationships=source)


NORTH_ONLY = {"tenant": "north"}
EMPTY_PARTS: tuple[Any, ...] = (
    {"$and": [{}, NORTH_ONLY]},
    {"$and": [{"$or": [{}, {"tenant": "south"}]}, NORTH_ONLY]},
    {"$and": [{"$and": [{}, NORTH_ONLY]}, {"$and": [{}]}]},
)
REFUSED: tuple[Any, ...] = (
    {"tenant": {"$near": "north"}},
    {"$or": [None, {"tenant": "north"}]},
    {1: "north"},
    {"$and": {"tenant": "north"}},
    {"tenant": {"$gt": "a", "$lt": "z"}},
)


@a_langchain_case
def test_postgres_filters_with_empty_parts_or_refused(opened: Callable[[type[Case]], Any], kind: type[Case]) -> None:
    case = opened(kind)
    pieces = cut(numbered("ours"))
    case.add([*pieces, *cut(numbered("theirs"), tenant="south")])
    for condition in EMPTY_PARTS:
        assert case.reader(declared=condition).read(pieces[0]).text == text_of(pieces), condition
    for condition in REFUSED:
        with pytest.raises(ConfigurationError, match="does not take the filter"):
            case.reader(declared=condition).read(pieces[0])


def test_postgres_nodes_refuse_filters_and_are_read_once(opened: Callable[[type[Case]], Any]) -> None:
    case, node = opened(PostgresCase), _node("Line.", {})
    for _ in range(2):
        case.store.add([node])
    listed = case.reader().stored._store
    assert (
        [each.node_id for each in listed.nodes(Name.of("minutes"), ())]
        == listed.ids(Name.of("minutes"), ())
        == [node.node_id]
    )
    for filters in (_of(NORTH, condition=FilterCondition.NOT), _of(_one(None)), _of(_one(7, FilterOperator.IN))):
        with pytest.raises(ConfigurationError, match="PGVectorStore cannot"):
            case.reader(declared=filters).read(Piece("Line."))


def test_postgres_after_deleting_a_collection(opened: Callable[[type[Case]], Any]) -> None:
    case, other = opened(PGVectorCase), opened(PGVectorCase)
    for each in (case, other):
        each.add([piece := Piece("Line.")])
    assert case.reader().read(piece).text == "Line."
    case.vectorstore.delete_collection()
    with pytest.raises(DocumentNotFoundError):
        case.reader().read(piece)
    assert other.reader().read(piece).text == "Line."


@a_case
def test_postgres_on_other_connections_is_another(opened: Callable[[type[Case]], Any], kind: type[Case]) -> None:
    """Connections to one address may see different schemas."""
    case, same = opened(kind), opened(kind)
    pieces = [Piece("Line 1.", tenant="north"), Piece("Line 2.", tenant="south")]
    case.add(pieces)
    if kind is PostgresCase:
        same.index._vector_store = case.store.model_copy()
    elif kind is PGVectorCase:
        same.vectorstore.collection_name = case.vectorstore.collection_name
    else:
        same.vectorstore = type(case.vectorstore).create_sync(
            same._engine, HashEmbeddings(), case.vectorstore.get_table_name()
        )
    elsewhere = case.reader()
    object.__setattr__(elsewhere, "retriever", same.reader().retriever)
    if kind is PostgresCase:
        same.index._vector_store._engine = None
    with pytest.raises(ConfigurationError, match="hidden"):
        elsewhere.read(pieces[0])


def test_postgres_function_for_queries_may_hide_more(opened: Callable[[type[Case]], Any]) -> None:
    case = opened(PostgresCase)
    pieces = [Piece("Line 1.", tenant="north"), Piece("Line 2.", tenant="south")]
    case.add(pieces)
    assert case.reader().read(pieces[0]).text.split("\n") == ["Line 1.", "Line 2."]
    case.store._customize_query_fn = lambda query, table, **_: query.where(table.metadata_["tenant"].astext == "north")
    with pytest.raises(ConfigurationError, match="hidden"):
        case.reader().read(pieces[0])


def test_postgres_metadata_in_columns(opened: Callable[[type[Case]], Any]) -> None:
    engine, table = opened(PGVectorStoreCase)._engine, in_postgres.a_name()
    kinds = {"number": "BIGINT", "Odd Name": "VARCHAR(9)", "select": "TEXT"}
    columns = [langchain_postgres.Column(*each) for each in kinds.items()]
    engine.init_vectorstore_table(table, SIZE, metadata_columns=columns, store_metadata=False)
    in_postgres.psql(f"INSERT INTO {table} VALUES (gen_random_uuid(), 'Line.', '[1,1,1,1,1,1,1,1]', 7, 'a', 'b');")  # noqa: S608
    made = langchain_postgres.PGVectorStore.create_sync
    vectorstore = made(engine, HashEmbeddings(), table, metadata_columns=list(kinds))
    for key, source in zip(kinds, (7, "a", "b"), strict=True):
        assert read(StoredDocuments(vectorstore, source_key=key, filter={}), source, key=key) == "Line."
    with pytest.raises(ConfigurationError, match="no column 'source'"):
        read(StoredDocuments(vectorstore, filter={}), "a")
    vectorstore = opened(PGVectorStoreColumnsCase).vectorstore
    metadata = {"source": "minutes", "tenant": None, "start_index": 0, "page": 3}
    vectorstore.add_documents([Document("Line.", metadata=metadata)])
    (found,) = vectorstore.similarity_search("Line.", k=1)
    (chunk,) = StoredDocuments(vectorstore)._store.chunks("source", "minutes", [])
    assert (chunk.id, chunk.text, dict(chunk.metadata)) == (found.id, found.page_content, found.metadata)


@pytest.mark.parametrize("within_loop", [False, True], ids=["no loop", "in a loop"])
def test_postgres_async_store(opened: Callable[[type[Case]], Any], within_loop: bool) -> None:
    case = opened(PGVectorCase)
    case.add(pieces := cut(numbered("minutes")))
    other = case.in_async_mode()
    stored = StoredDocuments(other, filter={"tenant": "north"})
    with pytest.raises(ConfigurationError, match="acreate_collection"):
        read(stored, "minutes")

    async def connect() -> str:
        await other.acreate_collection()
        return read(stored, "minutes") if within_loop else ""

    found = asyncio.run(connect())
    assert (found or read(stored, "minutes")) == text_of(pieces)


@pytest.mark.parametrize("kind", ["no loop", "this loop", "async store"])
def test_postgres_engine_made_from_another(opened: Callable[[type[Case]], Any], kind: str) -> None:
    case = opened(PGVectorStoreCase)
    case.add(pieces := cut(numbered("minutes")))

    async def found() -> str:
        loop = asyncio.get_running_loop() if kind == "this loop" else None
        engine = langchain_postgres.PGEngine.from_engine(_async_engine("asyncpg"), loop)
        store = async_stores.AsyncPGVectorStore if kind == "async store" else langchain_postgres.PGVectorStore
        table = case.vectorstore.get_table_name()
        if kind == "this loop":
            made = await asyncio.to_thread(lambda: store.create_sync(engine, HashEmbeddings(), table))
            read_in_thread = await asyncio.to_thread(read, StoredDocuments(made, filter={}), "minutes")
            assert read_in_thread == text_of(pieces)
        else:
            made = await store.create(engine, HashEmbeddings(), table)
        return read(StoredDocuments(made, filter={}), "minutes")

    assert asyncio.run(found()) == text_of(pieces)


SCHEMA = ContextVar("schema", default="public")  # as a service keeps the tenant of the request that it works on


def _choose_at_connect(connection: Any, _record: Any) -> None:
    connection.cursor().execute(f"SET search_path = {SCHEMA.get()}, public")
    connection.commit()


def _choose_at_begin(connection: Any) -> None:
    connection.exec_driver_sql(f"SET LOCAL search_path = {SCHEMA.get()}, public")


@pytest.mark.parametrize(
    ("event", "listener"), [("connect", _choose_at_connect), ("begin", _choose_at_begin)], ids=["connect", "begin"]
)
def test_postgres_listeners_choose_the_schema(
    opened: Callable[[type[Case]], Any], event: str, listener: Callable[..., None]
) -> None:
    case, schema = opened(PGVectorCase), in_postgres.a_name()
    case.add([Piece("In public.")])
    tables = ("langchain_pg_collection", "langchain_pg_embedding")
    like = (f"CREATE TABLE {schema}.{table} (LIKE public.{table} INCLUDING ALL);" for table in tables)
    in_postgres.psql(f"CREATE SCHEMA {schema}; {' '.join(like)}")
    engine = _async_engine()
    sqlalchemy.event.listen(engine.sync_engine, event, listener)
    name = case.vectorstore.collection_name
    made = langchain_postgres.PGVector
    there = made(HashEmbeddings(), connection=engine, collection_name=name, create_extension=False)

    async def fill() -> None:
        await there.acreate_collection()
        await there.aadd_documents([Document("In the other schema.", metadata={"source": "minutes"})])

    def of_a_tenant() -> str:
        SCHEMA.set(schema)
        asyncio.run(fill())
        return read(StoredDocuments(there, filter={}), "minutes")

    assert copy_context().run(of_a_tenant) == "In the other schema."
    assert read(StoredDocuments(there, filter={}), "minutes") == "In public."
    assert read(StoredDocuments(case.vectorstore, filter={}), "minutes") == "In public."


CHANGED = (
    (PGVectorCase, "_create_filter_clause", "langchain-postgres 0"),
    (PGVectorCase, "_make_sync_session", "langchain-postgres 0"),
    (PGVectorStoreCase, "_PGVectorStore__vs", "langchain-postgres 0"),
    (PostgresCase, "_initialize", "llama-index-vector-stores-postgres 0"),
)


@pytest.mark.parametrize(("kind", "part", "versions"), CHANGED, ids=lambda value: getattr(value, "name", None))
def test_postgres_names_supported_versions(
    opened: Callable[[type[Case]], Any], monkeypatch: pytest.MonkeyPatch, kind: type[Case], part: str, versions: str
) -> None:
    case = opened(kind)
    case.add([piece := Piece("Line.")])
    reader = case.reader(declared=next(iter(case.filters("north").values())))
    store = case.store if kind is PostgresCase else case.vectorstore
    monkeypatch.delattr(store if part in vars(store) else type(store), part)
    with pytest.raises(ConfigurationError, match=versions):
        reader.read(piece)
