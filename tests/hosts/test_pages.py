"""A PDF in a real store, in both frameworks: it is put together page by page, and citations name the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document as LangChainDocument
from langchain_text_splitters import RecursiveCharacterTextSplitter
from llama_index.core.schema import Document as LlamaIndexDocument
from pypdf import PdfReader

import langchain_parts
import langchain_selfroute
import llamaindex_parts
import llamaindex_selfroute
import llamaindex_stores_parts
from both_parts import Text as Passage
from both_parts import everywhere, pipeline
from files_parts import pdf
from langchain_stores import KINDS, a_model, store_with
from selfroute.documents.label import Label
from selfroute.documents.pages import page_at

HEAD = "Haldon harbour board, for members only."
PAGES = [
    f"{HEAD}\nThe crane on the north quay lifts two tonnes. It was built by the Venn brothers.\n{HEAD}",
    f"{HEAD}\nBoats over nine metres pay double. Visitors pay by the day, at the office by the lock.\n{HEAD}",
    f"{HEAD}\nThe pilot is Orla Venn. She comes aboard at the outer buoy, in any weather.\n{HEAD}",
    f"{HEAD}\nIce is sold from six until noon. Rope, paint and lamp oil are sold all day.\n{HEAD}",
]
QUESTION = "Who is the pilot?"
FINAL = ("Orla ", "Venn.")
PILOT = "The pilot is Orla Venn."
WHOLE = {"start": "long_context", "max_documents": None}


@pytest.fixture(scope="module")
def manual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "manual.pdf"
    path.write_bytes(pdf(PAGES))
    return path


def chunks_of(manual: Path, size: int) -> list[LangChainDocument]:
    """As LangChain's loader and its splitter make them."""
    loaders = pytest.importorskip("langchain_community.document_loaders")
    splitter = RecursiveCharacterTextSplitter(chunk_size=size, chunk_overlap=size // 6, add_start_index=True)
    return splitter.split_documents(loaders.PyPDFLoader(str(manual)).load())


def chain_of(kind: str, chunks: Sequence[LangChainDocument], **fields: Any) -> Any:
    model = a_model(final=FINAL)
    return langchain_selfroute.SelfRouteChain.from_vectorstore(
        store_with(kind, chunks), model, **{"k": 3, "citations": True, **fields}
    )


def pages_of(manual: Path, id_: str | None = None) -> list[LlamaIndexDocument]:
    """As LlamaIndex's `PDFReader` makes them: a document of each page, with its label."""
    own = {} if id_ is None else {"id_": id_}
    return [
        LlamaIndexDocument(
            text=page.extract_text(), metadata={"page_label": str(number), "file_name": manual.name}, **own
        )
        for number, page in enumerate(PdfReader(manual).pages, 1)
    ]


@pytest.mark.parametrize("size", [60, 900], ids=["several chunks a page", "one chunk a page"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", langchain_parts.MODES)
async def test_pages_of_a_pdf_in_langchain(manual: Path, mode: str, kind: str, size: int) -> None:
    chunks = chunks_of(manual, size)
    chain = chain_of(kind, chunks[::-1])
    result = await langchain_parts.ask(chain, QUESTION, mode)
    (document,) = result["context"]
    label = document.metadata["selfroute"]
    assert (label["method"], label["chunks"], label["gaps"]) == ("offsets", len(chunks), [])
    assert document.page_content == "\n".join(page.extract_text() for page in PdfReader(manual).pages)
    assert [page for _, page in label["pages"]] == [0, 1, 2, 3]
    assert all(document.page_content.startswith(HEAD, start) for start, _ in label["pages"])
    best = result["citations"][0]
    assert (best["text"], best["page"]) == (PILOT, 2)
    assert "page" not in document.metadata


@pytest.mark.parametrize("kind", KINDS)
def test_check_gives_no_advice_that_was_followed(manual: Path, kind: str) -> None:
    found = next(one for one in chain_of(kind, chunks_of(manual, 60)).check(QUESTION) if one.subject == "document")
    assert (found.ok, found.advice) == (True, "")
    assert "by their offsets, without gaps" in found.message
    lying = [
        LangChainDocument(
            one.page_content, metadata={**one.metadata, "start_index": max(one.metadata["start_index"] - 5, 0)}
        )
        for one in chunks_of(manual, 60)
    ]
    found = next(one for one in chain_of(kind, lying).check(QUESTION) if one.subject == "document")
    assert "by their order" in found.message
    assert found.advice == ""


def test_of_a_trimmed_document_the_pages_are_those_of_the_whole(manual: Path) -> None:
    chunks = chunks_of(manual, 60)
    whole = chain_of("memory", chunks).invoke(QUESTION)["context"][0]
    pilot = [one for one in chunks if PILOT in one.page_content]
    chain = chain_of("memory", chunks, max_context_tokens=45)
    chain = chain.model_copy(update={"retriever": langchain_parts.ListRetriever(passages=pilot)})
    chain = chain.model_copy(update={"documents": [whole]})
    result = chain.invoke(QUESTION)
    label = result["context"][0].metadata["selfroute"]
    assert label["trimmed"] is True
    assert label["read"][0] > label["pages"][1][0]
    assert label["pages"] == whole.metadata["selfroute"]["pages"]
    best = result["citations"][0]
    assert (best["text"], best["page"]) == (PILOT, 2)
    assert page_at(label["pages"], best["start"]) != 2


async def asked_of(store: str, pages: list[LlamaIndexDocument], mode: str, **options: Any) -> tuple[Any, Any]:
    """The engine over the pages, and its response."""
    index = getattr(llamaindex_stores_parts, store)(llamaindex_stores_parts.split(*pages))
    llm = llamaindex_stores_parts.declining().model_copy(update={"final": FINAL})
    streaming = mode in llamaindex_parts.STREAMS
    engine = llamaindex_selfroute.SelfRouteQueryEngine.from_index(
        index, llm=llm, citations=True, streaming=streaming, **options
    )
    return engine, (await llamaindex_parts.ask(engine, QUESTION, mode)).response


@pytest.mark.parametrize("store", ["simple", "chroma"])
@pytest.mark.parametrize("mode", llamaindex_parts.MODES)
async def test_pages_of_a_pdf_in_llamaindex(manual: Path, mode: str, store: str) -> None:
    """All pages have the id of the file."""
    pages = pages_of(manual, "manual")
    engine, response = await asked_of(store, pages, mode, similarity_top_k=2)
    (source,) = response.source_nodes
    label = source.node.metadata["selfroute"]
    assert (label["method"], label["gaps"]) == ("offsets", [])
    assert source.text == "\n".join(page.text for page in pages)
    assert [page for _, page in label["pages"]] == ["1", "2", "3", "4"]
    best = response.metadata["citations"][0]
    assert (best["text"], best["page"]) == (PILOT, "3")
    assert llamaindex_selfroute.citation_nodes(response)[0].node.metadata["page"] == "3"
    assert {one.subject: one.advice for one in engine.check(QUESTION)}["document"] == ""
    _, response = await asked_of("simple", pages_of(manual), mode, similarity_top_k=20, start="long_context")
    best = response.metadata["citations"][0]  # the pages, documents by themselves, are one file again
    assert (len(response.source_nodes), best["text"], best["page"]) == (1, PILOT, "3")


# What a context item's metadata say

TEXT = "Tea was served. Ms Okafor chaired the meeting."
AT = TEXT.index("Ms")
SECTION = {"method": "sections", "start": 1_000, "end": 1_000 + len(TEXT), "document": "May"}


def _label(**label: Any) -> dict[str, Any]:
    return {"selfroute": Label(label, length=len(TEXT))}


METADATA: dict[str, tuple[dict[str, Any], int, Any]] = {
    "none": ({}, AT, None),
    "a page": ({"page": 0}, AT, 0),
    "a label of a page": ({"page_label": "iv"}, AT, "iv"),
    "a whole document": (_label(method="offsets", pages=[[0, 1], [AT, 2], [AT + 1, 3]]), AT, 2),
    "a trimmed document": (_label(read=[900, 999], pages=[[0, 1], [900 + AT, 2]]), AT, 2),
    "a section": (_label(**SECTION, pages=[[0, 1], [1_000 + AT, 7], [1_200, 8]]), 1_000 + AT, 7),
    "a section without pages": (_label(**SECTION), 1_000 + AT, None),
    "a section that somebody else wrote": ({"selfroute": SECTION}, AT, None),
    "pages that somebody else wrote": ({"selfroute": {"pages": [[0, {"x": 1}]], "read": [-7, "x"]}}, AT, None),
}


@everywhere
@pytest.mark.parametrize("name", METADATA)
async def test_pages_of_a_citation(name: str, where: str) -> None:
    metadata, start, page = METADATA[name]
    one = pipeline(where, ("Ms Okafor.",), None, passages=[Passage(TEXT, "May", metadata=metadata)], citations=True)
    best = (await one.ask("Who chaired the meeting?")).citations[0]
    assert (best["document"], best["start"], best["end"]) == (0, start, start + len(TEXT) - AT)
    assert best["text"] == TEXT[AT:]
    assert best.get("page", "no key") == ("no key" if page is None else page)
