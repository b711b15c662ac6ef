"""The tools `search`, `find` and `open`: what they tell, what they never tell, and agents that use them."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_tests.unit_tests import ToolsUnitTests

from hosts_documents import ITS_OWN, MINE, NOTHING_HIDDEN, OTHER, QUESTION, cut, house, of, two_tenants
from langchain_stores import text_of
from selfroute.errors import ConfigurationError
from selfroute.usage import count_tokens

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
async def test_a_search_gives_the_passages_that_the_retriever_finds_with_their_documents(
    kind: str, awaited: bool
) -> None:
    tools = Tools(house(kind, cut(LONG, "report", size=600)))
    content, artifact = await tools.use("search", awaited, query="the number 7")
    assert artifact["passages"]
    assert all(one["document"] == "report" and one["text"] in content for one in artifact["passages"])
    assert content.count("[report]") == len(artifact["passages"])


@both_hosts
@every_way
async def test_what_is_found_in_a_document_stands_there_and_holds_the_words(kind: str, awaited: bool) -> None:
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
async def test_no_answer_is_longer_than_it_may_be(kind: str, awaited: bool) -> None:
    tools = Tools(house(kind, cut(LONG, "report", size=2_000)), max_tokens=100)
    for name, given in (
        ("search", {"query": "the number 7"}),
        ("find", {"document": "report", "words": "the number 7"}),
        ("open", {"document": "report"}),
    ):
        content, _ = await tools.use(name, awaited, **given)
        assert count_tokens(content) <= 100 + 40, name  # and a line on where it stands


@both_hosts
@every_way
async def test_of_what_does_not_fit_the_part_is_told_that_holds_the_words(kind: str, awaited: bool) -> None:
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
    if wall != "a filter that nobody sees":
        told.append(await tools.use("open", awaited, document="handbook"))
        assert told[-1][1]["text"] == text_of(MINE)
    told.append(await tools.use("find", awaited, document="handbook", words=QUESTION))
    for content, artifact in told:
        assert OTHER not in content + str(artifact)


@both_hosts
async def test_what_may_be_hidden_is_opened_by_what_was_found_and_never_by_its_name_alone(kind: str) -> None:
    home = house(kind, two_tenants())
    tools = Tools(home, WALLS["a filter that nobody sees"](home))
    assert (await tools.use("open", document="handbook"))[1].get("missing")


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


def test_a_model_is_told_the_same_of_the_tools_in_both_frameworks() -> None:
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


async def test_of_documents_in_a_list_the_one_is_read_that_is_named() -> None:
    home = house("langchain memory", cut(LONG, "report", size=600))
    texts = {"a": "It is blue.", "b": "It is red."}
    documents = [Document(text, metadata={"source": name}) for name, text in texts.items()]
    tools = Tools(home, home.pipeline(documents=documents))
    for name, text in texts.items():
        assert (await tools.use("open", document=name))[1]["text"] == text
        assert text in (await tools.use("find", document=name, words="blue or red"))[0]
    assert (await tools.use("open", document="report"))[1].get("missing")


async def test_an_agent_looks_for_itself_and_keeps_what_it_found() -> None:
    create_agent = pytest.importorskip("langchain.agents").create_agent
    tools = Tools(house("langchain memory", cut(LONG, "report", size=600)))
    calls = [
        ("search", {"query": "the number 7"}),
        ("find", {"document": "report", "words": "71"}),
        ("open", {"document": "report", "start": 40}),
    ]
    turns = [
        AIMessage("", tool_calls=[{"name": name, "args": given, "id": str(number)}])
        for number, (name, given) in enumerate(calls)
    ]

    class Model(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **_: Any) -> Any:
            return self

    model = Model(messages=iter([*turns, AIMessage("Paragraph 71.")]))
    state = await create_agent(model, tools.made).ainvoke({"messages": [("user", "Where is 71?")]})
    messages = [message for message in state["messages"] if isinstance(message, ToolMessage)]
    assert [message.name for message in messages] == ["search", "find", "open"]
    assert all(message.artifact and message.status == "success" for message in messages)
    assert state["messages"][-1].text == "Paragraph 71."


class _OfLangChain(ToolsUnitTests):
    tool_number = 0

    @property
    def tool_constructor(self) -> Any:
        return Tools(house("langchain memory", cut(LONG, "report", size=600))).made[self.tool_number]


class TestSearch(_OfLangChain):
    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"query": "the number 7"}


class TestFind(_OfLangChain):
    tool_number = 1

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"document": "report", "words": "7"}


class TestOpen(_OfLangChain):
    tool_number = 2

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"document": "report", "start": 10}
