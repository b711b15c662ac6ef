"""The tools `search`, `find` and `open`: what they tell, what they never tell, and agents that use them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_tests.unit_tests import ToolsUnitTests
from llama_index import core as llamaindex_core
from llama_index.core.retrievers import BaseRetriever

from hosts_documents import (
    ITS_OWN,
    MINE,
    NOTHING_HIDDEN,
    OTHER,
    QUESTION,
    Holds,
    Piece,
    cut,
    house,
    of,
    two_tenants,
)
from langchain_stores import text_of
from selfroute.errors import ConfigurationError
from selfroute.languages.tokens import count_tokens

LONG = "\n\n".join(f"Paragraph {number} is about the number {number}. " + "It rained. " * 20 for number in range(90))
both_hosts = pytest.mark.parametrize("kind", ["langchain memory", "llamaindex memory"])
every_way = pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])


class Tools:
    """The tools of a chain or an engine, used in the words of neither host."""

    def __init__(self, home: Any, pipeline: Any = None, *, max_tokens: int = 2_000) -> None:
        self.home = home
        made = (pipeline or home.pipeline(documents=home.documents(NOTHING_HIDDEN))).of(False)
        self.made = made.tools(max_tokens=max_tokens)
        self._by_name = {getattr(tool, "name", None) or tool.metadata.name: tool for tool in self.made}

    async def use(self, name: str, awaited: bool = False, **given: Any) -> tuple[str, dict[str, Any]]:
        tool = self._by_name[name]
        if self.home.host == "langchain":
            call = {"type": "tool_call", "id": "1", "name": name, "args": given}
            message = await tool.ainvoke(call) if awaited else tool.invoke(call)
            return message.content, message.artifact
        output = await tool.acall(**given) if awaited else tool.call(**given)
        return output.content, dict(output.raw_output.artifact)


@both_hosts
@every_way
async def test_lookup_search_names_documents(kind: str, awaited: bool) -> None:
    tools = Tools(house(kind, cut(LONG, "report", size=600)))
    content, artifact = await tools.use("search", awaited, query="the number 7")
    assert artifact["passages"]
    assert all(one["document"] == "report" and one["text"] in content for one in artifact["passages"])
    assert content.count("[report]") == len(artifact["passages"])


@both_hosts
@every_way
async def test_lookup_find_holds_the_words(kind: str, awaited: bool) -> None:
    tools = Tools(house(kind, cut(LONG, "report", size=600)), max_tokens=700)
    content, artifact = await tools.use("find", awaited, document="report", words="Which paragraph is about 71?")
    sections = artifact["sections"]
    assert any("Paragraph 71 " in one["text"] for one in sections)
    for one in sections:
        assert one["text"] in content
        _, opened = await tools.use("open", document="report", start=one["start"])
        length = min(len(one["text"]), len(opened["text"]))
        assert opened["text"][:length] == one["text"][:length]
    assert count_tokens(content) <= 750


@both_hosts
@every_way
async def test_a_document_is_read_stretch_by_stretch_to_its_end(kind: str, awaited: bool) -> None:
    tools = Tools(house(kind, cut(LONG, "report", size=600)), max_tokens=500)
    text, length, stretches = "", 1, 0
    while len(text) < length:
        content, artifact = await tools.use("open", awaited, document="report", start=len(text))
        length = artifact["length"]
        assert artifact["text"] in content
        assert artifact["start"] == len(text)
        assert (f"open it with start={artifact['end']}" in content) == (artifact["end"] < length)
        text, stretches = text + artifact["text"], stretches + 1
    assert text.split() == LONG.split()
    assert stretches > 10
    for outside, shown in ((-5, 0), (10**9, length)):
        assert (await tools.use("open", awaited, document="report", start=outside))[1]["start"] == shown


@both_hosts
@every_way
async def test_lookup_answers_are_no_longer_than_they_may_be(kind: str, awaited: bool) -> None:
    tools = Tools(house(kind, cut(LONG, "report", size=2_000)), max_tokens=100)
    for name, given in zip(("search", "find", "open"), GIVEN, strict=True):
        content, _ = await tools.use(name, awaited, **given)
        assert count_tokens(content) <= 100 + 40, name  # and a line on where it stands


@both_hosts
@every_way
async def test_lookup_tells_the_part_that_holds_the_words(kind: str, awaited: bool) -> None:
    home = house(kind, cut(LONG, "report", size=len(LONG)))
    tools = Tools(home, max_tokens=100)
    content, artifact = await tools.use("find", awaited, document="report", words="Which paragraph is about 71?")
    (section,) = artifact["sections"]
    assert section["text"].startswith("Paragraph 71 is about the number 71.")
    assert section["text"] in content
    assert LONG[section["start"] : section["end"]] == section["text"]
    content, artifact = await tools.use("search", awaited, query="the number 7")
    (passage,) = artifact["passages"]
    assert content == f"[report]\n{passage['text']}"
    assert count_tokens(passage["text"]) <= 100


WALLS = {
    "the retriever's filter": lambda home: home.pipeline(home.search(ITS_OWN)),
    "the documents' filter": lambda home: home.pipeline(home.search(ITS_OWN), home.documents(ITS_OWN)),
    "a filter that nobody sees": lambda home: home.pipeline(home.hidden(home.search(ITS_OWN))),
}


@both_hosts
@every_way
@pytest.mark.parametrize("wall", WALLS)
async def test_another_tenants_document_is_no_document(kind: str, awaited: bool, wall: str) -> None:
    theirs = of(OTHER, "secret") + of(OTHER, "handbook")
    home = house(kind, [*of(MINE, "handbook"), *theirs])
    tools = Tools(home, WALLS[wall](home))
    told = [await tools.use("search", awaited, query=QUESTION)]
    for document in ("secret", "nowhere", "../secret", "", "handbook\0"):
        found = await tools.use("find", awaited, document=document, words=QUESTION)
        opened = (await tools.use("open", awaited, document=document)) if document else found
        assert found == opened
        assert found[0].startswith("There is no such document: "), document
        told += [found, opened]
    if wall == "a filter that nobody sees":  # then nothing is opened by its name alone
        shared = Tools(both := house(kind, two_tenants()), WALLS[wall](both))
        assert (await shared.use("open", awaited, document="handbook"))[1].get("missing")
    else:
        told.append(await tools.use("open", awaited, document="handbook"))
        assert told[-1][1]["text"] == text_of(MINE)
    told.append(await tools.use("find", awaited, document="handbook", words=QUESTION))
    for content, artifact in told:
        assert OTHER not in content + str(artifact)


@both_hosts
async def test_wrong_arguments_say_what_to_do(kind: str) -> None:
    home = house(kind, of(MINE))
    with pytest.raises(ConfigurationError, match="at least 100 tokens"):
        Tools(home, max_tokens=10)


@both_hosts
@every_way
@pytest.mark.parametrize("blank", ["", " ", "\u200b", "\ud800"])
async def test_an_agent_that_looks_for_nothing_is_told_so_and_goes_on(kind: str, awaited: bool, blank: str) -> None:
    tools = Tools(house(kind, of(MINE)))
    for name, given in (("search", {"query": blank}), ("find", {"document": "a", "words": blank})):
        told, artifact = await tools.use(name, awaited, **given)
        assert told.startswith("Nothing was looked for: the question")
        assert artifact == {"refused": True}


def test_lookup_tools_are_alike_in_both_frameworks() -> None:
    chains, engines = (Tools(house(kind, of(MINE))).made for kind in ("langchain memory", "llamaindex memory"))
    told = [(tool.name, tool.description, tool.get_input_schema().model_json_schema()) for tool in chains]
    assert [(one.name, one.description, one.get_parameters_dict()) for one in (tool.metadata for tool in engines)] == [
        (name, about, {key: schema[key] for key in ("properties", "required", "type")}) for name, about, schema in told
    ]
    assert [[*schema["properties"]] for _, _, schema in told] == [
        ["query"],
        ["document", "words"],
        ["document", "start"],
    ]
    assert engines[0]("the number 7").raw_output.artifact["passages"]


async def test_lookup_opens_of_a_list_only_what_the_retriever_found() -> None:
    home = house("langchain memory", [Piece("It is blue.", "a"), Piece("It is red.", "b")])
    texts = {"a": "It is blue. Why?", "b": "It is red. Why?", "c": "It is green."}
    documents = [Document(text, metadata={"source": name}) for name, text in texts.items()]
    tools = Tools(home, home.pipeline(documents=documents))
    for name in ("a", "b"):
        assert (await tools.use("open", document=name))[1]["text"] == texts[name]
        assert texts[name] in (await tools.use("find", document=name, words="blue or red"))[0]
    assert (await tools.use("open", document="c"))[1].get("missing")


# A name is data


def _by_name(home: Any, asked: list[str]) -> dict[str, Any]:
    """Sources of documents that read whatever they are given by its name."""

    def named(passages: Any) -> list[str]:
        if home.host == "langchain":
            return [passage.metadata["source"] for passage in passages]
        return [passage.node.ref_doc_id for passage in passages]

    def of_passages(passages: Any) -> list[Any]:
        names = list(dict.fromkeys(named(passages)))
        asked.extend(names)
        if home.host == "langchain":
            return [Document(f"{THEIR_TEXT} {name}", metadata={"source": name}) for name in names]
        return [llamaindex_core.Document(text=f"{THEIR_TEXT} {name}", id_=name) for name in names]

    class Redacting(type(home.documents())):  # type: ignore[misc]
        def __call__(self, *given: Any) -> Any:
            asked.extend(named(given[0]["retrieved"] if home.host == "langchain" else given[0]))
            return super().__call__(*given)

    def listing(source: Any, _: Any) -> list[Any]:
        asked.append(source)
        passage = home.passage(Piece(THEIR_TEXT, source, about={"tenant": MINE}))
        return [passage if home.host == "langchain" else passage.node]

    made = Redacting(home.store) if home.host == "langchain" else Redacting(home.index)
    callables = {
        "langchain": (lambda given: of_passages(given["retrieved"])),
        "llamaindex": (lambda nodes, _: of_passages(nodes)),
    }
    return {
        "a callable": callables[home.host],
        "a subclass": made,
        "fetch": home.documents(NOTHING_HIDDEN, fetch=home.fetch_of(listing)),
    }


THEIR_TEXT = "Ash Cedar Elm"


@both_hosts
@every_way
@pytest.mark.parametrize("reader", ["a callable", "a subclass", "fetch"])
async def test_lookup_hands_no_name_of_a_model_to_what_reads_by_name(kind: str, reader: str, awaited: bool) -> None:
    asked: list[str] = []
    home = house(kind, [*of(MINE, "ash.md"), *of(OTHER, "birch.md")])
    tools = Tools(home, home.pipeline(home.search(ITS_OWN), _by_name(home, asked)[reader]))
    await tools.use("search", awaited, query=QUESTION)
    for name in ("birch.md", "../secret.env", "ASH.MD", "ash.md ", "/etc/passwd", "7"):
        for tool, given in (("open", {"document": name}), ("find", {"document": name, "words": QUESTION})):
            content, artifact = await tools.use(tool, awaited, **given)
            assert artifact["missing"], (name, content)
    assert asked == []
    assert (await tools.use("open", awaited, document="ash.md"))[1]["text"]
    assert set(asked) == {"ash.md"}


@both_hosts
@every_way
@pytest.mark.parametrize("text", ["Birch\0 of the south. ", "Birch. "])
async def test_lookup_opens_nothing_that_a_retriever_of_ones_own_hides(kind: str, awaited: bool, text: str) -> None:
    home = house(kind, [*of(MINE, "ash.md"), *cut(text * 20, "birch.md", tenant=OTHER)])
    tools = Tools(home, home.pipeline(home.hidden(home.search(ITS_OWN)), home.documents()))
    for name in ("birch.md", "\0", "* * *"):
        for tool, given in (("open", {"document": name}), ("find", {"document": name, "words": "Birch"})):
            content, _ = await tools.use(tool, awaited, **given)
            assert "Birch" not in content


@both_hosts
@every_way
@pytest.mark.parametrize("text", ["", "* * *", "\0"])
async def test_lookup_takes_a_passage_without_words_for_no_evidence(kind: str, awaited: bool, text: str) -> None:
    asked: list[str] = []
    home = house(kind, of(MINE))
    found = home.returning([home.passage(Piece(text, "birch.md"))])
    tools = Tools(home, home.pipeline(found, _by_name(home, asked)["a callable"]))
    await tools.use("search", awaited, query=QUESTION)
    assert (await tools.use("open", awaited, document="birch.md"))[1]["missing"]
    assert asked == []


@both_hosts
@every_way
async def test_lookup_searches_again_before_it_opens(kind: str, awaited: bool) -> None:
    """What a search found for one user opens nothing for another one, whose retriever does not find it."""
    home = house(kind, [*of(MINE, "ash.md"), *of(OTHER, "birch.md")])
    seen = [home.search(ITS_OWN), home.search(Holds("tenant", OTHER))]
    now = [0]
    if home.host == "langchain":
        switched: Any = RunnableLambda(lambda given: seen[now[0]].invoke(given["input"]))
    else:
        switched = _Switched(seen, now)
    tools = Tools(home, home.pipeline(switched, home.documents(NOTHING_HIDDEN)))
    await tools.use("search", awaited, query=QUESTION)
    assert (await tools.use("open", awaited, document="ash.md"))[1]["text"] == text_of(MINE)
    now[0] = 1
    assert (await tools.use("open", awaited, document="ash.md"))[1]["missing"]
    assert (await tools.use("find", awaited, document="ash.md", words=QUESTION))[1]["missing"]
    await tools.use("search", awaited, query=QUESTION)
    assert (await tools.use("open", awaited, document="birch.md"))[1]["text"] == text_of(OTHER)


class _Switched(BaseRetriever):
    def __init__(self, seen: list[Any], now: list[int]) -> None:
        super().__init__()
        self._seen, self._now = seen, now

    def _retrieve(self, query_bundle: Any) -> Any:
        return self._seen[self._now[0]].retrieve(query_bundle)


async def test_lookup_asks_no_user_s_query_for_another() -> None:
    """A query may tell of who asked it, so it is kept with what the configuration says of that."""
    home, asked = house("langchain memory", of(MINE, "ash.md")), list[str]()

    def found(given: Any) -> Any:
        asked.append(given["input"])
        return home.search().invoke(given["input"])

    search, _, opening = Tools(home, home.pipeline(RunnableLambda(found), home.documents(NOTHING_HIDDEN))).made
    for who in ("north", "south"):
        search.invoke({"query": f"{MINE} of {who}"}, {"configurable": {"thread_id": who}})
    asked.clear()
    for who in ("north", "east"):
        assert MINE in opening.invoke({"document": "ash.md"}, {"configurable": {"thread_id": who}})
    assert asked == [f"{MINE} of north", "ash.md"]


async def test_lookup_takes_a_number_and_a_text_for_two_names() -> None:
    home = house("langchain memory", [Piece("It is blue.", 7), Piece("It is red.", None)])
    documents = [Document(f"{name!r} of another", metadata={"source": name}) for name in ("7", None)]
    tools = Tools(home, home.pipeline(documents=documents))
    await tools.use("search", query="blue")
    for name in ("7", "None"):
        assert (await tools.use("open", document=name))[1]["missing"]
    documents.append(Document("It is blue, all of it.", metadata={"source": 7}))
    assert (await tools.use("open", document="7"))[1]["text"] == "It is blue, all of it."


@every_way
async def test_lookup_takes_a_single_argument_as_it_is(awaited: bool) -> None:
    search, _, opening = Tools(house("langchain memory", of(MINE))).made
    for tool in (search, opening):
        assert MINE in str(await tool.ainvoke("handbook") if awaited else tool.invoke("handbook"))


ODD = [
    "9" * 5000,
    "9223372036854775808",
    "2024",
    "a.txt\0",
    "\ud800",
    "x\ud800y",
    "\0",
    "",
    " ",
    "\u202e",
    "../..",
    "%s{}'\";--",
]


@pytest.mark.parametrize("kind", ["langchain memory", "langchain chroma", "llamaindex memory", "llamaindex chroma"])
@every_way
async def test_lookup_answers_odd_names_and_words(kind: str, awaited: bool) -> None:
    tools = Tools(house(kind, of(MINE)))
    for odd in [*ODD, "word " * 3_000]:
        for tool, given in (
            ("search", {"query": odd}),
            ("open", {"document": odd}),
            ("find", {"document": odd, "words": QUESTION}),
            ("find", {"document": "handbook", "words": odd}),
            ("open", {"document": "handbook", "start": 10**30}),
            ("open", {"document": "handbook", "start": -(10**30)}),
        ):
            content, artifact = await tools.use(tool, awaited, **given)
            assert content
            json.dumps(artifact).encode()
            content.encode()


@both_hosts
@every_way
async def test_lookup_logs_what_a_store_raises(kind: str, awaited: bool, caplog: pytest.LogCaptureFixture) -> None:
    home = house(kind, of(MINE))

    def down(*_: Any) -> Any:
        msg = "postgres://user:secret@host is down"
        raise ConnectionError(msg)

    tools = Tools(home, home.pipeline(documents=down))
    for tool, given in (("open", {"document": "handbook"}), ("find", {"document": "handbook", "words": QUESTION})):
        content, artifact = await tools.use(tool, awaited, **given)
        assert content.startswith("This failed (ConnectionError).")
        assert artifact == {"failed": True}
    assert "the tool find failed" in caplog.text


@every_way
@pytest.mark.parametrize("given", [{"document": 7}, {"document": None}, {}, {"document": "handbook", "start": "x"}])
async def test_lookup_answers_arguments_of_a_wrong_type(given: dict[str, Any], awaited: bool) -> None:
    """LangChain's tools check them by their schema; the text of what is wrong is the answer."""
    tools = Tools(house("llamaindex memory", of(MINE)))
    _, artifact = await tools.use("open", awaited, **given)
    assert artifact == {"refused": True}
    (_, _, opening) = Tools(house("langchain memory", of(MINE))).made
    call = {"type": "tool_call", "id": "1", "name": "open", "args": given}
    message = await opening.ainvoke(call) if awaited else opening.invoke(call)
    assert (message.status, message.content[:24]) == ("error", "Nothing was looked for: ")


async def test_lookup_lets_an_interrupt_of_langgraph_pass() -> None:
    errors = pytest.importorskip("langgraph.errors")
    home = house("langchain memory", of(MINE))

    def approved(_: Any) -> Any:
        raise errors.GraphInterrupt(())

    tools = Tools(home, home.pipeline(RunnableLambda(approved)))
    with pytest.raises(errors.GraphInterrupt):
        await tools.use("search", query=QUESTION)


GIVEN: list[dict[str, Any]] = [{"query": "the number 7"}, {"document": "report", "words": "7"}, {"document": "report"}]


class _OfLangChain(ToolsUnitTests):
    number = 0

    @property
    def tool_constructor(self) -> Any:
        return Tools(house("langchain memory", cut(LONG, "report", size=600))).made[self.number]

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return GIVEN[self.number]


class TestSearch(_OfLangChain):
    """The host's own unit tests."""


class TestFind(_OfLangChain):
    number = 1


class TestOpen(_OfLangChain):
    number = 2
