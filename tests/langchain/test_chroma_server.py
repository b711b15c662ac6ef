"""Whole documents and walls over HTTP: a real Chroma server on loopback."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import ConfigurableField, RunnableLambda

from langchain_parts import MODES, QUESTION, ask
from langchain_selfroute import SelfRouteChain, StoredDocuments
from langchain_stores import (
    EMBEDDING,
    a_model,
    chain_on,
    chroma_class,
    chunks_of,
    prompts_of,
    read_by,
    text_of,
    watched,
)
from selfroute.errors import ConfigurationError
from selfroute.stores import chroma

every_mode = pytest.mark.parametrize("mode", MODES)
OWNERS = ("Ash", "Birch")


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A Chroma server on loopback."""
    chromadb = pytest.importorskip("chromadb")
    program = Path(sys.executable).parent / "chroma"
    if not program.exists():
        pytest.skip("the command chroma is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("chroma")
    command = [str(program), "run", "--path", str(folder), "--host", "127.0.0.1", "--port", str(port)]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as server:  # noqa: S603
        try:
            for _ in range(300):
                try:
                    chromadb.HttpClient("127.0.0.1", port).heartbeat()
                    break
                except (ValueError, OSError):
                    assert server.poll() is None, (folder / "log").read_text()
                    time.sleep(0.1)
            else:
                pytest.fail((folder / "log").read_text())
            yield port
        finally:
            server.terminate()
            try:
                server.wait(30)
            except subprocess.TimeoutExpired:
                server.kill()


def _over_http(port: int, chunks: list[Document], *, of: Any = None) -> Any:
    client = pytest.importorskip("chromadb").HttpClient("127.0.0.1", port)
    store = (of or chroma_class())(f"c{uuid.uuid4().hex}", EMBEDDING, client=client)
    store.add_documents(chunks)
    return store


@pytest.fixture(scope="module")
def shared(port: int) -> Any:
    """Two tenants with a handbook each."""
    return _over_http(port, [chunk for owner in OWNERS for chunk in _chunks(owner)])


def _chunks(owner: str) -> list[Document]:
    return chunks_of(text_of(owner), size=120, overlap=60, source="handbook", tenant=owner)


@every_mode
async def test_documents_come_back_word_for_word(port: int, mode: str) -> None:
    texts = {f"{owner}.md": text_of(owner) for owner in OWNERS}
    chunks = [chunk for source, text in texts.items() for chunk in chunks_of(text, source=source, shelf="north")]
    chain = SelfRouteChain.from_vectorstore(_over_http(port, chunks), a_model(), k=18)
    result = await ask(chain, QUESTION, mode)
    order = list(dict.fromkeys(passage.metadata["source"] for passage in result["retrieved"]))
    assert {document.metadata["source"]: document.page_content for document in result["context"]} == texts
    assert [document.metadata["source"] for document in result["context"]] == order
    label = {"method": "offsets", "chunks": 9, "gaps": [], "trimmed": False}
    assert result["context"][0].metadata == {"source": order[0], "shelf": "north", "selfroute": label}


@every_mode
@pytest.mark.parametrize("owner", OWNERS)
async def test_the_wall_holds(shared: Any, owner: str, mode: str) -> None:
    (other,) = set(OWNERS) - {owner}
    shapes: list[Any] = [
        {"tenant": owner},
        {"$and": [{"tenant": {"$in": [owner, "Cedar"]}}, {"$or": [{"source": "handbook"}, {"source": "x"}]}]},
    ]
    for own in shapes:
        retriever = shared.as_retriever(search_kwargs={"filter": own})
        hidden = RunnableLambda(lambda given, own=own: shared.similarity_search(given["input"], filter=own))
        chains = [
            SelfRouteChain.from_vectorstore(shared, a_model(), filter=own),
            chain_on(shared, StoredDocuments(shared), retriever.with_retry()),
            chain_on(shared, StoredDocuments(shared, filter=own), hidden),
        ]
        for chain in chains:
            (document,) = await read_by(chain, mode)
            assert document.page_content == text_of(owner)
            assert other not in prompts_of(chain.llm)
        unseen = chain_on(shared, StoredDocuments(shared), hidden)
        with pytest.raises(ConfigurationError, match="in tenant"):
            await ask(unseen, QUESTION, mode)
        assert other not in prompts_of(unseen.llm)


@pytest.mark.parametrize("way", ["threads", "tasks"])
async def test_tenants_ask_at_once(shared: Any, way: str) -> None:
    retriever = shared.as_retriever().configurable_fields(search_kwargs=ConfigurableField(id="search"))
    chain = chain_on(shared, StoredDocuments(shared), retriever)
    tenants = [*OWNERS] * 4
    configs: list[Any] = [{"configurable": {"search": {"filter": {"tenant": tenant}}}} for tenant in tenants]
    if way == "threads":
        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(lambda config: chain.invoke(QUESTION, config)["context"], configs))
    else:
        results = await asyncio.gather(*(read_by(chain, "ainvoke", config) for config in configs))
    assert [[document.page_content for document in read] for read in results] == [[text_of(who)] for who in tenants]


@every_mode
async def test_a_second_question_reads_ids_only_and_pages_are_small(
    port: int, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chroma, "PAGE", 3)
    seen: list[Any] = []
    store = _over_http(port, chunks_of(text_of("Ash"), source="handbook"), of=watched(seen))
    chain = SelfRouteChain.from_vectorstore(store, a_model())
    for _ in range(2):
        (document,) = await read_by(chain, mode)
        assert document.page_content == text_of("Ash")
    asked = [(bool(options["include"]), options.get("limit"), options.get("offset")) for options in seen]
    assert asked == [*[(True, 3, at) for at in (0, 3, 6, 9)], (False, None, None)]
    store.add_documents(chunks_of(text_of("Ash", 10), source="handbook")[9:])
    assert (await read_by(chain, mode))[0].page_content == text_of("Ash", 10)


@every_mode
async def test_two_clients_of_one_collection_are_one_store(port: int, shared: Any, mode: str) -> None:
    client = pytest.importorskip("chromadb").HttpClient("127.0.0.1", port)
    same = chroma_class()(shared._collection.name, EMBEDDING, client=client)
    retriever = same.as_retriever(search_kwargs={"filter": {"tenant": "Ash"}})
    (document,) = await read_by(chain_on(same, StoredDocuments(shared), retriever), mode)
    assert document.page_content == text_of("Ash")
