"""Stores as people have them: files indexed again or twice, names that two files share, headings in metadata.

What is read is one text, and `check()` says in words what it has seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_text_splitters import RecursiveCharacterTextSplitter
from llama_index.core import Document as LlamaIndexDocument
from llama_index.core.node_parser import TokenTextSplitter
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

from hosts_documents import HOSTS
from langchain_stores import a_model
from loader_rows import Row
from loaders import ORDERED, pipeline
from scenarios import FINAL
from selfroute.errors import ConfigurationError

QUESTION = "How many crates of rope does the crane take, and what does the member pay a year for boat 7 at berth 21?"
CLAUSES = [
    f"Clause {n}. The member keeps boat {n} at berth {n * 3} and pays {n * 11} crowns a year." for n in range(30)
]
ASKED = "Clause 30. The crane takes {} crates of rope at once."
OLD, NEW = ("\n\n".join([*CLAUSES, ASKED.format(crates)]) for crates in ("thirty", "forty-four"))
OTHER = "\n\n".join(f"Recipe {n}. Take {n} eggs and {n * 20} g of flour, and bake it." for n in range(40))


def chunks_of(host: str, text: str, name: str = "rules", **more: Any) -> list[Any]:
    if host == "langchain":
        splitter = RecursiveCharacterTextSplitter(chunk_size=300, chunk_overlap=60, add_start_index=True)
        return splitter.split_documents([Document(text, metadata={"source": name, **more})])
    document = LlamaIndexDocument(id_=name, text=text, metadata=more)
    return TokenTextSplitter(chunk_size=90, chunk_overlap=15).get_nodes_from_documents([document])


def run(host: str, chunks: Sequence[Any], **options: Any) -> Any:
    name = {"langchain": "LangChain", "llamaindex": "LlamaIndex"}[host]
    return pipeline(Row(name, "", ""), ORDERED, chunks, **options)


def texts(host: str, made: Any) -> list[str]:
    if host == "langchain":
        return [one.page_content for one in made.invoke(QUESTION)["context"]]
    return [one.node.get_content() for one in made.query(QUESTION).source_nodes]


def skip_where_copies_are_dropped(host: str, made: Any) -> None:
    """Old versions of LlamaIndex return each text once."""
    found = [one.node.get_content() for one in made.retrieve(QUESTION)] if host == "llamaindex" else []
    if found and len(set(found)) == len(found):
        pytest.skip("this version drops copies by itself")


Made = Callable[[str], list[Any]]
# what is stored, the texts of which one is read, the finding that says so, whether it is a problem, and its words
STORED: dict[str, tuple[Made, set[str], str, bool, str]] = {
    "once": (lambda host: chunks_of(host, OLD), {OLD}, "document", False, "by their offsets, without gaps"),
    "twice": (lambda host: chunks_of(host, OLD) * 2, {OLD}, "source", False, "word for word as another one"),
    "changed": (lambda host: [*chunks_of(host, OLD), *chunks_of(host, NEW)], {OLD, NEW}, "document", True, "2 texts"),
    "of one name": (
        lambda host: [*chunks_of(host, OTHER), *chunks_of(host, OLD)],
        {OLD},
        "document",
        True,
        "the one of the passages",
    ),
}


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("stored", STORED)
def test_check_says_what_is_stored(host: str, stored: str) -> None:
    made, read_of, subject, is_problem, words = STORED[stored]
    chunks = made(host)
    if host == "llamaindex" and stored == "twice":
        chunks = [*chunks[: len(chunks) // 2], *chunks_of(host, OLD, "rules again")]
    with run(host, chunks, reach=5) as it:
        if stored == "twice":
            skip_where_copies_are_dropped(host, it)
        found = {one.subject: one for one in it.check(QUESTION)}
        assert (words in found[subject].message, found[subject].ok) == (True, not is_problem), found[subject]
        assert bool(found[subject].advice) == (stored != "once")
        (text,) = texts(host, it)
        assert "".join(text.split()) in {"".join(one.split()) for one in read_of}


@pytest.mark.parametrize("host", HOSTS)
def test_copies_give_their_places_in_the_draft_to_others(host: str) -> None:
    """The five passages of a draft are five texts, and `retrieved` keeps all."""
    chunks = [one for number in range(3) for one in chunks_of(host, OLD, f"rules {number}" if number else "rules")]
    with run(host, chunks, start="rag") as it:
        skip_where_copies_are_dropped(host, it)
        if host == "langchain":
            result = it.invoke(QUESTION)
            drafted, found = [one.page_content for one in result["context"]], result["retrieved"]
        else:
            response = it.query(QUESTION)
            drafted = [one.node.get_content() for one in response.source_nodes]
            found = response.metadata["retrieved"]
    assert (len(set(drafted)), len(drafted), len(found)) == (5, 5, 20)


@pytest.mark.parametrize("host", HOSTS)
def test_order_key_that_orders_nothing_is_refused(host: str) -> None:
    """Whole numbers order, whatever lies between them; anything else is said, and not passed over in silence."""
    texts_of = [f"Clause {n}. The crane takes {n} crates of rope." for n in range(12)]
    if host == "langchain":
        chunks: list[Any] = [Document(text, metadata={"source": "rules"}) for text in texts_of]
    else:
        about = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="rules")}
        chunks = [TextNode(text=text, relationships=dict(about)) for text in texts_of]
    for at, one in enumerate(chunks):
        one.metadata |= {"nth": at * 20_000 + 7, "day": f"2024-01-{at + 1:02}"}
    mixed = [chunks[at] for at in (11, 3, 0, 7, 1, 2, 4, 5, 6, 8, 9, 10)]
    with run(host, mixed, order_key="nth") as it:
        assert texts(host, it) == ["\n".join(texts_of)]
    with run(host, mixed, order_key="day") as it, pytest.raises(ConfigurationError, match=r"'day'.*order_key"):
        texts(host, it)


def test_sections_begin_with_their_headings() -> None:
    """Each run of sections of one document stands under its headings, once, and citations keep their offsets."""
    chunks = [
        Document(
            f"The crane took {year - 1990} crates of rope. "
            + f"Boat {year} came late and paid {year % 7} crowns. " * 40,
            metadata={"source": "accounts", "Header 1": "Accounts", "Header 2": str(year)},
        )
        for year in range(2001, 2021)
    ]
    model = a_model(looks=("The crane took 17 crates in 2007.",), final=FINAL)
    with run("langchain", chunks, start="rag", sections=4_000, citations=True) as it:
        chain = it.model_copy(update={"llm": model})
        result = chain.invoke("How many crates did the crane take in 2007 and in 2015?")
        whole = chain.model_copy(update={"start": "long_context"}).invoke("Crates in 2007?")["context"][0].page_content
    draft, sections = (call.prompt for call in model.calls[:2])
    assert result["route"] == "sections"
    for context, prompt in (([], draft), (result["context"], sections)):
        years = [year for year in range(2001, 2021) if f"took {year - 1990} crates" in prompt]
        assert years
        assert all(prompt.count(f"## {year}\n") == 1 for year in years), prompt
        for section in context:
            label = section.metadata["selfroute"]
            assert section.page_content == whole[label["start"] : label["end"]]
    assert whole.count("# Accounts\n") == 1
    assert all(whole.count(f"## {year}\n") == 1 for year in range(2001, 2021))
